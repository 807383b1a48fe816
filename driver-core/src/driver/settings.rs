//! Settings that can change while a function lives. Each is checked whole before anything is written.

use regs::PortId;

use super::Driver;
use crate::config::{self, Moderation};
use crate::error::ChangeError;
use crate::platform::{Interrupts, MmioError, Platform};
use crate::ring::PageSource;
use crate::{CardErrors, bringup, card_errors, cmac, rss};

impl<P: Platform, S: PageSource<P::Dma>> Driver<P, S> {
    /// When a receive queue notifies: its own setting, or all queues'.
    pub(super) fn moderation_of(&self, rel_qid: u16) -> Moderation {
        self.moderation.get(&rel_qid).copied().unwrap_or(self.config.moderation)
    }

    /// Set when receive queues notify: one, or all and those to come. In force at once on queues that run, and kept over a
    /// down and up.
    ///
    /// # Errors
    /// [`ChangeError::Config`] for a rule by which frames could wait for ever, [`ChangeError::Refused`] without a vector,
    /// [`ChangeError::NoSuchQueue`], [`ChangeError::Stop`] (lent out): nothing was changed. [`ChangeError::Queue`]: a queue
    /// has failed by it.
    pub fn set_moderation(&mut self, rel_qid: Option<u16>, moderation: Moderation) -> Result<(), ChangeError> {
        self.refuse_if_lent()?;
        moderation.check()?;
        rel_qid.map(|at| self.known_queue(at)).transpose()?;
        if moderation.interrupt {
            self.vectors.check_queues().map_err(ChangeError::Refused)?;
            self.enable_vectors(rel_qid)?;
        }
        match rel_qid {
            Some(at) => drop(self.moderation.insert(at, moderation)),
            None => {
                self.config.moderation = moderation;
                self.moderation.clear();
            }
        }
        self.renew_moderation(moderation)
    }

    /// Enable the vectors of those queues that run, of one or all. Before any setting: a vector that can't be had then changes
    /// nothing, and a notification that comes at once is not lost.
    fn enable_vectors(&self, rel_qid: Option<u16>) -> Result<(), ChangeError> {
        let asked = |at: &u16| rel_qid.is_none_or(|rel_qid| rel_qid == *at);
        self.queues.iter().map(|pair| pair.rel_qid()).filter(asked).try_for_each(|at| {
            let enabled = self.platform.interrupts().enable(self.vectors.of_queue(at));
            enabled.map_err(|cause| ChangeError::Refused(cause.into()))
        })
    }

    /// Bring those queues that run in line with the setting that was just made.
    fn renew_moderation(&mut self, moderation: Moderation) -> Result<(), ChangeError> {
        let mut done = Ok(());
        for at in 0..self.queues.len() {
            let rel_qid = self.queues[at].rx.rel_qid();
            if self.moderation_of(rel_qid) != moderation || self.queues[at].rx.moderation() == moderation {
                continue;
            }
            done = done.and(self.queues[at].rx.set_moderation(moderation).map_err(ChangeError::from));
        }
        done
    }

    /// Change the MTU, at once and for all queues. Accepted means in force: frames up to it are sent, and the card passes
    /// them.
    ///
    /// # Errors
    /// [`ChangeError::Config`] names the limits.
    pub fn set_mtu(&mut self, mtu: u16) -> Result<(), ChangeError> {
        config::check_mtu(mtu, self.config.max_frame_len_bytes)?;
        config::check_padding(self.config.min_tx_frame_len_bytes, mtu)?;
        self.config.mtu = mtu;
        self.limits.set_mtu(mtu);
        Ok(())
    }

    /// Change the number of queues while the device is down. A default RSS table is rebuilt; one that the user set is kept
    /// if it fits.
    ///
    /// # Errors
    /// [`ChangeError::Rss`] names the entry of the user's table that doesn't fit; nothing was changed.
    pub fn set_queue_count(&mut self, queues: u16) -> Result<(), ChangeError> {
        if self.up {
            return Err(ChangeError::Up);
        }
        config::check_queues(queues, self.config.base())?;
        let table = match &self.config.rss_table {
            Some(table) => {
                table.check(queues)?;
                *table
            }
            None => rss::Table::equal(queues)?,
        };
        self.config.queues = queues;
        let mmio = self.platform.mmio();
        let contexts = bringup::contexts(&*self.platform, &self.config);
        contexts.write_fmap(self.config.func, self.config.base(), queues)?;
        bringup::write_qconf(mmio, &self.config, queues)?;
        rss::write_table(mmio, self.config.func, &table)?;
        Ok(())
    }

    /// How the card hashes.
    pub fn hash_function(&self) -> rss::HashFunction {
        rss::CARD_HASH
    }

    /// Choose the hash function.
    ///
    /// # Errors
    /// [`rss::RssError::HashFunction`] for any but the card's own.
    pub fn set_hash_function(&mut self, asked: rss::HashFunction) -> Result<(), ChangeError> {
        if asked == rss::CARD_HASH { Ok(()) } else { Err(rss::RssError::HashFunction { asked }.into()) }
    }

    /// The RSS table in force, read from the card.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn rss_table(&self) -> Result<rss::Table, MmioError> {
        rss::read_table(self.platform.mmio(), self.config.func)
    }

    /// Set the RSS table. It is checked whole before its first entry is written.
    ///
    /// # Errors
    /// [`ChangeError::Rss`] names the entry that can't be; nothing was written.
    pub fn set_rss_table(&mut self, table: &rss::Table) -> Result<(), ChangeError> {
        table.check(self.config.queues)?;
        rss::write_table(self.platform.mmio(), self.config.func, table)?;
        self.config.rss_table = Some(*table);
        Ok(())
    }

    /// Back to the default table, entry i being queue i mod n, which follows the number of queues.
    ///
    /// # Errors
    /// [`ChangeError::Mmio`].
    pub fn reset_rss_table(&mut self) -> Result<(), ChangeError> {
        let table = rss::Table::equal(self.config.queues)?;
        rss::write_table(self.platform.mmio(), self.config.func, &table)?;
        self.config.rss_table = None;
        Ok(())
    }

    /// The RSS key in force, read from the card.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn rss_key(&self) -> Result<rss::Key, MmioError> {
        rss::read_key(self.platform.mmio(), self.config.func)
    }

    /// Set the RSS key.
    ///
    /// # Errors
    /// [`ChangeError::Mmio`].
    pub fn set_rss_key(&mut self, key: rss::Key) -> Result<(), ChangeError> {
        rss::write_key(self.platform.mmio(), self.config.func, key)?;
        self.config.rss_key = Some(key);
        Ok(())
    }

    /// Is the port's receiver aligned?
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn link_up(&self, port: PortId) -> Result<bool, MmioError> {
        cmac::link_up(self.platform.mmio(), port)
    }

    /// Read, clear, count and re-arm the card's errors: what to do when [`Driver::error_vector`] fires. What comes back can
    /// be logged as it is. Function 0 only; others have nothing to serve and get `None`.
    ///
    /// A queue that an error has stopped shows it itself: [`Driver::recover`] starts it afresh.
    ///
    /// # Errors
    /// [`MmioError`]. What was found before it is counted, and the next call tells of it; the interrupt is armed again if the
    /// card takes that.
    pub fn service_errors(&self) -> Result<Option<CardErrors>, MmioError> {
        let Some(vector) = self.vectors.error else { return Ok(None) };
        let mmio = self.platform.mmio();
        let (found, done) = card_errors::service(mmio, self.config.ip_version, self.config.func, vector);
        self.card_errors.add(&found);
        if let Err(cause) = done {
            self.card_errors.owe(&found);
            return Err(cause);
        }
        Ok(Some(self.card_errors.with_owed(found)))
    }
}

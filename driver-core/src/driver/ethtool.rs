//! Settings as ethtool asks for them.
//!
//! Whatever needs the queues to stop takes the device down and up again by itself. If it can't come up with the new setting
//! it comes up with the old one.

use regs::{Bar, qdma_csr, shell, system_config};

use super::Driver;
use crate::cmac;
use crate::config::{QUEUES_MAX, QUEUES_PER_FUNCTION, TableEntry};
use crate::csr;
use crate::error::{ChangeError, StopError};
use crate::ethtool::{
    Channels, Choices, Coalesce, CoalesceChange, CoalesceTables, DriverInfo, EthtoolError, Fec, LinkSettings, Rings,
    RingsChange, Rss, RssChange, TableChange,
};
use crate::platform::{DmaMemory, Interrupts, Mmio, MmioError, Platform};
use crate::ring::PageSource;
use crate::rss;
use crate::{Side, config};

/// A CMAC's only speed.
const SPEED_MBPS: u32 = 100_000;

impl<P: Platform, S: PageSource<P::Dma>> Driver<P, S> {
    /// `ethtool -i`.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn info(&self) -> Result<DriverInfo, MmioError> {
        let mmio = self.platform.mmio();
        let stamp = shell::SYSTEM_CONFIG + system_config::BUILD_TIMESTAMP;
        Ok(DriverInfo {
            driver: "onic",
            version: env!("CARGO_PKG_VERSION"),
            build_timestamp: mmio.read32(Bar::Shell, stamp)?,
            func: self.config.func,
            n_stats: self.statistics()?.rows().len(),
        })
    }

    /// `ethtool -l`.
    pub fn channels(&self) -> Channels {
        let granted = self.platform.interrupts().count();
        Channels {
            max_combined: self.queues_max(),
            combined: self.config.queues,
            other: granted.min(if self.config.master { 2 } else { 1 }),
        }
    }

    /// By the vendor's layout the next function's queues begin 64 further on; a function that was given more, or a base of
    /// its own, has the queue space to itself up to its end.
    fn queues_max(&self) -> u16 {
        match self.config.queue_base {
            None if self.queues_at_birth <= QUEUES_PER_FUNCTION => QUEUES_PER_FUNCTION,
            // The base is below 2048, or bring-up would have been refused.
            _ => (QUEUES_MAX - u32::from(self.config.base())) as u16,
        }
    }

    /// `ethtool -L … combined N`. A device that is up goes down and comes up again; queues that were assigned to workers are
    /// worker 0's then.
    ///
    /// # Errors
    /// [`ChangeError::Ethtool`], [`ChangeError::Rss`], [`ChangeError::Stop`] (lent out): nothing was changed. Otherwise the
    /// old number is in force again; the device may be down ([`Driver::is_up`]).
    pub fn set_channels_with(&mut self, combined: u16, source: impl FnMut(u16) -> S) -> Result<(), ChangeError> {
        let max = self.queues_max();
        if combined == 0 || combined > max {
            return Err(EthtoolError::Channels { asked: combined, max }.into());
        }
        if let Some(table) = &self.config.rss_table {
            table.check(combined)?;
        }
        let before = self.config.queues;
        self.change_while_down(source, before, combined, |driver, queues| driver.set_queue_count(*queues))
    }

    /// `ethtool -g`.
    pub fn rings(&self) -> Rings {
        Rings {
            rx: self.sizes.rx_ring.value,
            tx: self.sizes.tx_ring.value,
            choices: Choices(self.sizes.ring_choices()),
        }
    }

    /// `ethtool -G`. A size must be in the card's table, since other functions use it too. A device that is up goes down and
    /// comes up again.
    ///
    /// # Errors
    /// [`ChangeError::Ethtool`] lists the sizes, [`ChangeError::Refused`] says why one can't work, [`ChangeError::Stop`] that
    /// queues are lent out: nothing was changed. Otherwise the old sizes are in force again; the device may be down.
    pub fn set_rings_with(&mut self, change: RingsChange, source: impl FnMut(u16) -> S) -> Result<(), ChangeError> {
        let choices = Choices(self.sizes.ring_choices());
        for (side, asked) in [(Side::Rx, change.rx), (Side::Tx, change.tx)] {
            if let Some(asked) = asked.filter(|asked| !choices.0.contains(asked)) {
                return Err(EthtoolError::RingSize { side, asked, choices }.into());
            }
        }
        let mut config = self.config.clone();
        config.rx_ring = change.rx.map_or(config.rx_ring, TableEntry::Value);
        config.tx_ring = change.tx.map_or(config.tx_ring, TableEntry::Value);
        let page_bytes = self.platform.dma().page_size();
        let sizes = self.sizes.chosen_again(&config, page_bytes).map_err(ChangeError::Refused)?;
        let before = (self.config.clone(), self.sizes.clone());
        self.change_while_down(source, before, (config, sizes), |driver, (config, sizes)| {
            driver.config.clone_from(config);
            driver.sizes.clone_from(sizes);
            Ok(())
        })
    }

    /// Down, change, up; with the old setting again if that fails.
    fn change_while_down<T>(
        &mut self,
        mut source: impl FnMut(u16) -> S,
        before: T,
        after: T,
        set: impl Fn(&mut Self, &T) -> Result<(), ChangeError>,
    ) -> Result<(), ChangeError> {
        self.refuse_if_lent()?;
        let was_up = self.up;
        if was_up {
            self.down()?;
        }
        let mut start = |driver: &mut Self| if was_up { driver.up_with(&mut source) } else { Ok(()) };
        let done = set(self, &after).and_then(|()| Ok(start(self)?));
        if done.is_err() {
            // The first error is the one to tell; that the device is down then can be seen.
            let _ = set(self, &before).and_then(|()| Ok(start(self)?));
        }
        done
    }

    pub(super) fn refuse_if_lent(&self) -> Result<(), ChangeError> {
        if self.lent > 0 { Err(StopError::LentOut { count: self.lent }.into()) } else { Ok(()) }
    }

    /// Down and up again, whatever state it is in.
    ///
    /// # Errors
    /// [`ChangeError::Stop`] and [`ChangeError::Start`]; the device is down then, except if queues are lent out.
    pub fn restart_with(&mut self, source: impl FnMut(u16) -> S) -> Result<(), ChangeError> {
        self.down()?;
        Ok(self.up_with(source)?)
    }

    /// The card's timers and counters.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn coalesce_tables(&self) -> Result<CoalesceTables, MmioError> {
        let mmio = self.platform.mmio();
        let tick_ns = csr::tick_ns(mmio)?;
        let timers = csr::read_table(mmio, qdma_csr::C2H_TIMER_COUNT)?;
        Ok(CoalesceTables {
            timers_ns: timers.map(|ticks| u32::from(ticks).saturating_mul(tick_ns)),
            counters: Choices(csr::read_table(mmio, qdma_csr::C2H_COUNTER_THRESHOLD)?),
        })
    }

    /// `ethtool -c`, or `-Q` with a queue: one receive queue's setting. `None` is the setting of queues that have none of
    /// their own.
    ///
    /// # Errors
    /// [`ChangeError::NoSuchQueue`], [`ChangeError::Mmio`].
    pub fn coalesce(&self, rel_qid: Option<u16>) -> Result<Coalesce, ChangeError> {
        let moderation = match rel_qid {
            Some(rel_qid) => self.moderation_of(self.known_queue(rel_qid)?),
            None => self.config.moderation,
        };
        Ok(self.coalesce_tables()?.describe(moderation))
    }

    /// `ethtool -C`, or `-Q` with a queue. All queues, and those to come, or one. In force at once on queues that run, and kept
    /// over a down and up.
    ///
    /// # Errors
    /// [`ChangeError::Ethtool`] lists what the card has, [`ChangeError::Config`] refuses a rule by which frames could wait for
    /// ever, [`ChangeError::NoSuchQueue`], [`ChangeError::Stop`] (lent out): nothing was changed. [`ChangeError::Queue`]: a
    /// queue has failed by it.
    pub fn set_coalesce(&mut self, rel_qid: Option<u16>, change: &CoalesceChange) -> Result<(), ChangeError> {
        let tables = self.coalesce_tables()?;
        match rel_qid {
            Some(rel_qid) => {
                let moderation = tables.apply(self.moderation_of(self.known_queue(rel_qid)?), change)?;
                self.set_moderation(Some(rel_qid), moderation)
            }
            None => self.set_moderation(None, tables.apply(self.config.moderation, change)?),
        }
    }

    pub(super) fn known_queue(&self, rel_qid: u16) -> Result<u16, ChangeError> {
        if rel_qid < self.config.queues { Ok(rel_qid) } else { Err(ChangeError::NoSuchQueue { rel_qid }) }
    }

    /// `ethtool -x`, read from the card.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn rss(&self) -> Result<Rss, MmioError> {
        Ok(Rss {
            hash: self.hash_function(),
            table: self.rss_table()?,
            key: self.rss_key()?,
            queues: self.config.queues,
        })
    }

    /// `ethtool -X`: everything is checked, then everything is written.
    ///
    /// # Errors
    /// [`ChangeError::Rss`] names what can't be; nothing was written. [`ChangeError::Mmio`]: it is as far as it came.
    pub fn set_rss(&mut self, change: &RssChange) -> Result<(), ChangeError> {
        if let Some(asked) = change.hash.filter(|asked| *asked != rss::CARD_HASH) {
            return Err(rss::RssError::HashFunction { asked }.into());
        }
        if let Some(TableChange::Table(table)) = &change.table {
            table.check(self.config.queues)?;
        }
        match &change.table {
            Some(TableChange::Table(table)) => self.set_rss_table(table)?,
            Some(TableChange::Default) => self.reset_rss_table()?,
            None => {}
        }
        change.key.map_or(Ok(()), |key| self.set_rss_key(key))
    }

    /// `ethtool IF`: the function's own port.
    ///
    /// # Errors
    /// [`EthtoolError::NoPort`], [`ChangeError::Mmio`].
    pub fn link_settings(&self) -> Result<LinkSettings, ChangeError> {
        let port = self.config.own_port.ok_or(EthtoolError::NoPort)?;
        let mmio = self.platform.mmio();
        Ok(LinkSettings {
            port,
            speed_mbps: SPEED_MBPS,
            full_duplex: true,
            autoneg: false,
            fec: if cmac::rs_fec(mmio, port)? { Fec::Rs } else { Fec::Off },
            detected: cmac::link_up(mmio, port)?,
        })
    }

    /// `ethtool --set-fec`: the function's own port. A CMAC takes it at a reset only, so that the link goes down for a moment
    /// and frames on their way through it are lost. Counts of the MAC are not: they are collected once its receiver is off.
    ///
    /// # Errors
    /// [`EthtoolError::NoPort`]: nothing was changed. [`ChangeError::Port`]: the port was tried with the old setting again.
    pub fn set_fec(&mut self, fec: Fec) -> Result<(), ChangeError> {
        let port = self.config.own_port.ok_or(EthtoolError::NoPort)?;
        let before = self.config.rs_fec;
        self.config.rs_fec = fec == Fec::Rs;
        let done = self.renew_port(port);
        if done.is_err() {
            self.config.rs_fec = before;
            let _ = self.renew_port(port);
        }
        done.map_err(|cause| ChangeError::Port { port, cause })
    }

    /// Set the port up afresh, with its receiver as it has to be.
    fn renew_port(&self, port: regs::PortId) -> Result<(), crate::Cause> {
        let mmio = self.platform.mmio();
        cmac::enable_rx(mmio, port, false)?;
        // A frame that came after this would be counted and, by the reset, forgotten.
        if let Some(mac) = &self.mac {
            mac.collect(mmio)?;
        }
        cmac::set_up(&*self.platform, &self.config, port)?;
        cmac::enable_rx(mmio, port, self.up)?;
        Ok(())
    }

    /// The limits of [`Driver::set_mtu`].
    pub fn mtu_range(&self) -> core::ops::RangeInclusive<u16> {
        config::MTU_MIN..=config::mtu_limit(self.config.max_frame_len_bytes)
    }
}

impl<P: Platform, S: PageSource<P::Dma> + Default> Driver<P, S> {
    /// [`Driver::set_channels_with`], each queue with a page source of its own.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn set_channels(&mut self, combined: u16) -> Result<(), ChangeError> {
        self.set_channels_with(combined, |_| S::default())
    }

    /// [`Driver::set_rings_with`], each queue with a page source of its own.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn set_rings(&mut self, change: RingsChange) -> Result<(), ChangeError> {
        self.set_rings_with(change, |_| S::default())
    }

    /// [`Driver::restart_with`], each queue with a page source of its own.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn restart(&mut self) -> Result<(), ChangeError> {
        self.restart_with(|_| S::default())
    }
}

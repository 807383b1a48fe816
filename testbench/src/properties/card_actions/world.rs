//! The state of things between two actions: what both drivers and cards should have come to, and what a frame's fate is
//! then by the specification. Nothing here asks a card.

use driver_core::rss::{Key, TABLE_LEN, Table};
use regs::FuncId;

use super::deed::{Deed, Setting, Stray};
use crate::console::Interface;
use crate::properties::oracle;
use crate::run::{CardDriver, InFrame};

/// One function.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) up: bool,
    pub(super) base: u16,
    pub(super) queues: u16,
    pub(super) mtu: u16,
    pub(super) rx_ring: u16,
    pub(super) tx_ring: u16,
    pub(super) key: Key,
    pub(super) table: [u16; TABLE_LEN],
    /// The table was written behind the driver's back.
    pub(super) loose: bool,
}

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) ports: u8,
    /// The longest frame that a port takes, FCS left out.
    pub(super) max_frame_bytes: u16,
    pub(super) functions: Vec<Function>,
}

impl World {
    /// As bring-up leaves it.
    pub(super) fn new(ports: u8, max_frame_bytes: u16) -> World {
        World { ports, max_frame_bytes, functions: Vec::new() }
    }

    /// An interface's function.
    pub(super) fn of(&self, at: Interface) -> &Function {
        &self.functions[usize::from(at.0)]
    }

    /// Take over what a driver has come to.
    pub(super) fn follow(&mut self, driver: &CardDriver) {
        let config = driver.config();
        let at = usize::from(config.func.0);
        let table = config.rss_table.or_else(|| Table::equal(config.queues).ok());
        let table = table.map_or([0; TABLE_LEN], |table| *table.entries());
        let kept = self.functions.get(at).filter(|function| function.loose);
        let function = Function {
            up: driver.is_up(),
            base: config.base(),
            queues: config.queues,
            mtu: config.mtu,
            rx_ring: driver.rx_ring_entries(),
            tx_ring: driver.tx_ring_entries(),
            key: config.rss_key.unwrap_or(Key::DEFAULT),
            loose: kept.is_some(),
            table: kept.map_or(table, |function| function.table),
        };
        match self.functions.get_mut(at) {
            Some(known) => *known = function,
            None => self.functions.push(function),
        }
    }

    /// What a deed makes of tables that no driver knows; `done`: its setting was made, not refused.
    pub(super) fn note(&mut self, deed: &Deed, done: bool) {
        match deed {
            Deed::Stray { func, stray: Stray::Table(table), .. } => {
                let function = &mut self.functions[usize::from(func.0)];
                (function.table, function.loose) = (**table, true);
            }
            // A number of queues and a table are written with the whole table.
            Deed::Set(interface, setting) | Deed::Under { interface, setting, .. } => {
                let writes = match setting {
                    Setting::Channels(_) => true,
                    Setting::Rss(change) => change.table.is_some(),
                    _ => false,
                };
                self.functions[usize::from(interface.0)].loose &= !(writes && done);
            }
            Deed::Traffic { .. } | Deed::Range { .. } | Deed::Stray { .. } | Deed::Look => {}
        }
    }

    /// The MAC takes it.
    pub(super) fn is_good(&self, frame: &InFrame) -> bool {
        !frame.err && (60..=usize::from(self.max_frame_bytes)).contains(&frame.data.len())
    }

    /// The table's entry for a frame, and whose. As many functions as ports: port n goes to function n.
    fn entry_of(&self, frame: &InFrame) -> (FuncId, u16) {
        let func = FuncId(frame.port.0);
        let function = &self.functions[usize::from(func.0)];
        let hash = oracle::hash(&function.key.0, &frame.data);
        (func, function.table[(hash % TABLE_LEN as u32) as usize])
    }

    /// The queue that a frame comes out of, on a card at rest.
    pub(super) fn queue_of(&self, frame: &InFrame) -> Option<(FuncId, u16)> {
        let (func, entry) = self.entry_of(frame);
        let function = &self.functions[usize::from(func.0)];
        (function.up && self.is_good(frame) && entry < function.queues).then_some((func, entry))
    }
}

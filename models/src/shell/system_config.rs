//! Resets: which modules there are, when each is in reset, and what the status bits say.
//!
//! Corrected: a status bit is 0 from the request until the module is out of reset, and a request during a reset starts it
//! again. Upstream: a software reset hardly shows in its status bit (Q1), and a request just behind another is lost (Q11).
//!
//! Source: shell.md sections 5.1, 5.2 and 7.1.

use super::{Profile, ShellConfig};
use crate::time::{Clock, Time};

const AXIL_PS: u64 = Clock::AXIL.num;
/// From a request to the end of the reset: low from cycle 1 to 102.
const RESET_PS: u64 = 102 * AXIL_PS;
/// From `powerup_rstn` to the end of all modules' resets.
const POWER_UP_PS: u64 = 105 * AXIL_PS;
/// Cycles after a request in which upstream loses another (Q11).
const LOST_FROM_PS: u64 = 101 * AXIL_PS;
const LOST_TO_PS: u64 = 110 * AXIL_PS;

/// A module that can be reset by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Module {
    Qdma,
    Cmac(usize),
    Adapter(usize),
    Box250Plugin,
    Box322Plugin,
    Box322,
    Box250,
}

/// Which of the two registers a module's bit is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bits {
    Shell,
    User,
}

impl Module {
    /// Register and bit. Source: shell.md section 7.1.
    fn bit(self) -> (Bits, u32) {
        match self {
            Module::Qdma => (Bits::Shell, 0),
            Module::Cmac(p) => (Bits::Shell, 4 + 4 * p as u32),
            Module::Adapter(p) => (Bits::Shell, 5 + 4 * p as u32),
            Module::Box250Plugin => (Bits::User, 0),
            Module::Box322Plugin => (Bits::User, 16),
            Module::Box322 => (Bits::User, 30),
            Module::Box250 => (Bits::User, 31),
        }
    }
}

struct Unit {
    module: Module,
    requested_at: Option<Time>,
    ready_at: Time,
    /// From when on the status bit reads 1.
    done_at: Time,
}

pub(super) struct SystemConfig {
    units: Vec<Unit>,
    profile: Profile,
    /// When the last of them is out of reset: from then on no frame needs to ask for one.
    all_ready_at: Time,
}

impl SystemConfig {
    pub(super) fn new(cfg: &ShellConfig) -> SystemConfig {
        let ports = (0..cfg.ports as usize).flat_map(|p| [Module::Cmac(p), Module::Adapter(p)]);
        let modules = [Module::Qdma, Module::Box250Plugin, Module::Box322Plugin, Module::Box322, Module::Box250];
        let units = modules.into_iter().chain(ports);
        let ready_at = Time(POWER_UP_PS);
        let units = units.map(|module| Unit { module, requested_at: None, ready_at, done_at: ready_at }).collect();
        SystemConfig { units, profile: cfg.profile, all_ready_at: ready_at }
    }

    pub(super) fn modules(&self) -> Vec<Module> {
        self.units.iter().map(|unit| unit.module).collect()
    }

    /// The modules whose bits are set in a request.
    pub(super) fn named(&self, bits: Bits, value: u32) -> Vec<Module> {
        let asked = |module: Module| matches!(module.bit(), (b, n) if b == bits && value >> n & 1 == 1);
        self.units.iter().map(|unit| unit.module).filter(|module| asked(*module)).collect()
    }

    pub(super) fn power_up(&mut self, now: Time) {
        for unit in &mut self.units {
            unit.requested_at = None;
            unit.ready_at = now + POWER_UP_PS;
            unit.done_at = unit.ready_at;
        }
        self.all_ready_at = now + POWER_UP_PS;
    }

    /// A software reset. False when upstream loses the request.
    pub(super) fn request(&mut self, module: Module, now: Time) -> bool {
        let profile = self.profile;
        let Some(unit) = self.units.iter_mut().find(|unit| unit.module == module) else { return false };
        let since = unit.requested_at.map(|before| now.0.saturating_sub(before.0));
        if profile == Profile::Upstream && since.is_some_and(|ps| (LOST_FROM_PS..=LOST_TO_PS).contains(&ps)) {
            return false;
        }
        unit.requested_at = Some(now);
        unit.ready_at = now + RESET_PS;
        unit.done_at = match profile {
            Profile::Corrected => unit.ready_at,
            Profile::Upstream => now + AXIL_PS,
        };
        self.all_ready_at = self.all_ready_at.max(unit.ready_at);
        true
    }

    pub(super) fn ready_at(&self, module: Module) -> Time {
        self.units.iter().find(|unit| unit.module == module).map_or(Time::ZERO, |unit| unit.ready_at)
    }

    pub(super) fn in_reset(&self, module: Module, now: Time) -> bool {
        self.all_ready_at > now && self.ready_at(module) > now
    }

    /// Whether any of the modules is in reset: the end of the last one's, if so.
    pub(super) fn waits_for(&self, modules: &[Module], now: Time) -> Option<Time> {
        if self.all_ready_at <= now {
            return None;
        }
        modules.iter().map(|module| self.ready_at(*module)).max().filter(|ready_at| *ready_at > now)
    }

    /// SHELL_STATUS or USER_STATUS. Bits of modules that do not exist read 1.
    pub(super) fn status(&self, bits: Bits, now: Time) -> u32 {
        self.units.iter().filter(|unit| unit.done_at > now).fold(u32::MAX, |status, unit| match unit.module.bit() {
            (b, n) if b == bits => status & !(1 << n),
            _ => status,
        })
    }

    /// SYSTEM_STATUS bit 0.
    pub(super) fn all_done(&self, now: Time) -> bool {
        self.units.iter().all(|unit| unit.done_at <= now)
    }
}

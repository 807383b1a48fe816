//! When what is due in a shell: a table that is mended where something changed, instead of being made anew for each event.
//!
//! What changes a port or a function says so here; the rest of the shell is a few fields, and is looked at each time. A
//! change that nobody told would make events late, so debug builds compare the whole table at every look.

use super::function::Function;
use super::{Port, ShellConfig};
use crate::time::Time;

/// Of each port: RxEnd, Read, TxEnd.
const OF_PORT: usize = 3;
/// Of each function: Decide, Request.
const OF_FUNCTION: usize = 2;
const PORTS_MAX: usize = 2;
const FUNCTIONS_MAX: usize = 4;

/// What is due next. Things due at the same time are done in this order: ports one after the other, the C2H stream's end,
/// functions one after the other, grant, H2C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    RxEnd(usize),
    Read(usize),
    TxEnd(usize),
    C2hEnd,
    Decide(usize),
    Request,
    Grant,
    H2c,
}

/// What is not in the table.
#[derive(Clone, Copy)]
pub(super) struct Streams {
    pub(super) c2h_end: Time,
    pub(super) grant: Time,
    pub(super) h2c: Time,
}

pub(super) struct Agenda {
    ports: [[Time; OF_PORT]; PORTS_MAX],
    functions: [[Time; OF_FUNCTION]; FUNCTIONS_MAX],
    port_count: usize,
    function_count: usize,
    /// Bit n: port n has changed.
    ports_changed: u8,
    /// Bit n: function n has changed.
    functions_changed: u8,
}

impl Agenda {
    /// Nothing is due, and everything has changed.
    pub(super) fn new(cfg: &ShellConfig) -> Agenda {
        let mut agenda = Agenda {
            ports: [[Time::NEVER; OF_PORT]; PORTS_MAX],
            functions: [[Time::NEVER; OF_FUNCTION]; FUNCTIONS_MAX],
            port_count: usize::from(cfg.ports).min(PORTS_MAX),
            function_count: usize::from(cfg.functions).min(FUNCTIONS_MAX),
            ports_changed: 0,
            functions_changed: 0,
        };
        agenda.everything_changed();
        agenda
    }

    pub(super) fn everything_changed(&mut self) {
        self.ports_changed = (1 << self.port_count) - 1;
        self.functions_changed = (1 << self.function_count) - 1;
    }

    #[inline]
    pub(super) fn port_changed(&mut self, port: usize) {
        self.ports_changed |= 1 << port;
    }

    #[inline]
    pub(super) fn function_changed(&mut self, function: usize) {
        self.functions_changed |= 1 << function;
    }

    /// Bring the table up to date.
    #[inline]
    pub(super) fn update(&mut self, ports: &[Port], functions: &[Function]) {
        while self.ports_changed != 0 {
            let p = self.ports_changed.trailing_zeros() as usize;
            self.ports_changed &= self.ports_changed - 1;
            self.ports[p] = times_of_port(&ports[p]);
        }
        while self.functions_changed != 0 {
            let f = self.functions_changed.trailing_zeros() as usize;
            self.functions_changed &= self.functions_changed - 1;
            self.functions[f] = times_of_function(&functions[f]);
        }
        debug_assert!(ports.iter().zip(&self.ports).all(|(port, times)| times_of_port(port) == *times), "a port");
        debug_assert!(functions.iter().zip(&self.functions).all(|(f, times)| times_of_function(f) == *times), "a function");
    }

    /// What is due first, and when; [`Time::NEVER`] if nothing is. Of a table that is up to date.
    #[inline]
    pub(super) fn first(&self, streams: Streams) -> (Time, Event) {
        let mut first = (Time::NEVER, Event::Grant);
        let mut consider = |time: Time, event| {
            if time < first.0 {
                first = (time, event);
            }
        };
        for (p, [rx_end, read, tx_end]) in self.ports[..self.port_count].iter().enumerate() {
            consider(*rx_end, Event::RxEnd(p));
            consider(*read, Event::Read(p));
            consider(*tx_end, Event::TxEnd(p));
        }
        consider(streams.c2h_end, Event::C2hEnd);
        for (f, [decide, request]) in self.functions[..self.function_count].iter().enumerate() {
            consider(*decide, Event::Decide(f));
            consider(*request, Event::Request);
        }
        consider(streams.grant, Event::Grant);
        consider(streams.h2c, Event::H2c);
        first
    }
}

#[inline]
fn times_of_port(port: &Port) -> [Time; OF_PORT] {
    [port.cmac.rx_due(), port.read_due(), port.tx.due()]
}

#[inline]
fn times_of_function(function: &Function) -> [Time; OF_FUNCTION] {
    [function.decide_due(), function.request_due()]
}

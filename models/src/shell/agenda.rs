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

/// What is due next.
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
        if let ([port], [function]) = (ports, functions) {
            // The smallest card, which most runs are made with, without loops.
            if self.ports_changed != 0 {
                self.ports[0] = port.due();
            }
            if self.functions_changed != 0 {
                self.functions[0] = times_of_function(function);
            }
        } else {
            self.update_each(ports, functions);
        }
        (self.ports_changed, self.functions_changed) = (0, 0);
        debug_assert!(ports.iter().zip(&self.ports).all(|(port, times)| port.due() == *times), "a port");
        debug_assert!(
            functions.iter().zip(&self.functions).all(|(f, times)| times_of_function(f) == *times),
            "a function"
        );
    }

    fn update_each(&mut self, ports: &[Port], functions: &[Function]) {
        for (p, (times, port)) in self.ports.iter_mut().zip(ports).enumerate() {
            if self.ports_changed >> p & 1 != 0 {
                *times = port.due();
            }
        }
        for (f, (times, function)) in self.functions.iter_mut().zip(functions).enumerate() {
            if self.functions_changed >> f & 1 != 0 {
                *times = times_of_function(function);
            }
        }
    }

    /// What is due first, and when; [`Time::NEVER`] if nothing is. The table must be up to date. Things due at the same time
    /// are done in the order in which they stand here.
    #[inline]
    pub(super) fn first(&self, streams: Streams) -> (Time, Event) {
        match (self.port_count, self.function_count) {
            (1, 1) => self.first_of_smallest(streams),
            _ => self.first_of_all(streams),
        }
    }

    /// [`Agenda::first`] of a card with one port and one function.
    #[inline]
    fn first_of_smallest(&self, streams: Streams) -> (Time, Event) {
        const EVENTS: [Event; 8] = [
            Event::RxEnd(0),
            Event::Read(0),
            Event::TxEnd(0),
            Event::C2hEnd,
            Event::Decide(0),
            Event::Request,
            Event::Grant,
            Event::H2c,
        ];
        let ([rx_end, read, tx_end], [decide, request]) = (self.ports[0], self.functions[0]);
        let Streams { c2h_end, grant, h2c } = streams;
        // Two by two, the earlier place first: a chain would have to wait for each comparison.
        let earlier = |a: (Time, usize), b: (Time, usize)| if b.0 < a.0 { b } else { a };
        let port = earlier(earlier((rx_end, 0), (read, 1)), earlier((tx_end, 2), (c2h_end, 3)));
        let function = earlier(earlier((decide, 4), (request, 5)), earlier((grant, 6), (h2c, 7)));
        let (time, place) = earlier(port, function);
        (time, EVENTS[place & 7])
    }

    /// [`Agenda::first`] of any card.
    fn first_of_all(&self, streams: Streams) -> (Time, Event) {
        // A place is a number until it is known which is first: cheaper to carry along than an event.
        const C2H_END: usize = OF_PORT * PORTS_MAX;
        const FUNCTIONS: usize = C2H_END + 1;
        const GRANT: usize = FUNCTIONS + OF_FUNCTION * FUNCTIONS_MAX;
        const H2C: usize = GRANT + 1;
        let mut first = (Time::NEVER, GRANT);
        let mut consider = |time: Time, place: usize| {
            if time < first.0 {
                first = (time, place);
            }
        };
        for (place, &time) in self.ports[..self.port_count].as_flattened().iter().enumerate() {
            consider(time, place);
        }
        consider(streams.c2h_end, C2H_END);
        for (place, &time) in self.functions[..self.function_count].as_flattened().iter().enumerate() {
            consider(time, FUNCTIONS + place);
        }
        consider(streams.grant, GRANT);
        consider(streams.h2c, H2C);
        let (time, place) = first;
        let event = match place {
            0..C2H_END => match place % OF_PORT {
                0 => Event::RxEnd(place / OF_PORT),
                1 => Event::Read(place / OF_PORT),
                _ => Event::TxEnd(place / OF_PORT),
            },
            C2H_END => Event::C2hEnd,
            FUNCTIONS..GRANT => match (place - FUNCTIONS) % OF_FUNCTION {
                0 => Event::Decide((place - FUNCTIONS) / OF_FUNCTION),
                _ => Event::Request,
            },
            GRANT => Event::Grant,
            _ => Event::H2c,
        };
        (time, event)
    }
}

#[inline]
fn times_of_function(function: &Function) -> [Time; OF_FUNCTION] {
    [function.decide_due(), function.request_due()]
}

//! The way back, first half: a frame taken from the QDMA, given its length and its function, and through box 250.
//!
//! Source: shell.md section 10; lengths that never shift, DESIGN.md section 5.

use regs::{FuncId, packet_adapter, qdma_common};

use super::system_config::Module;
use super::{AXIS_PS, BEAT_LEN_BYTES, Profile, Shell, beats, of_function, recycle_into};
use crate::observation::{Fate, Point};
use crate::stream::QdmaStream;
use crate::time::Time;
use crate::user_box::{BoxFrame, Egress};

pub(super) struct H2c {
    /// When the stream is free for the next frame.
    free_at: Time,
    /// The QDMA had none, or (upstream) none that a function owns: ask again at each step.
    waiting: bool,
    holding: Option<Held>,
}

/// A frame that has left the QDMA and waits for room where the box sends it.
struct Held {
    frame: BoxFrame,
    egress: Egress,
}

impl H2c {
    pub(super) fn new() -> H2c {
        H2c { free_at: Time::ZERO, waiting: true, holding: None }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting
    }

    pub(super) fn is_holding(&self) -> bool {
        self.holding.is_some()
    }

    pub(super) fn inside(&self) -> usize {
        usize::from(self.holding.is_some())
    }

    /// Whether it holds a frame for this port.
    pub(super) fn holds_for(&self, port: usize) -> bool {
        matches!(&self.holding, Some(Held { egress: Egress::Port(to), .. }) if to.0 as usize == port)
    }

    /// Reset. How many frames were lost.
    pub(super) fn clear(&mut self, pool: &mut Vec<Vec<u8>>) -> usize {
        let held = self.holding.take();
        *self = H2c { free_at: self.free_at, ..H2c::new() };
        held.map_or(0, |held| {
            recycle_into(pool, held.frame.data);
            1
        })
    }
}

impl Shell {
    /// When the H2C stream can go on by itself.
    #[inline]
    pub(super) fn h2c_due(&self) -> Time {
        let Some(held) = &self.h2c.holding else {
            return if self.h2c.waiting { Time::NEVER } else { self.h2c.free_at };
        };
        let n = beats(held.frame.data.len());
        match held.egress {
            Egress::Port(to) if to.0 < self.cfg.ports => {
                let from = self.now.max(self.h2c.free_at).max(self.system.ready_at(Module::Adapter(to.0 as usize)));
                self.ports[to.0 as usize].tx.admit_at(n, from, self.cfg.profile).unwrap_or(Time::NEVER)
            }
            Egress::Function(func)
                if func.0 < self.cfg.functions && !self.functions[func.0 as usize].takes_whole(n) =>
            {
                Time::NEVER
            }
            _ => self.h2c.free_at,
        }
    }

    /// Take the next frame from the QDMA. True when there was one.
    pub(super) fn take_h2c(&mut self, qdma: &mut dyn QdmaStream) -> bool {
        let now = self.now;
        if let Some(ready_at) = self.system.waits_for(&[Module::Qdma, Module::Box250, Module::Box250Plugin], now) {
            self.h2c.free_at = self.h2c.free_at.max(ready_at);
            self.h2c.waiting = false;
            return false;
        }
        self.h2c.waiting = true;
        let Some(qid) = qdma.h2c_peek(now).map(|frame| frame.qid) else { return false };
        let owner = self.functions.iter().position(|function| function.owns(qid));
        if owner.is_none() && self.cfg.profile == Profile::Upstream {
            // Q6: tready stays low until a QCONF write makes it match.
            return false;
        }
        let Some(frame) = qdma.h2c_take(now) else { return false };
        self.h2c.waiting = false;
        self.h2c.free_at = now;
        self.common.add(qdma_common::H2C_PACKETS, 1);
        match owner {
            Some(f) => {
                self.common.add(of_function(qdma_common::FUNCTION_H2C_PACKETS, f), 1);
                if let Some(buffer) = self.pool.pop() {
                    qdma.give_back(buffer);
                }
                self.hold(FuncId(f as u8), frame.data, frame.metadata as u16);
            }
            None => {
                self.common.add(qdma_common::H2C_DROP_NO_FUNCTION, 1);
                self.observations.push(now, Point::H2cDrop);
                self.h2c.free_at = now + u64::from(beats(frame.data.len())) * AXIS_PS;
                qdma.give_back(frame.data);
            }
        }
        true
    }

    /// Give the frame the length that its metadata tell, and show it to the box.
    fn hold(&mut self, func: FuncId, mut data: Vec<u8>, told_len: u16) {
        let len_bytes = frame_len(data.len(), told_len, self.cfg.profile);
        data.resize(len_bytes, 0);
        let tuser_size = if self.cfg.profile == Profile::Upstream { told_len } else { len_bytes as u16 };
        let mut frame = BoxFrame { data, tuser_size, tuser_src: 1 << func.0, tuser_dst: 0 };
        let egress = self.box_250.from_function(func, &mut frame);
        self.h2c.holding = Some(Held { frame, egress });
    }

    /// The held frame goes where the box sends it.
    pub(super) fn h2c_enter(&mut self) {
        let now = self.now;
        let Some(Held { frame, egress }) = self.h2c.holding.take() else { return };
        let n = beats(frame.data.len());
        self.h2c.free_at = now + u64::from(n) * AXIS_PS;
        match egress {
            Egress::Port(to) if to.0 < self.cfg.ports => self.tx_enter(to.0 as usize, frame),
            Egress::Function(func) if func.0 < self.cfg.functions => {
                self.enter_function(func.0 as usize, None, frame, n, true);
            }
            Egress::Drop(name) => self.drop_in_box(name, frame.data),
            _ => self.drop_in_box("no such egress", frame.data),
        }
    }

    /// A frame enters a port's packet adapter.
    pub(super) fn tx_enter(&mut self, p: usize, frame: BoxFrame) {
        let (now, profile) = (self.now, self.cfg.profile);
        self.agenda.port_changed(p);
        let port = &mut self.ports[p];
        let n = beats(frame.data.len());
        let fate = if frame.tuser_dst >> (6 + p) & 1 == 0 {
            Fate::Dst
        } else if profile == Profile::Corrected && n > port.tx.depth() {
            Fate::TooLong
        } else {
            Fate::Accepted
        };
        let (packets, bytes) = match fate {
            Fate::Accepted => (packet_adapter::TX_PACKETS_SENT, packet_adapter::TX_BYTES_SENT),
            _ => (packet_adapter::TX_PACKETS_DROPPED, packet_adapter::TX_BYTES_DROPPED),
        };
        port.counters.add(packets, 1);
        port.counters.add(bytes, frame.tuser_size.into());
        match fate {
            Fate::Dst => port.counters.add(packet_adapter::TX_DROP_DST, 1),
            Fate::TooLong => port.counters.add(packet_adapter::TX_DROP_TOO_LONG, 1),
            _ => {}
        }
        self.observations.push(now, Point::TxEnd { port: port.id, fate });
        let mut data = frame.data;
        if fate != Fate::Accepted {
            return recycle_into(&mut self.pool, data);
        }
        data.resize(rebuilt_len(data.len(), frame.tuser_size), 0);
        port.tx.enter(now, data, profile);
    }
}

/// Length of a frame of `data_len` bytes from the QDMA whose metadata tell `told_len`. The number of beats is that of the
/// data; upstream makes only the last beat's length of what is told, corrected keeps what is told as near as the beats allow.
fn frame_len(data_len: usize, told_len: u16, profile: Profile) -> usize {
    let all_but_last = (beats(data_len) as usize - 1) * BEAT_LEN_BYTES;
    match profile {
        Profile::Corrected => (told_len as usize).clamp(all_but_last + 1, all_but_last + BEAT_LEN_BYTES),
        Profile::Upstream => all_but_last + usize::from(told_len.wrapping_sub(1) % BEAT_LEN_BYTES as u16) + 1,
    }
}

/// The adapter makes the last beat's tkeep anew from `tuser_size`, unless that is a multiple of 64. Source: shell.md
/// section 12.1.
fn rebuilt_len(data_len: usize, tuser_size: u16) -> usize {
    match tuser_size as usize % BEAT_LEN_BYTES {
        0 => data_len,
        last => (beats(data_len) as usize - 1) * BEAT_LEN_BYTES + last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// shell.md section 10: two beats with size 64, 100, 129, 60, 0, measured upstream.
    #[test]
    fn a_length_that_disagrees_with_the_beats() {
        let lengths = |profile| [64, 100, 129, 60, 0].map(|told| frame_len(128, told, profile));
        assert_eq!(lengths(Profile::Upstream), [128, 100, 65, 124, 128]);
        assert_eq!(lengths(Profile::Corrected), [65, 100, 128, 65, 65]);
        assert_eq!(frame_len(0, 0, Profile::Corrected), 1, "an empty descriptor still makes a beat");
    }

    #[test]
    fn the_last_beat_follows_tuser_size() {
        assert_eq!(
            [(128, 0), (128, 64), (128, 100), (100, 100)].map(|(data, size)| rebuilt_len(data, size)),
            [128, 128, 100, 100]
        );
    }
}

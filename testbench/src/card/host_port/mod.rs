//! Host memory at the other end of the QDMA engine's host port.
//!
//! ```text
//!            ┌ hp_desc_req ─► pending reads ─ latency ─► hp_desc_rsp ┐
//!   engine ──┤ hp_data_req ─► pending reads ─ latency ─► hp_data_rsp ├── HostMemory
//!            ├ hp_cmp ──────► posted writes (completions, status)    │
//!            └ hp_pay ──────► posted writes (payload) ───────────────┘
//! ```
//!
//! Four channels of 512 bits, one beat a cycle each. [`HostPort`] is on the engine's pins; what it does there is
//! [`HostSide`]'s, which knows no pins. All inputs of an edge are set before it, from outputs that are registers: one
//! evaluation an edge is enough. An edge at which the pins are silent and no answer is due costs a compare, and a beat
//! allocates nothing.
//!
//! **Reads.** A read is answered after [`HostPortConfig::latency_cycles`], each by itself up to
//! [`HostPortConfig::spread_cycles`] earlier or later, so that answers overtake one another (unless
//! [`HostPortConfig::reorder`] is off). Memory is read when the answer begins. Its beats come in order and are not mixed
//! with another answer's; the link's rate may put gaps between them. Bytes past the answer's end keep what lay there
//! before. A read that memory refuses is an *unsupported request*: one beat, last, without data. The answer from memory that
//! is known to be bad ([`DmaFault::Poisoned`](models::host_memory::DmaFault::Poisoned)) is *poisoned*, and has all its beats.
//!
//! **Writes** are posted, and change memory in the order in which edges take them; of two taken by one edge the completion
//! channel's comes first. A write that memory refuses is lost and counted: nobody is told.
//!
//! **Link.** With [`Link::Pcie3x16`] each direction passes 63 bytes a cycle of 4 ns (15.75 GB/s), headers of
//! 24 bytes counted: one for each posted write and each completion with data of at most 256 bytes (neither
//! crosses a multiple of that, the payload size), one for each read request of at most 512 bytes. A buffer of 512 bytes in
//! front of it takes bursts. Descriptors go before data, completions before payload.
//!
//! **Left out**: flow-control credits and the buffers behind them, PCIe's ordering rules beyond the order above (a read
//! may be answered before a write taken later, never the other way round, as both touch memory at one instant), relaxed
//! ordering and ID-based ordering, completions split and mixed at the read completion boundary, completion time-out,
//! replays and ECRC, the bytes of interrupts and of register accesses.
//!
//! What breaks the port's own rules (a length of 0, a page's end crossed, a tag in use twice, an offer taken back) is the
//! engine's fault and a typed [`HostPortError`].

mod link;
mod pins;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;

use models::host_memory::HostMemory;
use models::time::Time;
use rtl_bridge::stall::{Profile, Stall};

use self::link::Lane;
pub use self::pins::HostPort;
use self::read::Reads;
pub use self::read::{Answer, ReadFault, ReadRequest};
pub use self::write::WriteBeat;
use self::write::Writes;
use super::{Knobs, Link};

/// One beat.
const BEAT_BYTES: usize = 64;
/// No access crosses a multiple of this.
const PAGE_BYTES: usize = 4096;
/// One cycle of `axis_aclk`.
const CYCLE_PS: u64 = models::time::Clock::AXIS.num;

/// What the host is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPortConfig {
    /// From the edge that takes a read to the edge that takes its answer's first beat, in cycles of `axis_aclk`, at least
    /// 1, while the channel is free. Default 250, 1 us.
    pub latency_cycles: u32,
    /// Each answer is earlier or later than that by up to so many cycles, drawn from the seed.
    pub spread_cycles: u32,
    /// Answers may overtake one another.
    pub reorder: bool,
    /// The rate.
    pub link: Link,
    /// When requests and writes are not taken.
    pub stalls: Profile,
    /// Of latencies and stalls.
    pub seed: u64,
}

impl HostPortConfig {
    /// As the knobs say.
    pub fn new(knobs: &Knobs, stalls: Profile, seed: u64) -> HostPortConfig {
        HostPortConfig {
            latency_cycles: knobs.latency_cycles,
            spread_cycles: knobs.spread_cycles,
            reorder: knobs.reorder,
            link: knobs.link,
            stalls,
            seed,
        }
    }
}

impl Default for HostPortConfig {
    fn default() -> HostPortConfig {
        HostPortConfig::new(&Knobs::default(), Profile::None, 0)
    }
}

/// A channel on which the engine reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadChannel {
    /// `hp_desc`: descriptors.
    Descriptors,
    /// `hp_data`: data of H2C frames.
    Data,
}

/// A channel on which the engine writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteChannel {
    /// `hp_cmp`: completion entries and status words.
    Completions,
    /// `hp_pay`: data of C2H frames.
    Payload,
}

impl ReadChannel {
    /// Both, in the order in which they are served.
    pub const ALL: [ReadChannel; 2] = [ReadChannel::Descriptors, ReadChannel::Data];

    /// How its ports begin.
    pub const fn prefix(self) -> &'static str {
        match self {
            ReadChannel::Descriptors => "hp_desc",
            ReadChannel::Data => "hp_data",
        }
    }
}

impl WriteChannel {
    /// Both, in the order in which they are served.
    pub const ALL: [WriteChannel; 2] = [WriteChannel::Completions, WriteChannel::Payload];

    /// How its ports begin.
    pub const fn prefix(self) -> &'static str {
        match self {
            WriteChannel::Completions => "hp_cmp",
            WriteChannel::Payload => "hp_pay",
        }
    }
}

/// A rule of the host port that the engine broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rule {
    /// A read of no bytes, or of more than a page.
    #[error("a read of {len_bytes} bytes (1 to 4096)")]
    Length {
        /// How many.
        len_bytes: u16,
    },
    /// A read of two pages.
    #[error("a read of {len_bytes} bytes at {addr:#x} crosses 4 KiB")]
    ReadCrossesPage {
        /// First byte.
        addr: u64,
        /// How many.
        len_bytes: u16,
    },
    /// A read with the tag of one that was not answered yet.
    #[error("tag {tag} is in use")]
    TagInUse {
        /// The tag.
        tag: u8,
    },
    /// A write that writes nothing.
    #[error("a write at {addr:#x} without a byte")]
    NoBytes {
        /// Of byte 0.
        addr: u64,
    },
    /// A write to two pages.
    #[error("a write at {addr:#x}, bytes {be:#018x}, crosses 4 KiB")]
    WriteCrossesPage {
        /// Of byte 0.
        addr: u64,
        /// Byte enables.
        be: u64,
    },
    /// An offer that was gone, or another one, before it was taken.
    #[error("an offer that was not taken did not stay as it was")]
    Withdrawn,
}

/// A broken rule, with its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{port}: {rule}")]
pub struct HostPortError {
    /// Prefix of the ports.
    pub port: &'static str,
    /// The edge before which it was seen.
    pub at: Time,
    /// What was broken.
    pub rule: Rule,
}

/// What went over the port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Descriptor reads, data reads.
    pub reads: [u64; 2],
    /// Bytes that they asked for.
    pub read_bytes: [u64; 2],
    /// Reads that memory refused, or answered as poisoned.
    pub reads_failed: u64,
    /// Beats of completions and status words, of payload.
    pub write_beats: [u64; 2],
    /// Bytes that they wrote, or would have.
    pub write_bytes: [u64; 2],
    /// Writes that memory refused.
    pub writes_refused: u64,
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traffic { reads, read_bytes, reads_failed, write_beats, write_bytes, writes_refused } = self;
        write!(
            f,
            "descriptor reads {} ({} bytes), data reads {} ({} bytes), failed {reads_failed}; ",
            reads[0], read_bytes[0], reads[1], read_bytes[1]
        )?;
        write!(
            f,
            "completion beats {} ({} bytes), payload beats {} ({} bytes), refused {writes_refused}",
            write_beats[0], write_bytes[0], write_beats[1], write_bytes[1]
        )
    }
}

/// What the host does, without pins.
///
/// Before each edge: [`HostSide::answer`] on both read channels, then [`HostSide::takes_read`] or
/// [`HostSide::takes_write`] where something is on offer and, if so, [`HostSide::read`] or [`HostSide::write`].
pub struct HostSide {
    reads: [Reads; 2],
    writes: [Writes; 2],
    /// Engine to memory: requests and writes.
    up: Option<Lane>,
    /// Memory to engine: answers.
    down: Option<Lane>,
    traffic: Traffic,
}

impl HostSide {
    /// A host at rest.
    pub fn new(config: &HostPortConfig) -> HostSide {
        let stall = |name: &str| Stall::new(config.stalls, config.seed, name);
        let lane = || (config.link == Link::Pcie3x16).then(Lane::default);
        HostSide {
            reads: ReadChannel::ALL.map(|channel| Reads::new(config, channel.prefix(), stall(channel.prefix()))),
            writes: WriteChannel::ALL.map(|channel| Writes::new(stall(channel.prefix()))),
            up: lane(),
            down: lane(),
            traffic: Traffic::default(),
        }
    }

    /// Forget all that is under way: for a reset of the engine.
    pub fn reset(&mut self) {
        self.reads.iter_mut().for_each(Reads::reset);
        self.writes.iter_mut().for_each(Writes::reset);
    }

    /// No read is under way.
    pub fn is_idle(&self) -> bool {
        self.reads.iter().all(Reads::is_idle)
    }

    /// When the next beat of an answer is due; [`Time::NEVER`] without one. It may lie in the past.
    #[inline]
    pub fn next_due(&self) -> Time {
        let [desc, data] = &self.reads;
        desc.next_due().min(data.next_due())
    }

    /// What went over it so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Take nothing on this channel any more, or go on.
    pub fn shut(&mut self, channel: WriteChannel, shut: bool) {
        self.writes[channel as usize].shut = shut;
    }

    /// Does the edge at `now` take the read that is on offer? Asked once an edge.
    pub fn takes_read(&mut self, channel: ReadChannel, now: Time) -> bool {
        !self.reads[channel as usize].holds() && self.up.as_ref().is_none_or(|lane| lane.has_room(now))
    }

    /// The edge at `now` takes a read.
    ///
    /// # Errors
    /// [`Rule`].
    pub fn read(&mut self, channel: ReadChannel, request: ReadRequest, now: Time) -> Result<(), Rule> {
        let n = channel as usize;
        self.reads[n].take(request, now)?;
        self.traffic.reads[n] += 1;
        self.traffic.read_bytes[n] += u64::from(request.len_bytes);
        if let Some(lane) = &mut self.up {
            lane.send(now, link::read_request_bytes(usize::from(request.len_bytes)));
        }
        Ok(())
    }

    /// The beat that the edge at `now` brings.
    pub fn answer(&mut self, channel: ReadChannel, now: Time, memory: &mut dyn HostMemory) -> Option<Answer<'_>> {
        let reads = &mut self.reads[channel as usize];
        if reads.next_due() > now || self.down.as_ref().is_some_and(|lane| !lane.has_room(now)) {
            return None;
        }
        let (answer, tlp_bytes) = reads.beat(now, memory, &mut self.traffic.reads_failed);
        if let Some(lane) = &mut self.down {
            lane.send(now, tlp_bytes);
        }
        Some(answer)
    }

    /// Does the edge at `now` take the write that is on offer? Asked once an edge.
    pub fn takes_write(&mut self, channel: WriteChannel, now: Time) -> bool {
        !self.writes[channel as usize].holds() && self.up.as_ref().is_none_or(|lane| lane.has_room(now))
    }

    /// The edge at `now` takes a beat of a write: memory changes, or refuses.
    ///
    /// # Errors
    /// [`Rule`].
    pub fn write(
        &mut self,
        channel: WriteChannel,
        beat: &WriteBeat<'_>,
        now: Time,
        memory: &mut dyn HostMemory,
    ) -> Result<(), Rule> {
        let n = channel as usize;
        let written = self.writes[n].take(beat, memory)?;
        self.traffic.write_beats[n] += 1;
        self.traffic.write_bytes[n] += u64::from(beat.be.count_ones());
        self.traffic.writes_refused += written.refused;
        if let Some(lane) = &mut self.up {
            lane.send(now, written.tlp_bytes);
        }
        Ok(())
    }
}

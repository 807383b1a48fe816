//! A bench for one shell: a QDMA that takes, stalls and offers as a test says, and the driver's few register writes.

use std::collections::VecDeque;

use regs::{FuncId, PortId, Qid, cmac, qdma_function, shell as map};

use crate::observation::{Fate, Observation, Point};
use crate::shell::{Profile, Shell, ShellConfig};
use crate::stream::{C2hCompletion, C2hFrame, H2cFrame, Offer, QdmaStream};
use crate::time::Time;

/// Both sides of the stream seam, recorded.
#[derive(Default)]
pub(super) struct MockQdma {
    pub(super) frames: Vec<(Time, C2hFrame)>,
    pub(super) completions: Vec<(Time, C2hCompletion)>,
    pub(super) h2c: VecDeque<H2cFrame>,
    /// Every offer is stalled.
    pub(super) stall: bool,
    /// Percent of offers stalled, by a generator of its own.
    pub(super) stall_percent: u64,
    random: u64,
    spare: Vec<Vec<u8>>,
}

impl MockQdma {
    fn stalls(&mut self) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.stall || (self.random >> 33) % 100 < self.stall_percent
    }

    /// Forget what was taken; its buffers go back into circulation.
    pub(super) fn forget(&mut self) {
        self.spare.extend(self.frames.drain(..).map(|(_, frame)| frame.data));
        self.completions.clear();
    }
}

impl QdmaStream for MockQdma {
    fn c2h_offer(&mut self, _now: Time, _qid: Qid, _len_bytes: u16) -> Offer {
        if self.stalls() { Offer::Stall } else { Offer::Ready }
    }

    fn c2h_frame(&mut self, now: Time, frame: C2hFrame) {
        self.frames.push((now, frame));
    }

    fn c2h_completion(&mut self, now: Time, completion: C2hCompletion) {
        self.completions.push((now, completion));
    }

    fn h2c_peek(&mut self, _now: Time) -> Option<&H2cFrame> {
        self.h2c.front()
    }

    fn h2c_take(&mut self, _now: Time) -> Option<H2cFrame> {
        self.h2c.pop_front()
    }

    fn recycle(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }
}

pub(super) struct Bench {
    pub(super) shell: Shell,
    pub(super) qdma: MockQdma,
    pub(super) now: Time,
}

/// Longer than any test's traffic takes to drain.
const DRAIN_NS: u64 = 10_000_000;

impl Bench {
    /// A shell out of reset, MACs on, function f with queues 64·f … 64·f+7 and the default table.
    pub(super) fn up(cfg: ShellConfig) -> Bench {
        Bench::up_with(Shell::new(cfg).expect("a shape in range"))
    }

    pub(super) fn up_with(shell: Shell) -> Bench {
        let mut bench = Bench { shell, qdma: MockQdma::default(), now: Time::ZERO };
        bench.run_ns(2000);
        for p in 0..bench.shell.config().ports {
            bench.write(map::cmac(PortId(p)) + cmac::CONFIGURATION_RX_REG1, 1);
            bench.write(map::cmac(PortId(p)) + cmac::CONFIGURATION_TX_REG1, 1);
        }
        for f in 0..bench.shell.config().functions {
            bench.queues(f, 64 * u16::from(f), 8);
        }
        bench
    }

    /// QCONF, and the indirection table as the driver fills it.
    pub(super) fn queues(&mut self, f: u8, base: u16, count: u16) {
        let function = map::qdma_function(FuncId(f));
        self.write(function + qdma_function::QCONF, u32::from(base) << 16 | u32::from(count));
        for n in 0..128 {
            self.write(function + qdma_function::INDIRECTION_TABLE + 4 * n, n % u32::from(count.max(1)));
        }
    }

    pub(super) fn write(&mut self, offset: u32, value: u32) {
        self.shell.mmio_write(self.now, offset, value).expect("a register");
    }

    pub(super) fn read(&mut self, offset: u32) -> u32 {
        self.shell.mmio_read(self.now, offset).expect("a register")
    }

    /// A 64-bit counter, low word first.
    pub(super) fn counter(&mut self, offset: u32) -> u64 {
        u64::from(self.read(offset)) | u64::from(self.read(offset + 4)) << 32
    }

    /// An adapter's counter.
    pub(super) fn adapter(&mut self, p: u8, register: u32) -> u64 {
        self.counter(map::packet_adapter(PortId(p)) + register)
    }

    /// A counter of the QDMA's common page.
    pub(super) fn common(&mut self, register: u32) -> u64 {
        self.counter(map::QDMA_COMMON + register)
    }

    /// A frame at a port, as soon as the wire is free.
    pub(super) fn send(&mut self, p: u8, data: Vec<u8>, err: bool) {
        self.shell.wire_rx(self.now, PortId(p), data, err);
    }

    /// Run for some time. While the QDMA stalls it is asked each cycle.
    pub(super) fn run_ns(&mut self, ns: u64) {
        let until = self.now + ns * 1000;
        // The test may have given the QDMA something to send.
        self.shell.step(self.now, &mut self.qdma);
        while self.now < until {
            let next = self.shell.next_event().unwrap_or(until);
            let polled = if self.shell.is_stalled() && !self.qdma.stall { self.now + 4000 } else { until };
            self.now = next.min(polled).min(until).max(self.now);
            self.shell.step(self.now, &mut self.qdma);
        }
    }

    /// Run until nothing is inside.
    pub(super) fn drain(&mut self) {
        let mut left_ns = DRAIN_NS;
        while self.shell.inside() > 0 || !self.qdma.h2c.is_empty() {
            self.run_ns(1000);
            left_ns = left_ns.checked_sub(1000).expect("the shell drains");
        }
    }

    pub(super) fn received(&self) -> Vec<usize> {
        self.qdma.frames.iter().map(|(_, frame)| frame.data.len()).collect()
    }

    pub(super) fn sent(&mut self, p: u8) -> Vec<(Time, Vec<u8>)> {
        std::iter::from_fn(|| self.shell.wire_tx(PortId(p))).map(|(time, data, _)| (time, data)).collect()
    }

    pub(super) fn observations(&mut self) -> Vec<Observation> {
        std::iter::from_fn(|| self.shell.pop_observation()).collect()
    }

    /// Fates at the end of port `p`'s receive side.
    pub(super) fn rx_fates(&mut self, p: u8) -> Vec<Fate> {
        let fate = |o: Observation| match o.point {
            Point::RxEnd { port: PortId(port), fate } if port == p => Some(fate),
            _ => None,
        };
        self.observations().into_iter().filter_map(fate).collect()
    }
}

pub(super) fn one_port() -> ShellConfig {
    ShellConfig { buffer_pkt_len: 1518, ..ShellConfig::default() }
}

pub(super) fn two_ports() -> ShellConfig {
    ShellConfig { functions: 2, ports: 2, ..one_port() }
}

pub(super) fn upstream() -> ShellConfig {
    ShellConfig { profile: Profile::Upstream, ..one_port() }
}

/// A UDP frame of flow `flow`, filled up with bytes that tell frames apart.
pub(super) fn udp(flow: u32, len_bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend([0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1]);
    frame.extend(flow.to_be_bytes());
    frame.extend([0x12, 0x34, 0x56, 0x78]);
    frame.extend((frame.len()..len_bytes.max(frame.len())).map(|k| (k as u32).wrapping_add(flow) as u8));
    frame.truncate(len_bytes);
    frame
}

pub(super) fn h2c(qid: u16, data: Vec<u8>) -> H2cFrame {
    H2cFrame { metadata: data.len() as u32, data, qid: Qid(qid), err: false }
}

//! The test of the test: what agrees is not accused, and what is tampered with is found.

use models::host_memory::HostMemory;
use models::qdma::QdmaConfig;
use models::time::Time;
use regs::{Bar, FuncId, PortId, packet_adapter, qdma_csr, qdma_function, shell};

use super::*;
use crate::card::layer::{Layer, Layered};
use crate::card::{CardError, WireFrame, qdma_config};

/// Actions of a seed.
const ACTIONS: usize = 40;
/// Seeds that a tampering may survive before it counts as missed.
const SEEDS: u64 = 12;

fn model(conditions: &Conditions) -> Result<Box<dyn Card>, String> {
    conditions.make("model")
}

fn model_with(conditions: &Conditions, qdma: QdmaConfig) -> Result<Box<dyn Card>, String> {
    conditions.card("model").make_with(&conditions.setup.shape, qdma).map_err(|error| error.to_string())
}

/// Another latency, read-ahead and batch: what must agree agrees.
fn other(conditions: &Conditions) -> Result<Box<dyn Card>, String> {
    let config = QdmaConfig {
        read_latency_ps: 1_100_000,
        write_latency_ps: 90_000,
        prefetch_descriptors: 16,
        max_read_request_bytes: 128,
        link_ps_per_byte: 20,
        h2c_buffer_beats: 160,
        c2h_buffer_beats: 200,
        ..qdma_config(&conditions.setup.shape)
    };
    model_with(conditions, config)
}

#[test]
fn the_model_agrees_with_itself_at_another_pace() {
    for seed in 0..8 {
        if let Err(differs) = run_seed(seed, COUNT, &model, &other) {
            panic!("{differs}");
        }
    }
}

/// What is wrong with a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    /// Every 40th frame at the wire is lost, and nobody counts it.
    FrameLost,
    /// A byte of every 40th frame at the wire is another.
    FrameChanged,
    /// Every 40th frame out comes twice.
    FrameTwice,
    /// Two frames out change places.
    FramesSwapped,
    /// Every 30th interrupt is lost.
    InterruptLost,
    /// Writes to one entry of the RSS table do nothing.
    TableEntryDead,
    /// One bit of the RSS key is stuck.
    KeyBitStuck,
    /// A counter of the adapter counts one too many once it counts.
    CounterOff,
    /// The C2H error register shows nothing.
    ErrorHidden,
    /// A queue that was stopped is written to all the same.
    LateDma,
}

const WRONGS: [Wrong; 10] = [
    Wrong::FrameLost,
    Wrong::FrameChanged,
    Wrong::FrameTwice,
    Wrong::FramesSwapped,
    Wrong::InterruptLost,
    Wrong::TableEntryDead,
    Wrong::KeyBitStuck,
    Wrong::CounterOff,
    Wrong::ErrorHidden,
    Wrong::LateDma,
];

/// A fault, in front of a model.
struct Tampering {
    wrong: Wrong,
    /// Events of the kind that it spoils.
    count: u64,
    /// A frame out that comes later.
    kept: Option<WireFrame>,
}

impl Tampering {
    fn make(conditions: &Conditions, wrong: Wrong) -> Result<Box<dyn Card>, String> {
        let plain = qdma_config(&conditions.setup.shape);
        let late = if wrong == Wrong::LateDma { 60_000 } else { 0 };
        let model = model_with(conditions, QdmaConfig { late_dma_after_inv_ns: late, ..plain })?;
        Ok(Box::new(Layered::new(model, Tampering { wrong, count: 0, kept: None })))
    }

    /// Is it this time?
    fn strikes(&mut self, wrong: Wrong, each: u64) -> bool {
        self.count += u64::from(self.wrong == wrong);
        self.wrong == wrong && self.count.is_multiple_of(each)
    }
}

impl Layer for Tampering {
    fn mmio_read(
        &mut self,
        card: &mut dyn Card,
        func: FuncId,
        bar: Bar,
        offset: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<u32, CardError> {
        let value = card.mmio_read(func, bar, offset, memory)?;
        let counter = shell::packet_adapter(PortId(0)) + packet_adapter::RX_BYTES_RECEIVED;
        Ok(match (self.wrong, bar) {
            (Wrong::CounterOff, Bar::Shell) if offset == counter && value > 1_000 => value + 1,
            (Wrong::ErrorHidden, Bar::Qdma) if offset == qdma_csr::C2H_ERROR_STATUS => 0,
            _ => value,
        })
    }

    fn mmio_write(
        &mut self,
        card: &mut dyn Card,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        let function = shell::qdma_function(FuncId(0));
        let value = match (self.wrong, bar) {
            (Wrong::TableEntryDead, Bar::Shell) if offset == function + qdma_function::INDIRECTION_TABLE + 4 * 77 => 0,
            (Wrong::KeyBitStuck, Bar::Shell) if offset == function + qdma_function::HASH_KEY + 8 => value | 4,
            _ => value,
        };
        card.mmio_write(func, bar, offset, value, memory)
    }

    fn take_interrupt(&mut self, card: &mut dyn Card) -> Option<(FuncId, u16, Time)> {
        let taken = card.take_interrupt()?;
        if self.strikes(Wrong::InterruptLost, 30) { card.take_interrupt() } else { Some(taken) }
    }

    fn wire_in(&mut self, card: &mut dyn Card, port: PortId, mut frame: WireFrame) {
        if self.strikes(Wrong::FrameLost, 40) {
            return;
        }
        if self.strikes(Wrong::FrameChanged, 40) {
            frame.data.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
        }
        card.wire_in(port, frame);
    }

    fn wire_out(&mut self, card: &mut dyn Card, port: PortId) -> Option<WireFrame> {
        if let Some(kept) = self.kept.take() {
            return Some(kept);
        }
        let frame = card.wire_out(port)?;
        if self.strikes(Wrong::FrameTwice, 40) {
            self.kept = Some(frame.clone());
        }
        if self.strikes(Wrong::FramesSwapped, 3)
            && let Some(next) = card.wire_out(port)
        {
            self.kept = Some(frame);
            return Some(next);
        }
        Some(frame)
    }
}

#[test]
fn each_tampering_is_found() {
    for wrong in WRONGS {
        let tampered = |conditions: &Conditions| Tampering::make(conditions, wrong);
        let found = (1..=SEEDS).find_map(|seed| {
            let list = actions(seed, ACTIONS);
            run_list(&list, &Conditions::of(seed), [&model, &tampered]).err()
        });
        match found {
            Some((message, actions)) => println!("{wrong:?}: after {actions} actions: {message}"),
            None => panic!("nothing finds {wrong:?} in {SEEDS} seeds"),
        }
    }
}

#[test]
fn a_difference_shrinks_to_few_actions() {
    let tampered = |conditions: &Conditions| Tampering::make(conditions, Wrong::TableEntryDead);
    let differs = (1..=SEEDS).find_map(|seed| run_seed(seed, ACTIONS, &model, &tampered).err());
    let differs = differs.expect("a difference");
    assert!(differs.actions.len() <= 3 && differs.of == ACTIONS, "{differs}");
}

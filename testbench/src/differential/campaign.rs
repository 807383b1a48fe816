//! Many seeds: each a list of actions on two engines, shrunk when they differ.

use super::action::{Action, Kind, actions};
use super::driver::{Driver, Tally};
use super::engine::{Engine, Shape};
use crate::actions::{self, ListOutcome, run_and_shrink};

/// Makes an engine of a shape, just out of power-up, or says why it can't be had.
pub type Maker<'a> = &'a dyn Fn(&Shape) -> Result<Box<dyn Engine>, String>;

/// Runs made to shrink a failing list.
const SHRINK_RUNS: usize = 400;

/// A list of actions on which two engines differ.
pub type Differs = actions::Differs<Kind>;

/// What a seed gave.
pub type Outcome = Result<Tally, Box<Differs>>;

/// Run one seed.
///
/// # Errors
/// The list on which the engines differ.
pub fn run_seed(seed: u64, count: usize, shape: Shape, reference: Maker<'_>, tested: Maker<'_>) -> Outcome {
    let shape = Shape { seed, ..shape };
    run_and_shrink(seed, &actions(seed, count), SHRINK_RUNS, &|list| run_list(list, shape, reference, tested))
}

/// Run a list. On a difference: what it is, and how many actions it took.
fn run_list(list: &[Action], shape: Shape, reference: Maker<'_>, tested: Maker<'_>) -> ListOutcome<Tally> {
    let [reference, tested] = [reference, tested].map(|make| make(&shape).map_err(|message| (message, 0)));
    let mut driver = Driver::new(reference?, tested?, shape);
    for (done, action) in list.iter().enumerate() {
        driver.apply(*action).map_err(|message| (message, done + 1))?;
    }
    driver.finish().map_err(|message| (message, list.len()))
}

#[cfg(test)]
mod tests {
    use models::host_memory::{DmaFault, HostMemory};
    use models::qdma::{NoDesc, NotifyPolicy, QdmaConfig};
    use models::stream::{C2hCompletion, C2hFrame, H2cFrame};
    use models::time::Time;
    use regs::{FuncId, qdma_csr as csr};

    use super::super::engine::{Hold, Interrupt};
    use super::super::makers::model;
    use super::super::model::{ModelEngine, Pace};
    use super::*;

    const SHAPE: Shape = Shape { queues: 512, functions: 2, seed: 0 };

    /// Another latency, read-ahead, batch and step: what must agree agrees.
    fn other(shape: &Shape) -> Result<Box<dyn Engine>, String> {
        let config = QdmaConfig {
            read_latency_ps: 1_100_000,
            write_latency_ps: 90_000,
            prefetch_descriptors: 16,
            max_read_request_bytes: 128,
            link_ps_per_byte: 20,
            h2c_buffer_beats: 96,
            c2h_buffer_beats: 200,
            ..ModelEngine::config(shape)
        };
        let pace = Pace { access_ps: 32_000, step_ps: if shape.seed.is_multiple_of(2) { u64::MAX } else { 70_000 } };
        Ok(Box::new(ModelEngine::with("other", config, pace)))
    }

    #[test]
    fn the_model_agrees_with_itself_at_another_pace() {
        for seed in 0..8 {
            if let Err(differs) = run_seed(seed, 2000, SHAPE, &model, &other) {
                panic!("{differs}");
            }
        }
    }

    /// What is tampered with.
    #[derive(Clone, Copy, Debug)]
    enum Tampered {
        LostInterrupt,
        ExtraInterrupt,
        LostWrite,
        LateWrite,
        FlippedBit,
        StatusOneSlotEarly,
        WrongH2cByte,
        ErrorNotShown,
        DoorbellLost,
    }

    const TAMPERED: [Tampered; 9] = [
        Tampered::LostInterrupt,
        Tampered::ExtraInterrupt,
        Tampered::LostWrite,
        Tampered::LateWrite,
        Tampered::FlippedBit,
        Tampered::StatusOneSlotEarly,
        Tampered::WrongH2cByte,
        Tampered::ErrorNotShown,
        Tampered::DoorbellLost,
    ];

    /// Each so-manieth time it does the wrong thing.
    const EVERY: u64 = 29;

    /// An engine with a fault between it and the rest.
    struct Faulty {
        inner: ModelEngine,
        fault: Tampered,
        count: u64,
        late: Vec<(FuncId, u64, Vec<u8>)>,
        again: Option<Interrupt>,
    }

    /// Host memory behind the fault.
    struct Behind<'a> {
        memory: &'a mut dyn HostMemory,
        fault: Tampered,
        count: &'a mut u64,
        late: &'a mut Vec<(FuncId, u64, Vec<u8>)>,
    }

    impl HostMemory for Behind<'_> {
        fn read(&mut self, func: FuncId, addr: u64, buf: &mut [u8]) -> Result<(), DmaFault> {
            self.memory.read(func, addr, buf)
        }

        fn write(&mut self, func: FuncId, addr: u64, data: &[u8]) -> Result<(), DmaFault> {
            *self.count += 1;
            let now = self.count.is_multiple_of(EVERY);
            let mut data = data.to_vec();
            match self.fault {
                Tampered::LostWrite if now => return Ok(()),
                Tampered::LateWrite if now => {
                    self.late.push((func, addr, data));
                    return Ok(());
                }
                Tampered::FlippedBit if now => data[0] ^= 2,
                Tampered::StatusOneSlotEarly if data.len() == 8 && now => {
                    return self.memory.write(func, addr - 8, &data);
                }
                _ => {}
            }
            self.memory.write(func, addr, &data)
        }
    }

    impl Faulty {
        fn with<T>(
            &mut self,
            memory: &mut dyn HostMemory,
            run: impl FnOnce(&mut ModelEngine, &mut dyn HostMemory) -> T,
        ) -> T {
            // What is late comes when the next thing happens.
            for (func, addr, data) in self.late.drain(..) {
                let _ = memory.write(func, addr, &data);
            }
            let mut behind = Behind { memory, fault: self.fault, count: &mut self.count, late: &mut self.late };
            run(&mut self.inner, &mut behind)
        }

        fn now(&mut self) -> bool {
            self.count += 1;
            self.count.is_multiple_of(EVERY)
        }
    }

    impl Engine for Faulty {
        fn name(&self) -> &'static str {
            "faulty"
        }

        fn now(&self) -> Time {
            self.inner.now()
        }

        fn read(&mut self, func: FuncId, offset: u32, memory: &mut dyn HostMemory) -> u32 {
            let value = self.with(memory, |inner, memory| inner.read(func, offset, memory));
            match self.fault {
                Tampered::ErrorNotShown if offset == csr::C2H_ERROR_STATUS => {
                    value & !csr::c2h_error_status::CMPT_BAD_CIDX.mask()
                }
                _ => value,
            }
        }

        fn write(&mut self, func: FuncId, offset: u32, value: u32, memory: &mut dyn HostMemory) {
            let doorbell = offset >= regs::qdma::DOORBELL;
            if matches!(self.fault, Tampered::DoorbellLost) && doorbell && Faulty::now(self) {
                return;
            }
            self.with(memory, |inner, memory| inner.write(func, offset, value, memory));
        }

        fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) {
            self.with(memory, |inner, memory| inner.advance(until, memory));
        }

        fn settle(&mut self, quiet_ps: u64, limit_ps: u64, memory: &mut dyn HostMemory) -> bool {
            self.with(memory, |inner, memory| inner.settle(quiet_ps, limit_ps, memory))
        }

        fn receive(&mut self, frame: C2hFrame, completion: Option<C2hCompletion>) {
            self.inner.receive(frame, completion);
        }

        fn waiting(&self) -> usize {
            self.inner.waiting()
        }

        fn hold(&mut self, place: Hold, on: bool) {
            self.inner.hold(place, on);
        }

        fn take_h2c(&mut self) -> Option<H2cFrame> {
            let mut frame = self.inner.take_h2c()?;
            if matches!(self.fault, Tampered::WrongH2cByte) && Faulty::now(self) {
                frame.data[0] ^= 1;
            }
            Some(frame)
        }

        fn take_interrupt(&mut self) -> Option<Interrupt> {
            if let Some(again) = self.again.take() {
                return Some(again);
            }
            let interrupt = self.inner.take_interrupt()?;
            let now = Faulty::now(self);
            match self.fault {
                Tampered::LostInterrupt if now => self.take_interrupt(),
                Tampered::ExtraInterrupt if now => {
                    self.again = Some(interrupt);
                    Some(interrupt)
                }
                _ => Some(interrupt),
            }
        }
    }

    /// Seeds in which a fault must be seen.
    const SEEDS: std::ops::Range<u64> = 0..20;

    fn is_caught(tested: Maker<'_>) -> bool {
        SEEDS.into_iter().any(|seed| run_seed(seed, 1000, SHAPE, &model, tested).is_err())
    }

    #[test]
    fn whatever_is_tampered_with_is_seen() {
        for fault in TAMPERED {
            let tested = |shape: &Shape| -> Result<Box<dyn Engine>, String> {
                let inner = ModelEngine::with("model", ModelEngine::config(shape), Pace::default());
                Ok(Box::new(Faulty { inner, fault, count: 0, late: Vec::new(), again: None }))
            };
            assert!(is_caught(&tested), "nothing catches {fault:?}");
        }
    }

    /// Knobs of the model that break what the RTL must hold.
    #[test]
    fn another_rule_is_seen() {
        type Change = fn(&mut QdmaConfig);
        let changes: [(&str, Change); 7] = [
            ("status runs free", |config| config.notify = NotifyPolicy::FreeRunning),
            ("frames without descriptors are dropped", |config| config.no_desc = NoDesc::Drop),
            ("DMA after a stop", |config| config.late_dma_after_inv_ns = 5_000),
            ("payload after its completion", |config| config.late_payload_ps = 100_000),
            ("status before its completions", |config| config.late_entry_ps = 100_000),
            ("doorbells of idle queues are errors", |config| config.error_on_disabled_doorbell = true),
            ("seven buffers a frame", |config| config.buffers_per_frame_max = 7),
        ];
        for (what, change) in changes {
            let tested = |shape: &Shape| -> Result<Box<dyn Engine>, String> {
                let mut config = ModelEngine::config(shape);
                change(&mut config);
                Ok(Box::new(ModelEngine::with("changed", config, Pace::default())))
            };
            assert!(is_caught(&tested), "nothing catches: {what}");
        }
    }
}

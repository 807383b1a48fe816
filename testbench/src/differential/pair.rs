//! Two engines driven alike. What the driver reads on the way must agree; what only settles is compared in `compare`.

use regs::{FuncId, Qid, qdma_csr as csr};

use super::bed::{Bed, Bench};
use super::engine::{Engine, Hold};
use super::memory::{Ring, Standing};

/// A reference and what is held against it.
pub struct Pair {
    /// The reference.
    pub reference: Bench,
    /// The engine under test.
    pub tested: Bench,
    /// Something was done to them since [`Pair::take_touched`].
    touched: bool,
    /// The first difference.
    wrong: Option<String>,
}

impl Pair {
    /// Two engines just out of power-up.
    pub fn new(reference: Box<dyn Engine>, tested: Box<dyn Engine>) -> Pair {
        Pair { reference: Bench::new(reference), tested: Bench::new(tested), touched: true, wrong: None }
    }

    /// Both.
    pub fn each(&mut self) -> [&mut Bench; 2] {
        [&mut self.reference, &mut self.tested]
    }

    /// Was anything done to them since the last call that could set something going?
    pub fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// Let so much time pass.
    pub fn run_ns(&mut self, ns: u64) {
        self.each().into_iter().for_each(|bench| bench.run_ns(ns));
    }

    /// Hold both engines up, or let go.
    pub fn hold(&mut self, place: Hold, on: bool) {
        self.touched = true;
        self.each().into_iter().for_each(|bench| bench.hold(place, on));
    }

    /// What of both must be the same.
    pub fn same<T: PartialEq>(&mut self, what: &str, of: impl Fn(&mut Bench) -> T, show: impl Fn(&T) -> String) {
        let (expected, got) = (of(&mut self.reference), of(&mut self.tested));
        if expected != got {
            self.differs(what, &show(&expected), &show(&got));
        }
    }

    /// Note a difference.
    pub fn differs(&mut self, what: &str, expected: &str, got: &str) {
        let names = [self.reference.engine.name(), self.tested.engine.name()];
        let times = [self.reference.now().as_ns(), self.tested.now().as_ns()];
        let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
        self.wrong(format!(
            "{what} differs\n  {:<width$}  {expected}, at {} ns\n  {:<width$}  {got}, at {} ns",
            names[0], times[0], names[1], times[1]
        ));
    }

    /// The first thing that went wrong.
    pub fn take_wrong(&mut self) -> Option<String> {
        let own = [self.reference.wrong.take(), self.tested.wrong.take()];
        self.wrong.take().or_else(|| own.into_iter().flatten().next())
    }
}

impl Bed for Pair {
    /// Busy bits may differ: polls go on until neither shows one.
    fn read(&mut self, func: FuncId, offset: u32) -> u32 {
        let (expected, got) = (self.reference.read(func, offset), self.tested.read(func, offset));
        if offset == csr::IND_CTXT_CMD {
            return expected | got & 1;
        }
        if expected != got {
            let what = format!("register {offset:#07x} as {func} reads it");
            self.differs(&what, &format!("{expected:#010x}"), &format!("{got:#010x}"));
        }
        expected
    }

    fn write(&mut self, func: FuncId, offset: u32, value: u32) {
        self.touched = true;
        self.each().into_iter().for_each(|bench| bench.write(func, offset, value));
    }

    fn alloc(&mut self, func: FuncId, len: usize, fill: u8) -> u64 {
        let addr = self.reference.alloc(func, len, fill);
        let other = self.tested.alloc(func, len, fill);
        assert_eq!(addr, other, "both memories are asked for the same, in the same order");
        addr
    }

    fn mark(&mut self, addr: u64, len: usize, standing: Standing) {
        self.each().into_iter().for_each(|bench| bench.mark(addr, len, standing));
    }

    fn put(&mut self, addr: u64, data: &[u8]) {
        self.each().into_iter().for_each(|bench| bench.put(addr, data));
    }

    /// Of the reference: memories are compared whole when both have settled.
    fn get(&mut self, addr: u64, len: usize) -> Vec<u8> {
        self.reference.get(addr, len)
    }

    fn watch(&mut self, ring: Ring) {
        self.each().into_iter().for_each(|bench| bench.watch(ring.clone()));
    }

    fn receive(&mut self, qid: Qid, data: &[u8], completion: Option<Qid>) {
        self.touched = true;
        self.each().into_iter().for_each(|bench| bench.receive(qid, data, completion));
    }

    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }
}

//! The boundary to C++, whole. `cpp/top.h` is its other half.

#[cxx::bridge(namespace = "onic")]
pub(crate) mod bridge {
    /// `onic::Port`.
    struct PortInfo {
        name: String,
        is_input: bool,
        storage_bytes: u8,
        width_bits: u32,
        address: usize,
    }

    /// `onic::Event`.
    struct EventInfo {
        kind: u32,
        line: u32,
        time_ps: u64,
        file: String,
        text: String,
    }

    /// `onic::PinChange`.
    struct ChangeInfo {
        to: usize,
        from: usize,
        bytes: usize,
    }

    /// `onic::PinStep`.
    struct StepInfo {
        time_ps: u64,
        changes: usize,
    }

    unsafe extern "C++" {
        include!("rtl-bridge/cpp/bridge.h");

        type Top;
        type Factory;
        type Replay;

        fn linked_factory() -> *const Factory;
        /// # Safety
        /// `factory` is a live `onic::Factory` of any ABI: `abi` is its first member in each.
        unsafe fn factory_abi(factory: *const Factory) -> u32;
        /// # Safety
        /// `factory` is a live `onic::Factory` of our ABI.
        unsafe fn factory_top_module(factory: *const Factory) -> String;
        /// # Safety
        /// As [`factory_top_module`].
        unsafe fn factory_hash(factory: *const Factory) -> String;
        /// The address of an `onic::Eval`.
        ///
        /// # Safety
        /// As [`factory_top_module`].
        unsafe fn factory_eval(factory: *const Factory) -> usize;
        /// # Safety
        /// As [`factory_top_module`]; the code behind it stays loaded as long as the top lives.
        unsafe fn create_top(factory: *const Factory, plusargs: &[String], seed: i32) -> UniquePtr<Top>;

        fn port_count(self: &Top) -> usize;
        fn describe_port(top: &Top, index: usize) -> PortInfo;

        fn next_slot(self: Pin<&mut Top>) -> u64;
        fn finish(self: Pin<&mut Top>) -> bool;
        fn assertions(self: Pin<&mut Top>, on: bool);

        /// # Safety
        /// Each `to` with its `bytes` lies within a port of the top that [`run_replay`] will get, each `from` within memory
        /// that outlives the replay; the steps' `changes` add up to no more than there are.
        unsafe fn make_replay(steps: &[StepInfo], changes: &[ChangeInfo]) -> UniquePtr<Replay>;
        /// # Safety
        /// `top` is the one whose ports the replay's addresses are.
        unsafe fn run_replay(top: Pin<&mut Top>, replay: &Replay) -> bool;

        fn open_trace(top: Pin<&mut Top>, path: &str) -> bool;
        fn trace_dump(self: Pin<&mut Top>, time_ps: u64);
        fn trace_close(self: Pin<&mut Top>);
        fn write_coverage(top: Pin<&mut Top>, path: &str) -> bool;

        fn event_count(self: &Top) -> usize;
        fn describe_event(top: &Top, index: usize) -> EventInfo;
        fn clear_events(self: Pin<&mut Top>);
    }
}

/// Name of the symbol that every Verilated library exports; `cpp/top.h` declares it.
pub(crate) const FACTORY_SYMBOL: &[u8] = b"onic_rtl_factory\0";

/// `onic::kAbi`.
pub(crate) const ABI: u32 = 3;

/// `onic::Eval`. Its language linkage is C++'s, which calls like C's on every platform that Verilator knows.
pub(crate) type Eval = unsafe extern "C" fn(*mut bridge::Top, u64, bool) -> bool;

// The RTL boundary: what a Verilated top, of whatever shape, is to the rest of onic-cosim.
//
// Both languages read this file: rtl-bridge/src/ffi.rs names the same class in its cxx bridge, and every Verilated
// library (linked in, or loaded at run time) implements it through verilated_top.h. Only plain C types cross, so that
// a library built by one compiler run fits a program built by another; kAbi changes whenever anything here does.
//
// The C++ side has no policy: it holds pins, evaluates, dumps and notes down what the RTL said. Clocks, time-outs,
// protocols and decisions are Rust.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onic {

/// Refused when it differs: raise it with every change to this file.
constexpr uint32_t kAbi = 3;

/// One top-level port. `address` stays valid as long as its Top lives.
struct Port {
    const char* name;
    /// 1 input, 0 output.
    uint8_t is_input;
    /// 1, 2, 4 or 8: one integer of so many bytes. 0: an array of 32-bit words, lowest first.
    uint8_t storage_bytes;
    uint32_t width_bits;
    void* address;
};

/// What the RTL, or Verilator's runtime, said.
enum class EventKind : uint32_t {
    /// A line that $display, $error, … printed.
    kPrint = 0,
    /// $stop, and what follows the line of a failed assertion, $error or $fatal.
    kStop = 1,
    /// The runtime can't go on: no convergence, a bad argument. The top is dead afterwards.
    kFatal = 2,
    /// $finish.
    kFinish = 3,
    /// A warning of the runtime.
    kWarn = 4,
};

struct Event {
    EventKind kind;
    uint32_t line;
    uint64_t time_ps;
    const char* file;
    const char* text;
};

struct Options {
    /// Plusargs, each with its leading '+'.
    size_t arg_count;
    const char* const* args;
    /// What registers and memories hold before reset, and what an X becomes.
    int32_t seed;
};

/// One input that changes before an evaluation: `bytes` of it, from `from`.
struct PinChange {
    void* to;
    const void* from;
    size_t bytes;
};

/// One evaluation, after the next `changes` changes.
struct PinStep {
    uint64_t time_ps;
    size_t changes;
};

class Top {
public:
    virtual ~Top() = default;

    virtual size_t port_count() const = 0;
    virtual const Port* port(size_t index) const = 0;

    /// The bare loop of the benchmarks: recorded inputs, the same evaluations, nothing else. True: it ended early, there
    /// are events to fetch.
    virtual bool replay(const PinStep* steps, size_t step_count, const PinChange* changes) = 0;
    /// Next time at which the RTL itself has something to do (`--timing` only), or UINT64_MAX.
    virtual uint64_t next_slot() = 0;
    /// Run `final` blocks. True: there are events to fetch.
    virtual bool finish() = 0;

    virtual void assertions(bool on) = 0;

    /// The FST file opens at the first dump; nothing is written between close and the next open.
    virtual bool trace_open(const char* path) = 0;
    virtual void trace_dump(uint64_t time_ps) = 0;
    virtual void trace_close() = 0;

    virtual bool coverage_write(const char* path) = 0;

    virtual size_t event_count() const = 0;
    virtual const Event* event(size_t index) const = 0;
    virtual void clear_events() = 0;
};

/// Evaluate at `time_ps`. True: there are events to fetch. Called once an edge, from Rust and without a detour: each
/// function on the way would have to come from the second-level cache, since the RTL fills the first. `enter`: the last
/// call of this thread into any top was not an evaluation of this one. A shared object has to look for what a thread keeps.
using Eval = bool (*)(Top* top, uint64_t time_ps, bool enter) noexcept;

/// The one symbol that a Verilated library shows.
struct Factory {
    uint32_t abi;
    /// Name of the top module.
    const char* top_module;
    /// Content hash of what it was built from.
    const char* hash;
    /// Null when the model could not be made.
    Top* (*create)(const Options* options);
    /// For tops of this factory only.
    Eval eval;
};

}  // namespace onic

extern "C" const onic::Factory* onic_rtl_factory();

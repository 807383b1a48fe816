// The cxx side of the RTL boundary: what rtl-bridge/src/ffi.rs can't say about top.h by itself. Compiled with the Rust
// (cxx glue), apart from any Verilated library, so it may use cxx's types.
#pragma once

#include <memory>
#include <vector>

#include "rtl-bridge/cpp/top.h"
#include "rust/cxx.h"

namespace onic {

struct PortInfo;
struct EventInfo;
struct ChangeInfo;
struct StepInfo;

/// Arguments of Top::replay, made once.
struct Replay {
    std::vector<PinStep> steps;
    std::vector<PinChange> changes;
};

/// The factory of the top that is linked in.
const Factory* linked_factory();

// `factory` comes from linked_factory or from a library's onic_rtl_factory.
uint32_t factory_abi(const Factory* factory);
rust::String factory_top_module(const Factory* factory);
rust::String factory_hash(const Factory* factory);
size_t factory_eval(const Factory* factory);
/// Null when the model could not be made.
std::unique_ptr<Top> create_top(const Factory* factory, rust::Slice<const rust::String> plusargs, int32_t seed);

PortInfo describe_port(const Top& top, size_t index);
EventInfo describe_event(const Top& top, size_t index);
/// The addresses are of ports of the top that it will run on, and of bytes that outlive it.
std::unique_ptr<Replay> make_replay(rust::Slice<const StepInfo> steps, rust::Slice<const ChangeInfo> changes);
bool run_replay(Top& top, const Replay& replay);
bool open_trace(Top& top, rust::Str path);
bool write_coverage(Top& top, rust::Str path);

}  // namespace onic

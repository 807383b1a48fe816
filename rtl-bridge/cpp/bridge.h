// The cxx side of the RTL boundary: what rtl-bridge/src/ffi.rs can't say about top.h by itself. Compiled with the Rust
// (cxx glue), apart from any Verilated library, so it may use cxx's types.
#pragma once

#include <memory>

#include "rtl-bridge/cpp/top.h"
#include "rust/cxx.h"

namespace onic {

struct PortInfo;
struct EventInfo;

/// The factory of the top that is linked in.
const Factory* linked_factory();

// `factory` comes from linked_factory or from a library's onic_rtl_factory.
uint32_t factory_abi(const Factory* factory);
rust::String factory_top_module(const Factory* factory);
rust::String factory_hash(const Factory* factory);
/// Null when the model could not be made.
std::unique_ptr<Top> create_top(const Factory* factory, rust::Slice<const rust::String> plusargs, int32_t seed);

PortInfo describe_port(const Top& top, size_t index);
EventInfo describe_event(const Top& top, size_t index);
bool open_trace(Top& top, rust::Str path);
bool write_coverage(Top& top, rust::Str path);

}  // namespace onic

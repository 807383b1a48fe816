// See bridge.h.
#include "rtl-bridge/cpp/bridge.h"

#include <string>
#include <vector>

#include "rtl-bridge/src/ffi.rs.h"

namespace onic {

// RTL prints what it likes: not only UTF-8.
static rust::String text(const char* bytes) { return rust::String::lossy(bytes ? bytes : ""); }

const Factory* linked_factory() { return onic_rtl_factory(); }
uint32_t factory_abi(const Factory* factory) { return factory->abi; }
rust::String factory_top_module(const Factory* factory) { return text(factory->top_module); }
rust::String factory_hash(const Factory* factory) { return text(factory->hash); }
size_t factory_eval(const Factory* factory) { return reinterpret_cast<size_t>(factory->eval); }

std::unique_ptr<Top> create_top(const Factory* factory, rust::Slice<const rust::String> plusargs, int32_t seed) {
    const std::vector<std::string> copies(plusargs.begin(), plusargs.end());
    std::vector<const char*> args;
    for (const std::string& copy : copies) args.push_back(copy.c_str());
    const Options options{args.size(), args.data(), seed};
    return std::unique_ptr<Top>(factory->create(&options));
}

PortInfo describe_port(const Top& top, size_t index) {
    const Port& port = *top.port(index);
    return PortInfo{text(port.name), port.is_input != 0, port.storage_bytes, port.width_bits,
                    reinterpret_cast<size_t>(port.address)};
}

EventInfo describe_event(const Top& top, size_t index) {
    const Event& event = *top.event(index);
    return EventInfo{static_cast<uint32_t>(event.kind), event.line, event.time_ps, text(event.file), text(event.text)};
}

std::unique_ptr<Replay> make_replay(rust::Slice<const StepInfo> steps, rust::Slice<const ChangeInfo> changes) {
    auto replay = std::make_unique<Replay>();
    for (const StepInfo& step : steps) replay->steps.push_back({step.time_ps, step.changes});
    for (const ChangeInfo& change : changes)
        replay->changes.push_back(
            {reinterpret_cast<void*>(change.to), reinterpret_cast<const void*>(change.from), change.bytes});
    return replay;
}

bool run_replay(Top& top, const Replay& replay) {
    return top.replay(replay.steps.data(), replay.steps.size(), replay.changes.data());
}

bool open_trace(Top& top, rust::Str path) { return top.trace_open(std::string(path).c_str()); }
bool write_coverage(Top& top, rust::Str path) { return top.coverage_write(std::string(path).c_str()); }

}  // namespace onic

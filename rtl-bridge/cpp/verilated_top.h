// onic::Top over any Verilated class. The build writes one small file for each top that includes this one, lists the
// ports and names the class (rtl-bridge/build/wrapper.rs); it is compiled once in each Verilated library.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "top.h"
#include "verilated.h"
#include "verilated_cov.h"
#include "verilated_fst_c.h"

namespace onic {

/// Thrown by the fatal hook, caught in eval: generated code goes on after VL_FATAL_MT as if it never returned.
struct FatalStop final : std::exception {};

/// A context that remembers what was said while it was the thread's.
class Context final : public VerilatedContext {
public:
    /// More lines than this between two fetches are counted, not kept: RTL may print in each cycle.
    static constexpr size_t kMaxEvents = 4096;

    void note(EventKind kind, const char* file, int line, std::string text) {
        if (kind == EventKind::kPrint && events_.size() >= kMaxEvents) return;
        texts_.push_back(std::move(text));
        const char* text_copy = texts_.back().c_str();
        texts_.push_back(file ? file : "");
        events_.push_back(Event{kind, static_cast<uint32_t>(line), time(), texts_.back().c_str(), text_copy});
    }

    /// $display may print a line in pieces.
    void print(const std::string& piece) {
        line_ += piece;
        for (size_t end; (end = line_.find('\n')) != std::string::npos; line_.erase(0, end + 1))
            note(EventKind::kPrint, "", 0, line_.substr(0, end));
    }

    void clear() {
        events_.clear();
        texts_.clear();
    }

    const std::vector<Event>& events() const { return events_; }

private:
    std::vector<Event> events_;
    std::deque<std::string> texts_;  // a deque: its strings never move
    std::string line_;
};

/// Every entry into Verilated code sets the thread's context first, so this one is ours.
inline Context& context() { return *static_cast<Context*>(Verilated::threadContextp()); }

/// `Model` is the class that Verilator generated, `bind` appends its ports.
template <class Model>
class VerilatedTop final : public Top {
public:
    using Bind = void (*)(Model&, std::vector<Port>&);

    VerilatedTop(const Options& options, Bind bind) {
        std::vector<const char*> args{"onic"};
        args.insert(args.end(), options.args, options.args + options.arg_count);
        context_.commandArgs(static_cast<int>(args.size()), args.data());
        context_.errorLimit(1);  // whatever the plusargs say: it is the testbench that forgives
        context_.randReset(2);
        context_.randSeed(options.seed);
        context_.traceEverOn(true);
        context_.assertOn(false);
        Verilated::threadContextp(&context_);
        model_ = std::make_unique<Model>(&context_, "");
        bind(*model_, ports_);
    }

    ~VerilatedTop() override {
        Verilated::threadContextp(&context_);
        trace_close();
    }

    size_t port_count() const override { return ports_.size(); }
    const Port* port(size_t index) const override { return &ports_.at(index); }

    bool eval(uint64_t time_ps, bool enter) {
        if (VL_UNLIKELY(dead_)) return true;
        if (VL_UNLIKELY(enter)) Verilated::threadContextp(&context_);
        context_.time(time_ps);
        try {
            model_->eval();
        } catch (const FatalStop&) {
            dead_ = true;
        }
        return VL_UNLIKELY(!context_.events().empty());
    }

    bool replay(const PinStep* steps, size_t step_count, const PinChange* changes) override {
        Verilated::threadContextp(&context_);
        try {
            for (const PinStep* step = steps; step != steps + step_count; ++step) {
                for (const PinChange* end = changes + step->changes; changes != end; ++changes) {
                    // Most changes are one byte: a clock, a valid, a ready.
                    if (VL_LIKELY(changes->bytes == 1)) {
                        *static_cast<uint8_t*>(changes->to) = *static_cast<const uint8_t*>(changes->from);
                    } else {
                        std::memcpy(changes->to, changes->from, changes->bytes);
                    }
                }
                context_.time(step->time_ps);
                model_->eval();
                if (VL_UNLIKELY(!context_.events().empty())) return true;
            }
        } catch (const FatalStop&) {
            dead_ = true;
        }
        return dead_;
    }

    uint64_t next_slot() override {
        return !dead_ && model_->eventsPending() ? model_->nextTimeSlot() : UINT64_MAX;
    }

    bool finish() override {
        if (dead_) return true;
        Verilated::threadContextp(&context_);
        try {
            model_->final();
        } catch (const FatalStop&) {
            dead_ = true;
        }
        return !context_.events().empty();
    }

    void assertions(bool on) override { context_.assertOn(on); }

    bool trace_open(const char* path) override {
        Verilated::threadContextp(&context_);
        if (!trace_) {
            trace_ = std::make_unique<VerilatedFstC>();
            model_->trace(trace_.get(), 99);
        }
        trace_->open(path);
        return trace_->isOpen();
    }

    void trace_dump(uint64_t time_ps) override {
        Verilated::threadContextp(&context_);
        if (trace_) trace_->dump(time_ps);
    }

    void trace_close() override {
        if (trace_ && trace_->isOpen()) trace_->close();
    }

    bool coverage_write(const char* path) override {
        // Verilator reports a file that it cannot write by vl_fatal, thus the try.
        Verilated::threadContextp(&context_);
        try {
            context_.coveragep()->write(path);
        } catch (const FatalStop&) {
            return false;
        }
        return true;
    }

    size_t event_count() const override { return context_.events().size(); }
    const Event* event(size_t index) const override { return &context_.events().at(index); }
    void clear_events() override { context_.clear(); }

private:
    // In this order: the model and the trace refer to the context until they are gone.
    Context context_;
    std::unique_ptr<Model> model_;
    std::unique_ptr<VerilatedFstC> trace_;
    std::vector<Port> ports_;
    bool dead_ = false;
};

}  // namespace onic

// ---- Verilator's hooks (see -DVL_USER_… in rtl-bridge/build/library.rs) ----

extern "C" int onic_rtl_printf(const char* format, ...) {
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int length = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
    if (length > 0) std::vsnprintf(text.data(), text.size() + 1, format, args);
    va_end(args);
    onic::context().print(text);
    return length;
}

void vl_finish(const char* file, int line, const char* hier) {
    onic::context().gotFinish(true);
    onic::context().note(onic::EventKind::kFinish, file, line, hier ? hier : "");
}

void vl_stop(const char* file, int line, const char* hier) {
    onic::context().gotError(true);
    onic::context().note(onic::EventKind::kStop, file, line, hier ? hier : "");
}

void vl_fatal(const char* file, int line, const char*, const char* message) {
    onic::context().gotError(true);
    onic::context().note(onic::EventKind::kFatal, file, line, message ? message : "");
    throw onic::FatalStop{};
}

void vl_warn(const char* file, int line, const char*, const char* message) {
    onic::context().note(onic::EventKind::kWarn, file, line, message ? message : "");
}

// Included before each file that Verilator generated, with the pinned version only: what its runtime does in every
// evaluation, inline. As calls these take an eighth of all time, for nothing in most designs. What they mean is kept.
// This relies on the insides of 5.049, and on evaluation in one thread; other versions go without.
#pragma once

#include "verilated.h"
#include "verilated_types.h"

// Whether assertions are on is asked by each of them. $asserton and $assertoff work as ever. One group of switches a type of
// assertion (its one bit), one switch in it for each kind of directive.
[[gnu::always_inline]] inline bool VerilatedContext::assertOnGet(VerilatedAssertType_t type,
                                                                 VerilatedAssertDirectiveType_t directive) const {
    if (type == 0) return false;
    const unsigned group = static_cast<unsigned>(__builtin_ctz(type)) * ASSERT_DIRECTIVE_TYPE_MASK_WIDTH;
    return m_s.m_assertOn.load(std::memory_order_relaxed) & (directive << group);
}

[[gnu::always_inline]] inline bool VerilatedContext::assertOn() const {
    return m_s.m_assertOn.load(std::memory_order_relaxed) != 0;
}

// Objects of SystemVerilog classes that nobody refers to any more. Where there are none, no lock is taken.
[[gnu::always_inline]] inline void VlDeleter::deleteAll() {
    while (VL_UNLIKELY(!m_newGarbage.empty())) {
        std::vector<VlDeletable*> unreferenced;
        {
            const VerilatedLockGuard lock{m_mutex};
            unreferenced.swap(m_newGarbage);
        }
        // Their destructors may add more.
        for (VlDeletable* object : unreferenced) delete object;
    }
}

// Messages of other threads: there are none, and this thread's own were never put off.
[[gnu::always_inline]] inline void Verilated::endOfEval(VerilatedEvalMsgQueue*) {}

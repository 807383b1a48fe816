// Included before each file that Verilator generated, with the pinned version only: whether assertions are on, as an inline
// test. Verilator's own is a function with a loop, called by each assertion in each evaluation: a twelfth of all time.
// $asserton and $assertoff keep their meaning. It relies on how 5.049 keeps its switches; other versions go without.
#pragma once

#include "verilated.h"

// One group of switches a type of assertion (its one bit), one switch in it for each kind of directive.
[[gnu::always_inline]] inline bool VerilatedContext::assertOnGet(VerilatedAssertType_t type,
                                                                 VerilatedAssertDirectiveType_t directive) const {
    if (type == 0) return false;
    const unsigned group = static_cast<unsigned>(__builtin_ctz(type)) * ASSERT_DIRECTIVE_TYPE_MASK_WIDTH;
    return m_s.m_assertOn.load(std::memory_order_relaxed) & (directive << group);
}

[[gnu::always_inline]] inline bool VerilatedContext::assertOn() const {
    return m_s.m_assertOn.load(std::memory_order_relaxed) != 0;
}

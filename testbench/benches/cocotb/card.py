"""What both opponents know of the card: registers, rings in host memory, and how a driver brings it up.

Registers and layouts: docs/registers. Values are those that driver-core programs, so that the card does the same work
for every driver: 8 queues, rings of 1024, buffers of 2048 bytes, moderation by count 64 or timer 1 us. The one that
bounds descriptors kept ready (0xA84) stays 0, as far as the pins allow; testbench/src/benchmark/cocotb.rs clears it too.
"""

import gc
import json
import os
import struct
from pathlib import Path

# A run makes no cycles worth looking for; the collector would take up to a tenth of its time.
gc.disable()

QUEUES = 8
RING_ENTRIES = 1024  # the status entry included
SLOTS = RING_ENTRIES - 1  # indices wrap here
PAGE_BYTES = 4096
BUFFER_BYTES = 2048

# Host memory: a descriptor and a completion ring for each queue, then a page for each descriptor.
RING_BYTES = 8 * RING_ENTRIES
PAGES_BASE = 2 * QUEUES * RING_BYTES + PAGE_BYTES
MEMORY_BYTES = PAGES_BASE + QUEUES * SLOTS * PAGE_BYTES

AXIL_PERIOD_PS = 8000
AXIS_PERIOD_PS = 4000
CMAC_PERIOD_PS = 3103  # of 102400/33
HOST_LATENCY_CYCLES = 250
INTERRUPT_NS = 1000  # from the interrupt to the driver's poll

# Pins that say how far the engine reads ahead: the set `fetch=wire` of card `rtl`.
QUASI_STATIC_PINS = {
    "cfg_min_pkt_len": 64,
    "cfg_max_pkt_len": 1518,
    "cfg_c2h_ahead": 256,
    "cfg_h2c_ahead": 256,
    "cfg_fetches": 8,
    "cfg_fetch_bytes": 512,
    "cfg_read_bytes": 4096,
    "cfg_data_reads": 256,
}

# BAR2, the shell.
SHELL_RESET = 0x0C
SHELL_STATUS = 0x10
CMAC_RESET_BIT = 1 << 4
FUNCTION_QCONF = 0x1000
FUNCTION_RSS_TABLE = 0x1400
RSS_TABLE_ENTRIES = 128
CMAC_RX_ENABLE = 0x8014

# BAR0, the QDMA.
RING_SIZE_0 = 0x204
CTXT_DATA = 0x804
CTXT_MASK = 0x824
CTXT_CMD = 0x844
TIMER_COUNT_0 = 0xA00
COUNTER_THRESHOLD_0 = 0xA40
BUFFER_SIZE_0 = 0xAB0
TIMER_TICK = 0xB0C
COALESCE = 0xB50

SEL_SW_C2H, SEL_HW_C2H, SEL_CREDIT_C2H, SEL_COMPLETION, SEL_PREFETCH, SEL_FMAP = 0, 2, 4, 6, 7, 12
OP_CLEAR, OP_WRITE = 0, 1

COLOR_BIT = 1 << 1
ERROR_BIT = 1 << 2


def descriptor_ring(queue):
    """DMA address of a queue's descriptor ring."""
    return PAGE_BYTES + 2 * queue * RING_BYTES


def completion_ring(queue):
    """DMA address of a queue's completion ring."""
    return descriptor_ring(queue) + RING_BYTES


def page(queue, slot):
    """DMA address of the page at a descriptor."""
    return PAGES_BASE + (queue * SLOTS + slot) * PAGE_BYTES


def descriptors(queue):
    """A descriptor ring's bytes: every slot offers its page."""
    return struct.pack(f"<{SLOTS}Q", *(page(queue, slot) for slot in range(SLOTS)))


def pidx_doorbell(queue):
    return 0x18008 + 16 * queue


def cidx_doorbell(queue):
    return 0x1800C + 16 * queue


def pidx_value(cidx):
    """All buffers but the one that tells a full ring from an empty one, from the next completion's on."""
    return (cidx + SLOTS - 1) % SLOTS


def cidx_value(cidx):
    """Armed, with status word, mode 5 (timer and count), the tables' entries 0."""
    return cidx | 5 << 24 | 1 << 27 | 1 << 28


async def _command(bar0, selector, op, index):
    await bar0.write(CTXT_CMD, selector << 1 | op << 5 | index << 7)
    while await bar0.read(CTXT_CMD) & 1:
        pass


async def _context(bar0, selector, index, words):
    await _command(bar0, selector, OP_CLEAR, index)
    for number, word in enumerate((list(words) + [0] * 8)[:8]):
        await bar0.write(CTXT_DATA + 4 * number, word)
        await bar0.write(CTXT_MASK + 4 * number, 0xFFFFFFFF)
    await _command(bar0, selector, OP_WRITE, index)


async def _start_queue(bar0, queue):
    descs, entries = descriptor_ring(queue), completion_ring(queue)
    await _context(bar0, SEL_SW_C2H, queue, [0, 0x00100003, descs, 0])
    await _command(bar0, SEL_HW_C2H, OP_CLEAR, queue)
    await _command(bar0, SEL_CREDIT_C2H, OP_CLEAR, queue)
    await _context(bar0, SEL_PREFETCH, queue, [1 << 27, 1 << 13])
    await _context(bar0, SEL_COMPLETION, queue, [0x08000017, entries >> 6, 0, 1 << 28, queue << 4 | 1 << 1])
    await bar0.write(pidx_doorbell(queue), pidx_value(0))
    await bar0.write(cidx_doorbell(queue), cidx_value(0))


async def bring_up(bar0, bar2):
    """From power-up to a receiver that is on. Each BAR has coroutines `read(address)` and `write(address, value)`."""
    await _context(bar0, SEL_FMAP, 0, [0, QUEUES])
    await bar2.write(FUNCTION_QCONF, QUEUES)
    for entry in range(RSS_TABLE_ENTRIES):
        await bar2.write(FUNCTION_RSS_TABLE + 4 * entry, entry % QUEUES)
    # Entry 0 of each table is the one that is used.
    await bar0.write(RING_SIZE_0, RING_ENTRIES)
    await bar0.write(BUFFER_SIZE_0, BUFFER_BYTES)
    await bar0.write(TIMER_TICK, 25)
    await bar0.write(TIMER_COUNT_0, 10)
    await bar0.write(COUNTER_THRESHOLD_0, 64)
    await bar0.write(COALESCE, 32 << 26 | 25 << 14 | 5 << 2)
    await bar2.write(SHELL_RESET, CMAC_RESET_BIT)
    while not await bar2.read(SHELL_STATUS) & CMAC_RESET_BIT:
        pass
    for queue in range(QUEUES):
        await _start_queue(bar0, queue)
    await bar2.write(CMAC_RX_ENABLE, 1)


def read_frames():
    """The stimulus: of each frame its length, 2 bytes little endian, and its bytes."""
    data = Path(os.environ["ONIC_FRAMES"]).read_bytes()
    frames, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<H", data, at)
        frames.append(data[at + 2 : at + 2 + length])
        at += 2 + length
    return frames


def frames_timeout_ns(frames):
    """When all frames should have come long since; a lost one must not make a driver wait for ever."""
    return 100_000 + 1_000 * len(frames)


def report(sent, received, seconds, picoseconds):
    """Every frame must have come, with its own bytes. Then the figures, for whoever started the simulation."""
    assert len(received) == len(sent), f"{len(received)} of {len(sent)} frames came through"
    assert sorted(received) == sorted(sent), "frames came through with other bytes"
    figures = {"packets": len(received), "seconds": seconds, "cycles": picoseconds // AXIS_PERIOD_PS}
    Path(os.environ["ONIC_FIGURES"]).write_text(json.dumps(figures), encoding="utf-8")

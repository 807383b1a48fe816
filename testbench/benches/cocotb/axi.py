"""The card driven as a user of cocotbext-axi would: its sources, sinks and masters wherever they fit, tasks of plain code
behind them.

The wire is an AxiStreamSource, BAR2 an AxiLiteMaster, host memory a SparseMemory. The host port and BAR0 are no AXI, but
have the valid/ready handshake for which the library makes sources and sinks (`define_stream`).
"""

import struct
import time

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, Event, RisingEdge, Timer, with_timeout
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus, AxiStreamSource
from cocotbext.axi.sparse_memory import SparseMemory
from cocotbext.axi.stream import define_stream

import card

WriteBus, _, _, WriteSink, _ = define_stream(
    "Write", ["valid_o", "ready_i", "addr_o", "data_o", "be_o"], valid_signal="valid_o", ready_signal="ready_i"
)
ReadBus, _, _, ReadSink, _ = define_stream(
    "Read", ["valid_o", "ready_i", "addr_o", "len_o", "tag_o"], valid_signal="valid_o", ready_signal="ready_i"
)
AnswerBus, Answer, AnswerSource, _, _ = define_stream(
    "Answer", ["valid_i", "tag_i", "data_i", "last_i", "status_i"], valid_signal="valid_i"
)
AccessBus, Access, AccessSource, _, _ = define_stream(
    "Access",
    ["valid_i", "ready_o", "write_i", "func_i", "addr_i", "wdata_i"],
    valid_signal="valid_i",
    ready_signal="ready_o",
)
ReplyBus, _, _, _, ReplyMonitor = define_stream("Reply", ["rvalid_o", "rdata_o"], valid_signal="rvalid_o")
IrqBus, _, _, IrqSink, _ = define_stream(
    "Irq", ["valid_o", "ready_i", "vector_o"], valid_signal="valid_o", ready_signal="ready_i"
)


class Bar0:
    """The register port."""

    def __init__(self, dut):
        self.source = AccessSource(AccessBus.from_prefix(dut, "reg"), dut.axis_aclk)
        self.replies = ReplyMonitor(ReplyBus.from_prefix(dut, "reg"), dut.axis_aclk)

    async def write(self, address, value):
        await self.source.send(Access(write_i=1, addr_i=address, wdata_i=value))

    async def read(self, address):
        await self.source.send(Access(addr_i=address))
        return int((await self.replies.recv()).rdata_o)


class Bar2:
    """The shell's registers."""

    def __init__(self, dut):
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil_sim"), dut.axil_aclk)

    async def write(self, address, value):
        await self.master.write_dword(address, value)

    async def read(self, address):
        return await self.master.read_dword(address)


class Host:
    """Host memory and its port, interrupts, and the driver's side of the rings."""

    def __init__(self, dut, bar0, expected):
        clock = dut.axis_aclk
        self.clock = clock
        self.bar0 = bar0
        self.memory = SparseMemory(card.MEMORY_BYTES)
        self.reads = ReadSink(ReadBus.from_prefix(dut, "hp_desc_req"), clock)
        self.answers = AnswerSource(AnswerBus.from_prefix(dut, "hp_desc_rsp"), clock)
        self.payload = WriteSink(WriteBus.from_prefix(dut, "hp_pay"), clock)
        self.completions = WriteSink(WriteBus.from_prefix(dut, "hp_cmp"), clock)
        self.interrupts = IrqSink(IrqBus.from_prefix(dut, "irq"), clock)
        self.delayed = Queue()
        self.expected = expected
        self.received = []
        self.done = Event()
        self.cidx = [0] * card.QUEUES
        self.color = [card.COLOR_BIT] * card.QUEUES
        for queue in range(card.QUEUES):
            self.memory.write(card.descriptor_ring(queue), card.descriptors(queue))

    def start(self):
        cocotb.start_soon(self.take_writes(self.payload))
        cocotb.start_soon(self.take_writes(self.completions))
        cocotb.start_soon(self.take_reads())
        cocotb.start_soon(self.answer_reads())
        cocotb.start_soon(self.take_interrupts())

    async def take_writes(self, sink):
        while True:
            beat = await sink.recv()
            address, data, enabled = int(beat.addr_o), int(beat.data_o), int(beat.be_o)
            while enabled & 1 == 0:
                address, data, enabled = address + 1, data >> 8, enabled >> 1
            length = enabled.bit_length()
            data &= (1 << 8 * length) - 1
            self.memory.write(address, data.to_bytes(length, "little"))

    async def take_reads(self):
        while True:
            request = await self.reads.recv()
            due = get_sim_time("step") + card.HOST_LATENCY_CYCLES * card.AXIS_PERIOD_PS
            await self.delayed.put((due, int(request.addr_o), int(request.len_o), int(request.tag_o)))

    async def answer_reads(self):
        while True:
            due, address, length, tag = await self.delayed.get()
            wait = due - get_sim_time("step")
            if wait > 0:
                await Timer(wait, "step")
            for at in range(0, length, 64):
                part = self.memory.read(address + at, min(64, length - at))
                data = int.from_bytes(part, "little")
                await self.answers.send(Answer(tag_i=tag, data_i=data, last_i=int(at + 64 >= length)))

    async def take_interrupts(self):
        while True:
            # A queue's vector has its number.
            interrupt = await self.interrupts.recv()
            cocotb.start_soon(self.poll(int(interrupt.vector_o)))

    async def poll(self, queue):
        await Timer(card.INTERRUPT_NS, "ns")
        ring = card.completion_ring(queue)
        while True:
            slot = self.cidx[queue]
            (entry,) = struct.unpack("<Q", self.memory.read(ring + 8 * slot, 8))
            if entry & card.COLOR_BIT != self.color[queue]:
                break
            assert not entry & card.ERROR_BIT, f"queue {queue} failed"
            self.received.append(self.memory.read(card.page(queue, slot), entry >> 32 & 0xFFFF))
            self.cidx[queue] += 1
            if self.cidx[queue] == card.SLOTS:
                self.cidx[queue] = 0
                self.color[queue] ^= card.COLOR_BIT
        if len(self.received) == self.expected:
            self.done.set()
        slot = self.cidx[queue]
        await self.bar0.write(card.pidx_doorbell(queue), card.pidx_value(slot))
        await self.bar0.write(card.cidx_doorbell(queue), card.cidx_value(slot))


async def wire(dut, source, frames):
    """All frames, in bursts for which there is room: the MAC can't be held back."""
    clock = RisingEdge(dut.cmac_clk)
    burst = int(dut.rx_room_beats.value) // 2
    beats = 0
    for frame in frames:
        needed = -(-len(frame) // 64)
        if beats + needed > burst or beats == 0:
            await source.wait()
            await ClockCycles(dut.cmac_clk, 8)
            while int(dut.rx_room_beats.value) < burst:
                await clock
            beats = 0
        beats += needed
        await source.send(frame)


@cocotb.test()
async def receive(dut):
    """All frames from the wire to host memory."""
    frames = card.read_frames()
    Clock(dut.axil_aclk, card.AXIL_PERIOD_PS, "ps").start()
    Clock(dut.axis_aclk, card.AXIS_PERIOD_PS, "ps").start()
    Clock(dut.cmac_clk, card.CMAC_PERIOD_PS, "ps", period_high=card.CMAC_PERIOD_PS // 2).start()
    for name, value in card.QUASI_STATIC_PINS.items():
        getattr(dut, name).value = value
    dut.hp_data_req_ready_i.value = 1
    dut.hp_data_rsp_valid_i.value = 0
    dut.s_axis_cmac_rx_sim_tuser_err.value = 0
    dut.m_axis_cmac_tx_sim_tready.value = 1
    dut.powerup_rstn.value = 0
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_cmac_rx_sim"), dut.cmac_clk)
    bar0, bar2 = Bar0(dut), Bar2(dut)
    host = Host(dut, bar0, len(frames))
    host.start()
    await ClockCycles(dut.axil_aclk, 16)
    dut.powerup_rstn.value = 1
    await ClockCycles(dut.axil_aclk, 130)
    await card.bring_up(bar0, bar2)
    await bar0.source.wait()
    began, began_ps = time.perf_counter(), get_sim_time("step")
    cocotb.start_soon(wire(dut, source, frames))
    await with_timeout(host.done.wait(), card.frames_timeout_ns(frames), "ns")
    seconds, picoseconds = time.perf_counter() - began, get_sim_time("step") - began_ps
    card.report(frames, host.received, seconds, int(picoseconds))

"""The least Python that drives the card: plain signal accesses, as few of them and as few awaits as will do.

Everything acts on falling edges, in the middle of a cycle: outputs hold still there, and inputs are set well before the
rising edge that takes them. Every ready is tied to 1, so that a valid seen at a falling edge is one beat. A coroutine
sleeps until its channel's valid rises and looks at nothing while it is low; inputs are written only when they change.
"""

import struct
import time
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Event, Timer, with_timeout
from cocotb.types import LogicArray
from cocotb.utils import get_sim_time

import card

# After a burst, until rx_room_beats shows all of it: a few cycles of cmac_clk.
ROOM_LAG_PS = 8 * card.CMAC_PERIOD_PS


class Bar0:
    """The register port."""

    def __init__(self, dut):
        self.dut = dut
        self.edge = dut.axis_aclk.falling_edge
        dut.reg_func_i.value = 0
        dut.reg_valid_i.value = 0

    async def write(self, address, value):
        await self.write_all(((address, value),))

    async def write_all(self, accesses):
        """Writes one behind the other. The caller must have the port to itself."""
        dut, edge = self.dut, self.edge
        await edge
        dut.reg_write_i.value = 1
        dut.reg_valid_i.value = 1
        for address, value in accesses:
            dut.reg_addr_i.value = address
            dut.reg_wdata_i.value = value
            taken = dut.reg_ready_o.value
            await edge
            while not taken:
                taken = dut.reg_ready_o.value
                await edge
        dut.reg_valid_i.value = 0

    async def read(self, address):
        dut, edge = self.dut, self.edge
        await edge
        dut.reg_write_i.value = 0
        dut.reg_valid_i.value = 1
        dut.reg_addr_i.value = address
        taken = dut.reg_ready_o.value
        await edge
        while not taken:
            taken = dut.reg_ready_o.value
            await edge
        dut.reg_valid_i.value = 0
        while not dut.reg_rvalid_o.value:
            await edge
        return dut.reg_rdata_o.value.to_unsigned()


class Bar2:
    """AXI-Lite, one access at a time."""

    def __init__(self, dut):
        self.dut = dut
        self.edge = dut.axil_aclk.falling_edge
        for name in ("awvalid", "wvalid", "arvalid"):
            self.pin(name).value = 0
        self.pin("bready").value = 1
        self.pin("rready").value = 1

    def pin(self, name):
        return getattr(self.dut, f"s_axil_sim_{name}")

    async def _offer(self, channel):
        valid, ready = self.pin(f"{channel}valid"), self.pin(f"{channel}ready")
        valid.value = 1
        while True:
            taken = ready.value
            await self.edge
            if taken:
                break
        valid.value = 0

    async def write(self, address, value):
        await self.edge
        self.pin("awaddr").value = address
        self.pin("wdata").value = value
        data = cocotb.start_soon(self._offer("w"))
        await self._offer("aw")
        await data
        while not self.pin("bvalid").value:
            await self.edge
        assert self.pin("bresp").value.to_unsigned() == 0, f"BAR2 refused a write to {address:#x}"

    async def read(self, address):
        await self.edge
        self.pin("araddr").value = address
        await self._offer("ar")
        while not self.pin("rvalid").value:
            await self.edge
        return self.pin("rdata").value.to_unsigned()


class Host:
    """Host memory and its port, interrupts, and the driver's side of the rings."""

    def __init__(self, dut, bar0, expected):
        self.dut = dut
        self.bar0 = bar0
        self.edge = dut.axis_aclk.falling_edge
        self.memory = bytearray(card.MEMORY_BYTES)
        self.expected = expected
        self.received = []
        self.done = Event()
        self.cidx = [0] * card.QUEUES
        self.color = [card.COLOR_BIT] * card.QUEUES
        self.polls = deque()  # (time, queue)
        self.poll_event = Event()
        for queue in range(card.QUEUES):
            ring = card.descriptors(queue)
            at = card.descriptor_ring(queue)
            self.memory[at : at + len(ring)] = ring

    def start(self):
        dut = self.dut
        for name in ("hp_desc_req_ready_i", "hp_data_req_ready_i", "hp_pay_ready_i", "hp_cmp_ready_i", "irq_ready_i"):
            getattr(dut, name).value = 1
        for name in ("hp_desc_rsp_valid_i", "hp_desc_rsp_status_i", "hp_data_rsp_valid_i"):
            getattr(dut, name).value = 0
        cocotb.start_soon(self.writes("hp_pay"))
        cocotb.start_soon(self.writes("hp_cmp"))
        cocotb.start_soon(self.reads())
        cocotb.start_soon(self.interrupts())
        cocotb.start_soon(self.poll())

    async def writes(self, channel):
        """Payload, or completions and status words. Enabled bytes are one run."""
        dut, edge, memory = self.dut, self.edge, self.memory
        valid, addr, data, be = (getattr(dut, f"{channel}_{pin}_o") for pin in ("valid", "addr", "data", "be"))
        rises = valid.rising_edge
        # Digits as the simulator gives them: LogicArray would take a sixth of the whole run.
        be_get, addr_get, data_get = (pin._handle.get_signal_val_binstr for pin in (be, addr, data))
        while True:
            await rises
            await edge
            while valid.value:
                enabled = int(be_get(), 2)
                first = (enabled & -enabled).bit_length() - 1
                end = enabled.bit_length()
                at = int(addr_get(), 2)
                memory[at + first : at + end] = int(data_get(), 2).to_bytes(64, "little")[first:end]
                await edge

    async def reads(self):
        """Descriptor reads, each answered after a fixed latency by a task of its own."""
        dut, edge = self.dut, self.edge
        valid = dut.hp_desc_req_valid_o
        rises = valid.rising_edge
        answers, news = deque(), Event()
        cocotb.start_soon(self.answers(answers, news))
        while True:
            await rises
            await edge
            while valid.value:
                due = get_sim_time("step") + card.HOST_LATENCY_CYCLES * card.AXIS_PERIOD_PS
                addr = dut.hp_desc_req_addr_o.value.to_unsigned()
                length = dut.hp_desc_req_len_o.value.to_unsigned()
                answers.append((due, addr, length, dut.hp_desc_req_tag_o.value.to_unsigned()))
                news.set()
                await edge

    async def answers(self, answers, news):
        dut, edge, memory = self.dut, self.edge, self.memory
        pins = ("valid", "tag", "data", "last")
        valid, tag_pin, data_pin, last_pin = (getattr(dut, f"hp_desc_rsp_{pin}_i") for pin in pins)
        while True:
            while not answers:
                news.clear()
                await news.wait()
            due, addr, length, tag = answers.popleft()
            wait = due - get_sim_time("step")
            if wait > 0:
                valid.value = 0
                await Timer(wait - card.AXIS_PERIOD_PS // 4, "step")
                await edge
            tag_pin.value = tag
            valid.value = 1
            for at in range(0, length, 64):
                data_pin.value = int.from_bytes(memory[addr + at : addr + min(at + 64, length)], "little")
                last_pin.value = at + 64 >= length
                await edge
            if not answers:
                valid.value = 0

    async def interrupts(self):
        dut, edge = self.dut, self.edge
        valid, vector = dut.irq_valid_o, dut.irq_vector_o
        rises = valid.rising_edge
        while True:
            await rises
            await edge
            while valid.value:
                # A queue's vector has its number.
                self.polls.append((get_sim_time("step") + 1000 * card.INTERRUPT_NS, vector.value.to_unsigned()))
                self.poll_event.set()
                await edge

    async def poll(self):
        polls, memory, received = self.polls, self.memory, self.received
        while True:
            while not polls:
                self.poll_event.clear()
                await self.poll_event.wait()
            due, queue = polls.popleft()
            wait = due - get_sim_time("step")
            if wait > 0:
                await Timer(wait, "step")
            ring, cidx, color = card.completion_ring(queue), self.cidx[queue], self.color[queue]
            while True:
                at = ring + 8 * cidx
                (entry,) = struct.unpack_from("<Q", memory, at)
                if entry & card.COLOR_BIT != color:
                    break
                assert not entry & card.ERROR_BIT, f"queue {queue} failed"
                start = card.page(queue, cidx)
                received.append(bytes(memory[start : start + (entry >> 32 & 0xFFFF)]))
                cidx += 1
                if cidx == card.SLOTS:
                    cidx, color = 0, color ^ card.COLOR_BIT
            self.cidx[queue], self.color[queue] = cidx, color
            if len(received) >= self.expected:
                self.done.set()
                return
            pidx = card.pidx_doorbell(queue), card.pidx_value(cidx)
            await self.bar0.write_all((pidx, (card.cidx_doorbell(queue), card.cidx_value(cidx))))


def beats_of(frames):
    """(data, keep, last) of every beat, made before the clock counts."""
    beats = []
    for frame in frames:
        for at in range(0, len(frame), 64):
            part = frame[at : at + 64]
            data = LogicArray(f"{int.from_bytes(part, 'little'):0512b}")
            beats.append((data, (1 << len(part)) - 1, at + 64 >= len(frame)))
    return beats


async def wire(dut, beats):
    """Bursts of beats, one a cycle, each when there is room for all of it."""
    edge = dut.cmac_clk.falling_edge
    pins = ("tdata", "tkeep", "tlast", "tvalid")
    data_pin, keep_pin, last_pin, valid = (getattr(dut, f"s_axis_cmac_rx_sim_{pin}") for pin in pins)
    burst = dut.rx_room_beats.value.to_unsigned() // 2
    keep_now = last_now = None
    left = 0
    for data, keep, last in beats:
        if left == 0:
            valid.value = 0
            await Timer(ROOM_LAG_PS, "step")
            while dut.rx_room_beats.value.to_unsigned() < burst:
                await Timer(16 * ROOM_LAG_PS, "step")
            await edge
            valid.value = 1
            left = burst
        data_pin.value = data
        if keep != keep_now:
            keep_pin.value = keep_now = keep
        if last != last_now:
            last_pin.value = last_now = last
        left -= 1
        await edge
    valid.value = 0


@cocotb.test()
async def receive(dut):
    """All frames from the wire to host memory."""
    frames = card.read_frames()
    for name, value in card.QUASI_STATIC_PINS.items():
        getattr(dut, name).value = value
    bar0, bar2 = Bar0(dut), Bar2(dut)
    host = Host(dut, bar0, len(frames))
    host.start()
    dut.s_axis_cmac_rx_sim_tvalid.value = 0
    dut.s_axis_cmac_rx_sim_tuser_err.value = 0
    dut.m_axis_cmac_tx_sim_tready.value = 1
    dut.powerup_rstn.value = 0
    Clock(dut.axil_aclk, card.AXIL_PERIOD_PS, "ps").start()
    Clock(dut.axis_aclk, card.AXIS_PERIOD_PS, "ps").start()
    Clock(dut.cmac_clk, card.CMAC_PERIOD_PS, "ps", period_high=card.CMAC_PERIOD_PS // 2).start()
    await ClockCycles(dut.axil_aclk, 16)
    dut.powerup_rstn.value = 1
    await ClockCycles(dut.axil_aclk, 130)
    await dut.axis_aclk.falling_edge
    await card.bring_up(bar0, bar2)
    beats = beats_of(frames)
    began, began_ps = time.perf_counter(), get_sim_time("step")
    cocotb.start_soon(wire(dut, beats))
    await with_timeout(host.done.wait(), card.frames_timeout_ns(frames), "ns")
    seconds, picoseconds = time.perf_counter() - began, get_sim_time("step") - began_ps
    card.report(frames, host.received, seconds, int(picoseconds))

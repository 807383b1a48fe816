//! BAR2 through `mmio_read` and `mmio_write`.

use regs::{Access, Bar, FuncId, PortId, Unmapped, Walk, qdma_function, shell as map, system_config};

use super::support::{Bench, one_port, two_ports, udp, upstream};
use crate::shell::{BusError, Shell, ShellConfig};
use crate::time::Time;

/// Every register of the map, on a shell after reset: its reset value, and for those the walk may write, what it keeps.
#[test]
fn the_whole_map_answers() {
    for cfg in [one_port(), two_ports(), ShellConfig { functions: 4, ..two_ports() }] {
        let mut shell = Shell::new(cfg.clone()).expect("in range");
        let now = Time::from_ns(2000);
        let here = regs::registers().iter().filter(|r| r.bar == Bar::Shell && r.presence.on(cfg.functions, cfg.ports));
        for register in here {
            for i in 0..register.count {
                let offset = register.offset + i * register.stride;
                let read = |shell: &mut Shell| shell.mmio_read(now, offset).expect("answers");
                let reset = register.reset_of(i).map(|v| v as u32).or(register.reads_as).unwrap_or(0);
                assert_eq!(read(&mut shell), reset, "{} {i} after reset", register.name);
                let writable = register.mask_of(Access::ReadWrite) as u32;
                if register.walk == Walk::Full && register.width_bits == 32 && writable != 0 {
                    for value in [u32::MAX, 0x5aa5_c33c, 0] {
                        shell.mmio_write(now, offset, value).expect("answers");
                        assert_eq!(read(&mut shell) & writable, value & writable, "{} {i}", register.name);
                    }
                    shell.mmio_write(now, offset, reset).expect("answers");
                }
            }
        }
    }
}

/// The windows' ends, and what answers between registers.
#[test]
fn windows_answer_and_nothing_else_does() {
    let mut bench = Bench::up(two_ports());
    for window in regs::windows().iter().filter(|w| w.bar == Bar::Shell && w.presence.on(2, 2)) {
        let last = window.base + window.size_bytes - 4;
        let expected = match window.unmapped {
            Unmapped::Value(value) => value,
            Unmapped::Echo { prefix, bits } => u32::from(prefix) << 16 | (last - window.base) & ((1 << bits) - 1),
        };
        assert_eq!(bench.read(last), expected, "{}", window.name);
    }
    for offset in [
        0x3000,
        0x4ffc,
        0x6000,
        0x7ffc,
        0x15000,
        0xffffc,
        0x102000,
        0x202000,
        0x341000,
        0x3ffffc,
        0x400000,
        u32::MAX - 3,
    ] {
        assert_eq!(bench.shell.mmio_read(bench.now, offset), Err(BusError::Decode { offset }));
        assert_eq!(bench.shell.mmio_write(bench.now, offset, 1), Err(BusError::Decode { offset }));
    }
}

/// shell.md section 7, the measured examples; a MAC stands where the echo was.
#[test]
fn placeholders_echo_their_address() {
    let mut bench = Bench::up(one_port());
    for (offset, value) in [(0xa004, 0xc028_0004), (0xd000, 0xc100_1000), (0x20_1004, 0xd000_0004), (0x8024, 0x301)] {
        assert_eq!(bench.read(offset), value, "{offset:#x}");
    }
    bench.write(0xa004, 0x1234);
    assert_eq!(bench.read(0xa004), 0xc028_0004, "a write is ignored");
    assert_eq!(bench.read(0xf004), 0xc100_0004, "adapter 1 of a one-port card");
}

/// shell.md section 5.2: status right after power-up.
#[test]
fn power_up_is_reported_honestly() {
    for (cfg, shell_status) in [(one_port(), 0xffff_ffce), (two_ports(), 0xffff_fcce), (upstream(), 0xffff_ffce)] {
        let mut shell = Shell::new(cfg).expect("in range");
        let read = |shell: &mut Shell, ns, offset| shell.mmio_read(Time::from_ns(ns), offset).expect("answers");
        assert_eq!(read(&mut shell, 0, system_config::SHELL_STATUS), shell_status);
        assert_eq!(read(&mut shell, 0, system_config::USER_STATUS), 0x3ffe_fffe);
        assert_eq!(read(&mut shell, 0, system_config::SYSTEM_STATUS), 0);
        let ready_ns = 106 * 8;
        assert_eq!(read(&mut shell, ready_ns, system_config::SHELL_STATUS), u32::MAX);
        assert_eq!(read(&mut shell, ready_ns, system_config::USER_STATUS), u32::MAX);
        assert_eq!(read(&mut shell, ready_ns, system_config::SYSTEM_STATUS), 1);
    }
}

#[test]
fn q1_reset_status_tells_the_truth() {
    let mut bench = Bench::up(one_port());
    bench.write(system_config::SHELL_RESET, 0x21);
    bench.run_ns(800);
    assert_eq!(bench.read(system_config::SHELL_STATUS), !0x21);
    assert_eq!(bench.read(system_config::SYSTEM_STATUS), 0);
    bench.run_ns(100);
    assert_eq!(bench.read(system_config::SHELL_STATUS), u32::MAX);
    assert_eq!(bench.read(system_config::SYSTEM_STATUS), 1);
}

/// Measured: SHELL_RST = 0x20, status 12 axis cycles later all ones.
#[test]
fn q1_upstream_status_hides_a_software_reset() {
    let mut bench = Bench::up(upstream());
    bench.write(system_config::SHELL_RESET, 0x20);
    bench.run_ns(48);
    assert_eq!(bench.read(system_config::SHELL_STATUS), u32::MAX);
}

#[test]
fn q2_a_block_in_reset_answers() {
    let mut bench = Bench::up(one_port());
    bench.write(system_config::SHELL_RESET, 0x21);
    assert_eq!(bench.read(0xb020), 0xdead_beef);
    assert_eq!(bench.read(0x1000), 0xdead_beef);
    bench.write(0x1000, 5);
    bench.run_ns(1000);
    assert_eq!(bench.read(0x1000), 0, "a write in reset is ignored");
    assert_eq!(bench.read(0xb020), 0);
}

#[test]
fn q2_upstream_hangs_the_bus() {
    let mut bench = Bench::up(upstream());
    bench.write(system_config::SHELL_RESET, 0x20);
    let later = bench.now + 1_000_000_000;
    assert_eq!(bench.shell.mmio_read(bench.now, 0xb020), Err(BusError::NoAnswer { offset: 0xb020 }));
    assert_eq!(bench.shell.mmio_read(later, 0), Err(BusError::NoAnswer { offset: 0 }), "and every later access");
    bench.shell.reset();
    assert_eq!(bench.shell.mmio_read(later, 0), Ok(0x0101_0000));
}

/// Q11: a second request 105 cycles after the first.
#[test]
fn q11_no_reset_request_is_lost() {
    for (cfg, kept) in [(one_port(), 0), (upstream(), 7)] {
        let mut bench = Bench::up(cfg);
        bench.write(system_config::SHELL_RESET, 1);
        bench.run_ns(105 * 8);
        bench.write(0x1000, 7);
        bench.write(system_config::SHELL_RESET, 1);
        bench.run_ns(2000);
        assert_eq!(bench.read(0x1000), kept);
    }
}

#[test]
fn a_second_request_during_a_reset_starts_it_again() {
    let mut bench = Bench::up(one_port());
    bench.write(system_config::SYSTEM_RESET, 0);
    bench.run_ns(50 * 8);
    bench.write(system_config::SHELL_RESET, 1);
    bench.run_ns(60 * 8);
    assert_eq!(bench.read(system_config::SHELL_STATUS), !1, "the others are done");
    bench.run_ns(60 * 8);
    assert_eq!(bench.read(system_config::SHELL_STATUS), u32::MAX);
}

#[test]
fn q13_box_registers_past_0x80_answer() {
    let mut bench = Bench::up(two_ports());
    for offset in [0x7c, 0x80, 0x1fc, 0xffc] {
        assert_eq!(bench.read(map::BOX_250 + offset), 0xb000_0000 | offset);
    }
}

#[test]
fn q13_upstream_hangs_the_bus() {
    let mut bench = Bench::up(upstream());
    assert_eq!(bench.read(map::BOX_250 + 0x7c), 0xb000_007c);
    let offset = map::BOX_250 + 0x80;
    assert_eq!(bench.shell.mmio_read(bench.now, offset), Err(BusError::NoAnswer { offset }));
    assert_eq!(bench.shell.mmio_read(bench.now, 0), Err(BusError::NoAnswer { offset: 0 }));
}

#[test]
fn q14_the_second_qdmas_window_ends_early() {
    let mut bench = Bench::up(one_port());
    assert_eq!(bench.read(0x14ffc), 0x0000_0ffc);
    assert_eq!(bench.shell.mmio_read(bench.now, 0x15000), Err(BusError::Decode { offset: 0x15000 }));
}

/// Q16, measured: 0x123 reads as 0xDEAD0123 after an unmapped read.
#[test]
fn q16_the_upper_half_of_a_table_read() {
    let entry = map::qdma_function(FuncId(0)) + qdma_function::INDIRECTION_TABLE + 12;
    for (cfg, value) in [(one_port(), 0x123), (upstream(), 0xdead_0123)] {
        let mut bench = Bench::up(cfg);
        bench.write(entry, 0xabcd_0123);
        assert_eq!(bench.read(map::qdma_function(FuncId(0)) + 0x800), 0xdead_beef);
        assert_eq!(bench.read(entry), value);
        assert_eq!(bench.read(entry + 0x800) & 0xffff, 0x123, "bit 11 is not decoded");
    }
}

#[test]
fn a_qdma_reset_clears_its_registers_and_loses_its_frames() {
    let mut bench = Bench::up(one_port());
    bench.qdma.stall = true;
    for n in 0..100 {
        bench.send(0, udp(n, 60), false);
    }
    bench.run_ns(5000);
    bench.write(map::qdma_function(FuncId(0)) + qdma_function::HASH_KEY, 1);
    bench.write(system_config::SHELL_RESET, 1);
    bench.qdma.stall = false;
    bench.run_ns(1000);
    bench.queues(0, 0, 8);
    assert_eq!(bench.read(map::qdma_function(FuncId(0)) + qdma_function::HASH_KEY), 0xd6e3_1417);
    bench.drain();
    assert_eq!(
        bench.shell.reset_losses(),
        58,
        "what the function held; the receive buffer's went on, to no queue at first"
    );
    let counted = bench.common(regs::qdma_common::C2H_PACKETS) + bench.common(regs::qdma_common::C2H_DROP_QUEUE_RANGE);
    assert_eq!(counted, 42);
}

#[test]
fn frames_during_a_reset_are_lost_and_known() {
    let mut bench = Bench::up(one_port());
    bench.write(system_config::SYSTEM_RESET, 1);
    bench.send(0, udp(1, 60), false);
    bench.run_ns(2000);
    assert_eq!((bench.shell.reset_losses(), bench.shell.inside()), (1, 0));
    bench.write(map::cmac(PortId(0)) + regs::cmac::CONFIGURATION_RX_REG1, 1);
    bench.queues(0, 0, 1);
    bench.send(0, udp(1, 60), false);
    bench.drain();
    assert_eq!(bench.qdma.frames.len(), 1);
}

#[test]
fn shapes_out_of_range_are_refused_by_name() {
    for (cfg, parameter) in [
        (ShellConfig { functions: 5, ..one_port() }, "functions"),
        (ShellConfig { ports: 0, ..one_port() }, "ports"),
        (ShellConfig { queues: 2049, ..one_port() }, "queues"),
        (ShellConfig { min_pkt_len: 63, ..one_port() }, "min_pkt_len"),
        (ShellConfig { max_pkt_len: 1519, ..one_port() }, "max_pkt_len"),
        (ShellConfig { buffer_pkt_len: 9601, ..one_port() }, "buffer_pkt_len"),
    ] {
        assert_eq!(Shell::new(cfg).err().map(|e| e.parameter), Some(parameter));
    }
    // shell.md section 12.
    let depth = |buffer_pkt_len| ShellConfig { buffer_pkt_len, ..one_port() }.buffer_beats();
    assert_eq!(
        [256, 341, 342, 682, 683, 1365, 1366, 2730, 2731, 5461, 5462, 9600].map(depth),
        [8, 8, 16, 16, 32, 32, 64, 64, 128, 128, 256, 256]
    );
}

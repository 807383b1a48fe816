//! An XDP hook on a simulated card, under the memory checker: what it writes reaches the wire and the sink, and no page is
//! given back to the card with something of it left in a cache.

use driver_core::pool::PoolConfig;
use driver_core::{Direction, RedirectTarget, Verdict, WEIGHT, XdpBuff};
use models::time::Time;
use regs::PortId;
use testbench::card::{Choice, Shape, WireFrame};
use testbench::frames::{UDP_HEADERS, udp};
use testbench::pool_ring::Pool;
use testbench::run::{Dma, Run, Setup};

const FRAMES: u64 = 2_000;
const BURST: u64 = 40;

fn number(frame: &[u8]) -> u64 {
    u64::from_le_bytes(frame[UDP_HEADERS..UDP_HEADERS + 8].try_into().expect("eight bytes"))
}

/// Swap the addresses, as a reflector does.
fn swapped(mut frame: Vec<u8>) -> Vec<u8> {
    frame[..12].rotate_left(6);
    frame
}

/// Every way in which a hook may touch a frame, by the frame's number.
fn touch(buff: &mut XdpBuff<'_, Dma>) -> Verdict {
    match number(buff.data()) % 6 {
        0 => Verdict::Pass,
        1 => {
            buff.adjust_meta(-8).expect("headroom");
            buff.meta_mut().fill(0xEE);
            Verdict::Pass
        }
        2 => {
            buff.data_mut().fill(0);
            Verdict::Drop
        }
        3 => {
            buff.adjust_head(-4).expect("headroom");
            buff.data_mut()[..4].fill(0xDD);
            buff.adjust_tail(300).expect("tailroom");
            Verdict::Redirect(RedirectTarget(0))
        }
        4 => {
            buff.data_mut()[..12].rotate_left(6);
            Verdict::Tx
        }
        _ => Verdict::Aborted,
    }
}

#[test]
fn what_a_hook_writes_goes_where_it_should_and_nowhere_else() {
    let shape = Shape { queues: 1, ring: 64, ..Shape::default() };
    let setup = Setup { shape: shape.clone(), ..Setup::default() };
    let mut run = Run::start(Choice::named("model").make(&shape).expect("a card"), &setup).expect("bring-up");
    run.drivers()[0].down().expect("down");
    let pool = || PoolConfig { direction: Direction::Bidirectional, ..PoolConfig::default() };
    run.drivers()[0].up_with(|_| Pool::new(pool()).expect("a valid pool")).expect("up");
    let (mut passed, mut sent) = (Vec::new(), Vec::new());
    for begin in (0..FRAMES).step_by(BURST as usize) {
        for number in begin..begin + BURST {
            let data = udp(0, number, 18 + (number % 1400) as usize).expect("a frame");
            run.bench().wire_in(PortId(0), WireFrame { time: Time::ZERO, data, err: false });
        }
        for _ in 0..20 {
            let until = run.bench().now() + 2_000_000;
            while run.bench().now() < until {
                run.bench().advance(until).expect("a card that runs");
            }
            let pair = run.drivers()[0].pair(0).expect("queue 0");
            let polled = pair.poll(WEIGHT, &mut touch, |frame| {
                let mut bytes = Vec::new();
                frame.append_to(&mut bytes);
                passed.push((bytes, frame.meta().to_vec()));
            });
            assert!(polled.received.is_ok() && polled.sent.is_ok(), "{polled:?}");
        }
        sent.extend(std::iter::from_fn(|| run.bench().wire_out(PortId(0))).map(|frame| frame.data));
    }
    let original = |number| udp(0, number, 18 + (number % 1400) as usize).expect("a frame");
    let expected: Vec<_> = (0..FRAMES)
        .filter(|number| number % 6 < 2)
        .map(|number| (original(number), if number % 6 == 1 { vec![0xEE; 8] } else { Vec::new() }))
        .collect();
    assert_eq!(passed.len(), expected.len());
    assert!(passed == expected, "frames that pass");
    let expected: Vec<_> = (0..FRAMES).filter(|number| number % 6 == 4).map(|n| swapped(original(n))).collect();
    assert_eq!(sent.len(), expected.len());
    assert!(sent == expected, "frames that are sent back");
    let counters = run.drivers()[0].rx(0).expect("queue 0").counters();
    let sixth = |rest| (0..FRAMES).filter(|number| number % 6 == rest).count() as u64;
    assert_eq!((counters.xdp_pass, counters.xdp_tx), (sixth(0) + sixth(1), sixth(4)));
    assert_eq!((counters.xdp_drop, counters.xdp_aborted), (sixth(2) + sixth(5), sixth(5)));
    assert_eq!((counters.xdp_redirect_errors, counters.xdp_tx_errors), (sixth(3), 0));
    let (_, bench) = run.finish().expect("a clean end");
    let memory = bench.memory();
    let reports: Vec<String> = memory.violations().into_iter().chain(memory.leaks()).map(|v| v.to_string()).collect();
    assert_eq!(reports, [""; 0]);
}

//! The model with its driver allocates nothing for a packet: once its queues have their working size, they are used again.

use testbench::benchmark::{Way, model_steady, setup};

const PACKETS: usize = 100_000;
/// What a run may cost for beginning and ending, whatever its length.
const ALLOCATIONS_MAX: u64 = 100;

fn check(way: Way, len_bytes: usize) {
    let steady = model_steady(&setup(false), way, len_bytes, PACKETS).expect("a run");
    assert!(
        steady.allocations < ALLOCATIONS_MAX,
        "{way:?}, {len_bytes} bytes: {} allocations for {} packets",
        steady.allocations,
        steady.packets
    );
    assert_eq!(steady.delivered, PACKETS as u64, "{way:?}, {len_bytes} bytes");
}

#[test]
fn receiving_allocates_nothing_for_a_packet() {
    [60, 1514].into_iter().for_each(|len_bytes| check(Way::Receive, len_bytes));
}

#[test]
fn transmitting_allocates_nothing_for_a_packet() {
    [60, 1514].into_iter().for_each(|len_bytes| check(Way::Transmit, len_bytes));
}

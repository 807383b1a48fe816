//! Card `rtl` holds the line at every frame length: what wire and stream allow, with one, 8 and 64 queues, both ways.
//!
//! `wire` read-ahead, an ideal link with 250 cycles of latency, a driver that costs nothing. Figures are cycles of the card, the
//! same on every machine; `onic bench line-rate` prints them.
#![cfg(feature = "rtl")]

use testbench::benchmark::Way;
use testbench::benchmark::line_rate::{self, Case, HELD, LENGTHS, QUEUES, Rate};

fn rate(case: &Case) -> Rate {
    line_rate::measure(case).unwrap_or_else(|error| panic!("{case:?}: {error:#}"))
}

fn holds(way: Way, queues: u16) {
    let case = |len_bytes| Case::new(len_bytes, way, queues);
    let share = |case: &Case| rate(case).mpps() / case.expected_mpps();
    let under: Vec<_> = LENGTHS.map(case).iter().map(|case| (case.len_bytes, share(case))).collect();
    let under: Vec<_> = under.into_iter().filter(|(_, share)| *share < HELD).collect();
    assert!(under.is_empty(), "{way:?}, {queues} queues: bytes and share of the line {under:?}");
}

macro_rules! holds {
    ($($name:ident $way:ident $queues:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            holds(Way::$way, $queues);
        })*

        #[test]
        fn no_number_of_queues_is_left_out() {
            for queues in QUEUES {
                let tried = [$((Way::$way, $queues)),*].into_iter().filter(|(_, number)| *number == queues).count();
                assert_eq!(tried, 2, "{queues} queues, both ways");
            }
        }
    };
}

holds! {
    one_queue_receives_at_the_line Receive 1,
    eight_queues_receive_at_the_line Receive 8,
    sixty_four_queues_receive_at_the_line Receive 64,
    one_queue_sends_at_the_line Transmit 1,
    eight_queues_send_at_the_line Transmit 8,
    sixty_four_queues_send_at_the_line Transmit 64,
}

/// Two beats a frame at 250 MHz, where the wire would carry 140.4 Mpps.
#[test]
fn sixty_five_bytes_make_125_million_frames_a_second() {
    for way in [Way::Receive, Way::Transmit] {
        let mpps = rate(&Case::new(65, way, 1)).mpps();
        assert!((mpps - 125.0).abs() < 0.05, "{way:?}: {mpps} Mpps");
    }
}

/// What a test of the line must see: one fetch at a time, and few descriptors ahead.
#[test]
fn too_little_read_ahead_is_seen() {
    use testbench::card::Fetch;
    let case = Case { fetch: Fetch::Hardware, ..Case::new(60, Way::Receive, 1) };
    assert!(rate(&case).mpps() < 0.9 * case.expected_mpps(), "read-ahead for 250 cycles of latency came from nowhere");
}

//! One fault planted, one report expected.

use super::*;
use crate::synth::{self, Kind, Rng};

/// 200 UDP frames over 4 queues.
fn traffic() -> Vec<(Lane, Vec<u8>)> {
    let mut rng = Rng::new(11);
    (0..200)
        .map(|n| {
            let lane = Lane { point: Point::Function(0), queue: Some(n % 4) };
            (lane, synth::frame(Kind::Udp4, &synth::Ethernet::random(&mut rng), 60 + 3 * n as usize, &mut rng))
        })
        .collect()
}

fn items(frames: &[(Lane, Vec<u8>)], with_input: bool) -> Vec<Item<'_>> {
    frames
        .iter()
        .enumerate()
        .map(|(at, (lane, data))| Item { input: with_input.then_some(at as u64), ..Item::new(*lane, data) })
        .collect()
}

/// The only difference between `traffic()` and what `change` makes of it.
fn only(change: impl Fn(&mut Vec<(Lane, Vec<u8>)>)) -> Difference {
    let expected = traffic();
    let mut got = traffic();
    change(&mut got);
    let differences = compare(&items(&expected, false), &items(&got, false), &Ignore::default());
    assert_eq!(differences.len(), 1, "{differences:#?}");
    differences.into_iter().next().unwrap()
}

#[test]
fn equal_is_equal() {
    let frames = traffic();
    assert_eq!(compare(&items(&frames, true), &items(&frames, true), &Ignore::default()), []);
}

#[test]
fn a_lost_frame_is_one_report() {
    let difference = only(|got| drop(got.remove(57)));
    assert_eq!(
        (difference.class, difference.expected, difference.got, difference.count),
        (Class::Lost, Some(57), None, 1)
    );
    assert_eq!(difference.lane.queue, Some(1));
    assert!(difference.to_string().starts_with("fn0 queue 1: lost, expected frame 57; udp "), "{difference}");
}

#[test]
fn all_lost_of_a_queue_are_one_report() {
    let difference = only(|got| got.retain(|(lane, _)| lane.queue != Some(2)));
    assert_eq!((difference.class, difference.expected, difference.count), (Class::Lost, Some(2), 50));
}

#[test]
fn a_duplicate_is_extra() {
    let difference = only(|got| got.insert(61, got[60].clone()));
    assert_eq!((difference.class, difference.duplicate_of), (Class::Extra, Some(60)));
}

#[test]
fn a_flipped_bit_is_told_by_field_and_offset() {
    let difference = only(|got| got[100].1[29] ^= 0x40);
    assert_eq!((difference.class, difference.byte, difference.field), (Class::Corrupt, Some(29), Some("ip.src")));
    let original = traffic()[100].1[26..30].to_vec();
    assert_eq!(difference.value_expected, hex(&original));
    assert_ne!(difference.value_expected, difference.value_got);
}

#[test]
fn a_systematic_fault_is_one_report() {
    let difference = only(|got| got.iter_mut().for_each(|(_, data)| *data.last_mut().unwrap() ^= 1));
    assert_eq!((difference.class, difference.field, difference.count), (Class::Corrupt, Some("payload"), 200));
}

#[test]
fn another_queue_is_misrouted() {
    let difference = only(|got| got[8].0.queue = Some(3));
    assert_eq!((difference.class, difference.field), (Class::Misrouted, Some("queue")));
    assert_eq!((difference.value_expected.as_str(), difference.value_got.as_str()), ("0", "3"));
}

#[test]
fn two_swapped_are_reordered() {
    let difference = only(|got| got.swap(40, 44));
    assert_eq!((difference.class, difference.count), (Class::Reordered, 1));
}

#[test]
fn a_shorter_frame_is_of_wrong_length() {
    let difference = only(|got| got[9].1.truncate(70));
    assert_eq!((difference.class, difference.byte), (Class::WrongLength, Some(70)));
    assert_eq!((difference.value_expected.as_str(), difference.value_got.as_str()), ("87", "70"));
}

/// A lost frame beside a corrupt one: two causes, and neither taken for the other.
#[test]
fn neighbours_are_not_mixed_up() {
    for with_input in [false, true] {
        let expected = traffic();
        let mut got = traffic();
        got[24].1[50] ^= 0xff;
        let expected_items = items(&expected, with_input);
        let mut got_items = items(&got, with_input);
        got_items.remove(20);
        let differences = compare(&expected_items, &got_items, &Ignore::default());
        let found: Vec<_> = differences.iter().map(|difference| (difference.class, difference.expected)).collect();
        assert_eq!(found, [(Class::Lost, Some(20)), (Class::Corrupt, Some(24))]);
    }
}

#[test]
fn side_fields_count_where_both_sides_know_them() {
    let frames = traffic();
    let expected: Vec<_> = items(&frames, false);
    let mut got = expected.clone();
    got[3].side.hash = Some(1);
    assert_eq!(compare(&expected, &got, &Ignore::default()), [], "unknown on one side");
    let mut expected = expected;
    expected[3].side.hash = Some(2);
    let differences = compare(&expected, &got, &Ignore::default());
    assert_eq!(differences.len(), 1);
    assert_eq!((differences[0].class, differences[0].field), (Class::Side, Some("hash")));
    assert_eq!(compare(&expected, &got, &Ignore::fields(["hash"])), []);
}

#[test]
fn ignored_fields_do_not_differ() {
    let expected = traffic();
    let mut got = traffic();
    got[5].1[24] ^= 1;
    assert_eq!(compare(&items(&expected, false), &items(&got, false), &Ignore::fields(["ip.checksum"])), []);
    assert_eq!(compare(&items(&expected, false), &items(&got, false), &Ignore::fields(["ip.ttl"])).len(), 1);
}

/// Two lanes exchange frames: each leaves a gap that another frame fills, and still none of them is corrupt.
#[test]
fn a_frame_that_is_whole_elsewhere_is_misrouted_and_nothing_else() {
    let lane = |queue| Lane { point: Point::Function(0), queue: Some(queue) };
    let frames: Vec<[u8; 60]> = (0..6).map(|n| [n; 60]).collect();
    let item = |queue, n: usize| Item::new(lane(queue), &frames[n]);
    let expected = [item(0, 0), item(0, 1), item(0, 2), item(1, 3), item(1, 4), item(1, 5)];
    let got = [item(0, 0), item(0, 4), item(0, 2), item(1, 3), item(1, 1), item(1, 5)];
    let found = compare(&expected, &got, &Ignore::default());
    let [difference] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (difference.class, difference.expected, difference.got, difference.count),
        (Class::Misrouted, Some(1), Some(4), 2)
    );
}

/// What loses every third frame asks for no queue: one report, told by the first in the input's order.
#[test]
fn frames_lost_from_several_queues_are_one_cause() {
    let frames: Vec<[u8; 60]> = (0..12).map(|n| [n; 60]).collect();
    let item = |n: usize| {
        let lane = Lane { point: Point::Function(0), queue: Some(3 - n as u32 % 4) };
        Item { input: Some(n as u64), ..Item::new(lane, &frames[n]) }
    };
    let mut expected: Vec<_> = (0..12).map(item).collect();
    expected.sort_by_key(|item| item.lane.queue);
    let got: Vec<_> = expected.iter().copied().filter(|item| item.input.is_some_and(|n| n % 3 != 1)).collect();
    let found = compare(&expected, &got, &Ignore::default());
    let [difference] = &found[..] else { panic!("{found:?}") };
    assert_eq!((difference.class, difference.input, difference.count), (Class::Lost, Some(1), 4));
}

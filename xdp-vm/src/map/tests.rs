//! Each map type against the kernel's rules for it.

use super::*;

fn map(map_type: MapType, key: u32, value: u32, entries: u32) -> Map {
    let spec = MapSpec::new("m", map_type, key, value, entries);
    spec.check(2, 1 << 30).unwrap();
    Map::new(spec, 2)
}

fn key(n: u32) -> [u8; 4] {
    n.to_le_bytes()
}

#[test]
fn an_array_is_full_from_the_beginning() {
    let mut map = map(MapType::Array, 4, 6, 3);
    assert_eq!(map.len(), 3);
    assert_eq!(map.lookup(&key(2)), Some(vec![&[0; 6][..]]));
    assert_eq!(map.lookup(&key(3)), None);
    assert_eq!(map.update(&key(3), &[1; 6], ANY), Err(MapError::TooBig));
    assert_eq!(map.update(&key(0), &[1; 6], NO_EXIST), Err(MapError::Exists));
    assert_eq!(map.update(&key(0), &[1; 5], ANY), Err(MapError::Invalid));
    assert_eq!(map.update(&key(0), &[1; 6], 3), Err(MapError::Invalid));
    assert_eq!(map.update(&key(0), &[1; 6], EXIST), Ok(()));
    assert_eq!(map.delete(&key(0)), Err(MapError::Invalid));
    assert_eq!(map.keys(), [key(0), key(1), key(2)]);
}

#[test]
fn a_lock_is_asked_for_only_where_there_is_one() {
    const LOCK: u64 = 4;
    let mut hash = map(MapType::Hash, 4, 8, 2);
    assert_eq!(hash.update(&key(7), &[1; 8], ANY | LOCK), Err(MapError::Invalid));
    let mut array = map(MapType::Array, 4, 8, 2);
    assert_eq!(array.update(&key(1), &[1; 8], ANY | LOCK), Err(MapError::Invalid));
    assert_eq!(array.update(&key(2), &[1; 8], ANY | LOCK), Err(MapError::TooBig), "the index comes first");
    let spec = MapSpec { has_lock: true, ..MapSpec::new("m", MapType::Hash, 4, 8, 2) };
    let mut map = Map::new(spec, 1);
    assert_eq!(map.update(&key(7), &[1; 8], EXIST | LOCK), Err(MapError::NoEntry));
    assert_eq!(map.update(&key(7), &[1; 8], ANY | LOCK), Ok(()));
}

#[test]
fn a_hash_that_is_full_says_so() {
    let mut map = map(MapType::Hash, 4, 4, 2);
    assert_eq!(map.update(&key(7), &key(1), EXIST), Err(MapError::NoEntry));
    map.update(&key(7), &key(1), ANY).unwrap();
    map.update(&key(8), &key(2), NO_EXIST).unwrap();
    assert_eq!(map.update(&key(9), &key(3), ANY), Err(MapError::TooBig));
    map.update(&key(7), &key(4), ANY).unwrap();
    map.delete(&key(8)).unwrap();
    assert_eq!(map.delete(&key(8)), Err(MapError::NoEntry));
    assert_eq!(map.lookup(&key(7)), Some(vec![&key(4)[..]]));
    assert_eq!(map.len(), 1);
}

#[test]
fn cpus_have_values_of_their_own() {
    let mut map = map(MapType::PerCpuHash, 4, 4, 2);
    map.update_cpu(&key(1), &key(5), ANY, 1).unwrap();
    assert_eq!(map.lookup(&key(1)), Some(vec![&key(0)[..], &key(5)[..]]));
    assert_eq!(map.lookup_cpu(&key(1), 1), Some(&key(5)[..]));
    assert_eq!(map.update_cpu(&key(1), &key(5), ANY, 2), Err(MapError::Invalid));
    map.update(&key(1), &key(6), ANY).unwrap();
    assert_eq!(map.lookup(&key(1)), Some(vec![&key(6)[..]; 2]));
}

#[test]
fn the_longest_prefix_wins() {
    fn prefix(len: u32, data: [u8; 4]) -> [u8; 8] {
        let mut key = [0; 8];
        key[..4].copy_from_slice(&len.to_le_bytes());
        key[4..].copy_from_slice(&data);
        key
    }
    let mut map = map(MapType::LpmTrie, 8, 4, 4);
    for (len, data, value) in [(8, [10, 0, 0, 0], 1), (24, [10, 1, 2, 99], 2), (0, [9; 4], 3), (31, [10, 1, 2, 4], 4)] {
        map.update(&prefix(len, data), &key(value), ANY).unwrap();
    }
    assert_eq!(map.update(&prefix(32, [1; 4]), &key(9), ANY), Err(MapError::NoSpace));
    for flags in [ANY, NO_EXIST, EXIST] {
        assert_eq!(map.update(&prefix(33, [1; 4]), &key(9), flags), Err(MapError::Invalid));
    }
    assert_eq!(map.delete(&prefix(33, [1; 4])), Err(MapError::Invalid));
    assert_eq!(map.keys()[1], prefix(24, [10, 1, 2, 99]), "as it was given");
    map.update(&prefix(24, [10, 1, 2, 98]), &key(2), EXIST).unwrap();
    assert_eq!(map.keys()[1], prefix(24, [10, 1, 2, 98]), "last");
    let ask = |map: &Map, len, data| map.lookup(&prefix(len, data)).map(|value| value[0][0]);
    assert_eq!(ask(&map, 32, [10, 1, 2, 5]), Some(4));
    assert_eq!(ask(&map, 32, [10, 1, 2, 6]), Some(2));
    assert_eq!(ask(&map, 32, [10, 2, 2, 6]), Some(1));
    assert_eq!(ask(&map, 23, [10, 1, 2, 6]), Some(1), "no longer than the key");
    assert_eq!(ask(&map, 32, [11, 1, 2, 6]), Some(3));
    map.delete(&prefix(31, [10, 1, 2, 5])).unwrap();
    assert_eq!(ask(&map, 32, [10, 1, 2, 5]), Some(2));
}

#[test]
fn queue_and_stack_differ_in_who_leaves_first() {
    for (map_type, order) in [(MapType::Queue, [2, 3]), (MapType::Stack, [3, 2])] {
        let mut map = map(map_type, 0, 4, 2);
        assert_eq!(map.pop(true), Err(MapError::NoEntry));
        map.push(&key(1), ANY).unwrap();
        map.push(&key(2), ANY).unwrap();
        assert_eq!(map.push(&key(3), ANY), Err(MapError::TooBig));
        map.push(&key(3), EXIST).unwrap();
        assert_eq!(map.pop(false), Ok(&key(order[0])[..]));
        assert_eq!(map.pop(true), Ok(&key(order[0])[..]));
        assert_eq!(map.pop(true), Ok(&key(order[1])[..]));
        assert!(map.is_empty());
    }
}

#[test]
fn entries_of_device_maps_come_and_go() {
    let mut map = map(MapType::DevMap, 4, 8, 4);
    assert_eq!(map.lookup(&key(1)), None);
    map.update(&key(1), &[7, 0, 0, 0, 2, 0, 0, 0], ANY).unwrap();
    assert_eq!((map.word(1), map.second_word(1)), (7, 2));
    assert_eq!(map.update(&key(4), &[0; 8], ANY), Err(MapError::TooBig));
    assert_eq!(map.keys(), [key(1)]);
    map.delete(&key(1)).unwrap();
    assert_eq!(map.delete(&key(1)), Err(MapError::NoEntry));
}

#[test]
fn windows_stay_within_one_value() {
    let map = map(MapType::Array, 4, 12, 2);
    assert_eq!(map.window(4, 8), Some(4..12));
    assert_eq!(map.window(5, 8), None);
    assert_eq!(map.window(16, 12), Some(16..28));
    assert_eq!(map.window(28, 1), None, "between value and stride");
    assert_eq!(map.window(32, 1), None);
    assert_eq!(map.window(u32::MAX, 8), None);
}

#[test]
fn sizes_that_do_not_go_together_are_refused() {
    let check = |map_type, key, value, entries| MapSpec::new("m", map_type, key, value, entries).check(4, 1 << 20);
    assert_eq!(check(MapType::Array, 8, 4, 1), Err(MapProblem::KeySize(8)));
    assert_eq!(check(MapType::Array, 4, 0, 1), Err(MapProblem::ValueSize(0)));
    assert_eq!(check(MapType::Array, 4, 4, 0), Err(MapProblem::NoMaxEntries));
    assert_eq!(check(MapType::RingBuf, 0, 0, 5000), Err(MapProblem::MaxEntries(5000)));
    assert_eq!(check(MapType::LpmTrie, 4, 4, 1), Err(MapProblem::KeySize(4)));
    assert_eq!(check(MapType::HashOfMaps, 4, 4, 1), Err(MapProblem::NoInnerMap));
    assert!(matches!(check(MapType::PerCpuArray, 4, 4096, 1 << 20), Err(MapProblem::TooLarge { .. })));
    assert!(matches!(check(MapType::Hash, 4, 1 << 26, u32::MAX >> 2), Err(MapProblem::TooLarge { .. })));
}
use crate::error::MapProblem;

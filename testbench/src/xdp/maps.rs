//! A map's entries as text: set from the command line, shown as JSON.
//!
//! `NAME[KEY]=VALUE`. Keys and values are numbers (decimal or `0x…`, little-endian, as wide as the map has them), addresses
//! (`192.0.2.1`, `2001:db8::1`, `02:00:00:00:00:01`: in network order), prefixes (`10.0.0.0/8`: of a prefix map), `hex:…`
//! for bytes as they are, or the name of a program where the map holds programs.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::str::FromStr;

use serde_json::{Value, json};
use xdp_vm::{ANY, Map, MapError, MapType, Vm};

/// An entry to be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapSetting {
    /// The map.
    pub map: String,
    /// Its key, as text.
    pub key: String,
    /// Its value, as text.
    pub value: String,
}

impl FromStr for MapSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no entry: NAME[KEY]=VALUE");
        let (map, rest) = text.split_once('[').ok_or_else(wrong)?;
        let (key, value) = rest.split_once("]=").ok_or_else(wrong)?;
        if map.is_empty() || key.is_empty() || value.is_empty() {
            return Err(wrong());
        }
        Ok(Self { map: map.into(), key: key.into(), value: value.into() })
    }
}

/// An entry that can't be set.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SettingError {
    /// No map of this name.
    #[error("there is no map {name}; the program uses {}", if there.is_empty() { "none" } else { there })]
    NoMap {
        /// The name.
        name: String,
        /// Those that there are.
        there: String,
    },
    /// A key or value that is nothing the map could hold.
    #[error("map {map}: `{text}` is no {what} of {bytes} bytes: {why}")]
    Text {
        /// The map.
        map: String,
        /// As given.
        text: String,
        /// Key or value.
        what: &'static str,
        /// How long it has to be.
        bytes: usize,
        /// What is wrong.
        why: String,
    },
    /// The map refuses the entry.
    #[error("map {map} refuses [{key}]: {why}")]
    Refused {
        /// The map.
        map: String,
        /// As given.
        key: String,
        /// As the kernel would.
        why: MapError,
    },
}

/// Set one entry.
///
/// # Errors
/// [`SettingError`].
pub fn set(vm: &mut Vm, setting: &MapSetting) -> Result<(), SettingError> {
    let MapSetting { map: name, key: key_text, value: value_text } = setting;
    let Some(map) = vm.map(name) else {
        let there: Vec<&str> = vm.maps().iter().map(Map::name).collect();
        return Err(SettingError::NoMap { name: name.clone(), there: there.join(", ") });
    };
    let (key_bytes, value_bytes) = (map.spec().key_size as usize, map.spec().value_size as usize);
    let text =
        |text: &str, what, bytes, why| SettingError::Text { map: name.clone(), text: text.into(), what, bytes, why };
    let key = bytes(key_text, key_bytes).map_err(|why| text(key_text, "key", key_bytes, why))?;
    let program = (map.map_type() == MapType::ProgArray).then(|| vm.program_id(value_text)).flatten();
    let value = match program {
        Some(id) => id.to_le_bytes().to_vec(),
        None => bytes(value_text, value_bytes).map_err(|why| text(value_text, "value", value_bytes, why))?,
    };
    let refused = |why| SettingError::Refused { map: name.clone(), key: key_text.clone(), why };
    match vm.map_mut(name) {
        Some(map) => map.update(&key, &value, ANY).map_err(refused),
        None => Ok(()),
    }
}

/// A text as so many bytes.
fn bytes(text: &str, len: usize) -> Result<Vec<u8>, String> {
    let exactly = |bytes: Vec<u8>| match bytes.len() == len {
        true => Ok(bytes),
        false => Err(format!("that is {} bytes", bytes.len())),
    };
    if let Some(hex) = text.strip_prefix("hex:") {
        return exactly(crate::vectors::hex(hex).ok_or("not an even number of hexadecimal digits")?);
    }
    if let Some((address, bits)) = text.split_once('/') {
        let bits: u32 = bits.parse().map_err(|_| "the length of a prefix is a number".to_string())?;
        let address = ip_bytes(address).ok_or("what stands before the `/` is no address")?;
        return exactly([&bits.to_le_bytes()[..], &address].concat());
    }
    if let Some(address) = ip_bytes(text).or_else(|| mac_bytes(text)) {
        return exactly(address);
    }
    let number = match text.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let number = number.ok_or("neither a number nor an address, prefix or hex:…")?.to_le_bytes();
    match number.get(len..) {
        Some(rest) if rest.iter().any(|byte| *byte != 0) => Err("the number is wider".into()),
        Some(_) => Ok(number[..len].to_vec()),
        None => Ok([&number[..], &vec![0; len - number.len()]].concat()),
    }
}

fn ip_bytes(text: &str) -> Option<Vec<u8>> {
    Some(match text.parse().ok()? {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    })
}

fn mac_bytes(text: &str) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes.filter(|bytes| bytes.len() == 6)
}

/// All maps, by name, with everything in them. Records and elements that only come out by being taken are taken.
pub fn dump(vm: &mut Vm) -> Value {
    let mut maps = serde_json::Map::new();
    for id in 0..vm.maps().len() as u32 {
        if let Some(map) = vm.map_mut_by_id(id) {
            maps.insert(map.name().to_string(), dump_one(map));
        }
    }
    Value::Object(maps)
}

fn dump_one(map: &mut Map) -> Value {
    let spec = map.spec();
    let mut object = json!({
        "type": MapType::kernel_name(spec.map_type as u32), "key_bytes": spec.key_size, "value_bytes": spec.value_size,
        "max_entries": spec.max_entries,
    });
    match map.map_type() {
        MapType::RingBuf | MapType::PerfEventArray => {
            let records: Vec<Value> =
                std::iter::from_fn(|| map.pop_record().map(|record| hex(record).into())).collect();
            object["records"] = records.into();
            object["lost_records"] = map.lost_records().into();
        }
        MapType::Queue | MapType::Stack => {
            let elements: Vec<Value> = std::iter::from_fn(|| map.pop(true).ok().map(shown)).collect();
            object["elements"] = elements.into();
        }
        _ => object["entries"] = entries(map).into(),
    }
    object
}

fn entries(map: &Map) -> Vec<Value> {
    let entry = |key: Vec<u8>| {
        let values: Vec<Value> = map.lookup(&key)?.into_iter().map(shown).collect();
        let mut entry = json!({ "key": shown(&key) });
        if map.map_type().is_per_cpu() {
            entry["per_cpu"] = values.into();
        } else {
            entry["value"] = values.into_iter().next()?;
        }
        Some(entry)
    };
    map.keys().into_iter().filter_map(entry).collect()
}

/// As a number where it can be one, and as bytes.
fn shown(bytes: &[u8]) -> Value {
    let mut word = [0; 8];
    match (bytes.len(), word.get_mut(..bytes.len())) {
        (1 | 2 | 4 | 8, Some(low)) => {
            low.copy_from_slice(bytes);
            json!({ "hex": hex(bytes), "number": u64::from_le_bytes(word) })
        }
        _ => json!({ "hex": hex(bytes) }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_as_text() {
        let setting: MapSetting = "ports[53]=0x1".parse().expect("an entry");
        assert_eq!(setting, MapSetting { map: "ports".into(), key: "53".into(), value: "0x1".into() });
        assert!(
            ["ports", "ports[53]", "[1]=2", "ports[]=1", "ports[1]="].iter().all(|t| t.parse::<MapSetting>().is_err())
        );
    }

    #[test]
    fn numbers_are_little_endian_and_addresses_are_not() {
        assert_eq!(bytes("258", 4), Ok(vec![2, 1, 0, 0]));
        assert_eq!(bytes("0xff", 1), Ok(vec![255]));
        assert_eq!(bytes("192.0.2.1", 4), Ok(vec![192, 0, 2, 1]));
        assert_eq!(bytes("10.0.0.0/8", 8), Ok(vec![8, 0, 0, 0, 10, 0, 0, 0]));
        assert_eq!(bytes("02:00:00:00:00:01", 6), Ok(vec![2, 0, 0, 0, 0, 1]));
        assert_eq!(bytes("hex:0a0B", 2), Ok(vec![10, 11]));
        assert_eq!(bytes("1", 20).map(|bytes| bytes.len()), Ok(20));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(bytes("256", 1), Err("the number is wider".into()));
        assert_eq!(bytes("192.0.2.1", 8), Err("that is 4 bytes".into()));
        assert!(bytes("eth0", 4).is_err() && bytes("hex:0", 1).is_err() && bytes("x/8", 8).is_err());
    }
}

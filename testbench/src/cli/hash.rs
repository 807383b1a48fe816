//! `onic hash`: the hash of a tuple or a frame by either function, the key in all its spellings, and measured vectors.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Context, anyhow};
use models::rss::{self, HashFunction, HashInput, Key, MicrosoftInput, OpennicInput};
use serde_json::json;
use traces::golden::measured::{self, Row};

use super::args::{HashArg, HashArgs};
use super::exit::{Exit, Failure};
use crate::vectors;

pub(super) fn run(args: &HashArgs) -> Result<Exit, Failure> {
    let key = args.key.as_deref().map_or(Ok(Key::DEFAULT), |text| text.parse::<Key>().context("--key"))?;
    let words: Vec<&str> = args.what.iter().map(String::as_str).collect();
    match words[..] {
        ["key"] => print_key(&key, args.json),
        ["check", file] => return check(Path::new(file), args),
        ["frame", hex] => {
            let frame = vectors::hex(hex).ok_or_else(|| anyhow!("the frame is no row of hexadecimal bytes"))?;
            let inputs =
                [HashFunction::Opennic, HashFunction::Microsoft].map(|function| HashInput::parse(function, &frame));
            print_hashes(&key, &inputs, args);
        }
        [source, destination] => print_hashes(&key, &tuple(source, destination, None)?, args),
        [source, destination, protocol] => print_hashes(&key, &tuple(source, destination, Some(protocol))?, args),
        _ => {
            let error = anyhow!("`hash {}` is none of the forms", words.join(" "));
            return Err(Failure::from(error).hint(
                "onic hash 192.0.2.1:1000 198.51.100.1:9 udp · hash frame HEX · hash check FILE.csv · hash key",
            ));
        }
    }
    Ok(Exit::Agreed)
}

fn wanted(args: &HashArgs, function: HashFunction) -> bool {
    match args.function {
        None => true,
        Some(HashArg::Opennic) => function == HashFunction::Opennic,
        Some(HashArg::Microsoft) => function == HashFunction::Microsoft,
    }
}

fn print_key(key: &Key, json: bool) {
    if json {
        let registers: Vec<String> = (0..10).map(|i| format!("{:#010x}", key.word(i))).collect();
        println!(
            "{}",
            json!({ "version": 1, "ethtool": key.to_string(), "number": key.number().to_string(), "registers": registers })
        );
        return;
    }
    println!("ethtool  {key}");
    println!("number   {}", key.number());
    (0..10).for_each(|i| println!("{:#06x}   {:#010x}", 0x600 + 4 * i, key.word(i)));
}

/// The two functions' inputs of a tuple.
fn tuple(source: &str, destination: &str, protocol: Option<&str>) -> Result<[HashInput; 2], Failure> {
    let (from, from_port) = endpoint(source)?;
    let (to, to_port) = endpoint(destination)?;
    let has_ports = from_port.is_some() && to_port.is_some();
    let protocol = match protocol {
        Some("tcp") | None => 6,
        Some("udp") => 17,
        Some("icmp") => 1,
        Some(number) => number.parse().map_err(|_| anyhow!("`{number}` is no protocol: tcp, udp, icmp, or 0…255"))?,
    };
    let (sport, dport) = (from_port.unwrap_or(0), to_port.unwrap_or(0));
    let ports_count = has_ports && matches!(protocol, 6 | 17);
    Ok(match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (source, destination) = (from.octets(), to.octets());
            let microsoft = match ports_count {
                true => MicrosoftInput::Ipv4Ports { source, destination, source_port: sport, destination_port: dport },
                false => MicrosoftInput::Ipv4 { source, destination },
            };
            [
                HashInput::Opennic(OpennicInput::tuple(protocol, source, destination, sport, dport)),
                HashInput::Microsoft(microsoft),
            ]
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let (source, destination) = (from.octets(), to.octets());
            let microsoft = match ports_count {
                true => MicrosoftInput::Ipv6Ports { source, destination, source_port: sport, destination_port: dport },
                false => MicrosoftInput::Ipv6 { source, destination },
            };
            // The card hashes no IPv6: no field, hash 0.
            [HashInput::Opennic(OpennicInput::default()), HashInput::Microsoft(microsoft)]
        }
        _ => return Err(anyhow!("{source} and {destination} are of two IP versions").into()),
    })
}

fn endpoint(text: &str) -> Result<(IpAddr, Option<u16>), Failure> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((address.ip(), Some(address.port())));
    }
    let ip = text.parse().map_err(|_| anyhow!("`{text}` is no address"));
    Ok((ip.map_err(|e| Failure::from(e).hint("192.0.2.1, 192.0.2.1:1000, 2001:db8::1 or [2001:db8::1]:1000"))?, None))
}

fn print_hashes(key: &Key, inputs: &[HashInput; 2], args: &HashArgs) {
    let rows: Vec<_> = [HashFunction::Opennic, HashFunction::Microsoft]
        .into_iter()
        .zip(inputs)
        .filter(|(function, _)| wanted(args, *function))
        .map(|(function, input)| (function, input, input.hash(key.bytes())))
        .collect();
    if args.json {
        let list: Vec<_> = rows
            .iter()
            .map(|(function, input, hash)| {
                let entry = rss::indirection_index(*hash);
                json!({ "function": function.name(), "hash": format!("{hash:08x}"), "entry": entry,
                        "queue": args.queues.map(|n| entry as u16 % n.max(1)), "fields": input.to_string() })
            })
            .collect();
        println!("{}", json!({ "version": 1, "hashes": list }));
        return;
    }
    for (function, input, hash) in rows {
        let entry = rss::indirection_index(hash);
        let queue = args.queues.map(|n| format!("  queue {}", entry as u16 % n.max(1))).unwrap_or_default();
        println!("{:<10} {hash:08x}  entry {entry:>3}{queue}  {input}", function.name());
    }
}

/// Hold a file of measured hashes against a profile, or against the RTL.
fn check(path: &Path, args: &HashArgs) -> Result<Exit, Failure> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("{name}"))?;
    let rows = measured::parse(&text).with_context(|| format!("{name}"))?;
    if rows.is_empty() {
        eprintln!("{name}: no rows");
        return Ok(Exit::NothingCompared);
    }
    let computed = match args.profile.as_str() {
        "upstream" => vectors::upstream(&rows)?,
        "corrected" => vectors::corrected(&rows)?,
        "rtl" => rtl_hashes(&rows)?,
        other => return Err(anyhow!("--profile {other}: upstream, corrected or rtl").into()),
    };
    let mismatches = vectors::compare(&rows, &computed);
    let agreed = rows.len() - mismatches.len();
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for mismatch in &mismatches {
        match mismatch.reason.filter(|_| args.profile != "upstream") {
            Some(reason) => *classes.entry(reason.name()).or_default() += 1,
            None => unexplained.push(mismatch),
        }
    }
    if args.json {
        let list: Vec<_> = unexplained
            .iter()
            .map(|m| json!({ "row": m.row, "measured": format!("{:08x}", m.measured), "computed": format!("{:08x}", m.computed) }))
            .collect();
        println!(
            "{}",
            json!({ "version": 1, "rows": rows.len(), "agreed": agreed, "expected_differences": classes, "unexplained": list })
        );
    } else {
        println!("{name}: {} rows, {agreed} agree with {}", rows.len(), args.profile);
        classes.iter().for_each(|(class, count)| println!("  {count:>5} differ as they must: {class}"));
        for m in unexplained.iter().take(10) {
            println!("  row {}: measured {:08x}, computed {:08x}", m.row, m.measured, m.computed);
        }
        if !unexplained.is_empty() {
            println!("  {:>5} differ without a reason", unexplained.len());
        }
    }
    Ok(if unexplained.is_empty() { Exit::Agreed } else { Exit::Difference })
}

#[cfg(feature = "rtl")]
fn rtl_hashes(rows: &[Row]) -> Result<Vec<u32>, Failure> {
    crate::rtl_hash::hashes(rows).map_err(|error| Failure::new(Exit::Difference, error))
}

#[cfg(not(feature = "rtl"))]
fn rtl_hashes(_rows: &[Row]) -> Result<Vec<u32>, Failure> {
    Err(Failure::new(Exit::ToolMissing, anyhow!("this onic was built without RTL (ONIC_NO_RTL=1)")))
}

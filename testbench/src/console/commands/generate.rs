//! `gen`: frames from the host to the wire.

use anyhow::anyhow;
use regs::FuncId;

use super::{Call, Said, Spec, interface_of};
use crate::console::{CommandError, Console};
use crate::frames::{self, UDP_HEADERS};
use crate::run::HostFrame;

pub(super) const SPEC: Spec = Spec {
    name: "gen",
    usage: &["gen udp [--count N] [--msg-size BYTES] [--flows N] [DEV] [&]"],
    about: "UDP frames from the host to the wire",
    more: "1000 of 18 bytes in 8 flows unless told otherwise. A flow keeps its queue.",
    background: true,
    run,
};

/// More at a time would only fill memory.
const COUNT_MAX: u64 = 10_000_000;

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    if words.word("udp")? != "udp" {
        return Err(words.usage("only udp can be made"));
    }
    let (mut count, mut msg_size, mut flows, mut name) = (1000u64, 18usize, 8u16, None);
    while let Some(word) = words.next() {
        match word {
            "--count" => count = words.number("--count")?,
            "--msg-size" => msg_size = words.number("--msg-size")?,
            "--flows" => flows = words.number("--flows")?,
            option if option.starts_with("--") => return Err(words.usage(format_args!("there is no {option}"))),
            device if name.is_none() => name = Some(device),
            other => return Err(words.usage(format_args!("`{other}` is one word too many"))),
        }
    }
    if count > COUNT_MAX || flows == 0 {
        return Err(words.usage(format_args!("up to {COUNT_MAX} frames, at least one flow")));
    }
    let interface = interface_of(console, name)?;
    let config = console.session.driver(interface).config();
    let (queues, mtu) = (config.queues, config.mtu);
    let longest = usize::from(mtu) + 14 - UDP_HEADERS;
    if msg_size > longest {
        return Err(CommandError::failed(format!(
            "--msg-size {msg_size}: {interface}'s MTU of {mtu} carries {longest} bytes of UDP payload"
        )));
    }
    let made: Result<Vec<HostFrame>, _> = (0..count)
        .map(|number| {
            let flow = (number % u64::from(flows)) as u16;
            let data = frames::udp(flow, number, msg_size)?;
            Ok(HostFrame { func: FuncId(interface.0), queue: flow % queues, data })
        })
        .collect();
    let made = made.map_err(|error: etherparse::err::packet::BuildWriteError| anyhow!(error))?;
    let before = console.session.moved();
    console.session.send(made)?;
    if call.background {
        return Ok(format!("{count} frames from {interface}, in the background\n"));
    }
    console.session.wait_sent()?;
    let moved = console.session.moved().since(before);
    Ok(format!("{} frames from the host: {} to the wire\n", moved.host_in, moved.wire_out))
}

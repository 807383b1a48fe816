//! `ip link`: as iproute2 shows and sets it.

use serde_json::{Value, json};

use super::{Call, Said, Spec};
use crate::console::options::Words;
use crate::console::{CommandError, Console, Interface};

pub(super) const SPEC: Spec = Spec {
    name: "ip",
    usage: &["ip [-s] [-j] link [show [dev] DEV]", "ip link set [dev] DEV up|down|mtu N…"],
    about: "Interfaces as iproute2 shows and sets them",
    more: "-s with their totals. The MAC address is made up, as the vendor's driver makes one up: the \
           card filters by none.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let (mut statistics, mut as_json) = (false, console.settings.json);
    while let Some(option) = words.peek().filter(|word| word.starts_with('-')) {
        match option {
            "-s" | "-stats" | "-statistics" => statistics = true,
            "-j" | "-json" => as_json = true,
            "-sj" | "-js" => (statistics, as_json) = (true, true),
            other => return Err(words.usage(format_args!("ip has no option {other} here"))),
        }
        words.next();
    }
    match words.word("link")? {
        "link" | "l" => {}
        other => return Err(words.usage(format_args!("ip {other} is not here; ip link is"))),
    }
    match words.next() {
        Some("set") => set(console, words),
        Some("show" | "list" | "ls") => show(console, words, statistics, as_json),
        None => show(console, words, statistics, as_json),
        Some(other) => Err(words.usage(format_args!("ip link {other} is not here"))),
    }
}

enum Change {
    Up,
    Down,
    Mtu(u16),
}

fn set(console: &mut Console, mut words: Words<'_>) -> Said {
    words.take("dev");
    let interface = console.session.interface(words.word("DEV")?)?;
    let mut changes = Vec::new();
    while let Some(word) = words.next() {
        changes.push(match word {
            "up" => Change::Up,
            "down" => Change::Down,
            "mtu" => Change::Mtu(words.number("mtu")?),
            other => return Err(words.usage(format_args!("ip link set can't set `{other}`"))),
        });
    }
    if changes.is_empty() {
        return Err(words.usage("nothing is to be set"));
    }
    // Everything is checked before anything is done, as the kernel checks a message whole.
    let range = console.session.driver(interface).mtu_range();
    for change in &changes {
        if let Change::Mtu(mtu) = change
            && !range.contains(mtu)
        {
            return Err(CommandError::failed(format!(
                "{interface}: MTU {mtu}: this card takes {} to {}",
                range.start(),
                range.end()
            )));
        }
    }
    for change in changes {
        match change {
            Change::Up => console.session.up(interface)?,
            Change::Down => console.session.down(interface)?,
            Change::Mtu(mtu) => console.session.change(interface, |driver| driver.set_mtu(mtu))?,
        }
    }
    Ok(String::new())
}

fn show(console: &mut Console, mut words: Words<'_>, statistics: bool, as_json: bool) -> Said {
    words.take("dev");
    let shown: Vec<Interface> = match words.next() {
        Some(name) => vec![console.session.interface(name)?],
        None => console.session.interfaces().collect(),
    };
    words.end()?;
    let links: Result<Vec<Link>, CommandError> =
        shown.into_iter().map(|interface| Link::read(console, interface)).collect();
    let links = links?;
    if as_json {
        let list: Vec<Value> = links.iter().map(|link| link.json(statistics)).collect();
        return Ok(format!("{}\n", Value::Array(list)));
    }
    Ok(links.iter().map(|link| link.text(statistics)).collect())
}

/// What iproute2 shows of an interface.
struct Link {
    interface: Interface,
    up: bool,
    carrier: bool,
    mtu: u16,
    queues: u16,
    rx: Columns,
    tx: Columns,
}

/// A block of `ip -s`: each column's title, its name in JSON, and its value.
type Columns = [(&'static str, &'static str, u64); 6];

/// Length of the transmit queue that Linux gives to an Ethernet device. Source: `DEFAULT_TX_QUEUE_LEN`.
const QLEN: u16 = 1000;

impl Link {
    fn read(console: &mut Console, interface: Interface) -> Result<Link, CommandError> {
        let driver = console.session.driver(interface);
        let totals = driver.link_statistics().map_err(anyhow::Error::from)?;
        let carrier = match driver.config().own_port {
            Some(port) => driver.link_up(port).map_err(anyhow::Error::from)?,
            // Of a port that it shares a function sees nothing.
            None => true,
        };
        Ok(Link {
            interface,
            up: driver.is_up(),
            carrier,
            mtu: driver.config().mtu,
            queues: driver.config().queues,
            rx: [
                ("bytes", "bytes", totals.rx_bytes()),
                ("packets", "packets", totals.rx_packets()),
                ("errors", "errors", totals.rx_errors()),
                ("dropped", "dropped", totals.rx_dropped()),
                ("missed", "missed_errors", totals.rx_missed()),
                ("mcast", "multicast", totals.multicast()),
            ],
            tx: [
                ("bytes", "bytes", totals.tx_bytes()),
                ("packets", "packets", totals.tx_packets()),
                ("errors", "errors", totals.tx_errors()),
                ("dropped", "dropped", totals.tx_dropped()),
                ("carrier", "carrier_errors", 0),
                ("collsns", "collisions", 0),
            ],
        })
    }

    /// The kernel's index: the loopback interface has 1.
    fn index(&self) -> u32 {
        2 + u32::from(self.interface.0)
    }

    fn flags(&self) -> Vec<&'static str> {
        let mut flags = Vec::new();
        if self.up && !self.carrier {
            flags.push("NO-CARRIER");
        }
        flags.extend(["BROADCAST", "MULTICAST"]);
        if self.up {
            flags.push("UP");
        }
        if self.up && self.carrier {
            flags.push("LOWER_UP");
        }
        flags
    }

    fn state(&self) -> &'static str {
        if self.up && self.carrier { "UP" } else { "DOWN" }
    }

    /// One queue has one discipline; several have one each under `mq`.
    fn discipline(&self) -> &'static str {
        if self.queues > 1 { "mq" } else { "fq_codel" }
    }

    /// Locally administered, the function's number in it.
    fn address(&self) -> String {
        format!("02:00:00:00:00:{:02x}", self.interface.0)
    }

    fn text(&self, statistics: bool) -> String {
        let mut text = format!(
            "{}: {}: <{}> mtu {} qdisc {} state {} mode DEFAULT group default qlen {QLEN}\n    \
             link/ether {} brd ff:ff:ff:ff:ff:ff\n",
            self.index(),
            self.interface,
            self.flags().join(","),
            self.mtu,
            self.discipline(),
            self.state(),
            self.address()
        );
        if statistics {
            text += &block("RX", &self.rx, &self.tx);
            text += &block("TX", &self.tx, &self.rx);
        }
        text
    }

    fn json(&self, statistics: bool) -> Value {
        let mut link = json!({
            "ifindex": self.index(), "ifname": self.interface.to_string(), "flags": self.flags(), "mtu": self.mtu,
            "qdisc": self.discipline(), "operstate": self.state(), "linkmode": "DEFAULT", "group": "default",
            "txqlen": QLEN,
            "link_type": "ether", "address": self.address(), "broadcast": "ff:ff:ff:ff:ff:ff",
        });
        if statistics {
            let side = |columns: &Columns| -> Value {
                Value::Object(columns.iter().map(|(_, name, value)| (name.to_string(), json!(value))).collect())
            };
            link["stats64"] = json!({ "rx": side(&self.rx), "tx": side(&self.tx) });
        }
        link
    }
}

/// Titles over values, columns as wide as the wider of both blocks needs, at least as iproute2 has them.
fn block(name: &str, columns: &Columns, other: &Columns) -> String {
    const LEAST: [usize; 6] = [10, 7, 6, 7, 7, 7];
    let digits = |value: u64| value.to_string().len();
    let width = |i: usize| LEAST[i].max(digits(columns[i].2)).max(digits(other[i].2));
    let titles = (0..6).map(|i| {
        // The block's name takes four places of the first column.
        let width = if i == 0 { width(0) - 4 } else { width(i) };
        format!("{:>width$}", columns[i].0)
    });
    let values = (0..6).map(|i| format!("{:>width$}", columns[i].2, width = width(i)));
    let titles: Vec<String> = titles.collect();
    let values: Vec<String> = values.collect();
    format!("    {name}: {}\n    {}\n", titles.join(" "), values.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_stand_over_their_values() {
        let rx = [
            ("bytes", "", 12_345_678_901),
            ("packets", "", 9),
            ("errors", "", 0),
            ("dropped", "", 0),
            ("missed", "", 0),
            ("mcast", "", 3),
        ];
        let tx = [
            ("bytes", "", 0),
            ("packets", "", 0),
            ("errors", "", 0),
            ("dropped", "", 0),
            ("carrier", "", 0),
            ("collsns", "", 0),
        ];
        assert_eq!(
            block("RX", &rx, &tx),
            "    RX:   bytes packets errors dropped  missed   mcast\n\
             \x20   12345678901       9      0       0       0       3\n"
        );
        assert_eq!(
            block("TX", &tx, &rx),
            "    TX:   bytes packets errors dropped carrier collsns\n\
             \x20             0       0      0       0       0       0\n"
        );
    }
}

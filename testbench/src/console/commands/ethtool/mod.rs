//! `ethtool`: a file for each group of options, laid out as ethtool lays it out.

mod channels;
mod coalesce;
mod fec;
mod info;
mod link;
mod rings;
mod rss;
mod statistics;

use serde_json::Value;

use super::{Call, Said, Spec, interface_of};
use crate::console::options::Words;
use crate::console::{CommandError, Console, Interface};

pub(super) const SPEC: Spec = Spec {
    name: "ethtool",
    usage: &[
        "ethtool [--json] [DEV]",
        "ethtool [--json] -i|-l|-g|-c|-x|-S|--show-fec [DEV]",
        "ethtool -L [DEV] combined N",
        "ethtool -G [DEV] [rx N] [tx N]",
        "ethtool -C [DEV] [rx-usecs N] [rx-frames N]",
        "ethtool -X [DEV] [hkey KEY] [hfunc NAME] [default | [start N] equal N | [start N] weight W0 W1 …]",
        "ethtool --set-fec [DEV] encoding rs|off",
    ],
    about: "What ethtool shows and sets",
    more: "The link; -i driver, -l -L queues, -g -G rings, -c -C interrupt moderation, -x -X receive \
           hashing, -S statistics, --show-fec --set-fec. A request is checked whole before any of it is \
           written.",
    background: false,
    run,
};

/// What is asked of an interface.
struct Ask<'a> {
    interface: Interface,
    /// What follows its name.
    words: Words<'a>,
    json: bool,
}

/// What an option does.
#[derive(Clone, Copy)]
enum Action {
    /// It shows something, and takes nothing but an interface.
    Show(fn(&mut Console, Ask<'_>) -> Said),
    /// It sets what the words after the interface say.
    Set(fn(&mut Console, Ask<'_>) -> Said),
}

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let json = words.take("--json") || console.settings.json;
    let action = match words.peek() {
        Some(option) if option.starts_with('-') => {
            words.next();
            action(option).ok_or_else(|| words.usage(format_args!("there is no {option} here")))?
        }
        _ => Action::Show(link::show),
    };
    let (name, act) = match action {
        Action::Show(show) => (words.next(), show),
        // Before its own words stands an interface, or none.
        Action::Set(set) => {
            let name = words.peek().filter(|word| word.starts_with("onic"));
            if name.is_some() {
                words.next();
            }
            (name, set)
        }
    };
    let interface = interface_of(console, name)?;
    act(console, Ask { interface, words, json })
}

fn action(option: &str) -> Option<Action> {
    Some(match option {
        "-i" | "--driver" => Action::Show(info::show),
        "-l" | "--show-channels" => Action::Show(channels::show),
        "-L" | "--set-channels" => Action::Set(channels::set),
        "-g" | "--show-ring" => Action::Show(rings::show),
        "-G" | "--set-ring" => Action::Set(rings::set),
        "-c" | "--show-coalesce" => Action::Show(coalesce::show),
        "-C" | "--coalesce" => Action::Set(coalesce::set),
        "-x" | "--show-rxfh-indir" | "--show-rxfh" => Action::Show(rss::show),
        "-X" | "--set-rxfh-indir" | "--rxfh" => Action::Set(rss::set),
        "-S" | "--statistics" => Action::Show(statistics::show),
        "--show-fec" => Action::Show(fec::show),
        "--set-fec" => Action::Set(fec::set),
        _ => return None,
    })
}

/// As ethtool prints JSON: a list of one object, which begins with the interface's name.
fn as_json(interface: Interface, mut object: Value) -> String {
    object["ifname"] = interface.to_string().into();
    format!("{}\n", Value::Array(vec![object]))
}

/// A setting that a driver may lack: `n/a` then.
fn or_na(value: Option<u64>) -> String {
    value.map_or("n/a".into(), |value| value.to_string())
}

/// Nothing was asked to be changed.
fn nothing_to_set(words: &Words<'_>) -> CommandError {
    words.usage("nothing is to be set")
}

//! `expect`: a check that a script makes.

use super::{Call, Said, Spec, interface_of};
use crate::console::options::{Relation, Words};
use crate::console::{CommandError, Console};

pub(super) const SPEC: Spec = Spec {
    name: "expect",
    usage: &[
        "expect -S NAME OP N [DEV]",
        "expect sum in|made|host|wire|drops|inside|missing OP N",
        "expect map pages|mappings|regions|broken OP N",
        "expect log lines OP N",
    ],
    about: "A check, which fails the line",
    more: "Of a row of ethtool -S, a part of the sum of frames, what is held of host memory, lines in \
           the log. OP is one of = != < <= > >=.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let source = words.word("what to look at")?;
    let name = words.word("NAME")?;
    let relation: Relation = words.value("OP")?;
    let wanted: i128 = words.value("N")?;
    let (what, found) = match source {
        "-S" | "--statistics" => {
            let interface = interface_of(console, words.next())?;
            let rows = console.session.driver(interface).statistics().map_err(anyhow::Error::from)?;
            let value =
                rows.get(name).ok_or_else(|| CommandError::failed(format!("ethtool -S has no row `{name}`")))?;
            (format!("{interface} {name}"), i128::from(value))
        }
        "sum" => (name.to_string(), part_of_sum(console, name, &words)?),
        "map" => (name.to_string(), part_of_memory(console, name, &words)?),
        "log" if name == "lines" => ("log lines".into(), console.session.log().len() as i128),
        other => return Err(words.usage(format_args!("nothing is known of `{other} {name}`"))),
    };
    words.end()?;
    if relation.holds(&found, &wanted) {
        return Ok(String::new());
    }
    Err(CommandError::failed(format!("{what} is {found}")))
}

fn part_of_sum(console: &mut Console, name: &str, words: &Words<'_>) -> Result<i128, CommandError> {
    let sum = console.session.sum_by_monitors();
    Ok(match name {
        "in" => sum.wire_in.into(),
        "made" => sum.host_in.into(),
        "host" => sum.host_out.into(),
        "wire" => sum.wire_out.into(),
        "drops" => sum.drops.values().sum::<u64>().into(),
        "inside" => sum.inside.into(),
        "missing" => sum.missing(),
        other => return Err(words.usage(format_args!("the sum has no part `{other}`"))),
    })
}

fn part_of_memory(console: &mut Console, name: &str, words: &Words<'_>) -> Result<i128, CommandError> {
    let counts = console.session.memory();
    let memory = console.session.bench().memory();
    Ok(match name {
        "pages" => counts.pages_out as i128,
        "mappings" => counts.mappings as i128,
        "regions" => counts.regions as i128,
        "broken" => memory.violations().len() as i128 + i128::from(memory.violations_dropped()),
        other => return Err(words.usage(format_args!("host memory has no count `{other}`"))),
    })
}

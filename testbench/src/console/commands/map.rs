//! `map`: what is held of host memory.

use super::{Call, Said, Spec};
use crate::console::Console;
use crate::host_memory::MemoryCounts;

pub(super) const SPEC: Spec = Spec {
    name: "map",
    usage: &["map"],
    about: "Host memory: pages, mappings, regions, broken rules",
    more: "",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    call.words().end()?;
    let MemoryCounts { pages_out, mappings, regions, .. } = console.session.memory();
    let memory = console.session.bench().memory();
    let violations = memory.violations();
    let broken = violations.len() as u64 + memory.violations_dropped();
    let mut said =
        format!("pages out  {pages_out}\nmappings   {mappings}\nregions    {regions}\nbroken     {broken} rules\n");
    violations.iter().for_each(|violation| said += &format!("{violation}\n"));
    Ok(said)
}

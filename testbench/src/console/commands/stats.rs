//! `stats`: where every frame is.

use driver_core::statistics::Traffic;

use super::{Call, Said, Spec};
use crate::console::Console;
use crate::host_memory::MemoryCounts;

pub(super) const SPEC: Spec = Spec {
    name: "stats",
    usage: &["stats"],
    about: "Where every frame is, and what is held of host memory",
    more: "The sum of frames by the card's own counters, and by the testbench's own count; what each interface \
           has moved, and each CPU that drove its queues.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    call.words().end()?;
    let session = &mut console.session;
    let counters = match session.sum_by_counters()? {
        Some(sum) => sum.to_string(),
        None => "can't tell on this card".into(),
    };
    let monitors = session.sum_by_monitors();
    let MemoryCounts { pages_out, mappings, regions, .. } = session.memory();
    let mut said = format!(
        "time      {}\ncounters  {counters}\nmonitors  {monitors}\n\
         memory    {pages_out} pages out, {mappings} mappings, {regions} regions\n",
        session.now()
    );
    for interface in session.interfaces() {
        let driver = session.driver(interface);
        said += &line(&interface.to_string(), &driver.traffic());
        // A worker is what Linux's counters by CPU are: who drove the queues.
        for (worker, traffic) in driver.worker_statistics().iter().enumerate() {
            said += &line(&format!("  cpu {worker}"), traffic);
        }
    }
    if session.given_up() > 0 {
        said += &format!("given up  {} frames from the host, their interface being down\n", session.given_up());
    }
    if !session.log().is_empty() {
        said += &format!("log       {} lines (log)\n", session.log().len());
    }
    Ok(said)
}

fn line(name: &str, traffic: &Traffic) -> String {
    let Traffic { rx_packets, rx_bytes, rx_errors, rx_dropped, tx_packets, tx_bytes, tx_errors, tx_dropped } = traffic;
    format!(
        "{name:<9} rx {rx_packets} packets, {rx_bytes} bytes, {rx_errors} errors, {rx_dropped} dropped; \
         tx {tx_packets} packets, {tx_bytes} bytes, {tx_errors} errors, {tx_dropped} dropped\n"
    )
}

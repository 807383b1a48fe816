//! `recover`: queues that have failed start afresh.

use super::{Call, Said, Spec, interface_of};
use crate::console::{CommandError, Console};

pub(super) const SPEC: Spec = Spec {
    name: "recover",
    usage: &["recover [DEV]"],
    about: "Start afresh each queue that has failed; the others run on",
    more: "Frames on their way to it are lost to the card, and counted there. A down and up does the same for all.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let name = words.next();
    words.end()?;
    let interface = interface_of(console, name)?;
    let mut said = String::new();
    for queue in console.session.recover(interface)? {
        let (side, number, fault) = (queue.side, queue.rel_qid, queue.fault);
        queue.result.map_err(|error| CommandError::failed(format!("{interface}: {side} queue {number}: {error}")))?;
        said += &format!("{interface}: {side} queue {number} runs again, after: {fault}\n");
    }
    Ok(said)
}

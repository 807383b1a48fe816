//! The gallery's catalogue: every known fault of the vendor's driver, in the order and under the numbers of driver.md
//! section 9, with what makes it and what should catch it.

use super::mutants::{control, probe, queues, rx, tx};
use super::scenarios::{self as on, Scenario};
use super::seams::Bend;
use super::vendor::{Buffer, Ways};

/// One fault.
pub struct Row {
    /// Its number.
    pub id: &'static str,
    /// What is broken, in a few words.
    pub broken: &'static str,
    /// How it is made, or why it is not.
    pub made: &'static str,
    /// What is expected to catch it.
    pub expected: &'static str,
    /// Where it stands.
    pub standing: Standing,
}

/// Where a fault stands.
pub enum Standing {
    /// It is here.
    Here(Mutant),
    /// It can't be shown by a driver in user space on one thread; why, says [`Row::made`].
    NotInUserSpace,
    /// It needs XDP programs.
    Xdp,
}

/// A broken driver, and what it is put through.
pub struct Mutant {
    /// What it is put through.
    pub scenario: &'static Scenario,
    /// What is broken.
    pub subject: Subject,
    /// What is expected to catch it first, in the words of [`catch`](mod@super::catch).
    pub by: &'static str,
}

/// A driver with something broken.
#[derive(Clone, Copy)]
pub enum Subject {
    /// driver-core on a bent seam.
    Core(Bend),
    /// The vendor-like driver with one strategy replaced.
    Vendor(fn(&mut Ways)),
}

const fn vendor(
    id: &'static str,
    broken: &'static str,
    made: &'static str,
    by: &'static str,
    expected: &'static str,
    scenario: &'static Scenario,
    change: fn(&mut Ways),
) -> Row {
    Row {
        id,
        broken,
        made,
        expected,
        standing: Standing::Here(Mutant { scenario, subject: Subject::Vendor(change), by }),
    }
}

const fn core(
    id: &'static str,
    broken: &'static str,
    made: &'static str,
    by: &'static str,
    expected: &'static str,
    scenario: &'static Scenario,
    bend: Bend,
) -> Row {
    Row { id, broken, made, expected, standing: Standing::Here(Mutant { scenario, subject: Subject::Core(bend), by }) }
}

const fn not_here(id: &'static str, broken: &'static str, why: &'static str) -> Row {
    Row { id, broken, made: why, expected: "", standing: Standing::NotInUserSpace }
}

const fn xdp(id: &'static str, broken: &'static str) -> Row {
    Row { id, broken, made: "needs an XDP program: joins in the XDP issue", expected: "", standing: Standing::Xdp }
}

/// All of them.
pub const ROWS: &[Row] = &[
    vendor(
        "B-01",
        "probe's error path uses an unset handle",
        "the unwinding of a failed function map goes through hw->qdma, which is set later",
        "crash",
        "the driver stops at a NULL pointer",
        &on::BUSY,
        |ways| ways.undo_map = probe::undo_through_handle,
    ),
    vendor(
        "B-02",
        "probe waits for the CMAC for ever",
        "the wait for SHELL_STATUS has no limit",
        "liveness",
        "the watchdog names the register that is still being read",
        &on::NO_CMAC,
        |ways| ways.wait_for_cmac = probe::wait_for_ever,
    ),
    vendor(
        "B-03",
        "probe succeeds without its statistics",
        "a failed allocation at probe returns success",
        "crash",
        "the driver stops at a NULL pointer once it is opened",
        &on::NO_MEMORY,
        |ways| ways.no_statistics = probe::succeed_without,
    ),
    not_here(
        "B-04",
        "carrier off after a notifier's open",
        "needs a device notifier that opens the interface in the middle of register_netdev",
    ),
    vendor(
        "B-05",
        "interrupt names are never freed",
        "unloading keeps the names' blocks",
        "leak",
        "the heap names the blocks at the end",
        &on::STEADY,
        |ways| ways.free_names = probe::keep_names,
    ),
    vendor(
        "B-06",
        "queue armed before its handler knows it",
        "the arming doorbell is rung before rx_queue[q] is set",
        "crash",
        "the interrupt handler stops at a NULL pointer",
        &on::EARLY,
        |ways| ways.open_rx = queues::arm_before_known,
    ),
    vendor(
        "B-07",
        "TX queues freed while RX polls clean them",
        "the stop takes TX queues away first; each RX poll cleans all of them by pointer",
        "crash",
        "a poll stops at a NULL pointer",
        &on::DOWN_UNDER_LOAD,
        |ways| {
            ways.stop = queues::stop_tx_first;
            ways.clean_on_poll = queues::clean_every_tx;
        },
    ),
    vendor(
        "B-08",
        "unsent frames only logged at a stop",
        "clearing a TX queue leaves what is in it",
        "leak",
        "mappings and socket buffers that nobody gave back",
        &on::UNSENT,
        |ways| ways.clear_tx = queues::log_what_is_left,
    ),
    vendor(
        "B-09",
        "half-opened queue cleared by an unset pointer",
        "a queue whose contexts can't be written is cleared through rx_queue[q], which is set later",
        "leak",
        "mappings and rings that nobody gave back",
        &on::HANG_AT_UP,
        |ways| {
            ways.open_rx = queues::open_then_set;
            ways.undo_rx = queues::undo_by_pointer;
        },
    ),
    vendor(
        "B-10",
        "ethtool -S while the interface is down",
        "statistics are read through the queues' pointers",
        "crash",
        "the driver stops at a NULL pointer",
        &on::SETTINGS,
        |ways| ways.mac = control::mac_through_queues,
    ),
    xdp("B-11", "XDP program attached while down"),
    xdp("B-12", "redirected frames freed twice"),
    xdp("B-13", "XDP_TX page lost at a full ring"),
    vendor(
        "B-14",
        "failed page allocation not looked at",
        "the refill uses the new page as it came",
        "crash",
        "the driver stops at a NULL pointer",
        &on::RX_SHORTAGE,
        |ways| ways.refill = rx::refill_unchecked,
    ),
    vendor(
        "B-15",
        "poll gives up without a socket buffer",
        "the loop is left neither complete nor armed",
        "liveness",
        "frames lie in the ring, and no interrupt is to come",
        &on::RX_SHORTAGE,
        |ways| ways.no_skb = rx::leave_loop,
    ),
    vendor(
        "B-16",
        "completion read before the status",
        "a poll's first entry is loaded before the status that vouches for it; color ignored",
        "frames",
        "the scoreboard: stale frames, frames lost",
        &on::SLOW_LOADS,
        |ways| ways.next = rx::entry_then_status,
    ),
    vendor(
        "B-17",
        "error bit looked at in a poll's first entry only",
        "completions after a poll's first are taken whatever their error bit",
        "silence",
        "the card's fault was never told",
        &on::BAD_COMPLETION,
        |ways| ways.next = rx::error_of_first,
    ),
    vendor(
        "B-18",
        "budget overrun, rescheduled at the budget",
        "the budget is looked at after a frame, and at the budget the poll schedules itself",
        "contract",
        "NAPI's contract: more work than budget, or the whole budget and ended",
        &on::BUDGET,
        |ways| {
            ways.within = rx::at_least_one;
            ways.finish = rx::complete_and_reschedule;
        },
    ),
    vendor(
        "B-19",
        "one descriptor for each completion",
        "a frame of several buffers advances the descriptor ring by one",
        "frames",
        "the scoreboard: wrong bytes, and every later frame of the queue",
        &on::TWO_BUFFERS,
        |ways| ways.buffers_of = rx::one_buffer,
    ),
    vendor(
        "B-20",
        "MTU accepted and ignored",
        "setting it returns success and stores nothing",
        "setting",
        "the MTU in force is another",
        &on::SETTINGS,
        |ways| ways.set_mtu = control::agree,
    ),
    vendor(
        "B-21",
        "4096-byte buffers at offset 256",
        "the buffer-size table says 4096, and descriptors point 256 bytes into a page",
        "memory",
        "host memory: a descriptor that offers more than its page, and a write past it",
        &on::JUMBO,
        |ways| ways.buffer = Buffer { hw_len_bytes: 4_096, offset: 256 },
    ),
    vendor(
        "B-22",
        "frame under the socket buffer's shared info",
        "buffers reach to the page's end, where the kernel writes 320 bytes",
        "frames",
        "the scoreboard: a frame's last bytes differ",
        &on::JUMBO,
        |ways| ways.buffer = Buffer { hw_len_bytes: 3_840, offset: 256 },
    ),
    vendor(
        "B-23",
        "frame used after its padding failed",
        "the helper that pads frees the buffer on failure, and the caller goes on",
        "heap",
        "the heap: a block used after it was freed",
        &on::TX_SHORTAGE,
        |ways| ways.pad = tx::pad_and_go_on,
    ),
    vendor(
        "B-24",
        "no doorbell after an early return",
        "a frame that can't be mapped at the end of a burst leaves those before it unannounced",
        "liveness",
        "frames taken to send of which the card was not told",
        &on::TX_SHORTAGE,
        |ways| ways.no_mapping = tx::return_early,
    ),
    vendor(
        "B-25",
        "full TX ring never stops its queue",
        "the stack is never told to wait and is refused instead",
        "contract",
        "the contract of transmit queues: refused though not stopped",
        &on::FULL,
        |ways| ways.may_send = tx::always,
    ),
    vendor(
        "B-26",
        "no completion timer: sent frames stay",
        "the driver has no timer; with no traffic nobody cleans",
        "liveness",
        "memory of sent frames still held",
        &on::ONE_WAY,
        |ways| ways.timer_ns = tx::no_timer,
    ),
    vendor(
        "B-27",
        "TX slot reused before its cleaner is done",
        "a cleaner's index is seen before its other stores (lock given back without release)",
        "memory",
        "host memory: DMA to a frame that was freed",
        &on::STEADY,
        |ways| ways.clean = tx::release_late,
    ),
    vendor(
        "B-28",
        "card's TX index believed",
        "the work is the difference of two indices, unchecked; the card names one past the ring",
        "crash",
        "the driver frees what was never sent and stops at a NULL pointer",
        &on::BAD_STATUS,
        |ways| ways.clean = tx::trust_cidx,
    ),
    vendor(
        "B-29",
        "card's length believed",
        "a completion's length is used unchecked; the card tells 65535",
        "memory",
        "host memory: a sync past the page; and the driver stops there",
        &on::BAD_LENGTH,
        |ways| {
            ways.next = rx::any_length;
            ways.buffers_of = rx::one_buffer;
        },
    ),
    xdp("B-30", "redirected runts sent unpadded"),
    xdp("B-31", "wrong direction in sync_for_cpu"),
    vendor(
        "B-32",
        "pages freed by the completion ring's count",
        "the completion ring has twice the descriptor ring's entries, and its count is used",
        "crash",
        "the driver reads past an array",
        &on::STEADY,
        |ways| ways.clear_rx = queues::clear_by_completions,
    ),
    vendor(
        "B-33",
        "RSS table half written, then refused",
        "entries are checked as they are written",
        "setting",
        "a refused table has changed the card's",
        &on::SETTINGS,
        |ways| ways.set_table = control::check_while_writing,
    ),
    vendor(
        "B-34",
        "MAC counters stolen by each reader",
        "what TICK hands out is shown as the total",
        "counter",
        "the counts shown differ from what crossed the wire",
        &on::TWO_READERS,
        |ways| ways.mac = control::since_last_reader,
    ),
    vendor(
        "B-35",
        "functions after 0 read the second MAC",
        "function 1 of a card with one port reads registers that are not there",
        "counter",
        "the counts shown differ from what crossed the wire",
        &on::NO_PORT,
        |ways| ways.mac = control::second_mac,
    ),
    xdp("B-36", "a log line for each failed XDP frame"),
    xdp("B-37", "redirect target lost at a program's replacement"),
    vendor(
        "B-38",
        "shell forgets a function that still sends",
        "remove clears QCONF before it stops the queues",
        "frames",
        "the scoreboard: frames taken to send, dropped by the shell as of no function",
        &on::UNBIND,
        |ways| ways.remove = probe::qconf_first,
    ),
    vendor(
        "B-39",
        "error interrupt never armed again",
        "the handler logs, and neither clears nor arms",
        "silence",
        "the second fault was never told",
        &on::CARD_ERRORS,
        |ways| ways.serve_errors = probe::only_log,
    ),
    vendor(
        "B-40",
        "failed queue stop ignored",
        "the stop ignores context commands that time out, and frees pages and rings",
        "memory",
        "host memory: DMA to what was freed",
        &on::HANG_AT_DOWN,
        |ways| ways.stop = queues::stop_unheard,
    ),
    vendor(
        "B-41",
        "status believed under relaxed ordering",
        "a completion counts as written because the status says so; entries land later",
        "frames",
        "the scoreboard: stale frames, frames lost",
        &on::LATE_ENTRIES,
        |ways| ways.next = rx::by_status,
    ),
    not_here("B-42", "every RX poll cleans every TX ring", "costs cache traffic and spoils no frame"),
    not_here("B-43", "every private ioctl succeeds", "needs ioctl"),
    vendor(
        "B-44",
        "armed though the poll was not ended",
        "the completion ring is armed whatever napi_complete_done returned",
        "contract",
        "an interrupt comes that the host had refused",
        &on::DEFERRED,
        |ways| ways.finish = rx::always_arm,
    ),
    xdp("B-45", "a lock and a doorbell for each XDP_TX frame"),
    vendor(
        "P-1",
        "8192-byte buffers on 4096-byte pages",
        "the buffer-size table says 8192",
        "memory",
        "host memory: a descriptor that offers more than its page, and a write past it",
        &on::JUMBO,
        |ways| ways.buffer = Buffer { hw_len_bytes: 8_192, offset: 0 },
    ),
    core(
        "P-2",
        "no sync_for_cpu before the frame is read",
        "driver-core on a DMA seam whose sync_for_cpu moves nothing",
        "frames",
        "the scoreboard: poison in place of the frame",
        &on::STEADY,
        Bend::SyncNothing,
    ),
    core(
        "P-3",
        "mappings are never ended",
        "driver-core on a DMA seam that ends no mapping",
        "leak",
        "mappings that nobody gave back",
        &on::STEADY,
        Bend::NeverUnmap,
    ),
    vendor(
        "P-4",
        "TX queue freed without cleaning",
        "clearing a TX queue frees the ring alone; its frames have not been taken back",
        "leak",
        "mappings and socket buffers that nobody gave back",
        &on::DOWN_UNDER_LOAD,
        |ways| {
            ways.stop = queues::stop_at_once;
            ways.clear_tx = queues::log_what_is_left;
        },
    ),
    vendor(
        "P-5",
        "statistics shared by all CPUs",
        "polls at the same time write back what each has read and its own",
        "counter",
        "the driver counts fewer frames than were handed up",
        &on::TWO_CPUS,
        |ways| ways.count = control::count_shared,
    ),
    vendor(
        "P-6",
        "page shortage at open leaks the queue",
        "a queue with a page too few is cleared through rx_queue[q], which is set later",
        "leak",
        "mappings that nobody gave back",
        &on::NO_PAGE_AT_UP,
        |ways| ways.undo_rx = queues::undo_by_pointer,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_51_rows_of_the_specification_are_listed_once_in_their_order() {
        let want = (1..=45).map(|n| format!("B-{n:02}")).chain((1..=6).map(|n| format!("P-{n}")));
        assert_eq!(ROWS.iter().map(|row| row.id.to_string()).collect::<Vec<_>>(), want.collect::<Vec<_>>());
    }

    #[test]
    fn what_is_broken_fits_its_column() {
        for row in ROWS {
            assert!(row.broken.chars().count() <= 48, "{}: {}", row.id, row.broken);
        }
    }
}

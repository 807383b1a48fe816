//! What a program says of a frame.

use crate::fault::Fault;

/// The program's return values (`include/uapi/linux/bpf.h`, `enum xdp_action`).
pub(crate) mod action {
    pub(crate) const ABORTED: u64 = 0;
    pub(crate) const DROP: u64 = 1;
    pub(crate) const PASS: u64 = 2;
    pub(crate) const TX: u64 = 3;
    pub(crate) const REDIRECT: u64 = 4;
}

/// Where a frame came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RxMeta {
    /// The interface.
    pub ifindex: u32,
    /// The receive queue.
    pub queue: u32,
    /// The CPU that the program runs on. It is taken modulo the CPUs that the VM was made for.
    pub cpu: u32,
    /// Time, in nanoseconds. It stands still while the program runs.
    pub now_ns: u64,
}

/// Where a redirected frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// An interface, by `bpf_redirect`.
    Interface {
        /// Its index.
        ifindex: u32,
    },
    /// An interface in a device map.
    Device {
        /// The map.
        map: u32,
        /// The key.
        key: u32,
        /// The interface.
        ifindex: u32,
        /// The program that sees the frame before it is sent.
        program: Option<u32>,
    },
    /// All interfaces of a device map.
    Broadcast {
        /// The map.
        map: u32,
        /// But not back to where it came from.
        exclude_ingress: bool,
    },
    /// A CPU in a CPU map.
    Cpu {
        /// The map.
        map: u32,
        /// The CPU.
        cpu: u32,
        /// Frames that may wait for it.
        queue_size: u32,
        /// The program that sees the frame there.
        program: Option<u32>,
    },
    /// A socket in an XSK map.
    Socket {
        /// The map.
        map: u32,
        /// The key: by custom the receive queue.
        key: u32,
        /// The socket: what the user has put into the map.
        socket: u32,
    },
}

/// Why a frame is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abort {
    /// The program said so.
    Returned,
    /// It returned a number that is no action.
    UnknownAction(u32),
    /// It returned `XDP_REDIRECT` without a target.
    NoTarget,
    /// It did something that the kernel would never have let it do.
    Fault(Fault),
}

/// What is to become of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Give it up.
    Aborted(Abort),
    /// Forget it.
    Drop,
    /// Hand it to the stack.
    Pass,
    /// Send it back where it came from.
    Tx,
    /// Send it somewhere else.
    Redirect(Target),
}

/// How one run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What is to become of the frame.
    pub verdict: Verdict,
    /// What the program returned; 0 after a fault.
    pub returned: u32,
    /// Instructions that were run.
    pub insns: u64,
}

impl Outcome {
    pub(crate) fn new(returned: u32, target: Option<Target>, insns: u64) -> Self {
        let verdict = match u64::from(returned) {
            action::ABORTED => Verdict::Aborted(Abort::Returned),
            action::DROP => Verdict::Drop,
            action::PASS => Verdict::Pass,
            action::TX => Verdict::Tx,
            action::REDIRECT => target.map_or(Verdict::Aborted(Abort::NoTarget), Verdict::Redirect),
            _ => Verdict::Aborted(Abort::UnknownAction(returned)),
        };
        Self { verdict, returned, insns }
    }

    /// The fault, if there was one.
    pub fn fault(&self) -> Option<Fault> {
        match self.verdict {
            Verdict::Aborted(Abort::Fault(fault)) => Some(fault),
            _ => None,
        }
    }
}

//! What is unknown about the QDMA, or differs between its versions, as parameters with a default.
//!
//! Source of the list: qdma.md sections 0, 7.5 and 12. Every default says whether it is vendor text or assumed.

/// Which generation of the soft QDMA. They share context and doorbell layouts; error bits and a few CSRs differ.
///
/// Source: qdma.md section 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IpVersion {
    /// QDMA 3.x (Vivado 2018.3 to 2019.2), the dialect in which onic.ko is written.
    Q31,
    /// EQDMA 4.0 (2020.1 to 2022.1): what OpenNIC shells are built with.
    #[default]
    Q40,
    /// EQDMA 5.0 (2022.2 and later).
    Q50,
}

/// What happens to a C2H frame whose queue has no descriptor for it. AMD's text says both (qdma.md 7.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NoDesc {
    /// It waits at the head of the stream engine, and every frame behind it waits too, whatever its queue.
    #[default]
    Stall,
    /// It is dropped and counted at 0xB10.
    Drop,
}

/// When a completion queue may write another status word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NotifyPolicy {
    /// At most one notification is outstanding; the next CIDX doorbell services it (qdma.md 7.2).
    #[default]
    Strict,
    /// Status words follow every condition, CIDX doorbell or not. Not what hardware does: it shows what a driver that
    /// relies on the outstanding rule would meet without it.
    FreeRunning,
}

/// What a CIDX doorbell does in the timer modes when unread entries remain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Leftover {
    /// Notify at once (PG344: arming with CIDX != PIDX triggers).
    #[default]
    NotifyAtOnce,
    /// Start the timer again, unless the count condition holds already.
    RestartTimer,
}

/// From when the moderation timer counts. The exact rule is unknown (qdma.md 7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimerStart {
    /// From the first unread entry.
    #[default]
    FirstUnread,
    /// From the last entry written: each one starts it again.
    EveryEntry,
}

/// For how many reads of the context command register its busy bit stays 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BusyPolls {
    /// So many reads show busy, the next one idle.
    Count(u32),
    /// Busy for ever, and the command has no effect: the driver's time-out path.
    Never,
}

impl Default for BusyPolls {
    fn default() -> Self {
        BusyPolls::Count(0)
    }
}

/// What becomes of an H2C frame whose data could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum H2cDataFault {
    /// It goes on, zeroes for data, with the stream's error flag set. Upstream's shell ignores the flag.
    #[default]
    SendWithError,
    /// It is dropped and counted.
    Drop,
}

/// Which error a log register holds when several met before the driver cleared the status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ErrorLog {
    /// The first; later ones only set status bits.
    #[default]
    First,
    /// The last.
    Last,
}

/// Everything about a QDMA that is chosen before it exists.
///
/// ```
/// use models::qdma::{NoDesc, QdmaConfig};
/// let config = QdmaConfig { num_queues: 64, no_desc: NoDesc::Drop, ..QdmaConfig::default() };
/// assert_eq!(config.num_functions, 1);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QdmaConfig {
    /// Generation: error bits, identification, prefetch registers. Default Q40.
    pub ip: IpVersion,
    /// Queues in all, 1…2048; other values are clamped. Default 512, the shell's default.
    pub num_queues: u16,
    /// Physical functions, 1…4; other values are clamped. Default 1.
    pub num_functions: u8,
    /// MSI-X table size of each function. A vector beyond it raises C2H error bit 7 in place of an interrupt.
    /// Default 10 for function 0, 9 for the others: the shell's Tcl.
    pub msix_vectors: [u16; 4],
    /// Low half of register 0x000. Default 1 (recalled).
    pub block_ident: u16,
    /// Depth that 0xBE0 reports. Default 16 (recalled).
    pub prefetch_cache_depth: u8,
    /// Depth that 0xBE4 reports. Default 32 (recalled); the recorded probe trace had 16.
    pub coalesce_depth: u8,

    /// C2H frames without descriptors. Default [`NoDesc::Stall`].
    pub no_desc: NoDesc,
    /// Descriptors kept ready for each C2H queue while the prefetch register's count is 0: onic.ko leaves EQDMA's 0xA84
    /// at its reset value, which is unknown. Default 128 (assumed): two reads of 512 bytes, which hide their latency up to
    /// some 119 million frames a second on one queue.
    pub prefetch_descriptors: u16,
    /// Buffers one C2H frame may take; longer ones are dropped. Default 31 (vendor; 7 in the 2018.3 version).
    pub buffers_per_frame_max: u16,
    /// Outstanding rule of the completion queues. Default [`NotifyPolicy::Strict`].
    pub notify: NotifyPolicy,
    /// CIDX doorbell with entries left. Default [`Leftover::NotifyAtOnce`].
    pub leftover: Leftover,
    /// Start of the moderation timer. Default [`TimerStart::FirstUnread`].
    pub timer_start: TimerStart,
    /// H2C data that could not be read. Default [`H2cDataFault::SendWithError`].
    pub h2c_data_fault: H2cDataFault,

    /// Busy polls of each context command. Default none.
    pub context_busy: BusyPolls,
    /// The context command with this number, counted from 0 since reset, never ends and has no effect; those after it
    /// work again. Default `None`.
    pub context_hang_at: Option<u64>,
    /// A PIDX doorbell for a disabled queue logs an invalid PIDX error rather than being ignored. Default false (assumed).
    pub error_on_disabled_doorbell: bool,
    /// Error logs. Default [`ErrorLog::First`] (assumed).
    pub error_log: ErrorLog,
    /// The newest IP wants host profile 0 written before any DMA; without it every access fails. Default false: neither
    /// onic.ko nor the soft PMDs write one.
    pub require_host_profile: bool,

    /// Time from a PCIe read request to its first data, ps. Default 500 ns (assumed, a server's usual figure).
    pub read_latency_ps: u64,
    /// Time from a posted PCIe write, or an MSI-X message, to its effect in host memory, ps. Default 250 ns (assumed).
    pub write_latency_ps: u64,
    /// Time one byte takes on the link, each way, ps. Default 64: Gen3 x16 after 128b/130b.
    pub link_ps_per_byte: u64,
    /// Header and framing of one transaction, bytes. Default 24.
    pub tlp_overhead_bytes: u16,
    /// Largest payload of one write, bytes. Default 256.
    pub max_payload_bytes: u16,
    /// Largest read, bytes; bounds a descriptor fetch. Default 512, what onic.ko sets (MRRS).
    pub max_read_request_bytes: u16,
    /// C2H stream buffer, beats of 64 bytes. Default 512. A longer frame passes when the buffer is empty.
    pub c2h_buffer_beats: u32,
    /// H2C stream buffer, beats of 64 bytes, reads in flight included. Default 512.
    pub h2c_buffer_beats: u32,

    /// Relaxed ordering between a frame's data and its completion: the data land so much later, ps. Default 0: in order.
    pub late_payload_ps: u64,
    /// Relaxed ordering between completion entries and the status that covers them: entries land so much later, ps.
    /// Default 0: in order.
    pub late_entry_ps: u64,
    /// DMA that an invalidated queue still does: data of frames that already had their descriptors are written, and
    /// reads in flight performed, so many ns after the INV. Default 0: none. (qdma.md 9.3; reproduces use after free.)
    pub late_dma_after_inv_ns: u64,
}

impl Default for QdmaConfig {
    fn default() -> Self {
        QdmaConfig {
            ip: IpVersion::default(),
            num_queues: 512,
            num_functions: 1,
            msix_vectors: [10, 9, 9, 9],
            block_ident: 1,
            prefetch_cache_depth: 16,
            coalesce_depth: 32,
            no_desc: NoDesc::default(),
            prefetch_descriptors: 128,
            buffers_per_frame_max: 31,
            notify: NotifyPolicy::default(),
            leftover: Leftover::default(),
            timer_start: TimerStart::default(),
            h2c_data_fault: H2cDataFault::default(),
            context_busy: BusyPolls::default(),
            context_hang_at: None,
            error_on_disabled_doorbell: false,
            error_log: ErrorLog::default(),
            require_host_profile: false,
            read_latency_ps: 500_000,
            write_latency_ps: 250_000,
            link_ps_per_byte: 64,
            tlp_overhead_bytes: 24,
            max_payload_bytes: 256,
            max_read_request_bytes: 512,
            c2h_buffer_beats: 512,
            h2c_buffer_beats: 512,
            late_payload_ps: 0,
            late_entry_ps: 0,
            late_dma_after_inv_ns: 0,
        }
    }
}

/// What of a [`QdmaConfig`] may change while the QDMA runs: [`super::Qdma::turn`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Knob {
    /// [`QdmaConfig::context_busy`].
    ContextBusy(BusyPolls),
    /// [`QdmaConfig::no_desc`].
    NoDesc(NoDesc),
    /// [`QdmaConfig::late_payload_ps`].
    LatePayloadPs(u64),
    /// [`QdmaConfig::late_entry_ps`].
    LateEntryPs(u64),
    /// [`QdmaConfig::late_dma_after_inv_ns`].
    LateDmaAfterInvNs(u64),
}

impl QdmaConfig {
    /// The same with every number in the range that its field's doc gives.
    pub(super) fn clamped(mut self) -> Self {
        self.num_queues = self.num_queues.clamp(1, 2048);
        self.num_functions = self.num_functions.clamp(1, 4);
        self.max_payload_bytes = self.max_payload_bytes.clamp(64, 4096);
        self.max_read_request_bytes = self.max_read_request_bytes.clamp(64, 4096);
        self.buffers_per_frame_max = self.buffers_per_frame_max.max(1);
        self.prefetch_descriptors = self.prefetch_descriptors.clamp(1, 512);
        self
    }
}

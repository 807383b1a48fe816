//! What the QDMA keeps for each queue in its context memory, and the command that reaches it.
//!
//! Layouts are words of 32 bits as they pass through `IND_CTXT_DATA`, word 0 first. They are EQDMA's (4.0, 5.0); 3.1's
//! differ as the fields say. Sources, unless a field names another: AMD PG302, and open-nic-driver 3de2269
//! `qdma_access/qdma_context.c`, whose values the tests hold against the recorded probe.

use crate::bits::{FieldValue, layout};
use crate::generated::qdma_csr::ind_ctxt_cmd;

/// Words of data and of mask in a context command.
pub const COMMAND_WORDS: usize = 8;

/// Which context a command is for.
///
/// Source: AMD PG302, `MDMA_CTXT_SEL`; open-nic-driver `qdma_context.c`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ContextSelector {
    /// 0: software descriptor context, C2H.
    SwDescC2h,
    /// 1: software descriptor context, H2C.
    SwDescH2c,
    /// 2: hardware descriptor context, C2H.
    HwDescC2h,
    /// 3: hardware descriptor context, H2C.
    HwDescH2c,
    /// 4: credit context, C2H.
    CreditC2h,
    /// 5: credit context, H2C.
    CreditH2c,
    /// 6: completion context.
    Completion,
    /// 7: prefetch context.
    Prefetch,
    /// 8: interrupt aggregation context.
    Interrupt,
    /// 9: PASID, low part.
    Pasid,
    /// 10: host profile.
    HostProfile,
    /// 11: timer; only to be invalidated.
    Timer,
    /// 12: function map; the command's queue field is a function number.
    Fmap,
    /// 13: function status.
    FunctionStatus,
    /// 14 and 15: unknown, kept as they came.
    Unknown(u8),
}

impl ContextSelector {
    /// From the four bits of the command.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::SwDescC2h,
            1 => Self::SwDescH2c,
            2 => Self::HwDescC2h,
            3 => Self::HwDescH2c,
            4 => Self::CreditC2h,
            5 => Self::CreditH2c,
            6 => Self::Completion,
            7 => Self::Prefetch,
            8 => Self::Interrupt,
            9 => Self::Pasid,
            10 => Self::HostProfile,
            11 => Self::Timer,
            12 => Self::Fmap,
            13 => Self::FunctionStatus,
            other => Self::Unknown(other),
        }
    }

    /// To the four bits of the command.
    pub const fn code(self) -> u8 {
        match self {
            Self::SwDescC2h => 0,
            Self::SwDescH2c => 1,
            Self::HwDescC2h => 2,
            Self::HwDescH2c => 3,
            Self::CreditC2h => 4,
            Self::CreditH2c => 5,
            Self::Completion => 6,
            Self::Prefetch => 7,
            Self::Interrupt => 8,
            Self::Pasid => 9,
            Self::HostProfile => 10,
            Self::Timer => 11,
            Self::Fmap => 12,
            Self::FunctionStatus => 13,
            Self::Unknown(code) => code,
        }
    }
}

/// What a context command does.
///
/// Source: AMD PG302, `MDMA_CTXT_CMD`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ContextOp {
    /// 0: all bits of the context to 0.
    Clear,
    /// 1: store the data, only where the mask is 1.
    Write,
    /// 2: the context to the data registers.
    Read,
    /// 3: clear only the enable or valid bit; unused credits are given back.
    Invalidate,
}

impl ContextOp {
    /// From the two bits of the command; higher ones are ignored.
    pub const fn from_code(code: u8) -> Self {
        match code & 3 {
            0 => Self::Clear,
            1 => Self::Write,
            2 => Self::Read,
            _ => Self::Invalidate,
        }
    }

    /// To the two bits of the command.
    pub const fn code(self) -> u8 {
        match self {
            Self::Clear => 0,
            Self::Write => 1,
            Self::Read => 2,
            Self::Invalidate => 3,
        }
    }
}

/// What is written to `IND_CTXT_CMD`.
///
/// Layout: bit 0 busy (read only), 4:1 selector, 6:5 operation, 19:7 queue. Source: AMD PG302; recorded probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextCommand {
    /// Which context.
    pub selector: ContextSelector,
    /// What to do with it.
    pub op: ContextOp,
    /// Absolute queue (13 bits), or the function number for [`ContextSelector::Fmap`].
    pub qid: u16,
}

impl ContextCommand {
    /// From the word on the bus; the busy bit is ignored.
    pub const fn from_word(word: u32) -> Self {
        ContextCommand {
            selector: ContextSelector::from_code(ind_ctxt_cmd::SELECTOR.get(word) as u8),
            op: ContextOp::from_code(ind_ctxt_cmd::OP.get(word) as u8),
            qid: ind_ctxt_cmd::QID.get(word) as u16,
        }
    }

    /// To the word on the bus, busy bit 0. Queues above 8191 are cut off.
    pub const fn to_word(self) -> u32 {
        let mut word = ind_ctxt_cmd::SELECTOR.set(0, self.selector.code() as u32);
        word = ind_ctxt_cmd::OP.set(word, self.op.code() as u32);
        ind_ctxt_cmd::QID.set(word, self.qid as u32)
    }
}

/// When the card writes a completion status and interrupts.
///
/// "User" is the user logic's trigger, which OpenNIC ties to 0. Source: AMD PG302, completion context `trig_mode`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum TriggerMode {
    /// 0: never.
    #[default]
    Disabled,
    /// 1: at each completion.
    Every,
    /// 2: user or count.
    UserCount,
    /// 3: user.
    User,
    /// 4: user or timer.
    UserTimer,
    /// 5: user, timer or count.
    UserTimerCount,
    /// 6 and 7: unknown, kept as they came.
    Unknown(u8),
}

impl TriggerMode {
    /// From the three bits.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Disabled,
            1 => Self::Every,
            2 => Self::UserCount,
            3 => Self::User,
            4 => Self::UserTimer,
            5 => Self::UserTimerCount,
            other => Self::Unknown(other),
        }
    }

    /// To the three bits.
    pub const fn code(self) -> u8 {
        match self {
            Self::Disabled => 0,
            Self::Every => 1,
            Self::UserCount => 2,
            Self::User => 3,
            Self::UserTimer => 4,
            Self::UserTimerCount => 5,
            Self::Unknown(code) => code,
        }
    }
}

impl FieldValue for TriggerMode {
    const BITS: u32 = 3;
    fn from_bits(bits: u64) -> Self {
        Self::from_code(bits as u8)
    }
    fn to_bits(self) -> u64 {
        u64::from(self.code())
    }
}

/// Size of a descriptor or a completion entry: 8 bytes, doubled by each step.
///
/// Source: AMD PG302, `dsc_sz` and completion context `desc_size`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum EntrySize {
    /// 0: 8 bytes; C2H stream descriptors, OpenNIC's completions.
    #[default]
    Bytes8,
    /// 1: 16 bytes; H2C stream descriptors.
    Bytes16,
    /// 2: 32 bytes.
    Bytes32,
    /// 3: 64 bytes; bypass only.
    Bytes64,
}

impl EntrySize {
    /// In bytes.
    pub const fn bytes(self) -> u32 {
        8 << self as u32
    }
}

impl FieldValue for EntrySize {
    const BITS: u32 = 2;
    fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::Bytes8,
            1 => Self::Bytes16,
            2 => Self::Bytes32,
            _ => Self::Bytes64,
        }
    }
    fn to_bits(self) -> u64 {
        self as u64
    }
}

/// Why a completion queue stopped.
///
/// Source: AMD PG302, completion context and completion status `err`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum CompletionQueueError {
    /// 0: it did not.
    #[default]
    None,
    /// 1: CIDX was set past PIDX.
    BadCidx,
    /// 2: a descriptor could not be fetched.
    Descriptor,
    /// 3: the ring was full.
    Overflow,
}

impl FieldValue for CompletionQueueError {
    const BITS: u32 = 2;
    fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::None,
            1 => Self::BadCidx,
            2 => Self::Descriptor,
            _ => Self::Overflow,
        }
    }
    fn to_bits(self) -> u64 {
        self as u64
    }
}

layout! {
    /// Software descriptor context, selectors 0 and 1: what software says of a descriptor ring.
    ///
    /// 8 words, of which onic.ko writes 5. Source: AMD PG302, software descriptor context structure.
    pub struct SwDescContext: [u32; 8] {
        /// Producer index; the card takes it from the doorbell.
        pidx: u16 => 0[15:0],
        /// Interrupt armed; cleared by the card when it fires.
        irq_arm: bool => 0[16:16],
        /// Function that owns the queue. 3.1: bits 24:17.
        func_id: u16 => 0[28:17],
        /// Queue enabled.
        qen: bool => 1[0:0],
        /// Fetch only for credits; 1 for a C2H stream queue in internal mode.
        fcrd_en: bool => 1[1:1],
        /// Write back or interrupt when the last descriptor known has completed.
        wbi_chk: bool => 1[2:2],
        /// Write back at the interval of `GLBL_DSC_CFG`.
        wbi_intvl_en: bool => 1[3:3],
        /// Addresses are translated.
        at: bool => 1[4:4],
        /// Descriptors of one fetch at most. 3.1: bits 7:5.
        fetch_max: u8 => 1[8:5],
        /// Index into `GLBL_RING_SIZE`.
        ring_size_index: u8 => 1[15:12],
        /// Size of a descriptor.
        desc_size: EntrySize => 1[17:16],
        /// Descriptors go to the user logic.
        bypass: bool => 1[18:18],
        /// Memory-mapped channel.
        mm_channel: bool => 1[19:19],
        /// Write status words to the ring's last entry.
        wbk_en: bool => 1[20:20],
        /// Interrupt.
        irq_en: bool => 1[21:21],
        /// Port id.
        port_id: u8 => 1[24:22],
        /// No interrupt for the last descriptor.
        irq_no_last: bool => 1[25:25],
        /// Error of the queue, set by the card: 1 descriptor, 2 DMA.
        err: u8 => 1[27:26],
        /// The status with the error has been written; the card's.
        err_wb_sent: bool => 1[28:28],
        /// An interrupt waits to be sent; the card's.
        irq_req: bool => 1[29:29],
        /// Markers disabled.
        mrkr_dis: bool => 1[30:30],
        /// Memory-mapped queue, not stream.
        is_mm: bool => 1[31:31],
        /// DMA address of the ring, 4 KiB aligned.
        ring_base: u64 => 2[63:0],
        /// Index into the function's MSI-X table, or the interrupt ring when `int_aggr`.
        vector: u16 => 4[10:0],
        /// Interrupt aggregation.
        int_aggr: bool => 4[11:11],
        /// No interrupts on virtual functions. EQDMA.
        dis_intr_on_vf: bool => 4[12:12],
        /// Virtio. EQDMA.
        virtio: bool => 4[13:13],
        /// Pack bypass output. EQDMA.
        pack_byp: bool => 4[14:14],
        /// Interrupt bypass. EQDMA.
        irq_byp: bool => 4[15:15],
        /// Host. EQDMA.
        host_id: u8 => 4[19:16],
        /// PASID, low 12 bits. EQDMA.
        pasid_low: u16 => 4[31:20],
    }
}

layout! {
    /// Hardware descriptor context, selectors 2 and 3: where the card stands. Software only clears it.
    ///
    /// Source: AMD PG302, hardware descriptor context structure.
    pub struct HwDescContext: [u32; 2] {
        /// Last descriptor fetched.
        cidx: u16 => 0[15:0],
        /// Credits used.
        credits_used: u16 => 0[31:16],
        /// Descriptors are pending.
        desc_pending: bool => 1[8:8],
        /// Idle and not stopped: 1 while the queue is enabled.
        idl_stp_b: bool => 1[9:9],
        /// An event is pending.
        event_pending: bool => 1[10:10],
        /// Fetches pending.
        fetch_pending: u8 => 1[14:11],
    }
}

layout! {
    /// Credit context, selectors 4 and 5.
    ///
    /// Source: AMD PG302, descriptor credit context structure.
    pub struct CreditContext: [u32; 1] {
        /// Credits.
        credits: u16 => 0[15:0],
    }
}

layout! {
    /// Prefetch context, selector 7: how a C2H stream queue gets its buffers.
    ///
    /// Source: AMD PG302, C2H prefetch context structure.
    pub struct PrefetchContext: [u32; 2] {
        /// Descriptors come from the user logic.
        bypass: bool => 0[0:0],
        /// Index into `C2H_BUFFER_SIZE`.
        buffer_size_index: u8 => 0[4:1],
        /// Port id.
        port_id: u8 => 0[7:5],
        /// Variable descriptors. EQDMA.
        var_desc: bool => 0[8:8],
        /// Virtio. EQDMA.
        virtio: bool => 0[9:9],
        /// Prefetched descriptors. EQDMA; the card's.
        num_pfch: u8 => 0[15:10],
        /// Descriptors still to prefetch. EQDMA; the card's.
        pfch_need: u8 => 0[21:16],
        /// Error on the queue; the card's.
        err: bool => 0[26:26],
        /// Prefetch enabled.
        pfch_en: bool => 0[27:27],
        /// The queue is in prefetch; the card's.
        in_prefetch: bool => 0[28:28],
        /// Software credits; runs on into word 1.
        sw_credit: u16 => 0[44:29],
        /// The context is valid.
        valid: bool => 1[13:13],
    }
}

layout! {
    /// Completion context, selector 6: a completion ring and its moderation.
    ///
    /// 6 words, of which onic.ko writes 5. Source: AMD PG302, completion context structure.
    pub struct CompletionContext: [u32; 6] {
        /// Write status words to the ring's last entry.
        en_stat_desc: bool => 0[0:0],
        /// Interrupt.
        en_int: bool => 0[1:1],
        /// When to notify.
        trigger_mode: TriggerMode => 0[4:2],
        /// Function that owns the queue. 3.1: bits 12:5.
        func_id: u16 => 0[16:5],
        /// Index into `C2H_COUNTER_THRESHOLD`.
        counter_index: u8 => 0[20:17],
        /// Index into `C2H_TIMER_COUNT`.
        timer_index: u8 => 0[24:21],
        /// Interrupt state, the card's: 0 ISR, 1 TRIG, 2 waiting.
        int_st: u8 => 0[26:25],
        /// Color of the next entry; software starts with 1.
        color: bool => 0[27:27],
        /// Index into `GLBL_RING_SIZE`.
        ring_size_index: u8 => 0[31:28],
        /// DMA address of the ring, bits 63:6. 3.1 keeps bits 63:12 only, at the same place.
        base_63_6: u64 => 1[57:0],
        /// Size of an entry.
        entry_size: EntrySize => 2[27:26],
        /// Producer index, the card's.
        pidx: u16 => 2[43:28],
        /// Consumer index; the card takes it from the doorbell.
        cidx: u16 => 3[27:12],
        /// The context is valid.
        valid: bool => 3[28:28],
        /// Why the queue stopped; the card's.
        err: CompletionQueueError => 3[30:29],
        /// A user trigger is pending; the card's.
        user_trig_pend: bool => 3[31:31],
        /// The timer runs; the card's.
        timer_running: bool => 4[0:0],
        /// A CIDX doorbell rewrites timer, counter, mode and enables too, not only CIDX.
        full_upd: bool => 4[1:1],
        /// No overflow check.
        ovf_chk_dis: bool => 4[2:2],
        /// Addresses are translated.
        at: bool => 4[3:3],
        /// Index into the function's MSI-X table.
        vector: u16 => 4[14:4],
        /// Interrupt aggregation.
        int_aggr: bool => 4[15:15],
        /// No interrupts on virtual functions. EQDMA.
        dis_intr_on_vf: bool => 4[16:16],
        /// Virtio. EQDMA.
        virtio: bool => 4[17:17],
        /// Completions are for C2H. EQDMA; onic.ko leaves 0, the 2024 DPDK driver writes 1: accept both.
        dir_c2h: bool => 4[18:18],
        /// Host. EQDMA.
        host_id: u8 => 4[22:19],
        /// PASID; runs on into word 5. EQDMA.
        pasid: u32 => 4[44:23],
        /// PASID in use. EQDMA.
        pasid_en: bool => 5[13:13],
        /// DMA address of the ring, bits 5:2. EQDMA.
        base_5_2: u8 => 5[17:14],
        /// Virtio end of packet. EQDMA.
        vio_eop: bool => 5[18:18],
        /// Shared completion queue. EQDMA.
        sh_cmpt: bool => 5[19:19],
        /// Port id. EQDMA.
        port_id: u8 => 5[22:20],
    }
}

impl CompletionContext {
    /// DMA address of the ring.
    pub const fn ring_base(&self) -> u64 {
        (self.base_63_6 << 6) | ((self.base_5_2 as u64) << 2)
    }

    /// The same context with its ring at a DMA address. Bits 1:0 are not kept.
    pub const fn with_ring_base(mut self, address: u64) -> Self {
        self.base_63_6 = address >> 6;
        self.base_5_2 = ((address >> 2) & 0xF) as u8;
        self
    }
}

layout! {
    /// Function map, selector 12: which absolute queues a function's doorbells mean.
    ///
    /// Source: AMD PG302, function map table; open-nic-driver `onic_hardware.c`.
    pub struct FmapContext: [u32; 2] {
        /// First absolute queue. 3.1: 11 bits.
        qbase: u16 => 0[11:0],
        /// Number of queues.
        qmax: u16 => 1[11:0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// onic_probe_trace.txt, commands of phases 1, 2 and 8, and the words of the driver that wrote them.
    #[test]
    fn commands_as_recorded() {
        let cases = [
            (0x0000_0018, ContextSelector::Fmap, ContextOp::Clear, 0),
            (0x0000_0038, ContextSelector::Fmap, ContextOp::Write, 0),
            (0x0000_0002, ContextSelector::SwDescH2c, ContextOp::Clear, 0),
            (0x0000_0022 | 7 << 7, ContextSelector::SwDescH2c, ContextOp::Write, 7),
            (0x0000_0006, ContextSelector::HwDescH2c, ContextOp::Clear, 0),
            (0x0000_000A, ContextSelector::CreditH2c, ContextOp::Clear, 0),
            (0x0000_0020, ContextSelector::SwDescC2h, ContextOp::Write, 0),
            (0x0000_002E, ContextSelector::Prefetch, ContextOp::Write, 0),
            (0x0000_002C, ContextSelector::Completion, ContextOp::Write, 0),
            (0x0000_006C, ContextSelector::Completion, ContextOp::Invalidate, 0),
            (0x0000_0062 | 3 << 7, ContextSelector::SwDescH2c, ContextOp::Invalidate, 3),
        ];
        for (word, selector, op, qid) in cases {
            let command = ContextCommand { selector, op, qid };
            assert_eq!(command.to_word(), word, "{command:?}");
            assert_eq!(ContextCommand::from_word(word | 1), command, "busy bit ignored");
        }
    }

    #[test]
    fn every_selector_code_comes_back() {
        for code in 0..16 {
            assert_eq!(ContextSelector::from_code(code).code(), code);
        }
        for code in 0..8 {
            assert_eq!(TriggerMode::from_code(code).code(), code);
        }
    }

    /// onic_probe_trace.txt, software context of TX queue 1: words 0x00000000 0x0011000d 0x02890000 0 0x00000001.
    #[test]
    fn tx_software_context_as_recorded() {
        let tx = SwDescContext {
            qen: true,
            wbi_chk: true,
            wbi_intvl_en: true,
            ring_size_index: 0,
            desc_size: EntrySize::Bytes16,
            wbk_en: true,
            ring_base: 0x0289_0000,
            vector: 1,
            ..SwDescContext::default()
        };
        assert_eq!(tx.to_words(), [0, 0x0011_000D, 0x0289_0000, 0, 1, 0, 0, 0]);
        assert_eq!(SwDescContext::from_words(&tx.to_words()), tx);
    }

    /// onic_probe_trace.txt, software context of an RX queue: word 1 is 0x00108003.
    #[test]
    fn rx_software_context_as_recorded() {
        let rx = SwDescContext {
            func_id: 1,
            qen: true,
            fcrd_en: true,
            ring_size_index: 8,
            desc_size: EntrySize::Bytes8,
            wbk_en: true,
            ring_base: 0x1_FA68_0000,
            ..SwDescContext::default()
        };
        assert_eq!(rx.to_words(), [1 << 17, 0x0010_8003, 0xFA68_0000, 1, 0, 0, 0, 0]);
    }

    /// onic_probe_trace.txt, prefetch context: words 0x08000010 0x00002000.
    #[test]
    fn prefetch_context_as_recorded() {
        let prefetch =
            PrefetchContext { buffer_size_index: 8, pfch_en: true, valid: true, ..PrefetchContext::default() };
        assert_eq!(prefetch.to_words(), [0x0800_0010, 0x0000_2000]);
        assert_eq!(PrefetchContext::from_words(&[0x0800_0010, 0x0000_2000]), prefetch);
    }

    /// onic_probe_trace.txt, completion context of RX queue 0 (ring at 0x02882000): words 0x88000017 0x000a2080 0
    /// 0x10000000 0.
    #[test]
    fn completion_context_as_recorded() {
        let completion = CompletionContext {
            en_stat_desc: true,
            en_int: true,
            trigger_mode: TriggerMode::UserTimerCount,
            color: true,
            ring_size_index: 8,
            valid: true,
            ..CompletionContext::default()
        }
        .with_ring_base(0x0288_2000);
        assert_eq!(completion.to_words(), [0x8800_0017, 0x000A_2080, 0, 0x1000_0000, 0, 0]);
        assert_eq!(completion.ring_base(), 0x0288_2000);
        let other = CompletionContext { func_id: 3, vector: 7, ..completion };
        assert_eq!(other.to_words(), [0x8800_0017 | 3 << 5, 0x000A_2080, 0, 0x1000_0000, 7 << 4, 0]);
    }

    /// onic_probe_trace.txt: `0x000804 0`, `0x000808 8` before FMAP WR; function 1 has base 64.
    #[test]
    fn function_map_as_recorded() {
        assert_eq!(FmapContext { qbase: 0, qmax: 8 }.to_words(), [0, 8]);
        assert_eq!(FmapContext::from_words(&[64, 8]), FmapContext { qbase: 64, qmax: 8 });
    }

    /// Fields that run over a word's end, placed by the vendor's tables: PIDX in 2[31:28] and 3[11:0], software credits
    /// in 0[31:29] and 1[12:0], base 63:38 in 2[25:0].
    #[test]
    fn fields_across_words() {
        let completion = CompletionContext { pidx: 0xABCD, ..CompletionContext::default() };
        assert_eq!(completion.to_words(), [0, 0, 0xD000_0000, 0x0ABC, 0, 0]);
        let prefetch = PrefetchContext { sw_credit: 0xFFFF, ..PrefetchContext::default() };
        assert_eq!(prefetch.to_words(), [0xE000_0000, 0x1FFF]);
        let high = CompletionContext::default().with_ring_base(0xFFFF_FFC0_0000_003C);
        assert_eq!(high.to_words(), [0, 0, 0x03FF_FFFF, 0, 0, 0xF << 14]);
        assert_eq!(high.ring_base(), 0xFFFF_FFC0_0000_003C);
    }

    #[test]
    fn a_value_too_large_is_named() {
        assert_eq!(FmapContext { qbase: 0x1000, qmax: 0 }.overflow(), Some("qbase"));
        assert_eq!(FmapContext { qbase: 0xFFF, qmax: 0xFFF }.overflow(), None);
        assert_eq!(FmapContext { qbase: 0x1001, qmax: 0 }.to_words(), [1, 0], "and cut off");
    }

    /// No bit belongs to two fields, and each field's type holds its width.
    #[test]
    fn places_are_disjoint() {
        check(SwDescContext::PLACES);
        check(HwDescContext::PLACES);
        check(CreditContext::PLACES);
        check(PrefetchContext::PLACES);
        check(CompletionContext::PLACES);
        check(FmapContext::PLACES);

        fn check(places: &[(&str, crate::bits::Place)]) {
            let mut taken = [false; 256];
            for (name, place) in places {
                let first = usize::from(place.word) * 32 + usize::from(place.low);
                for (bit, used) in taken.iter_mut().enumerate().skip(first).take(place.width() as usize) {
                    assert!(!*used, "{name} shares bit {bit}");
                    *used = true;
                }
            }
        }
    }

    /// All ones survive the way in and out: no field's type is narrower than the field.
    #[test]
    fn full_fields_come_back() {
        let ones = [u32::MAX; 8];
        let words = SwDescContext::from_words(&ones).to_words();
        assert_eq!(words, [0x1FFF_FFFF, 0xFFFF_F1FF, u32::MAX, u32::MAX, u32::MAX, 0, 0, 0]);
        let words = CompletionContext::from_words(&[u32::MAX; 6]).to_words();
        assert_eq!(words, [u32::MAX, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 0x007F_FFFF]);
        let words = PrefetchContext::from_words(&[u32::MAX; 2]).to_words();
        assert_eq!(words, [0xFC3F_FFFF, 0x0000_3FFF]);
        let words = HwDescContext::from_words(&[u32::MAX; 2]).to_words();
        assert_eq!(words, [u32::MAX, 0x0000_7F00]);
    }
}

//! What a hostile card does to a queue: mutations of a valid run, and random words.

/// What is done to a receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RxDeed {
    Color,
    EntryPlace,
    LengthZero,
    LengthLong,
    LengthOther,
    ErrBit,
    WrongQueue,
    Reserved,
    PacketNumber,
    StatusIndex,
    StatusRange,
    StatusError,
    StatusReserved,
    Duplicate,
    StatusFirst,
    EntryFirst,
    Withheld,
    HalfEntry,
    AmbushEntry,
    AmbushStatus,
    Flood,
    Scribble,
    DoorbellRefused,
    SyncRefused,
    RandomEntry,
    RandomStatus,
    RandomRing,
    AmbushRandom,
}

impl RxDeed {
    pub(super) const MUTATIONS: [RxDeed; 24] = [
        RxDeed::Color,
        RxDeed::EntryPlace,
        RxDeed::LengthZero,
        RxDeed::LengthLong,
        RxDeed::LengthOther,
        RxDeed::ErrBit,
        RxDeed::WrongQueue,
        RxDeed::Reserved,
        RxDeed::PacketNumber,
        RxDeed::StatusIndex,
        RxDeed::StatusRange,
        RxDeed::StatusError,
        RxDeed::StatusReserved,
        RxDeed::Duplicate,
        RxDeed::StatusFirst,
        RxDeed::EntryFirst,
        RxDeed::Withheld,
        RxDeed::HalfEntry,
        RxDeed::AmbushEntry,
        RxDeed::AmbushStatus,
        RxDeed::Flood,
        RxDeed::Scribble,
        RxDeed::DoorbellRefused,
        RxDeed::SyncRefused,
    ];
    pub(super) const RANDOM: [RxDeed; 4] =
        [RxDeed::RandomEntry, RxDeed::RandomStatus, RxDeed::RandomRing, RxDeed::AmbushRandom];

    pub(super) fn name(self) -> &'static str {
        match self {
            RxDeed::Color => "RX entry: color flipped",
            RxDeed::EntryPlace => "RX entry: at another index",
            RxDeed::LengthZero => "RX entry: length 0",
            RxDeed::LengthLong => "RX entry: longer than the posted buffers",
            RxDeed::LengthOther => "RX entry: another length",
            RxDeed::ErrBit => "RX entry: error bit",
            RxDeed::WrongQueue => "RX entry: another queue",
            RxDeed::Reserved => "RX entry: reserved bits",
            RxDeed::PacketNumber => "RX entry: another packet number",
            RxDeed::StatusIndex => "RX status: PIDX or color ahead or behind",
            RxDeed::StatusRange => "RX status: PIDX outside the ring",
            RxDeed::StatusError => "RX status: error code",
            RxDeed::StatusReserved => "RX status: other bits",
            RxDeed::Duplicate => "RX entry: written twice",
            RxDeed::StatusFirst => "RX order: status before entry",
            RxDeed::EntryFirst => "RX order: entry before payload",
            RxDeed::Withheld => "RX entry: never written",
            RxDeed::HalfEntry => "RX entry: in two halves",
            RxDeed::AmbushEntry => "RX ambush: entry between two loads",
            RxDeed::AmbushStatus => "RX ambush: status between two loads",
            RxDeed::Flood => "RX entries: a whole lap of them",
            RxDeed::Scribble => "RX descriptors: overwritten",
            RxDeed::DoorbellRefused => "RX registers: doorbells refused",
            RxDeed::SyncRefused => "RX host: page refused",
            RxDeed::RandomEntry => "RX random: one entry",
            RxDeed::RandomStatus => "RX random: status",
            RxDeed::RandomRing => "RX random: the whole ring",
            RxDeed::AmbushRandom => "RX random: between two loads",
        }
    }
}

/// What is done to a transmit queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TxDeed {
    Ahead,
    Back,
    Range,
    Error,
    Pidx,
    Reserved,
    Early,
    Withheld,
    Ambush,
    DoorbellRefused,
    SyncRefused,
    RandomStatus,
    AmbushRandom,
}

impl TxDeed {
    pub(super) const MUTATIONS: [TxDeed; 11] = [
        TxDeed::Ahead,
        TxDeed::Back,
        TxDeed::Range,
        TxDeed::Error,
        TxDeed::Pidx,
        TxDeed::Reserved,
        TxDeed::Early,
        TxDeed::Withheld,
        TxDeed::Ambush,
        TxDeed::DoorbellRefused,
        TxDeed::SyncRefused,
    ];
    pub(super) const RANDOM: [TxDeed; 2] = [TxDeed::RandomStatus, TxDeed::AmbushRandom];

    pub(super) fn name(self) -> &'static str {
        match self {
            TxDeed::Ahead => "TX status: CIDX ahead of PIDX",
            TxDeed::Back => "TX status: CIDX backwards",
            TxDeed::Range => "TX status: CIDX outside the ring",
            TxDeed::Error => "TX status: error code",
            TxDeed::Pidx => "TX status: another PIDX",
            TxDeed::Reserved => "TX status: reserved bits",
            TxDeed::Early => "TX status: before the frames are read",
            TxDeed::Withheld => "TX status: never written",
            TxDeed::Ambush => "TX ambush: status between two loads",
            TxDeed::DoorbellRefused => "TX registers: doorbells refused",
            TxDeed::SyncRefused => "TX host: page refused",
            TxDeed::RandomStatus => "TX random: status",
            TxDeed::AmbushRandom => "TX random: between two loads",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeds_have_names_of_their_own() {
        let rx = RxDeed::MUTATIONS.iter().chain(&RxDeed::RANDOM).map(|deed| deed.name());
        let tx = TxDeed::MUTATIONS.iter().chain(&TxDeed::RANDOM).map(|deed| deed.name());
        let mut names: Vec<_> = rx.chain(tx).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 24 + 4 + 11 + 2);
    }
}

//! One fault, to try the scoreboard's alarm.

use std::str::FromStr;

use regs::Qid;

/// One fault in the C2H stream: a bit flipped on the RTL's own pins, so that waves show it; others between the pins and the
/// QDMA; and two that nobody should survive: a broken protocol, a stream that stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameTap {
    /// Which frame of the C2H stream, or of port 0's for [`TapKind::HoleInKeep`], counted from 0.
    pub frame: u64,
    /// What happens to it.
    pub kind: TapKind,
}

/// A tap that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is no tap: flip:FRAME[:BYTE[:BIT]], drop:FRAME, dup:FRAME, misroute:FRAME[:QID], keep:FRAME, \
         hold:FRAME (all count from 0)"
)]
pub struct ParseTapError(String);

impl FromStr for FrameTap {
    type Err = ParseTapError;

    fn from_str(text: &str) -> Result<FrameTap, ParseTapError> {
        let refused = || ParseTapError(text.to_string());
        let number = |part: &str| part.parse::<u64>().map_err(|_| refused());
        let short = |part: &str| u16::try_from(number(part)?).map_err(|_| refused());
        let parts: Vec<&str> = text.split(':').collect();
        let kind = match parts[..] {
            ["flip", _] => TapKind::FlipBit(0),
            ["flip", _, byte] => TapKind::FlipBit(8 * u32::from(short(byte)?)),
            ["flip", _, byte, bit @ ("0" | "1" | "2" | "3" | "4" | "5" | "6" | "7")] => {
                TapKind::FlipBit(8 * u32::from(short(byte)?) + u32::from(short(bit)?))
            }
            ["drop", _] => TapKind::Drop,
            ["dup" | "duplicate", _] => TapKind::Duplicate,
            ["misroute", _] => TapKind::MisrouteBeside,
            ["keep", _] => TapKind::HoleInKeep,
            ["hold", _] => TapKind::Hold,
            ["misroute", _, qid] => TapKind::Misroute(Qid(short(qid)?)),
            _ => return Err(refused()),
        };
        Ok(FrameTap { frame: number(parts[1])?, kind })
    }
}

/// What a [`FrameTap`] does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TapKind {
    /// Flip this bit of the frame (bit 0 of byte 0 first), modulo its length.
    FlipBit(u32),
    /// It never arrives, nor does its completion.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives in this queue, its completion too.
    Misroute(Qid),
    /// The same, in the queue beside its own: 1 for 0, 0 for 1, 3 for 2, …
    MisrouteBeside,
    /// At the wire its last beat's `tkeep` has a hole: the RTL's assertions must see it.
    HoleInKeep,
    /// From this frame on nothing is taken out of the RTL any more: a hang.
    Hold,
}

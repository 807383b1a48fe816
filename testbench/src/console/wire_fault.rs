//! Faults of the cable and the far end: what becomes of the next frames on their way to the ports.

use std::collections::VecDeque;
use std::str::FromStr;

use crate::card::WireFrame;
use crate::shape::BadOption;

/// What happens to a frame before it reaches its port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireFault {
    /// One bit is flipped, bit 0 of byte 0 first, modulo the frame's length; the FCS still fits, as if the sender had
    /// sent it so.
    Flip(u32),
    /// Its FCS is wrong: the MAC marks it, and the adapter drops and counts it.
    Fcs,
    /// It is cut to so many bytes; under 60 it is a runt.
    Cut(u16),
    /// It is lost on the cable.
    Drop,
}

impl FromStr for WireFault {
    type Err = BadOption;

    /// `flip[:BYTE[:BIT]]`, `fcs`, `cut:BYTES`, `drop`.
    fn from_str(text: &str) -> Result<WireFault, BadOption> {
        let bad = || BadOption {
            what: text.into(),
            why: "is no fault of the wire: flip[:BYTE[:BIT]], fcs, cut:BYTES, drop".into(),
        };
        let number = |part: &str| part.parse::<u16>().map_err(|_| bad());
        match text.split(':').collect::<Vec<_>>()[..] {
            ["flip"] => Ok(WireFault::Flip(0)),
            ["flip", byte] => Ok(WireFault::Flip(8 * u32::from(number(byte)?))),
            ["flip", byte, bit] => match number(bit)? {
                bit @ 0..8 => Ok(WireFault::Flip(8 * u32::from(number(byte)?) + u32::from(bit))),
                _ => Err(bad()),
            },
            ["fcs"] => Ok(WireFault::Fcs),
            ["cut", bytes] => match number(bytes)? {
                0 => Err(bad()),
                bytes => Ok(WireFault::Cut(bytes)),
            },
            ["drop"] => Ok(WireFault::Drop),
            _ => Err(bad()),
        }
    }
}

/// Faults that are to come, in order: each strikes so many frames.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WireFaults {
    coming: VecDeque<(u64, WireFault)>,
    struck: u64,
}

impl WireFaults {
    /// After the faults that are to come already, this one strikes so many frames.
    pub fn plan(&mut self, frames: u64, fault: WireFault) {
        if frames > 0 {
            self.coming.push_back((frames, fault));
        }
    }

    /// None is to come any more.
    pub fn clear(&mut self) {
        self.coming.clear();
    }

    /// Frames struck so far.
    pub fn struck(&self) -> u64 {
        self.struck
    }

    /// Frames that are to be struck yet.
    pub fn coming(&self) -> u64 {
        self.coming.iter().map(|(frames, _)| frames).sum()
    }

    /// What becomes of a frame; one that is lost leaves its buffer.
    pub(super) fn strike(&mut self, mut frame: WireFrame) -> Result<WireFrame, Vec<u8>> {
        let Some((left, fault)) = self.coming.front_mut() else { return Ok(frame) };
        let fault = *fault;
        *left -= 1;
        if *left == 0 {
            self.coming.pop_front();
        }
        self.struck += 1;
        match fault {
            WireFault::Flip(bit) if !frame.data.is_empty() => {
                let at = bit as usize % (8 * frame.data.len());
                frame.data[at / 8] ^= 1 << (at % 8);
            }
            WireFault::Flip(_) => {}
            WireFault::Fcs => frame.err = true,
            WireFault::Cut(bytes) => frame.data.truncate(usize::from(bytes)),
            WireFault::Drop => return Err(frame.data),
        }
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> WireFrame {
        WireFrame { data: vec![0; 60], ..WireFrame::default() }
    }

    #[test]
    fn faults_strike_in_order_and_then_no_more() {
        let mut faults = WireFaults::default();
        faults.plan(1, "flip:2:1".parse().expect("a fault"));
        faults.plan(2, WireFault::Fcs);
        faults.plan(1, WireFault::Drop);
        let flipped = faults.strike(frame()).expect("not lost");
        assert_eq!((flipped.data[2], flipped.err), (2, false));
        assert!(faults.strike(frame()).expect("not lost").err);
        assert!(faults.strike(frame()).expect("not lost").err);
        assert_eq!(faults.strike(frame()), Err(vec![0; 60]));
        assert_eq!(faults.strike(frame()), Ok(frame()));
        assert_eq!((faults.struck(), faults.coming()), (4, 0));
    }

    #[test]
    fn what_is_no_fault_is_refused() {
        for text in ["", "flop", "flip:x", "flip:0:8", "cut", "cut:0", "cut:-1", "drop:1"] {
            assert!(text.parse::<WireFault>().is_err(), "{text}");
        }
    }
}

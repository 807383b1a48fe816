//! When a source pauses and a sink holds back: seeded patterns.

use std::fmt;
use std::str::FromStr;

/// A pattern, as named on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// `none`: never.
    #[default]
    None,
    /// `random:PERCENT`: each cycle for itself.
    Random {
        /// Of cycles, 1…99.
        percent: u8,
    },
    /// `bursts:MAX`: runs of holding and of going, each 1…MAX cycles.
    Bursts {
        /// Longest run, cycles.
        max_cycles: u16,
    },
    /// `every:N`: each N-th cycle.
    EveryNth {
        /// At least 2.
        n: u16,
    },
    /// `between-beats`: 1…4 cycles before each beat of a frame but the first, never between frames.
    BetweenBeats,
}

/// A profile that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is no stall profile: none, random:PERCENT (1-99), bursts:MAX (1-65535), every:N (2-65535), between-beats"
)]
pub struct ParseProfileError(String);

impl FromStr for Profile {
    type Err = ParseProfileError;

    fn from_str(text: &str) -> Result<Profile, ParseProfileError> {
        let (name, value) =
            text.split_once(':').map_or((text, None), |(name, value)| (name, value.parse::<u16>().ok()));
        match (name, value) {
            ("none", None) if text == "none" => Ok(Profile::None),
            ("between-beats", None) if text == "between-beats" => Ok(Profile::BetweenBeats),
            ("random", Some(percent @ 1..=99)) => Ok(Profile::Random { percent: percent as u8 }),
            ("bursts", Some(max_cycles @ 1..)) => Ok(Profile::Bursts { max_cycles }),
            ("every", Some(n @ 2..)) => Ok(Profile::EveryNth { n }),
            _ => Err(ParseProfileError(text.to_string())),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Profile::None => write!(f, "none"),
            Profile::Random { percent } => write!(f, "random:{percent}"),
            Profile::Bursts { max_cycles } => write!(f, "bursts:{max_cycles}"),
            Profile::EveryNth { n } => write!(f, "every:{n}"),
            Profile::BetweenBeats => write!(f, "between-beats"),
        }
    }
}

/// A pattern at work on one stream.
#[derive(Clone, Debug)]
pub struct Stall {
    profile: Profile,
    rng: SplitMix64,
    /// Cycles left of the present run, or since the last hold.
    count: u16,
    holding: bool,
}

impl Stall {
    /// The pattern for the stream `name`. The same seed and name give the same pattern, and two names differ.
    pub fn new(profile: Profile, seed: u64, name: &str) -> Stall {
        Stall { profile, rng: SplitMix64::named(seed, name), count: 0, holding: false }
    }

    /// Never hold.
    pub fn none() -> Stall {
        Stall::new(Profile::None, 0, "")
    }

    /// Does it never hold?
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self.profile, Profile::None)
    }

    /// Hold in this cycle? Asked once a cycle. `mid_frame`: the beat at hand is not a frame's first.
    #[inline]
    pub fn holds(&mut self, mid_frame: bool) -> bool {
        match self.profile {
            Profile::None => false,
            other => self.decide(other, mid_frame),
        }
    }

    fn decide(&mut self, profile: Profile, mid_frame: bool) -> bool {
        match profile {
            Profile::None => false,
            Profile::Random { percent } => self.rng.below(100) < u64::from(percent),
            Profile::Bursts { max_cycles } => {
                if self.count == 0 {
                    self.holding = !self.holding;
                    self.count = 1 + self.rng.below(u64::from(max_cycles)) as u16;
                }
                self.count -= 1;
                self.holding
            }
            Profile::EveryNth { n } => {
                self.count = (self.count + 1) % n;
                self.count == 0
            }
            Profile::BetweenBeats => self.between_beats(mid_frame),
        }
    }

    /// A run of holds, then one cycle in which the beat may pass.
    fn between_beats(&mut self, mid_frame: bool) -> bool {
        if !mid_frame {
            self.holding = false;
            return false;
        }
        if !self.holding {
            self.holding = true;
            self.count = 1 + self.rng.below(4) as u16;
        }
        if self.count == 0 {
            self.holding = false;
            return false;
        }
        self.count -= 1;
        true
    }
}

/// Steele, Lea and Flood's SplitMix64: small, fast, and the same on every machine.
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator of its own for each name (FNV-1a over the name, from the seed).
    fn named(seed: u64, name: &str) -> SplitMix64 {
        let start = 0xcbf2_9ce4_8422_2325 ^ seed;
        SplitMix64(name.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// 0 … `bound` - 1; the bias of at most `bound / 2^32` does not matter here.
    fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str, seed: u64, mid_frame: bool) -> Vec<bool> {
        let mut stall = Stall::new(text.parse().expect("a profile"), seed, "c2h");
        (0..1000).map(|_| stall.holds(mid_frame)).collect()
    }

    #[test]
    fn profiles_are_read_as_they_are_written() {
        for text in ["none", "random:30", "bursts:16", "every:3", "between-beats"] {
            assert_eq!(text.parse::<Profile>().expect("a profile").to_string(), text);
        }
        for text in
            ["", "random", "random:0", "random:100", "bursts:0", "every:1", "none:1", "between-beats:x", "random:-1"]
        {
            assert!(text.parse::<Profile>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_seed_is_a_pattern() {
        assert_eq!(pattern("random:50", 1, false), pattern("random:50", 1, false));
        assert_ne!(pattern("random:50", 1, false), pattern("random:50", 2, false));
        let held = pattern("random:30", 1, false).iter().filter(|&&held| held).count();
        assert!((250..350).contains(&held), "{held} of 1000 for 30 %");
    }

    #[test]
    fn patterns_hold_when_they_say_and_always_let_go() {
        assert!(!pattern("none", 1, true).contains(&true));
        assert_eq!(pattern("every:4", 1, false).iter().filter(|&&held| held).count(), 250);
        assert!(!pattern("between-beats", 1, false).contains(&true), "never between frames");
        let longest = |held: Vec<bool>| held.split(|&h| !h).map(<[bool]>::len).max();
        assert_eq!(longest(pattern("between-beats", 1, true)), Some(4));
        assert_eq!(longest(pattern("bursts:8", 1, true)), Some(8));
    }
}

//! The pcap writer.

use std::io::{self, Write};

use super::len_u32;

/// Unit of the sub-second field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// Magic a1b2c3d4; times are cut to whole microseconds.
    Microseconds,
    /// Magic a1b23c4d.
    Nanoseconds,
}

/// Writes an Ethernet pcap file, version 2.4.
pub struct Pcap<W> {
    out: W,
    resolution: Resolution,
}

impl<W: Write> Pcap<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// `out` can't be written.
    pub fn new(mut out: W, resolution: Resolution) -> io::Result<Self> {
        let magic: u32 = match resolution {
            Resolution::Microseconds => 0xa1b2_c3d4,
            Resolution::Nanoseconds => 0xa1b2_3c4d,
        };
        out.write_all(&magic.to_le_bytes())?;
        out.write_all(&2u16.to_le_bytes())?;
        out.write_all(&4u16.to_le_bytes())?;
        // Time zone and accuracy, both always 0; snap length; link type Ethernet without FCS.
        for word in [0u32, 0, 262_144, 1] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { out, resolution })
    }

    /// Writes a frame, FCS left out, at a time in nanoseconds since 1970.
    ///
    /// # Errors
    /// `out` can't be written, or the time is past 2106 (the format has 32 bits of seconds).
    pub fn write(&mut self, time_ns: u64, frame: &[u8]) -> io::Result<()> {
        let seconds = u32::try_from(time_ns / 1_000_000_000).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "time past 2106: pcap cannot hold it, write pcapng")
        })?;
        let nanoseconds = (time_ns % 1_000_000_000) as u32;
        let ticks = match self.resolution {
            Resolution::Microseconds => nanoseconds / 1_000,
            Resolution::Nanoseconds => nanoseconds,
        };
        let len = len_u32(frame)?;
        for word in [seconds, ticks, len, len] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.out.write_all(frame)
    }

    /// Flushes, and gives the stream back.
    ///
    /// # Errors
    /// `out` can't be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

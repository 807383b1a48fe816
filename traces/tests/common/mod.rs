//! Shared by the tests: where the developers' captures are, and small files made in memory.
#![allow(dead_code)] // each test binary uses its own part of this

use std::path::PathBuf;

use traces::read::{Event, Frame, Policy, ReadError, Reader, Refused, Tally};

/// A file of the developers' shared folder, which lies beside the checkout; says so aloud when it isn't there.
pub fn shared(file: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(file);
    if !path.exists() {
        println!("skipped: shared/{file} is not there");
        return None;
    }
    Some(path)
}

/// The captures, sorted by name.
pub fn captures() -> Option<Vec<PathBuf>> {
    let folder = shared("captures/open")?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "pcap" || extension == "pcapng"));
    files.sort();
    Some(files)
}

/// All that a reader gave.
#[derive(Debug, Default)]
pub struct Read {
    pub frames: Vec<Frame>,
    pub refused: Vec<Refused>,
    pub error: Option<ReadError>,
    pub tally: Tally,
}

/// Reads to the end, and checks that the reader moves on with each packet.
pub fn read_all(bytes: Vec<u8>, policy: Policy) -> Read {
    let mut read = Read::default();
    let mut reader = match Reader::new(std::io::Cursor::new(bytes), "test", policy) {
        Ok(reader) => reader,
        Err(error) => return Read { error: Some(error), ..read },
    };
    let mut frame = Frame::default();
    let mut before = 0;
    loop {
        match reader.read(&mut frame) {
            Ok(Event::Frame) => read.frames.push(frame.clone()),
            Ok(Event::Refused(refused)) => read.refused.push(refused),
            Ok(Event::End) => break,
            Err(error) => {
                read.error = Some(error);
                break;
            }
        }
        assert!(reader.offset() > before, "the reader stands still at byte {before}");
        before = reader.offset();
    }
    assert_eq!(reader.read(&mut frame).unwrap(), Event::End, "the end stays the end");
    read.tally = reader.tally().clone();
    assert_eq!(read.tally.frames, read.frames.len() as u64);
    assert_eq!(read.tally.refused_total(), read.refused.len() as u64);
    read
}

/// A little-endian pcap of one packet with these lengths in its header, and `data` behind it.
pub fn pcap_one(snap_len: u32, link_type: u32, captured: u32, original: u32, data: &[u8]) -> Vec<u8> {
    let mut file = 0xa1b2_3c4du32.to_le_bytes().to_vec();
    for half in [2u16, 4] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    for word in [0, 0, snap_len, link_type, 1, 2, captured, original] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(data);
    file
}

/// A pcapng block in either byte order.
pub struct Block {
    pub big: bool,
    pub body: Vec<u8>,
}

impl Block {
    pub fn new(big: bool) -> Self {
        Self { big, body: Vec::new() }
    }

    pub fn u16(mut self, value: u16) -> Self {
        self.body.extend_from_slice(&if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn u32(mut self, value: u32) -> Self {
        self.body.extend_from_slice(&if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn u64(mut self, value: u64) -> Self {
        self.body.extend_from_slice(&if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
        self
    }

    pub fn option(self, code: u16, value: &[u8]) -> Self {
        self.u16(code).u16(value.len() as u16).bytes(value)
    }

    pub fn build(self, block_type: u32) -> Vec<u8> {
        let length = self.body.len() as u32 + 12;
        let body = self.body;
        Self::new(self.big).u32(block_type).u32(length).bytes(&body).u32(length).body
    }
}

/// A section header.
pub fn section(big: bool) -> Vec<u8> {
    Block::new(big).u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX).build(0x0a0d_0d0a)
}

/// An interface description with some options.
pub fn interface(big: bool, link_type: u16, snap_len: u32, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let block = Block::new(big).u16(link_type).u16(0).u32(snap_len);
    options.iter().fold(block, |block, (code, value)| block.option(*code, value)).build(1)
}

/// An enhanced packet.
pub fn enhanced(big: bool, interface: u32, ticks: u64, data: &[u8], options: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let len = data.len() as u32;
    let block =
        Block::new(big).u32(interface).u32((ticks >> 32) as u32).u32(ticks as u32).u32(len).u32(len).bytes(data);
    options.iter().fold(block, |block, (code, value)| block.option(*code, value)).build(6)
}

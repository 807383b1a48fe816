//! Bytes in: a file, standard input or memory, unpacked when gzip, with a count of where we are.
//!
//! Memory is one fixed buffer here and what a packet or block really holds above: a length field alone never makes us
//! allocate.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::error::Fault;

const BUFFER_BYTES: usize = 64 * 1024;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(super) struct Source {
    inner: BufReader<Box<dyn Read + Send>>,
    offset: u64,
    packed: bool,
    cut: bool,
}

impl Source {
    /// Looks at the first two bytes to tell gzip.
    pub(super) fn new(mut raw: Box<dyn Read + Send>) -> Result<Self, Fault> {
        let mut head = Vec::new();
        raw.as_mut().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head).map_err(Fault::Io)?;
        let packed = head == GZIP_MAGIC;
        let whole = Cursor::new(head).chain(raw);
        let inner: Box<dyn Read + Send> = if packed {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self { inner: BufReader::with_capacity(BUFFER_BYTES, inner), offset: 0, packed, cut: false })
    }

    /// Byte in the unpacked stream that comes next.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn is_packed(&self) -> bool {
        self.packed
    }

    /// The gzip stream ended before its own end mark. The bytes before are good.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Fills `out` as far as there are bytes, and says how far that was.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let mut got = 0;
        while got < out.len() {
            match self.inner.read(&mut out[got..]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.end(error)?;
                    break;
                }
            }
        }
        self.offset += got as u64;
        Ok(got)
    }

    /// Replaces `out` by the next `len` bytes or as many as there are, and says how many that was.
    pub(super) fn fill_vec(&mut self, out: &mut Vec<u8>, len: u64) -> Result<u64, Fault> {
        out.clear();
        if let Err(error) = self.inner.by_ref().take(len).read_to_end(out) {
            self.end(error)?;
        }
        let got = out.len() as u64;
        self.offset += got;
        Ok(got)
    }

    /// Passes over `len` bytes, or as many as there are, and says how many that was.
    pub(super) fn skip(&mut self, len: u64) -> Result<u64, Fault> {
        let mut left = len;
        while left > 0 {
            let there = match self.inner.fill_buf() {
                Ok(buffer) => buffer.len(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.end(error)?;
                    0
                }
            };
            if there == 0 {
                break;
            }
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(there);
            self.inner.consume(step);
            left -= step as u64;
        }
        let got = len - left;
        self.offset += got;
        Ok(got)
    }

    /// A gzip stream that ends early is a file that ends early; any other trouble is an error.
    fn end(&mut self, error: io::Error) -> Result<(), Fault> {
        match (self.packed, error.kind()) {
            (true, io::ErrorKind::UnexpectedEof) => {
                self.cut = true;
                Ok(())
            }
            (true, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Err(Fault::Gzip(error)),
            _ => Err(Fault::Io(error)),
        }
    }
}

//! What programs print: lines in a buffer of fixed size, so that a program that prints for every packet costs no memory.

use alloc::string::String;
use core::fmt::Write;

use crate::memory::Memory;

const BYTES_MAX: usize = 1 << 16;

/// Longest string that `%s` shows.
const STRING_BYTES_MAX: usize = 64;

/// The lines of `bpf_trace_printk`.
#[derive(Debug)]
pub struct Trace {
    text: String,
    lost: u64,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { text: String::with_capacity(BYTES_MAX), lost: 0 }
    }

    /// What was printed since the last [`Self::clear`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Messages that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Forget what was printed.
    pub fn clear(&mut self) {
        self.text.clear();
        self.lost = 0;
    }
}

/// One conversion: `%-08llx` and the like.
struct Conversion {
    zeros: bool,
    left: bool,
    width: usize,
    /// 8, 16, 32 or 64 bits of the argument count.
    bits: u32,
    kind: u8,
}

/// Format one message; its length, or nothing for a format that the kernel would refuse.
pub(crate) fn print(trace: &mut Trace, format: &[u8], args: &[u64], mem: &Memory<'_, '_>) -> Result<usize, ()> {
    let end = format.iter().position(|byte| *byte == 0).ok_or(())?;
    let mut rest = &format[..end];
    let before = trace.text.len();
    let mut args = args.iter();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            push(trace, char::from(byte));
            continue;
        }
        let Some(conversion) = parse(&mut rest) else {
            trace.text.truncate(before);
            return Err(());
        };
        if conversion.kind == b'%' {
            push(trace, '%');
            continue;
        }
        let Some(&arg) = args.next() else {
            trace.text.truncate(before);
            return Err(());
        };
        show(trace, &conversion, arg, mem);
    }
    let len = trace.text.len() - before;
    if trace.text.len() >= BYTES_MAX {
        trace.text.truncate(before);
        trace.lost += 1;
    }
    Ok(len)
}

/// Never beyond the buffer, so that it never grows: [`print`] then takes the message out again.
fn push(trace: &mut Trace, character: char) {
    let character = if character.is_ascii() { character } else { '?' };
    if trace.text.len() < BYTES_MAX {
        trace.text.push(character);
    }
}

fn parse(rest: &mut &[u8]) -> Option<Conversion> {
    let mut conversion = Conversion { zeros: false, left: false, width: 0, bits: 32, kind: 0 };
    loop {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        match byte {
            b'0' if conversion.width == 0 => conversion.zeros = true,
            b'-' => conversion.left = true,
            b'+' | b'#' | b' ' => {}
            b'0'..=b'9' => conversion.width = (conversion.width * 10 + usize::from(byte - b'0')).min(64),
            b'l' => conversion.bits = 64,
            b'h' => conversion.bits = if conversion.bits == 16 { 8 } else { 16 },
            b'd' | b'i' | b'u' | b'x' | b'X' | b'p' | b'c' | b's' | b'%' => {
                conversion.kind = byte;
                return Some(conversion);
            }
            _ => return None,
        }
    }
}

fn show(trace: &mut Trace, conversion: &Conversion, arg: u64, mem: &Memory<'_, '_>) {
    let unused = 64 - if conversion.kind == b'p' { 64 } else { conversion.bits };
    let unsigned = arg << unused >> unused;
    let mut text = Short::default();
    // A number has at most 20 characters, so none of these can fail.
    let _ = match conversion.kind {
        b'd' | b'i' => write!(text, "{}", (arg << unused).cast_signed() >> unused),
        b'u' => write!(text, "{unsigned}"),
        b'x' => write!(text, "{unsigned:x}"),
        b'X' => write!(text, "{unsigned:X}"),
        b'p' => write!(text, "{unsigned:016x}"),
        b'c' => text.write_char(char::from(arg as u8)),
        _ => {
            for at in 0..STRING_BYTES_MAX as u64 {
                match mem.load(arg.wrapping_add(at)) {
                    Ok([0]) | Err(_) => break,
                    Ok([byte]) => text.push(byte),
                }
            }
            Ok(())
        }
    };
    let pad = conversion.width.saturating_sub(text.len);
    let fill = if conversion.zeros && !conversion.left { '0' } else { ' ' };
    let before = if conversion.left { 0 } else { pad };
    (0..before).for_each(|_| push(trace, fill));
    text.bytes[..text.len].iter().for_each(|byte| push(trace, char::from(*byte)));
    (before..pad).for_each(|_| push(trace, ' '));
}

/// A short text without memory of its own.
struct Short {
    bytes: [u8; STRING_BYTES_MAX],
    len: usize,
}

impl Default for Short {
    fn default() -> Self {
        Self { bytes: [0; STRING_BYTES_MAX], len: 0 }
    }
}

impl Short {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        text.bytes().for_each(|byte| self.push(byte));
        Ok(())
    }
}

//! Clock and random helpers made constants in an object's image, so that two runs of it can be compared.
//!
//! The call becomes `r0 = constant`. Both sides get the same bytes. (What the helpers answer in the VM is a matter of
//! its own tests.)

use object::{Object, ObjectSection, SectionKind};

/// Helpers whose answer differs from call to call: `ktime_get_ns`, `get_prandom_u32`, `jiffies64`, `ktime_get_boot_ns`,
/// `ktime_get_coarse_ns`, `ktime_get_tai_ns`.
const HELPERS: [i32; 6] = [5, 7, 118, 125, 160, 208];

/// What they answer instead: large enough that a sign extension of 32 bits would show.
const ANSWER: i32 = 0x5eed_cafe;

const INSN_BYTES: usize = 8;
const LOAD_IMM64: u8 = 0x18;
const CALL: u8 = 0x85;
const MOV_IMM: u8 = 0xb7;

/// The object with such calls replaced. What is no object comes back as it is, for the loaders to refuse.
pub fn freeze(image: &[u8]) -> Vec<u8> {
    let mut out = image.to_vec();
    let Ok(file) = object::File::parse(image) else { return out };
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let Some((start, len)) = section.file_range() else { continue };
        let range = usize::try_from(start).ok().zip(usize::try_from(len).ok());
        let code = range.and_then(|(start, len)| out.get_mut(start..start.checked_add(len)?));
        if let Some(code) = code {
            freeze_code(code);
        }
    }
    out
}

fn freeze_code(code: &mut [u8]) {
    let mut second = false;
    for insn in code.chunks_exact_mut(INSN_BYTES) {
        // The second half of a 64-bit load is no instruction.
        if std::mem::take(&mut second) {
            continue;
        }
        second = insn[0] == LOAD_IMM64;
        let helper = i32::from_le_bytes([insn[4], insn[5], insn[6], insn[7]]);
        // Source register 0: a helper, not a function of the program's.
        if insn[0] == CALL && insn[1] >> 4 == 0 && HELPERS.contains(&helper) {
            insn[..4].copy_from_slice(&[MOV_IMM, 0, 0, 0]);
            insn[4..].copy_from_slice(&ANSWER.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::freeze_code;

    #[test]
    fn only_calls_of_clocks_change() {
        let call = |helper: u8, source: u8| [0x85, source << 4, 0, 0, helper, 0, 0, 0];
        let mut code = [call(5, 0), [0x18, 1, 0, 0, 0, 0, 0, 0], call(5, 0), call(5, 1), call(1, 0), call(7, 0)];
        let before = code;
        freeze_code(code.as_flattened_mut());
        assert_eq!(code[1..5], before[1..5]);
        assert_eq!([code[0], code[5]], [[0xb7, 0, 0, 0, 0xfe, 0xca, 0xed, 0x5e]; 2]);
    }
}

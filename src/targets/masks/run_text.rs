//! The compressed text of run lengths, as COCO writes it.
//!
//! Each letter has five bits of a number and a mark whether more follow, lowest bits first. From
//! the fourth number on, the text has the difference to the number two before it.

use crate::targets::fault::TargetFault;

/// The letter of 0.
const FIRST: u8 = 48;
const BITS: u32 = 5;
/// The mark of a letter after which the number goes on.
const MORE: u8 = 0x20;
/// The highest bit of a number: set if it is negative.
const SIGN: u8 = 0x10;
/// Letters of the longest number. The difference of two lengths has 33 bits.
const MOST_LETTERS: u32 = 7;

/// Lengths of runs that add up to at most `pixels`.
pub(super) fn read(text: &[u8], pixels: u64) -> Result<Vec<u32>, TargetFault> {
    let mut counts: Vec<u32> = Vec::new();
    let (mut value, mut letters, mut sum) = (0i64, 0, 0u64);
    let fault = |reason: String| Err(TargetFault::new("counts", reason));
    for (at, letter) in text.iter().enumerate() {
        let bits = letter.wrapping_sub(FIRST);
        if bits > 63 {
            return fault(format!(
                "have the byte {letter} at {at}: compressed run lengths have bytes 48 to 111"
            ));
        }
        if letters == MOST_LETTERS {
            return fault(format!("have a number of more than 33 bits at {at}"));
        }
        value |= i64::from(bits & 0x1f) << (BITS * letters);
        letters += 1;
        if bits & MORE != 0 {
            continue;
        }
        if bits & SIGN != 0 {
            value |= -1 << (BITS * letters);
        }
        if let Some(before) = counts.len().checked_sub(2).filter(|_| counts.len() > 2) {
            value += i64::from(counts[before]);
        }
        let Ok(count) = u32::try_from(value) else {
            return fault(format!("have the length {value} at {at}"));
        };
        sum += u64::from(count);
        if sum > pixels {
            return fault(format!("exceed the {pixels} pixels of the mask at {at}"));
        }
        counts.push(count);
        (value, letters) = (0, 0);
    }
    match letters {
        0 => Ok(counts),
        _ => fault("end within a number: the text is cut".into()),
    }
}

pub(super) fn write(counts: &[u32]) -> String {
    let mut text = String::new();
    for (i, count) in counts.iter().enumerate() {
        let mut value = i64::from(*count);
        if i > 2 {
            value -= i64::from(counts[i - 2]);
        }
        loop {
            let bits = (value & 0x1f) as u8;
            value >>= BITS;
            let ends = value == if bits & SIGN != 0 { -1 } else { 0 };
            let letter = FIRST + bits + if ends { 0 } else { MORE };
            text.push(char::from(letter));
            if ends {
                break;
            }
        }
    }
    text
}

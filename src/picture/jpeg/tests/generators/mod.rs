//! Generates JPEGs by structure, for tests: files that no encoder writes.
//!
//! - `any_structure`: random frames, scans, tables and other segments, and random coded data. Few
//!   of its files are valid.
//! - `right_codes`: one scan of valid codes, with odd Huffman tables. The fast decoder takes most.
//!
//! Both often have tables without codes, codes that overlap, and long values.

mod any_structure;
mod right_codes;

use super::fixtures::Random;

pub(crate) use any_structure::any_structure;
pub(crate) use right_codes::right_codes;

/// A random choice.
fn any<T: Copy>(choices: &[T], random: &mut Random) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

fn one_in(n: u64, random: &mut Random) -> bool {
    random.below(n) == 0
}

fn bytes(length: u64, random: &mut Random) -> Vec<u8> {
    (0..length).map(|_| random.next() as u8).collect()
}

fn segment(out: &mut Vec<u8>, marker: u8, content: &[u8]) {
    out.extend([0xFF, marker]);
    out.extend((content.len() as u16 + 2).to_be_bytes());
    out.extend(content);
}

/// A quantization table of 8 or 16 bits per value.
fn quantization(out: &mut Vec<u8>, number: u8, random: &mut Random) {
    let is_wide = one_in(3, random);
    let kind = random.below(5);
    let mut content = vec![u8::from(is_wide) << 4 | number];
    for _ in 0..64 {
        let value = match kind {
            0 => 1,
            1 => 16,
            2 => random.below(256) as u16,
            3 => random.below(60) as u16,
            _ => random.next() as u16,
        };
        content.extend(&value.to_be_bytes()[usize::from(!is_wide)..]);
    }
    segment(out, 0xDB, &content);
}

/// The content of a Huffman table: counts of codes, and symbols. Some tables have no codes.
/// `is_right`: no codes overlap, and one AC code ends a block.
fn huffman(is_ac: bool, is_right: bool, random: &mut Random) -> Vec<u8> {
    if one_in(8, random) {
        return vec![0; 16];
    }
    let mut content = vec![0; 16];
    // Unused codes of the length; a code of only ones is not allowed.
    let mut left = 1;
    let mut symbols_left = if is_ac { 250 } else { 15 };
    for count in &mut content {
        left *= 2;
        let most = symbols_left.min(left - 1).min(40);
        let codes = match random.below(4) {
            0 => 0,
            1 => most.min(1),
            2 => most.min(random.below(4)),
            _ => random.below(most + 1),
        };
        *count = codes as u8;
        left = (left - codes).min(1 << 16);
        symbols_left -= codes;
    }
    let number: usize = content.iter().map(|&codes| usize::from(codes)).sum();
    let longest_value = any(&[3, 6, 15], random);
    let longest_run = any(&[3, 15], random);
    for _ in 0..number {
        let size = random.below(longest_value + 1) as u8;
        let run = random.below(longest_run + 1) as u8;
        content.push(match random.below(8) {
            _ if !is_ac => size,
            0 => 0,
            1 => 0xF0,
            2 if !is_right => random.next() as u8,
            _ => run << 4 | size.max(1),
        });
    }
    if is_right {
        let ends = !is_ac || content[16..].contains(&0);
        return if number > 0 && ends {
            content
        } else {
            huffman(is_ac, true, random)
        };
    }
    // Makes codes overlap, mostly.
    if one_in(20, random) {
        content[random.below(16) as usize] = random.next() as u8;
        let number: usize = content[..16].iter().map(|&codes| usize::from(codes)).sum();
        content.resize(16 + number, 3);
    }
    content
}

/// A Huffman table's segment. `number` is 0x10 or more for AC.
fn huffman_segment(out: &mut Vec<u8>, number: u8, content: &[u8]) {
    segment(out, 0xC4, &[&[number], content].concat());
}

/// An Adobe or a JFIF segment, sometimes too short or too long.
fn colour_segment(out: &mut Vec<u8>, is_whole: bool, random: &mut Random) {
    let (marker, mut content) = match random.below(2) {
        0 => (0xEE, b"Adobe\0\x64\0\0\0\0".to_vec()),
        _ => (0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0".to_vec()),
    };
    content.push(if marker == 0xEE {
        random.below(4) as u8
    } else {
        0
    });
    if !is_whole && one_in(4, random) {
        content.pop();
    }
    segment(out, marker, &content);
}

/// Segments of all kinds, markers without content, and bytes outside segments.
fn segments(out: &mut Vec<u8>, is_between_scans: bool, random: &mut Random) {
    for _ in 0..random.below(4) {
        let number = random.below(4) as u8;
        match random.below(14) {
            0 => quantization(out, number, random),
            1 | 2 => {
                let is_ac = one_in(2, random);
                let content = huffman(is_ac, false, random);
                huffman_segment(out, u8::from(is_ac) << 4 | number, &content);
            }
            3 => {
                let interval = any(&[0u16, 1, 2, 3, 5, 17, 300, 65535], random);
                segment(out, 0xDD, &interval.to_be_bytes());
            }
            4 => {
                // Arithmetic conditioning. For DC the lower bound is mostly valid.
                let (table, low) = (random.below(32) as u8, random.below(16) as u8);
                let high = low + random.below(16 - u64::from(low)) as u8;
                let value = if table < 16 {
                    high << 4 | low
                } else {
                    random.next() as u8
                };
                segment(out, 0xCC, &[table, value]);
            }
            5 => colour_segment(out, false, random),
            6 => {
                let content = bytes(random.below(20), random);
                segment(
                    out,
                    any(&[0xE0, 0xE1, 0xE2, 0xEE, 0xFE, 0xDC], random),
                    &content,
                );
            }
            7 => out.extend([0xFF, any(&[0x01, 0xD0, 0xD3, 0xD7, 0xFF], random)]),
            8 => out.push(random.next() as u8 & 0x7F),
            9 if is_between_scans => out.extend([0xFF, 0]),
            10 if one_in(20, random) => out.extend([0xFF, random.next() as u8]),
            _ => {}
        }
    }
}

/// A frame of a file. Components mostly have different names.
struct Frame {
    size: (u64, u64),
    names: [u8; 4],
    factors: Vec<u8>,
}

const NAMES: [[u8; 4]; 5] = [[1, 2, 3, 4], [0, 1, 2, 3], *b"RGBA", *b"YCcK", [1, 1, 2, 2]];

impl Frame {
    fn new(names: &[[u8; 4]], random: &mut Random) -> Self {
        let short = 1 + random.below(5);
        let long = 1 + random.below(300);
        let size = match random.below(6) {
            0 => (short, 1 + random.below(9)),
            1 => (long, short),
            2 => (short, long),
            _ => (1 + random.below(60), 1 + random.below(60)),
        };
        // Factors of the first component and of black, and of the others.
        let (first, others): (&[u8], &[u8]) = match random.below(3) {
            0 => (&[0x11, 0x21, 0x22, 0x12, 0x41, 0x14], &[0x11]),
            1 => (&[0x11, 0x12, 0x21, 0x22], &[0x11, 0x12, 0x21, 0x22]),
            _ => (
                &[0x11, 0x22, 0x13, 0x31, 0x33, 0x42, 0x24, 0x44],
                &[0x11, 0x21, 0x31, 0x23],
            ),
        };
        let components = any(&[1, 3, 3, 3, 4], random);
        let factors = (0..components)
            .map(|at| any(if at % 3 == 0 { first } else { others }, random))
            .collect();
        Self {
            size,
            names: any(names, random),
            factors,
        }
    }

    fn components(&self) -> usize {
        self.factors.len()
    }

    fn write(&self, out: &mut Vec<u8>, marker: u8, random: &mut Random) {
        let ((w, h), count) = (self.size, self.components() as u8);
        let [w, h] = [w, h].map(|side| (side as u16).to_be_bytes());
        let mut content = [&[8][..], &h, &w, &[count]].concat();
        for (name, factors) in self.names.iter().zip(&self.factors) {
            content.extend([*name, *factors, random.below(4) as u8]);
        }
        segment(out, marker, &content);
    }

    /// Blocks of a component in an MCU of all components: across, down.
    fn blocks(factors: u8) -> (u64, u64) {
        (u64::from(factors >> 4), u64::from(factors & 15))
    }

    /// MCUs of a scan of all components.
    fn mcus(&self) -> u64 {
        let all = || self.factors.iter().map(|&factors| Self::blocks(factors));
        let (h_most, v_most) = match self.components() {
            1 => (1, 1),
            _ => all().fold((1, 1), |most, f| (most.0.max(f.0), most.1.max(f.1))),
        };
        self.size.0.div_ceil(8 * h_most) * self.size.1.div_ceil(8 * v_most)
    }
}

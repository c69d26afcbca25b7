//! Inputs with a few changes. The same random numbers make the same inputs.

use crate::common::Random;

/// Values at which lengths, sizes and counts break.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    u64::MAX,
];

/// `input` with one to eight changes, and at most `longest` bytes. Inserts `words`, and parts of
/// `other`.
pub fn mutated(
    input: &[u8],
    other: &[u8],
    words: &[Vec<u8>],
    longest: usize,
    random: &mut Random,
) -> Vec<u8> {
    let mut bytes = input[..input.len().min(longest)].to_vec();
    for _ in 0..1 << random.below(4) {
        change(&mut bytes, other, words, random);
        bytes.truncate(longest);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], words: &[Vec<u8>], random: &mut Random) {
    let at = below(bytes.len() + 1, random);
    let some = below(1 << random.below(8), random) + 1;
    let end = bytes.len().min(at + some);
    match random.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.next() as u8,
        2 => overwrite(bytes, at, &number(random)),
        3 => drop(bytes.drain(at..end)),
        4 => bytes.truncate(at),
        5 => {
            let part = bytes[at..end].to_vec();
            let to = below(bytes.len() + 1, random);
            insert(bytes, to, &part);
        }
        6 => insert(bytes, at, &vec![random.next() as u8; some]),
        7 if !words.is_empty() => {
            let word = &words[below(words.len(), random)];
            match random.below(2) {
                0 => insert(bytes, at, word),
                _ => overwrite(bytes, at, word),
            }
        }
        _ => {
            let from = below(other.len() + 1, random);
            overwrite(bytes, at, &other[from..other.len().min(from + some)]);
        }
    }
}

/// An edge or its neighbour, in one, two, four or eight bytes of either byte order.
fn number(random: &mut Random) -> Vec<u8> {
    let edge = EDGES[below(EDGES.len(), random)];
    let value = edge.wrapping_add(random.below(3)).wrapping_sub(1);
    let mut number = value.to_le_bytes()[..1 << random.below(4)].to_vec();
    if random.below(2) == 0 {
        number.reverse();
    }
    number
}

fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    for (byte, new) in bytes[at..].iter_mut().zip(with) {
        *byte = *new;
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    bytes.splice(at..at, part.iter().copied());
}

fn below(n: usize, random: &mut Random) -> usize {
    random.below(n as u64) as usize
}

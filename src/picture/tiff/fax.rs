//! The compressions of fax machines: groups 3 and 4, and rows of runs without marks.
//!
//! Pure. The codes come from the crate `fax`. Lines are decoded here, because the crate does not
//! read lines of group 3 that refer to the line above.

use std::convert::Infallible;

use fax::maps::{Mode, black, mode, white};
use fax::{BitReader, Color};

use super::fault::{corrupt, truncated, unsupported};
use crate::error::SampleFault;

/// The kind of compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaxCoding {
    /// Rows of runs; each begins at a byte.
    Runs,
    Group3,
    Group4,
}

/// Options of group 3: lines may refer to the one above; pixels may be uncompressed.
const TWO_DIMENSIONS: u64 = 1;
const NOT_PACKED: u64 = 2;

/// Fills `to` with rows of `width` bits; 1 is black.
pub(super) fn unpack(
    fax: FaxCoding,
    options: u64,
    width: u32,
    data: &[u8],
    to: &mut [u8],
) -> Result<(), SampleFault> {
    if options & NOT_PACKED != 0 {
        return Err(unsupported("partly uncompressed fax data"));
    }
    // Bounds the width, so that sums of positions do not overflow.
    if width > i32::MAX as u32 / 2 {
        return Err(corrupt(format!("fax data of {width} pixels a row")));
    }
    let mut bits = FaxBits { data, at: 0 };
    let (mut above, mut edges) = (Vec::new(), Vec::new());
    let row_bytes = (width as usize).div_ceil(8);
    for (y, row) in to.chunks_exact_mut(row_bytes.max(1)).enumerate() {
        let is_flat = match fax {
            FaxCoding::Runs => {
                bits.at = bits.at.next_multiple_of(8);
                true
            }
            FaxCoding::Group3 => {
                bits.skip_end_of_line();
                options & TWO_DIMENSIONS == 0 || bits.take() == 1
            }
            FaxCoding::Group4 => false,
        };
        edges.clear();
        let read = match is_flat {
            true => read_runs(&mut bits, width, &mut edges),
            false => read_modes(&mut bits, width, &above, &mut edges),
        };
        if read.is_none() {
            return Err(match bits.at >= 8 * data.len() {
                true => truncated(format!("fax data end at row {y}")),
                false => corrupt(format!("fax data are broken at row {y}")),
            });
        }
        paint(&edges, width, row);
        std::mem::swap(&mut above, &mut edges);
    }
    Ok(())
}

/// Reads alternating runs of white and black. `edges` receives the positions of colour changes.
fn read_runs(bits: &mut FaxBits<'_>, width: u32, edges: &mut Vec<u32>) -> Option<()> {
    let (mut at, mut color) = (0, Color::White);
    while at < width {
        at = read_run(bits, color)?.checked_add(at)?;
        edges.push(at.min(width));
        color = !color;
    }
    Some(())
}

fn read_run(bits: &mut FaxBits<'_>, color: Color) -> Option<u32> {
    let mut run = 0u32;
    loop {
        let part = match color {
            Color::White => white::decode(bits)?,
            Color::Black => black::decode(bits)?,
        };
        run = run.checked_add(part.into())?;
        if part < 64 {
            return Some(run);
        }
    }
}

/// Reads a line that is coded by its differences from the line above.
fn read_modes(
    bits: &mut FaxBits<'_>,
    width: u32,
    above: &[u32],
    edges: &mut Vec<u32>,
) -> Option<()> {
    let (mut at, mut color) = (0u32, Color::White);
    let edge = |i: usize| above.get(i).copied().unwrap_or(width);
    let mut is_first = true;
    let mut beyond = 0;
    while at < width {
        // Finds the first edge above that is further right and changes to the other colour. Edges
        // at even indices change to black.
        while beyond < above.len() && above[beyond] <= at && !(is_first && above[beyond] == 0) {
            beyond += 1;
        }
        let next = beyond + usize::from((beyond % 2 == 1) != (color == Color::Black));
        let b1 = edge(next);
        match mode::decode(bits)? {
            Mode::Pass => at = edge(next + 1),
            Mode::Vertical(by) => {
                let to = i64::from(b1) + i64::from(by);
                let to = u32::try_from(to).ok()?.min(width);
                if to < at {
                    return None;
                }
                edges.push(to);
                at = to;
                color = !color;
            }
            Mode::Horizontal => {
                let first = read_run(bits, color)?.checked_add(at)?;
                let second = read_run(bits, !color)?.checked_add(first)?;
                edges.push(first.min(width));
                edges.push(second.min(width));
                at = second.min(width);
            }
            Mode::Extension | Mode::EOF => return None,
        }
        is_first = false;
    }
    Some(())
}

fn paint(edges: &[u32], width: u32, row: &mut [u8]) {
    row.fill(0);
    for pair in edges.chunks(2) {
        let to = pair.get(1).copied().unwrap_or(width).min(width);
        for x in pair[0]..to {
            row[x as usize / 8] |= 0x80 >> (x % 8);
        }
    }
}

/// The bits of the data, with zeros after the end.
struct FaxBits<'a> {
    data: &'a [u8],
    at: usize,
}

impl FaxBits<'_> {
    fn take(&mut self) -> u16 {
        let bit = self.look(1);
        self.at += 1;
        bit
    }

    fn look(&self, bits: u8) -> u16 {
        let byte = |i: usize| u32::from(self.data.get(self.at / 8 + i).copied().unwrap_or(0));
        let three = byte(0) << 16 | byte(1) << 8 | byte(2);
        let shift = 24 - (self.at % 8) as u32 - u32::from(bits);
        (three >> shift & ((1u32 << bits) - 1)) as u16
    }

    /// Skips an end-of-line code, if there is one: eleven zeros or more, and a one.
    fn skip_end_of_line(&mut self) {
        while self.look(11) == 0 && self.at < 8 * self.data.len() {
            while self.look(1) == 0 && self.at < 8 * self.data.len() {
                self.at += 1;
            }
            self.at += 1;
        }
    }
}

impl BitReader for FaxBits<'_> {
    type Error = Infallible;

    fn peek(&self, bits: u8) -> Option<u16> {
        Some(self.look(bits))
    }

    fn consume(&mut self, bits: u8) -> Result<(), Infallible> {
        self.at += usize::from(bits);
        Ok(())
    }

    fn bits_to_byte_boundary(&self) -> u8 {
        (self.at.next_multiple_of(8) - self.at) as u8
    }
}

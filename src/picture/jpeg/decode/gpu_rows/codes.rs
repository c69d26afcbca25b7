//! A Huffman table in the layout of the kernels.

use bytemuck::{Pod, Zeroable};

use super::super::huffman::HuffmanSpec;

/// Bits of the first lookup of a code, as in `kernels/jpeg/tables.cuh`.
const FIRST_BITS: u32 = 9;

/// A table as in DHT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct KernelCodes {
    pub(super) counts: [u8; 16],
    pub(super) symbols: [u8; 256],
}

impl From<&HuffmanSpec> for KernelCodes {
    fn from(spec: &HuffmanSpec) -> Self {
        let (counts, symbols) = spec.parts();
        Self {
            counts: *counts,
            symbols: *symbols,
        }
    }
}

/// `Table` of `kernels/jpeg/types.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct KernelTable {
    used: u32,
    base: u32,
    threshold: u32,
    second: u32,
    end: u32,
    codes: KernelCodes,
}

impl KernelTable {
    /// A table whose entries begin at `base`; `None` if its codes are invalid.
    pub(super) fn new(codes: KernelCodes, is_dc: bool, base: usize) -> Option<Self> {
        let spec = HuffmanSpec::of(codes.counts, codes.symbols);
        if !(if is_dc { spec.is_dc() } else { spec.is_ac() }) {
            return None;
        }
        let (mut code, mut threshold) = (0u32, 0);
        for (length, &count) in (1u32..).zip(&codes.counts) {
            code += u32::from(count);
            if length == FIRST_BITS {
                threshold = code << (16 - FIRST_BITS);
            }
            if length < 16 {
                code <<= 1;
            }
        }
        let mut ends = spec.symbols().filter(|&(_, symbol)| symbol == 0);
        let end = ends.next().map_or(0, |(length, _)| length);
        Some(Self {
            used: 1,
            base: base as u32,
            threshold,
            second: code - threshold,
            end: if is_dc { 0 } else { end },
            codes,
        })
    }

    /// Entries of its lookup of single codes, like `table_entries` of the kernels.
    pub(super) fn entries(&self) -> usize {
        ((1 << FIRST_BITS) + self.second as usize + 1).next_multiple_of(8)
    }
}

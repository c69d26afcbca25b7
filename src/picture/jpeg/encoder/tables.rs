//! Divisors of the standard (ITU-T T.81, K.1), and the codes of its Huffman tables.

use super::super::standard_tables::{HUFFMAN_TABLES, HuffmanTable};

/// Divisors at quality 50, row by row: luma (table K.1), chroma (table K.2).
pub(super) const DIVISORS: [[u8; 64]; 2] = [
    [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69,
        56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81,
        104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ],
    [
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99,
        99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    ],
];

/// The divisors at a quality of 1 to 100. They are 1 to 255, so that the file is baseline.
pub(in crate::picture::jpeg) fn divisors(quality: u8) -> [[u8; 64]; 2] {
    let quality = u32::from(quality.clamp(1, 100));
    let percent = match quality {
        ..50 => 5000 / quality,
        _ => 200 - 2 * quality,
    };
    DIVISORS.map(|table| {
        table.map(|divisor| ((u32::from(divisor) * percent + 50) / 100).clamp(1, 255) as u8)
    })
}

/// The codes of a table by symbol.
#[derive(Debug)]
pub(super) struct SymbolCodes([u32; 256]);

impl SymbolCodes {
    /// Builds the codes. Each has room below it for a value, whose bits the symbol's low half
    /// counts.
    const fn new(table: &HuffmanTable) -> Self {
        let mut codes = [0; 256];
        let (mut code, mut next, mut length) = (0, 0, 1);
        while length <= 16 {
            let mut count = table.counts[length - 1];
            while count > 0 {
                let symbol = table.symbols[next] as usize;
                let value = symbol % 16;
                codes[symbol] = code << value << 5 | (length + value) as u32;
                code += 1;
                next += 1;
                count -= 1;
            }
            code <<= 1;
            length += 1;
        }
        Self(codes)
    }

    /// The code of a symbol, with zeros below it for the value, and the length of both in bits.
    #[inline(always)]
    pub(super) fn of(&self, symbol: u8) -> (u32, u32) {
        let code = self.0[usize::from(symbol)];
        (code >> 5, code & 31)
    }
}

/// Codes of DC and AC, for luma and for chroma.
pub(super) static CODES: [[SymbolCodes; 2]; 2] = [
    [
        SymbolCodes::new(&HUFFMAN_TABLES[0]),
        SymbolCodes::new(&HUFFMAN_TABLES[2]),
    ],
    [
        SymbolCodes::new(&HUFFMAN_TABLES[1]),
        SymbolCodes::new(&HUFFMAN_TABLES[3]),
    ],
];

//! The segments before the coded data.

use super::super::standard_tables::{HUFFMAN_TABLES, HuffmanTable, ZIGZAG};
use super::bits::ByteOutput;

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const APP0: u8 = 0xe0;
const DQT: u8 = 0xdb;
const SOF0: u8 = 0xc0;
const DHT: u8 = 0xc4;
const SOS: u8 = 0xda;

fn segment(marker: u8, parts: &[&[u8]], out: &mut ByteOutput<'_>) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let [high, low] = (bytes as u16 + 2).to_be_bytes();
    out.put(&[0xff, marker, high, low]);
    for part in parts {
        out.put(part);
    }
}

/// All segments up to the coded data, in libjpeg-turbo's order.
pub(super) fn begin(
    (height, width): (u16, u16),
    divisors: &[[u8; 64]; 2],
    out: &mut ByteOutput<'_>,
) {
    out.put(&[0xff, SOI]);
    // Version 1.1, square pixels, no thumbnail.
    segment(APP0, &[b"JFIF\0", &[1, 1, 0, 0, 1, 0, 1, 0, 0]], out);
    for (id, table) in (0..).zip(divisors) {
        let table = ZIGZAG.map(|place| table[usize::from(place)]);
        segment(DQT, &[&[id], &table], out);
    }
    let ([h1, h0], [w1, w0]) = (height.to_be_bytes(), width.to_be_bytes());
    // Eight bits, three components: number, sampling factors, table of divisors.
    let frame = [8, h1, h0, w1, w0, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1];
    segment(SOF0, &[&frame], out);
    let [dc_luma, dc_chroma, ac_luma, ac_chroma] = &HUFFMAN_TABLES;
    let tables: [(u8, &HuffmanTable); 4] = [
        (0x00, dc_luma),
        (0x10, ac_luma),
        (0x01, dc_chroma),
        (0x11, ac_chroma),
    ];
    for (id, table) in tables {
        segment(DHT, &[&[id], &table.counts, table.symbols], out);
    }
    // Three components with their Huffman tables; all coefficients in one scan.
    segment(SOS, &[&[3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0]], out);
}

pub(super) fn end(out: &mut ByteOutput<'_>) {
    out.put(&[0xff, EOI]);
}

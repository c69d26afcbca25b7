//! Random frames, scans, tables and other segments.

use super::super::fixtures::Random;
use super::{Frame, NAMES, any, huffman, huffman_segment, one_in, quantization, segment, segments};

/// Spectral band and bits of a scan, mostly valid ones.
fn band(is_progressive: bool, is_first: bool, random: &mut Random) -> [u8; 3] {
    let mut band = [0, 63, 0];
    if is_progressive {
        let is_dc = if is_first {
            !one_in(4, random)
        } else {
            one_in(4, random)
        };
        if is_dc {
            band[1] = 0;
        } else {
            band[0] = 1 + random.below(10) as u8;
            band[1] = band[0].max(any(&[0, 5, 9, 63, 63], random));
        }
        let low = random.below(14) as u8;
        band[2] = any(&[0, 1, 2, 0x10, 0x21, low, (low + 1) << 4 | low], random);
    }
    if one_in(20, random) {
        band[random.below(3) as usize] = random.below(70) as u8;
    }
    band
}

/// Random coded data, with stuffed bytes, and with restart markers in some files.
fn coded_data(out: &mut Vec<u8>, random: &mut Random) {
    let longest = any(&[0, 3, 40, 400, 2000], random);
    let (bits, restarts) = (random.below(3), one_in(3, random));
    let mut next = 0;
    for _ in 0..random.below(longest + 1) {
        let (byte, mask) = (random.next() as u8, random.next() as u8);
        let byte = [byte, byte & mask, byte | mask][bits as usize];
        out.push(byte);
        if byte == 0xFF {
            match random.below(60) {
                0 => out.extend([0xFF, 0]),
                1 => {}
                _ => out.push(0),
            }
        }
        if restarts && one_in(25, random) {
            out.extend([0xFF, 0xD0 | next & 7]);
            next = if one_in(12, random) {
                random.next() as u8
            } else {
                next.wrapping_add(1)
            };
        }
    }
}

/// A file of any structure.
pub(crate) fn any_structure(random: &mut Random) -> Vec<u8> {
    let mut out = vec![0xFF, 0xD8];
    let marker = any(&[0xC0, 0xC1, 0xC2, 0xC2, 0xC9, 0xCA], random);
    let is_progressive = matches!(marker, 0xC2 | 0xCA);
    for number in 0..4 {
        if !one_in(40, random) {
            quantization(&mut out, number, random);
        }
        for class in [0, 0x10] {
            // Usual table numbers are 0 and 1.
            if !one_in(if number < 2 { 30 } else { 2 }, random) {
                let content = huffman(class > 0, false, random);
                huffman_segment(&mut out, class | number, &content);
            }
        }
    }
    segments(&mut out, false, random);
    let frame = Frame::new(&NAMES, random);
    frame.write(&mut out, marker, random);
    segments(&mut out, false, random);
    let count = frame.components();
    let is_one_scan = !is_progressive && !one_in(3, random);
    let scans = if is_one_scan { 1 } else { 1 + random.below(6) };
    for scan in 0..scans {
        let band = band(is_progressive, scan == 0, random);
        let mut components: Vec<usize> = (0..count).collect();
        if band[0] > 0 || !is_one_scan && one_in(2, random) {
            components = vec![random.below(count as u64) as usize];
        }
        let mut content = vec![components.len() as u8];
        for at in components {
            let name = if one_in(60, random) {
                random.next() as u8
            } else {
                frame.names[at]
            };
            let tables = any(&[0x00, 0x01, 0x10, 0x11, 0x11, 0x00, 0x23], random);
            content.extend([name, tables]);
        }
        content.extend(band);
        segment(&mut out, 0xDA, &content);
        coded_data(&mut out, random);
        segments(&mut out, true, random);
    }
    if !one_in(5, random) {
        out.extend([0xFF, 0xD9]);
    }
    out
}

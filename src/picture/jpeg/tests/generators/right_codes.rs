//! Generates one scan of valid codes.

use super::super::fixtures::Random;
use super::{
    Frame, NAMES, any, colour_segment, huffman, huffman_segment, one_in, quantization, segment,
};

/// A symbol, its code, and the code's length.
type Code = (u8, u64, u32);

/// The codes of a Huffman table's content.
fn codes(content: &[u8]) -> Vec<Code> {
    let (counts, mut symbols) = (&content[..16], content[16..].iter());
    let (mut codes, mut code) = (Vec::new(), 0);
    for (length, &count) in (1..).zip(counts) {
        for symbol in symbols.by_ref().take(usize::from(count)) {
            codes.push((*symbol, code, length));
            code += 1;
        }
        code *= 2;
    }
    codes
}

/// Writes bits, and stuffs bytes.
struct Bits {
    out: Vec<u8>,
    /// Waiting bits, after a 1 that marks their number.
    waiting: u32,
}

impl Bits {
    fn put(&mut self, value: u64, length: u32) {
        for at in (0..length).rev() {
            self.waiting = self.waiting << 1 | (value >> at & 1) as u32;
            if self.waiting > 0xFF {
                let byte = self.waiting as u8;
                self.out.push(byte);
                if byte == 0xFF {
                    self.out.push(0);
                }
                self.waiting = 1;
            }
        }
    }

    /// Fills the last byte with ones.
    fn finish(&mut self) {
        while self.waiting > 1 {
            self.put(1, 1);
        }
    }

    /// Writes the code, and a random value of `size` bits.
    fn put_with_value(&mut self, (_, code, length): Code, size: u8, random: &mut Random) {
        self.put(code, length);
        self.put(random.next(), u32::from(size));
    }

    /// Writes a block with at most this number of AC codes before the one that ends it. Writes
    /// nothing for a table without codes. `may_run_over`: past the last coefficient.
    fn put_block(
        &mut self,
        (dc, ac): (&[Code], &[Code]),
        codes: u64,
        may_run_over: bool,
        random: &mut Random,
    ) {
        if !dc.is_empty() {
            let first = any(dc, random);
            self.put_with_value(first, first.0, random);
        }
        let Some(&(_, end, end_length)) = ac.iter().find(|code| code.0 == 0) else {
            return;
        };
        let mut at = 1;
        for _ in 0..codes {
            let code = any(ac, random);
            let (run, size) = (code.0 >> 4, code.0 & 15);
            let is_over = at + run > 63 && !(may_run_over && one_in(50, random));
            if code.0 == 0 || is_over {
                continue;
            }
            self.put_with_value(code, size, random);
            at += run + 1;
            if at > 63 {
                return;
            }
        }
        self.put(end, end_length);
    }
}

/// A file of one scan with valid codes. In some files runs pass the end of a block.
pub(crate) fn right_codes(random: &mut Random) -> Vec<u8> {
    let mut out = vec![0xFF, 0xD8];
    for number in 0..4 {
        quantization(&mut out, number, random);
    }
    // Two tables of DC and two of AC.
    let tables = [0x00, 0x01, 0x10, 0x11].map(|number| {
        let content = huffman(number >= 0x10, true, random);
        huffman_segment(&mut out, number, &content);
        codes(&content)
    });
    for _ in 0..random.below(3) {
        colour_segment(&mut out, true, random);
    }
    let restarts = any(&[0, 0, 1, 2, 3, 10, 100], random);
    segment(&mut out, 0xDD, &(restarts as u16).to_be_bytes());
    let frame = loop {
        let frame = Frame::new(&NAMES[..4], random);
        let blocks = frame.factors.iter().map(|&f| Frame::blocks(f));
        let blocks: u64 = blocks.map(|(across, down)| across * down).sum();
        if frame.components() == 1 || blocks <= 10 {
            break frame;
        }
    };
    frame.write(&mut out, any(&[0xC0, 0xC1], random), random);
    let mut content = vec![frame.components() as u8];
    let mut components = Vec::new();
    for (name, factors) in frame.names.iter().zip(&frame.factors) {
        let (dc, ac) = (random.below(2) as usize, random.below(2) as usize);
        content.extend([*name, (dc << 4 | ac) as u8]);
        let (across, down) = Frame::blocks(*factors);
        let blocks = if frame.components() == 1 {
            1
        } else {
            across * down
        };
        components.push((blocks, (&tables[dc][..], &tables[2 + ac][..])));
    }
    content.extend([0, 63, 0]);
    segment(&mut out, 0xDA, &content);
    let (style, may_run_over) = (random.below(4), one_in(5, random));
    let mut bits = Bits { out, waiting: 1 };
    for mcu in 0..frame.mcus() {
        if restarts > 0 && mcu > 0 && mcu % restarts == 0 {
            bits.finish();
            bits.out
                .extend([0xFF, 0xD0 | (mcu / restarts - 1) as u8 & 7]);
        }
        for &(blocks, tables) in &components {
            for _ in 0..blocks {
                let codes = match style {
                    0 => random.below(10),
                    1 => 80,
                    2 => random.below(64),
                    _ => any(&[0, 0, 80], random),
                };
                bits.put_block(tables, codes, may_run_over, random);
            }
        }
    }
    bits.finish();
    bits.out.extend([0xFF, 0xD9]);
    bits.out
}

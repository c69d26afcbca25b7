//! Compares all of it with libjpeg-turbo, and the wide forms with the plain one.

use super::super::fixtures::{Random, Sampling, encode, jpeg, photos};
use super::super::oracle::{Pixel, reference};
use super::super::region::DecodeScale;
use super::super::standard_tables::ZIGZAG;
use super::blocks::{BlockPair, PairTarget};
use super::kernels::{DecodeKernels, PlainDecodeKernels};
use super::*;

pub(super) mod stages;

/// A decoder in each form, and a buffer for the pixels.
struct Forms {
    decoders: Vec<WindowDecoder>,
    pixels: Vec<u8>,
}

/// The results of the windows of one file.
#[derive(Debug, Default, PartialEq)]
struct Outcomes {
    equal: u32,
    refused: u32,
}

impl Forms {
    fn new() -> Self {
        Self {
            decoders: SimdForm::supported().map(WindowDecoder::new).collect(),
            pixels: Vec::new(),
        }
    }

    /// Decodes the whole image and `windows` parts of it at `scale`. Windows that are not rejected
    /// must equal libjpeg-turbo's.
    fn check(
        &mut self,
        jpeg: &[u8],
        scale: DecodeScale,
        windows: u32,
        random: &mut Random,
    ) -> Outcomes {
        let components = components(jpeg);
        let (pixel, bytes) = match components {
            4 => (Pixel::Cmyk, 4),
            _ => (Pixel::Rgb, 3),
        };
        let (width, height, whole) = reference(jpeg, scale, pixel);
        let (width, height) = (width as usize, height as usize);
        let mut outcomes = Outcomes::default();
        for number in 0..=windows {
            let window = match number {
                0 => JpegWindow {
                    x: 0,
                    y: 0,
                    w: width,
                    h: height,
                },
                _ => some_window((width, height), random),
            };
            let job = DecodeRequest {
                bytes: jpeg,
                size: size(jpeg),
                components,
                block: 8 / scale.denominator() as usize,
                window,
            };
            for decoder in &mut self.decoders {
                self.pixels.clear();
                self.pixels.resize(window.w * window.h * bytes, 0xAA);
                if decoder.decode(&job, &mut self.pixels).is_err() {
                    outcomes.refused += 1;
                    continue;
                }
                let rows = self.pixels.chunks_exact(window.w * bytes);
                for (y, row) in rows.enumerate() {
                    let start = ((window.y + y) * width + window.x) * bytes;
                    let theirs = &whole[start..start + row.len()];
                    assert!(row == theirs, "{:?}: row {y} of {job:?}", decoder.form);
                }
                outcomes.equal += 1;
            }
        }
        outcomes
    }
}

fn some_window((width, height): (usize, usize), random: &mut Random) -> JpegWindow {
    let mut part = |size: usize| {
        let len = 1 + random.below(size as u64) as usize;
        (random.below((size - len + 1) as u64) as usize, len)
    };
    let ((x, w), (y, h)) = (part(width), part(height));
    JpegWindow { x, y, w, h }
}

/// Offset of the frame header's content.
fn frame_at(jpeg: &[u8]) -> usize {
    let mut at = 2;
    // Thumbnails have frames of their own, inside segments.
    while !matches!(jpeg[at + 1], 0xC0..=0xC2) {
        at += 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
    }
    at + 4
}

fn size(jpeg: &[u8]) -> (usize, usize) {
    let at = frame_at(jpeg);
    let side = |at: usize| usize::from(u16::from_be_bytes([jpeg[at], jpeg[at + 1]]));
    (side(at + 3), side(at + 1))
}

fn components(jpeg: &[u8]) -> usize {
    usize::from(jpeg[frame_at(jpeg) + 5])
}

#[test]
fn all_samplings_sizes_scales_and_restarts() {
    let (mut forms, mut random) = (Forms::new(), Random::new(1));
    for sampling in Sampling::ALL {
        for number in 0..60 {
            let (w, h) = match number {
                0..16 => (1 + number % 4, 1 + number / 4),
                _ => (random.in_range(1, 70), random.in_range(1, 70)),
            };
            let quality = [1, 30, 75, 90, 98, 100][random.below(6) as usize];
            let restarts = [0, 0, 1, 2, 5, 40][random.below(6) as usize];
            let jpeg = encode(w, h, sampling, quality, false, restarts);
            for scale in DecodeScale::ALL {
                let outcomes = forms.check(&jpeg, scale, 4, &mut random);
                assert_eq!(outcomes.refused, 0, "{sampling:?} {w} x {h}");
            }
        }
    }
}

/// The coded data fit other sampling factors badly, but they are decoded.
#[test]
fn odd_sampling_factors() {
    const FACTORS: [u8; 12] = [
        0x11, 0x12, 0x21, 0x22, 0x14, 0x41, 0x42, 0x24, 0x31, 0x13, 0x44, 0x33,
    ];
    let (mut forms, mut random) = (Forms::new(), Random::new(2));
    let mut equal = 0;
    for number in 0..800 {
        let sampling = [Sampling::S444, Sampling::S420, Sampling::Cmyk][number % 3];
        let mut jpeg = encode(90, 90, sampling, 98, false, 0);
        let at = frame_at(&jpeg);
        // Fewer rows, so that the data suffice.
        jpeg[at + 2] = random.in_range(1, 40) as u8;
        for component in 0..components(&jpeg) {
            jpeg[at + 7 + 3 * component] = FACTORS[random.below(12) as usize];
        }
        let mut part = WindowDecoder::new(SimdForm::Plain);
        let window = JpegWindow {
            x: 0,
            y: 0,
            w: 1,
            h: 1,
        };
        let job = DecodeRequest {
            bytes: &jpeg,
            size: size(&jpeg),
            components: components(&jpeg),
            block: 8,
            window,
        };
        // libjpeg rejects some of these files, too: then there is no reference.
        if part.decode(&job, &mut [0; 4]) == Err(DecodeRefusal::Unsupported) {
            continue;
        }
        for scale in DecodeScale::ALL {
            equal += forms.check(&jpeg, scale, 2, &mut random).equal;
        }
    }
    assert!(equal > 500, "{equal}");
}

/// Quantization tables of 16 bits with any values: sums wrap and saturate as in libjpeg-turbo.
#[test]
fn absurd_coefficients() {
    let (mut forms, mut random) = (Forms::new(), Random::new(3));
    for number in 0..120 {
        let sampling = Sampling::ALL[number % Sampling::ALL.len()];
        let mut jpeg = encode(40, 40, sampling, 100, false, 0);
        while let Some(at) = jpeg.windows(5).position(|m| m[..4] == [0xFF, 0xDB, 0, 67]) {
            let mut table = vec![0xFF, 0xDB, 0, 131, 0x10 | jpeg[at + 4]];
            for i in 0..64 {
                let factor = match random.below(4) {
                    0 => random.below(65536) as u16,
                    1 => random.below(4000) as u16,
                    _ => u16::from(jpeg[at + 5 + i]),
                };
                table.extend(factor.to_be_bytes());
            }
            jpeg.splice(at..at + 69, table);
        }
        for scale in DecodeScale::ALL {
            assert_eq!(forms.check(&jpeg, scale, 2, &mut random).refused, 0);
        }
    }
}

#[test]
fn photos_are_equal() {
    let (mut forms, mut random) = (Forms::new(), Random::new(4));
    for (path, jpeg) in photos().into_iter().step_by(9) {
        if jpeg[frame_at(&jpeg) - 3] == 0xC2 {
            continue;
        }
        for scale in DecodeScale::ALL {
            let outcomes = forms.check(&jpeg, scale, 2, &mut random);
            assert_eq!(outcomes.refused, 0, "{}", path.display());
        }
    }
}

/// A damaged file is rejected, or its pixels equal libjpeg-turbo's.
#[test]
fn damaged_files_are_refused_or_equal() {
    let (mut forms, mut random) = (Forms::new(), Random::new(5));
    let mut all = Outcomes::default();
    for number in 0..600 {
        let sampling = Sampling::ALL[number % Sampling::ALL.len()];
        let restarts = [0, 0, 3][number % 3];
        let quality = [50, 85, 95][number % 7 % 3];
        let mut jpeg = encode(120, 90, sampling, quality, false, restarts);
        let scan = jpeg.windows(2).position(|m| m == [0xFF, 0xDA]).unwrap() + 14;
        if number % 5 == 0 {
            let len = scan as u64 + random.below((jpeg.len() - scan) as u64);
            jpeg.truncate(len as usize);
        }
        for _ in 0..[0, 1, 1, 3, 20][number % 5] {
            let at = scan + random.below((jpeg.len() - scan) as u64) as usize;
            jpeg[at] ^= 1 << random.below(8);
        }
        let scale = DecodeScale::ALL[number / 7 % 4];
        let outcomes = forms.check(&jpeg, scale, 3, &mut random);
        all.equal += outcomes.equal;
        all.refused += outcomes.refused;
    }
    assert!(all.equal > 500 && all.refused > 500, "{all:?}");
}

/// The first small file with a table is decoded by hand, the next by lookups.
#[test]
fn small_files_are_equal_by_hand_and_by_lookups() {
    let mut random = Random::new(8);
    for sampling in Sampling::ALL {
        for (side, quality) in [(9, 95), (24, 80), (40, 30)] {
            for scale in [DecodeScale::Full, DecodeScale::Half] {
                let mut forms = Forms::new();
                let jpeg = encode(side, side + 3, sampling, quality, false, 2);
                let outcomes = forms.check(&jpeg, scale, 3, &mut random);
                assert_eq!(outcomes.refused, 0, "{sampling:?} {side}");
            }
        }
    }
}

/// `jpeg` with another Huffman table of this class and number (`0x10` is the first of AC).
fn with_table(jpeg: &[u8], table: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = jpeg[..2].to_vec();
    let mut at = 2;
    loop {
        let length = 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
        if jpeg[at + 1] == 0xC4 && jpeg[at + 4] == table {
            bytes.extend([0xFF, 0xC4, 0, 3 + content.len() as u8, table]);
            bytes.extend(content);
        } else {
            bytes.extend(&jpeg[at..at + length]);
        }
        at += length;
        if jpeg[at - length + 1] == 0xDA {
            bytes.extend(&jpeg[at..]);
            return bytes;
        }
    }
}

/// A table without codes is legal. A decoder without tables must not take it for a built one, nor
/// must a decoder that has just rejected a table. It would decode with the table of an earlier
/// file.
#[test]
fn a_table_without_codes_is_made_like_any_other() {
    let (mut forms, mut random) = (Forms::new(), Random::new(7));
    let good = jpeg(40, 24, Sampling::Grey);
    for table in [0x00, 0x10] {
        let empty = with_table(&good, table, &[0; 16]);
        // Three codes of one bit.
        let mut overlapping = [0; 19];
        overlapping[0] = 3;
        let overlapping = with_table(&good, table, &overlapping);
        let window = JpegWindow {
            x: 0,
            y: 0,
            w: 40,
            h: 24,
        };
        let job = |bytes| DecodeRequest {
            bytes,
            size: (40, 24),
            components: 1,
            block: 8,
            window,
        };
        let (_, _, theirs) = reference(&empty, DecodeScale::Full, Pixel::Rgb);
        let mut pixels = vec![0; 3 * 40 * 24];
        for earlier in [&[][..], &[&good, &overlapping]] {
            for decoder in &mut forms.decoders {
                for file in earlier {
                    let _ = decoder.decode(&job(file), &mut pixels);
                    let _ = decoder.decode_general(&job(file), &mut pixels);
                }
                let general = decoder.decode_general(&job(&empty), &mut pixels);
                assert!(general.is_ok() && pixels == theirs, "{:?}", decoder.form);
            }
            forms.check(&empty, DecodeScale::Full, 2, &mut random);
        }
    }
}

/// Random bytes in headers cause no panic, whatever the result.
#[test]
fn damaged_headers_do_no_harm() {
    let mut forms = Forms::new();
    let mut random = Random::new(6);
    let mut pixels = vec![0; 4 * 64 * 64];
    for number in 0..3000 {
        let sampling = Sampling::ALL[number % Sampling::ALL.len()];
        let mut jpeg = encode(48, 40, sampling, 90, false, 2);
        let (size, components) = (size(&jpeg), components(&jpeg));
        for _ in 0..1 + number % 4 {
            let at = random.below(jpeg.len().min(700) as u64) as usize;
            jpeg[at] = random.next() as u8;
        }
        let block = [8, 4, 2, 1][number % 4];
        let window = some_window((48 * block / 8, 40 * block / 8), &mut random);
        let job = DecodeRequest {
            bytes: &jpeg,
            size,
            components,
            block,
            window,
        };
        for decoder in &mut forms.decoders {
            let _ = decoder.decode(&job, &mut pixels);
        }
    }
}

#[test]
fn what_is_not_baseline_is_refused() {
    let check = |jpeg: &[u8], window: JpegWindow, block: usize| {
        let job = DecodeRequest {
            bytes: jpeg,
            size: (33, 21),
            components: 3,
            block,
            window,
        };
        WindowDecoder::new(SimdForm::best(256)).decode(&job, &mut [0; 3 * 33 * 21])
    };
    let whole = JpegWindow {
        x: 0,
        y: 0,
        w: 33,
        h: 21,
    };
    let plain = jpeg(33, 21, Sampling::S420);
    assert_eq!(check(&plain, whole, 8), Ok(()));
    let progressive = encode(33, 21, Sampling::S420, 90, true, 0);
    let of_another_size = jpeg(34, 21, Sampling::S420);
    let grey = jpeg(33, 21, Sampling::Grey);
    for jpeg in [
        &progressive,
        &of_another_size,
        &grey,
        &plain[..300].to_vec(),
    ] {
        assert_eq!(check(jpeg, whole, 8), Err(DecodeRefusal::Unsupported));
    }
    for window in [
        JpegWindow { w: 34, ..whole },
        JpegWindow { x: 1, ..whole },
        JpegWindow { h: 0, ..whole },
        JpegWindow {
            y: usize::MAX,
            ..whole
        },
    ] {
        assert_eq!(check(&plain, window, 8), Err(DecodeRefusal::Unsupported));
    }
    assert_eq!(check(&plain, whole, 4), Err(DecodeRefusal::Unsupported));
    assert_eq!(
        check(&plain[..plain.len() - 30], whole, 8),
        Err(DecodeRefusal::Damaged)
    );
}

/// A second picture of the same size needs no more memory, and none keeps the memory of another.
#[test]
fn buffers_are_kept_and_known_from_the_header() {
    let mut decoder = WindowDecoder::new(SimdForm::best(256));
    let mut held = 0;
    for sampling in Sampling::ALL.into_iter().chain(Sampling::ALL) {
        let jpeg = jpeg(200, 300, sampling);
        let components = components(&jpeg);
        let window = JpegWindow {
            x: 0,
            y: 0,
            w: 200,
            h: 300,
        };
        let job = DecodeRequest {
            bytes: &jpeg,
            size: (200, 300),
            components,
            block: 8,
            window,
        };
        let mut pixels = vec![0; 4 * 200 * 300];
        assert_eq!(decoder.decode(&job, &mut pixels), Ok(()));
        // 100 KiB of tables, and rows of 200 samples.
        assert!(decoder.bytes() < 150 << 10, "{}", decoder.bytes());
        held = held.max(decoder.bytes());
    }
    assert_eq!(decoder.bytes(), held);
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::super::wide::{Avx2, Sse41};
    use super::*;

    /// Runs a test on the wide forms that this processor supports.
    macro_rules! on_each_form {
        ($check:ident) => {
            match Sse41::detect() {
                Some(wide) => $check(wide),
                None => eprintln!("SKIP: no SSE4.1"),
            }
            match Avx2::detect() {
                Some(wide) => $check(wide),
                None => eprintln!("SKIP: no AVX2"),
            }
        };
    }

    fn number(random: &mut Random, size: u64) -> i16 {
        (random.below(size) as i32 - (size / 2) as i32) as i16
    }

    #[test]
    fn transforms_are_the_plain_ones() {
        on_each_form!(transforms);
    }

    fn transforms(wide: impl DecodeKernels) {
        let mut random = Random::new(7);
        for round in 0..20_000 {
            let end = [1, 2, 6, 10, 11, 30, 64][round % 7];
            let size = [3, 200, 3000, 65536][round / 7 % 4];
            let mut pair = BlockPair([0; 256]);
            let mut q = [0; 64];
            for (i, &place) in ZIGZAG.iter().enumerate().take(end as usize) {
                let place = usize::from(place);
                for block in [0, 8] {
                    if i == 0 || random.below(3) > 0 {
                        pair.0[place / 8 * 16 + place % 8 + block] = number(&mut random, size);
                    }
                }
            }
            q.fill_with(|| number(&mut random, [40, 65536][round % 2]));
            let second = (round % 3 > 0).then_some(if round % 3 == 1 { 40 } else { 900 });
            let at = PairTarget {
                first: 32,
                second,
                pitch: 96,
            };
            let (mut a, mut b) = (vec![0; 2000], vec![0; 2000]);
            PlainDecodeKernels.transform8(&pair, &q, end, &mut a, at);
            wide.transform8(&pair, &q, end, &mut b, at);
            assert!(a == b, "8 x 8: {pair:?} {q:?}");
            PlainDecodeKernels.transform4(&pair, &q, &mut a, at);
            wide.transform4(&pair, &q, &mut b, at);
            assert!(a == b, "4 x 4: {pair:?} {q:?}");
            PlainDecodeKernels.transform2(&pair, &q, &mut a, at);
            wide.transform2(&pair, &q, &mut b, at);
            assert!(a == b, "2 x 2: {pair:?} {q:?}");
        }
    }

    #[test]
    fn colours_are_the_plain_ones() {
        on_each_form!(colours);
    }

    fn colours(wide: impl DecodeKernels) {
        let every: Vec<u8> = (0..=255).collect();
        for cb in 0..=255 {
            for y in (0..=255).step_by(15) {
                let rows: [&[u8]; 3] = [&[y; 256], &[cb; 256], &every];
                let (mut a, mut b) = ([0; 768], [0; 768]);
                PlainDecodeKernels.ycc_to_rgb(rows, 256, &mut a);
                wide.ycc_to_rgb(rows, 256, &mut b);
                assert!(a == b, "{y} {cb}");
            }
        }
    }

    #[test]
    fn rows_are_the_plain_ones() {
        on_each_form!(rows);
    }

    fn rows(wide: impl DecodeKernels) {
        let mut random = Random::new(8);
        for count in 1..100 {
            let mut row = || -> Vec<u8> {
                let len = count + 2 + random.below(50) as usize;
                (0..len).map(|_| random.next() as u8).collect()
            };
            let (near, far, third) = (row(), row(), row());
            let (mut a, mut b) = (vec![0; 320], vec![0; 320]);
            PlainDecodeKernels.across(&near, count, &mut a);
            wide.across(&near, count, &mut b);
            assert_eq!(a[..2 * count], b[..2 * count]);
            PlainDecodeKernels.both(&near, &far, count, &mut a);
            wide.both(&near, &far, count, &mut b);
            assert_eq!(a[..2 * count], b[..2 * count]);
            for extra in [0, 40] {
                let (mut a, mut b) = (vec![0; 3 * count + extra], vec![0; 3 * count + extra]);
                PlainDecodeKernels.interleave([&near, &far, &third], count, &mut a);
                wide.interleave([&near, &far, &third], count, &mut b);
                assert_eq!(a[..3 * count], b[..3 * count]);
                PlainDecodeKernels.ycc_to_rgb([&near, &far, &third], count, &mut a);
                wide.ycc_to_rgb([&near, &far, &third], count, &mut b);
                assert_eq!(a[..3 * count], b[..3 * count]);
            }
        }
    }
}

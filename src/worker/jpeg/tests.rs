//! Tests that need more than one file of this folder.

use crate::error::FaultKind;
use crate::worker::spec::Limits;

use super::decoder::encode::{Pixel, reference};
use super::fixtures::{Random, Sampling, encode, encode_arithmetic, jpeg, photos};
use super::*;

fn decoder() -> JpegDecoder {
    JpegDecoder::new(&Limits::default())
}

/// A whole picture as RGB.
struct Whole {
    size: (u32, u32),
    rgb: Vec<u8>,
}

fn whole(bytes: &[u8], scale: Scale, cmyk: bool) -> Whole {
    if !cmyk {
        let (w, h, rgb) = reference(bytes, scale, Pixel::Rgb);
        return Whole { size: (w, h), rgb };
    }
    let (w, h, cmyk) = reference(bytes, scale, Pixel::Cmyk);
    let rgb = cmyk
        .chunks_exact(4)
        .flat_map(|p| {
            let k = u32::from(p[3]);
            [p[0], p[1], p[2]].map(|c| ((u32::from(c) * k * 2 + 255) / 510) as u8)
        })
        .collect();
    Whole { size: (w, h), rgb }
}

/// Decodes `want` and compares each pixel of it.
fn check(
    decoder: &mut JpegDecoder,
    scratch: &mut Scratch,
    bytes: &[u8],
    scale: Scale,
    want: Region,
    whole: &Whole,
) {
    let header = read_header(bytes).unwrap();
    let got = decoder
        .decode_region(bytes, &header, scale, want, scratch)
        .unwrap();
    let case = || format!("{:?} {scale:?} {want:?} {got:?}", header.sampling());
    assert!(got.x <= want.x && got.y <= want.y, "{}", case());
    assert!(got.x + got.w >= want.x + want.w, "{}", case());
    assert!(got.y + got.h >= want.y + want.h, "{}", case());
    for y in want.y..want.y + want.h {
        let mine = (y - got.y) as usize * got.stride + (want.x - got.x) as usize * 3;
        let theirs = (y * whole.size.0 + want.x) as usize * 3;
        let len = want.w as usize * 3;
        if scratch.rgb[mine..mine + len] != whole.rgb[theirs..theirs + len] {
            let column = (0..want.w as usize)
                .find(|i| scratch.rgb[mine + i * 3..][..3] != whole.rgb[theirs + i * 3..][..3])
                .unwrap();
            panic!(
                "row {y}, column {} differ: {}",
                want.x as usize + column,
                case()
            );
        }
    }
}

/// Positions worth trying along one axis: block borders and the picture's.
fn cuts(size: u32, random: &mut Random) -> Vec<(u32, u32)> {
    let mut cuts = vec![(0, size)];
    for start in [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48] {
        for len in [1, 2, 3, 5, 8, 16, 17, 30] {
            cuts.push((start, len));
        }
    }
    for back in 1..10 {
        for len in [1, 2, back] {
            cuts.push((size.saturating_sub(back), len));
        }
    }
    for _ in 0..20 {
        let a = random.below(u64::from(size)) as u32;
        cuts.push((a, 1 + random.below(u64::from(size - a)) as u32));
    }
    cuts.retain(|&(at, len)| len > 0 && at + len <= size);
    cuts
}

fn check_grid(bytes: &[u8], cmyk: bool, stride: usize) {
    let mut random = Random::new(7);
    let (mut decoder, mut scratch) = (decoder(), Scratch::default());
    let header = read_header(bytes).unwrap();
    for scale in Scale::ALL {
        let whole = whole(bytes, scale, cmyk);
        assert_eq!(scaled_size(&header, scale), whole.size);
        let (columns, rows) = (
            cuts(whole.size.0, &mut random),
            cuts(whole.size.1, &mut random),
        );
        // Every column cut with some row cut and the other way round.
        let n = columns.len().max(rows.len());
        for i in (0..n * 3).step_by(stride) {
            let (x, w) = columns[i % columns.len()];
            let (y, h) = rows[(i * 7 + i / n) % rows.len()];
            let want = Region::new(x, y, w, h);
            check(&mut decoder, &mut scratch, bytes, scale, want, &whole);
        }
    }
}

#[test]
fn every_region_equals_that_part_of_the_whole() {
    for sampling in Sampling::ALL {
        for (w, h) in [(97, 61), (227, 149), (128, 96), (64, 33)] {
            check_grid(&jpeg(w, h, sampling), sampling.is_cmyk(), 1);
        }
        check_grid(
            &encode(131, 77, sampling, 85, true, 0),
            sampling.is_cmyk(),
            2,
        );
        check_grid(
            &encode(131, 77, sampling, 85, false, 3),
            sampling.is_cmyk(),
            2,
        );
        check_grid(
            &encode_arithmetic(83, 71, sampling, false),
            sampling.is_cmyk(),
            4,
        );
    }
}

/// Small pictures are where libjpeg-turbo changes its filters: all regions.
#[test]
fn tiny_pictures_exhaustively() {
    for sampling in Sampling::ALL {
        for (w, h) in [
            (1, 1),
            (2, 3),
            (3, 2),
            (5, 4),
            (9, 7),
            (17, 5),
            (18, 17),
            (35, 3),
        ] {
            let bytes = jpeg(w, h, sampling);
            let (mut decoder, mut scratch) = (decoder(), Scratch::default());
            for scale in Scale::ALL {
                let whole = whole(&bytes, scale, sampling.is_cmyk());
                let (sw, sh) = whole.size;
                for x in 0..sw {
                    for cw in 1..=sw - x {
                        for y in 0..sh {
                            for ch in [1, 2, sh - y] {
                                let want = Region::new(x, y, cw, ch);
                                if want.fits_in(whole.size) {
                                    check(&mut decoder, &mut scratch, &bytes, scale, want, &whole);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Offset of the frame header's first component specification.
fn frame_specs(bytes: &[u8]) -> usize {
    let at = bytes
        .windows(2)
        .position(|w| w[0] == 0xFF && matches!(w[1], 0xC0..=0xC2))
        .unwrap();
    at + 10
}

/// The same coded data under other sampling factors are another (ugly) picture.
#[test]
fn unusual_sampling_factors() {
    for (sampling, factors) in [
        (Sampling::Grey, &[0x22][..]),
        (Sampling::Grey, &[0x41]),
        (Sampling::S444, &[0x12, 0x12, 0x12]),
        (Sampling::S444, &[0x31, 0x31, 0x31]),
        (Sampling::S420, &[0x22, 0x21, 0x21]),
        (Sampling::S420, &[0x22, 0x12, 0x12]),
        (Sampling::S420, &[0x22, 0x11, 0x22]),
        (Sampling::S420, &[0x22, 0x11, 0x12]),
        (Sampling::S420, &[0x21, 0x11, 0x21]),
    ] {
        let mut bytes = jpeg(97, 61, sampling);
        let specs = frame_specs(&bytes);
        for (i, f) in factors.iter().enumerate() {
            bytes[specs + i * 3 + 1] = *f;
        }
        check_grid(&bytes, false, 1);
    }
}

#[test]
fn real_photos() {
    let mut random = Random::new(3);
    let (mut decoder, mut scratch) = (decoder(), Scratch::default());
    for (path, bytes) in photos() {
        let header = read_header(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for scale in Scale::ALL {
            let whole = whole(&bytes, scale, header.components == 4);
            let (w, h) = whole.size;
            let mut wants = vec![
                Region::whole(whole.size),
                Region::new(w / 4, h / 4, w.div_ceil(2), h.div_ceil(2)),
            ];
            for _ in 0..4 {
                let (x, y) = (random.in_range(0, w - 1), random.in_range(0, h - 1));
                let (cw, ch) = (random.in_range(1, w - x), random.in_range(1, h - y));
                wants.push(Region::new(x, y, cw, ch));
            }
            for want in wants {
                check(&mut decoder, &mut scratch, &bytes, scale, want, &whole);
            }
        }
    }
}

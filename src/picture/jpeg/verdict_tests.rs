//! Decodes files that no encoder writes: results, messages and pixels equal libjpeg-turbo's.

use crate::picture::{PictureLimits, TruncationPolicy};

use super::fixtures::{Random, Sampling, encode, one_component_scans};
use super::oracle::judge;
use super::region::{DecodedRegion, scaled_size};
use super::tests::generators::{any_structure, right_codes};
use super::tests::{rgb_of_inks, some_regions};
use super::*;

/// Both decoders. Each form of ours keeps its scratch from file to file.
struct Verdicts {
    forms: Vec<(&'static str, JpegScratch)>,
    equal: usize,
    refused: usize,
}

impl Verdicts {
    fn new() -> Self {
        Self {
            forms: JpegScratch::of_each_form(),
            equal: 0,
            refused: 0,
        }
    }

    /// Decodes a file in each form, at a random scale and in a random window. `round` names the
    /// file.
    fn compare(&mut self, bytes: &[u8], round: u32, random: &mut Random) {
        let Ok(header) = read_header(bytes) else {
            return;
        };
        let scale = DecodeScale::ALL[random.below(4) as usize];
        let size = scaled_size(&header, scale);
        let truncated =
            [TruncationPolicy::Refuse, TruncationPolicy::Keep][random.below(2) as usize];
        let keeps = truncated == TruncationPolicy::Keep;
        // Only our decoder rejects these.
        if u64::from(size.0) * u64::from(size.1) > 1 << 20
            || header::has_more_scans(bytes, &header, 100)
            || !keeps && !header::has_end(bytes, header.scan_start)
        {
            return;
        }
        let theirs = match judge(bytes, &header, scale) {
            None => return,
            Some(Ok((_, true))) if header.multi_scan && !keeps => Err("JPEG cut off".to_owned()),
            Some(Ok((pixels, _))) if header.components == 4 => Ok(rgb_of_inks(&pixels)),
            Some(Ok((pixels, _))) => Ok(pixels),
            Some(Err(words)) => Err(format!("JPEG: {words}")),
        };
        let decoder = JpegDecoder::with_truncation(&PictureLimits::default(), truncated);
        for (form, scratch) in &mut self.forms {
            let want = region(size, random);
            let case = || format!("round {round}, {form}: {scale:?} {want:?} {truncated:?}");
            let mine = decoder.decode_region(bytes, &header, scale, want, scratch);
            match (mine, &theirs) {
                (Ok(mine), Ok(theirs)) => {
                    let whole = DecodedRegion {
                        x: 0,
                        y: 0,
                        w: size.0,
                        h: size.1,
                        stride: 3 * size.0 as usize,
                    };
                    let mine = pixels_of(&mine, want, &scratch.rgb);
                    assert!(mine == pixels_of(&whole, want, theirs), "{}", case());
                    self.equal += 1;
                }
                (Err(mine), Err(theirs)) => {
                    assert!(
                        mine.reason.starts_with(theirs),
                        "{}: {mine} {theirs}",
                        case()
                    );
                    self.refused += 1;
                }
                (mine, theirs) => {
                    panic!("{}: {:?} {:?}", case(), mine.err(), theirs.as_ref().err())
                }
            }
        }
    }

    /// Compares files of a generator. Decoders are replaced at times: a bug may need a new one, or
    /// one that has decoded another file.
    fn compare_generated(generate: fn(&mut Random) -> Vec<u8>, seed: u64) -> Self {
        let (mut random, mut verdicts) = (Random::new(seed), Self::new());
        for round in 0..3000 {
            if round % 50 == 0 {
                verdicts.forms = JpegScratch::of_each_form();
            }
            let bytes = generate(&mut random);
            verdicts.compare(&bytes, round, &mut random);
        }
        verdicts
    }
}

/// The top row, the middle, the bottom row, or any.
fn region((w, h): (u32, u32), random: &mut Random) -> PixelRegion {
    match random.below(4) {
        0 => some_regions((w, h))[random.below(3) as usize],
        1 => PixelRegion::whole((w, h)),
        _ => {
            let (x, y) = (random.in_range(0, w - 1), random.in_range(0, h - 1));
            PixelRegion::new(x, y, random.in_range(1, w - x), random.in_range(1, h - y))
        }
    }
}

/// The pixels inside `want`.
fn pixels_of(decoded: &DecodedRegion, want: PixelRegion, rgb: &[u8]) -> Vec<u8> {
    let lines = rgb
        .chunks(decoded.stride)
        .skip((want.y - decoded.y) as usize);
    let start = 3 * (want.x - decoded.x) as usize;
    lines
        .take(want.h as usize)
        .flat_map(|line| &line[start..start + 3 * want.w as usize])
        .copied()
        .collect()
}

#[test]
fn damaged_files_are_judged_as_by_libjpeg_turbo() {
    let mut files = Vec::new();
    for (number, sampling) in Sampling::ALL.into_iter().enumerate() {
        for restarts in [0, 1, 5] {
            let (w, h) = [(97, 61), (40, 1), (1, 33), (64, 80)][(number + restarts) % 4];
            for progressive in [false, true] {
                files.push(encode(w, h, sampling, 80, progressive, restarts as i32));
            }
        }
        for factors in [&[0x22, 0x11, 0x11][..], &[0x21, 0x12, 0x11], &[0x11; 4]] {
            let progressive = number % 2 == 0;
            files.push(one_component_scans((70, 45), factors, 80, progressive, 0));
        }
    }
    let (mut random, mut verdicts) = (Random::new(17), Verdicts::new());
    for round in 0..4000 {
        let mut bytes = files[round as usize % files.len()].clone();
        for _ in 0..random.below(3) {
            hurt(&mut bytes, &mut random);
        }
        verdicts.compare(&bytes, round, &mut random);
    }
    let Verdicts { equal, refused, .. } = verdicts;
    assert!(equal > 1000 && refused > 300, "{equal} {refused}");
}

#[test]
fn files_of_any_structure_are_judged_as_by_libjpeg_turbo() {
    let Verdicts { equal, refused, .. } = Verdicts::compare_generated(any_structure, 1);
    assert!(equal > 500 && refused > 500, "{equal} {refused}");
}

#[test]
fn right_codes_of_odd_tables_decode_as_by_libjpeg_turbo() {
    let Verdicts { equal, .. } = Verdicts::compare_generated(right_codes, 2);
    assert!(equal > 2000, "{equal}");
}

/// Damages a file in one of many ways.
fn hurt(bytes: &mut Vec<u8>, random: &mut Random) {
    let len = bytes.len() as u64;
    let mut anywhere = |bytes: &[u8]| random.below(bytes.len() as u64) as usize;
    let at = match len % 3 {
        0 => anywhere(bytes).min(700),
        _ => anywhere(bytes),
    };
    let other = anywhere(bytes);
    match random.below(9) {
        0..3 => bytes[at] ^= 1 << random.below(8),
        3 => bytes[at] = random.next() as u8,
        4 => bytes.truncate(at.max(2)),
        5 => drop(bytes.drain(at..(at + 5).min(bytes.len()))),
        6 => {
            let markers = [0xD0, 0xD3, 0xD9, 0xDA, 0xC4, 0xFE, 0xFF, 0x01, 0xDC];
            let marker = markers[random.below(9) as usize];
            bytes.splice(at..at, [0xFF, marker]);
        }
        // Repeats a part of the file.
        7 => {
            let part = bytes[at.min(other)..at.max(other)].to_vec();
            bytes.splice(other..other, part);
        }
        _ => drop(bytes.splice(bytes.len() - 2.., *b"\0\0junk\xff\xd9")),
    }
}

//! Tests that need more than one file of this folder.
//!
//! - `oracle`: libjpeg-turbo, the reference of the decoder.
//! - `fixtures`, `generators`: usual files, and files that no encoder writes.

pub(crate) mod fixtures;
pub(super) mod generators;
pub(crate) mod oracle;

use crate::error::FaultKind;
use crate::picture::{PictureLimits, TruncationPolicy};

use self::fixtures::{Random, Sampling, encode, encode_arithmetic, jpeg, many_scans, photos};
use self::oracle::{Pixel, reference};
use super::region::scaled_size;
use super::*;

fn decoder() -> JpegDecoder {
    JpegDecoder::new(&PictureLimits::default())
}

/// A whole picture as RGB.
struct Whole {
    size: (u32, u32),
    rgb: Vec<u8>,
}

fn whole(bytes: &[u8], scale: DecodeScale, cmyk: bool) -> Whole {
    if !cmyk {
        let (w, h, rgb) = reference(bytes, scale, Pixel::Rgb);
        return Whole { size: (w, h), rgb };
    }
    let (w, h, cmyk) = reference(bytes, scale, Pixel::Cmyk);
    let rgb = rgb_of_inks(&cmyk);
    Whole { size: (w, h), rgb }
}

pub(super) fn rgb_of_inks(cmyk: &[u8]) -> Vec<u8> {
    let pixels = cmyk.chunks_exact(4);
    let rgb = pixels.flat_map(|p| {
        let k = u32::from(p[3]);
        [p[0], p[1], p[2]].map(|c| ((u32::from(c) * k * 2 + 255) / 510) as u8)
    });
    rgb.collect()
}

/// Decodes `want` and compares each of its pixels.
fn check(
    decoder: &mut JpegDecoder,
    scratch: &mut JpegScratch,
    bytes: &[u8],
    scale: DecodeScale,
    want: PixelRegion,
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

/// Cuts along one axis: block borders and the picture's borders.
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
    let (mut decoder, mut scratch) = (decoder(), JpegScratch::default());
    let header = read_header(bytes).unwrap();
    for scale in DecodeScale::ALL {
        let whole = whole(bytes, scale, cmyk);
        assert_eq!(scaled_size(&header, scale), whole.size);
        let (columns, rows) = (
            cuts(whole.size.0, &mut random),
            cuts(whole.size.1, &mut random),
        );
        // Every column cut with some row cut, and every row cut with some column cut.
        let n = columns.len().max(rows.len());
        for i in (0..n * 3).step_by(stride) {
            let (x, w) = columns[i % columns.len()];
            let (y, h) = rows[(i * 7 + i / n) % rows.len()];
            let want = PixelRegion::new(x, y, w, h);
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

/// libjpeg-turbo changes its filters for small pictures: tests all regions.
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
            let (mut decoder, mut scratch) = (decoder(), JpegScratch::default());
            for scale in DecodeScale::ALL {
                let whole = whole(&bytes, scale, sampling.is_cmyk());
                let (sw, sh) = whole.size;
                for x in 0..sw {
                    for cw in 1..=sw - x {
                        for y in 0..sh {
                            for ch in [1, 2, sh - y] {
                                let want = PixelRegion::new(x, y, cw, ch);
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

/// With other sampling factors, the same coded data make another picture.
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
    let (mut decoder, mut scratch) = (decoder(), JpegScratch::default());
    for (path, bytes) in photos() {
        let header = read_header(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for scale in DecodeScale::ALL {
            let whole = whole(&bytes, scale, header.components == 4);
            let (w, h) = whole.size;
            let mut wants = vec![
                PixelRegion::whole(whole.size),
                PixelRegion::new(w / 4, h / 4, w.div_ceil(2), h.div_ceil(2)),
            ];
            for _ in 0..4 {
                let (x, y) = (random.in_range(0, w - 1), random.in_range(0, h - 1));
                let (cw, ch) = (random.in_range(1, w - x), random.in_range(1, h - y));
                wants.push(PixelRegion::new(x, y, cw, ch));
            }
            for want in wants {
                check(&mut decoder, &mut scratch, &bytes, scale, want, &whole);
            }
        }
    }
}

/// Decodes everything. Returns the kind of the fault, if any.
fn try_whole(
    decoder: &mut JpegDecoder,
    scratch: &mut JpegScratch,
    bytes: &[u8],
) -> Option<FaultKind> {
    let header = match read_header(bytes) {
        Ok(header) => header,
        Err(fault) => return Some(fault.kind),
    };
    let want = PixelRegion::whole((header.width, header.height));
    decoder
        .decode_region(bytes, &header, DecodeScale::Full, want, scratch)
        .err()
        .map(|fault| fault.kind)
}

/// Three regions: top, middle, bottom.
pub(super) fn some_regions(size: (u32, u32)) -> [PixelRegion; 3] {
    let (w, h) = size;
    [
        PixelRegion::new(0, 0, w, 1),
        PixelRegion::new(w / 3, h / 3, w.div_ceil(3), h.div_ceil(3)),
        PixelRegion::new(w / 2, h - 1, w - w / 2, 1),
    ]
}

/// The result of each region at each scale, which must be the same for all.
fn verdict(bytes: &[u8]) -> Option<FaultKind> {
    let (mut decoder, mut scratch) = (decoder(), JpegScratch::default());
    let all = try_whole(&mut decoder, &mut scratch, bytes);
    let Ok(header) = read_header(bytes) else {
        return all;
    };
    for scale in DecodeScale::ALL {
        for want in some_regions(scaled_size(&header, scale)) {
            let one = decoder
                .decode_region(bytes, &header, scale, want, &mut scratch)
                .err();
            let kind = one.as_ref().map(|f| f.kind);
            assert_eq!(kind, all, "{scale:?} {want:?}: {one:?}");
        }
    }
    all
}

#[test]
fn cut_off_files_are_truncated_whatever_part_is_wanted() {
    for progressive in [false, true] {
        for sampling in [Sampling::S420, Sampling::Grey, Sampling::Cmyk] {
            let bytes = encode(227, 149, sampling, 90, progressive, 0);
            assert_eq!(verdict(&bytes), None);
            for tenth in 0..10 {
                let cut = &bytes[..bytes.len() * tenth / 10];
                assert_eq!(verdict(cut), Some(FaultKind::Truncated), "{tenth}/10");
            }
            for less in 1..3 {
                let cut = &bytes[..bytes.len() - less];
                assert_eq!(verdict(cut), Some(FaultKind::Truncated), "-{less}");
            }
        }
    }
}

#[test]
fn junk_behind_the_end_does_not_matter() {
    let bytes = jpeg(97, 61, Sampling::S420);
    let pixels = whole(&bytes, DecodeScale::Full, false);
    let (mut decoder, mut scratch) = (decoder(), JpegScratch::default());
    for junk in [
        &[0; 5000][..],
        b"\xff\xd8\xff\xe0 another one",
        b"\xff\xff\xd9\xd9",
    ] {
        let long = [&bytes[..], junk].concat();
        let want = PixelRegion::whole(pixels.size);
        check(
            &mut decoder,
            &mut scratch,
            &long,
            DecodeScale::Full,
            want,
            &pixels,
        );
        assert_eq!(verdict(&long), None);
    }
}

/// Only regions at the bottom read segments between the only scan and the end. Such segments must
/// not decide.
#[test]
fn damage_behind_the_pixels_does_not_matter() {
    for sampling in [Sampling::S420, Sampling::Cmyk] {
        let bytes = jpeg(97, 61, sampling);
        let pixels = whole(&bytes, DecodeScale::Full, sampling.is_cmyk());
        let body = &bytes[..bytes.len() - 2];
        let sos = bytes.windows(2).rposition(|w| w == [0xFF, 0xDA]).unwrap();
        for tail in [
            &b"\xff\xd8\xff\xd9"[..],
            b"\xff\x42\xff\xd9",
            b"\xff\xc4\0\x04\x55\x55\xff\xd9",
            b"\xff\xe3\x7f\xff short \xff\xd9",
            &bytes[sos..],
        ] {
            let odd = [body, tail].concat();
            assert_eq!(verdict(&odd), None, "{:02x?}", &tail[..4]);
            for want in [
                PixelRegion::whole(pixels.size),
                PixelRegion::new(40, 60, 30, 1),
            ] {
                let mut scratch = JpegScratch {
                    rgb: vec![0xA5; 1 << 20],
                    cmyk: vec![0x5A; 1 << 20],
                    ..JpegScratch::default()
                };
                let mut decoder = decoder();
                check(
                    &mut decoder,
                    &mut scratch,
                    &odd,
                    DecodeScale::Full,
                    want,
                    &pixels,
                );
            }
        }
    }
}

#[test]
fn a_bomb_is_refused_by_its_header() {
    let mut bytes = jpeg(16, 16, Sampling::S444);
    let at = frame_specs(&bytes) - 5;
    bytes[at..at + 4].copy_from_slice(&[0xFF, 0xDC, 0xFF, 0xDC]);
    let header = read_header(&bytes).unwrap();
    assert_eq!((header.width, header.height), (65500, 65500));
    let begun = std::time::Instant::now();
    let mut scratch = JpegScratch::default();
    let fault = decoder()
        .decode_region(
            &bytes,
            &header,
            DecodeScale::Eighth,
            PixelRegion::new(0, 0, 1, 1),
            &mut scratch,
        )
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    for part in ["4290250000", "max_pixels", "178956970"] {
        assert!(fault.reason.contains(part), "{fault}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_millis(100));
    assert_eq!(scratch.rgb.capacity(), 0);
}

#[test]
fn scratch_limits_are_checked_before_decoding() {
    let limits = PictureLimits {
        max_scratch: 1 << 20,
        ..PictureLimits::default()
    };
    let decoder = JpegDecoder::new(&limits);
    let mut scratch = JpegScratch::default();
    let one = PixelRegion::new(0, 0, 1, 1);
    let mut decode = |bytes: &[u8], want| {
        let header = read_header(bytes).unwrap();
        decoder.decode_region(bytes, &header, DecodeScale::Full, want, &mut scratch)
    };
    // 800 x 800 4:2:0: 1.92 MB of coefficients; the pixels of one block are few.
    let fault = decode(&encode(800, 800, Sampling::S420, 50, true, 0), one).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    for part in ["1.83 MiB coefficients", "max_scratch = 1 MiB"] {
        assert!(fault.reason.contains(part), "{fault}");
    }
    let baseline = encode(800, 800, Sampling::S420, 50, false, 0);
    assert!(decode(&baseline, one).is_ok());
    let fault = decode(&baseline, PixelRegion::new(0, 0, 800, 800)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    assert!(fault.reason.contains("1.83 MiB pixels"), "{fault}");
    // A limit that the library itself exceeds is the same kind of fault.
    let close = encode(512, 512, Sampling::S444, 50, true, 0);
    let tight = JpegDecoder::new(&PictureLimits {
        max_scratch: 3 * 512 * 512 * 2 + 3 * 8 * 8,
        ..limits
    });
    let header = read_header(&close).unwrap();
    let result = tight.decode_region(&close, &header, DecodeScale::Full, one, &mut scratch);
    if let Err(fault) = result {
        assert_eq!(fault.kind, FaultKind::TooLarge, "{fault}");
    }
}

#[test]
fn nothing_of_one_sample_reaches_the_next() {
    let good = jpeg(97, 61, Sampling::S420);
    let pixels = whole(&good, DecodeScale::Full, false);
    let header = read_header(&good).unwrap();
    let mut no_tables = good.clone();
    let dht = good.windows(2).position(|w| w == [0xFF, 0xC4]).unwrap();
    no_tables[dht + 4] = 0x77;
    let progressive = encode(97, 61, Sampling::S422, 90, true, 0);
    let others: Vec<Vec<u8>> = vec![
        no_tables,
        good[..dht + 9].to_vec(),
        good[..good.len() / 2].to_vec(),
        jpeg(31, 17, Sampling::Cmyk),
        jpeg(301, 203, Sampling::S411),
        progressive,
        vec![0xFF, 0xD8, 0xFF, 0xD9],
    ];
    let (mut decoder, mut scratch) = (decoder(), JpegScratch::default());
    for other in others {
        for scale in DecodeScale::ALL {
            // Uses its own header if it has one, otherwise a wrong one.
            let h = read_header(&other).unwrap_or(header);
            for want in some_regions(scaled_size(&h, scale)) {
                let _ = decoder.decode_region(&other, &h, scale, want, &mut scratch);
            }
            for want in [
                PixelRegion::new(20, 20, 30, 30),
                PixelRegion::whole(pixels.size),
            ] {
                check(
                    &mut decoder,
                    &mut scratch,
                    &good,
                    DecodeScale::Full,
                    want,
                    &pixels,
                );
            }
        }
    }
}

/// The library keeps tables from file to file. A file without tables must not use them.
#[test]
fn the_tables_of_one_file_do_not_serve_the_next() {
    let other = encode(64, 64, Sampling::S444, 30, false, 0);
    for progressive in [false, true] {
        let good = encode(97, 61, Sampling::S420, 90, progressive, 0);
        for marker in [0xDB, 0xC4] {
            let bytes = without(&good, marker);
            assert!(bytes.len() < good.len());
            let decode = |decoder: &JpegDecoder| {
                let mut scratch = JpegScratch::default();
                let header = read_header(&bytes).map_err(|fault| fault.kind)?;
                let want = PixelRegion::whole((97, 61));
                decoder
                    .decode_region(&bytes, &header, DecodeScale::Full, want, &mut scratch)
                    .map_err(|fault| fault.kind)?;
                Ok::<_, FaultKind>(scratch.rgb)
            };
            let mut used = decoder();
            for file in [&other, &good] {
                assert_eq!(
                    try_whole(&mut used, &mut JpegScratch::default(), file),
                    None
                );
            }
            assert!(decode(&used) == decode(&decoder()), "{marker:02x}");
        }
    }
}

/// The file without its segments of one marker. Scans stay as they are.
fn without(jpeg: &[u8], marker: u8) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), jpeg);
    while let Some(at) = rest.windows(2).position(|w| w == [0xFF, marker]) {
        out.extend_from_slice(&rest[..at]);
        let length = u16::from_be_bytes([rest[at + 2], rest[at + 3]]);
        rest = &rest[at + 2 + usize::from(length)..];
    }
    out.extend_from_slice(rest);
    out
}

#[test]
fn a_header_of_another_file_is_refused() {
    let (a, b) = (jpeg(97, 61, Sampling::S420), jpeg(64, 64, Sampling::S420));
    let header = read_header(&a).unwrap();
    let mut scratch = JpegScratch::default();
    let want = PixelRegion::whole((97, 61));
    let fault = decoder()
        .decode_region(&b, &header, DecodeScale::Full, want, &mut scratch)
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Corrupt);
    assert!(fault.reason.contains("97 x 61"), "{fault}");
    for want in [
        PixelRegion::new(0, 0, 98, 61),
        PixelRegion::new(u32::MAX, 0, 2, 1),
        PixelRegion::new(3, 3, 0, 1),
    ] {
        let fault = decoder().decode_region(&a, &header, DecodeScale::Full, want, &mut scratch);
        assert_eq!(fault.unwrap_err().kind, FaultKind::Corrupt);
    }
}

/// Random damage causes no panic, no write outside the region, and no unusable decoder.
#[test]
fn damaged_files_do_no_harm() {
    const GUARD: u8 = 0xA5;
    let good = jpeg(97, 61, Sampling::S420);
    let pixels = whole(&good, DecodeScale::Full, false);
    let files = [
        good.clone(),
        encode(61, 97, Sampling::S422, 60, true, 0),
        encode(40, 40, Sampling::Ycck420, 60, false, 2),
        encode(50, 30, Sampling::S444, 60, false, 4),
        encode_arithmetic(33, 47, Sampling::S420, true),
        jpeg(37, 53, Sampling::Grey),
    ];
    let limits = PictureLimits {
        max_pixels: 1 << 20,
        max_scratch: 16 << 20,
    };
    let mut decoder = JpegDecoder::new(&limits);
    let mut scratch = JpegScratch {
        rgb: vec![GUARD; 4 << 20],
        cmyk: vec![GUARD; 5 << 20],
        ..JpegScratch::default()
    };
    let mut random = Random::new(11);
    let (mut decoded, mut refused) = (0, 0);
    for round in 0..6000 {
        let mut bytes = files[round % files.len()].clone();
        let in_header = random.below(2) == 0;
        let end = if in_header {
            700.min(bytes.len())
        } else {
            bytes.len()
        };
        for _ in 0..=random.below(4) {
            let at = random.below(end as u64) as usize;
            bytes[at] = match random.below(3) {
                0 => bytes[at] ^ 1 << random.below(8),
                1 => random.next() as u8,
                _ => 0xFF,
            };
        }
        let Ok(header) = read_header(&bytes) else {
            refused += 1;
            continue;
        };
        let scale = DecodeScale::ALL[random.below(4) as usize];
        let (w, h) = scaled_size(&header, scale);
        let (x, y) = (random.in_range(0, w - 1), random.in_range(0, h - 1));
        let want = PixelRegion::new(x, y, random.in_range(1, w - x), random.in_range(1, h - y));
        match decoder.decode_region(&bytes, &header, scale, want, &mut scratch) {
            Ok(d) => {
                decoded += 1;
                assert!(PixelRegion::new(d.x, d.y, d.w, d.h).fits_in((w, h)));
                let used = d.stride * d.h as usize;
                assert!(
                    scratch.rgb[used..]
                        .iter()
                        .take(1 << 16)
                        .all(|&b| b == GUARD)
                );
                scratch.rgb[..used].fill(GUARD);
                let used = used / 3 * 4;
                assert!(
                    scratch.cmyk[used..]
                        .iter()
                        .take(1 << 16)
                        .all(|&b| b == GUARD)
                );
                scratch.cmyk[..used].fill(GUARD);
            }
            Err(_) => {
                refused += 1;
                scratch.rgb.fill(GUARD);
                scratch.cmyk.fill(GUARD);
            }
        }
        if round % 100 == 0 {
            let want = PixelRegion::new(20, 20, 30, 30);
            check(
                &mut decoder,
                &mut scratch,
                &good,
                DecodeScale::Full,
                want,
                &pixels,
            );
            scratch.rgb.fill(GUARD);
        }
    }
    assert!(
        decoded > 1000 && refused > 300,
        "{decoded} decoded, {refused} refused"
    );
}

/// The library smooths a progressive file whose last scans are missing. A region equals that part
/// of the whole.
#[test]
fn unfinished_progressive_files() {
    for sampling in [Sampling::S444, Sampling::S420] {
        let bytes = encode(131, 97, sampling, 80, true, 0);
        let scans: Vec<usize> = (0..bytes.len() - 1)
            .filter(|&i| bytes[i..i + 2] == [0xFF, 0xDA])
            .collect();
        for &cut in &scans[1..] {
            let short = [&bytes[..cut], &[0xFF, 0xD9]].concat();
            assert_eq!(verdict(&short), None);
            check_grid(&short, false, 3);
        }
    }
}

/// Each scan is a pass over the whole picture, and needs only a few bytes of a file.
#[test]
fn a_file_of_more_than_100_scans_is_too_large() {
    for progressive in [true, false] {
        for scans in [3, 99, 100] {
            let kind = verdict(&many_scans(scans, progressive));
            assert_eq!(kind, None, "{scans} {progressive}");
        }
        for scans in [101, 200] {
            let bytes = many_scans(scans, progressive);
            assert_eq!(verdict(&bytes), Some(FaultKind::TooLarge), "{scans}");
            let header = read_header(&bytes).unwrap();
            // The same if its end is missing, and if truncated files are kept.
            for truncated in [TruncationPolicy::Refuse, TruncationPolicy::Keep] {
                let decoder = JpegDecoder::with_truncation(&PictureLimits::default(), truncated);
                let want = PixelRegion::whole((16, 16));
                for bytes in [&bytes[..], &bytes[..bytes.len() - 2]] {
                    let mut scratch = JpegScratch::default();
                    let fault = decoder
                        .decode_region(bytes, &header, DecodeScale::Full, want, &mut scratch)
                        .unwrap_err();
                    let due = "JPEG of more than 100 scans, each a pass over the whole picture";
                    assert!(fault.reason.starts_with(due), "{fault}");
                }
            }
        }
    }
}

//! Compares the bytes with libjpeg-turbo's in every form, and tests rejected input.

use turbojpeg_sys as tj;

use super::quantizer::BlockQuantizer;
use super::*;
use crate::picture::jpeg::fixtures::{Random, pattern};
use crate::picture::jpeg::oracle::{Options, compress};

/// Encodes in every form, and compares with libjpeg-turbo.
fn check(pixels: &[u8], (height, width): (u32, u32), quality: u8) {
    let options = Options {
        format: tj::TJPF_TJPF_RGB,
        colorspace: None,
        subsampling: tj::TJSAMP_TJSAMP_420,
        quality: i32::from(quality),
        progressive: false,
        arithmetic: false,
        restart_blocks: 0,
    };
    let theirs = compress(pixels, width, height, &options);
    let mut out = vec![0xaa; most_bytes((height, width)) as usize];
    let levels = CpuLevel::ALL.into_iter();
    for level in levels.filter(|level| level.is_supported()) {
        let bytes = encode_as(level, pixels, (height, width), quality, &mut out).unwrap();
        let is_equal = out[..bytes] == theirs;
        assert!(
            is_equal,
            "{level:?}: {height} x {width} at quality {quality}: {bytes} bytes for {}",
            theirs.len()
        );
    }
}

/// Noise of all levels, or of only the darkest and the lightest.
fn noise((height, width): (u32, u32), is_hard: bool, random: &mut Random) -> Vec<u8> {
    let level = |random: &mut Random| match is_hard {
        true => 255 * random.below(2) as u8,
        false => random.next() as u8,
    };
    (0..3 * height * width).map(|_| level(random)).collect()
}

#[test]
fn every_size_has_libjpeg_turbos_bytes() {
    let mut random = Random::new(1);
    for height in 1..=33 {
        for width in 1..=33 {
            let quality = random.in_range(1, 100) as u8;
            check(&pattern(width, height, 3), (height, width), quality);
        }
    }
}

#[test]
fn every_quality_has_libjpeg_turbos_bytes() {
    let mut random = Random::new(2);
    for quality in 1..=100 {
        let size = (random.in_range(1, 50), random.in_range(1, 50));
        check(&pattern(size.1, size.0, 3), size, quality);
        check(&noise(size, false, &mut random), size, quality);
        check(&noise(size, true, &mut random), size, quality);
    }
}

#[test]
fn one_colour_and_chessboards_have_libjpeg_turbos_bytes() {
    for side in [1, 2, 8, 16] {
        for (dark, light) in [
            ([0; 3], [255; 3]),
            ([255, 0, 0], [0, 0, 255]),
            ([9; 3], [9; 3]),
        ] {
            let size = (40, 56);
            let colour = |i: u32| match (i % 56 / side + i / 56 / side) % 2 {
                0 => dark,
                _ => light,
            };
            let pixels: Vec<u8> = (0..40 * 56).flat_map(colour).collect();
            check(&pixels, size, 100);
        }
    }
}

#[test]
fn the_longest_sides_have_libjpeg_turbos_bytes() {
    for size in [(1, LONGEST), (LONGEST, 3)] {
        check(&pattern(size.1, size.0, 3), size, 90);
    }
}

#[test]
fn a_coefficient_is_divided_with_halves_away_from_zero() {
    for divisor in 1..=255u8 {
        let quantizer = BlockQuantizer::new(&[divisor; 64]);
        let divisor = 8 * i32::from(divisor);
        for value in -0x2000..=0x2000i16 {
            let size = i32::from(value.unsigned_abs());
            let right = i32::from(value.signum()) * ((size + divisor / 2) / divisor);
            assert_eq!(i32::from(quantizer.divide(value, 0)), right);
        }
    }
}

#[test]
fn bytes_of_0xff_are_stuffed_at_every_place_of_a_word() {
    use super::bits::{BitWriter, ByteOutput};
    for start in 1..=31 {
        let mut room = [0; 64];
        let mut out = ByteOutput::new(&mut room);
        let mut bits = BitWriter::NONE;
        bits.put(0, start, &mut out);
        for _ in 0..20 {
            bits.put(0x1ff, 9, &mut out);
        }
        bits.put(0, 8 - (start + 180) % 8, &mut out);
        bits.finish(&mut out);
        let count = out.finish().unwrap();
        let mut plain = Vec::new();
        let mut coded = room[..count].iter();
        while let Some(&byte) = coded.next() {
            plain.push(byte);
            if byte == 0xff {
                assert_eq!(coded.next(), Some(&0));
            }
        }
        let ones: u32 = plain.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!((ones, plain.len() as u32), (180, (start + 180) / 8 + 1));
    }
}

#[test]
fn the_room_is_the_encodings_bound_and_noise_fits_it() {
    use crate::jobs::encode::encoding::CacheEncoding;
    let jpeg = CacheEncoding::Jpeg { quality: 100 };
    for size in [
        (1, 1),
        (15, 17),
        (16, 16),
        (33, 480),
        (2000, 3001),
        (65_500, 65_500),
    ] {
        assert_eq!(jpeg.most_bytes(size, 0), most_bytes(size), "{size:?}");
    }
    // The values of tj3JPEGBufSize.
    assert_eq!(most_bytes((1, 1)), 2816);
    assert_eq!(most_bytes((2000, 3001)), 18_050_048);
    let mut random = Random::new(3);
    for size in [(1, 1), (9, 8), (64, 64), (99, 130)] {
        let mut out = vec![0; most_bytes(size) as usize];
        encode(&noise(size, true, &mut random), size, 100, &mut out).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_refused_before_a_byte_is_written() {
    let size = (64, 64);
    let pixels = pattern(64, 64, 3);
    let mut out = vec![0xaa; 20_000];
    let refused = |pixels: &[u8], size, quality, out: &mut [u8]| {
        let fault = encode(pixels, size, quality, out).unwrap_err();
        assert_eq!(fault.kind, FaultKind::TooLarge);
        fault.reason
    };
    let reason = refused(&pixels, size, 100, &mut out[..500]);
    assert!(reason.contains("500 bytes of room"), "{reason}");
    refused(&pixels[1..], size, 90, &mut out);
    refused(&[], (0, 0), 90, &mut out);
    let reason = refused(&[0; 3], (1, 65_501), 90, &mut out);
    assert!(reason.contains("65500"), "{reason}");
    for quality in [0, 101] {
        let reason = refused(&pixels, size, quality, &mut out);
        assert!(reason.contains("use 1 to 100"), "{reason}");
    }
    assert!(out.iter().all(|&b| b == 0xaa));
}

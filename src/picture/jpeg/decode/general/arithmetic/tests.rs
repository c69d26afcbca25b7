//! Compares files of libjpeg-turbo's arithmetic encoder, whole and damaged, with its decoder.

use turbojpeg_sys as tj;

use crate::picture::jpeg::decode::{DecodeRequest, JpegWindow, SimdForm, WindowDecoder};
use crate::picture::jpeg::fixtures::{Random, pattern};
use crate::picture::jpeg::oracle::{Options, Pixel, compress, reference};
use crate::picture::jpeg::region::DecodeScale;

/// An encoded file, its width and height, and its number of components.
struct File {
    bytes: Vec<u8>,
    size: (u32, u32),
    components: usize,
}

fn file(random: &mut Random) -> File {
    let (format, colorspace, subsampling, components) = [
        (tj::TJPF_TJPF_RGB, None, tj::TJSAMP_TJSAMP_444, 3),
        (tj::TJPF_TJPF_RGB, None, tj::TJSAMP_TJSAMP_422, 3),
        (tj::TJPF_TJPF_RGB, None, tj::TJSAMP_TJSAMP_420, 3),
        (tj::TJPF_TJPF_RGB, None, tj::TJSAMP_TJSAMP_440, 3),
        (tj::TJPF_TJPF_RGB, None, tj::TJSAMP_TJSAMP_411, 3),
        (tj::TJPF_TJPF_RGB, None, tj::TJSAMP_TJSAMP_441, 3),
        (tj::TJPF_TJPF_GRAY, None, tj::TJSAMP_TJSAMP_GRAY, 1),
        (
            tj::TJPF_TJPF_CMYK,
            Some(tj::TJCS_TJCS_YCCK as i32),
            tj::TJSAMP_TJSAMP_420,
            4,
        ),
    ][random.below(8) as usize];
    let (width, height) = (random.in_range(1, 50), random.in_range(1, 50));
    let progressive = random.below(2) == 0;
    let options = Options {
        format,
        colorspace,
        subsampling,
        quality: [1, 50, 75, 90, 100][random.below(5) as usize],
        progressive,
        arithmetic: true,
        restart_blocks: [0, 0, 1, 2, 7][random.below(5) as usize],
    };
    let pixels = pattern(width, height, components as u32);
    let bytes = compress(&pixels, width, height, &options);
    let frame = [0xff, if progressive { 0xca } else { 0xc9 }];
    assert!(bytes.windows(2).any(|marker| marker == frame));
    File {
        bytes,
        size: (width, height),
        components,
    }
}

/// Decodes the whole image and a window in every form, and compares both with libjpeg-turbo.
fn check(file: &File, decoders: &mut [WindowDecoder], random: &mut Random) {
    let (pixel, bytes) = match file.components {
        4 => (Pixel::Cmyk, 4),
        _ => (Pixel::Rgb, 3),
    };
    let scale = DecodeScale::ALL[random.below(4) as usize];
    let (width, height, whole) = reference(&file.bytes, scale, pixel);
    let (w, h) = (random.in_range(1, width), random.in_range(1, height));
    let (x, y) = (
        random.in_range(0, width - w),
        random.in_range(0, height - h),
    );
    for (x, y, w, h) in [(0, 0, width, height), (x, y, w, h)] {
        let window = JpegWindow {
            x: x as usize,
            y: y as usize,
            w: w as usize,
            h: h as usize,
        };
        let job = DecodeRequest {
            bytes: &file.bytes,
            size: (file.size.0 as usize, file.size.1 as usize),
            components: file.components,
            block: 8 / scale.denominator() as usize,
            window,
        };
        for decoder in &mut *decoders {
            let mut out = vec![0xaa; window.w * window.h * bytes];
            decoder.decode_general(&job, &mut out).unwrap();
            for (row, ours) in out.chunks_exact(window.w * bytes).enumerate() {
                let start = ((window.y + row) * width as usize + window.x) * bytes;
                let is_equal = ours == &whole[start..start + ours.len()];
                assert!(is_equal, "row {row} of {window:?} at {scale:?}");
            }
        }
    }
}

fn decoders() -> Vec<WindowDecoder> {
    SimdForm::supported().map(WindowDecoder::new).collect()
}

#[test]
fn files_of_all_kinds_have_libjpeg_turbos_pixels() {
    let (mut random, mut decoders) = (Random::new(1), decoders());
    for _ in 0..400 {
        let file = file(&mut random);
        check(&file, &mut decoders, &mut random);
    }
}

#[test]
fn damaged_data_have_libjpeg_turbos_pixels() {
    let (mut random, mut decoders) = (Random::new(2), decoders());
    for number in 0..600 {
        let mut file = file(&mut random);
        let bytes = &mut file.bytes;
        let scan = bytes.windows(2).position(|marker| marker == [0xff, 0xda]);
        let start = (scan.unwrap() + 16).min(bytes.len() - 1);
        // Markers and their contents stay unchanged, so that no file is rejected.
        let is_data = |bytes: &[u8], at: usize| !bytes[at - 16..=at].contains(&0xff);
        for _ in 0..[1, 4, 20][number % 3] {
            let at = random.in_range(start as u32, bytes.len() as u32 - 1) as usize;
            let byte = random.below(255) as u8;
            if is_data(bytes, at) {
                bytes[at] = byte;
            }
        }
        let at = random.in_range(start as u32, bytes.len() as u32 - 1) as usize;
        if number % 3 == 0 && is_data(bytes, at) {
            // Ends the data here.
            bytes.splice(at..at, [0xff, 0xd9]);
        }
        check(&file, &mut decoders, &mut random);
    }
}

#[test]
fn conditioning_that_a_file_states_has_libjpeg_turbos_pixels() {
    let (mut random, mut decoders) = (Random::new(3), decoders());
    for _ in 0..300 {
        let mut file = file(&mut random);
        let marker = file.bytes.windows(2).position(|m| m == [0xff, 0xcc]);
        let at = marker.unwrap() + 2;
        let end = at + usize::from(file.bytes[at + 1]);
        for entry in file.bytes[at + 2..end].chunks_exact_mut(2) {
            entry[1] = match entry[0] {
                ..16 => {
                    let lower = random.below(16) as u8;
                    let upper = lower + random.below(16 - u64::from(lower)) as u8;
                    upper << 4 | lower
                }
                _ => random.in_range(1, 63) as u8,
            };
        }
        check(&file, &mut decoders, &mut random);
    }
}

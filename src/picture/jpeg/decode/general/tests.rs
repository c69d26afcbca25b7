//! Compares files of all kinds with libjpeg-turbo, in all forms of the hot loops. The tests of the
//! parent folder cover damaged files and their messages.

use super::super::super::fixtures::{Random, Sampling, encode, one_component_scans};
use super::super::super::header::{JpegHeader, read_header};
use super::super::super::oracle::judge;
use super::super::super::region::{DecodeScale, scaled_size};
use super::super::{DecodeRequest, JpegWindow, SimdForm, WindowDecoder};
use super::*;

fn decoders() -> Vec<WindowDecoder> {
    SimdForm::supported().map(WindowDecoder::new).collect()
}

fn job<'a>(
    bytes: &'a [u8],
    header: &JpegHeader,
    scale: DecodeScale,
    window: JpegWindow,
) -> DecodeRequest<'a> {
    DecodeRequest {
        bytes,
        size: (header.width as usize, header.height as usize),
        components: usize::from(header.components),
        block: 8 / scale.denominator() as usize,
        window,
    }
}

/// Decodes the whole image and a part of it at each scale, and compares with libjpeg-turbo.
fn check(decoders: &mut [WindowDecoder], jpeg: &[u8], random: &mut Random) {
    let header = read_header(jpeg).unwrap();
    let bytes = if header.components == 4 { 4 } else { 3 };
    for scale in DecodeScale::ALL {
        let (whole, _) = judge(jpeg, &header, scale).unwrap().unwrap();
        let (w, h) = scaled_size(&header, scale);
        let (x, y) = (random.in_range(0, w - 1), random.in_range(0, h - 1));
        let part = (x, y, random.in_range(1, w - x), random.in_range(1, h - y));
        for (x, y, w_part, h_part) in [(0, 0, w, h), part] {
            let window = JpegWindow {
                x: x as usize,
                y: y as usize,
                w: w_part as usize,
                h: h_part as usize,
            };
            for decoder in &mut *decoders {
                let mut pixels = vec![0xAA; window.w * window.h * bytes];
                let job = job(jpeg, &header, scale, window);
                assert_eq!(
                    decoder.decode_general(&job, &mut pixels),
                    Ok(DecodeEnding::Whole)
                );
                let rows = pixels.chunks_exact(window.w * bytes);
                for (y, row) in rows.enumerate() {
                    let start = ((window.y + y) * w as usize + window.x) * bytes;
                    assert!(
                        row == &whole[start..start + row.len()],
                        "row {y} of {job:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn sequential_and_progressive_files_of_all_samplings_and_sizes() {
    let (mut decoders, mut random) = (decoders(), Random::new(1));
    for sampling in Sampling::ALL {
        for number in 0..24 {
            let (w, h) = match number {
                0..9 => (1 + number % 3, 1 + number / 3),
                _ => (random.in_range(1, 60), random.in_range(1, 60)),
            };
            let quality = [1, 30, 75, 95, 100][random.below(5) as usize];
            let restarts = [0, 0, 1, 3, 40][random.below(5) as usize];
            let jpeg = encode(w, h, sampling, quality, number % 4 > 0, restarts);
            check(&mut decoders, &jpeg, &mut random);
        }
    }
}

/// Includes sampling factors that no single scan can have.
#[test]
fn scans_of_one_component() {
    let (mut decoders, mut random) = (decoders(), Random::new(2));
    for number in 0..60 {
        let factors: &[u8] = [
            &[0x11, 0x11, 0x11][..],
            &[0x22, 0x11, 0x11],
            &[0x44, 0x22, 0x11],
            &[0x21, 0x12, 0x11],
            &[0x33, 0x11, 0x31],
            &[0x22, 0x22, 0x11, 0x22],
        ][number % 6];
        let (w, h) = (random.in_range(1, 70), random.in_range(1, 70));
        let restarts = [0, 0, 2][random.below(3) as usize];
        let jpeg = one_component_scans((w, h), factors, 80, number % 2 == 0, restarts);
        check(&mut decoders, &jpeg, &mut random);
    }
}

/// Missing coefficients are estimated, so each block depends on the blocks around it.
#[test]
fn progressive_files_without_their_last_scans() {
    let (mut decoders, mut random) = (decoders(), Random::new(3));
    let usual = [
        Sampling::S420,
        Sampling::S444,
        Sampling::Grey,
        Sampling::Cmyk,
    ];
    let files = usual.map(|sampling| encode(75, 53, sampling, 60, true, 0));
    let factors = [0x22, 0x11, 0x12];
    let apart = one_component_scans((75, 53), &factors, 60, true, 0);
    for file in files.iter().chain([&apart]) {
        let scans = (0..file.len() - 1).filter(|&at| file[at..at + 2] == [0xFF, 0xDA]);
        for cut in scans.skip(1) {
            let short = [&file[..cut], &[0xFF, 0xD9]].concat();
            check(&mut decoders, &short, &mut random);
        }
    }
}

/// The fast reader of libjpeg-turbo ends the data there. The slow one continues.
#[test]
fn several_bytes_of_0xff_before_a_stuffed_one() {
    let (mut decoders, mut random) = (decoders(), Random::new(4));
    for number in 0..60 {
        let sampling = [Sampling::S444, Sampling::S420, Sampling::Grey][number % 3];
        let mut jpeg = encode(90, 80, sampling, 90, false, 0);
        let scan = read_header(&jpeg).unwrap().scan_start;
        let at = scan + random.below((jpeg.len() - scan - 4) as u64) as usize;
        jpeg.splice(at..at, [0xFF, 0xFF, 0]);
        check(&mut decoders, &jpeg, &mut random);
    }
}

/// Only files of several scans keep their coefficients.
#[test]
fn a_file_of_one_scan_takes_rows_of_mcus() {
    for (progressive, least, most) in [(false, 0, 150 << 10), (true, 1 << 20, 2 << 20)] {
        let jpeg = encode(700, 500, Sampling::S420, 50, progressive, 0);
        let header = read_header(&jpeg).unwrap();
        let mut decoder = WindowDecoder::new(SimdForm::Plain);
        let window = JpegWindow {
            x: 0,
            y: 0,
            w: 700,
            h: 500,
        };
        let job = job(&jpeg, &header, DecodeScale::Full, window);
        let mut pixels = vec![0; 3 * 700 * 500];
        assert_eq!(
            decoder.decode_general(&job, &mut pixels),
            Ok(DecodeEnding::Whole)
        );
        let held =
            decoder.bytes() - size_of::<GeneralDecoder>() - size_of::<super::super::FixedBuffers>();
        assert!((least..most).contains(&held), "{held}");
    }
}

//! Parts of batches, without a device.

use super::*;
use crate::picture::jpeg::fixtures::{Random, Sampling, encode};
use crate::picture::jpeg::gpu_rows::write_row;
use crate::picture::jpeg::{DecodeRequest, JpegWindow, SimdForm};

const SAMPLINGS: [Sampling; 6] = [
    Sampling::S444,
    Sampling::S422,
    Sampling::S420,
    Sampling::S411,
    Sampling::S440,
    Sampling::Grey,
];

/// A window of a picture that `encode` made: its row's length, and what was read of it.
fn row(number: usize, random: &mut Random) -> (usize, CodedPicture, usize) {
    let sampling = SAMPLINGS[number % SAMPLINGS.len()];
    let (w, h) = (random.in_range(1, 300), random.in_range(1, 300));
    let jpeg = encode(w, h, sampling, 80, false, [0, 0, 0, 4][number % 4]);
    let block = [8, 4, 2, 1][number / 6 % 4];
    let mut side = |size: u32| {
        let size = (size as usize * block).div_ceil(8);
        let len = 1 + random.below(size as u64) as usize;
        (random.below((size - len + 1) as u64) as usize, len)
    };
    let ((x, w_of), (y, h_of)) = (side(w), side(h));
    let job = DecodeRequest {
        bytes: &jpeg,
        size: (w as usize, h as usize),
        components: if sampling == Sampling::Grey { 1 } else { 3 },
        block,
        window: JpegWindow {
            x,
            y,
            w: w_of,
            h: h_of,
        },
    };
    let mut row = vec![0; jpeg.len() + (80 << 10)];
    let len = write_row(&job, SimdForm::Plain, &mut row).unwrap();
    row.truncate(len);
    let pixels = window_pixels((w_of, h_of), block);
    (len, CodedPicture::read(&row).unwrap(), pixels)
}

/// Limits that are sums of rows and windows hold all of them, without the memory of restart
/// markers more often than each 64 bytes.
#[test]
fn what_the_limits_count_fits() {
    let mut random = Random::new(1);
    for round in 0..40 {
        let rows: Vec<_> = (0..12).map(|n| row(12 * round + n, &mut random)).collect();
        let limits = PartLimits {
            pictures: rows.len(),
            rows: rows.iter().map(|(len, ..)| len).sum(),
            pixels: rows.iter().map(|(.., pixels)| pixels).sum(),
        };
        let mut part = JpegPart::new(limits, THREADS);
        let mut at = 0;
        for (len, read, _) in &rows {
            assert!(part.add(read, 0, at + read.data.start), "round {round}");
            at += len;
        }
        let memory = limits.memory();
        let launches = part.write(&mut vec![0; memory.descriptors]).unwrap();
        assert_eq!(launches.pictures, 12);
        assert!(launches.states + launches.sums + launches.firsts <= part.data_at());
        let end = part.pictures().iter().map(|p| p.rgb as usize).max();
        assert!(part.data_at() + end.unwrap() <= memory.work);
    }
}

#[test]
fn a_full_part_takes_no_more_until_it_is_cleared() {
    let mut random = Random::new(2);
    let (len, read, pixels) = row(0, &mut random);
    let limits = PartLimits {
        pictures: 2,
        rows: 2 * len,
        pixels: 2 * pixels,
    };
    let mut part = JpegPart::new(limits, THREADS);
    let start = read.data.start;
    assert!(part.add(&read, 0, start) && part.add(&read, 0, len + start));
    assert!(!part.add(&read, 0, start));
    part.clear();
    assert!(!part.add(&read, 0, 2 * len), "behind the rows");
    assert!(
        !part.add(&read, 8, start) && !part.add(&read, 0, start + 8),
        "at no vector"
    );
    assert!(part.add(&read, 0, start));
}

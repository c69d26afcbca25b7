//! Tests rows of coded data without a device. Written rows hold the file's data. Any other row is
//! rejected, or stays within its memory.

use super::super::super::fixtures::{Random, Sampling, encode};
use super::super::SimdForm;
use super::super::request::{DecodeRefusal, DecodeRequest, JpegWindow};
use super::kernel_picture::{KernelPicture, KernelSegment, MANY, UNIT_BITS};
use super::limits::MAX_ENTRIES;
use super::{CodedPicture, KernelResize, ResizeAxis, write_resize, write_row};

const SAMPLINGS: [Sampling; 7] = [
    Sampling::S444,
    Sampling::S422,
    Sampling::S420,
    Sampling::S411,
    Sampling::S440,
    Sampling::Grey,
    Sampling::AdobeRgb,
];

fn job(jpeg: &[u8], size: (usize, usize), sampling: Sampling) -> DecodeRequest<'_> {
    DecodeRequest {
        bytes: jpeg,
        size,
        components: if sampling == Sampling::Grey { 1 } else { 3 },
        block: 8,
        window: JpegWindow {
            x: 0,
            y: 0,
            w: size.0,
            h: size.1,
        },
    }
}

fn row(job: &DecodeRequest<'_>, form: SimdForm) -> Result<Vec<u8>, DecodeRefusal> {
    let mut row = vec![0xEE; job.bytes.len() + (80 << 10)];
    let len = write_row(job, form, &mut row)?;
    row.truncate(len);
    Ok(row)
}

/// Coded data by T.81: without a zero after 0xff, and without restart markers.
fn unstuffed(jpeg: &[u8]) -> Vec<u8> {
    let scan = jpeg.windows(2).position(|m| m == [0xFF, 0xDA]).unwrap();
    let len = u16::from_be_bytes([jpeg[scan + 2], jpeg[scan + 3]]);
    let mut bytes = jpeg[scan + 2 + usize::from(len)..].iter();
    let mut out = Vec::new();
    while let Some(&byte) = bytes.next() {
        if byte != 0xFF {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(0) => out.push(0xFF),
            Some(0xD0..=0xD7) => {}
            _ => break,
        }
    }
    out
}

#[test]
fn rows_hold_the_unstuffed_data_of_each_form() {
    let mut random = Random::new(1);
    for number in 0..200 {
        let sampling = SAMPLINGS[number % SAMPLINGS.len()];
        let (w, h) = (random.in_range(1, 120), random.in_range(1, 120));
        let restarts = [0, 0, 1, 3][number % 4];
        let jpeg = encode(w, h, sampling, 97, false, restarts);
        let job = job(&jpeg, (w as usize, h as usize), sampling);
        let plain = row(&job, SimdForm::Plain).unwrap();
        assert!(plain == row(&job, SimdForm::best(256)).unwrap());
        let read = CodedPicture::read(&plain).unwrap();
        let expected = unstuffed(&jpeg);
        let data = &plain[read.data.clone()];
        assert_eq!(data[..expected.len()], expected);
        assert!(data.len() < expected.len() + 16 && data[expected.len()..].iter().all(|&b| b == 0));
        assert_eq!(read.data.end, plain.len());
    }
}

/// Whatever a row's header states, the row is rejected, or its memory use is bounded.
#[test]
fn rows_of_other_processes_do_no_harm() {
    let mut random = Random::new(2);
    let (mut taken, mut refused) = (0, 0);
    for number in 0..4000 {
        let sampling = SAMPLINGS[number % SAMPLINGS.len()];
        let jpeg = encode(70, 50, sampling, 90, false, [0, 2][number % 2]);
        let mut row = row(&job(&jpeg, (70, 50), sampling), SimdForm::Plain).unwrap();
        for _ in 0..1 + number % 3 {
            let at = random.below(row.len().min(2000) as u64) as usize;
            row[at] = random.next() as u8;
        }
        if number % 9 == 0 {
            row.truncate(random.below(row.len() as u64) as usize);
        }
        match CodedPicture::read(&row) {
            Ok(read) => {
                taken += 1;
                assert!(read.data.end <= row.len());
                let units = read.picture.units as usize;
                assert!(units <= row.len() * 8 / UNIT_BITS as usize + read.segments.len());
                // At most 9.5 bytes a pixel of whole MCUs of 32 x 32 pixels, and the lookups.
                let memory = read.picture.memory();
                assert!(memory.coefficients <= 10 * 128 * 8 * 8, "{memory:?}");
                assert!(memory.tables <= 2 * (2 * MAX_ENTRIES + 4 * MANY));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(taken > 500 && refused > 500, "{taken} {refused}");
}

#[test]
fn what_kernels_cannot_decode_is_refused() {
    let whole =
        |jpeg: &[u8], size, sampling| row(&job(jpeg, size, sampling), SimdForm::Plain).err();
    let plain = encode(33, 21, Sampling::S420, 90, false, 0);
    assert_eq!(whole(&plain, (33, 21), Sampling::S420), None);
    assert_eq!(
        whole(&plain, (33, 22), Sampling::S420),
        Some(DecodeRefusal::Unsupported)
    );
    let progressive = encode(33, 21, Sampling::S420, 90, true, 0);
    assert_eq!(
        whole(&progressive, (33, 21), Sampling::S420),
        Some(DecodeRefusal::Unsupported)
    );
    // A restart marker that is not due; data that end before a due one.
    let mut restarts = encode(33, 21, Sampling::S420, 90, false, 1);
    let at = restarts.windows(2).position(|m| m == [0xFF, 0xD1]).unwrap();
    restarts[at + 1] = 0xD2;
    assert_eq!(
        whole(&restarts, (33, 21), Sampling::S420),
        Some(DecodeRefusal::Damaged)
    );
    restarts.truncate(at);
    assert_eq!(
        whole(&restarts, (33, 21), Sampling::S420),
        Some(DecodeRefusal::Damaged)
    );
    let job = job(&plain, (33, 21), Sampling::S420);
    let short = write_row(&job, SimdForm::Plain, &mut [0; 1800]);
    assert!(matches!(
        short,
        Err(DecodeRefusal::NoMemory | DecodeRefusal::Damaged)
    ));
}

/// A row of 33 x 21 pixels, with tables that resize it to 4 x 3.
fn resized_row(down_first: bool) -> (Vec<u8>, usize) {
    let jpeg = encode(33, 21, Sampling::S420, 90, false, 0);
    let mut row = row(&job(&jpeg, (33, 21), Sampling::S420), SimdForm::Plain).unwrap();
    let (starts, coefficients) = ([0, 8, 16, 24], [1i32; 4 * 10]);
    let axes = [(4, 10), (3, 8)].map(|(outputs, taps)| ResizeAxis {
        starts: &starts[..outputs],
        coefficients: &coefficients[..outputs * taps],
        taps,
        precision: 3,
    });
    let mut tables = vec![0xEE; 1 << 10];
    assert_eq!(write_resize(axes, down_first, &mut tables[..304]), None);
    let len = write_resize(axes, down_first, &mut tables).unwrap();
    // 32 bytes, 4 for each of 7 pixels, 4 for each of 64 taps: rounded up to a multiple of 16.
    assert_eq!(len, 320);
    let at = row.len();
    row.extend(&tables[..len]);
    (row, at)
}

#[test]
fn tables_of_a_resize_are_read_as_they_were_written_and_doubted() {
    for down_first in [false, true] {
        let (row, at) = resized_row(down_first);
        let read = CodedPicture::read_as(&row, (4, 3)).unwrap();
        assert_eq!(
            (read.data.end, read.data.start + read.coded_bytes()),
            (row.len(), at)
        );
        // Between the passes: 21 rows of 12 bytes, or 3 rows of the window.
        let (second, end) = read.resize.unwrap().memory();
        let window = read.picture.window().1;
        let between = if down_first { 3 * window } else { 12 * 21 };
        assert_eq!(second, between.next_multiple_of(16));
        assert_eq!(end, second + 3 * 4 * 3 + 12);
        let own = CodedPicture::read_as(&row, (33, 21)).unwrap();
        assert!(own.resize.is_none() && own.data.end == at);
        // Other sizes, and rows that end elsewhere.
        for size in [(5, 3), (4, 4), (0, 3), (4, 0), (u32::MAX, u32::MAX)] {
            assert!(CodedPicture::read_as(&row, size).is_err(), "{size:?}");
        }
        for len in [at, at + 16, row.len() - 16] {
            assert!(CodedPicture::read_as(&row[..len], (4, 3)).is_err(), "{len}");
        }
        // Taps, precision, order.
        for (place, number) in [
            (0, 0),
            (0, 11),
            (4, u32::MAX),
            (4, 0),
            (8, 23),
            (12, u32::MAX),
            (16, 2),
        ] {
            let mut row = row.clone();
            row[at + place..at + place + 4].copy_from_slice(&number.to_ne_bytes());
            let read = CodedPicture::read_as(&row, (4, 3));
            assert!(read.is_err(), "{place}: {number}");
        }
        // Tables of pixels and of coefficients may have any content.
        let mut row = row;
        row[at + 32..].fill(0xFF);
        assert!(CodedPicture::read_as(&row, (4, 3)).is_ok());
    }
}

/// The sizes of the kernels' structs (`kernels/jpeg/types.cuh`).
#[test]
fn structs_have_the_sizes_of_the_kernels() {
    assert_eq!(size_of::<KernelPicture>(), 1960);
    assert_eq!(size_of::<KernelSegment>(), 16);
    assert_eq!(size_of::<KernelResize>(), 120);
}

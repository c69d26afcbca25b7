//! The kernels of `kernels/jpeg.cu` on a real device, bit by bit against the plain form of the CPU
//! decoder. Without a device these tests say `SKIP` and pass; with `FEATHERLOAD_REQUIRE_GPU=1`
//! they fail.

use std::sync::Arc;

use super::gpu_jpeg_decoder::{GpuJpegDecoder, JpegKernels};
use super::gpu_tests::context;
use super::memory::HostBuffer;
use crate::device::cuda::CudaContext;
use crate::device::jpeg_part::{JpegPart, PartLimits, THREADS};
use crate::device::tests::reference::cpu_resize::{resized, tables};
use crate::picture::jpeg::fixtures::{Random, Sampling, encode, photos};
use crate::picture::jpeg::gpu_rows::{CodedPicture, write_row};
use crate::picture::jpeg::{BaselineDecoder, DecodeRequest, JpegWindow, SimdForm, stages};
use crate::pixels::resample::{FractionalBox, ResizeAxes, ResizeTarget};
use crate::recipe::values::LibraryFilter;
use crate::recipe::weights::ResizeFilter;

/// Samplings that rows can hold.
const SAMPLINGS: [Sampling; 8] = [
    Sampling::S444,
    Sampling::S422,
    Sampling::S420,
    Sampling::S411,
    Sampling::S440,
    Sampling::S441,
    Sampling::Grey,
    Sampling::AdobeRgb,
];

const LIMITS: PartLimits = PartLimits {
    pictures: 64,
    rows: 8 << 20,
    pixels: 4 << 20,
};

/// A file, and what is wanted of it.
struct Case {
    jpeg: Vec<u8>,
    size: (usize, usize),
    components: usize,
    block: usize,
    window: JpegWindow,
    /// Tables of a resize, and the width and height that it makes.
    resize: Option<(Vec<u8>, (usize, usize))>,
}

impl Case {
    fn whole(jpeg: Vec<u8>, block: usize) -> Self {
        let (size, components) = look(&jpeg);
        let window = JpegWindow {
            x: 0,
            y: 0,
            w: (size.0 * block).div_ceil(8),
            h: (size.1 * block).div_ceil(8),
        };
        Self {
            jpeg,
            size,
            components,
            block,
            window,
            resize: None,
        }
    }

    /// The same, whose window becomes as large as `target`.
    fn resized(self, target: ResizeTarget) -> Self {
        let (w, h) = (self.window.w, self.window.h);
        let axes = ResizeAxes::new((w, h), FractionalBox::whole(w, h), target);
        Self {
            resize: Some((tables(&axes), (target.width, target.height))),
            ..self
        }
    }

    /// Width and height of what is made.
    fn made(&self) -> (usize, usize) {
        let resize = self.resize.as_ref();
        resize.map_or((self.window.w, self.window.h), |(_, size)| *size)
    }

    /// The row, and what is read of it; none if no row can hold it.
    fn row(&self) -> Option<(Vec<u8>, CodedPicture)> {
        let mut row = vec![0xEE; self.jpeg.len() + (80 << 10)];
        let len = write_row(&self.job(), SimdForm::Plain, &mut row).ok()?;
        row.truncate(len);
        if let Some((tables, _)) = &self.resize {
            row.extend(tables);
        }
        let (width, height) = self.made();
        let read = CodedPicture::read_as(&row, (width as u32, height as u32));
        Some((row, read.unwrap()))
    }

    fn part(jpeg: Vec<u8>, block: usize, random: &mut Random) -> Self {
        let mut case = Self::whole(jpeg, block);
        let mut side = |size: usize| {
            let len = 1 + random.below(size as u64) as usize;
            (random.below((size - len + 1) as u64) as usize, len)
        };
        let ((x, w), (y, h)) = (side(case.window.w), side(case.window.h));
        case.window = JpegWindow { x, y, w, h };
        case
    }

    fn job(&self) -> DecodeRequest<'_> {
        DecodeRequest {
            bytes: &self.jpeg,
            size: self.size,
            components: self.components,
            block: self.block,
            window: self.window,
        }
    }

    /// By the plain form of the CPU decoder; none if that refuses it.
    fn expected(&self) -> Option<Vec<u8>> {
        let mut pixels = vec![0; 3 * self.window.w * self.window.h];
        let decoded = BaselineDecoder::new(SimdForm::Plain).decode(&self.job(), &mut pixels);
        decoded.ok()?;
        Some(match &self.resize {
            None => pixels,
            Some((tables, to)) => resized(tables, &pixels, (self.window.w, self.window.h), *to),
        })
    }
}

/// Width and height, and the number of components.
fn look(jpeg: &[u8]) -> ((usize, usize), usize) {
    let mut at = 2;
    while !matches!(jpeg[at + 1], 0xC0..=0xC2) {
        at += 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
    }
    let side = |at: usize| usize::from(u16::from_be_bytes([jpeg[at], jpeg[at + 1]]));
    ((side(at + 7), side(at + 5)), usize::from(jpeg[at + 9]))
}

/// What became of a case.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// No row can hold it.
    Refused,
    Flagged(u32),
    Pixels(Vec<u8>),
}

struct Gpu {
    lane: GpuJpegDecoder,
    rows: HostBuffer,
}

impl Gpu {
    fn new(context: &Arc<CudaContext>, kernels: &Arc<JpegKernels>, limits: PartLimits) -> Self {
        let lane = GpuJpegDecoder::new(kernels, limits).unwrap();
        let rows = HostBuffer::new(context, limits.rows, "rows of a test").unwrap();
        Self { lane, rows }
    }

    fn open(limits: PartLimits) -> Option<Self> {
        let context = context()?;
        let kernels = JpegKernels::load(&context).unwrap();
        Some(Self::new(&context, &kernels, limits))
    }

    /// Decodes all cases, in as many parts as they need. `hurt` may change the coded data of each
    /// row after it was read.
    fn decode(&mut self, cases: &[Case], mut hurt: impl FnMut(usize, &mut [u8])) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let mut waiting: Vec<usize> = Vec::new();
        let mut end = 0;
        for (number, case) in cases.iter().enumerate() {
            outcomes.push(Outcome::Refused);
            let Some((mut row, read)) = case.row() else {
                continue;
            };
            let len = row.len();
            hurt(number, &mut row[read.data.clone()]);
            if end + len > self.rows.bytes_mut().len() || !self.add(&read, end) {
                self.finish(cases, &mut waiting, &mut outcomes);
                end = 0;
                assert!(self.add(&read, 0), "case {number}");
            }
            self.rows.bytes_mut()[end..end + len].copy_from_slice(&row);
            end += len.next_multiple_of(16);
            waiting.push(number);
        }
        self.finish(cases, &mut waiting, &mut outcomes);
        outcomes
    }

    /// Adds a picture whose row begins so many bytes behind the first.
    fn add(&mut self, read: &CodedPicture, begin: usize) -> bool {
        let at = begin + read.data.start;
        let source = self.rows.as_ptr() as u64 + at as u64;
        self.lane.add(read, source, at)
    }

    fn finish(&mut self, cases: &[Case], waiting: &mut Vec<usize>, outcomes: &mut [Outcome]) {
        self.lane.poison().unwrap();
        // SAFETY: pinned, with all rows of the part, and unchanged until `wait` below.
        let decoded = unsafe { self.lane.decode().unwrap() };
        self.lane.end_part().unwrap();
        let errors = self.lane.wait().unwrap().unwrap();
        assert_eq!(
            (decoded.len(), errors.len()),
            (waiting.len(), waiting.len())
        );
        for (number, (picture, error)) in waiting.drain(..).zip(decoded.into_iter().zip(errors)) {
            outcomes[number] = match error {
                0 => {
                    let pixels = self.lane.read_back(&picture, cases[number].made());
                    Outcome::Pixels(pixels.unwrap())
                }
                error => Outcome::Flagged(error),
            };
        }
    }

    /// All are decoded, and are the CPU's.
    fn check(&mut self, cases: &[Case]) {
        let outcomes = self.decode(cases, |_, _| {});
        for (case, outcome) in cases.iter().zip(outcomes) {
            let job = case.job();
            let about = || {
                let made = case.made();
                let (window, size) = (job.window, job.size);
                format!("{window:?} of {size:?}, block {}, to {made:?}", job.block)
            };
            let expected = case.expected().unwrap();
            match outcome {
                Outcome::Pixels(pixels) => {
                    let differs = pixels.iter().zip(&expected).position(|(a, b)| a != b);
                    assert_eq!(differs, None, "{}", about());
                }
                other => panic!("{other:?}: {}", about()),
            }
        }
    }
}

/// A flat area, where a chain of a wrong phase goes on for 1,443 units, is no error.
#[test]
fn flat_areas_are_decoded() {
    let Some(mut gpu) = Gpu::open(PartLimits {
        pixels: 8 << 20,
        ..LIMITS
    }) else {
        return;
    };
    let mut jpeg = encode(16, 16, Sampling::S420, 90, false, 0);
    let frame = jpeg.windows(2).position(|m| m == [0xFF, 0xC0]).unwrap();
    let [height, width] = [2100u16, 2800].map(u16::to_be_bytes);
    jpeg[frame + 5..frame + 9].copy_from_slice(&[height, width].concat());
    let scan = jpeg.windows(2).position(|m| m == [0xFF, 0xDA]).unwrap();
    jpeg.truncate(scan + 14);
    // By the tables of T.81, Annex K: a DC difference of 1 and the end of the block, 010 1 1010.
    // Then blocks without a difference: luma 00 1010, chroma 00 00.
    let mcu = 0b0010_1000_1010_0010_1000_1010_0000_0000u32.to_be_bytes();
    let first = 0b0101_1010_0010_1000_1010_0010_1000_0000u32.to_be_bytes();
    jpeg.extend(first);
    // The first MCU has two bits more: all that follow are shifted.
    let mut shifted = mcu.repeat(175 * 132 - 1);
    let mut carry = 0;
    for byte in &mut shifted {
        (carry, *byte) = (*byte << 6, carry | *byte >> 2);
    }
    jpeg.extend(shifted);
    jpeg.extend([carry | 0x3F, 0xFF, 0xD9]);
    gpu.check(&[Case::whole(jpeg, 8)]);
}

/// Blocks of chains with half as many threads, as Turing takes them.
#[test]
fn small_shared_memory() {
    let Some(context) = context() else {
        return;
    };
    let kernels = JpegKernels::with_chain_threads(&context, THREADS / 2).unwrap();
    let mut gpu = Gpu::new(&context, &kernels, LIMITS);
    let mut random = Random::new(8);
    let cases: Vec<Case> = (0..200)
        .map(|number| Case::whole(some_jpeg(128 + number, &mut random), 8))
        .collect();
    gpu.check(&cases);
}

const BLOCKS: [usize; 4] = [8, 4, 2, 1];

fn some_jpeg(number: usize, random: &mut Random) -> Vec<u8> {
    let sampling = SAMPLINGS[number % SAMPLINGS.len()];
    let (w, h) = match number / SAMPLINGS.len() {
        small @ 0..16 => (1 + small as u32 % 4, 1 + small as u32 / 4),
        _ => (random.in_range(1, 200), random.in_range(1, 200)),
    };
    let quality = [1, 30, 75, 90, 98, 100][random.below(6) as usize];
    let restarts = [0, 0, 1, 2, 5, 40][random.below(6) as usize];
    encode(w, h, sampling, quality, false, restarts)
}

#[test]
fn all_samplings_sizes_windows_scales_and_restarts() {
    let Some(mut gpu) = Gpu::open(LIMITS) else {
        return;
    };
    let mut random = Random::new(1);
    for block in BLOCKS {
        let mut cases = Vec::new();
        for number in 0..320 {
            let jpeg = some_jpeg(number, &mut random);
            cases.push(Case::part(jpeg.clone(), block, &mut random));
            cases.push(Case::whole(jpeg, block));
        }
        gpu.check(&cases);
    }
}

/// What lies between coded data and pixels: coefficients, and samples where they have planes.
#[test]
fn stages_are_equal() {
    let limits = PartLimits {
        pictures: 1,
        rows: 1 << 20,
        pixels: 1 << 18,
    };
    let Some(mut gpu) = Gpu::open(limits) else {
        return;
    };
    let mut random = Random::new(9);
    let (mut blocks, mut samples) = (0, 0);
    for number in 0..400 {
        let jpeg = some_jpeg(number, &mut random);
        let case = match number % 2 {
            0 => Case::whole(jpeg, BLOCKS[number / 8 % 4]),
            _ => Case::part(jpeg, BLOCKS[number / 8 % 4], &mut random),
        };
        let (row, read) = case.row().unwrap();
        gpu.rows.bytes_mut()[..row.len()].copy_from_slice(&row);
        assert!(gpu.add(&read, 0));
        gpu.lane.poison().unwrap();
        // SAFETY: pinned, with the row of the part, and unchanged until `wait` below.
        unsafe { gpu.lane.decode().unwrap() };
        let (part, work) = gpu.lane.read_stages().unwrap();
        let compared = compare_stages(&case, part, &work);
        (blocks, samples) = (blocks + compared.0, samples + compared.1);
        gpu.lane.end_part().unwrap();
        assert_eq!(gpu.lane.wait().unwrap().unwrap(), [0]);
    }
    assert!(blocks > 30_000 && samples > 500_000, "{blocks}, {samples}");
}

/// Compares the stages of the only picture of a part with the CPU's: how many blocks of
/// coefficients and how many samples.
fn compare_stages(case: &Case, part: &JpegPart, work: &[u8]) -> (usize, usize) {
    let mut pixels = vec![0; 3 * case.window.w * case.window.h];
    let expected = stages(&case.job(), &mut pixels).unwrap();
    assert_eq!(Some(&pixels), case.expected().as_ref());
    let picture = part.pictures()[0];
    let data = &work[part.data_at()..];
    let number = |bytes: &[u8]| i32::from_ne_bytes(bytes[..4].try_into().unwrap());
    let (mut blocks, mut samples) = (0, 0);
    for (component, kept) in picture.components().iter().enumerate() {
        if kept.side == 1 {
            // Its only sample is the DC coefficient, which its pixels show.
            continue;
        }
        for column in 0..kept.columns as usize {
            let expected = &expected[&(component, column)];
            assert_eq!(expected.len(), kept.rows as usize);
            for (row, block) in expected.iter().enumerate() {
                let about = || {
                    let (size, window) = (case.size, case.window);
                    format!("{component}: {column}, {row} of {window:?} of {size:?}")
                };
                let nth = kept.blocks as usize + row * kept.columns as usize + column;
                // `Info` of `kernels/jpeg/types.cuh`.
                let info = &data[picture.infos as usize + 8 * nth..];
                let (dc, piece) = (number(info), number(&info[4..]) as usize);
                let sum = number(&work[part.sums_at() + 4 * (3 * piece + component)..]);
                let written = 16 * (1 + (dc as usize >> 16 & 3));
                let from = picture.coefficients as usize + 128 * nth;
                let words = data[from..from + 2 * written].chunks_exact(2);
                let mut found: Vec<i16> = words
                    .map(|word| i16::from_ne_bytes([word[0], word[1]]))
                    .collect();
                found.resize(64, 0);
                found[0] = (dc as i16).wrapping_add(sum as i16);
                assert_eq!(found, block.coefficients, "{}", about());
                blocks += 1;
                if picture.is_whole() {
                    continue;
                }
                let (side, pitch) = (kept.side as usize, kept.pitch as usize);
                let plane = picture.planes as usize + kept.plane as usize;
                let first = plane + row * side * pitch + column * side;
                let lines = data[first..].chunks(pitch).take(side);
                let found: Vec<u8> = lines.flat_map(|line| &line[..side]).copied().collect();
                assert_eq!(found, block.samples, "{}", about());
                samples += found.len();
            }
        }
    }
    (blocks, samples)
}

/// Quantization tables of 16 bits, with any numbers: sums wrap and saturate as the CPU's do.
#[test]
fn absurd_coefficients() {
    let Some(mut gpu) = Gpu::open(LIMITS) else {
        return;
    };
    let mut random = Random::new(2);
    let mut cases = Vec::new();
    for number in 0..200 {
        let sampling = SAMPLINGS[number % SAMPLINGS.len()];
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
        cases.extend(BLOCKS.map(|block| Case::whole(jpeg.clone(), block)));
    }
    gpu.check(&cases);
}

/// Any factors that the CPU decoder takes: data of another sampling are decoded all the same.
#[test]
fn odd_sampling_factors() {
    const FACTORS: [u8; 12] = [
        0x11, 0x12, 0x21, 0x22, 0x14, 0x41, 0x42, 0x24, 0x31, 0x13, 0x44, 0x33,
    ];
    let Some(mut gpu) = Gpu::open(LIMITS) else {
        return;
    };
    let mut random = Random::new(3);
    let mut cases = Vec::new();
    for _ in 0..400 {
        // With the same tables for all components, so that blocks may be any component's.
        let mut jpeg = encode(90, 250, Sampling::AdobeRgb, 98, false, 0);
        let (_, components) = look(&jpeg);
        let at = jpeg.windows(2).position(|m| m == [0xFF, 0xC0]).unwrap() + 4;
        // Fewer rows, so that there are data for all.
        jpeg[at + 1] = 0;
        jpeg[at + 2] = random.in_range(1, 40) as u8;
        for component in 0..components {
            jpeg[at + 7 + 3 * component] = FACTORS[random.below(12) as usize];
        }
        for block in BLOCKS {
            let case = Case::whole(jpeg.clone(), block);
            cases.extend(case.expected().is_some().then_some(case));
        }
    }
    assert!(cases.len() > 100, "{}", cases.len());
    gpu.check(&cases);
}

#[test]
fn photos_are_equal() {
    let Some(mut gpu) = Gpu::open(PartLimits {
        pictures: 64,
        rows: 32 << 20,
        pixels: 32 << 20,
    }) else {
        return;
    };
    let mut random = Random::new(4);
    let mut cases = Vec::new();
    for (number, (_, jpeg)) in photos().into_iter().enumerate().step_by(5) {
        let whole = Case::whole(jpeg.clone(), BLOCKS[number / 5 % 4]);
        if whole.expected().is_some() {
            cases.push(whole);
            cases.push(Case::part(jpeg, 8, &mut random));
        }
    }
    gpu.check(&cases);
}

/// A damaged file is flagged, or has the CPU's pixels; whole ones beside it are untouched.
#[test]
fn damaged_files_are_flagged_and_spoil_no_other() {
    let Some(mut gpu) = Gpu::open(LIMITS) else {
        return;
    };
    let mut random = Random::new(5);
    let mut cases = Vec::new();
    for number in 0..600 {
        let sampling = SAMPLINGS[number % SAMPLINGS.len()];
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
        cases.push(Case::part(jpeg, BLOCKS[number / 7 % 4], &mut random));
        cases.push(Case::whole(some_jpeg(number, &mut random), 8));
    }
    let outcomes = gpu.decode(&cases, |_, _| {});
    let (mut equal, mut flagged, mut refused) = (0, 0, 0);
    for (number, (case, outcome)) in cases.iter().zip(outcomes).enumerate() {
        match (outcome, case.expected()) {
            (Outcome::Pixels(pixels), expected) => {
                assert!(
                    Some(pixels) == expected,
                    "case {number}: {:?}",
                    case.job().window
                );
                equal += 1;
            }
            (Outcome::Flagged(_), _) if number % 2 == 0 => flagged += 1,
            (Outcome::Refused, _) if number % 2 == 0 => refused += 1,
            (outcome, _) => panic!("case {number}: {outcome:?}"),
        }
    }
    println!("{equal} equal, {flagged} flagged, {refused} refused");
    assert!(equal > 650 && flagged > 100 && refused > 30);
}

/// Rows that change after they were checked: kernels end, and other pictures are untouched.
#[test]
fn coded_data_may_be_anything() {
    let Some(mut gpu) = Gpu::open(LIMITS) else {
        return;
    };
    let mut random = Random::new(6);
    let cases: Vec<Case> = (0..300)
        .map(|number| Case::whole(some_jpeg(128 + number, &mut random), BLOCKS[number % 4]))
        .collect();
    let outcomes = gpu.decode(&cases, |number, data| match number % 6 {
        1 => data.fill(0),
        3 => data.fill(0xFF),
        5 => data.fill_with(|| random.next() as u8),
        _ => {}
    });
    for (number, (case, outcome)) in cases.iter().zip(outcomes).enumerate() {
        if number % 2 == 0 {
            assert!(
                outcome == Outcome::Pixels(case.expected().unwrap()),
                "case {number}"
            );
        }
    }
}

/// Pictures that fit no more wait for the next part, and one that fits none is told apart.
#[test]
fn parts_take_what_fits() {
    let Some(mut gpu) = Gpu::open(PartLimits {
        pictures: 3,
        rows: 256 << 10,
        pixels: 100_000,
    }) else {
        return;
    };
    let mut random = Random::new(7);
    let cases: Vec<Case> = (0..40)
        .map(|number| Case::whole(some_jpeg(128 + number, &mut random), 8))
        .collect();
    gpu.check(&cases);
    let large = Case::whole(encode(1500, 1500, Sampling::S444, 90, false, 0), 8);
    let mut row = vec![0; large.jpeg.len() + (80 << 10)];
    write_row(&large.job(), SimdForm::Plain, &mut row).unwrap();
    let read = CodedPicture::read(&row).unwrap();
    assert!(!gpu.add(&read, 0));
}

const FILTERS: [ResizeFilter; 9] = [
    ResizeFilter::Nearest,
    ResizeFilter::Area,
    ResizeFilter::Triangle,
    ResizeFilter::Cubic,
    ResizeFilter::SharpCubic,
    ResizeFilter::Lanczos3,
    ResizeFilter::Pillow(LibraryFilter::Bicubic),
    ResizeFilter::Torchvision(LibraryFilter::Bilinear),
    ResizeFilter::Torchvision(LibraryFilter::Bicubic),
];

/// Windows of any size that become as large as any row: reduced, enlarged, copied along an axis.
fn some_resize(number: usize, random: &mut Random) -> Case {
    let sampling = SAMPLINGS[number % SAMPLINGS.len()];
    let most = [40, 300, 300, 900][number % 4];
    let (w, h) = (random.in_range(1, most), random.in_range(1, most));
    let jpeg = encode(w, h, sampling, 85, false, [0, 0, 3][number % 3]);
    let case = match number % 5 {
        0 => Case::whole(jpeg, BLOCKS[number / 5 % 4]),
        _ => Case::part(jpeg, BLOCKS[number / 5 % 4], random),
    };
    let (w, h) = (case.window.w, case.window.h);
    let side = |side: usize, random: &mut Random| match random.below(6) {
        0 => side,
        1 => 1 + random.below(9) as usize,
        2 => 1 + random.below(2 * side as u64) as usize,
        3 => 100 + random.below(200) as usize,
        _ => 1 + random.below(side as u64 / 3 + 1) as usize,
    };
    // The pass down is the first where both axes are reduced a lot.
    let (width, mut height) = match number % 2 {
        0 => (side(w, random), side(h, random)),
        _ => (w.div_ceil(5), h.div_ceil(4)),
    };
    // A window of this size is wanted as it is.
    if (width, height) == (w, h) {
        height += 1;
    }
    case.resized(ResizeTarget {
        width,
        height,
        filter: FILTERS[number % 9],
        antialias: number % 7 > 1,
    })
}

/// A part may have both kinds of windows.
#[test]
fn windows_are_resized_as_by_the_cpu() {
    let mut random = Random::new(10);
    let mut cases = Vec::new();
    for number in 0..900 {
        cases.push(some_resize(number, &mut random));
        if number % 3 == 0 {
            cases.push(Case::whole(some_jpeg(number, &mut random), 8));
        }
    }
    let (across, down): (Vec<_>, Vec<_>) = cases
        .iter()
        .filter_map(|case| case.resize.as_ref())
        .partition(|(tables, _)| tables[16] == 0);
    let counts = (across.len(), down.len());
    assert!(counts.0 > 300 && counts.1 > 100, "{counts:?}");
    let Some(mut gpu) = Gpu::open(LIMITS) else {
        return;
    };
    gpu.check(&cases);
}

/// A photo of 12 megapixels, each filter.
#[test]
fn large_windows_are_resized_as_by_the_cpu() {
    let Some(mut gpu) = Gpu::open(PartLimits {
        pictures: 8,
        rows: 16 << 20,
        pixels: 14 << 20,
    }) else {
        return;
    };
    let jpeg = encode(4000, 3000, Sampling::S420, 80, false, 0);
    let cases = FILTERS.map(|filter| {
        Case::whole(jpeg.clone(), 8).resized(ResizeTarget {
            width: 224,
            height: 224,
            filter,
            antialias: true,
        })
    });
    gpu.check(&cases);
}

/// Tables that change after they were checked: pixels are those that the tables give then, out of
/// the window alone, and other pictures are untouched.
#[test]
fn tables_of_a_resize_may_be_anything() {
    let Some(mut gpu) = Gpu::open(LIMITS) else {
        return;
    };
    let mut random = Random::new(11);
    let mut cases: Vec<Case> = (0..300)
        .map(|number| some_resize(number, &mut random))
        .collect();
    // Those that a kernel reads, after the numbers that the consumer has read.
    let hurt: Vec<Vec<u8>> = cases
        .iter()
        .enumerate()
        .map(|(number, case)| {
            let mut tables = case.resize.clone().unwrap().0;
            let len = tables.len();
            match number % 4 {
                1 => tables[32..].fill(0xFF),
                2 => tables[32..].fill_with(|| random.next() as u8),
                3 => tables[32 + random.below(len as u64 - 32) as usize] ^= 0x80,
                _ => {}
            }
            tables
        })
        .collect();
    let outcomes = gpu.decode(&cases, |number, data| {
        let tables = &hurt[number];
        let at = data.len() - tables.len();
        data[at..].copy_from_slice(tables);
    });
    for (number, (case, (tables, outcome))) in
        (cases.iter_mut().zip(hurt.into_iter().zip(outcomes))).enumerate()
    {
        case.resize.as_mut().unwrap().0 = tables;
        assert!(
            outcome == Outcome::Pixels(case.expected().unwrap()),
            "case {number}"
        );
    }
}

/// Two parts are under way at most, and come back in order.
#[test]
fn a_part_is_put_together_while_another_is_decoded() {
    let Some(mut gpu) = Gpu::open(LIMITS) else {
        return;
    };
    let mut random = Random::new(9);
    let cases: Vec<Case> = (0..3)
        .map(|number| Case::whole(some_jpeg(128 + number, &mut random), 8))
        .collect();
    let mut rows = Vec::new();
    let mut end = 0;
    for case in &cases {
        let at = end;
        let room = &mut gpu.rows.bytes_mut()[at..];
        let len = write_row(&case.job(), SimdForm::Plain, room).unwrap();
        let read = CodedPicture::read(&room[..len]).unwrap();
        end += len;
        rows.push((at, read));
    }
    let mut pictures = Vec::new();
    for (number, (at, read)) in rows.iter().enumerate() {
        assert_eq!(gpu.add(read, *at), number < 2);
        if number < 2 {
            // SAFETY: pinned, with the row of the part, and unchanged until the lane is dropped.
            pictures.extend(unsafe { gpu.lane.decode().unwrap() });
            gpu.lane.end_part().unwrap();
        }
    }
    let first = gpu.lane.wait().unwrap().unwrap();
    let second = gpu.lane.wait().unwrap().unwrap();
    assert!(gpu.lane.wait().unwrap().is_none());
    assert_eq!((first, second), (vec![0], vec![0]));
    let window = cases[1].window;
    let pixels = gpu
        .lane
        .read_back(&pictures[1], (window.w, window.h))
        .unwrap();
    assert!(Some(pixels) == cases[1].expected());
}

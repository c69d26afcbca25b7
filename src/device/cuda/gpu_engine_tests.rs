//! The engines of a real device against the CPU's decoder. Without a device as `gpu_tests`;
//! a device that has no engines, or no nvJPEG, counts as none.
//!
//! What was measured stands on stdout (`--no-capture`).

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;
use std::time::Instant;

use super::context::{Context, Stream};
use super::engines::{Coded, Engines, Failure, decode_all};
use super::gpu_tests::context;
use super::memory::DeviceBuffer;
use super::scene::{Coming, Scene};
use super::{CropStage, EngineThread};
use crate::device::Upload;
use crate::device::frames::{Frame, Picture};
use crate::device::launch::{ELSEWHERE, KernelEmission, KernelRow};
use crate::device::reference::CpuStage;
use crate::device::reference::apart::apart;
use crate::device::reference::handed::handed_file;
use crate::device::shape::{CropShape, EngineShape, LANES, RowPlaces, SUBMISSION};
use crate::picture::Limits;
use crate::picture::jpeg::fixtures::{self, Sampling};
use crate::picture::jpeg::{JpegDecoder, Region, Scale, Scratch, plain, read_header};
use crate::pixels::resample::Resampler;
use crate::recipe::{
    Cast, Decode, Dtype, RandomHorizontalFlip, RandomResizedCrop, Recipe, SampleProgram,
};
use crate::sys::cpu::CpuLevel;

const LARGEST: (u32, u32) = (1024, 1024);
/// Of the kernel, in levels.
const TOLERANCE: f64 = 2e-3;

/// A device with engines, and a stream.
fn device() -> Option<(Arc<Context>, Stream, Engines)> {
    let context = context()?;
    let began = Instant::now();
    match Engines::open(&context, LANES, LARGEST) {
        Ok(engines) => {
            println!(
                "{}, opened in {:.3} s",
                engines.info(),
                began.elapsed().as_secs_f64()
            );
            let stream = Stream::new(&context).unwrap();
            Some((context, stream, engines))
        }
        Err(why) => {
            assert!(
                env::var_os("FEATHERLOAD_REQUIRE_GPU").is_none_or(|v| v != "1"),
                "FEATHERLOAD_REQUIRE_GPU=1, and: {why}"
            );
            println!("SKIP: no engines: {why}");
            None
        }
    }
}

/// Frames for pictures of these sizes, side by side.
fn frames_of(sizes: &[(u32, u32)]) -> Vec<Frame> {
    let mut at = 0;
    let frame = |size: &(u32, u32)| {
        let frame = Frame::new(at, size.0);
        at += Frame::bytes(*size);
        frame
    };
    sizes.iter().map(frame).collect()
}

/// A plain file, and its whole picture by the CPU's decoder.
#[derive(Clone)]
struct File {
    bytes: Vec<u8>,
    size: (u32, u32),
    /// Made or a photo, and its sampling.
    kind: String,
    pixels: Vec<u8>,
}

impl File {
    /// None when it is not plain.
    fn of(what: &str, bytes: &[u8]) -> Option<Self> {
        let mut to = vec![0; bytes.len()];
        let len = plain::write(bytes, LARGEST, &mut to).ok()?;
        to.truncate(len);
        let header = read_header(&to).unwrap();
        let size = (header.width, header.height);
        let mut scratch = Scratch::default();
        let decoded = JpegDecoder::new(&Limits::default())
            .decode_region(&to, &header, Scale::Full, Region::whole(size), &mut scratch)
            .unwrap();
        scratch.rgb.truncate(decoded.stride * size.1 as usize);
        Some(Self {
            bytes: to,
            size,
            kind: format!("{what} {:?}", header.sampling()[0]),
            pixels: scratch.rgb,
        })
    }

    fn coded(&self, frame: Frame) -> Coded<'_> {
        Coded {
            bytes: &self.bytes,
            size: self.size,
            frame,
        }
    }

    /// How far each level of the frame is from the CPU's.
    fn apart<'a>(&'a self, frame: Frame, memory: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
        let width = 3 * self.size.0 as usize;
        let lines = self.pixels.chunks_exact(width).zip(0u32..);
        lines.flat_map(move |(line, y)| {
            let there = &memory[frame.pixel(0, y)..][..width];
            line.iter().zip(there).map(|(a, b)| a.abs_diff(*b))
        })
    }
}

/// Pictures of all plain samplings and of many sizes, and the photos that are there.
fn files() -> Vec<File> {
    let kinds = [
        Sampling::S444,
        Sampling::S422,
        Sampling::S420,
        Sampling::S440,
    ];
    let made = (0u32..48).map(|i| {
        let (w, h) = (64 + 19 * i, 64 + (137 * i) % 900);
        fixtures::encode(w, h, kinds[i as usize % 4], 85, false, (i % 3) as i32 * 4)
    });
    let photos = fixtures::photos().into_iter();
    let made = made.filter_map(|bytes| File::of("made", &bytes));
    made.chain(photos.filter_map(|(_, bytes)| File::of("photo", &bytes)))
        .collect()
}

/// Decodes files in batches of `most`, and shows each batch with its frames and the arena
/// before and behind.
fn decode(
    (context, stream, engines): &mut (Arc<Context>, Stream, Engines),
    files: &[File],
    most: usize,
    mut see: impl FnMut(&[File], &[Frame], &[u8], &[u8]),
) {
    let largest = files.iter().map(|f| Frame::bytes(f.size)).max().unwrap();
    let memory = DeviceBuffer::new(context, most * largest, "frames").unwrap();
    let (mut before, mut behind) = (vec![0; memory.len()], vec![0; memory.len()]);
    for batch in files.chunks(most) {
        let sizes: Vec<_> = batch.iter().map(|f| f.size).collect();
        let frames = frames_of(&sizes);
        let coded: Vec<_> = batch
            .iter()
            .zip(&frames)
            .map(|(f, at)| f.coded(*at))
            .collect();
        stream.download(&mut before, &memory).unwrap();
        // SAFETY: nothing else uses the memory.
        let done = unsafe { engines.decode(0, &coded, &memory, stream) };
        done.unwrap();
        stream.download(&mut behind, &memory).unwrap();
        see(batch, &frames, &before, &behind);
    }
}

/// How many levels are how far apart.
struct Apart(Vec<u64>);

impl Apart {
    fn count(&mut self, levels: impl Iterator<Item = u8>) {
        levels.for_each(|d| self.0[usize::from(d)] += 1);
    }

    fn mean(&self) -> f64 {
        let all: u64 = self.0.iter().sum();
        let sum: u64 = (0..).zip(&self.0).map(|(d, n)| d * n).sum();
        sum as f64 / all as f64
    }

    fn largest(&self) -> usize {
        self.0.iter().rposition(|n| *n > 0).unwrap_or(0)
    }

    /// What so much of all is within.
    fn within(&self, part: f64) -> usize {
        let all: u64 = self.0.iter().sum();
        let mut seen = 0;
        let at = self.0.iter().position(|n| {
            seen += n;
            seen as f64 >= part * all as f64
        });
        at.unwrap_or(255)
    }
}

/// The whole picture without interpolation of colours: each stands for all its pixels.
fn repeated(file: &File) -> Vec<u8> {
    use turbojpeg_sys as tj;

    let mut pixels = vec![0; file.pixels.len()];
    let (width, height) = file.size;
    // SAFETY: the handle is made and destroyed here; the file is read for its length, and the
    // picture has the size of its header, in tight lines of three bytes a pixel.
    let done = unsafe {
        let handle = tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS as i32);
        tj::tj3Set(handle, tj::TJPARAM_TJPARAM_FASTUPSAMPLE as i32, 1);
        let done = tj::tj3Decompress8(
            handle,
            file.bytes.as_ptr(),
            file.bytes.len() as _,
            pixels.as_mut_ptr(),
            3 * width as i32,
            tj::TJPF_TJPF_RGB,
        );
        tj::tj3Destroy(handle);
        done
    };
    assert_eq!(done, 0, "{width} x {height}");
    pixels
}

/// Engines repeat colours where libjpeg-turbo interpolates them; all else is the same.
#[test]
fn pictures_are_those_of_the_cpu_without_interpolation_and_nothing_else_is_written() {
    let Some(mut device) = device() else { return };
    let files = files();
    let none = || Apart(vec![0; 256]);
    let mut all: BTreeMap<String, (Apart, Apart)> = BTreeMap::new();
    decode(&mut device, &files, 32, |batch, frames, before, behind| {
        let mut outside = vec![true; behind.len()];
        for (file, frame) in batch.iter().zip(frames) {
            for y in 0..file.size.1 {
                outside[frame.pixel(0, y)..][..3 * file.size.0 as usize].fill(false);
            }
            let (usual, plain) = all
                .entry(file.kind.clone())
                .or_insert_with(|| (none(), none()));
            usual.count(file.apart(*frame, behind));
            let repeated = File {
                pixels: repeated(file),
                ..file.clone()
            };
            plain.count(repeated.apart(*frame, behind));
        }
        let written = (outside.iter().zip(before.iter().zip(behind)))
            .filter(|(outside, (a, b))| **outside && a != b)
            .count();
        assert_eq!(written, 0, "bytes outside of pictures");
    });
    for (kind, (usual, plain)) in all {
        for (what, apart) in [("interpolated", &usual), ("repeated", &plain)] {
            println!(
                "{kind}, {what}: mean {:.3}, 99.9% within {}, largest {}",
                apart.mean(),
                apart.within(0.999),
                apart.largest()
            );
        }
        assert!(plain.largest() <= 2, "{kind}: {}", plain.largest());
    }
}

/// Least and most bytes that are free behind submissions of so many pictures, all of other
/// sizes.
fn free_behind() -> Option<Vec<(usize, u64, u64)>> {
    let mut device = device()?;
    let context = device.0.clone();
    let mut files = files();
    files.sort_by_key(|f| u64::from(f.size.0) * u64::from(f.size.1));
    let spans = [1, 7, 64, 16].map(|most| {
        let (mut least, mut largest) = (u64::MAX, 0);
        decode(&mut device, &files, most, |_, _, _, _| {
            let free = context.free_bytes().unwrap();
            (least, largest) = (least.min(free), largest.max(free));
        });
        println!(
            "{most} pictures: {least} bytes free, {} more at times",
            largest - least
        );
        (most, least, largest)
    });
    Some(spans.to_vec())
}

#[test]
fn memory_stays_to_the_byte() {
    let Some(spans) = free_behind() else { return };
    for (most, least, largest) in spans {
        assert_eq!(least, largest, "{most}");
    }
}

/// Handle, states, streams, frames and tables, as the thread has them.
#[test]
fn memory_of_all_lanes_is_within_the_plan() {
    let Some((context, stream, engines)) = device() else {
        return;
    };
    drop((engines, stream));
    for side in [64, 512, 1024, 2048, 4096] {
        let shape = EngineShape {
            largest: (side, side),
            rows: 256,
            batch_tables: 256 * 8192,
            row_tables: 8192,
        };
        let before = context.free_bytes().unwrap();
        let limit = std::time::Duration::from_secs(20);
        let began = Instant::now();
        let mut thread = EngineThread::start(context.ordinal(), shape, limit).unwrap();
        thread.opened().unwrap();
        let took = began.elapsed().as_secs_f64();
        let (taken, planned) = (before - context.free_bytes().unwrap(), shape.device_bytes());
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!(
            "{side} x {side}: {:.1} MiB taken, {:.1} planned, opened in {took:.3} s",
            mib(taken),
            mib(planned)
        );
        assert!(taken <= planned, "{side}: {taken} of {planned}");
    }
}

#[test]
fn what_is_no_jpeg_is_found_and_the_others_are_decoded() {
    let Some((context, stream, mut engines)) = device() else {
        return;
    };
    let files = files();
    let files = &files[..16];
    let sizes: Vec<_> = files.iter().map(|f| f.size).collect();
    let memory = DeviceBuffer::new(&context, 64 << 20, "frames").unwrap();
    let frames = frames_of(&sizes);
    let text = b"no JPEG at all, only text".repeat(9);
    for bad in [vec![5], vec![0, 15]] {
        let coded: Vec<_> = (files.iter().zip(&frames).enumerate())
            .map(|(i, (file, frame))| match bad.contains(&i) {
                true => Coded {
                    bytes: &text,
                    ..file.coded(*frame)
                },
                false => file.coded(*frame),
            })
            .collect();
        let began = Instant::now();
        let found = decode_all(&coded, &mut 0, &mut |part| {
            // SAFETY: nothing else uses the memory.
            let done = unsafe { engines.decode(0, part, &memory, &stream) };
            stream.record().unwrap().wait().unwrap();
            if let Err(Failure::Pictures(why) | Failure::Engines(why)) = &done {
                println!("{} pictures: {why}", part.len());
            }
            done
        });
        println!("found in {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
        let found: Vec<usize> = found.unwrap().into_iter().map(|(at, _)| at).collect();
        assert_eq!(found, bad);
        let mut there = vec![0; memory.len()];
        stream.download(&mut there, &memory).unwrap();
        for (i, (file, frame)) in files.iter().zip(&frames).enumerate() {
            let repeated = File {
                pixels: repeated(file),
                ..file.clone()
            };
            let far = repeated.apart(*frame, &there).max();
            assert!(bad.contains(&i) || far <= Some(2), "picture {i}: {far:?}");
        }
    }
}

/// What a submission costs, and what it costs that batches have other sizes each time.
#[test]
fn submissions_of_changing_sizes_are_timed() {
    let Some((context, stream, mut engines)) = device() else {
        return;
    };
    let bytes = fixtures::jpeg(500, 375, Sampling::S420);
    let file = File::of("made", &bytes).unwrap();
    let memory = DeviceBuffer::new(&context, 64 * Frame::bytes(file.size), "frames").unwrap();
    let frames = frames_of(&[file.size; SUBMISSION]);
    let coded: Vec<_> = frames.iter().map(|at| file.coded(*at)).collect();
    let mut run = |sizes: &[usize]| {
        let mut pictures = 0;
        let began = Instant::now();
        for round in 0..50 {
            let count = sizes[round % sizes.len()];
            // SAFETY: nothing else uses the memory.
            unsafe { engines.decode(0, &coded[..count], &memory, &stream) }.unwrap();
            stream.record().unwrap().wait().unwrap();
            pictures += count;
        }
        pictures as f64 / began.elapsed().as_secs_f64()
    };
    for sizes in [&[64][..], &[64, 63], &[32], &[16], &[8], &[1]] {
        run(sizes);
        let rate = run(sizes);
        println!("batches of {sizes:?}: {rate:.0} images/s by one lane");
        assert!(rate > 10.0);
    }
}

#[test]
fn sides_below_the_least_are_tried() {
    let Some((context, stream, mut engines)) = device() else {
        return;
    };
    let memory = DeviceBuffer::new(&context, 4 << 20, "frames").unwrap();
    for side in [8, 16, 17, 32, 48, 63, 64] {
        let bytes = fixtures::jpeg(side, side + 1, Sampling::S420);
        let size = (side, side + 1);
        let frame = frames_of(&[size])[0];
        let coded = Coded {
            bytes: &bytes,
            size,
            frame,
        };
        // SAFETY: nothing else uses the memory.
        let done = unsafe { engines.decode(0, &[coded], &memory, &stream) };
        stream.record().unwrap().wait().unwrap();
        println!("{side} x {}: {done:?}", side + 1);
        assert!(done.is_ok() || side < plain::LEAST_SIDE);
    }
}

/// The same kernel, of frames: what it makes of the engines' own pixels is what the CPU stage
/// makes of them.
#[test]
fn rows_of_frames_are_those_of_the_cpu_stage() {
    let Some((context, stream, mut engines)) = device() else {
        return;
    };
    const ROWS: usize = 12;
    const SIDE: u32 = 96;
    let recipe = Recipe::new("frames")
        .then(Decode::default())
        .then(RandomResizedCrop::new(SIDE))
        .then(RandomHorizontalFlip::default())
        .then(Cast { dtype: Dtype::F32 });
    let program = SampleProgram::compile(&recipe).unwrap();
    let program = program.with_crops().unwrap();
    let room = program.crops.unwrap().room((SIDE, SIDE));
    let mut rows = Vec::new();
    for position in 0u64.. {
        let (w, h) = (
            120 + 7 * position as u32 % 90,
            200 - 11 * position as u32 % 80,
        );
        let file = fixtures::turned(fixtures::jpeg(w, h, Sampling::S420), position as u8 % 8 + 1);
        let limits = Limits::default();
        let handed = handed_file(&program, &file, position, LARGEST, &limits);
        rows.extend(handed.unwrap());
        if rows.len() == ROWS {
            break;
        }
    }
    let emission = KernelEmission::new(&program.emission, (SIDE, SIDE));
    let sizes: Vec<(u32, u32)> = rows.iter().map(|(_, h, _)| h.picture.into()).collect();
    let places = RowPlaces {
        capacity: room.row_bytes(),
        tables: room.pixels_at(),
    };
    let engine_shape = EngineShape {
        largest: LARGEST,
        rows: ROWS,
        batch_tables: ROWS * places.tables,
        row_tables: places.tables,
    };
    let shape = CropShape {
        rows: ROWS,
        source_bytes: ROWS * room.row_bytes(),
        outputs: 2,
        output_bytes: ROWS * emission.elements() * 4,
        dtype: Dtype::F32,
        copies: true,
        engines: Some(engine_shape),
    };
    let file = |n: usize| {
        let begin = n * room.row_bytes() + room.pixels_at();
        begin..begin + rows[n].1.coded as usize
    };
    let bytes: Vec<u8> = rows.iter().flat_map(|(row, ..)| row.clone()).collect();
    // What engines make of the pictures, which is always the same.
    let frames = frames_of(&sizes);
    let arena = sizes.iter().map(|size| Frame::bytes(*size)).sum();
    let buffer = DeviceBuffer::new(&context, arena, "frames").unwrap();
    let coded: Vec<_> = (0..ROWS)
        .map(|n| Coded {
            bytes: &bytes[file(n)],
            size: sizes[n],
            frame: frames[n],
        })
        .collect();
    // SAFETY: nothing else uses the memory.
    unsafe { engines.decode(0, &coded, &buffer, &stream) }.unwrap();
    let mut memory = vec![0; arena];
    stream.download(&mut memory, &buffer).unwrap();
    drop(engines);

    let mut scene = Scene::new(2, ROWS as u32, bytes.len());
    let mut stage = CropStage::new(&context, scene.ring(), shape).unwrap();
    let limit = std::time::Duration::from_secs(20);
    let mut thread = EngineThread::start(context.ordinal(), engine_shape, limit).unwrap();
    println!("{}", thread.found().unwrap());
    thread.opened().unwrap();
    let elsewhere = [KernelRow {
        flags: ELSEWHERE,
        ..KernelRow::default()
    }; ROWS];
    for upload in [Upload::InPlace, Upload::Copied] {
        let target = stage.reserve(ROWS, &emission).unwrap();
        let pictures = (0..ROWS).map(|n| Picture {
            row: n as u32,
            at: file(n).start,
            len: file(n).len(),
            size: sizes[n],
            corner: rows[n].1.corner,
            kernel: KernelRow::of(&rows[n].1, n * room.row_bytes(), room),
        });
        let laid = (places, emission, emission.elements() * 4);
        let files = Coming::all(scene.held(&bytes), ROWS as u32, pictures.collect());
        thread.open(Arc::new(files), target.clone(), laid).unwrap();
        let made = thread.next_done(limit).unwrap().unwrap();
        assert_eq!((made.rows.len(), made.culprits.len()), (ROWS, 0));
        let held = scene.held(&bytes);
        stage
            .begin(held, &elsewhere, places, &emission, upload, target)
            .unwrap();
        let made = stage.finish().unwrap().to_host().unwrap();
        for (n, made) in made.chunks_exact(emission.elements() * 4).enumerate() {
            let (row, header, _) = &rows[n];
            let lines = crate::cut::crop::CropHeader {
                width: frames[n].stride(),
                ..*header
            };
            let first = frames[n].pixel(header.corner[0], header.corner[1]);
            let mut whole = row[..room.pixels_at()].to_vec();
            let count = 3 * lines.width as usize * lines.height as usize;
            whole.extend(memory[first..].iter().take(count));
            whole.resize(room.pixels_at() + count, 0);
            let resampler = Resampler::new(CpuLevel::detect().unwrap());
            let wanted = CpuStage::new(program.emission, resampler).row(&whole, &lines, room);
            let floats = |bytes: &[u8]| -> Vec<f32> {
                let all = bytes.as_chunks().0.iter();
                all.map(|b| f32::from_ne_bytes(*b)).collect()
            };
            let worst = apart(&floats(made), &floats(&wanted), &program.emission, None);
            assert!(worst <= TOLERANCE, "row {n}, {upload}: {worst} levels off");
        }
        assert!(stage.wait_one().unwrap());
    }
}

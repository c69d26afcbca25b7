//! The kernel and the stages on a real device, against plain arithmetic. Without a
//! device these tests say `SKIP` and pass; with `FEATHERLOAD_REQUIRE_GPU=1` they fail.

use std::env;
use std::sync::Arc;

use crate::decode_plan::crop_row::{CropStep, FLIP_X, FLIP_Y, TRANSPOSE};
use crate::device::UploadMode;
use crate::device::crop_launch::{KernelEmission, KernelRow, MASKED};
use crate::device::cuda::tests::ring::TestRing;
use crate::device::cuda::{CropStage, CudaContext, RowsStage};
use crate::device::probe;
use crate::device::stage_shapes::{CropShape, RowPlaces};
use crate::pixels::rounding::{numbers, step};
use crate::recipe::weights::{AxisGeometry, ResizeFilter, WeightTable};
use crate::recipe::{ColorOrder, DataType, MemoryLayout, OutputFormat};

/// What a level may be off before it is cast.
const TOLERANCE: f64 = 2e-3;
const BRIGHTNESS: u32 = 1;
const ROWS: usize = 24;

pub(super) fn context() -> Option<Arc<CudaContext>> {
    if let Some(missing) = probe().missing {
        assert!(
            env::var_os("FEATHERLOAD_REQUIRE_GPU").is_none_or(|v| v != "1"),
            "FEATHERLOAD_REQUIRE_GPU=1, and: {missing}"
        );
        println!("SKIP: no CUDA device: {missing}");
        return None;
    }
    Some(CudaContext::open(0).unwrap())
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    fn unit(&mut self) -> f64 {
        (self.next() % 10_000) as f64 / 10_000.0
    }
}

/// A crop, and how it becomes a row.
struct Crop {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
    across: WeightTable,
    down: WeightTable,
    /// As it is stored.
    out: (usize, usize),
    flags: u32,
    brightness: Option<f32>,
}

impl Crop {
    /// One of all shapes, for rows of `size`, height and width.
    fn random(r: &mut Random, n: usize, size: (usize, usize)) -> Self {
        let side = |r: &mut Random| match r.below(6) {
            0 => 1,
            1 => 2 + r.below(3),
            2 => 150 + r.below(100),
            _ => 5 + r.below(60),
        };
        let (width, height) = match n {
            0 => (1, 1),
            _ => (side(r), side(r)),
        };
        let flags = [FLIP_X, FLIP_Y, TRANSPOSE]
            .into_iter()
            .filter(|_| r.below(2) == 0)
            .sum::<u32>();
        let flags = if n % 9 == 8 { flags | MASKED } else { flags };
        let out = match flags & TRANSPOSE {
            0 => size,
            _ => (size.1, size.0),
        };
        let filter = [
            ResizeFilter::Nearest,
            ResizeFilter::Area,
            ResizeFilter::Triangle,
            ResizeFilter::Cubic,
            ResizeFilter::SharpCubic,
            ResizeFilter::Lanczos3,
        ][r.below(6)];
        let antialias = r.below(3) > 0;
        let table = |r: &mut Random, from: usize, to: usize| {
            let low = r.unit() * 0.3 * from as f64;
            let high = from as f64 - r.unit() * 0.3 * from as f64;
            let mut table = WeightTable::default();
            table.prepare(AxisGeometry {
                in_size: from as u32,
                in0: low,
                in1: high,
                origin: 0,
                full_size: to as u32,
                first: 0,
                out_size: to as u32,
                filter,
                is_down: false,
                antialias,
            });
            table
        };
        Self {
            across: table(r, width, out.1),
            down: table(r, height, out.0),
            pixels: (0..width * height * 3).map(|_| r.next() as u8).collect(),
            width,
            height,
            out,
            flags,
            brightness: (r.below(3) == 0).then(|| 0.5 + r.unit() as f32),
        }
    }

    fn is_masked(&self) -> bool {
        self.flags & MASKED != 0
    }

    fn tables(&self) -> Vec<u8> {
        let mut bytes = table_bytes(&self.across, self.out.1);
        bytes.extend(table_bytes(&self.down, self.out.0));
        bytes
    }

    /// A level of the row as it is looked at, in f64.
    fn level(&self, channel: usize, y: usize, x: usize) -> f64 {
        let (mut sx, mut sy) = match self.flags & TRANSPOSE {
            0 => (x, y),
            _ => (y, x),
        };
        if self.flags & FLIP_X != 0 {
            sx = self.out.1 - 1 - sx;
        }
        if self.flags & FLIP_Y != 0 {
            sy = self.out.0 - 1 - sy;
        }
        let (left, across) = self.across.row(sx);
        let (top, down) = self.down.row(sy);
        let mut sum = 0.0;
        for (j, wy) in down.iter().enumerate() {
            for (i, wx) in across.iter().enumerate() {
                let pixel = (top + j) * self.width + left + i;
                sum += wy * wx * f64::from(self.pixels[3 * pixel + channel]);
            }
        }
        let level = sum.clamp(0.0, 255.0);
        match self.brightness {
            Some(by) => (level * f64::from(by)).clamp(0.0, 255.0),
            None => level,
        }
    }
}

fn taps(table: &WeightTable, outputs: usize) -> usize {
    (0..outputs)
        .map(|o| table.row(o).1.len())
        .max()
        .unwrap()
        .max(1)
}

fn table_bytes(table: &WeightTable, outputs: usize) -> Vec<u8> {
    let starts = (0..outputs).flat_map(|o| (table.row(o).0 as u32).to_le_bytes());
    let weights = (0..taps(table, outputs)).flat_map(|tap| {
        (0..outputs).flat_map(move |o| {
            let weight = table.row(o).1.get(tap).copied().unwrap_or(0.0);
            (weight as f32).to_le_bytes()
        })
    });
    starts.chain(weights).collect()
}

/// A slot of crops: bytes of a row, of its tables, the slot, the rows.
struct Slot {
    capacity: usize,
    tables: usize,
    bytes: Vec<u8>,
    rows: Vec<KernelRow>,
}

impl Slot {
    fn places(&self) -> RowPlaces {
        RowPlaces {
            capacity: self.capacity,
            tables: self.tables,
            pixels_end: self.capacity,
        }
    }

    fn of(crops: &[Crop], r: &mut Random) -> Self {
        let tables: Vec<Vec<u8>> = crops.iter().map(Crop::tables).collect();
        let most_tables = tables.iter().map(Vec::len).max().unwrap();
        let tables_bytes = most_tables.next_multiple_of(16);
        let most = crops.iter().map(|c| c.pixels.len()).max().unwrap();
        let capacity = (tables_bytes + 16 + most).next_multiple_of(16) + 48;
        let mut bytes = vec![0x5a; crops.len() * capacity];
        let mut rows = Vec::new();
        for (i, (crop, table)) in crops.iter().zip(&tables).enumerate() {
            let begin = i * capacity;
            // Anywhere behind the tables, to the byte.
            let pixels = begin + tables_bytes + r.below(16);
            bytes[begin..begin + table.len()].copy_from_slice(table);
            bytes[pixels..pixels + crop.pixels.len()].copy_from_slice(&crop.pixels);
            let mut row = KernelRow {
                pixels: pixels as u64,
                tables: begin as u64,
                width: crop.width as u32,
                height: crop.height as u32,
                across_taps: taps(&crop.across, crop.out.1) as u32,
                down_taps: taps(&crop.down, crop.out.0) as u32,
                out_width: crop.out.1 as u32,
                out_height: crop.out.0 as u32,
                flags: crop.flags,
                ..KernelRow::default()
            };
            if let Some(amount) = crop.brightness {
                row.steps = 1;
                row.step[0] = CropStep {
                    kind: BRIGHTNESS,
                    amount,
                };
            }
            rows.push(row);
        }
        Self {
            capacity,
            tables: tables_bytes,
            bytes,
            rows,
        }
    }
}

fn emission(dtype: DataType, layout: MemoryLayout, order: ColorOrder) -> OutputFormat {
    let whole = dtype == DataType::U8;
    OutputFormat {
        zero_channels: 0,
        patches: None,
        unit: if whole { 1.0 } else { 255.0 },
        mean: if whole {
            [0.0; 3]
        } else {
            [0.485, 0.456, 0.406]
        },
        std: if whole {
            [1.0; 3]
        } else {
            [0.229, 0.224, 0.225]
        },
        dtype,
        layout,
        order,
    }
}

/// How far an element may be from `want`, the element before its cast.
fn allowed(want: f64, dtype: DataType, e: &OutputFormat, channel: usize) -> f64 {
    let before = TOLERANCE / f64::from(e.unit) / f64::from(e.std[channel]);
    match dtype {
        DataType::U8 => 0.5 + TOLERANCE,
        DataType::F16 | DataType::Bf16 => before + step(want, dtype),
        DataType::F32 => before + 1e-6 * want.abs().max(1.0),
    }
}

fn is_as_computed(got: &[u8], crops: &[Crop], size: (usize, usize), e: &OutputFormat, what: &str) {
    let channels = e.channels();
    let got = numbers(got, e.dtype);
    assert_eq!(got.len(), crops.len() * size.0 * size.1 * channels);
    let mut worst = 0.0f64;
    for (n, crop) in crops.iter().enumerate() {
        for y in 0..size.0 {
            for x in 0..size.1 {
                for c in 0..channels {
                    let at = match e.layout {
                        MemoryLayout::Nchw => ((n * channels + c) * size.0 + y) * size.1 + x,
                        MemoryLayout::Nhwc => ((n * size.0 + y) * size.1 + x) * channels + c,
                    };
                    if crop.is_masked() {
                        assert_eq!(got[at].to_bits(), 0, "{what}: masked row {n}");
                        continue;
                    }
                    let source = match e.order {
                        ColorOrder::Bgr => 2 - c,
                        _ => c,
                    };
                    let level = crop.level(source, y, x) / f64::from(e.unit);
                    let want = (level - f64::from(e.mean[c])) / f64::from(e.std[c]);
                    let off = (got[at] - want).abs() / allowed(want, e.dtype, e, c);
                    worst = worst.max(off);
                    assert!(
                        off <= 1.0,
                        "{what}: row {n} ({}x{} to {:?}, flags {}), y {y} x {x} c {c}: {} and not {want}",
                        crop.width,
                        crop.height,
                        crop.out,
                        crop.flags,
                        got[at]
                    );
                }
            }
        }
    }
    println!("{what}: at worst {:.0} % of what is allowed", worst * 100.0);
}

#[test]
fn the_kernel_makes_what_plain_arithmetic_makes() {
    let Some(context) = context() else { return };
    let mut r = Random(0x9e37_79b9_7f4a_7c15);
    let orders = [ColorOrder::Rgb, ColorOrder::Bgr, ColorOrder::Grey];
    // One smaller than a tile, one over its edges, one of a single pixel.
    let sizes = [(23, 37), (70, 131), (1, 1)];
    let mut turn = 0;
    for dtype in DataType::ALL {
        for layout in [MemoryLayout::Nchw, MemoryLayout::Nhwc] {
            for size in sizes {
                let e = emission(dtype, layout, orders[turn % 3]);
                turn += 1;
                let crops: Vec<Crop> = (0..ROWS).map(|n| Crop::random(&mut r, n, size)).collect();
                let slot = Slot::of(&crops, &mut r);
                let kernel_emission = KernelEmission::new(&e, (size.0 as u32, size.1 as u32));
                let mut scene = TestRing::new(2, ROWS as u32, slot.bytes.len());
                let shape = CropShape {
                    rows: ROWS,
                    source_bytes: ROWS * slot.capacity,
                    outputs: 2,
                    output_bytes: ROWS * kernel_emission.elements() * dtype.size(),
                    dtype,
                    copies: true,
                    jpegs: None,
                };
                let mut stage = CropStage::new(&context, scene.ring(), shape).unwrap();
                for read in [UploadMode::InPlace, UploadMode::Copied] {
                    let delivered = scene.held_slot(&slot.bytes);
                    let rows = stage
                        .submit(
                            delivered,
                            &slot.rows,
                            slot.places(),
                            &kernel_emission,
                            read,
                            &[],
                        )
                        .unwrap();
                    let what = format!("{dtype} {} {:?} {size:?} {read:?}", layout.name(), e.order);
                    is_as_computed(&rows.to_host().unwrap(), &crops, size, &e, &what);
                }
            }
        }
    }
}

/// Slots are filled again as soon as they are free, and buffers are written again
/// behind a reader: whoever came too early would show.
#[test]
fn many_batches_through_few_slots_are_each_their_own() {
    let Some(context) = context() else { return };
    let size = (16, 16);
    let e = emission(DataType::F32, MemoryLayout::Nchw, ColorOrder::Rgb);
    let kernel_emission = KernelEmission::new(&e, (16, 16));
    let mut r = Random(88_172_645_463_325_252);
    let batches: Vec<Vec<Crop>> = (0..8)
        .map(|_| (0..ROWS).map(|n| Crop::random(&mut r, n, size)).collect())
        .collect();
    let slots: Vec<Slot> = batches.iter().map(|b| Slot::of(b, &mut r)).collect();
    for (read, (batch, slot)) in [UploadMode::InPlace, UploadMode::Copied]
        .into_iter()
        .cycle()
        .zip(batches.iter().zip(&slots))
    {
        let mut scene = TestRing::new(2, ROWS as u32, slot.bytes.len());
        let shape = CropShape {
            rows: ROWS,
            source_bytes: ROWS * slot.capacity,
            outputs: 1,
            output_bytes: ROWS * kernel_emission.elements() * 4,
            dtype: DataType::F32,
            copies: true,
            jpegs: None,
        };
        let mut stage = CropStage::new(&context, scene.ring(), shape).unwrap();
        for turn in 0..50 {
            if !scene.has_free() {
                assert!(stage.wait_one().unwrap());
            }
            let rows = stage
                .submit(
                    scene.held_slot(&slot.bytes),
                    &slot.rows,
                    slot.places(),
                    &kernel_emission,
                    read,
                    &[],
                )
                .unwrap();
            // SAFETY: a default stream lives as long as the process.
            unsafe { rows.make_wait(2).unwrap() };
            if turn % 10 == 9 {
                is_as_computed(&rows.to_host().unwrap(), batch, size, &e, "a turn");
            }
        }
    }
}

#[test]
fn finished_rows_arrive_as_they_are() {
    let Some(context) = context() else { return };
    println!(
        "{}: {} bytes free at the start, {} now",
        context.device().name,
        context.free_bytes_at_start(),
        context.free_bytes().unwrap()
    );
    let mut r = Random(7);
    let bytes: Vec<u8> = (0..3_000_001).map(|_| r.next() as u8).collect();
    let mut scene = TestRing::new(2, 4, bytes.len());
    let mut stage = RowsStage::new(&context, scene.ring(), 3, bytes.len()).unwrap();
    let mut delivered = Vec::new();
    for len in [bytes.len(), 1, 2_000_003] {
        if !scene.has_free() {
            assert!(stage.wait_one().unwrap());
        }
        let rows = stage
            .submit_rows(scene.held_slot(&bytes), len, &[])
            .unwrap();
        delivered.push((rows, len));
    }
    // Behind the stage's end.
    drop(stage);
    drop(scene);
    for (rows, len) in delivered {
        assert_eq!(rows.to_host().unwrap(), bytes[..len]);
    }
}

//! The CPU ops of a worker: the resize of RGB8 against fast_image_resize,
//! interleaved in one process so that the machine's noise falls on both, and
//! the emission. Prints the smallest times and the median of the ratios; the
//! box moves a little in each call, so that weights are computed again, as for
//! random crops.
//!
//! `cargo bench --bench resample --features internals`

use std::hint::black_box;
use std::time::Instant;

use fast_image_resize as fir;
use featherload::bench_support::{
    CpuLevel, FractionalBox, ImageResampler, OutputFormat, PixelPlacement, PixelSource, PixelView,
    ResizeAxes, ResizeFilter, ResizeTarget, RowEmitter,
};
use featherload::recipe::ColorOrder;
use featherload::{DataType, MemoryLayout};

const ROUNDS: usize = 61;

fn main() {
    println!("| source box -> output | level | ours us | FIR us | FIR / ours |");
    println!("|---|---|---|---|---|");
    // Source, box, output, each width x height.
    let shapes = [
        ((500, 375), (341.0, 341.0), (224, 224)),
        ((500, 375), (300.0, 280.0), (224, 224)),
        ((400, 300), (226.0, 230.0), (224, 224)),
        ((500, 375), (440.0, 360.0), (224, 224)),
        ((250, 190), (120.0, 100.0), (224, 224)),
        ((300, 225), (60.0, 75.0), (224, 224)),
        ((640, 640), (600.0, 580.0), (224, 224)),
        ((1920, 1080), (1920.0, 1080.0), (455, 256)),
        ((1080, 1920), (1080.0, 1920.0), (270, 480)),
    ];
    for (size, bx, out) in shapes {
        for level in CpuLevel::ALL {
            if level.is_supported() {
                compare(size, bx, out, level);
            }
        }
    }
    filters();
    floats();
    emit();
}

/// The other filters, on one shape of a random crop and one strong reduction.
fn filters() {
    println!();
    println!("| box -> output | filter | antialias | level | us |");
    println!("|---|---|---|---|---|");
    for (size, out) in [((341, 341), (224, 224)), ((1920, 1080), (455, 256))] {
        for (filter, antialias) in [
            (ResizeFilter::Nearest, false),
            (ResizeFilter::Area, false),
            (ResizeFilter::Triangle, true),
            (ResizeFilter::Triangle, false),
            (ResizeFilter::Cubic, true),
            (ResizeFilter::SharpCubic, false),
            (ResizeFilter::Lanczos3, true),
        ] {
            for level in CpuLevel::ALL.into_iter().filter(|l| l.is_supported()) {
                let target = ResizeTarget {
                    width: out.0,
                    height: out.1,
                    filter,
                    antialias,
                };
                let pixels = noise(size.0 * size.1 * 3);
                let mut dst = vec![0; out.0 * out.1 * 3];
                let mut ours = ImageResampler::new(level);
                let best = best_of(40, |call| {
                    let axes = ResizeAxes::new(size, shifted(size, call), target);
                    ours.resample(PixelSource::tight(&pixels, size.0, size.1), axes, &mut dst);
                    black_box(&dst);
                });
                println!(
                    "| {}x{} -> {}x{} | {filter:?} | {antialias} | {} | {best:.1} |",
                    size.0,
                    size.1,
                    out.0,
                    out.1,
                    level.name()
                );
            }
        }
    }
}

/// The resize of floats: one path, whatever the CPU.
fn floats() {
    println!();
    println!("| floats, box -> output | filter | us |");
    println!("|---|---|---|");
    for (size, out) in [((341, 341), (224, 224)), ((1920, 1080), (455, 256))] {
        for filter in [
            ResizeFilter::Nearest,
            ResizeFilter::Triangle,
            ResizeFilter::Cubic,
        ] {
            let target = ResizeTarget {
                width: out.0,
                height: out.1,
                filter,
                antialias: true,
            };
            let levels = noise(size.0 * size.1 * 3);
            let (levels, _) = levels.as_chunks::<3>();
            let pixels: Vec<[f32; 3]> = levels.iter().map(|p| p.map(f32::from)).collect();
            let mut dst = vec![[0.0; 3]; out.0 * out.1];
            let mut ours = ImageResampler::new(CpuLevel::Scalar);
            let best = best_of(20, |call| {
                let axes = ResizeAxes::new(size, shifted(size, call), target);
                ours.resample_floats(PixelView::tight(&pixels, size.0, size.1), axes, &mut dst);
                black_box(&dst);
            });
            println!(
                "| {}x{} -> {}x{} | {filter:?} | {best:.1} |",
                size.0, size.1, out.0, out.1
            );
        }
    }
}

/// A box that is another one in each call, so that weights are computed again.
fn shifted((width, height): (usize, usize), call: usize) -> FractionalBox {
    let shift = (call % 7) as f64 * 0.125;
    FractionalBox {
        x0: shift,
        y0: shift,
        x1: width as f64,
        y1: height as f64,
    }
}

/// The smallest time of so many calls, in microseconds.
fn best_of(calls: usize, mut call: impl FnMut(usize)) -> f64 {
    (0..calls).fold(f64::MAX, |best, i| {
        let begin = Instant::now();
        call(i);
        best.min(begin.elapsed().as_secs_f64() * 1e6)
    })
}

/// Normalise, cast and lay out one 224 x 224 image.
fn emit() {
    const SIDE: usize = 224;
    println!();
    println!("| emit 224x224 | layout | placement | us |");
    println!("|---|---|---|---|");
    let rgb = noise(SIDE * SIDE * 3);
    for dtype in DataType::ALL {
        for layout in [MemoryLayout::Nchw, MemoryLayout::Nhwc] {
            for (name, placement) in [
                ("upright", PixelPlacement::default()),
                (
                    "mirrored",
                    PixelPlacement {
                        flip_x: true,
                        ..PixelPlacement::default()
                    },
                ),
                (
                    "rotated",
                    PixelPlacement {
                        flip_y: true,
                        transpose: true,
                        ..PixelPlacement::default()
                    },
                ),
            ] {
                let emitter = RowEmitter::new(OutputFormat {
                    zero_channels: 0,
                    patches: None,
                    unit: 255.0,
                    mean: [0.485, 0.456, 0.406],
                    std: [0.229, 0.224, 0.225],
                    dtype,
                    layout,
                    order: ColorOrder::Rgb,
                });
                let mut out = vec![0; emitter.row_bytes(SIDE, SIDE)];
                let mut best = f64::MAX;
                for _ in 0..200 {
                    let begin = Instant::now();
                    emitter.emit(black_box(&rgb), SIDE, SIDE, placement, &mut out);
                    black_box(&out);
                    best = best.min(begin.elapsed().as_secs_f64() * 1e6);
                }
                println!("| {dtype:?} | {layout:?} | {name} | {best:.1} |");
            }
        }
    }
}

fn compare(
    (width, height): (usize, usize),
    (bw, bh): (f64, f64),
    (ow, oh): (usize, usize),
    level: CpuLevel,
) {
    let pixels = noise(width * height * 3);
    let mut dst = vec![0; ow * oh * 3];
    let mut ours = ImageResampler::new(level);
    let target = ResizeTarget {
        width: ow,
        height: oh,
        filter: ResizeFilter::Triangle,
        antialias: true,
    };

    let view =
        fir::images::ImageRef::new(width as u32, height as u32, &pixels, fir::PixelType::U8x3)
            .unwrap();
    let mut theirs = fir::Resizer::new();
    // SAFETY: the level is supported, as `main` has checked.
    unsafe {
        theirs.set_cpu_extensions(match level {
            CpuLevel::Scalar => fir::CpuExtensions::None,
            CpuLevel::Sse41 => fir::CpuExtensions::Sse4_1,
            CpuLevel::Avx2 => fir::CpuExtensions::Avx2,
        });
    }
    let mut image = fir::images::Image::new(ow as u32, oh as u32, fir::PixelType::U8x3);

    let mut call = 0usize;
    let mut step = |of: bool| {
        call += 1;
        let shift = (call % 7) as f64 * 0.125;
        let (w, h) = (bw - shift, bh - shift);
        let (x0, y0) = ((width as f64 - w) * 0.5, (height as f64 - h) * 0.5);
        let begin = Instant::now();
        if of {
            let bx = FractionalBox {
                x0,
                y0,
                x1: x0 + w,
                y1: y0 + h,
            };
            let axes = ResizeAxes::new((width, height), bx, target);
            ours.resample(PixelSource::tight(&pixels, width, height), axes, &mut dst);
            black_box(&dst);
        } else {
            let options = fir::ResizeOptions::new()
                .crop(x0, y0, w, h)
                .resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::Bilinear))
                .use_alpha(false);
            theirs.resize(&view, &mut image, &options).unwrap();
            black_box(image.buffer());
        }
        begin.elapsed().as_secs_f64() * 1e6
    };
    let calls = ((2000.0 / (step(true) + step(false))) as usize).clamp(1, 7);
    let mut ratios = Vec::new();
    let (mut best_ours, mut best_theirs) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let (mut a, mut b) = (0.0, 0.0);
        for _ in 0..calls {
            let (x, y) = (step(true), step(false));
            best_ours = best_ours.min(x);
            best_theirs = best_theirs.min(y);
            a += x;
            b += y;
        }
        ratios.push(b / a);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "| {width}x{height} box {bw}x{bh} -> {ow}x{oh} | {} | {best_ours:.1} | {best_theirs:.1} | {:.2} |",
        level.name(),
        ratios[ratios.len() / 2]
    );
}

fn noise(n: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 56) as u8
        })
        .collect()
}

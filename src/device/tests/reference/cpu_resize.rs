//! The kernels of `kernels/jpeg/resize.cuh`, on the CPU: a window and tables as they stand in a row
//! become pixels. And tables of any resize. For tests.

use crate::picture::jpeg::gpu_rows::{ResizeAxis, write_resize};
use crate::pixels::resample::{ResizeAxes, down_first};
use crate::recipe::fixed_weights::FixedTable;
use crate::recipe::weights::WeightTable;

/// Width and height.
type Size = (usize, usize);

/// The tables of a resize, as a worker writes them.
pub(crate) fn tables(axes: &ResizeAxes) -> Vec<u8> {
    let fixed = [axes.x, axes.y].map(|axis| {
        let (mut exact, mut fixed) = (WeightTable::default(), FixedTable::default());
        exact.prepare(axis);
        fixed.fill(&mut exact);
        fixed
    });
    let both = fixed.each_ref().map(|table| ResizeAxis {
        starts: table.starts(),
        coefficients: table.coeffs(),
        taps: table.taps(),
        precision: table.precision(),
    });
    let mut out = vec![0xEE; 1 << 20];
    let len = write_resize(both, down_first(&axes.x, &axes.y), &mut out).unwrap();
    out.truncate(len);
    out
}

/// Of one axis.
struct Axis {
    starts: Vec<u32>,
    /// Tap by tap those of all output pixels.
    coefficients: Vec<i32>,
    taps: usize,
    precision: u32,
    inputs: usize,
}

impl Axis {
    /// Of an output pixel, whose input pixels are those at `level`. Sums wrap.
    fn sum(&self, o: usize, level: impl Fn(usize) -> u8) -> u8 {
        let start = (self.starts[o] as usize).min(self.inputs - 1);
        let half = (1i32 << self.precision) >> 1;
        let sum = (0..self.taps).fold(half, |sum, tap| {
            let k = self.coefficients[tap * self.starts.len() + o];
            let level = level((start + tap).min(self.inputs - 1));
            sum.wrapping_add(i32::from(level).wrapping_mul(k))
        });
        (sum >> self.precision).clamp(0, 255) as u8
    }
}

/// What the kernels make of tight rows of a window, by tables that stand so in a row.
pub(crate) fn resized(tables: &[u8], window: &[u8], from: Size, to: Size) -> Vec<u8> {
    let word = |at: usize| u32::from_ne_bytes(tables[at..at + 4].try_into().unwrap());
    let taps = [word(0) as usize, word(4) as usize];
    let (inputs, outputs) = ([from.0, from.1], [to.0, to.1]);
    let starts = [32, 32 + 4 * outputs[0]];
    let coefficients = starts[1] + 4 * outputs[1];
    let coefficients = [coefficients, coefficients + 4 * taps[0] * outputs[0]];
    let [x, y] = [0, 1].map(|number| {
        let places = (0..outputs[number]).map(|o| starts[number] + 4 * o);
        let numbers = &tables[coefficients[number]..][..4 * taps[number] * outputs[number]];
        let numbers = numbers.as_chunks().0.iter();
        Axis {
            starts: places.map(word).collect(),
            coefficients: numbers.map(|k| i32::from_ne_bytes(*k)).collect(),
            taps: taps[number],
            precision: word(8 + 4 * number),
            inputs: inputs[number],
        }
    });
    let across = |image: &[u8], width: usize, rows: usize| -> Vec<u8> {
        let all = (0..rows).flat_map(|row| (0..to.0).map(move |o| (row, o)));
        let bytes = all.flat_map(|(row, o)| (0..3).map(move |c| (row, o, c)));
        bytes
            .map(|(row, o, c)| x.sum(o, |at| image[3 * (row * width + at) + c]))
            .collect()
    };
    let down = |image: &[u8], width: usize| -> Vec<u8> {
        let bytes = (0..to.1).flat_map(|o| (0..3 * width).map(move |b| (o, b)));
        bytes
            .map(|(o, b)| y.sum(o, |at| image[3 * width * at + b]))
            .collect()
    };
    match word(16) {
        0 => down(&across(window, from.0, from.1), to.0),
        _ => across(&down(window, from.0), from.0, to.1),
    }
}

/// The resampler of workers is what the tables mean, for every filter and order of passes.
#[test]
fn tables_mean_the_resampler_of_workers() {
    use crate::picture::jpeg::fixtures::Random;
    use crate::pixels::resample::{FractionalBox, ImageResampler, PixelSource, ResizeTarget};
    use crate::recipe::values::LibraryFilter;
    use crate::recipe::weights::ResizeFilter;
    use crate::sys::cpu::CpuLevel;
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
    let mut random = Random::new(1);
    let (mut across_first, mut down_first) = (0, 0);
    for number in 0..600 {
        let mut side = || match random.below(4) {
            0 => 1 + random.below(4) as usize,
            1 => 1 + random.below(400) as usize,
            _ => 1 + random.below(90) as usize,
        };
        let (from, mut to) = ((side(), side()), (side(), side()));
        // A pass that copies.
        match number % 10 {
            0 => to.0 = from.0,
            1 => to.1 = from.1,
            _ => {}
        }
        let pixels: Vec<u8> = (0..3 * from.0 * from.1)
            .map(|_| match random.below(3) {
                0 => 255 * random.below(2) as u8,
                _ => random.next() as u8,
            })
            .collect();
        let target = ResizeTarget {
            width: to.0,
            height: to.1,
            filter: FILTERS[number % 9],
            antialias: number / 9 % 3 > 0,
        };
        let axes = ResizeAxes::new(from, FractionalBox::whole(from.0, from.1), target);
        let tables = tables(&axes);
        match tables[16] {
            0 => across_first += 1,
            _ => down_first += 1,
        }
        let mut wanted = vec![0; 3 * to.0 * to.1];
        let source = PixelSource::tight(&pixels, from.0, from.1);
        ImageResampler::new(CpuLevel::Scalar).resample(source, axes, &mut wanted);
        assert!(
            resized(&tables, &pixels, from, to) == wanted,
            "{from:?} {target:?}"
        );
    }
    assert!(
        across_first > 300 && down_first > 10,
        "{across_first} {down_first}"
    );
}

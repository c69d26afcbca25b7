//! The end of the chain on the CPU: from RGB8 to the bytes of an output row,
//! that is normalise, cast, lay out, turn and mirror in one pass.
//!
//! Runs in the worker, and in the consumer when there are no workers. A sample
//! has 256 levels a channel, so every value is looked up in a table built once
//! a recipe: exact, and the same on every CPU. Never in here: arithmetic on
//! pixels, allocation after `new`, `unsafe`.

use half::f16;

use crate::recipe::{Dtype, MemoryLayout, Placement};

/// Bytes of a source pixel.
const PIXEL: usize = 3;

/// One element for each level of each channel, as the bytes to be written.
type Table<const N: usize> = [[[u8; N]; 256]; PIXEL];

#[derive(Debug)]
enum Tables {
    F32(Box<Table<4>>),
    F16(Box<Table<2>>),
    U8(Box<Table<1>>),
}

/// Writes output rows of one recipe.
#[derive(Debug)]
pub struct Emitter {
    tables: Tables,
    layout: MemoryLayout,
}

impl Emitter {
    /// For floats, level `v` of channel `c` becomes
    /// `((v / 255) - mean[c]) / std[c]`, each step rounded to `f32` as
    /// torchvision does it, then rounded to the nearest `f16` where that is the
    /// type. For `u8` mean and deviation are not applied.
    pub fn new(mean: [f32; 3], std: [f32; 3], dtype: Dtype, layout: MemoryLayout) -> Self {
        let value = |c: usize, v: u8| (f32::from(v) / 255.0 - mean[c]) / std[c];
        let tables = match dtype {
            Dtype::F32 => Tables::F32(table(|c, v| value(c, v).to_ne_bytes())),
            Dtype::F16 => Tables::F16(table(|c, v| f16::from_f32(value(c, v)).to_ne_bytes())),
            Dtype::U8 => Tables::U8(table(|_, v| [v])),
        };
        Self { tables, layout }
    }

    /// Bytes that an image of `width` x `height` becomes.
    pub fn row_bytes(&self, width: usize, height: usize) -> usize {
        let dtype = match self.tables {
            Tables::F32(_) => Dtype::F32,
            Tables::F16(_) => Dtype::F16,
            Tables::U8(_) => Dtype::U8,
        };
        width * height * PIXEL * dtype.size()
    }

    /// Fills `out` from tight rows of RGB. `out` needs no alignment.
    #[cfg(any(test, feature = "bench-internals"))]
    pub fn emit(
        &self,
        rgb: &[u8],
        width: usize,
        height: usize,
        placement: Placement,
        out: &mut [u8],
    ) {
        assert_eq!(
            rgb.len(),
            width * height * PIXEL,
            "not an image of {height} x {width}"
        );
        self.emit_rows(rgb, width, (width, height), placement, out);
    }

    /// Fills `out` from rows of RGB that begin `stride` pixels apart. `out` needs
    /// no alignment.
    pub(crate) fn emit_rows(
        &self,
        rgb: &[u8],
        stride: usize,
        (width, height): (usize, usize),
        placement: Placement,
        out: &mut [u8],
    ) {
        assert!(width >= 1 && height >= 1, "an empty image");
        assert!(width <= stride, "rows of {width} pixels, {stride} apart");
        assert_eq!(
            out.len(),
            self.row_bytes(width, height),
            "the output row does not fit {height} x {width}"
        );
        let source = Pixels {
            pixels: rgb.as_chunks::<PIXEL>().0,
            stride,
            width,
            height,
            placement,
        };
        match &self.tables {
            // Nothing to look up and nothing to move.
            Tables::U8(_)
                if self.layout == MemoryLayout::Nhwc && placement == Placement::default() =>
            {
                let rows = rgb.chunks(stride * PIXEL);
                for (out, row) in out.chunks_exact_mut(width * PIXEL).zip(rows) {
                    out.copy_from_slice(&row[..width * PIXEL]);
                }
            }
            Tables::F32(t) => write(t, self.layout, source, out),
            Tables::F16(t) => write(t, self.layout, source, out),
            Tables::U8(t) => write(t, self.layout, source, out),
        }
    }
}

fn table<const N: usize>(value: impl Fn(usize, u8) -> [u8; N]) -> Box<Table<N>> {
    let mut table = Box::new([[[0; N]; 256]; PIXEL]);
    for (c, channel) in table.iter_mut().enumerate() {
        for (v, entry) in (0..=255).zip(channel) {
            *entry = value(c, v);
        }
    }
    table
}

/// An image and how it is to be read.
#[derive(Clone, Copy)]
struct Pixels<'a> {
    pixels: &'a [[u8; PIXEL]],
    /// Pixels from one row to the next.
    stride: usize,
    width: usize,
    height: usize,
    placement: Placement,
}

impl<'a> Pixels<'a> {
    /// The source pixels of output row `y` from `x` on, as many as `buffer`
    /// holds: lent where they lie in order already, else gathered.
    #[inline(always)]
    fn run<'b>(self, y: usize, x: usize, buffer: &'b mut [[u8; PIXEL]]) -> &'b [[u8; PIXEL]]
    where
        'a: 'b,
    {
        let Placement {
            flip_x,
            flip_y,
            transpose,
        } = self.placement;
        let n = buffer.len();
        if transpose {
            let column = if flip_x { self.width - 1 - y } else { y };
            for (i, pixel) in (x..).zip(buffer.iter_mut()) {
                let row = if flip_y { self.height - 1 - i } else { i };
                *pixel = self.pixels[row * self.stride + column];
            }
            return buffer;
        }
        let row = if flip_y { self.height - 1 - y } else { y };
        let row = &self.pixels[row * self.stride..][..self.width];
        if flip_x {
            let from = &row[self.width - x - n..self.width - x];
            for (pixel, &v) in buffer.iter_mut().rev().zip(from) {
                *pixel = v;
            }
            return buffer;
        }
        &row[x..x + n]
    }
}

/// Pixels to a run. One plane gets a whole run before the next plane does:
/// stores that take turns between three planes cost twice as much.
const RUN: usize = 16;

fn write<const N: usize>(table: &Table<N>, layout: MemoryLayout, source: Pixels, out: &mut [u8]) {
    let (width, height) = source.placement.output_size(source.width, source.height);
    let elements = out.as_chunks_mut::<N>().0;
    match layout {
        MemoryLayout::Nchw => {
            let (r, rest) = elements.split_at_mut(width * height);
            let (g, b) = rest.split_at_mut(width * height);
            each_run(source, |at, run| {
                for ((plane, table), c) in
                    [&mut *r, &mut *g, &mut *b].into_iter().zip(table).zip(0..)
                {
                    for (to, pixel) in plane[at..at + run.len()].iter_mut().zip(run) {
                        *to = table[usize::from(pixel[c])];
                    }
                }
            });
        }
        MemoryLayout::Nhwc => {
            let pixels = elements.as_chunks_mut::<PIXEL>().0;
            let [r, g, b] = table;
            each_run(source, |at, run| {
                for (to, pixel) in pixels[at..at + run.len()].iter_mut().zip(run) {
                    *to = [
                        r[usize::from(pixel[0])],
                        g[usize::from(pixel[1])],
                        b[usize::from(pixel[2])],
                    ];
                }
            });
        }
    }
}

/// Calls `with` with each run of source pixels in output order, and with the
/// output pixel at which it begins.
#[inline(always)]
fn each_run(source: Pixels, mut with: impl FnMut(usize, &[[u8; PIXEL]])) {
    let (width, height) = source.placement.output_size(source.width, source.height);
    let mut buffer = [[0; PIXEL]; RUN];
    for y in 0..height {
        let mut x = 0;
        while x + RUN <= width {
            let run = source.run(y, x, &mut buffer);
            // A length that the compiler knows.
            if let Some(run) = run.first_chunk::<RUN>() {
                with(y * width + x, run);
            }
            x += RUN;
        }
        if x < width {
            with(y * width + x, source.run(y, x, &mut buffer[..width - x]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
    const STD: [f32; 3] = [0.229, 0.224, 0.225];

    fn image(width: usize, height: usize) -> Vec<u8> {
        (0..width * height * PIXEL)
            .map(|i| (i * 7 + i / 5) as u8)
            .collect()
    }

    fn placements() -> impl Iterator<Item = Placement> {
        (0..8).map(|bits| Placement {
            flip_x: bits & 1 != 0,
            flip_y: bits & 2 != 0,
            transpose: bits & 4 != 0,
        })
    }

    /// The documented map and formula, element by element.
    fn expected(
        rgb: &[u8],
        (width, height): (usize, usize),
        p: Placement,
        dtype: Dtype,
        layout: MemoryLayout,
    ) -> Vec<u8> {
        let (ow, oh) = p.output_size(width, height);
        let size = dtype.size();
        let mut out = vec![0; ow * oh * PIXEL * size];
        for y in 0..oh {
            for x in 0..ow {
                let (mut sy, mut sx) = if p.transpose { (x, y) } else { (y, x) };
                if p.flip_x {
                    sx = width - 1 - sx;
                }
                if p.flip_y {
                    sy = height - 1 - sy;
                }
                for c in 0..PIXEL {
                    let v = rgb[(sy * width + sx) * PIXEL + c];
                    let f = (f32::from(v) / 255.0 - MEAN[c]) / STD[c];
                    let at = match layout {
                        MemoryLayout::Nchw => (c * oh + y) * ow + x,
                        MemoryLayout::Nhwc => (y * ow + x) * PIXEL + c,
                    } * size;
                    match dtype {
                        Dtype::F32 => out[at..at + 4].copy_from_slice(&f.to_ne_bytes()),
                        Dtype::F16 => {
                            out[at..at + 2].copy_from_slice(&f16::from_f32(f).to_ne_bytes());
                        }
                        Dtype::U8 => out[at] = v,
                    }
                }
            }
        }
        out
    }

    /// What makes a picture with this EXIF orientation upright. Numbers other
    /// than 1 to 8 mean nothing and change nothing.
    fn from_exif(orientation: u8) -> Placement {
        let (transpose, flip_y, flip_x) = match orientation {
            2 => (false, false, true),
            3 => (false, true, true),
            4 => (false, true, false),
            5 => (true, false, false),
            6 => (true, true, false),
            7 => (true, true, true),
            8 => (true, false, true),
            _ => (false, false, false),
        };
        Placement {
            flip_x,
            flip_y,
            transpose,
        }
    }

    #[test]
    fn every_form_follows_the_documented_map_and_formula() {
        for (width, height) in [(1, 1), (5, 3), (17, 4), (3, 33), (16, 16)] {
            let rgb = image(width, height);
            for dtype in [Dtype::F32, Dtype::F16, Dtype::U8] {
                for layout in [MemoryLayout::Nchw, MemoryLayout::Nhwc] {
                    let emitter = Emitter::new(MEAN, STD, dtype, layout);
                    for p in placements() {
                        // One byte in, so that nothing is aligned.
                        let mut out = vec![0xee; emitter.row_bytes(width, height) + 1];
                        emitter.emit(&rgb, width, height, p, &mut out[1..]);
                        let want = expected(&rgb, (width, height), p, dtype, layout);
                        assert!(
                            out[1..] == want,
                            "{width}x{height} {dtype:?} {layout:?} {p:?}"
                        );
                        // The same out of rows that are further apart, cut
                        // off behind the last.
                        let stride = width + 3;
                        let mut apart = vec![0xdd; stride * height * PIXEL];
                        for (to, row) in apart
                            .chunks_mut(stride * PIXEL)
                            .zip(rgb.chunks(width * PIXEL))
                        {
                            to[..width * PIXEL].copy_from_slice(row);
                        }
                        apart.truncate((stride * (height - 1) + width) * PIXEL);
                        let mut again = vec![0xee; want.len()];
                        emitter.emit_rows(&apart, stride, (width, height), p, &mut again);
                        assert!(again == want, "{width}x{height} in rows of {stride}");
                    }
                }
            }
        }
    }

    /// Upright pictures of an F, stored in each of the eight ways.
    #[test]
    fn exif_orientations_come_out_upright() {
        let upright = ["##", "# ", "##", "# "];
        let stored: [&[&str]; 8] = [
            &["##", "# ", "##", "# "],
            &["##", " #", "##", " #"],
            &[" #", "##", " #", "##"],
            &["# ", "##", "# ", "##"],
            &["####", "# # "],
            &["# # ", "####"],
            &[" # #", "####"],
            &["####", " # #"],
        ];
        let emitter = Emitter::new(MEAN, STD, Dtype::U8, MemoryLayout::Nhwc);
        let bytes =
            |rows: &[&str]| -> Vec<u8> { rows.concat().bytes().flat_map(|b| [b; PIXEL]).collect() };
        for (orientation, rows) in (1..).zip(stored) {
            let p = from_exif(orientation);
            let (width, height) = (rows[0].len(), rows.len());
            assert_eq!(p.output_size(width, height), (2, 4));
            let mut out = vec![0; 24];
            emitter.emit(&bytes(rows), width, height, p, &mut out);
            assert_eq!(out, bytes(&upright), "orientation {orientation}");
            emitter.emit(&bytes(rows), width, height, p.mirrored(), &mut out);
            assert_eq!(
                out,
                bytes(&["##", " #", "##", " #"]),
                "{orientation} mirrored"
            );
        }
        assert_eq!(from_exif(0), Placement::default());
        assert_eq!(from_exif(9), Placement::default());
    }

    #[test]
    #[should_panic(expected = "the output row does not fit 2 x 2")]
    fn an_output_of_another_size_is_refused() {
        let emitter = Emitter::new(MEAN, STD, Dtype::F32, MemoryLayout::Nchw);
        emitter.emit(&[0; 12], 2, 2, Placement::default(), &mut [0; 47]);
    }
}

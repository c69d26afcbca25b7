//! The resize of a window. Tables after a row's coded data tell kernels how to resize the window to
//! the row's size.
//!
//! | bytes | content |
//! |---|---|
//! | [`ResizeHeader`] | taps, precision, order |
//! | 4 per output pixel, across, then down | first input pixel |
//! | 4 per tap of each output pixel, across, then down | coefficients, tap by tap |
//! | up to a multiple of 16 | zeros |
//!
//! The tables themselves are not checked: kernels clamp each pixel to the window.

use std::mem::size_of;

use bytemuck::{Pod, Zeroable};

use super::kernel_picture::KernelPicture;
use super::row_header::ALIGNMENT;

/// Rows of images are padded to a multiple of this many pixels.
const PIXELS: u32 = 4;

/// Maximum fraction bits of coefficients, as in the resampler.
const MAX_PRECISION: u32 = 22;

/// The coefficients of one axis, from the CPU's resampler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResizeAxis<'a> {
    /// The first input pixel of each output pixel.
    pub(crate) starts: &'a [u32],
    /// `taps` coefficients of each output pixel, pixel by pixel.
    pub(crate) coefficients: &'a [i32],
    pub(crate) taps: usize,
    pub(crate) precision: u32,
}

/// The start of the tables. Arrays of two hold across, then down.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ResizeHeader {
    taps: [u32; 2],
    precision: [u32; 2],
    /// 1: the pass down comes first.
    down_first: u32,
    zeros: [u32; 3],
}

/// Offsets of the tables of both axes, in bytes.
#[derive(Debug, Clone, Copy)]
struct TablePlaces {
    starts: [usize; 2],
    coefficients: [usize; 2],
    end: usize,
}

impl TablePlaces {
    /// For the given numbers of output pixels and of taps.
    fn new(outputs: [usize; 2], taps: [usize; 2]) -> Self {
        let starts = size_of::<ResizeHeader>();
        let coefficients = starts + 4 * (outputs[0] + outputs[1]);
        let down = coefficients + 4 * taps[0] * outputs[0];
        Self {
            starts: [starts, starts + 4 * outputs[0]],
            coefficients: [coefficients, down],
            end: (down + 4 * taps[1] * outputs[1]).next_multiple_of(ALIGNMENT),
        }
    }
}

/// Writes tables to the start of `out`, which follows coded data. Returns their bytes, or `None` if
/// they do not fit.
pub(crate) fn write_resize(
    axes: [ResizeAxis<'_>; 2],
    down_first: bool,
    out: &mut [u8],
) -> Option<usize> {
    let (outputs, taps) = (axes.map(|a| a.starts.len()), axes.map(|a| a.taps));
    let places = TablePlaces::new(outputs, taps);
    let out = out.get_mut(..places.end)?;
    let header = ResizeHeader {
        taps: taps.map(|n| n as u32),
        precision: axes.map(|a| a.precision),
        down_first: u32::from(down_first),
        zeros: [0; 3],
    };
    out[..size_of::<ResizeHeader>()].copy_from_slice(bytemuck::bytes_of(&header));
    for (number, axis) in axes.iter().enumerate() {
        let starts: &[u8] = bytemuck::cast_slice(axis.starts);
        out[places.starts[number]..][..starts.len()].copy_from_slice(starts);
        let to = &mut out[places.coefficients[number]..][..4 * axis.coefficients.len()];
        let to = to.as_chunks_mut::<4>().0;
        for (o, row) in axis.coefficients.chunks_exact(axis.taps).enumerate() {
            let places = to[o..].iter_mut().step_by(outputs[number]);
            for (to, k) in places.zip(row) {
                *to = k.to_ne_bytes();
            }
        }
    }
    let last = axes[1];
    out[places.coefficients[1] + 4 * last.coefficients.len()..].fill(0);
    Some(places.end)
}

/// `ResizeAxis` of the kernels.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct KernelAxis {
    inputs: u32,
    outputs: u32,
    taps: u32,
    precision: u32,
    starts: u32,
    coefficients: u32,
}

/// `Resize` of the kernels. Addresses are zero until it gets its place in a batch's memory.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelResize {
    pub(crate) source: u64,
    pub(crate) tables: u64,
    /// Addresses of the window, of the image between the passes, and of the result.
    pub(crate) images: [u64; 3],
    pitches: [u32; 3],
    skips: [u32; 2],
    table_bytes: u32,
    pub(crate) picture: u32,
    down_first: u32,
    across: KernelAxis,
    down: KernelAxis,
}

impl KernelResize {
    /// Reads the tables of `len` bytes after a picture's coded data. They resize its window to
    /// `size` (width, height). `copy` copies their first bytes, and returns false if there are too
    /// few. `None` if [`write_resize`] does not write such tables for it.
    pub(super) fn copied(
        len: usize,
        copy: impl Fn(&mut [u8]) -> bool,
        picture: &KernelPicture,
        size: (u32, u32),
    ) -> Option<Self> {
        let mut header = ResizeHeader::zeroed();
        if len < size_of::<ResizeHeader>() || !copy(bytemuck::bytes_of_mut(&mut header)) {
            return None;
        }
        let (inputs, outputs) = (<[u32; 2]>::from(picture.size()), <[u32; 2]>::from(size));
        let (skip, pitch) = picture.window();
        let axis = |number: usize| -> Option<KernelAxis> {
            let (inputs, outputs) = (inputs[number], outputs[number]);
            let (taps, precision) = (header.taps[number], header.precision[number]);
            // Every filter has fewer than `6 * inputs / outputs + 4` taps.
            let most = 8 * (u64::from(inputs) / u64::from(outputs.max(1)) + 1);
            let is_axis = outputs > 0
                && outputs <= 1 << 24
                && taps > 0
                && u64::from(taps) <= most
                && precision <= MAX_PRECISION;
            is_axis.then_some(KernelAxis {
                inputs,
                outputs,
                taps,
                precision,
                starts: 0,
                coefficients: 0,
            })
        };
        let (mut across, mut down) = (axis(0)?, axis(1)?);
        let taps = header.taps.map(|n| n as usize);
        let places = TablePlaces::new(outputs.map(|n| n as usize), taps);
        // The numbers below fit 32 bits, because a row is shorter.
        if places.end != len || u32::try_from(places.end).is_err() || header.down_first > 1 {
            return None;
        }
        for (number, axis) in [&mut across, &mut down].into_iter().enumerate() {
            axis.starts = places.starts[number] as u32;
            axis.coefficients = places.coefficients[number] as u32;
        }
        let (skip, pitch) = (skip as u32, pitch as u32);
        let of_result = 3 * outputs[0].next_multiple_of(PIXELS);
        let between = match header.down_first {
            0 => (of_result, 0),
            _ => (pitch, skip),
        };
        let resize = Self {
            pitches: [pitch, between.0, of_result],
            skips: [skip, between.1],
            table_bytes: places.end as u32,
            down_first: header.down_first,
            across,
            down,
            ..Self::zeroed()
        };
        // Kernels index the pixels of an image in 32 bits.
        let fits = |bytes: u64| bytes <= i32::MAX as u64;
        resize.image_bytes().into_iter().all(fits).then_some(resize)
    }

    /// Bytes of the image between the passes, and of the result.
    fn image_bytes(&self) -> [u64; 2] {
        let rows = match self.down_first {
            0 => self.down.inputs,
            _ => self.down.outputs,
        };
        let of = |pitch: u32, rows: u32| u64::from(pitch) * u64::from(rows);
        [
            of(self.pitches[1], rows),
            of(self.pitches[2], self.down.outputs),
        ]
    }

    /// Offset of the result, which follows the image between the passes, and the end of both.
    pub(crate) fn memory(&self) -> (usize, usize) {
        let [between, result] = self.image_bytes().map(|bytes| bytes as usize);
        let second = between.next_multiple_of(ALIGNMENT);
        (second, second + result.next_multiple_of(ALIGNMENT))
    }

    pub(crate) fn table_bytes(&self) -> usize {
        self.table_bytes as usize
    }

    /// Bytes from row to row of the result.
    pub(crate) fn pitch(&self) -> usize {
        self.pitches[2] as usize
    }
}

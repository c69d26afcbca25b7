//! From the file of an image to its pixels in the store.
//!
//! Runs in workers, and in the consumer with zero workers. Never in here: who makes which
//! picture, rays.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::data::index::Index;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::input::{Input, InputMode};
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::jobs::scene::frames::{StoredDepth, StoredFrame, StoredFrames};
use crate::jobs::scene::program::{Made, is_opaque, of_image};
use crate::jobs::scene::spec::StoreSpec;
use crate::jobs::shards::Pattern;
use crate::picture::{Format, Transparency, depth, grow};
use crate::plan::PositionRandom;
use crate::pool::worker::meter::Meter;
use crate::sys::memory;

/// Decodes images of a scene.
#[derive(Debug)]
pub(super) struct PixelMaker {
    input: Input,
    colors: ColorMaker,
    levels: Vec<u16>,
}

/// Decodes colours.
#[derive(Debug)]
struct ColorMaker {
    spec: StoreSpec,
    /// By what they make; none once every picture is there, or none was made yet.
    decoders: Vec<(Made, SampleDecoder)>,
    /// Colours and alpha, before they are put together.
    apart: [Vec<u8>; 2],
}

impl PixelMaker {
    pub(super) fn new(spec: &StoreSpec, mode: InputMode) -> Result<Self> {
        Ok(Self {
            input: Input::new(mode, spec.limits.max_scratch, Pattern::InOrder),
            colors: ColorMaker {
                spec: *spec,
                decoders: Vec::new(),
                apart: Default::default(),
            },
            levels: Vec::new(),
        })
    }

    /// Decodes image `image` to `out`, with its depths behind it. `at_fault` becomes the
    /// file that a fault is of.
    pub(super) fn make(
        &mut self,
        index: &Index,
        frames: &StoredFrames,
        image: usize,
        out: &mut [u8],
        at_fault: &mut u64,
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let (Some(frame), Some(camera), Some(colors)) = (
            frames.frames.get(image),
            frames.camera(image),
            frames.color_bytes(image),
        ) else {
            let text = "there is no such image in the scene";
            return Err(SampleFault::new(FaultKind::Unknown, text));
        };
        let size = (camera.height, camera.width);
        let file = self.input.open(index, image as u64)?;
        meter.bytes += file.len() as u64;
        let colors = out.get_mut(..colors).ok_or_else(too_short)?;
        let maker = &mut self.colors;
        match frames.alpha {
            true => maker.fill_with_alpha(&file, frame, size, colors, meter)?,
            false => {
                let made = Made {
                    transparency: Transparency::On(maker.spec.background),
                    resizes: size != frame.file_size,
                };
                maker.fill(&file, frame, size, made, colors, meter)?;
            }
        }
        drop(file);
        if let (Some(file), Some(begin)) = (frames.depth_file(image), frames.depth_begin(image)) {
            *at_fault = file;
            let depths = out.get_mut(begin..).ok_or_else(too_short)?;
            self.fill_depths(index, file, frame, size, depths, meter)?;
        }
        Ok(())
    }

    /// The depths of an image, of the pixels that its own lie in.
    fn fill_depths(
        &mut self,
        index: &Index,
        number: u64,
        frame: &StoredFrame,
        size: (u32, u32),
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let file = self.input.open(index, number)?;
        meter.bytes += file.len() as u64;
        let admit = |found: (u32, u32)| match frame.depth {
            StoredDepth::OfItsSize => check_depth_size(found, frame.file_size),
            StoredDepth::OfAnySize => check_depth_shape(found, frame.file_size),
            StoredDepth::None => Ok(()),
        };
        let (limits, levels) = (&self.colors.spec.limits, &mut self.levels);
        let read = || depth::read(&file, limits, &admit, levels);
        let found = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
            let text = "decoding this depth panicked: please report it with the file";
            Err(SampleFault::new(FaultKind::Corrupt, text))
        })?;
        let nearest = |at: usize, of: u32, among: u32| {
            ((2 * at as u64 + 1) * u64::from(among) / (2 * u64::from(of))) as usize
        };
        let rows = out.chunks_exact_mut(2 * size.1 as usize);
        for (row, line) in rows.enumerate() {
            let begin = nearest(row, size.0, found.0) * found.1 as usize;
            for (col, to) in line.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                *to = self.levels[begin + nearest(col, size.1, found.1)].to_le_bytes();
            }
        }
        Ok(())
    }

    /// Nothing will be made any more: gives back what decoding took.
    pub(super) fn rest(&mut self) {
        let colors = &mut self.colors;
        if !colors.decoders.is_empty() {
            colors.decoders = Vec::new();
            colors.apart = Default::default();
            self.levels = Vec::new();
            memory::give_back_all_that_is_freed();
        }
    }
}

impl ColorMaker {
    fn fill(
        &mut self,
        file: &[u8],
        frame: &StoredFrame,
        size: (u32, u32),
        made: Made,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let found = self.decoders.iter().position(|(of, _)| *of == made);
        let at = match found {
            Some(at) => at,
            None => {
                let decoder = of_image(made)
                    .and_then(|program| SampleDecoder::new(&program, &self.spec.limits))
                    .map_err(|e| SampleFault::new(FaultKind::Unknown, e.to_string()))?;
                self.decoders.push((made, decoder));
                self.decoders.len() - 1
            }
        };
        let request = RowRequest {
            // There is nothing random in the program.
            random: &PositionRandom::new(0, 0, 0),
            size: made.resizes.then_some(size),
            part: None,
            admit: &|found| check_size(found, frame.file_size),
        };
        self.decoders[at].1.fill(file, &request, out, meter)
    }

    /// Red, green, blue and alpha. Where the picture is made smaller, colours count by their
    /// alpha, so that what cannot be seen does not show at edges: as Pillow does.
    fn fill_with_alpha(
        &mut self,
        file: &[u8],
        frame: &StoredFrame,
        size: (u32, u32),
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let [mut colors, mut alpha] = std::mem::take(&mut self.apart);
        let filled = self.fill_apart(file, frame, size, [&mut colors, &mut alpha], meter);
        if filled.is_ok() {
            let premultiplied = size != frame.file_size;
            let pixels = colors
                .as_chunks::<3>()
                .0
                .iter()
                .zip(alpha.as_chunks::<3>().0);
            for ((rgb, [a, ..]), to) in pixels.zip(out.as_chunks_mut::<4>().0) {
                let [r, g, b] = match premultiplied {
                    true => rgb.map(|v| divided(v, *a)),
                    false => *rgb,
                };
                *to = [r, g, b, *a];
            }
        }
        self.apart = [colors, alpha];
        filled
    }

    fn fill_apart(
        &mut self,
        file: &[u8],
        frame: &StoredFrame,
        size: (u32, u32),
        [colors, alpha]: [&mut Vec<u8>; 2],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let len = 3 * size.0 as usize * size.1 as usize;
        grow(colors, len)?;
        grow(alpha, len)?;
        let resizes = size != frame.file_size;
        let made = Made::colors_apart(resizes);
        self.fill(file, frame, size, made, &mut colors[..len], meter)?;
        if is_opaque(Format::of(file)?) {
            alpha[..len].fill(255);
            return Ok(());
        }
        let made = Made::alpha_apart(resizes);
        self.fill(file, frame, size, made, &mut alpha[..len], meter)
    }
}

/// A colour that was multiplied by its alpha, as it was.
fn divided(v: u8, alpha: u8) -> u8 {
    match alpha {
        0 => 0,
        a => ((u16::from(v) * 255 + u16::from(a) / 2) / u16::from(a)).min(255) as u8,
    }
}

#[cold]
fn too_short() -> SampleFault {
    SampleFault::new(FaultKind::Unknown, "its place in the store is too small")
}

fn check_depth_size(found: (u32, u32), wanted: (u32, u32)) -> Result<(), SampleFault> {
    if found == wanted {
        return Ok(());
    }
    Err(SampleFault::new(
        FaultKind::Changed,
        format!(
            "the depth is {} x {}, and its image is {} x {}: give the depth the image's size, \
             remove it, or read no depths",
            found.1, found.0, wanted.1, wanted.0
        ),
    ))
}

/// A larger depth of a smaller image has its shape, to a pixel of the larger one's.
fn check_depth_shape(found: (u32, u32), wanted: (u32, u32)) -> Result<(), SampleFault> {
    let [found_rows, found_cols, rows, cols] =
        [found.0, found.1, wanted.0, wanted.1].map(u64::from);
    let apart = (found_rows * cols).abs_diff(found_cols * rows);
    match apart <= found_rows.max(found_cols) {
        true => Ok(()),
        false => check_depth_size(found, wanted),
    }
}

fn check_size(found: (u32, u32), wanted: (u32, u32)) -> Result<(), SampleFault> {
    if found == wanted {
        return Ok(());
    }
    Err(SampleFault::new(
        FaultKind::Changed,
        format!(
            "changed since the scene was read: the image was {} x {}, and is now {} x {}",
            wanted.1, wanted.0, found.1, found.0
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_of_a_larger_image_has_its_shape() {
        for (found, wanted) in [
            ((40, 60), (20, 30)),
            ((41, 60), (20, 30)),
            ((1081, 1920), (270, 480)),
            ((20, 30), (20, 30)),
        ] {
            assert_eq!(check_depth_shape(found, wanted), Ok(()), "{found:?}");
        }
        for (found, wanted) in [
            ((100, 40), (20, 30)),
            ((60, 40), (20, 30)),
            ((44, 60), (20, 30)),
        ] {
            let fault = check_depth_shape(found, wanted).unwrap_err();
            assert!(fault.reason.contains("give the depth"), "{fault}");
        }
    }
}

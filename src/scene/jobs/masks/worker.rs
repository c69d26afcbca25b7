//! Reads a mask file as bits.
//!
//! Runs in workers, and in the consumer with zero workers.

use std::io::Cursor;
use std::ops::Range;
use std::os::fd::OwnedFd;

use crate::camera::same_shape;
use crate::data::index::Index;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::open_shards::AccessPattern;
use crate::jobs::sample;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::jobs::sample_input::{InputMode, SampleInput};
use crate::order::PositionRandom;
use crate::picture::read_header::read_header_within;
use crate::picture::{PictureLimits, depth, grow};
use crate::pool::job::{Job, JobKind, JobParts};
use crate::pool::ring::ticket::{BatchKey, Ticket};
use crate::pool::worker::meter::StageMeter;
use crate::scene::draw::MaskBits;
use crate::scene::jobs::masks::spec::{MaskSize, MasksSpec, NAME};
use crate::scene::jobs::shared::program::mask_program;
use crate::sys::cpu::CpuLevel;

/// State of a worker, reused for every mask.
struct MasksJob {
    spec: MasksSpec,
    index: Index,
    input: SampleInput,
    reader: MaskReader,
    chosen: Vec<u8>,
}

/// Reads the pixels of masks into reused memory.
struct MaskReader {
    decoder: SampleDecoder,
    limits: PictureLimits,
    pixels: Vec<u8>,
    levels: Vec<f32>,
}

pub(crate) const KIND: JobKind = JobKind { name: NAME, build };

fn build(mut parts: JobParts) -> Result<Box<dyn Job>> {
    // An invalid `FEATHERLOAD_CPU` ends the run before any image is decoded.
    CpuLevel::detect()?;
    let spec: MasksSpec = parts.spec()?;
    let fds = std::mem::take(&mut parts.descriptors);
    let Ok([index]) = <[OwnedFd; 1]>::try_from(fds) else {
        return Err(Error::protocol(
            "the job of masks got other descriptors than its index",
        ));
    };
    let index = Index::from_fd(index)?;
    if index.len() != spec.masks.len() as u64 {
        return Err(Error::protocol(
            "the job of masks has a wrong number of files",
        ));
    }
    let mode = InputMode::of(parts.runs_in);
    Ok(Box::new(MasksJob {
        input: SampleInput::new(mode, spec.limits.max_scratch, AccessPattern::InOrder),
        reader: MaskReader {
            decoder: SampleDecoder::new(&mask_program()?, &spec.limits)?,
            limits: spec.limits,
            pixels: Vec::new(),
            levels: Vec::new(),
        },
        spec,
        index,
        chosen: Vec::new(),
    }))
}

/// Number of the mask in a row of a ticket. The ticket is in shared memory and may be corrupt.
fn mask_of(ticket: &Ticket, row: u32) -> u64 {
    let BatchKey([first, _]) = ticket.key;
    first.saturating_add(u64::from(row))
}

impl Job for MasksJob {
    fn row_range(&mut self, _ticket: &Ticket, row: u32) -> Range<usize> {
        self.spec.row(row)
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        _attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let id = mask_of(ticket, row);
        let mask = usize::try_from(id)
            .ok()
            .and_then(|at| self.spec.masks.get(at));
        let Some(&MaskSize {
            image,
            bits,
            is_inverted,
        }) = mask
        else {
            return Err(SampleFault::new(
                FaultKind::Unknown,
                "its ticket names a mask that does not exist",
            ));
        };
        let file = self.input.open(&self.index, id)?;
        meter.bytes += file.len() as u64;
        let size = self.reader.read(&file, image, meter)?;
        drop(file);
        grow(&mut self.chosen, bits.0 as usize * bits.1 as usize)?;
        let chosen = &mut self.chosen[..bits.0 as usize * bits.1 as usize];
        resize_nearest(&self.reader.pixels, size, (bits, is_inverted), chosen);
        let found = MaskBits::from_pixels(chosen, bits.1, bits.0);
        let words = found.as_ref().map_or(&[][..], |found| found.words());
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let to = out.get_mut(..bytes.len()).filter(|to| !to.is_empty());
        let to = to.ok_or_else(|| SampleFault::new(FaultKind::Unknown, "its row is too small"))?;
        to.copy_from_slice(bytes);
        Ok(())
    }

    fn memory_limit(&self) -> u64 {
        self.spec
            .limits
            .max_scratch
            .saturating_add(sample::KEEP as u64)
            .saturating_add(sample::BESIDE_SCRATCH)
            .saturating_add(8 * self.spec.limits.max_pixels.min(1 << 28))
    }

    fn describe(&self, ticket: &Ticket, row: u32, _attempt: u32) -> String {
        let id = mask_of(ticket, row);
        format!("the mask {}", self.index.path(id).display())
    }
}

impl MaskReader {
    /// Reads a mask file into `self.pixels`, three bytes a pixel. Returns its height and width.
    fn read(
        &mut self,
        file: &[u8],
        image: (u32, u32),
        meter: &mut StageMeter,
    ) -> std::result::Result<(u32, u32), SampleFault> {
        let header = read_header_within(&mut Cursor::new(file), &self.limits)?;
        let size = (header.stored_size.1, header.stored_size.0);
        check_shape(size, image)?;
        let len = 3 * size.0 as usize * size.1 as usize;
        grow(&mut self.pixels, len)?;
        let pixels = &mut self.pixels[..len];
        if depth::is_deep_grey(file) {
            // All 16 bits of a level count.
            let levels = &mut self.levels;
            depth::read(file, &self.limits, &|_| Ok(()), levels)?;
            for (level, to) in levels.iter().zip(pixels.as_chunks_mut::<3>().0) {
                *to = [u8::from(*level != 0.0); 3];
            }
            return Ok(size);
        }
        let request = RowRequest {
            // The program makes no random draws.
            random: &PositionRandom::new(0, 0, 0),
            size: None,
            part: None,
            boxes: None,
            check_size: &|found| check_shape(found, size),
        };
        self.decoder.make_row(file, &request, pixels, meter)?;
        Ok(size)
    }
}

/// Resizes with Pillow's and nerfstudio's NEAREST: each pixel of `to` takes the pixel of `from`
/// that contains its centre. Writes 1 if any of its channels is nonzero; inverted, writes 1 if all
/// are 0.
fn resize_nearest(
    from: &[u8],
    (height, width): (u32, u32),
    (to, is_inverted): ((u32, u32), bool),
    out: &mut [u8],
) {
    let place = |at: usize, of: u32, among: u32| {
        ((2 * at as u64 + 1) * u64::from(among) / (2 * u64::from(of))) as usize
    };
    for (row, line) in out.chunks_exact_mut(to.1 as usize).enumerate() {
        let begin = place(row, to.0, height) * width as usize;
        for (col, chosen) in line.iter_mut().enumerate() {
            let at = 3 * (begin + place(col, to.1, width));
            *chosen = u8::from((from[at..at + 3] != [0; 3]) != is_inverted);
        }
    }
}

/// Checks that the mask has the shape of its image. Both sizes are (height, width).
fn check_shape(found: (u32, u32), image: (u32, u32)) -> std::result::Result<(), SampleFault> {
    if same_shape((found.1, found.0), (image.1, image.0)) {
        return Ok(());
    }
    Err(SampleFault::new(
        FaultKind::Changed,
        format!(
            "the mask is {} x {}, but its image is {} x {}, which is another shape: resize the \
             mask to the image's width and height, or remove it",
            found.1, found.0, image.1, image.0
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_mask_has_the_pixels_under_its_centres() {
        // 4 x 6, of which one pixel is in.
        for (row, col) in (0..4).flat_map(|row| (0..6).map(move |col| (row, col))) {
            let mut pixels = vec![0; 3 * 24];
            pixels[3 * (row * 6 + col) + 1] = 1;
            let mut same = [9; 24];
            resize_nearest(&pixels, (4, 6), ((4, 6), false), &mut same);
            assert_eq!(same.iter().position(|&c| c == 1), Some(row * 6 + col));
            assert_eq!(same.iter().filter(|&&c| c == 1).count(), 1);
            let mut half = [9; 6];
            resize_nearest(&pixels, (4, 6), ((2, 3), false), &mut half);
            let at = (row % 2 == 1 && col % 2 == 1).then_some(row / 2 * 3 + col / 2);
            assert_eq!(half.iter().position(|&c| c == 1), at);
        }
    }
}

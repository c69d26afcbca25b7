//! From the file of an image to its pixels in the store.
//!
//! Runs in workers, and in the consumer with zero workers. Never in here: who makes which
//! picture, rays.

use crate::data::index::Index;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::input::{Input, InputMode};
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::jobs::scene::frames::StoredFrame;
use crate::jobs::scene::spec::StoreSpec;
use crate::jobs::shards::Pattern;
use crate::picture::Upright;
use crate::plan::PositionRandom;
use crate::pool::worker::meter::Meter;
use crate::recipe::{Decode, DecodeMode, Dtype, MemoryLayout, Recipe, Resize, SampleProgram};
use crate::sys::memory;

/// Decodes images of a scene.
#[derive(Debug)]
pub(super) struct PixelMaker {
    spec: StoreSpec,
    /// The same for all images: those that are not resized do without.
    program: SampleProgram,
    resizing: SampleProgram,
    input: Input,
    /// None once every picture is there, or none was made yet.
    decoders: Option<Decoders>,
}

#[derive(Debug)]
struct Decoders {
    plain: SampleDecoder,
    resizing: SampleDecoder,
}

impl PixelMaker {
    pub(super) fn new(spec: &StoreSpec, mode: InputMode) -> Result<Self> {
        Ok(Self {
            spec: *spec,
            program: program(spec, false)?,
            resizing: program(spec, true)?,
            input: Input::new(mode, spec.limits.max_scratch, Pattern::InOrder),
            decoders: None,
        })
    }

    /// Decodes image `image` to `out`: RGB, `size` is its height and width there.
    pub(super) fn make(
        &mut self,
        index: &Index,
        image: u32,
        frame: &StoredFrame,
        size: (u32, u32),
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let file = self.input.open(index, u64::from(image))?;
        meter.bytes += file.len() as u64;
        let decoders = match &mut self.decoders {
            Some(decoders) => decoders,
            None => {
                let of = |program| {
                    SampleDecoder::new(program, &self.spec.limits)
                        .map_err(|e| SampleFault::new(FaultKind::Unknown, e.to_string()))
                };
                self.decoders.insert(Decoders {
                    plain: of(&self.program)?,
                    resizing: of(&self.resizing)?,
                })
            }
        };
        let resizes = size != frame.file_size;
        let request = RowRequest {
            // There is nothing random in the program.
            random: &PositionRandom::new(0, 0, 0),
            size: resizes.then_some(size),
            part: None,
            admit: &|found| check_size(found, frame.file_size),
        };
        let decoder = match resizes {
            true => &mut decoders.resizing,
            false => &mut decoders.plain,
        };
        decoder.fill(&file, &request, out, meter)
    }

    /// Nothing will be made any more: gives back what decoding took.
    pub(super) fn rest(&mut self) {
        if self.decoders.take().is_some() {
            memory::give_back_all_that_is_freed();
        }
    }
}

/// Pictures as they are stored: cameras were found in them like that. Resized where that
/// is wanted, to the size that each row sets.
fn program(spec: &StoreSpec, resizes: bool) -> Result<SampleProgram> {
    let mut recipe = Recipe::new("scene").then(Decode {
        mode: Some(DecodeMode::Full),
        orientation: Upright::Stored,
        background: spec.background,
        ..Decode::default()
    });
    if resizes {
        recipe = recipe.then(Resize::exact(1, 1));
    }
    SampleProgram::compile(&recipe.with_dtype(Dtype::U8).with_layout(MemoryLayout::Nhwc))
}

fn check_size(found: (u32, u32), wanted: (u32, u32)) -> Result<(), SampleFault> {
    if found == wanted {
        return Ok(());
    }
    Err(SampleFault::new(
        FaultKind::Changed,
        format!(
            "changed since the scene was read: the image was {} x {} then, and is {} x {}",
            wanted.0, wanted.1, found.0, found.1
        ),
    ))
}

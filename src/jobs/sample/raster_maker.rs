//! A raster of a sample: from a file to its part of a row.
//!
//! Runs where `sample` does. `mask` makes labels, `numbers` depths and flows. Another image goes
//! through the steps of its image, drawn again from the numbers of the position.

use crate::error::{Error, Result, SampleFault};
use crate::jobs::raster_rule::{PairRule, RasterRule};
use crate::jobs::sample::mask::MaskDecoder;
use crate::jobs::sample::numbers::NumberDecoder;
use crate::jobs::sample::raster_size::size_fault;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::picture::{PictureLimits, PixelBox};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::RandomStreams;
use crate::recipe::{RasterMoves, SampleProgram};

/// Makes the rasters of one name.
#[derive(Debug)]
pub(crate) enum RasterMaker {
    Mask(Box<MaskDecoder>),
    Numbers(Box<NumberDecoder>),
    Pair(Box<PairDecoder>),
}

impl RasterMaker {
    /// `program`: that of the images.
    pub(crate) fn new(
        program: &SampleProgram,
        rule: &RasterRule,
        limits: &PictureLimits,
    ) -> Result<Self> {
        let places = |moves: RasterMoves| {
            let program = program.for_places("rasters", moves);
            program.map_err(|fault| Error::protocol(fault.message))
        };
        Ok(match rule {
            RasterRule::Mask(rule) => {
                let program = places(RasterMoves::Any)?;
                Self::Mask(Box::new(MaskDecoder::new(&program, rule, limits)?))
            }
            RasterRule::Numbers(_) | RasterRule::Flow(_) => {
                let program = places(rule.moves())?;
                Self::Numbers(Box::new(NumberDecoder::new(&program, rule, limits)?))
            }
            RasterRule::Image(rule) => {
                Self::Pair(Box::new(PairDecoder::new(program, rule, limits)?))
            }
        })
    }

    /// Fills the raster `out` from the bytes of a file. `image`: height and width of the upright
    /// image that it belongs to, without the sample's box.
    pub(crate) fn make(
        &mut self,
        bytes: &[u8],
        image: (u32, u32),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        match self {
            Self::Mask(mask) => mask.make_mask(bytes, image, request, out, meter),
            Self::Numbers(numbers) => numbers.make_raster(bytes, image, request, out, meter),
            Self::Pair(pair) => pair.make_pair(bytes, image, request, out, meter),
        }
    }
}

/// The state that is kept from one paired image to the next.
#[derive(Debug)]
pub(crate) struct PairDecoder {
    decoder: SampleDecoder,
    scale: u32,
}

impl PairDecoder {
    fn new(program: &SampleProgram, rule: &PairRule, limits: &PictureLimits) -> Result<Self> {
        Ok(Self {
            decoder: SampleDecoder::new(program, limits)?.for_pair(rule.steps()),
            scale: rule.scale,
        })
    }

    fn make_pair(
        &mut self,
        bytes: &[u8],
        image: (u32, u32),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let scale = self.scale;
        let wanted = (image.0.saturating_mul(scale), image.1.saturating_mul(scale));
        let part = request.part.map(|part| PixelBox {
            left: part.left.saturating_mul(scale),
            top: part.top.saturating_mul(scale),
            right: part.right.saturating_mul(scale),
            bottom: part.bottom.saturating_mul(scale),
        });
        let has_part = part.is_some();
        let check = |size: (u32, u32)| match has_part || size == wanted {
            true => Ok(()),
            false => Err(size_fault(size, image, scale)),
        };
        let request = RowRequest {
            random: request.random,
            size: request.size,
            part,
            boxes: request.boxes,
            check_size: &check,
        };
        self.decoder.make_row(bytes, &request, out, meter)?;
        let found = self.decoder.last_image();
        match found == wanted {
            true => Ok(()),
            false => Err(size_fault(found, image, scale)),
        }
    }
}

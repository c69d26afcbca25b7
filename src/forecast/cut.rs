//! From the header of a picture and the steps of its sample to what is decoded,
//! and to the memory that the sample takes.
//!
//! Pure. A worker checks a sample by it before it allocates; the consumer
//! forecasts a run by it. Sizes alone: no pixel and no file.

use crate::picture::Orientation;
use crate::picture::header::{Decoding, PictureHeader};
use crate::picture::jpeg::{Region, Scale};
use crate::recipe::SampleProgram;
use crate::recipe::draw::OpStep;
use crate::recipe::fold::Fold;
use crate::recipe::needs::{CanvasNeeds, RGB8, window_bytes};
use crate::recipe::weights::Axis;

/// A picture as its file holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Width and height.
    pub(crate) size: (u32, u32),
    pub(crate) orientation: Orientation,
    /// What its decoder takes.
    pub(crate) decoding: Decoding,
}

/// What is decoded for one sample, and what becomes of it before the first step
/// that is done on pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    pub(crate) scale: Scale,
    /// Part of the scaled, stored image that is read.
    pub(crate) want: Region,
    /// The resize that follows, across and down.
    pub(crate) axes: Option<(Axis, Axis)>,
    pub(crate) fold: Fold,
    /// Width and height behind it, as stored.
    pub(crate) size: (u32, u32),
}

/// The memory of one sample, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scratch {
    /// Decoded pixels that are not the canvas's, and what the decoder holds
    /// beside them.
    pub(crate) decoder: u64,
    /// Rows of the resize that is part of the decoding.
    pub(crate) rows: u64,
    /// The buffers of the steps.
    pub(crate) canvas: u64,
}

impl Scratch {
    pub(crate) fn bytes(&self) -> u64 {
        self.decoder
            .saturating_add(self.rows)
            .saturating_add(self.canvas)
    }
}

impl From<&PictureHeader> for Stored {
    fn from(header: &PictureHeader) -> Self {
        Self {
            size: header.stored,
            orientation: header.orientation,
            decoding: header.decoding,
        }
    }
}

impl Stored {
    /// An upright JPEG of one scan, of this height and width.
    pub(crate) fn baseline_jpeg((height, width): (u32, u32)) -> Self {
        Self {
            size: (width, height),
            orientation: Orientation::Normal,
            decoding: Decoding::Jpeg {
                coefficients: 0,
                cmyk: false,
            },
        }
    }

    /// Height and width, as the picture is to be looked at.
    pub(crate) fn upright(self) -> (u32, u32) {
        let (width, height) = self.orientation.apply_to_size(self.size);
        (height, width)
    }

    /// What is decoded for these steps.
    pub(crate) fn cut(self, program: &SampleProgram, steps: &[OpStep]) -> Cut {
        let placement = self.orientation.placement();
        let fold = match program.fuses {
            true => Fold::of(steps.iter().map(|s| &s.step), self.size, placement),
            false => Fold::nothing(self.size, placement),
        };
        // Only JPEG can be had at 1/2, 1/4 and 1/8.
        let scale = match self.decoding {
            Decoding::Jpeg { .. } => Scale::of_denominator(fold.denominator(program.decode)),
            Decoding::Rows { .. } => Scale::Full,
        };
        let reads = fold.reads(scale.denominator(), scale.of_size(self.size));
        Cut {
            scale,
            want: Region {
                x: reads.want.left,
                y: reads.want.top,
                w: reads.want.width,
                h: reads.want.height,
            },
            axes: reads.axes,
            size: fold.size(),
            fold,
        }
    }

    /// The memory that decoding `cut` and the rest of `steps` take.
    pub(crate) fn scratch(self, cut: &Cut, program: &SampleProgram, steps: &[OpStep]) -> Scratch {
        let rest = steps[cut.fold.steps..].iter().map(|s| &s.step);
        let mut needs = CanvasNeeds::begin(cut.size, cut.fold.placement);
        needs.follow_all(rest, program.fuses);
        let pixels = u64::from(cut.want.w) * u64::from(cut.want.h);
        let decoder = match self.decoding {
            Decoding::Jpeg { coefficients, cmyk } => {
                // Pixels that are wanted as they are become the canvas's.
                let rgb = if cut.axes.is_some() { RGB8 } else { 0 };
                coefficients + pixels * (rgb + if cmyk { 4 } else { 0 })
            }
            Decoding::Rows { scratch } => scratch,
        };
        let rows = match cut.axes {
            Some((x, y)) => window_bytes(x, y, RGB8),
            None => 0,
        };
        Scratch {
            decoder,
            rows,
            canvas: needs.bytes(),
        }
    }
}

//! From the header of a picture and the steps of its sample to what is decoded,
//! and to the memory that the sample takes.
//!
//! Pure. A worker checks a sample by it before it allocates; the consumer
//! forecasts a run by it. Sizes alone: no pixel and no file.

use crate::decode_plan::canvas_memory::{CanvasBufferBytes, CanvasMemory, RGB8};
use crate::decode_plan::folded_steps::FoldedSteps;
use crate::error::SampleFault;
use crate::picture::jpeg::{DecodeScale, PixelRegion};
use crate::picture::read_header::{DecodeCost, PictureHeader};
use crate::picture::{ExifOrientation, PixelBox};
use crate::recipe::SampleProgram;
use crate::recipe::geometry::PixelRect;
use crate::recipe::steps::OpStep;
use crate::recipe::weights::AxisGeometry;

/// A picture as its file holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredPicture {
    /// Width and height.
    pub(crate) size: (u32, u32),
    /// What makes it upright, as the recipe has it: see [`ExifOrientation::in_mode`].
    pub(crate) orientation: ExifOrientation,
    /// What its decoder takes.
    pub(crate) cost: DecodeCost,
    /// What counts as the picture, upright; none = all of it.
    pub(crate) pixel_box: Option<PixelBox>,
}

/// What is decoded for one sample, and what becomes of it before the first step
/// that is done on pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DecodePlan {
    pub(crate) scale: DecodeScale,
    /// Part of the scaled, stored image that is read.
    pub(crate) window: PixelRegion,
    /// The resize that follows, across and down.
    pub(crate) axes: Option<(AxisGeometry, AxisGeometry)>,
    pub(crate) fold: FoldedSteps,
    /// Width and height behind it, as stored.
    pub(crate) size: (u32, u32),
}

/// Bytes of buffers up to which workers keep them from sample to sample.
pub(crate) const MAX_KEPT_BYTES: u64 = 64 << 20;

/// What a picture takes that is not the canvas's, bytes: apart, because a buffer that one
/// sample left lies beside what the next one takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DecoderMemory {
    /// Pixels of a JPEG.
    pixels: u64,
    /// What lives while a JPEG is decoded, beside its pixels.
    coefficients: u64,
    /// Of a picture that is read row by row.
    rows: u64,
}

impl DecoderMemory {
    pub(crate) fn bytes(&self) -> u64 {
        self.pixels
            .saturating_add(self.coefficients)
            .saturating_add(self.rows)
    }

    fn raise_all(&mut self, other: &Self) {
        self.pixels = self.pixels.max(other.pixels);
        self.coefficients = self.coefficients.max(other.coefficients);
        self.rows = self.rows.max(other.rows);
    }
}

/// The memory of one sample, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SampleMemory {
    pub(crate) decoder: DecoderMemory,
    /// All that the steps and the resizes keep.
    pub(crate) buffers: CanvasBufferBytes,
    /// A resize that cannot be done: pixels along a side, and what they become.
    pub(crate) steep: Option<(u32, u32)>,
}

impl SampleMemory {
    pub(crate) fn bytes(&self) -> u64 {
        self.decoder.bytes().saturating_add(self.buffers.bytes())
    }

    /// Each part as large as the larger of both.
    pub(crate) fn raise_all(&mut self, other: &Self) {
        self.decoder.raise_all(&other.decoder);
        self.buffers.raise_all(&other.buffers);
    }
}

impl From<&PictureHeader> for StoredPicture {
    fn from(header: &PictureHeader) -> Self {
        Self {
            size: header.stored_size,
            orientation: header.orientation,
            cost: header.cost,
            pixel_box: header.pixel_box,
        }
    }
}

impl StoredPicture {
    /// An upright JPEG of one scan, of this height and width.
    pub(crate) fn baseline_jpeg((height, width): (u32, u32)) -> Self {
        Self {
            size: (width, height),
            orientation: ExifOrientation::Normal,
            cost: DecodeCost::Jpeg {
                coefficients: 0,
                cmyk: false,
            },
            pixel_box: None,
        }
    }

    /// The same of a sample that has this box.
    ///
    /// # Errors
    /// A box that lies outside of the picture.
    pub(crate) fn with_box(self, part: Option<PixelBox>) -> Result<Self, SampleFault> {
        let part = part
            .map(|part| part.within(self.whole_size()))
            .transpose()?;
        Ok(Self {
            pixel_box: part,
            ..self
        })
    }

    /// Height and width, as the picture is to be looked at: of its box, if it has one.
    pub(crate) fn upright_size(self) -> (u32, u32) {
        self.pixel_box
            .map_or_else(|| self.whole_size(), PixelBox::size)
    }

    /// Height and width of all of it, upright.
    fn whole_size(self) -> (u32, u32) {
        let (width, height) = self.orientation.apply_to_size(self.size);
        (height, width)
    }

    /// What is decoded for these steps.
    pub(crate) fn plan_decode(self, program: &SampleProgram, steps: &[OpStep]) -> DecodePlan {
        let mode = program.decode;
        let placement = self.orientation.placement();
        let whole = FoldedSteps::unchanged(self.size, placement);
        let opened = match self.pixel_box {
            Some(part) => whole.crop_to(rect(part)),
            None => whole,
        };
        let fold = match program.fuses {
            true => opened.fold_in(steps.iter().map(|s| &s.step)),
            false => opened,
        };
        // Only JPEG can be had at 1/2, 1/4 and 1/8.
        let scale = match self.cost {
            DecodeCost::Jpeg { .. } => DecodeScale::of_denominator(fold.denominator(mode)),
            DecodeCost::Rows { .. } | DecodeCost::Raw => DecodeScale::Full,
        };
        let reads = fold.decode_window(scale.denominator(), scale.of_size(self.size));
        DecodePlan {
            scale,
            window: PixelRegion {
                x: reads.window.left,
                y: reads.window.top,
                w: reads.window.width,
                h: reads.window.height,
            },
            axes: reads.axes,
            size: fold.size(),
            fold,
        }
    }

    /// The memory that decoding `cut` and the rest of `steps` take.
    pub(crate) fn sample_memory(
        self,
        cut: &DecodePlan,
        program: &SampleProgram,
        steps: &[OpStep],
    ) -> SampleMemory {
        let rest = steps[cut.fold.steps..].iter().map(|s| &s.step);
        let (decoder, mut needs) = self.decode_memory(cut);
        if self.writes_row_directly(cut, program, steps) {
            return SampleMemory {
                decoder,
                ..SampleMemory::default()
            };
        }
        needs.add_steps(rest, program.fuses);
        SampleMemory {
            decoder,
            buffers: *needs.buffers(),
            steep: needs.steep(),
        }
    }

    /// Whether the row is written of what is read, with no picture between the two.
    /// (That of a JPEG lies in its decoder's buffer.)
    pub(crate) fn writes_row_directly(
        self,
        cut: &DecodePlan,
        program: &SampleProgram,
        steps: &[OpStep],
    ) -> bool {
        let as_read = cut.axes.is_none() && cut.fold.steps == steps.len();
        as_read
            && match self.cost {
                DecodeCost::Jpeg { .. } => false,
                DecodeCost::Rows { .. } => program.output_format.is_plain_rgb8(cut.fold.placement),
                DecodeCost::Raw => true,
            }
    }

    /// What decoding takes, and the buffers behind it.
    pub(crate) fn decode_memory(self, cut: &DecodePlan) -> (DecoderMemory, CanvasMemory) {
        let pixels = u64::from(cut.window.w) * u64::from(cut.window.h);
        let is_jpeg = matches!(self.cost, DecodeCost::Jpeg { .. });
        // Pixels of a JPEG that are wanted as they are stay in its buffer.
        let mut needs = match is_jpeg && cut.axes.is_none() {
            true => CanvasMemory::begin_in_decoder(cut.size, cut.fold.placement),
            false => CanvasMemory::begin(cut.size, cut.fold.placement),
        };
        if let Some((x, y)) = cut.axes {
            needs.resize(x, y, false);
        }
        (self.decoder_memory(pixels), needs)
    }

    /// What decoding so many pixels takes.
    pub(crate) fn decoder_memory(self, pixels: u64) -> DecoderMemory {
        match self.cost {
            DecodeCost::Jpeg { coefficients, cmyk } => {
                let bytes = RGB8 + if cmyk { 4 } else { 0 };
                DecoderMemory {
                    pixels: pixels.saturating_mul(bytes),
                    coefficients,
                    rows: 0,
                }
            }
            DecodeCost::Rows { scratch } => DecoderMemory {
                rows: scratch,
                ..DecoderMemory::default()
            },
            DecodeCost::Raw => DecoderMemory::default(),
        }
    }
}

fn rect(part: PixelBox) -> PixelRect {
    let (height, width) = part.size();
    PixelRect {
        left: part.left,
        top: part.top,
        width,
        height,
    }
}

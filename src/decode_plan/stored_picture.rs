//! Plans a sample from the header of its image and its steps: what is decoded, and how much memory
//! it takes.
//!
//! Pure. A worker checks a sample with it before it allocates; the consumer estimates the memory of
//! a run with it. It computes from sizes alone and reads no pixels and no files.

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

/// An image as stored in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredPicture {
    /// Width and height.
    pub(crate) size: (u32, u32),
    /// Orientation of the stored pixels, as the recipe uses it: see [`ExifOrientation::in_mode`].
    pub(crate) orientation: ExifOrientation,
    /// Cost of decoding it.
    pub(crate) cost: DecodeCost,
    /// The box that counts as the image, in the upright image. `None`: all of it.
    pub(crate) pixel_box: Option<PixelBox>,
}

/// What is decoded for one sample, and what is folded into decoding before the first step on
/// pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DecodePlan {
    pub(crate) scale: DecodeScale,
    /// Part of the scaled, stored image to read.
    pub(crate) window: PixelRegion,
    /// The resize after decoding, across and down.
    pub(crate) axes: Option<(AxisGeometry, AxisGeometry)>,
    pub(crate) fold: FoldedSteps,
    /// Width and height after the resize, in stored orientation.
    pub(crate) size: (u32, u32),
}

/// Workers keep buffers of up to this many bytes from sample to sample.
pub(crate) const MAX_KEPT_BYTES: u64 = 64 << 20;

/// Bytes that decoding takes outside the canvas. It is counted separately: buffers left by one
/// sample coexist with the decoder memory of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DecoderMemory {
    /// Pixels of a JPEG.
    pixels: u64,
    /// Memory used while a JPEG is decoded, in addition to its pixels.
    coefficients: u64,
    /// Memory for an image that is read row by row.
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
    /// Buffers of all steps and resizes.
    pub(crate) buffers: CanvasBufferBytes,
    /// A side of a resize that is too long for fixed-point weights: pixels before and after it.
    pub(crate) steep: Option<(u32, u32)>,
    /// Tables of the crops of a hull, which a device makes. Otherwise the resized image that crops
    /// share.
    pub(crate) tables: u64,
}

impl SampleMemory {
    pub(crate) fn bytes(&self) -> u64 {
        self.decoder
            .bytes()
            .saturating_add(self.buffers.bytes())
            .saturating_add(self.tables)
    }

    /// Raises each part to at least its size in `other`.
    pub(crate) fn raise_all(&mut self, other: &Self) {
        self.decoder.raise_all(&other.decoder);
        self.buffers.raise_all(&other.buffers);
        self.tables = self.tables.max(other.tables);
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
    /// An upright JPEG of one scan, with this height and width.
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

    /// Pixels that are not compressed, with this height and width.
    pub(crate) fn canvas((height, width): (u32, u32)) -> Self {
        Self {
            cost: DecodeCost::Raw,
            ..Self::baseline_jpeg((height, width))
        }
    }

    /// The same image, restricted to the box of a sample.
    ///
    /// # Errors
    /// A box that is not inside the image.
    pub(crate) fn with_box(self, part: Option<PixelBox>) -> Result<Self, SampleFault> {
        let part = part
            .map(|part| part.within(self.whole_size()))
            .transpose()?;
        Ok(Self {
            pixel_box: part,
            ..self
        })
    }

    /// Height and width of the upright image, or of its box if it has one.
    pub(crate) fn upright_size(self) -> (u32, u32) {
        self.pixel_box
            .map_or_else(|| self.whole_size(), PixelBox::size)
    }

    /// Height and width of the whole upright image.
    pub(crate) fn whole_size(self) -> (u32, u32) {
        let (width, height) = self.orientation.apply_to_size(self.size);
        (height, width)
    }

    /// Plans the decoding for these steps.
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
        // Only JPEG decodes at 1/2, 1/4 and 1/8.
        let scale = match self.cost {
            DecodeCost::Jpeg { .. } => DecodeScale::of_denominator(fold.denominator(mode)),
            DecodeCost::Rows { .. } | DecodeCost::Raw => DecodeScale::Full,
        };
        self.plan_at(scale, fold)
    }

    /// The plan of these steps for an image that is decoded at this scale.
    pub(crate) fn plan_at(self, scale: DecodeScale, fold: FoldedSteps) -> DecodePlan {
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

    /// The memory that decoding `cut` and the rest of `steps` takes.
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
            tables: 0,
        }
    }

    /// True if the decoder's rows are written directly to the output row, without an image between.
    /// Never for JPEG, whose pixels lie in its decoder's buffer.
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

    /// Memory to decode this number of pixels, from which several crops are made. Their steps
    /// never work in the decoder's buffer.
    pub(crate) fn shared_decoder_memory(self, pixels: u64) -> DecoderMemory {
        let memory = self.decoder_memory(pixels);
        match self.cost {
            DecodeCost::Jpeg { .. } | DecodeCost::Raw => memory,
            DecodeCost::Rows { .. } => DecoderMemory {
                pixels: pixels.saturating_mul(RGB8),
                ..memory
            },
        }
    }

    /// The same image after its decoding, as several crops are made from it.
    pub(crate) fn in_memory(self) -> Self {
        Self {
            cost: DecodeCost::Raw,
            ..self
        }
    }

    /// Memory of the decoder, and of the buffers after it.
    pub(crate) fn decode_memory(self, cut: &DecodePlan) -> (DecoderMemory, CanvasMemory) {
        let pixels = u64::from(cut.window.w) * u64::from(cut.window.h);
        let is_jpeg = matches!(self.cost, DecodeCost::Jpeg { .. });
        // Pixels of a JPEG that is not resized stay in the decoder's buffer.
        let mut needs = match is_jpeg && cut.axes.is_none() {
            true => CanvasMemory::begin_in_decoder(cut.size, cut.fold.placement),
            false => CanvasMemory::begin(cut.size, cut.fold.placement),
        };
        if let Some((x, y)) = cut.axes {
            needs.resize(x, y, false);
        }
        (self.decoder_memory(pixels), needs)
    }

    /// Memory to decode this number of pixels.
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

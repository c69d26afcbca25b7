//! From the header of a picture and the steps of its sample to what is decoded,
//! and to the memory that the sample takes.
//!
//! Pure. A worker checks a sample by it before it allocates; the consumer
//! forecasts a run by it. Sizes alone: no pixel and no file.

use crate::cut::fold::Fold;
use crate::cut::needs::{Buffers, CanvasNeeds, RGB8};
use crate::error::SampleFault;
use crate::picture::header::{Decoding, PictureHeader};
use crate::picture::jpeg::{Region, Scale};
use crate::picture::{Orientation, PixelBox};
use crate::recipe::SampleProgram;
use crate::recipe::geometry::Rect;
use crate::recipe::steps::OpStep;
use crate::recipe::weights::Axis;

/// A picture as its file holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Width and height.
    pub(crate) size: (u32, u32),
    /// What makes it upright, as the recipe has it: see [`Orientation::read_as`].
    pub(crate) orientation: Orientation,
    /// What its decoder takes.
    pub(crate) decoding: Decoding,
    /// What counts as the picture, upright; none = all of it.
    pub(crate) part: Option<PixelBox>,
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

/// Bytes of buffers up to which workers keep them from sample to sample.
pub(crate) const KEPT: u64 = 64 << 20;

/// What a picture takes that is not the canvas's, bytes: apart, because a buffer that one
/// sample left lies beside what the next one takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DecoderBytes {
    /// Pixels of a JPEG.
    pixels: u64,
    /// What lives while a JPEG is decoded, beside its pixels.
    coefficients: u64,
    /// Of a picture that is read row by row.
    rows: u64,
}

impl DecoderBytes {
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
pub(crate) struct Scratch {
    pub(crate) decoder: DecoderBytes,
    /// All that the steps and the resizes keep.
    pub(crate) buffers: Buffers,
    /// A resize that cannot be done: pixels along a side, and what they become.
    pub(crate) steep: Option<(u32, u32)>,
}

impl Scratch {
    pub(crate) fn bytes(&self) -> u64 {
        self.decoder.bytes().saturating_add(self.buffers.bytes())
    }

    /// Each part as large as the larger of both.
    pub(crate) fn raise_all(&mut self, other: &Self) {
        self.decoder.raise_all(&other.decoder);
        self.buffers.raise_all(&other.buffers);
    }
}

impl From<&PictureHeader> for Stored {
    fn from(header: &PictureHeader) -> Self {
        Self {
            size: header.stored,
            orientation: header.orientation,
            decoding: header.decoding,
            part: header.part,
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
            part: None,
        }
    }

    /// The same of a sample that has this box.
    ///
    /// # Errors
    /// A box that lies outside of the picture.
    pub(crate) fn boxed(self, part: Option<PixelBox>) -> Result<Self, SampleFault> {
        let part = part.map(|part| part.within(self.whole())).transpose()?;
        Ok(Self { part, ..self })
    }

    /// Height and width, as the picture is to be looked at: of its box, if it has one.
    pub(crate) fn upright(self) -> (u32, u32) {
        self.part.map_or_else(|| self.whole(), PixelBox::size)
    }

    /// Height and width of all of it, upright.
    fn whole(self) -> (u32, u32) {
        let (width, height) = self.orientation.apply_to_size(self.size);
        (height, width)
    }

    /// What is decoded for these steps.
    pub(crate) fn cut(self, program: &SampleProgram, steps: &[OpStep]) -> Cut {
        let mode = program.decode;
        let placement = self.orientation.placement();
        let whole = Fold::nothing(self.size, placement);
        let opened = match self.part {
            Some(part) => whole.of_part(rect(part)),
            None => whole,
        };
        let fold = match program.fuses {
            true => opened.and(steps.iter().map(|s| &s.step)),
            false => opened,
        };
        // Only JPEG can be had at 1/2, 1/4 and 1/8.
        let scale = match self.decoding {
            Decoding::Jpeg { .. } => Scale::of_denominator(fold.denominator(mode)),
            Decoding::Rows { .. } | Decoding::Raw => Scale::Full,
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
        let (decoder, mut needs) = self.begin(cut);
        if self.is_the_row(cut, program, steps) {
            return Scratch {
                decoder,
                ..Scratch::default()
            };
        }
        needs.follow_all(rest, program.fuses);
        Scratch {
            decoder,
            buffers: *needs.buffers(),
            steep: needs.steep(),
        }
    }

    /// Whether the row is written of what is read, with no picture between the two.
    /// (That of a JPEG lies in its decoder's buffer.)
    pub(crate) fn is_the_row(self, cut: &Cut, program: &SampleProgram, steps: &[OpStep]) -> bool {
        let as_read = cut.axes.is_none() && cut.fold.steps == steps.len();
        as_read
            && match self.decoding {
                Decoding::Jpeg { .. } => false,
                Decoding::Rows { .. } => program.emission.keeps(cut.fold.placement),
                Decoding::Raw => true,
            }
    }

    /// What decoding takes, and the buffers behind it.
    pub(crate) fn begin(self, cut: &Cut) -> (DecoderBytes, CanvasNeeds) {
        let pixels = u64::from(cut.want.w) * u64::from(cut.want.h);
        let is_jpeg = matches!(self.decoding, Decoding::Jpeg { .. });
        // Pixels of a JPEG that are wanted as they are stay in its buffer.
        let mut needs = match is_jpeg && cut.axes.is_none() {
            true => CanvasNeeds::adopt(cut.size, cut.fold.placement),
            false => CanvasNeeds::begin(cut.size, cut.fold.placement),
        };
        if let Some((x, y)) = cut.axes {
            needs.resize(x, y, false);
        }
        (self.decoder_bytes(pixels), needs)
    }

    /// What decoding so many pixels takes.
    pub(crate) fn decoder_bytes(self, pixels: u64) -> DecoderBytes {
        match self.decoding {
            Decoding::Jpeg { coefficients, cmyk } => {
                let bytes = RGB8 + if cmyk { 4 } else { 0 };
                DecoderBytes {
                    pixels: pixels.saturating_mul(bytes),
                    coefficients,
                    rows: 0,
                }
            }
            Decoding::Rows { scratch } => DecoderBytes {
                rows: scratch,
                ..DecoderBytes::default()
            },
            Decoding::Raw => DecoderBytes::default(),
        }
    }
}

fn rect(part: PixelBox) -> Rect {
    let (height, width) = part.size();
    Rect {
        left: part.left,
        top: part.top,
        width,
        height,
    }
}

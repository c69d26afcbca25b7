//! Labels as PNG: indices of a palette, grey of 1 to 16 bits, or colours.

use std::io::Cursor;
use std::ops::Range;

use png::{BitDepth, ColorType, DecodingError, Reader, Transformations};

use super::label_check::LabelCheck;
use super::label_form::{LABEL, LabelForm, OUTSIDE};
use crate::error::{FaultKind, SampleFault};
use crate::picture::limits::PictureLimits;
use crate::picture::png::fault;

/// An open PNG.
pub(super) struct PngLabels<'a> {
    reader: Reader<Cursor<&'a [u8]>>,
    layout: PixelLayout,
}

/// How a row stores its labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PixelLayout {
    /// Indices or levels of this number of bits, and the value of one step.
    Packed(u8, u8),
    /// Levels of 16 bits, the high byte first.
    Deep,
    /// Three equal channels, and perhaps a fourth, which does not count.
    GreyOfColors(usize),
    /// Three channels, and perhaps a fourth, which does not count.
    Colors(usize),
}

impl<'a> PngLabels<'a> {
    pub(super) fn open(
        bytes: &'a [u8],
        form: LabelForm,
        limits: &PictureLimits,
    ) -> Result<Self, SampleFault> {
        let scratch = png::Limits {
            bytes: usize::try_from(limits.max_scratch).unwrap_or(usize::MAX),
        };
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), scratch);
        decoder.set_transformations(Transformations::IDENTITY);
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        let reader = decoder.read_info().map_err(named)?;
        let info = reader.info();
        let layout = match (info.color_type, info.bit_depth, form) {
            (ColorType::Indexed, depth, LabelForm::Numbers) => PixelLayout::Packed(depth as u8, 1),
            (ColorType::Grayscale, BitDepth::Sixteen, LabelForm::Numbers) => PixelLayout::Deep,
            // As Pillow: one bit is 0 or 1, two and four bits are spread over 0 to 255.
            (ColorType::Grayscale, depth, LabelForm::Numbers) => {
                let step = match depth {
                    BitDepth::Two => 85,
                    BitDepth::Four => 17,
                    _ => 1,
                };
                PixelLayout::Packed(depth as u8, step)
            }
            (ColorType::Rgb | ColorType::Rgba, BitDepth::Eight, form) => {
                let channels = info.color_type.samples();
                match form {
                    LabelForm::Numbers => PixelLayout::GreyOfColors(channels),
                    LabelForm::Colors => PixelLayout::Colors(channels),
                }
            }
            (color, depth, _) => {
                return Err(FaultKind::Unsupported.fault(format!(
                    "the mask is a PNG of colour type {} with {} bits: write labels as a palette or \
                     as grey, and panoptic labels as RGB with 8 bits",
                    color as u8, depth as u8
                )));
            }
        };
        Ok(Self { reader, layout })
    }

    /// Width and height.
    pub(super) fn size(&self) -> (u32, u32) {
        self.reader.info().size()
    }

    /// The largest label that the file can have.
    pub(super) fn most_label(&self) -> u32 {
        self.layout.most()
    }

    /// Maximum bytes that reading takes: the decoder's window and rows, or all rows if the file is
    /// interlaced.
    pub(super) fn scratch_bytes(&self) -> u64 {
        let info = self.reader.info();
        let row = info.raw_row_length() as u64;
        let rows = match info.interlaced {
            true => u64::from(info.height),
            false => 1,
        };
        row * (u64::from(info.height.min(8)) + 1 + rows) + (512 << 10)
    }

    /// Reads the labels of these columns and rows to `labels`. `check` gets those of each row.
    pub(super) fn read(
        mut self,
        columns: &Range<usize>,
        rows: Range<u32>,
        check: Option<LabelCheck<'_>>,
        labels: &mut [u8],
    ) -> Result<(), SampleFault> {
        let (width, height) = self.size();
        let all = 0..width as usize;
        let mut whole = vec![0; check.map_or(0, |_| LABEL * all.len())];
        let layout = self.layout;
        let mut lines = labels.chunks_exact_mut((LABEL * columns.len()).max(1));
        let mut write = |y: u32, row: &[u8]| {
            layout.check(row)?;
            if let Some(check) = check {
                layout.copy(row, &all, &mut whole);
                check(&whole)?;
            }
            if rows.contains(&y)
                && let Some(line) = lines.next()
            {
                layout.copy(row, columns, line);
            }
            Ok(())
        };
        let too_large = || FaultKind::TooLarge.fault("the mask has rows that no memory holds");
        if self.reader.info().interlaced {
            let bytes = self.reader.output_buffer_size().ok_or_else(too_large)?;
            let mut frame = vec![0; bytes];
            let read = self.reader.next_frame(&mut frame).map_err(named)?;
            for (y, row) in (0..height).zip(frame.chunks_exact(read.line_size)) {
                write(y, row)?;
            }
        } else {
            let bytes = self.reader.output_line_size(width).ok_or_else(too_large)?;
            let mut row = vec![0; bytes];
            for y in 0..height {
                if self.reader.read_row(&mut row).map_err(named)?.is_none() {
                    let what = format!("the mask is a PNG that ends at row {y}");
                    return Err(FaultKind::Corrupt.fault(what));
                }
                write(y, &row)?;
            }
        }
        self.reader.finish().map_err(named)
    }
}

impl PixelLayout {
    /// Checks that a row has numbers where they are expected.
    fn check(self, row: &[u8]) -> Result<(), SampleFault> {
        let channels = match self {
            Self::Packed(..) | Self::Deep => return Ok(()),
            Self::Colors(channels) => {
                let is_label = |pixel: &[u8]| pixel[..LABEL] != OUTSIDE;
                return match row.chunks_exact(channels).all(is_label) {
                    true => Ok(()),
                    false => Err(FaultKind::Corrupt.fault(
                        "the mask has a white pixel, whose number 16777215 is no label: use \
                         another colour",
                    )),
                };
            }
            Self::GreyOfColors(channels) => channels,
        };
        let is_grey = |pixel: &[u8]| pixel[0] == pixel[1] && pixel[0] == pixel[2];
        match row.chunks_exact(channels).all(is_grey) {
            true => Ok(()),
            false => Err(FaultKind::Unsupported.fault(
                "the mask has colours, and its labels are numbers: write the labels as a palette \
                 or as grey, or use `form: colors` if a colour is a label, as in COCO's panoptic \
                 images",
            )),
        }
    }

    /// The largest label that it can have.
    fn most(self) -> u32 {
        match self {
            Self::Packed(..) | Self::GreyOfColors(_) => 0xff,
            Self::Deep => 0xffff,
            Self::Colors(_) => 0xff_ffff,
        }
    }

    /// Copies the labels of these columns.
    fn copy(self, row: &[u8], columns: &Range<usize>, to: &mut [u8]) {
        let to = to.as_chunks_mut::<LABEL>().0;
        match self {
            Self::Packed(8, _) => write(to, &row[columns.clone()], |&label| [label, 0, 0]),
            Self::Packed(bits, step) => {
                let mask = ((1u16 << bits) - 1) as u8;
                for (to, at) in to.iter_mut().zip(columns.clone()) {
                    let bit = at * usize::from(bits);
                    let shift = 8 - bits - (bit % 8) as u8;
                    *to = [((row[bit / 8] >> shift) & mask) * step, 0, 0];
                }
            }
            Self::Deep => {
                let pairs = &row.as_chunks::<2>().0[columns.clone()];
                write(to, pairs, |&[high, low]| [low, high, 0]);
            }
            Self::GreyOfColors(3) => {
                let pixels = &row.as_chunks::<3>().0[columns.clone()];
                write(to, pixels, |&[level, ..]| [level, 0, 0]);
            }
            Self::GreyOfColors(_) => {
                let pixels = &row.as_chunks::<4>().0[columns.clone()];
                write(to, pixels, |&[level, ..]| [level, 0, 0]);
            }
            Self::Colors(3) => to.copy_from_slice(&row.as_chunks().0[columns.clone()]),
            Self::Colors(_) => {
                let pixels = &row.as_chunks::<4>().0[columns.clone()];
                write(to, pixels, |&[r, g, b, _]| [r, g, b]);
            }
        }
    }
}

/// Writes the label of each pixel.
fn write<P>(to: &mut [[u8; LABEL]], pixels: &[P], label: impl Fn(&P) -> [u8; LABEL]) {
    for (to, pixel) in to.iter_mut().zip(pixels) {
        *to = label(pixel);
    }
}

fn named(e: DecodingError) -> SampleFault {
    let fault = fault(e);
    let reason = format!("the mask is not a readable PNG: {}", fault.reason);
    SampleFault::new(fault.kind, reason)
}

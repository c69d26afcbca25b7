//! A label image of any format: header, then the labels of a window.
//!
//! PNG is read by `png`, other formats by `depth`.

use super::label_form::{LABEL, LabelForm};
use super::png::PngLabels;
use crate::error::{FaultKind, SampleFault};
use crate::picture::depth;
use crate::picture::file_format::FileFormat;
use crate::picture::jpeg::PixelRegion;
use crate::picture::limits::PictureLimits;
use crate::sys::panics::catch_panic;

/// The first number that is no label of a file.
const LIMIT: u32 = (1 << 24) - 1;

/// A label image whose header has been read.
pub(crate) struct LabelImageReader<'a> {
    size: (u32, u32),
    scratch: u64,
    labels: StoredLabels<'a>,
}

enum StoredLabels<'a> {
    Png(Box<PngLabels<'a>>),
    /// Read by `depth`.
    Numbers(&'a [u8], PictureLimits),
}

impl<'a> LabelImageReader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// A format that has no labels, colours where numbers are expected, a size over the limits.
    pub(crate) fn open(
        bytes: &'a [u8],
        form: LabelForm,
        limits: &PictureLimits,
    ) -> Result<Self, SampleFault> {
        match (FileFormat::of(bytes)?, form) {
            (FileFormat::Png, _) => {
                let png = PngLabels::open(bytes, form, limits)?;
                let size = png.size();
                limits.check_pixels("a mask", size)?;
                Ok(Self {
                    size,
                    scratch: png.scratch_bytes(),
                    labels: StoredLabels::Png(Box::new(png)),
                })
            }
            (FileFormat::Tiff | FileFormat::Npy, LabelForm::Numbers) => {
                let mut file = std::io::Cursor::new(bytes);
                let (size, scratch) = depth::size_and_bytes(&mut file, limits)?;
                limits.check_pixels("a mask", size)?;
                Ok(Self {
                    size,
                    scratch,
                    labels: StoredLabels::Numbers(bytes, *limits),
                })
            }
            (FileFormat::Jpeg, _) => Err(FaultKind::Unsupported
                .fault("the mask is a JPEG, whose compression changes labels: write masks as PNG")),
            (format, LabelForm::Numbers) => Err(FaultKind::Unsupported.fault(format!(
                "the mask is a {format}: write masks as PNG, TIFF or NumPy arrays (.npy)"
            ))),
            (format, LabelForm::Colors) => Err(FaultKind::Unsupported.fault(format!(
                "the mask is a {format}, and labels in colours must be PNG"
            ))),
        }
    }

    /// Width and height.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.size
    }

    /// Maximum bytes that reading takes, without the returned labels.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        self.scratch
    }

    /// Reads the labels of `window` to `labels`, row by row, without gaps. All rows are decoded, so
    /// a file is good or bad whatever part of it is read.
    ///
    /// # Errors
    /// A broken file; a number that is no label.
    pub(crate) fn read_window(
        self,
        window: PixelRegion,
        labels: &mut Vec<u8>,
    ) -> Result<(), SampleFault> {
        labels.clear();
        labels.resize(LABEL * window.w as usize * window.h as usize, 0);
        let columns = window.x as usize..(window.x + window.w) as usize;
        let rows = window.y..window.y + window.h;
        match self.labels {
            StoredLabels::Png(png) => {
                let read = || png.read(&columns, rows, labels);
                catch_panic(read).unwrap_or_else(|| Err(panicked()))
            }
            StoredLabels::Numbers(bytes, limits) => {
                let mut levels = Vec::new();
                let read = || depth::read(bytes, &limits, &|_| Ok(()), &mut levels);
                catch_panic(read).unwrap_or_else(|| Err(panicked()))?;
                let width = self.size.0 as usize;
                let lines = levels.chunks_exact(width).enumerate();
                let mut to = labels.chunks_exact_mut(LABEL);
                for (y, line) in lines {
                    // Every number is checked, also outside the window.
                    for (x, &level) in line.iter().enumerate() {
                        let label = whole(level)?;
                        if rows.contains(&(y as u32))
                            && columns.contains(&x)
                            && let Some(to) = to.next()
                        {
                            to.copy_from_slice(&label.to_le_bytes()[..LABEL]);
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// The label that a number of a file is.
fn whole(level: f32) -> Result<u32, SampleFault> {
    let label = level as u32;
    match label < LIMIT && label as f32 == level {
        true => Ok(label),
        false => Err(FaultKind::Corrupt.fault(format!(
            "the mask has {level}, and a label is a whole number from 0 to {}",
            LIMIT - 1
        ))),
    }
}

fn panicked() -> SampleFault {
    FaultKind::Corrupt.fault("decoding this mask panicked: please report it with the file")
}

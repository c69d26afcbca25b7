//! A label image of any format: header, then the labels of a window.
//!
//! PNG is read by `png`, other formats by `depth`.

use super::label_check::LabelCheck;
use super::label_form::{LABEL, LabelForm};
use super::png::PngLabels;
use crate::error::{FaultKind, SampleFault};
use crate::picture::depth;
use crate::picture::file_format::FileFormat;
use crate::picture::jpeg::PixelRegion;
use crate::picture::limits::PictureLimits;

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
                let header = depth::size_and_bytes(&mut file, limits).map_err(of_mask)?;
                let (size, scratch) = header;
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

    /// The largest label that the file can have.
    pub(crate) fn most_label(&self) -> u32 {
        match &self.labels {
            StoredLabels::Png(png) => png.most_label(),
            StoredLabels::Numbers(..) => LIMIT - 1,
        }
    }

    /// Maximum bytes that reading takes, without the returned labels.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        self.scratch
    }

    /// Reads the labels of `window` to `labels`, row by row, without gaps. All rows are decoded, and
    /// `check` gets the labels of each whole row, if there is one. So a file is good or bad whatever
    /// part of it is read.
    ///
    /// # Errors
    /// A broken file; a number that is no label; an error of `check`.
    pub(crate) fn read_window(
        self,
        window: PixelRegion,
        check: Option<LabelCheck<'_>>,
        labels: &mut Vec<u8>,
    ) -> Result<(), SampleFault> {
        labels.clear();
        labels.resize(LABEL * window.w as usize * window.h as usize, 0);
        let columns = window.x as usize..(window.x + window.w) as usize;
        let rows = window.y..window.y + window.h;
        match self.labels {
            StoredLabels::Png(png) => png.read(&columns, rows, check, labels),
            StoredLabels::Numbers(bytes, limits) => {
                let mut levels = Vec::new();
                let read = depth::read(bytes, &limits, &|_| Ok(()), &mut levels);
                read.map_err(of_mask)?;
                let width = self.size.0 as usize;
                let mut line = vec![0; LABEL * width];
                let mut to = labels.chunks_exact_mut((LABEL * columns.len()).max(1));
                for (y, levels) in (0..).zip(levels.chunks_exact(width)) {
                    for (to, &level) in line.chunks_exact_mut(LABEL).zip(levels) {
                        to.copy_from_slice(&whole(level)?.to_le_bytes()[..LABEL]);
                    }
                    check.map_or(Ok(()), |check| check(&line))?;
                    if rows.contains(&y)
                        && let Some(to) = to.next()
                    {
                        to.copy_from_slice(&line[LABEL * columns.start..LABEL * columns.end]);
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

/// The fault of a reader of depths, about a mask.
fn of_mask(fault: SampleFault) -> SampleFault {
    let reason = fault.reason.replace("the depth", "the mask");
    SampleFault::new(fault.kind, reason.replace("a depth image", "a label image"))
}

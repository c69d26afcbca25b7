//! The mask of a sample: from a file of labels to the numbers of a row.
//!
//! Runs where `sample` does. Labels go through the same steps as the pixels of their image, as
//! three bytes each. They are drawn again from the numbers of the position.

use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::mask_rule::{MaskRule, MaskWriter};
use crate::jobs::sample::{KEEP, ONLY, RowRequest, SampleDecoder};
use crate::picture::ExifOrientation;
use crate::picture::PictureLimits;
use crate::picture::labels::{LABEL, LabelImageReader};
use crate::picture::read_header::DecodeCost;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::SampleProgram;
use crate::recipe::random::RandomStreams;

/// The state that is kept from mask to mask.
#[derive(Debug)]
pub(crate) struct MaskDecoder {
    decoder: SampleDecoder,
    writer: MaskWriter,
    limits: PictureLimits,
    /// The labels of the part of the file that the first steps need.
    labels: Vec<u8>,
    /// The labels of the row.
    row: Vec<u8>,
}

impl MaskDecoder {
    /// `program`: that of labels ([`SampleProgram::for_labels`]).
    pub(crate) fn new(
        program: &SampleProgram,
        rule: &MaskRule,
        limits: &PictureLimits,
    ) -> Result<Self> {
        Ok(Self {
            decoder: SampleDecoder::new(program, limits)?,
            writer: MaskWriter::new(rule),
            limits: *limits,
            labels: Vec::new(),
            row: Vec::new(),
        })
    }

    /// Bytes that a label image of this width and height takes in addition to its file: labels
    /// before and after the first steps.
    pub(crate) fn label_bytes((width, height): (u32, u32)) -> u64 {
        LABEL as u64 * u64::from(width) * u64::from(height)
    }

    /// Fills the mask `out` from the bytes of a file. `image`: height and width of the upright
    /// image that the mask belongs to, without the sample's box.
    pub(crate) fn make_mask(
        &mut self,
        bytes: &[u8],
        image: (u32, u32),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let made = self.make(bytes, image, request, out, meter);
        let held = self.labels.capacity() + self.row.capacity() + self.decoder.held_bytes();
        if held > KEEP {
            self.decoder.free_buffers();
            (self.labels, self.row) = (Vec::new(), Vec::new());
        }
        made
    }

    fn make(
        &mut self,
        bytes: &[u8],
        image: (u32, u32),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let rule = self.writer.rule();
        let reader = LabelImageReader::open(bytes, rule.form, &self.limits)?;
        let size = reader.size();
        if (size.1, size.0) != image {
            return Err(FaultKind::Unsupported.fault(format!(
                "the mask has {} x {} pixels, and its image {} x {}: both must have one size. If \
                 the image is turned by EXIF and the mask is not, use orientation 'stored'",
                size.0, size.1, image.1, image.0
            )));
        }
        let stored = StoredPicture {
            size,
            orientation: ExifOrientation::Normal,
            cost: DecodeCost::Rows {
                scratch: reader.scratch_bytes() + Self::label_bytes(size),
            },
            pixel_box: None,
        };
        let stored = stored.with_box(request.part)?;
        let moves = rule.moves();
        let plan = self
            .decoder
            .plan_with(stored, request, |steps| moves.replace(steps))?;
        let mut labels = std::mem::take(&mut self.labels);
        let read = reader.read_window(plan.window, &mut labels);
        let width = plan.window.w as usize;
        let mut of_window = plan;
        (of_window.window.x, of_window.window.y) = (0, 0);
        let own = || self.decoder.program().extent.of(stored.upright_size());
        let (height, across) = request.size.unwrap_or_else(own);
        self.row.clear();
        self.row
            .resize(LABEL * height as usize * across as usize, 0);
        let row = &mut self.row;
        let moved = read.and_then(|()| {
            let from = (&labels[..], width);
            self.decoder
                .fill_from_raw(ONLY, from, &of_window, request.size, row, meter)
        });
        self.labels = labels;
        moved?;
        self.writer.write(&self.row, out)
    }
}

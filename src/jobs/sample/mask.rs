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
use crate::picture::labels::{LABEL, LabelCheck, LabelImageReader};
use crate::picture::read_header::DecodeCost;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::SampleProgram;
use crate::recipe::random::RandomStreams;
use crate::sys::panics::catch_panic;

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
        let make = || self.make(bytes, image, request, out, meter);
        let Some(made) = catch_panic(make) else {
            self.free_buffers();
            return Err(FaultKind::Corrupt
                .fault("decoding this mask panicked: please report it with the file"));
        };
        let held = self.labels.capacity() + self.row.capacity() + self.decoder.held_bytes();
        if held > KEEP {
            self.free_buffers();
        }
        made
    }

    fn free_buffers(&mut self) {
        self.decoder.free_buffers();
        (self.labels, self.row) = (Vec::new(), Vec::new());
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
            let advice = match size == image {
                true => {
                    ". Masks are used as stored: if this one was drawn on the image as stored, use \
                     orientation 'stored', and if on the upright image, 'exif'"
                }
                false => "",
            };
            return Err(FaultKind::Unsupported.fault(format!(
                "the mask has {} x {} pixels, and its image {} x {}: both must have one \
                 size{advice}",
                size.0, size.1, image.1, image.0
            )));
        }
        let whole = StoredPicture {
            size,
            orientation: ExifOrientation::Normal,
            cost: DecodeCost::Raw,
            pixel_box: None,
        };
        let part = whole.with_box(request.part)?;
        let own = || self.decoder.program().extent.of(part.upright_size());
        let (height, across) = request.size.unwrap_or_else(own);
        let stored = StoredPicture {
            cost: DecodeCost::Rows {
                scratch: reader.scratch_bytes() + label_bytes(size) + label_bytes((across, height)),
            },
            ..part
        };
        let moves = rule.moves();
        let plan = self
            .decoder
            .plan_with(stored, request, |steps| moves.replace(steps))?;
        let mut labels = std::mem::take(&mut self.labels);
        let check = |row: &[u8]| self.writer.check(row);
        let check: Option<LabelCheck<'_>> = (self.writer)
            .may_reject(reader.most_label())
            .then_some(&check);
        let read = reader.read_window(plan.window, check, &mut labels);
        let width = plan.window.w as usize;
        let mut of_window = plan;
        (of_window.window.x, of_window.window.y) = (0, 0);
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

/// Bytes of the labels of an image of this width and height.
pub(crate) fn label_bytes((width, height): (u32, u32)) -> u64 {
    LABEL as u64 * u64::from(width) * u64::from(height)
}

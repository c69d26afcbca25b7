//! The mask of a sample: from a file of labels to the numbers of a row.
//!
//! Runs where `sample` does. Labels go through the same steps as the pixels of their image, as
//! three bytes each. They are drawn again from the numbers of the position.

use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::mask_rule::{MaskRule, MaskWriter};
use crate::jobs::sample::label_mover::{LabelMover, LabelPicture};
use crate::jobs::sample::{KEEP, RowRequest};
use crate::picture::labels::{LabelCheck, LabelImageReader};
use crate::picture::{PictureLimits, PixelBox};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::RandomStreams;
use crate::recipe::{LabelMoves, SampleProgram};
use crate::sys::panics::catch_panic;

/// Makes masks of files.
#[derive(Debug)]
pub(crate) struct MaskDecoder {
    mover: LabelMover,
    reader: MaskReader,
}

/// Reads the files of masks, and writes the numbers of rows.
#[derive(Debug)]
pub(crate) struct MaskReader {
    writer: MaskWriter,
    limits: PictureLimits,
}

impl MaskDecoder {
    /// `program`: that of labels ([`SampleProgram::for_labels`]).
    pub(crate) fn new(
        program: &SampleProgram,
        rule: &MaskRule,
        limits: &PictureLimits,
    ) -> Result<Self> {
        Ok(Self {
            mover: LabelMover::new(program, limits)?,
            reader: MaskReader::new(rule, limits),
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
        let Self { mover, reader } = self;
        let make = || {
            let part = request.part.map(|part| part.within(image)).transpose()?;
            let own = mover.extent().of(part.map_or(image, PixelBox::size));
            let row = request.size.unwrap_or(own);
            let labels = reader.read_labels(mover, bytes, (image, row), request, meter)?;
            reader.write(labels, out)
        };
        let Some(made) = catch_panic(make) else {
            self.mover.free_buffers();
            return Err(FaultKind::Corrupt
                .fault("decoding this mask panicked: please report it with the file"));
        };
        self.mover.free_above(KEEP);
        made
    }
}

impl MaskReader {
    pub(crate) fn new(rule: &MaskRule, limits: &PictureLimits) -> Self {
        Self {
            writer: MaskWriter::new(rule),
            limits: *limits,
        }
    }

    /// How labels move.
    pub(crate) fn moves(&self) -> LabelMoves {
        self.writer.rule().moves()
    }

    /// The labels of a row from the bytes of a file. `image` and `row`: heights and widths of the
    /// upright image, without the sample's box, and of the row.
    ///
    /// # Errors
    /// A file that cannot be read, of another size, or with a label that has no number.
    pub(crate) fn read_labels<'a>(
        &self,
        mover: &'a mut LabelMover,
        bytes: &[u8],
        (image, row): ((u32, u32), (u32, u32)),
        request: &RowRequest<'_, impl RandomStreams>,
        meter: &mut StageMeter,
    ) -> Result<&'a [u8], SampleFault> {
        let reader = LabelImageReader::open(bytes, self.writer.rule().form, &self.limits)?;
        check_size(reader.size(), image)?;
        let picture = LabelPicture {
            size: image,
            row,
            moves: self.moves(),
            scratch: reader.scratch_bytes(),
        };
        let check = |row: &[u8]| self.writer.check(row);
        let check: Option<LabelCheck<'_>> = (self.writer)
            .may_reject(reader.most_label())
            .then_some(&check);
        let fill = |window, labels: &mut Vec<u8>| reader.read_window(window, check, labels);
        mover.move_labels(&picture, request, fill, meter)
    }

    /// Writes the numbers of labels into a mask.
    ///
    /// # Errors
    /// A label without a number.
    pub(crate) fn write(&self, labels: &[u8], out: &mut [u8]) -> Result<(), SampleFault> {
        self.writer.write(labels, out)
    }
}

/// `size`: width and height of a mask. `image`: height and width of its image.
fn check_size(size: (u32, u32), image: (u32, u32)) -> Result<(), SampleFault> {
    if (size.1, size.0) == image {
        return Ok(());
    }
    let advice = match size == image {
        true => {
            ". Masks are used as stored: if this one was drawn on the image as stored, use \
             orientation 'stored', and if on the upright image, 'exif'"
        }
        false => "",
    };
    Err(FaultKind::Unsupported.fault(format!(
        "the mask has {} x {} pixels, and its image {} x {}: both must have one size{advice}",
        size.0, size.1, image.1, image.0
    )))
}

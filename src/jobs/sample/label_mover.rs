//! Moves labels through the steps of their picture.
//!
//! Runs where `sample` does. A label has three bytes, like a pixel. The steps are drawn again from
//! the numbers of the position, and each label comes from one place.

use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{Result, SampleFault};
use crate::jobs::sample::{ONLY, RowRequest, SampleDecoder};
use crate::jobs::stage_needs::label_bytes;
use crate::picture::jpeg::PixelRegion;
use crate::picture::read_header::DecodeCost;
use crate::picture::{ExifOrientation, PictureLimits};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::RandomStreams;
use crate::recipe::{LabelMoves, RowExtent, SampleProgram};

/// The state that is kept from picture to picture.
#[derive(Debug)]
pub(crate) struct LabelMover {
    decoder: SampleDecoder,
    /// Labels of the part of the picture that the first steps need.
    window: Vec<u8>,
    /// Labels of the row.
    row: Vec<u8>,
}

/// A picture whose labels are moved.
pub(crate) struct LabelPicture {
    /// Height and width, upright.
    pub(crate) size: (u32, u32),
    /// Height and width of the row.
    pub(crate) row: (u32, u32),
    pub(crate) moves: LabelMoves,
    /// Bytes that its labels take while they are read.
    pub(crate) scratch: u64,
}

impl LabelMover {
    /// `program`: that of labels ([`SampleProgram::for_labels`]).
    pub(crate) fn new(program: &SampleProgram, limits: &PictureLimits) -> Result<Self> {
        Ok(Self {
            decoder: SampleDecoder::new(program, limits)?,
            window: Vec::new(),
            row: Vec::new(),
        })
    }

    /// The extent of rows.
    pub(crate) fn extent(&self) -> RowExtent {
        self.decoder.program().extent
    }

    /// Moves the labels of a picture, and returns those of its row. `fill` sets the length of the
    /// buffer that it is given, which has the labels of an earlier picture.
    ///
    /// # Errors
    /// Those of `fill`; too little memory.
    pub(crate) fn move_labels(
        &mut self,
        picture: &LabelPicture,
        request: &RowRequest<'_, impl RandomStreams>,
        fill: impl FnOnce(PixelRegion, &mut Vec<u8>) -> std::result::Result<(), SampleFault>,
        meter: &mut StageMeter,
    ) -> std::result::Result<&[u8], SampleFault> {
        let (height, width) = picture.size;
        let of_labels = label_bytes(picture.size).saturating_add(label_bytes(picture.row));
        let whole = StoredPicture {
            size: (width, height),
            orientation: ExifOrientation::Normal,
            cost: DecodeCost::Rows {
                scratch: picture.scratch.saturating_add(of_labels),
            },
            pixel_box: None,
        };
        let stored = whole.with_box(request.part)?;
        let moves = picture.moves;
        let plan = (self.decoder).plan_with(stored, request, |steps| moves.replace(steps))?;
        let filled = fill(plan.window, &mut self.window);
        let across = plan.window.w as usize;
        let mut of_window = plan;
        (of_window.window.x, of_window.window.y) = (0, 0);
        self.row.clear();
        self.row.resize(label_bytes(picture.row) as usize, 0);
        filled?;
        let from = (&self.window[..], across);
        let row = &mut self.row;
        (self.decoder).fill_from_raw(ONLY, from, &of_window, request.size, row, meter)?;
        Ok(&self.row)
    }

    /// Frees all buffers if they hold more than `most` bytes.
    pub(crate) fn free_above(&mut self, most: usize) {
        let held = self.window.capacity() + self.row.capacity() + self.decoder.held_bytes();
        if held > most {
            self.free_buffers();
        }
    }

    pub(crate) fn free_buffers(&mut self) {
        self.decoder.free_buffers();
        (self.window, self.row) = (Vec::new(), Vec::new());
    }
}

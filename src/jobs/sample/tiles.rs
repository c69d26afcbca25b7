//! The tiles of an image and its overview, from one decode.
//!
//! Runs where `sample` does. The canvas of all tiles and the overview are two parts of the row.
//! They are made as two crops are.

use super::crop_set::SharedPicture;
use super::hull_writer::SharedDecode;
use super::{ONLY, OpenedAs, RowRequest, SampleDecoder};
use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{FaultKind, SampleFault};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::RandomStreams;
use crate::recipe::{OverviewPlace, RowExtent};

/// The part of the overview. The canvas is [`ONLY`].
const OVERVIEW: usize = 1;

impl SampleDecoder {
    /// Fills a row of tiles from the bytes of a file.
    pub(super) fn fill_tiles(
        &mut self,
        opened: OpenedAs,
        bytes: &[u8],
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let plan = |decoder: &mut Self, stored| decoder.plan_tiles(stored, request);
        self.share_decode(
            (opened, bytes, request.part),
            meter,
            plan,
            |decoder, of, meter| decoder.fill_canvas_and_overview(of, out, meter),
        )
    }

    /// Where the overview of an image of this upright height and width lies, if it has one.
    fn overview_place(&self, image: (u32, u32)) -> Option<OverviewPlace> {
        let RowExtent::Patches(rule) = self.program().extent else {
            return None;
        };
        rule.overview(rule.grid(image).ok()?)
    }

    fn plan_tiles(
        &mut self,
        stored: StoredPicture,
        request: &RowRequest<'_, impl RandomStreams>,
    ) -> Result<SharedDecode, SampleFault> {
        (request.check_size)(stored.upright_size())?;
        (self.image, self.source) = (stored.whole_size(), stored.upright_size());
        let has_overview = self.overview_place(stored.upright_size()).is_some();
        let parts = if has_overview { OVERVIEW + 1 } else { ONLY + 1 };
        for part in ONLY..parts {
            self.draw_part(part, stored, request)?;
        }
        self.plan_parts(stored, parts)
    }

    fn fill_canvas_and_overview(
        &mut self,
        (stored, shared, from): SharedPicture<'_>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let image = stored.upright_size();
        let overview = &self.parts[OVERVIEW].program;
        let tile = overview.row_bytes(overview.extent.of(image)) as usize;
        let needed = self.program().picture_row_bytes(image);
        if out.len() as u64 != needed {
            let message = "its ticket names a row with room for another number of tiles";
            return Err(SampleFault::new(FaultKind::Corrupt, message));
        }
        let parts = match self.overview_place(image) {
            None => [Some(out), None],
            Some(OverviewPlace::First) => {
                let (overview, canvas) = out.split_at_mut(tile);
                [Some(canvas), Some(overview)]
            }
            Some(OverviewPlace::Last) => {
                let (canvas, overview) = out.split_at_mut(out.len() - tile);
                [Some(canvas), Some(overview)]
            }
        };
        let plans = shared.plans_from(from.origin);
        for ((part, out), plan) in (ONLY..).zip(parts).zip(&plans) {
            if let Some(out) = out {
                self.fill_from_raw(part, (from.pixels, from.stride), plan, None, out, meter)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

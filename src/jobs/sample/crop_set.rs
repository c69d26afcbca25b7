//! Several crops of one image: one header, one decode of the smallest window that has all of them.
//!
//! Runs where `sample` does. A JPEG is decoded at the finest scale that a crop needs, so no crop is
//! made from a smaller image than alone. Each crop then is made as from an uncompressed file.

use crate::decode_plan::CropGeometry;
use crate::decode_plan::canvas_memory::check_reduction;
use crate::decode_plan::stored_picture::{SampleMemory, StoredPicture};
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::sample::hull_writer::{DecodedPixels, HullSource, SharedDecode};
use crate::jobs::sample::shared_resize::SharedResize;
use crate::jobs::sample::{OpenedAs, PIXEL, PartMaker, RowRequest, SampleDecoder, WindowRows};
use crate::jobs::stages;
use crate::picture::jpeg::{DecodeScale, JpegDecoder, PixelRegion};
use crate::picture::{FileFormat, PixelBox};
use crate::pool::job::RowParts;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::CropStreams;

/// A file that several parts are made from: how it is stored, the plans, and the decoded pixels.
pub(super) type SharedPicture<'a> = (StoredPicture, &'a SharedDecode, DecodedPixels<'a>);

impl SampleDecoder {
    /// Fills the crops of a row from the bytes of a file, and their geometries after them. Like
    /// [`SampleDecoder::make_row`] otherwise.
    pub(crate) fn make_crops(
        &mut self,
        bytes: &[u8],
        request: &RowRequest<'_, impl CropStreams>,
        out: &mut RowParts<'_>,
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        // The crops, then the geometries. A row for a device has all in one piece.
        let further = match &self.hulls {
            Some(_) => 0,
            None => self.parts.len(),
        };
        if out.further.len() != further {
            return Err(SampleFault::new(
                FaultKind::Corrupt,
                "its ticket names a row with another number of crops",
            ));
        }
        self.fill_caught(bytes, meter, |decoder, opened, meter| {
            decoder.crops_as(opened, bytes, request, out, meter)
        })
    }

    fn crops_as(
        &mut self,
        opened: OpenedAs,
        bytes: &[u8],
        request: &RowRequest<'_, impl CropStreams>,
        out: &mut RowParts<'_>,
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let plan = |decoder: &mut Self, stored| decoder.plan_crops(stored, request);
        self.share_decode(
            (opened, bytes, request.part),
            meter,
            plan,
            |decoder, of, meter| decoder.fill_all(of, out, meter),
        )
    }

    /// Decodes a file once for several parts of a row. `plan` draws their steps, `fill` makes them.
    pub(super) fn share_decode(
        &mut self,
        ((format, truncated), bytes, part): (OpenedAs, &[u8], Option<PixelBox>),
        meter: &mut StageMeter,
        plan: impl FnOnce(&mut Self, StoredPicture) -> Result<SharedDecode, SampleFault>,
        fill: impl FnOnce(&mut Self, SharedPicture<'_>, &mut StageMeter) -> Result<(), SampleFault>,
    ) -> Result<(), SampleFault> {
        if format == FileFormat::Jpeg {
            self.jpeg = JpegDecoder::with_truncation(&self.limits, truncated);
            return self.share_jpeg((bytes, part), meter, plan, fill);
        }
        let mut picture = self.open_raster((format, truncated), bytes)?;
        let stored = self.stored_raster((format, &picture), part)?;
        let shared = plan(self, stored)?;
        meter.lap(stages::OPEN);
        if let Some(pixels) = picture.raw_pixels() {
            let decoded = DecodedPixels {
                pixels,
                stride: stored.size.0 as usize,
                origin: (0, 0),
            };
            return fill(self, (stored, &shared, decoded), meter);
        }
        let window = shared.window;
        let mut pixels = std::mem::take(&mut self.shared_pixels);
        pixels.resize(PIXEL * window.w as usize * window.h as usize, 0);
        picture.decode_frame(&mut self.raster_scratch)?;
        meter.decoded += 1;
        let mut rows = WindowRows {
            picture,
            window,
            transparency: self.program().transparency,
            scratch: &mut self.raster_scratch,
        };
        rows.copy_all(&mut pixels)?;
        rows.picture.check_rest(rows.scratch)?;
        meter.lap(stages::DECODE);
        let decoded = DecodedPixels {
            pixels: &pixels,
            stride: window.w as usize,
            origin: (window.x, window.y),
        };
        let filled = fill(self, (stored, &shared, decoded), meter);
        self.shared_pixels = pixels;
        filled
    }

    fn share_jpeg(
        &mut self,
        (bytes, part): (&[u8], Option<PixelBox>),
        meter: &mut StageMeter,
        plan: impl FnOnce(&mut Self, StoredPicture) -> Result<SharedDecode, SampleFault>,
        fill: impl FnOnce(&mut Self, SharedPicture<'_>, &mut StageMeter) -> Result<(), SampleFault>,
    ) -> Result<(), SampleFault> {
        let (header, stored) = self.open_jpeg(bytes, part)?;
        let shared = plan(self, stored)?;
        meter.lap(stages::OPEN);
        let scratch = &mut self.jpeg_scratch;
        let decoded =
            self.jpeg
                .decode_region(bytes, &header, shared.scale, shared.window, scratch)?;
        meter.decoded += 1;
        meter.lap(stages::DECODE);
        let pixels = std::mem::take(&mut self.jpeg_scratch.rgb);
        let of_window = DecodedPixels {
            pixels: &pixels,
            stride: decoded.stride / PIXEL,
            origin: (decoded.x, decoded.y),
        };
        let filled = fill(self, (stored, &shared, of_window), meter);
        self.jpeg_scratch.rgb = pixels;
        filled
    }

    /// Draws the steps of each crop, and plans one decode for all of them.
    fn plan_crops(
        &mut self,
        stored: StoredPicture,
        request: &RowRequest<'_, impl CropStreams>,
    ) -> Result<SharedDecode, SampleFault> {
        (request.check_size)(stored.upright_size())?;
        for (crop, part) in (0..).zip(&mut self.parts) {
            let PartMaker { program, steps, .. } = part;
            program.crop_steps(stored.upright_size(), crop, request.random, steps)?;
        }
        self.plan_parts(stored, self.parts.len())
    }

    /// Plans one decode for the first `count` parts, whose steps are drawn.
    pub(super) fn plan_parts(
        &mut self,
        stored: StoredPicture,
        count: usize,
    ) -> Result<SharedDecode, SampleFault> {
        let parts = &self.parts[..count];
        let mut plans = Vec::with_capacity(count);
        let mut scale = DecodeScale::of_denominator(8);
        for PartMaker { program, steps, .. } in parts {
            let plan = stored.plan_decode(program, steps);
            if plan.scale.denominator() < scale.denominator() {
                scale = plan.scale;
            }
            plans.push(plan);
        }
        let mut memory = SampleMemory::default();
        for (plan, PartMaker { program, steps, .. }) in plans.iter_mut().zip(parts) {
            *plan = stored.plan_at(scale, plan.fold);
            let of_crop = stored.in_memory().sample_memory(plan, program, steps);
            check_reduction(of_crop.steep)?;
            memory.raise_all(&of_crop);
        }
        let windows = plans.iter().map(|plan| plan.window);
        let Some(window) = windows.reduce(hull) else {
            let message = "its recipe has an empty list of crops";
            return Err(SampleFault::new(FaultKind::Corrupt, message));
        };
        let pixels = u64::from(window.w) * u64::from(window.h);
        memory.decoder = stored.shared_decoder_memory(pixels);
        memory.tables = match (&self.hulls, &self.shared_resize) {
            (Some(hulls), _) => hulls.most_bytes(),
            (None, Some(_)) => SharedResize::most_bytes(&plans),
            (None, None) => 0,
        };
        self.make_room(memory.bytes())?;
        Ok(SharedDecode {
            scale,
            window,
            plans,
        })
    }

    /// Makes each crop, and writes the geometries.
    fn fill_all(
        &mut self,
        (stored, shared, from): SharedPicture<'_>,
        out: &mut RowParts<'_>,
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        if let Some(hulls) = &mut self.hulls {
            let source = HullSource {
                upright: stored.upright_size(),
                shared,
                from,
            };
            let steps = self.parts.iter().map(|part| &part.steps[..]);
            return hulls.write(steps, source, &mut self.resampler, out.first, meter);
        }
        let Some((geometries, crops)) = out.further.split_last_mut() else {
            return Ok(());
        };
        let crops =
            std::iter::once(&mut *out.first).chain(crops.iter_mut().map(|crop| &mut **crop));
        let geometries = geometries.chunks_exact_mut(CropGeometry::BYTES);
        let plans = shared.plans_from(from.origin);
        if let Some(shared) = &mut self.shared_resize {
            shared.reset();
        }
        for (part, ((plan, crop), geometry)) in plans.iter().zip(crops).zip(geometries).enumerate()
        {
            if let Some(shared) = &mut self.shared_resize {
                shared.begin_crop(plan, &plans[part + 1..]);
            }
            self.fill_from_raw(part, (from.pixels, from.stride), plan, None, crop, meter)?;
            let of_crop = CropGeometry::of(stored.upright_size(), &self.parts[part].steps);
            geometry.copy_from_slice(bytemuck::bytes_of(&of_crop));
        }
        Ok(())
    }
}

/// The smallest window that has both.
fn hull(a: PixelRegion, b: PixelRegion) -> PixelRegion {
    let (x, y) = (a.x.min(b.x), a.y.min(b.y));
    PixelRegion {
        x,
        y,
        w: (a.x + a.w).max(b.x + b.w) - x,
        h: (a.y + a.h).max(b.y + b.h) - y,
    }
}

#[cfg(test)]
pub(super) mod tests;

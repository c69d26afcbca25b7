//! What rays of a scene will take, before a process is started.
//!
//! In the consumer. One account: `build` decides by it, [`RaysBuilder::forecast`] gives it.

use crate::data::index::Index;
use crate::device::Device;
use crate::device::ray_launch::RaySceneSizes;
use crate::error::{Error, Result};
use crate::forecast::SceneForecast;
use crate::jobs::pictures::device_bytes::DeviceBytes;
use crate::jobs::pictures::jpeg_decoding::JpegDecoding;
use crate::jobs::rays::fields::{RayForm, RayLayout};
use crate::loader::rays::builder::RaysBuilder;
use crate::loader::rays::prepared::shape_of;
use crate::loader::scene::{
    Beside, Chosen, Judged, accepted, check_device, check_first_step, with_room,
};
use crate::plan::rays::{RayTableBuilder, mask_words};
use crate::pool::ring::Shape;

/// What follows from options and frames.
pub(super) struct Prepared {
    pub(super) form: RayForm,
    /// Of the ring.
    pub(super) shape: Shape,
    pub(super) forecast: SceneForecast,
    /// With a device: its number, and what is taken of it.
    pub(super) device: Option<(u32, DeviceBytes)>,
}

impl RaysBuilder {
    /// The memory that [`RaysBuilder::build`] would take, and whether decoded images lie in
    /// memory or in a file. Reads the scene and the headers of its files; decodes nothing,
    /// starts nothing. As if no other process shares its images.
    ///
    /// # Errors
    /// What `build` would refuse before it decodes: options that cannot work, a scene that
    /// cannot be read, a run that does not fit.
    pub fn forecast(self) -> Result<SceneForecast> {
        accepted(self.forecast_with_refusal()?)
    }

    /// The same, also of a run that does not fit a limit: with the error that
    /// [`RaysBuilder::forecast`] gives.
    ///
    /// # Errors
    /// The others of [`RaysBuilder::forecast`].
    pub fn forecast_with_refusal(mut self) -> Result<(SceneForecast, Option<Error>)> {
        self.check()?;
        let (_, chosen) = self.run.choose(self.source.take())?;
        let (prepared, refusal) = self.prepared(&chosen, &chosen.index()?)?;
        Ok(with_room((prepared.forecast, refusal)))
    }

    /// What can be said of options alone.
    pub(super) fn check(&self) -> Result<()> {
        self.checked_rays()?;
        self.rank.check()?;
        check_device(self.device, self.gpu_memory_limit)?;
        check_first_step(self.first_step)
    }

    /// # Errors
    /// Options that cannot work; files that cannot be read.
    pub(super) fn prepared(&self, chosen: &Chosen, index: &Index) -> Result<Judged<Prepared>> {
        let workers = self.run.crew.count()?;
        let form = RayForm {
            times: chosen.times,
            depths: chosen.has_depths(),
            alpha: self.run.alpha,
        };
        let layout = RayLayout::new(self.checked_rays()? as usize, form);
        let tables = table_bytes(chosen)?;
        let files = self.run.files(chosen, index)?;
        let device = match self.device {
            Device::Cpu => None,
            Device::Cuda(ordinal) => {
                let bytes = self.on_device(chosen, layout, tables);
                Some((ordinal, bytes.with_jpegs(JpegDecoding::of(files.jpegs))))
            }
        };
        let (slots, slot_bytes) = match device {
            None => (self.run.depth.unwrap_or(workers + 2), layout.bytes() as u64),
            // Workers hand coded images over, or nothing.
            Some((_, bytes)) => (workers + 2, bytes.row_bytes()),
        };
        let shape = Shape {
            slots: slots.max(1),
            rows: 1,
            slot_bytes,
            lanes: workers.max(1),
        };
        let beside = Beside {
            tables,
            device: device.map(|(_, bytes)| bytes),
            ..Beside::default()
        };
        let (forecast, refusal) = self.run.account(chosen, index, files, shape, beside)?;
        let prepared = Prepared {
            form,
            shape,
            forecast,
            device,
        };
        Ok((prepared, refusal))
    }

    fn on_device(&self, chosen: &Chosen, layout: RayLayout, tables: u64) -> DeviceBytes {
        let frames = &chosen.frames;
        let masked = (frames.frames.iter().enumerate()).filter(|(_, frame)| frame.has_mask);
        let words = masked.filter_map(|(image, _)| {
            let camera = frames.camera(image)?;
            Some(mask_words(camera.width, camera.height))
        });
        let shutters = (frames.frames.iter()).filter(|frame| frame.rolling_shutter.is_some());
        let sizes = RaySceneSizes {
            table: tables,
            masks: 8 * words.sum::<u64>(),
            cameras: frames.cameras.len() as u64,
            shutters: shutters.count() as u64,
            frames: frames.frames.len() as u64,
        };
        let all = 0..frames.places.len();
        DeviceBytes::new(
            all.filter_map(|image| frames.places.of(image)),
            sizes.bytes(),
            layout.bytes(),
            (self.run.depth, self.gpu_memory_limit),
            "rays, most_rays or depth",
        )
    }
}

/// Bytes of the table of the draws, at most: images with an empty mask take less.
fn table_bytes(chosen: &Chosen) -> Result<u64> {
    let mut images = Vec::with_capacity(chosen.frames.frames.len());
    for (image, frame) in chosen.frames.frames.iter().enumerate() {
        let camera = chosen.frames.camera(image);
        let size = camera.map_or((0, 0), |camera| (camera.width, camera.height));
        images.push((size, shape_of(chosen, image)?, frame.has_mask));
    }
    Ok(RayTableBuilder::most_bytes(images.into_iter()))
}

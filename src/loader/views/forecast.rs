//! What views of a scene will take, before a process is started.
//!
//! In the consumer. One account: `build` decides by it, [`ViewsBuilder::forecast`] gives it.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::data::index::Index;
use crate::device::Device;
use crate::device::scene_launch::SCENE_ALIGN;
use crate::device::view_launch::MOST_ROWS;
use crate::error::{self, Error, Result};
use crate::forecast::SceneForecast;
use crate::jobs::pictures::device_bytes::DeviceBytes;
use crate::jobs::pictures::jpeg_decoding::JpegDecoding;
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::views::queue::Queue;
use crate::jobs::views::shown::{Refused, ShownImages};
use crate::jobs::views::spec::ViewForm;
use crate::loader::scene::{
    Beside, Chosen, Judged, accepted, check_device, check_first_step, with_room,
};
use crate::loader::views::builder::ViewsBuilder;
use crate::plan::ViewOrder;
use crate::plan::rays::mask_words;
use crate::pool::ring::Shape;
use crate::store::Places;

/// Views that are made ahead, when nobody says another number, however many workers there
/// are: each takes a whole image.
const MOST_DEPTH: u32 = 8;

/// What follows from options and frames.
pub(super) struct Prepared {
    pub(super) order: ViewOrder,
    pub(super) form: ViewForm,
    pub(super) shown: ShownImages,
    /// Of the ring.
    pub(super) shape: Shape,
    /// Where the maps of cameras lie that are kept, and the most bytes that they may take.
    pub(super) maps: Places,
    pub(super) most_maps: u64,
    pub(super) forecast: SceneForecast,
    /// With a device: its number, and what is taken of it.
    pub(super) device: Option<(u32, DeviceBytes)>,
}

impl ViewsBuilder {
    /// The memory that [`ViewsBuilder::build`] would take, and whether decoded images lie in
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
    /// [`ViewsBuilder::forecast`] gives.
    ///
    /// # Errors
    /// The others of [`ViewsBuilder::forecast`].
    pub fn forecast_with_refusal(mut self) -> Result<(SceneForecast, Option<Error>)> {
        self.check()?;
        let (_, chosen) = self.run.choose(self.source.take())?;
        let (prepared, refusal) = self.prepared(&chosen, &chosen.index()?)?;
        Ok(with_room((prepared.forecast, refusal)))
    }

    /// What can be said of options alone.
    pub(super) fn check(&self) -> Result<()> {
        check_device(self.device, self.gpu_memory_limit)?;
        check_first_step(self.first_step)
    }

    /// # Errors
    /// What does not fit a device; options that cannot work.
    pub(super) fn prepared(&self, chosen: &Chosen, index: &Index) -> Result<Judged<Prepared>> {
        let workers = self.run.crew.count()?;
        let images = chosen.images.len() as u64;
        let order = ViewOrder::new(images, self.seed, self.shuffles, self.rank)?;
        let form = ViewForm {
            float: self.float,
            straight: self.undistort,
        };
        let frames = with_discs(chosen);
        let shown = ShownImages::new(&frames, form);
        let shown = shown.map_err(|refused| not_straight(&chosen.images, &refused))?;
        let view = shown.most_bytes(&frames);
        // A row's length is counted in 32 bits.
        if view > u64::from(u32::MAX) {
            return Err(Error::option(
                "downscale",
                format!(
                    "the largest view takes {}, and at most 4 GiB fit: raise `downscale`",
                    error::needed(view)
                ),
            ));
        }
        let depth = self.run.depth;
        let files = self.run.files(chosen, index)?;
        let device = match self.device {
            Device::Cpu => None,
            Device::Cuda(ordinal) => {
                let bytes = self.on_device(&frames, &shown, order, view)?;
                Some((ordinal, bytes.with_jpegs(JpegDecoding::of(files.jpegs))))
            }
        };
        let (slots, slot_bytes) = match device {
            None => (depth.unwrap_or((workers + 2).min(MOST_DEPTH)), view),
            // Workers hand coded images over, or nothing.
            Some((_, bytes)) => (workers + 2, bytes.row_bytes()),
        };
        let shape = Shape {
            slots: slots.max(1),
            rows: 1,
            slot_bytes,
            lanes: workers.max(1),
        };
        // A kernel makes its places anew, and workers show nothing.
        let (most_maps, worker) = match device {
            None => (
                most_maps(self.run.memory_limit),
                shown.worker_bytes(&frames),
            ),
            Some(_) => (0, 0),
        };
        let maps = shown.maps(&frames, most_maps)?.places;
        let beside = Beside {
            worker,
            maps: maps.bytes(),
            discs_are_masks: true,
            device: device.map(|(_, bytes)| bytes),
            ..Beside::default()
        };
        let (forecast, refusal) = self.run.account(chosen, index, files, shape, beside)?;
        let prepared = Prepared {
            order,
            form,
            shown,
            shape,
            maps,
            most_maps,
            forecast,
            device,
        };
        Ok((prepared, refusal))
    }

    fn on_device(
        &self,
        frames: &StoredFrames,
        shown: &ShownImages,
        order: ViewOrder,
        view: u64,
    ) -> Result<DeviceBytes> {
        let cameras = (0..frames.frames.len()).filter_map(|image| shown.camera(frames, image));
        let highest = cameras.map(|camera| camera.height).max();
        if let Some(rows) = highest.filter(|rows| *rows > MOST_ROWS) {
            return Err(Error::option(
                "downscale",
                format!(
                    "an image has {rows} rows, and a device shows at most {MOST_ROWS}: raise \
                     `downscale`, or use device cpu"
                ),
            ));
        }
        let masked = (frames.frames.iter().enumerate()).filter(|(_, frame)| frame.has_mask);
        let words = masked.filter_map(|(image, _)| {
            let camera = frames.camera(image)?;
            Some(mask_words(camera.width, camera.height))
        });
        let masks = (8 * words.sum::<u64>()).next_multiple_of(SCENE_ALIGN as u64);
        let shown = Queue::new(order, frames.frames.len(), self.first_step).shown();
        let places = shown.iter().map(|image| frames.places.of(*image as usize));
        Ok(DeviceBytes::new(
            places.flatten(),
            masks,
            view as usize,
            (self.run.depth, self.gpu_memory_limit),
            "depth",
        ))
    }
}

/// The frames, of which those with a crop radius have a mask too: before any is read.
fn with_discs(chosen: &Chosen) -> Cow<'_, StoredFrames> {
    if chosen.crop_radii.iter().all(Option::is_none) {
        return Cow::Borrowed(&chosen.frames);
    }
    let mut frames = chosen.frames.clone();
    for (frame, radius) in frames.frames.iter_mut().zip(&chosen.crop_radii) {
        frame.has_mask |= radius.is_some();
    }
    Cow::Owned(frames)
}

/// The most bytes that maps of cameras may take: what does not fit is made anew for each
/// view.
fn most_maps(memory_limit: Option<u64>) -> u64 {
    const MOST: u64 = 256 << 20;
    memory_limit.map_or(MOST, |limit| MOST.min(limit / 8))
}

fn not_straight(images: &[PathBuf], refused: &Refused) -> Error {
    let path = images.get(refused.image);
    let name = path.map_or_else(String::new, |path| path.display().to_string());
    Error::option(
        "undistort",
        format!(
            "`undistort` is not possible for {name} (lens {}): {}. Remove `undistort`",
            refused.lens, refused.why,
        ),
    )
}

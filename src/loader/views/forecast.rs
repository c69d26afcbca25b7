//! What views of a scene will take, before a process is started.
//!
//! In the consumer. One account: `build` decides by it, [`ViewsBuilder::forecast`] gives it.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::forecast::SceneForecast;
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::views::shown::{Refused, ShownImages};
use crate::jobs::views::spec::ViewForm;
use crate::loader::scene::{Beside, Chosen, check_first_step, checked};
use crate::loader::views::builder::ViewsBuilder;
use crate::plan::ViewOrder;
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
}

impl ViewsBuilder {
    /// The memory that [`ViewsBuilder::build`] would take, and whether decoded images lie in
    /// memory or in a file. Reads the scene and the headers of its files; decodes nothing,
    /// starts nothing. As if no other process shares its images.
    ///
    /// # Errors
    /// What `build` would refuse before it decodes: options that cannot work, a scene that
    /// cannot be read, a run that does not fit.
    pub fn forecast(mut self) -> Result<SceneForecast> {
        check_first_step(self.first_step)?;
        let (_, chosen) = self.run.choose(self.source.take())?;
        checked(self.prepared(&chosen, &chosen.index()?)?.forecast)
    }

    /// # Errors
    /// What does not fit; options that cannot work.
    pub(super) fn prepared(&self, chosen: &Chosen, index: &Index) -> Result<Prepared> {
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
        let slot = shown.most_bytes(&frames);
        // A row's length is counted in 32 bits.
        if slot > u64::from(u32::MAX) {
            return Err(Error::option(
                "downscale",
                format!("the largest view takes {slot} bytes, more than 4 GiB: raise downscale"),
            ));
        }
        let depth = self.run.depth;
        let shape = Shape {
            slots: depth.unwrap_or((workers + 2).min(MOST_DEPTH)).max(1),
            rows: 1,
            slot_bytes: slot,
            lanes: workers.max(1),
        };
        let most_maps = most_maps(self.run.memory_limit);
        let maps = shown.maps(&frames, most_maps)?.places;
        let beside = Beside {
            worker: shown.worker_bytes(&frames),
            maps: maps.bytes(),
            discs_are_masks: true,
            ..Beside::default()
        };
        let forecast = self.run.account(chosen, index, shape, beside)?;
        Ok(Prepared {
            order,
            form,
            shown,
            shape,
            maps,
            most_maps,
            forecast,
        })
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
            "`undistort` is not possible for {name}, taken with a lens {}: {}; leave `undistort` out",
            refused.lens, refused.why,
        ),
    )
}

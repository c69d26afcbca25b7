//! With which camera an image is shown.
//!
//! The same in the consumer and in workers: both make it from the frames. Never in here:
//! pixels.

use crate::camera::{Camera, Lens, UndistortedCamera};
use crate::error::Result;
use crate::scene::image_store::StoreLayout;
use crate::scene::jobs::shared::frames::{DEPTH_BYTES, StoredFrames};
use crate::scene::jobs::views::fields::ViewLayout;
use crate::scene::jobs::views::spec::ViewFormat;

/// How the images of a run are shown.
#[derive(Debug)]
pub struct OutputCameras {
    /// Of each camera of the frames; none of those that no frame has.
    cameras: Vec<Option<OutputCamera>>,
    form: ViewFormat,
}

/// How the images of a camera are shown.
#[derive(Debug, Clone)]
pub(crate) enum OutputCamera {
    AsItIs(Camera),
    Straight(Box<UndistortedCamera>),
}

/// A camera whose images cannot be shown, and the first image that it took.
#[derive(Debug)]
pub(crate) struct UnsupportedLens {
    pub(crate) image: usize,
    /// As reports call it.
    pub(crate) lens: &'static str,
    pub(crate) why: String,
}

impl OutputCamera {
    fn of(camera: &Camera, form: ViewFormat) -> std::result::Result<Self, String> {
        if !form.straight {
            return Ok(Self::AsItIs(*camera));
        }
        let straight = camera.undistorted().map_err(|fault| fault.to_string())?;
        if camera.width.max(camera.height) > LONGEST_SIDE {
            return Err(format!(
                "a side is longer than {LONGEST_SIDE} pixels: raise `downscale`"
            ));
        }
        Ok(match straight.is_unchanged() {
            true => Self::AsItIs(*straight.camera()),
            false => Self::Straight(Box::new(straight)),
        })
    }

    pub(crate) fn camera(&self) -> &Camera {
        match self {
            Self::AsItIs(camera) => camera,
            Self::Straight(straight) => straight.camera(),
        }
    }
}

impl OutputCameras {
    /// # Errors
    /// A lens whose images cannot be straightened, where that is asked for.
    pub(crate) fn new(
        frames: &StoredFrames,
        form: ViewFormat,
    ) -> std::result::Result<Self, UnsupportedLens> {
        let mut cameras: Vec<Option<OutputCamera>> = vec![None; frames.cameras.len()];
        for (image, frame) in frames.frames.iter().enumerate() {
            let number = frame.camera as usize;
            if let (Some(camera), Some(to @ None)) =
                (frames.cameras.get(number), cameras.get_mut(number))
            {
                let shown = OutputCamera::of(camera, form).map_err(|why| UnsupportedLens {
                    image,
                    lens: name_of(&camera.lens),
                    why,
                })?;
                *to = Some(shown);
            }
        }
        Ok(Self { cameras, form })
    }

    /// How an image is shown; none where there is no such image.
    pub(crate) fn of(&self, frames: &StoredFrames, image: usize) -> Option<&OutputCamera> {
        let camera = frames.frames.get(image)?.camera as usize;
        self.cameras.get(camera)?.as_ref()
    }

    /// The camera of an image as it is shown.
    pub(crate) fn camera(&self, frames: &StoredFrames, image: usize) -> Option<&Camera> {
        self.of(frames, image).map(OutputCamera::camera)
    }

    /// Where the arrays of an image lie.
    pub(crate) fn layout(&self, frames: &StoredFrames, image: usize) -> Option<ViewLayout> {
        let (frame, camera) = (frames.frames.get(image)?, self.camera(frames, image)?);
        Some(ViewLayout {
            height: camera.height as usize,
            width: camera.width as usize,
            channels: frames.channels(),
            float: self.form.float,
            mask: frame.has_mask,
            depth: frame.has_depth,
        })
    }

    /// Bytes of the largest row.
    pub(crate) fn most_bytes(&self, frames: &StoredFrames) -> u64 {
        let layouts = (0..frames.frames.len()).filter_map(|image| self.layout(frames, image));
        layouts
            .map(|layout| layout.bytes() as u64)
            .max()
            .unwrap_or(0)
    }

    /// What a worker takes to show any of the images beside what decoding takes: the pixels of
    /// the store where they do not go to the row as they are, and with them mask and depths.
    pub(crate) fn worker_bytes(&self, frames: &StoredFrames) -> u64 {
        let mut most = [0u64; 4];
        for (image, frame) in frames.frames.iter().enumerate() {
            let (Some(source), Some(shown)) = (frames.camera(image), self.of(frames, image)) else {
                continue;
            };
            let straight = matches!(shown, OutputCamera::Straight(_));
            let pixels = u64::from(source.width) * u64::from(source.height);
            let copied = straight || self.form.float;
            let parts = [
                u64::from(copied) * frames.channels() as u64 * pixels,
                u64::from(straight && frame.has_mask) * pixels,
                u64::from(frame.has_depth) * DEPTH_BYTES * pixels,
                // A row's places, and their two numbers.
                u64::from(straight) * (MAP_BYTES + 16) * u64::from(shown.camera().width),
            ];
            for (most, part) in most.iter_mut().zip(parts) {
                *most = (*most).max(part);
            }
        }
        most.iter().sum()
    }

    /// Where the maps of cameras lie that are kept, `most` bytes of them: of the cameras
    /// that more than one image has, in their order.
    ///
    /// # Errors
    /// More bytes than can be counted.
    pub(crate) fn maps(&self, frames: &StoredFrames, most: u64) -> Result<MapPlaces> {
        let mut images = vec![0u32; self.cameras.len()];
        for frame in &frames.frames {
            if let Some(count) = images.get_mut(frame.camera as usize) {
                *count = count.saturating_add(1);
            }
        }
        let mut left = most;
        let mut bytes = Vec::new();
        let mut numbers = Vec::with_capacity(images.len());
        for (shown, images) in self.cameras.iter().zip(images) {
            let wanted = match shown {
                Some(OutputCamera::Straight(straight)) if images > 1 => {
                    let to = straight.camera();
                    MAP_BYTES * u64::from(to.width) * u64::from(to.height)
                }
                Some(_) | None => 0,
            };
            numbers.push((1..=left).contains(&wanted).then_some(bytes.len()));
            if (1..=left).contains(&wanted) {
                left -= wanted;
                bytes.push(wanted);
            }
        }
        let places = StoreLayout::new(bytes)?;
        Ok(MapPlaces { places, numbers })
    }
}

/// Of images whose places can be told.
const LONGEST_SIDE: u32 = 131_070;

/// Bytes of a pixel's place.
const MAP_BYTES: u64 = 8;

/// The maps of cameras that are kept.
#[derive(Debug, Clone)]
pub(crate) struct MapPlaces {
    pub(crate) places: StoreLayout,
    /// Of each camera its number among them.
    numbers: Vec<Option<usize>>,
}

impl MapPlaces {
    /// The number of a camera's map; none where it is not kept.
    pub(crate) fn of(&self, camera: usize) -> Option<usize> {
        self.numbers.get(camera).copied().flatten()
    }
}

/// As reports call a lens.
fn name_of(lens: &Lens) -> &'static str {
    match lens {
        Lens::Pinhole => "pinhole",
        Lens::Brown { .. } => "brown",
        Lens::Rational { .. } => "rational",
        Lens::Fisheye { .. } => "fisheye",
        Lens::Fisheye624 { .. } => "fisheye624",
        Lens::ThinPrismFisheye { .. } => "thin_prism_fisheye",
        Lens::Fov { .. } => "fov",
        Lens::Equirectangular => "equirectangular",
        Lens::Orthographic => "orthographic",
    }
}

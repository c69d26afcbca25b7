//! The output camera: the camera with which an image is returned.
//!
//! Consumer and workers compute it from the frames, with the same result. Not here: pixels.

use crate::camera::{Camera, Lens, UndistortedCamera};
use crate::error::Result;
use crate::scene::image_store::StoreLayout;
use crate::scene::jobs::shared::frames::{DEPTH_BYTES, StoredFrames};
use crate::scene::jobs::views::fields::ViewLayout;
use crate::scene::jobs::views::spec::ViewFormat;

/// The output cameras of a run.
#[derive(Debug)]
pub struct OutputCameras {
    /// For each camera of the frames; `None` if no frame uses it.
    cameras: Vec<Option<OutputCamera>>,
    form: ViewFormat,
}

/// How the images of a camera are returned.
#[derive(Debug, Clone)]
pub(crate) enum OutputCamera {
    AsItIs(Camera),
    Straight(Box<UndistortedCamera>),
}

/// A camera whose lens does not support views, and the first image that uses it.
#[derive(Debug)]
pub(crate) struct UnsupportedLens {
    pub(crate) image: usize,
    /// Name of the lens in reports.
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
    /// Straightening is requested, and a lens does not support it.
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
                let output_camera =
                    OutputCamera::of(camera, form).map_err(|why| UnsupportedLens {
                        image,
                        lens: name_of(&camera.lens),
                        why,
                    })?;
                *to = Some(output_camera);
            }
        }
        Ok(Self { cameras, form })
    }

    /// The output camera of an image; `None` if there is no such image.
    pub(crate) fn of(&self, frames: &StoredFrames, image: usize) -> Option<&OutputCamera> {
        let camera = frames.frames.get(image)?.camera as usize;
        self.cameras.get(camera)?.as_ref()
    }

    /// The parameters of an image's output camera.
    pub(crate) fn camera(&self, frames: &StoredFrames, image: usize) -> Option<&Camera> {
        self.of(frames, image).map(OutputCamera::camera)
    }

    /// Layout of the arrays of an image.
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

    /// Bytes that a worker needs to return any of the images, without decoding: pixels of the image
    /// store that are not copied directly to the row, and their mask and depths.
    pub(crate) fn worker_bytes(&self, frames: &StoredFrames) -> u64 {
        let mut most = [0u64; 4];
        for (image, frame) in frames.frames.iter().enumerate() {
            let (Some(source), Some(output_camera)) =
                (frames.camera(image), self.of(frames, image))
            else {
                continue;
            };
            let straight = matches!(output_camera, OutputCamera::Straight(_));
            let pixels = u64::from(source.width) * u64::from(source.height);
            let copied = straight || self.form.float;
            let parts = [
                u64::from(copied) * frames.channels() as u64 * pixels,
                u64::from(straight && frame.has_mask) * pixels,
                u64::from(frame.has_depth) * DEPTH_BYTES * pixels,
                // Source coordinates of a row, with two values of a pixel.
                u64::from(straight) * (MAP_BYTES + 16) * u64::from(output_camera.camera().width),
            ];
            for (most, part) in most.iter_mut().zip(parts) {
                *most = (*most).max(part);
            }
        }
        most.iter().sum()
    }

    /// Layout of the shared straightening maps, of up to `most` bytes: for the cameras that more
    /// than one image uses, in their order.
    ///
    /// # Errors
    /// A number of bytes that overflows.
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
        for (output_camera, images) in self.cameras.iter().zip(images) {
            let wanted = match output_camera {
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

/// Longest side of an image whose source coordinates can be represented.
const LONGEST_SIDE: u32 = 131_070;

/// Bytes of a source coordinate.
const MAP_BYTES: u64 = 8;

/// Layout of the shared straightening maps.
#[derive(Debug, Clone)]
pub(crate) struct MapPlaces {
    pub(crate) places: StoreLayout,
    /// For each camera, the index of its map.
    numbers: Vec<Option<usize>>,
}

impl MapPlaces {
    /// Index of a camera's map; `None` if it is not shared.
    pub(crate) fn of(&self, camera: usize) -> Option<usize> {
        self.numbers.get(camera).copied().flatten()
    }
}

/// Name of a lens in reports.
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

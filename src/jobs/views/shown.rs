//! With which camera an image is shown.
//!
//! The same in the consumer and in workers: both make it from the frames. Never in here:
//! pixels.

use crate::camera::Camera;
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::views::fields::ViewLayout;
use crate::jobs::views::spec::ViewForm;

/// How the images of a run are shown.
#[derive(Debug)]
pub(crate) struct ShownImages {
    /// Of each camera of the frames.
    cameras: Vec<Camera>,
    form: ViewForm,
}

impl ShownImages {
    pub(crate) fn new(frames: &StoredFrames, form: ViewForm) -> Self {
        Self {
            cameras: frames.cameras.clone(),
            form,
        }
    }

    /// The camera of an image as it is shown; none where there is no such image.
    pub(crate) fn camera(&self, frames: &StoredFrames, image: usize) -> Option<&Camera> {
        self.cameras.get(frames.frames.get(image)?.camera as usize)
    }

    /// Where the arrays of an image lie; none where there is no such image.
    pub(crate) fn layout(&self, frames: &StoredFrames, image: usize) -> Option<ViewLayout> {
        let (frame, camera) = (frames.frames.get(image)?, self.camera(frames, image)?);
        Some(ViewLayout {
            height: camera.height as usize,
            width: camera.width as usize,
            channels: 3,
            float: self.form.float,
            mask: frame.has_mask,
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
}

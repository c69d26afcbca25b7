//! One image of a COLMAP model, before its name is looked for.
//!
//! In the consumer. Plain values.

/// The most images, or cameras, of a model.
pub(super) const MOST_IMAGES: u64 = 1 << 22;

pub(super) struct ModelImage {
    pub(super) id: u32,
    /// From the world to the camera: a quaternion, w first.
    pub(super) quaternion: [f64; 4],
    pub(super) translation: [f64; 3],
    pub(super) camera: u32,
    pub(super) name: String,
    /// Where in the file it stands, for errors.
    pub(super) at: String,
}

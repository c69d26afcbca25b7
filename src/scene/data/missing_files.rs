//! Files that a scene names but that are missing or unreadable.
//!
//! Runs in the consumer. Counts all, names a few.

use std::path::PathBuf;

use serde::Serialize;

use crate::data::index::{lossy, lossy_option};

/// Number of images that are named.
pub(super) const NAMED: usize = 10;

/// Files that a scene names but that are missing or unreadable. The field names are JSON keys of
/// `--json` of `index`, `rays` and `views`, and must not change.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct MissingFiles {
    /// Images that are missing or unreadable, or whose mask is missing. Their frames are left out.
    #[serde(rename = "missing")]
    pub images: u64,
    /// The first 10 of them.
    #[serde(rename = "missing_images")]
    pub named: Vec<UnreadImage>,
    /// Those images whose mask is missing.
    #[serde(rename = "missing_masks")]
    pub masks: u64,
    /// Frames with a missing depth. They are kept.
    #[serde(rename = "missing_depths")]
    pub depths: u64,
    /// The point cloud, if it is missing.
    #[serde(rename = "missing_points", serialize_with = "lossy_option")]
    pub points: Option<PathBuf>,
}

impl MissingFiles {
    pub(super) fn add(&mut self, image: UnreadImage) {
        self.images += 1;
        self.masks += u64::from(image.misses_mask);
        if self.named.len() < NAMED {
            self.named.push(image);
        }
    }

    /// Text for the user: one line each for missing images, masks, depths and points.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(first) = self.named.first() {
            let masks = match self.masks {
                0 => String::new(),
                masks => format!(" ({masks} because their mask is missing)"),
            };
            lines.push(format!(
                "{} images are left out{masks}, first {}: {}",
                self.images, first.name, first.reason
            ));
        }
        if self.depths > 0 {
            lines.push(format!("{} depths are missing", self.depths));
        }
        if let Some(points) = &self.points {
            lines.push(format!("the point cloud is missing: {}", points.display()));
        }
        lines
    }
}

/// An image that is missing or unreadable. Its frame is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnreadImage {
    /// Name in the scene's file.
    pub name: String,
    /// Expected path. In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub reason: String,
    #[serde(skip)]
    pub(super) misses_mask: bool,
}

//! Where a scene comes from.
//!
//! Runs in the consumer.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::scene::data::{Scene, SceneOptions};

/// Where a scene comes from.
#[derive(Debug)]
#[non_exhaustive]
pub enum SceneSource {
    /// A path. `build` reads the scene after the coordinator has started.
    Path(PathBuf, SceneOptions),
    Read(Box<Scene>),
}

impl From<Scene> for SceneSource {
    fn from(scene: Scene) -> Self {
        Self::Read(Box::new(scene))
    }
}

impl From<&Path> for SceneSource {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_owned(), SceneOptions::default())
    }
}

impl From<PathBuf> for SceneSource {
    fn from(path: PathBuf) -> Self {
        Self::Path(path, SceneOptions::default())
    }
}

impl From<&str> for SceneSource {
    fn from(path: &str) -> Self {
        Self::from(Path::new(path))
    }
}

impl SceneSource {
    /// Moves the source out and leaves an empty one.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::from(PathBuf::new()))
    }

    /// Returns the scene. An image may have at most `max_pixels` pixels.
    ///
    /// # Errors
    /// A scene that cannot be read.
    pub(crate) fn open(self, max_pixels: u64) -> Result<Scene> {
        match self {
            Self::Read(scene) => Ok(*scene),
            Self::Path(path, options) => {
                // The pixel limit of the run also limits the scene.
                let options = SceneOptions {
                    max_pixels,
                    ..options
                };
                Scene::open(&path, &options)
            }
        }
    }
}

//! Where a scene comes from.
//!
//! In the consumer.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::scene::data::{Scene, SceneOptions};

/// Where a scene comes from.
#[derive(Debug)]
#[non_exhaustive]
pub enum SceneSource {
    /// Read within `build`, behind the start of the coordinator.
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
    /// Hands it over, where its place must stay.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::from(PathBuf::new()))
    }

    /// The scene, whose images have `max_pixels` at most.
    ///
    /// # Errors
    /// A scene that cannot be read.
    pub(crate) fn open(self, max_pixels: u64) -> Result<Scene> {
        match self {
            Self::Read(scene) => Ok(*scene),
            Self::Path(path, options) => {
                // A limit of the run is one of its scene.
                let options = SceneOptions {
                    max_pixels,
                    ..options
                };
                Scene::open(&path, &options)
            }
        }
    }
}

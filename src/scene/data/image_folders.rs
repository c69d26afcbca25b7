//! Names of folders that may contain a scene's images.

/// Folders that may contain the images, relative to the scene's folder.
pub(super) const IMAGE_FOLDERS: [&str; 7] =
    ["images", "input", "rgb", "image", "imgs", "color", "frames"];

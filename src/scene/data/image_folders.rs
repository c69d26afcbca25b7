//! The folders that images of a scene may lie in.

/// Where the images of a scene may lie, from its folder on.
pub(super) const IMAGE_FOLDERS: [&str; 7] =
    ["images", "input", "rgb", "image", "imgs", "color", "frames"];

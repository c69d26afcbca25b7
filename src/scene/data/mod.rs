//! Scenes: images with a camera and a pose each, for NeRF and splatting.
//!
//! Runs in the consumer. Reads `transforms.json` of nerfstudio, instant-ngp, Blender, D-NeRF and
//! ScanNet++, COLMAP models, and LLFF's `poses_bounds.npy`. Reads only headers of images, in
//! threads that end before the call returns. Not here: decoded pixels, rays, processes.
//!
//! A faulty file is an [`Error`](crate::Error) that names file and key. Images that are missing or
//! unreadable are counted and named in the report, or rejected ([`SceneOptions::strict`]).
//!
//! - `scene`: the scene type; `options`: how it is read; `open`: reads it;
//! - `description_files`: files that describe a scene; `unsupported_layouts`: layouts that are
//!   recognised but not read;
//! - `bounds`: bounds of a scene's numbers;
//! - `transforms_keys`: parses `transforms.json`; `json_values`: its values; `fault_keys`: keys in
//!   errors; `transforms`: its dialects; `colmap`: COLMAP models; `llff`: `poses_bounds.npy`;
//! - `scene_description`: content of the files; `camera_description`: a camera before the image's
//!   size is known;
//! - `images`: files of images, masks and depths; `image_folders`: names of image folders;
//! - `missing_files`: files that are missing; `foreign_names`: file names from other systems;
//! - `world_orientation`: orientation, centre and scale; `eigen`: 3 x 3 eigenvectors with LAPACK's
//!   signs; `split`: frames for training and evaluation;
//! - `point_cloud`: the type; `ply`: PLY files; `scene_points`: the points of a scene;
//! - `rolling_shutter`: pose of a camera while its rows are read;
//! - `scene_summary`: a scene in numbers; `scene_svg`: a scene as a drawing.

mod bounds;
mod camera_description;
mod colmap;
mod description_files;
mod eigen;
mod fault_keys;
mod foreign_names;
mod image_folders;
mod images;
mod json_values;
mod llff;
mod missing_files;
mod open;
mod options;
mod ply;
mod point_cloud;
mod rolling_shutter;
mod scene;
mod scene_description;
mod scene_points;
mod scene_summary;
mod scene_svg;
mod split;
#[cfg(test)]
mod tests;
mod transforms;
mod transforms_keys;
mod unsupported_layouts;
mod world_orientation;

pub use colmap::ModelFolder;
pub use missing_files::{MissingFiles, UnreadImage};
pub use options::{
    CenterMethod, ImageOrder, OrientationMethod, SceneFormat, SceneOptions, SplitBy,
};
pub use point_cloud::PointCloud;
pub use scene::{Frame, Pose, RollingShutter, Scene, SceneSplit, WorldTransform};
pub use scene_summary::{CameraCount, SceneSummary};
pub use scene_svg::scene_svg;

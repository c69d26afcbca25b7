//! Scenes: images with a camera and a pose each, for NeRF and splatting.
//!
//! In the consumer. Reads `transforms.json` of nerfstudio, instant-ngp, Blender, D-NeRF
//! and ScanNet++, and COLMAP models. Of images only headers are read, by threads that
//! have ended when the call returns. Never in here: a decoded pixel, a ray, a process.
//!
//! What is wrong with a file is an [`Error`](crate::Error) that names file and key.
//! Images that are missing or cannot be read are counted and named in the report, or
//! refused ([`SceneOptions::strict`]).
//!
//! - `scene`: what a scene is; `options`: how it is read; `open`: from files to a scene;
//! - `ways`: which files describe a scene; `layouts`: files that are named and not read;
//! - `bounds`: which numbers a scene may have;
//! - `keys`: `transforms.json` as text; `json_values`: its numbers and words;
//!   `fault_keys`: which key a fault is about; `transforms`: its dialects; `colmap`: models;
//!   `llff`: `poses_bounds.npy`;
//! - `found`: what the files say, before images are looked for; `declared`: a camera
//!   before its image's size is known; `images`: files of images, masks and depths;
//!   `image_folders`: folders that images may lie in;
//!   `unread`: files that are missing; `names`: files whose names another system wrote;
//! - `place`: orientation, centre and scale; `eigen`: 3 x 3 eigenvectors with LAPACK's
//!   signs; `split`: frames for training and evaluation;
//! - `points`: a point cloud; `ply`: of a PLY file; `cloud`: that of a scene;
//! - `shutter`: where a camera is while its rows are read;
//! - `report`: a scene in numbers; `drawing`: as SVG.

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

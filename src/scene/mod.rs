//! Scenes: images with a camera and a pose each, and the rays and views that train NeRF and
//! splatting models.
//!
//! - `data`: reads scenes: frames, cameras, poses, points;
//! - `draw`: samples the pixels of rays, and the images of views;
//! - `image_store`: decoded images in memory that all processes of a machine share;
//! - `jobs`: the jobs of the pool on scenes: rays, views, masks, uploads of images to a device;
//! - `memory_plan`: memory of a run, computed before it starts;
//! - `run`: the public streams [`rays`] and [`views`];
//! - `options`: options of both, defined once for flags and keywords.
//!
//! The lens formulas are in [`camera`](crate::camera). The image loader imports nothing from here.

pub(crate) mod data;
pub(crate) mod draw;
pub(crate) mod image_store;
pub(crate) mod jobs;
pub(crate) mod memory_plan;
pub(crate) mod options;
pub(crate) mod run;

pub use data::{
    CameraCount, CenterMethod, Frame, ImageOrder, MissingFiles, ModelFolder, OrientationMethod,
    PointCloud, Pose, RollingShutter, Scene, SceneFormat, SceneOptions, SceneSplit, SceneSummary,
    SplitBy, UnreadImage, WorldTransform, scene_svg,
};
pub use jobs::shared::batch::{SceneArrays, SceneBatch};
pub use memory_plan::{
    ImageStorePlan, SceneDeviceMemory, SceneMemory, SceneMemoryPlan, SceneWorkerMemory,
};
pub use options::{RaysOptions, ViewsOptions};
pub use run::{SceneBuilder, SceneKind, SceneReport, SceneRun, SceneSource, SceneState};
pub use run::{rays, views};

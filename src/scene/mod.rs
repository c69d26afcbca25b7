//! Scenes: images with a camera and a pose each, and the rays and views that NeRF and splatting
//! models train on.
//!
//! - `data`: what files say of a scene: frames, cameras, poses, points;
//! - `draw`: which pixel a ray looks through, which image a view shows;
//! - `store`: decoded images that all processes of a machine share;
//! - `jobs`: the work of the pool on them: rays, views, masks, images on their way to a device;
//! - `forecast`: the memory of a run, before it;
//! - `run`: what a trainer holds: [`rays`] and [`views`];
//! - `options`: the options of both, one definition for flags and keywords.
//!
//! The lenses themselves are in [`camera`](crate::camera). A loader of images imports nothing
//! from here.

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

//! The points of a scene, in its world.
//!
//! Runs in the consumer. Reads the file on every call and keeps nothing.

use crate::error::Result;
use crate::scene::data::point_cloud::{PointCloud, PointsFile};
use crate::scene::data::scene::Scene;
use crate::scene::data::{colmap, ply};

impl Scene {
    /// The points of `ply_file_path` or `points3D`, in the scene's world. `None` if the files name
    /// no points. Takes 15 bytes a point.
    ///
    /// # Errors
    /// A file that is missing, truncated, or in another format.
    pub fn points(&self) -> Result<Option<PointCloud>> {
        let mut points = match &self.points_file {
            None => return Ok(None),
            Some(PointsFile::Ply(path)) => ply::read(path)?,
            Some(PointsFile::Colmap(path)) => colmap::points(path)?,
        };
        for point in &mut points.xyz {
            *point = self.to_scene.point(point.map(f64::from)).map(|v| v as f32);
        }
        Ok(Some(points))
    }
}

//! The points of a scene, in its world.
//!
//! In the consumer. Reads them anew with each call; nothing is kept.

use crate::error::Result;
use crate::scene::data::point_cloud::{PointCloud, PointsFile};
use crate::scene::data::scene::Scene;
use crate::scene::data::{colmap, ply};

impl Scene {
    /// The points of `ply_file_path` or `points3D`, placed as the poses are. None where
    /// the files name none. 15 bytes a point.
    ///
    /// # Errors
    /// A file that is missing, cut off, or of another form.
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

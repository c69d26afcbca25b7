//! A point cloud, and where a scene's lies.
//!
//! In the consumer. Plain values.

use std::path::PathBuf;

/// The most points of a file that are read: 7.5 GB.
pub(super) const MOST_POINTS: u64 = 500_000_000;

/// Points in the world of a scene.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Points {
    pub xyz: Vec<[f32; 3]>,
    /// Of each point; empty where the file has no colours.
    pub rgb: Vec<[u8; 3]>,
}

impl Points {
    pub(super) fn with_capacity(points: usize) -> Self {
        Self {
            xyz: Vec::with_capacity(points),
            rgb: Vec::with_capacity(points),
        }
    }
}

/// Where the points of a scene lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PointsFile {
    Ply(PathBuf),
    /// `points3D.bin` or `points3D.txt`.
    Colmap(PathBuf),
}

//! A point cloud, and the file of a scene's points.
//!
//! Runs in the consumer. Plain values.

use std::path::{Path, PathBuf};

use crate::error::{self, Error, Result};
use crate::sys::memory;

/// Most points that are read from a file: 7.5 GB.
pub(super) const MOST_POINTS: u64 = 500_000_000;

/// Bytes of a point with its colour.
const BYTES: u64 = 15;

/// Minimum number of points per memory allocation.
const AT_LEAST: usize = 1 << 16;

/// Rejects `count` points of the file at `path` if they need more than half of the available
/// memory. A hole of a sparse file takes no disk space, but its zeros are points.
pub(super) fn check_memory(path: &Path, count: u64) -> Result<()> {
    check_room(path, count, memory::available_bytes())
}

fn check_room(path: &Path, count: u64, available: Option<u64>) -> Result<()> {
    let (bytes, room) = (
        count.saturating_mul(BYTES),
        available.map(|bytes| bytes / 2),
    );
    match room {
        Some(room) if bytes > room => Err(Error::dataset(
            path,
            format!(
                "{count} points need {}, which is over half of the available memory ({}): use a \
                 file with fewer points, or more memory",
                error::size_rounded_up(bytes),
                error::size_rounded_down(room)
            ),
        )),
        _ => Ok(()),
    }
}

/// Points in the world of a scene.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct PointCloud {
    pub xyz: Vec<[f32; 3]>,
    /// Colour of each point; empty if the file has no colours.
    pub rgb: Vec<[u8; 3]>,
}

impl PointCloud {
    /// Adds one of `count` points. Memory grows with the points, so a truncated file with a large
    /// count takes little.
    pub(super) fn push(&mut self, count: u64, place: [f64; 3], colour: Option<[u8; 3]>) {
        let had = self.xyz.len();
        if had == self.xyz.capacity() {
            let left = usize::try_from(count).unwrap_or(usize::MAX) - had.min(count as usize);
            let more = left.min(had.max(AT_LEAST));
            self.xyz.reserve_exact(more);
            if colour.is_some() {
                self.rgb.reserve_exact(more);
            }
        }
        self.xyz.push(place.map(|value| value as f32));
        self.rgb.extend(colour);
    }
}

/// The file of a scene's points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PointsFile {
    Ply(PathBuf),
    /// `points3D.bin` or `points3D.txt`.
    Colmap(PathBuf),
}

impl PointsFile {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Ply(path) | Self::Colmap(path) => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_over_half_of_the_memory_are_refused() {
        let check = |available| check_room(Path::new("a/cloud.ply"), 100, available);
        check(None).unwrap();
        check(Some(3000)).unwrap();
        let e = check(Some(2999)).unwrap_err().to_string();
        for expected in [
            "a/cloud.ply",
            "100 points",
            "1.47 KiB, which is over half of the available memory (1.46 KiB)",
            "fewer",
        ] {
            assert!(e.contains(expected), "{e}");
        }
    }

    #[test]
    fn memory_is_taken_as_points_come() {
        let mut points = PointCloud::default();
        for _ in 0..10 {
            points.push(MOST_POINTS, [0.0; 3], Some([0; 3]));
        }
        assert!(
            points.xyz.capacity() <= AT_LEAST,
            "{}",
            points.xyz.capacity()
        );
        let count = 3 * AT_LEAST as u64 + 5;
        let mut points = PointCloud::default();
        for _ in 0..count {
            points.push(count, [1.0, 2.0, 3.0], None);
        }
        assert_eq!(
            points.xyz.capacity() as u64,
            count,
            "and no more than are due"
        );
        assert_eq!(points.rgb.capacity(), 0);
    }
}

//! From a view to the pixels of its image, its depth and its mask.
//!
//! Pure. A ray a pixel, through its centre, by the library's cameras.

use featherload::Camera;
use featherload::camera::Optics;

use super::place::Place;
use super::texture::Room;

/// One image of the room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct View {
    pub(super) camera: Camera,
    pub(super) place: Place,
    pub(super) time: Option<f64>,
    pub(super) mask: Option<Mask>,
}

/// Which pixels count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mask {
    Empty,
    /// The one in the last row and the first column but one.
    Pixel,
    /// All but a disc and the left edge.
    Partial,
    /// Every other one.
    Board,
}

/// What a view shows, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// 3 bytes a pixel; black where the lens has no ray.
    pub(super) rgb: Vec<u8>,
    /// In the given unit; 0 where the lens has no ray.
    pub(super) depth: Vec<u16>,
}

impl View {
    /// Depths are in lengths of the camera's ray, whose z is 1 for perspective lenses
    /// and whose length is 1 for others: along the camera's axis, or along the ray.
    pub(super) fn show(&self, room: &Room, depth_unit: f64) -> Shown {
        let optics = Optics::new(&self.camera);
        let mut shown = Shown {
            rgb: Vec::new(),
            depth: Vec::new(),
        };
        for (row, col) in self.pixels() {
            let ray = optics.unproject(f64::from(col) + 0.5, f64::from(row) + 0.5);
            let (color, depth) = ray.map_or(([0; 3], 0.0), |ray| {
                let origin = self.place.point(ray.origin);
                let direction = self.place.direction(ray.direction);
                let reach = room.reach(origin, direction);
                let hit = [0, 1, 2].map(|axis| origin[axis] + reach * direction[axis]);
                (room.color(hit, self.time.unwrap_or(0.0)), reach)
            });
            shown.rgb.extend(color);
            shown.depth.push((depth / depth_unit + 0.5) as u16);
        }
        shown
    }

    /// 255 for pixels that count, else 0; none without a mask.
    pub(super) fn mask(&self) -> Option<Vec<u8>> {
        let mask = self.mask?;
        let Camera { width, height, .. } = self.camera;
        let counts = |row: u32, col: u32| match mask {
            Mask::Empty => false,
            Mask::Pixel => (row, col) == (height - 1, 1),
            Mask::Partial => {
                let (x, y) = (col.abs_diff(width / 2), row.abs_diff(height / 3));
                col > 3 && x * x + y * y > width * height / 16
            }
            Mask::Board => (row + col).is_multiple_of(2),
        };
        let levels = self.pixels().map(|(row, col)| match counts(row, col) {
            true => 255,
            false => 0,
        });
        Some(levels.collect())
    }

    /// How much of the room is seen, where the image has an alpha channel: nothing at
    /// the left edge, all of it from the middle on.
    pub(super) fn alpha(&self) -> Vec<u8> {
        let width = self.camera.width;
        let levels = self.pixels().map(|(_, col)| (510 * col / width).min(255));
        levels.map(|level| level as u8).collect()
    }

    /// Rows and columns.
    fn pixels(&self) -> impl Iterator<Item = (u32, u32)> {
        let Camera { width, height, .. } = self.camera;
        (0..height).flat_map(move |row| (0..width).map(move |col| (row, col)))
    }
}

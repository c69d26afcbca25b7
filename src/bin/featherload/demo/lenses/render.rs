//! Renders the image, depth and mask of a view.
//!
//! Pure. One ray for each pixel, through its centre, by the library's cameras.

use featherload::Camera;
use featherload::camera::CameraOptics;

use super::place::{CameraMotion, CameraPlace};
use super::texture::TexturedRoom;

/// One image of the room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RenderView {
    pub(super) camera: Camera,
    /// With a shutter, the place at its start.
    pub(super) place: CameraPlace,
    pub(super) shutter: Option<ShutterMotion>,
    pub(super) time: Option<f64>,
    pub(super) mask: Option<MaskPixels>,
    /// Pixels whose centres lie farther from the image's middle have the colour [`BEYOND`].
    pub(super) crop_radius: Option<f64>,
}

/// A rolling shutter. The point (u, v), both 0 to 1 over the image, is seen after this part of the
/// motion: `timing[0] + timing[1] u + timing[2] v`. instant-ngp's fourth number, blur, is left out:
/// no single ray has the colour of a blurred pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ShutterMotion {
    pub(super) timing: [f64; 3],
    pub(super) motion: CameraMotion,
}

/// Magenta, which no wall has: wall levels are 8 to 248.
const BEYOND: [u8; 3] = [255, 0, 255];

/// Which pixels count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskPixels {
    Empty,
    /// Only the pixel in the last row and the second column.
    Pixel,
    /// All but a disc and the left edge.
    Partial,
    /// Every other pixel.
    Board,
}

/// What a view shows, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RenderedImage {
    /// 3 bytes per pixel. Black where the lens has no ray, [`BEYOND`] outside the crop radius.
    pub(super) rgb: Vec<u8>,
    /// In the given unit. 0 where the lens has no ray, and beyond the crop radius.
    pub(super) depth: Vec<u16>,
}

impl RenderView {
    /// Depths are multiples of the camera's ray. Its z is 1 for perspective lenses, so depths lie
    /// along the camera's axis. Its length is 1 for others, so depths lie along the ray.
    pub(super) fn show(&self, room: &TexturedRoom, depth_unit: f64) -> RenderedImage {
        let optics = CameraOptics::new(&self.camera);
        let mut shown = RenderedImage {
            rgb: Vec::new(),
            depth: Vec::new(),
        };
        for (row, col) in self.pixels() {
            let (x, y) = (f64::from(col) + 0.5, f64::from(row) + 0.5);
            let (color, depth) = match optics.unproject(x, y) {
                _ if self.is_beyond(x, y) => (BEYOND, 0.0),
                None => ([0; 3], 0.0),
                Some(ray) => {
                    let place = self.place_at(x, y);
                    let origin = place.point(ray.origin);
                    let direction = place.direction(ray.direction);
                    let reach = room.reach(origin, direction);
                    let hit = [0, 1, 2].map(|axis| origin[axis] + reach * direction[axis]);
                    (room.color(hit, self.time.unwrap_or(0.0)), reach)
                }
            };
            shown.rgb.extend(color);
            shown.depth.push((depth / depth_unit + 0.5) as u16);
        }
        shown
    }

    /// 255 for pixels that count, else 0. None without a mask.
    pub(super) fn mask(&self) -> Option<Vec<u8>> {
        let mask = self.mask?;
        let Camera { width, height, .. } = self.camera;
        let counts = |row: u32, col: u32| match mask {
            MaskPixels::Empty => false,
            MaskPixels::Pixel => (row, col) == (height - 1, 1),
            MaskPixels::Partial => {
                let (x, y) = (col.abs_diff(width / 2), row.abs_diff(height / 3));
                col > 3 && x * x + y * y > width * height / 16
            }
            MaskPixels::Board => (row + col).is_multiple_of(2),
        };
        let levels = self.pixels().map(|(row, col)| match counts(row, col) {
            true => 255,
            false => 0,
        });
        Some(levels.collect())
    }

    /// The alpha of a pixel, if the image has an alpha channel: 0 at the left edge, opaque from the
    /// middle on.
    pub(super) fn alpha(&self) -> Vec<u8> {
        let width = self.camera.width;
        let levels = self.pixels().map(|(_, col)| (510 * col / width).min(255));
        levels.map(|level| level as u8).collect()
    }

    /// The camera's place when it sees the image point (x, y).
    fn place_at(&self, x: f64, y: f64) -> CameraPlace {
        let Some(ShutterMotion { timing, motion }) = &self.shutter else {
            return self.place;
        };
        let (u, v) = (
            x / f64::from(self.camera.width),
            y / f64::from(self.camera.height),
        );
        let [begin, by_u, by_v] = timing;
        self.place.moved(motion, begin + by_u * u + by_v * v)
    }

    /// Whether the image point (x, y) is beyond the crop radius.
    fn is_beyond(&self, x: f64, y: f64) -> bool {
        let Camera { width, height, .. } = self.camera;
        let (x, y) = (x - 0.5 * f64::from(width), y - 0.5 * f64::from(height));
        self.crop_radius
            .is_some_and(|radius| x * x + y * y > radius * radius)
    }

    /// Rows and columns.
    fn pixels(&self) -> impl Iterator<Item = (u32, u32)> {
        let Camera { width, height, .. } = self.camera;
        (0..height).flat_map(move |row| (0..width).map(move |col| (row, col)))
    }
}

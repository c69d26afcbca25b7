//! How much of the world a pixel sees, as in nerfstudio's ray bundles.
//!
//! Source: nerfstudio, `cameras/cameras.py`, the end of `_generate_rays_from_coords` (`pixel_area`,
//! `directions_norm`). Used in every process.

use super::lens::equirectangular;
use super::model::Lens;
use super::optics::CameraOptics;

/// The values of nerfstudio's `RayBundle` in addition to a ray's direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelFootprint {
    /// `|d - dx| |d - dy|`, where `d`, `dx` and `dy` are unit directions: through the point,
    /// through one pixel to the right, and through one pixel below. 0 for parallel rays. Does not
    /// depend on the camera's rotation.
    pub pixel_area: f64,
    /// Length along the ray of one unit of depth: the length of nerfstudio's directions before they
    /// are normalised. Perspective lenses: `|(x, y, 1)|`. [`Lens::Fisheye624`]: `1 / cos(theta)`,
    /// or 1 at 90 degrees and beyond. Other lenses: 1.
    pub directions_norm: f64,
}

impl CameraOptics {
    /// The footprint of the ray through `(x, y)`, in pixels; `None` if there is no ray.
    ///
    /// If the lens ends within the next pixel, the previous pixel is used instead. If it ends on
    /// both sides, the area is 0.
    pub fn footprint(&self, x: f64, y: f64) -> Option<PixelFootprint> {
        let ray = self.unproject(x, y)?;
        let here = ray.unit();
        let step = |dx: f64, dy: f64| {
            let next = self.beside(x + dx, y + dy);
            let next = next.or_else(|| self.beside(x - dx, y - dy));
            next.map_or(0.0, |next| apart(here, next))
        };
        Some(PixelFootprint {
            pixel_area: step(1.0, 0.0) * step(0.0, 1.0),
            directions_norm: self.directions_norm(ray.direction),
        })
    }

    /// [`PixelFootprint::directions_norm`] of a direction of this camera's rays.
    pub(super) fn directions_norm(&self, [x, y, z]: [f64; 3]) -> f64 {
        let length = (x * x + y * y + z * z).sqrt();
        match self.camera().lens {
            // Not sideways, within the precision of f64.
            Lens::Fisheye624 { .. } if z > 1e-15 => length / z,
            _ if self.camera().lens.is_perspective() => length,
            _ => 1.0,
        }
    }

    /// The direction through a point, which may be outside the image. If the image is the whole
    /// sphere, it wraps around.
    fn beside(&self, x: f64, y: f64) -> Option<[f64; 3]> {
        if self.camera().lens == Lens::Equirectangular {
            return Some(equirectangular::direction(self.to_image_plane(x, y)));
        }
        self.unproject(x, y).map(|ray| ray.unit())
    }
}

fn apart(a: [f64; 3], b: [f64; 3]) -> f64 {
    let [x, y, z] = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    (x * x + y * y + z * z).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::Camera;

    fn camera(lens: Lens) -> CameraOptics {
        CameraOptics::new(&Camera {
            width: 200,
            height: 100,
            fx: 100.0,
            fy: 100.0,
            cx: 100.0,
            cy: 50.0,
            lens,
        })
    }

    #[test]
    fn a_pinhole_sees_the_square_of_its_pixel_in_the_middle_and_less_beside() {
        let middle = camera(Lens::Pinhole).footprint(100.0, 50.0).unwrap();
        assert_eq!(middle.directions_norm, 1.0);
        assert!((middle.pixel_area - 1e-4).abs() < 2e-8, "{middle:?}");
        let edge = camera(Lens::Pinhole).footprint(0.0, 50.0).unwrap();
        assert!((edge.directions_norm - 2f64.sqrt()).abs() < 1e-15);
        // 1 / norm3 of the solid angle.
        assert!((edge.pixel_area / 1e-4 - 0.5f64.powf(1.5)).abs() < 1e-2);
    }

    #[test]
    fn the_last_column_of_a_sphere_goes_on_round_it() {
        let sphere = camera(Lens::Equirectangular);
        let inside = sphere.footprint(100.5, 50.5).unwrap();
        let last = sphere.footprint(199.5, 50.5).unwrap();
        assert!((inside.pixel_area / last.pixel_area - 1.0).abs() < 1e-9);
        assert_eq!(last.directions_norm, 1.0);
    }

    #[test]
    fn parallel_rays_have_no_area_and_the_edge_of_a_lens_has_one() {
        let flat = camera(Lens::Orthographic).footprint(3.5, 4.5).unwrap();
        assert_eq!((flat.pixel_area, flat.directions_norm), (0.0, 1.0));
        let barrel = camera(Lens::Brown {
            k: [-0.3, 0.0, 0.0, 0.0],
            p: [0.0; 2],
        });
        // r - 0.3 r3 ends at 0.7027.
        let edge = barrel.footprint(170.0, 50.0).unwrap();
        assert_eq!(barrel.unproject(171.0, 50.0), None);
        assert!(edge.pixel_area > 0.0);
        assert_eq!(barrel.footprint(171.0, 50.0), None);
    }

    #[test]
    fn the_norm_of_the_fisheye_of_aria_is_that_of_depth_along_z() {
        let (k, p, s) = ([0.0; 6], [0.0; 2], [0.0; 4]);
        let aria = camera(Lens::Fisheye624 { k, p, s });
        let sixty = 100.0 + 100.0 * std::f64::consts::FRAC_PI_3;
        let norm = aria.footprint(sixty, 50.0).unwrap().directions_norm;
        assert!((norm - 2.0).abs() < 1e-12);
        let behind = aria.footprint(100.0 + 200.0, 50.0).unwrap();
        assert_eq!(behind.directions_norm, 1.0);
    }
}

//! Projects and unprojects one point at a time.
//!
//! The scalar method; `unprojector` has a vectorised one. Used in every process.

use std::f64::consts::PI;

use super::lens::fisheye624::Fisheye624Coefficients;
use super::lens::lens_coefficients::{LensCoefficients, RadialFactor};
use super::lens::{equirectangular, fov, from_angles, orthographic, rational, to_angles, turning};
use super::model::{Camera, Lens, Ray};

/// The limit of inversion of a lens, from its radial part. Beyond its first turning point two rays
/// share one pixel, and Newton's method converges to either, or not at all. Tangential terms move
/// the limit slightly; that is checked for each point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LensLimits {
    /// Perspective lenses: the first invalid radius `r` of `(x / z, y / z)`, which may be infinite.
    /// Fisheyes: the first invalid angle to the axis, at most pi.
    pub radius: f64,
}

/// A camera with its limit of inversion, for more than one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CameraOptics {
    camera: Camera,
    limits: LensLimits,
}

impl Camera {
    /// Computes the limits of inversion. Finds roots of a polynomial, which takes some
    /// microseconds. [`CameraOptics`] keeps the result.
    pub fn limits(&self) -> LensLimits {
        let radius = match &self.lens {
            Lens::Pinhole | Lens::Fov { .. } | Lens::Equirectangular | Lens::Orthographic => {
                f64::INFINITY
            }
            Lens::Brown { k, .. } => turning(k, f64::INFINITY),
            Lens::Rational { k, .. } => rational::limit(k),
            Lens::Fisheye { k } | Lens::ThinPrismFisheye { k, .. } => turning(k, PI),
            Lens::Fisheye624 { k, .. } => turning(k, PI),
        };
        LensLimits { radius }
    }

    /// The ray in camera coordinates through the image point `(x, y)` in pixels. Points outside the
    /// image have rays too. `None` where the lens cannot be inverted: beyond the first turning
    /// point of its distortion, where the image is folded over, or where the result does not
    /// project back to within 1e-12 focal lengths.
    ///
    /// For more than one point use [`CameraOptics`], for many
    /// [`CameraUnprojector`](super::CameraUnprojector).
    pub fn unproject(&self, x: f64, y: f64) -> Option<Ray> {
        CameraOptics::new(self).unproject(x, y)
    }

    /// The image point of a point in camera coordinates, in pixels. It may be outside the image.
    /// `None` behind a perspective lens, or where the lens cannot be inverted (see
    /// [`unproject`](Camera::unproject)).
    pub fn project(&self, point: [f64; 3]) -> Option<[f64; 2]> {
        CameraOptics::new(self).project(point)
    }
}

impl CameraOptics {
    pub fn new(camera: &Camera) -> Self {
        Self {
            camera: *camera,
            limits: camera.limits(),
        }
    }

    pub fn camera(&self) -> &Camera {
        &self.camera
    }

    pub fn limits(&self) -> LensLimits {
        self.limits
    }

    /// Like [`Camera::unproject`].
    pub fn unproject(&self, x: f64, y: f64) -> Option<Ray> {
        let bent = self.to_image_plane(x, y);
        if !(bent[0].is_finite() && bent[1].is_finite()) {
            return None;
        }
        let limit = self.limits.radius;
        let direction = match &self.camera.lens {
            Lens::Pinhole => forward(bent),
            Lens::Brown { .. } | Lens::Rational { .. } => {
                forward(self.bending()?.undistort(limit, bent)?)
            }
            Lens::Fov { omega } => forward(fov::undistort(*omega, bent)?),
            Lens::Fisheye { .. } | Lens::ThinPrismFisheye { .. } => {
                from_angles(self.bending()?.undistort(limit, bent)?)
            }
            Lens::Fisheye624 { k, p, s } => {
                let (k, p, s) = (*k, *p, *s);
                from_angles(Fisheye624Coefficients { k, p, s }.undistort(limit, bent)?)
            }
            Lens::Equirectangular => {
                if !equirectangular::covers(bent) {
                    return None;
                }
                equirectangular::direction(bent)
            }
            Lens::Orthographic => orthographic::FORWARD,
        };
        let origin = match self.camera.lens {
            Lens::Orthographic => orthographic::origin(bent),
            _ => [0.0; 3],
        };
        let finite = direction.iter().chain(&origin).all(|c| c.is_finite());
        finite.then_some(Ray { origin, direction })
    }

    /// Like [`Camera::project`].
    pub fn project(&self, point: [f64; 3]) -> Option<[f64; 2]> {
        let limit = self.limits.radius;
        let bent = match &self.camera.lens {
            Lens::Pinhole => plane(point)?,
            Lens::Brown { .. } | Lens::Rational { .. } => {
                self.bending()?.distort(limit, plane(point)?)?
            }
            Lens::Fov { omega } => fov::distort(*omega, plane(point)?),
            Lens::Fisheye { .. } | Lens::ThinPrismFisheye { .. } => {
                self.bending()?.distort(limit, to_angles(point)?)?
            }
            Lens::Fisheye624 { k, p, s } => {
                let (k, p, s) = (*k, *p, *s);
                Fisheye624Coefficients { k, p, s }.distort(limit, to_angles(point)?)?
            }
            Lens::Equirectangular => equirectangular::distort(point)?,
            Lens::Orthographic => orthographic::distort(point)?,
        };
        let Camera { fx, fy, cx, cy, .. } = self.camera;
        let at = [bent[0] * fx + cx, bent[1] * fy + cy];
        (at[0].is_finite() && at[1].is_finite()).then_some(at)
    }

    pub(super) fn to_image_plane(self, x: f64, y: f64) -> [f64; 2] {
        let Camera { fx, fy, cx, cy, .. } = self.camera;
        [(x - cx) / fx, (y - cy) / fy]
    }

    /// Coefficients of lenses that distort a plane or angles; `None` for other kinds.
    fn bending(&self) -> Option<LensCoefficients<'_>> {
        let none = [0.0; 2];
        let (radial, p, s) = match &self.camera.lens {
            Lens::Brown { k, p } => (RadialFactor::Series(k), *p, none),
            Lens::Rational { k, p } => (RadialFactor::Quotient(k), *p, none),
            Lens::Fisheye { k } => (RadialFactor::Series(k), none, none),
            Lens::ThinPrismFisheye { k, p, s } => (RadialFactor::Series(k), *p, *s),
            _ => return None,
        };
        Some(LensCoefficients { radial, p, s })
    }
}

/// `(x / z, y / z)`; `None` behind the camera.
fn plane([x, y, z]: [f64; 3]) -> Option<[f64; 2]> {
    (z > 0.0).then(|| [x / z, y / z])
}

fn forward([x, y]: [f64; 2]) -> [f64; 3] {
    [x, y, 1.0]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lenses as calibrations give them, weak and strong.
    fn lens() -> impl Strategy<Value = Lens> {
        let part = |most: f64| -most..most;
        let brown = (
            prop::array::uniform4(part(0.3)),
            prop::array::uniform2(part(0.02)),
        );
        let rational = (
            prop::array::uniform6(part(0.3)),
            prop::array::uniform2(part(0.02)),
        );
        let fisheye = prop::array::uniform4(part(0.1));
        let prism = (
            prop::array::uniform4(part(0.1)),
            prop::array::uniform2(part(0.01)),
            prop::array::uniform2(part(0.01)),
        );
        let aria = (
            prop::array::uniform6(part(0.1)),
            prop::array::uniform2(part(0.01)),
            prop::array::uniform4(part(0.01)),
        );
        prop_oneof![
            Just(Lens::Pinhole),
            brown.prop_map(|(k, p)| Lens::Brown { k, p }),
            brown_radial(),
            rational.prop_map(|(k, p)| Lens::Rational { k, p }),
            fisheye.prop_map(|k| Lens::Fisheye { k }),
            prism.prop_map(|(k, p, s)| Lens::ThinPrismFisheye { k, p, s }),
            aria.prop_map(|(k, p, s)| Lens::Fisheye624 { k, p, s }),
            part(3.0).prop_map(|omega| Lens::Fov { omega }),
            Just(Lens::Equirectangular),
            Just(Lens::Orthographic),
        ]
    }

    fn brown_radial() -> impl Strategy<Value = Lens> {
        prop::array::uniform4(-1.0..1.0f64).prop_map(|k| Lens::Brown { k, p: [0.0; 2] })
    }

    /// Cameras of odd and even sizes; the principal point in the middle, or anywhere.
    pub(crate) fn camera() -> impl Strategy<Value = Camera> {
        let size = (1u32..2000, 1u32..2000);
        let focal = (0.3..3.0f64, 0.8..1.25f64);
        let centre = prop::option::of((-0.2..1.2f64, -0.2..1.2f64));
        (size, focal, centre, lens()).prop_map(|((width, height), (zoom, aspect), centre, lens)| {
            let (across, down) = centre.unwrap_or((0.5, 0.5));
            let longer = f64::from(width.max(height));
            Camera {
                width,
                height,
                fx: zoom * longer,
                fy: zoom * longer * aspect,
                cx: across * f64::from(width),
                cy: down * f64::from(height),
                lens,
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn what_has_a_ray_is_seen_where_the_ray_came_from(
            camera in camera(),
            points in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 50),
        ) {
            let optics = CameraOptics::new(&camera);
            for (x, y) in points {
                let (x, y) = (x * f64::from(camera.width), y * f64::from(camera.height));
                let Some(ray) = optics.unproject(x, y) else { continue };
                prop_assert_eq!(camera.unproject(x, y), Some(ray));
                let on = |far: f64| {
                    let along = |i: usize| ray.origin[i] + far * ray.direction[i];
                    [along(0), along(1), along(2)]
                };
                for far in [0.5, 1.0, 7.0] {
                    // A hair's breadth from the limit the ray may round to its other side.
                    let Some([u, v]) = optics.project(on(far)) else {
                        prop_assert!(near_the_edge(&optics, on(far)), "{} {}", x, y);
                        continue;
                    };
                    let steep = steepness(&optics, ray.direction);
                    let close = 1e-9 * steep.max(1.0);
                    prop_assert!((u - x).abs() < close && (v - y).abs() < close,
                        "{} {} became {} {}", x, y, u, v);
                }
            }
        }

        #[test]
        fn what_is_seen_in_the_image_has_a_ray(
            camera in camera(),
            points in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64, -0.5..2.0f64), 50),
        ) {
            let optics = CameraOptics::new(&camera);
            for (x, y, z) in points {
                let Some([u, v]) = optics.project([x, y, z]) else { continue };
                let (width, height) = (f64::from(camera.width), f64::from(camera.height));
                if !(0.0..width).contains(&u) || !(0.0..height).contains(&v) {
                    continue;
                }
                let Some(ray) = optics.unproject(u, v) else {
                    prop_assert!(near_the_edge(&optics, [x, y, z]), "{} {} {}", x, y, z);
                    continue;
                };
                let [u2, v2] = optics.project([0, 1, 2].map(|i| ray.origin[i] + ray.direction[i]))
                    .unwrap_or([u, v]);
                prop_assert!((u - u2).abs() < 1e-6 && (v - v2).abs() < 1e-6);
            }
        }
    }

    /// How many pixels a direction's error of one unit makes, over the focal length.
    fn steepness(optics: &CameraOptics, [x, y, z]: [f64; 3]) -> f64 {
        match optics.camera.lens {
            // Tangents near 90 degrees.
            _ if optics.camera.lens.is_perspective() => ((x * x + y * y) / (z * z)).sqrt(),
            _ => 1.0,
        }
    }

    /// Whether the point is at the edge of the lens's view.
    fn near_the_edge(optics: &CameraOptics, [x, y, z]: [f64; 3]) -> bool {
        let across = (x * x + y * y).sqrt();
        let at = if optics.camera.lens.is_perspective() {
            across / z
        } else {
            libm::atan2(across, z)
        };
        let edge = optics.limits.radius;
        (at - edge).abs() < 1e-6 || at > 1e6
    }

    fn plain(lens: Lens) -> Camera {
        Camera {
            width: 641,
            height: 480,
            fx: 300.0,
            fy: 310.0,
            cx: 320.5,
            cy: 240.0,
            lens,
        }
    }

    #[test]
    fn the_principal_point_looks_straight_ahead_through_every_lens() {
        let (k, p) = ([0.1, -0.02, 0.01, 0.0], [0.01, -0.02]);
        let six = [0.1, -0.02, 0.01, 0.0, 0.02, 0.01];
        for lens in [
            Lens::Pinhole,
            Lens::Brown { k, p },
            Lens::Rational { k: six, p },
            Lens::Fisheye { k },
            Lens::Fisheye624 {
                k: six,
                p,
                s: [0.01; 4],
            },
            Lens::ThinPrismFisheye {
                k,
                p,
                s: [0.01, 0.02],
            },
            Lens::Fov { omega: 0.9 },
            Lens::Equirectangular,
            Lens::Orthographic,
        ] {
            let ray = plain(lens).unproject(320.5, 240.0).unwrap();
            for (given, wanted) in ray.direction.into_iter().zip([0.0, 0.0, 1.0]) {
                assert!((given - wanted).abs() < 1e-15, "{lens:?}: {ray:?}");
            }
            assert_eq!(plain(lens).project([0.0, 0.0, 3.0]), Some([320.5, 240.0]));
        }
    }

    #[test]
    fn the_axes_are_right_down_forward() {
        let ray = plain(Lens::Pinhole).unproject(320.5 + 300.0, 240.0 + 155.0);
        assert_eq!(ray.unwrap().direction, [1.0, 0.5, 1.0]);
        let lens = Lens::Fisheye { k: [0.0; 4] };
        let [x, y, z] = plain(lens)
            .unproject(320.5 + 30.0, 240.0 + 93.0)
            .unwrap()
            .direction;
        assert!(x > 0.0 && y > x && z > 0.9);
        let ray = plain(Lens::Orthographic).unproject(320.5 + 30.0, 240.0 - 31.0);
        assert_eq!(ray.unwrap().origin, [0.1, -0.1, 0.0]);
    }

    #[test]
    fn beyond_the_turning_point_there_is_no_ray_and_nothing_is_seen() {
        let k = [-0.3, 0.0, 0.0, 0.0];
        let p = [0.0; 2];
        let camera = plain(Lens::Brown { k, p });
        // r - 0.3 r3 turns round at r = 1.054, where it is 0.703.
        assert!((camera.limits().radius - 1.0540925533894598).abs() < 1e-12);
        assert!(camera.unproject(320.5 + 300.0 * 0.70, 240.0).is_some());
        assert_eq!(camera.unproject(320.5 + 300.0 * 0.71, 240.0), None);
        assert!(camera.project([1.05, 0.0, 1.0]).is_some());
        assert_eq!(camera.project([1.06, 0.0, 1.0]), None);
        for lens in [
            Lens::Brown { k, p: [1e-4, 0.0] },
            Lens::Fisheye {
                k: [-0.2, 0.0, 0.0, 0.0],
            },
            Lens::ThinPrismFisheye {
                k: [-0.2, 0.0, 0.0, 0.0],
                p: [1e-4, 0.0],
                s: [1e-4, 0.0],
            },
            Lens::Rational {
                k: [-0.3, 0.0, 0.0, 0.0, 0.0, 0.0],
                p: [1e-4, 0.0],
            },
            Lens::Fisheye624 {
                k: [-0.2, 0.0, 0.0, 0.0, 0.0, 0.0],
                p: [1e-4, 0.0],
                s: [1e-4; 4],
            },
            Lens::Fov { omega: 1.6 },
        ] {
            assert_eq!(
                plain(lens).unproject(320.5, 240.0 + 310.0),
                None,
                "{lens:?}"
            );
        }
    }

    #[test]
    fn nothing_is_seen_behind_a_perspective_lens_but_a_fisheye_looks_back() {
        for point in [[0.1, 0.2, -1.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.0]] {
            assert_eq!(plain(Lens::Pinhole).project(point), None);
            assert_eq!(plain(Lens::Fov { omega: 0.5 }).project(point), None);
        }
        let fisheye = plain(Lens::Fisheye { k: [0.0; 4] });
        let [x, _] = fisheye.project([1.0, 0.0, -1.0]).unwrap();
        assert!((x - 320.5 - 300.0 * 0.75 * std::f64::consts::PI).abs() < 1e-9);
        assert!(fisheye.unproject(x, 240.0).unwrap().direction[2] < -0.7);
        assert_eq!(fisheye.unproject(320.5 + 300.0 * 3.2, 240.0), None);
        assert_eq!(fisheye.project([0.0, 0.0, -1.0]), None);
        assert_eq!(
            plain(Lens::Equirectangular).unproject(320.5, 240.0 + 160.0),
            None
        );
    }

    #[test]
    fn what_is_no_number_has_no_ray() {
        for lens in [
            Lens::Pinhole,
            Lens::Orthographic,
            Lens::Fisheye { k: [0.0; 4] },
            Lens::Brown {
                k: [0.1; 4],
                p: [0.01; 2],
            },
            Lens::Fisheye624 {
                k: [0.1; 6],
                p: [0.01; 2],
                s: [0.01; 4],
            },
            Lens::Fov { omega: 0.9 },
        ] {
            assert_eq!(plain(lens).unproject(f64::NAN, 1.0), None, "{lens:?}");
            assert_eq!(plain(lens).unproject(1.0, f64::INFINITY), None, "{lens:?}");
            assert_eq!(plain(lens).project([f64::NAN, 1.0, 1.0]), None, "{lens:?}");
        }
    }
}

//! Checks a camera's numbers. A fault names the field.
//!
//! Used in every process. Not here: file names, which the caller adds.

use std::fmt;

use super::model::{Camera, Lens};

/// A number that a camera cannot have. The text names the field; the caller adds the file and its
/// key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CameraFault {
    /// `width`, `fx`, `k1`, `omega`, `lens`...
    pub field: String,
    /// What is wrong with the value, and what is allowed.
    pub reason: String,
}

impl CameraFault {
    pub(super) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for CameraFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

impl std::error::Error for CameraFault {}

/// Range of focal lengths, in pixels. With a shorter one, the squared length of a ray overflows.
/// With a longer one, neighbouring rays are equal.
const LEAST_FOCAL: f64 = 1e-9;
/// Largest absolute value of any number of a camera.
const MOST: f64 = 1e12;

impl Camera {
    /// Returns the first field that no camera can have. Sizes must be at least 1, focal lengths
    /// 1e-9 to 1e12, other numbers finite and at most 1e12 from 0. A principal point outside the
    /// image is valid: crops have one.
    pub fn check(&self) -> Result<(), CameraFault> {
        for (field, size) in [("width", self.width), ("height", self.height)] {
            if size == 0 {
                return Err(CameraFault::new(field, "is 0: use at least 1 pixel"));
            }
        }
        for (field, focal) in [("fx", self.fx), ("fy", self.fy)] {
            bounded(field, focal)?;
            if focal < LEAST_FOCAL {
                let reason = format!(
                    "is {focal:?}: use a focal length above 0 pixels, {LEAST_FOCAL:e} at least"
                );
                return Err(CameraFault::new(field, reason));
            }
        }
        bounded("cx", self.cx)?;
        bounded("cy", self.cy)?;
        for (field, coefficient) in self.lens.coefficients() {
            bounded(&field, coefficient)?;
        }
        match self.lens {
            Lens::Fov { omega } if omega.abs() >= std::f64::consts::PI => Err(CameraFault::new(
                "omega",
                format!("is {omega:?}: use -pi to pi radians"),
            )),
            _ => Ok(()),
        }
    }
}

fn bounded(field: &str, value: f64) -> Result<(), CameraFault> {
    let reason = match value.is_finite() {
        true if value.abs() <= MOST => return Ok(()),
        true => format!("is {value:?}: use a number from -{MOST:e} to {MOST:e}"),
        false => format!("is {value}: use a finite number"),
    };
    Err(CameraFault::new(field, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Camera {
        Camera {
            width: 640,
            height: 480,
            fx: 500.0,
            fy: 501.0,
            cx: -3.0,
            cy: 900.0,
            lens: Lens::Fisheye624 {
                k: [0.0; 6],
                p: [0.0; 2],
                s: [0.0; 4],
            },
        }
    }

    fn field(change: impl Fn(&mut Camera)) -> String {
        let mut camera = good();
        change(&mut camera);
        camera.check().unwrap_err().to_string()
    }

    #[test]
    fn a_fault_names_its_field_and_what_it_must_be() {
        assert_eq!(good().check(), Ok(()));
        assert_eq!(field(|c| c.width = 0), "width is 0: use at least 1 pixel");
        assert_eq!(
            field(|c| c.fy = -2.0),
            "fy is -2.0: use a focal length above 0 pixels, 1e-9 at least"
        );
        assert_eq!(
            field(|c| c.fx = 0.0),
            "fx is 0.0: use a focal length above 0 pixels, 1e-9 at least"
        );
        assert_eq!(field(|c| c.cx = f64::NAN), "cx is NaN: use a finite number");
        assert_eq!(
            field(|c| c.cy = f64::NEG_INFINITY),
            "cy is -inf: use a finite number"
        );
        assert_eq!(
            field(|c| c.lens = Lens::Fov { omega: 3.5 }),
            "omega is 3.5: use -pi to pi radians"
        );
    }

    /// Cameras at the bounds: each ray is none, or has length 1 and finite numbers in float32.
    #[test]
    fn a_camera_that_passes_has_no_ray_of_length_0() {
        use super::super::{CameraUnprojector, RayBundle, RayDirections};
        const EXTREMES: [f64; 7] = [0.0, 5e-324, 1e-9, -0.3, 3.0, -1e12, 1e12];
        let lenses = EXTREMES.into_iter().flat_map(|n| {
            let (p, s) = ([0.0, n], [n; 2]);
            [
                Lens::Pinhole,
                Lens::Brown {
                    k: [n, 0.0, -n, n],
                    p,
                },
                Lens::Brown {
                    k: [n; 4],
                    p: [0.0; 2],
                },
                Lens::Rational {
                    k: [n, 0.0, n, -n, n, 0.0],
                    p,
                },
                Lens::Fisheye { k: [n, -n, 0.0, n] },
                Lens::ThinPrismFisheye {
                    k: [0.1, 0.0, n, 0.0],
                    p,
                    s,
                },
                Lens::Fisheye624 {
                    k: [n; 6],
                    p,
                    s: [n; 4],
                },
                Lens::Fov { omega: n },
                Lens::Equirectangular,
                Lens::Orthographic,
            ]
        });
        let x: Vec<f64> = (0..40).map(|i| f64::from(i) * 16.4 - 5.0).collect();
        let y: Vec<f64> = x.iter().rev().map(|x| 0.7 * x + 0.5).collect();
        let mut all = 0;
        for lens in lenses {
            for (fx, fy) in [(1e-9, 1e-9), (1e-9, 1e12), (1e12, 1e12), (500.0, 1e-5)] {
                for (cx, cy) in [(320.0, 240.0), (1e12, -1e12), (-5.0, 5e-324)] {
                    let camera = Camera {
                        fx,
                        fy,
                        cx,
                        cy,
                        lens,
                        ..good()
                    };
                    if camera.check().is_err() {
                        continue;
                    }
                    let [mut a, mut b, mut c, mut area, mut norm] =
                        std::array::from_fn(|_| vec![7.0; x.len()]);
                    let mut valid = vec![true; x.len()];
                    let directions = RayDirections {
                        x: &mut a,
                        y: &mut b,
                        z: &mut c,
                        valid: &mut valid,
                    };
                    let out = RayBundle {
                        directions,
                        pixel_area: &mut area,
                        directions_norm: &mut norm,
                    };
                    CameraUnprojector::new(&camera).bundle(&x, &y, out);
                    for i in 0..x.len() {
                        let length = (a[i] * a[i] + b[i] * b[i] + c[i] * c[i]).sqrt();
                        let due = f64::from(u8::from(valid[i]));
                        assert!((length - due).abs() < 1e-6, "{camera:?} {i}: {length}");
                        for number in [area[i], norm[i]] {
                            assert!((number as f32).is_finite(), "{camera:?} {i}: {number}");
                        }
                        all += usize::from(valid[i]);
                    }
                }
            }
        }
        assert!(all > 1000, "{all}");
    }

    #[test]
    fn every_coefficient_of_every_lens_is_looked_at() {
        const BAD: f64 = f64::INFINITY;
        let named = |lens: Lens| {
            let camera = Camera { lens, ..good() };
            camera.check().unwrap_err().field
        };
        for i in 0..4 {
            let mut k = [0.0; 4];
            k[i] = BAD;
            let name = format!("k{}", i + 1);
            assert_eq!(named(Lens::Brown { k, p: [0.0; 2] }), name);
            assert_eq!(named(Lens::Fisheye { k }), name);
            let (p, s) = ([0.0; 2], [0.0; 2]);
            assert_eq!(named(Lens::ThinPrismFisheye { k, p, s }), name);
            let (k, p, mut s) = ([0.0; 6], [0.0; 2], [0.0; 4]);
            s[i] = BAD;
            assert_eq!(named(Lens::Fisheye624 { k, p, s }), format!("s{i}"));
        }
        for i in 0..6 {
            let mut k = [0.0; 6];
            k[i] = BAD;
            let p = [0.0; 2];
            assert_eq!(named(Lens::Rational { k, p }), format!("k{}", i + 1));
            let s = [0.0; 4];
            assert_eq!(named(Lens::Fisheye624 { k, p, s }), format!("k{i}"));
        }
        for i in 0..2 {
            let mut p = [0.0; 2];
            p[i] = BAD;
            let name = format!("p{}", i + 1);
            assert_eq!(named(Lens::Brown { k: [0.0; 4], p }), name);
            assert_eq!(named(Lens::Rational { k: [0.0; 6], p }), name);
            let (k, s) = ([0.0; 4], [0.0; 2]);
            assert_eq!(named(Lens::ThinPrismFisheye { k, p, s }), name);
            let (k, s) = ([0.0; 6], [0.0; 4]);
            assert_eq!(named(Lens::Fisheye624 { k, p, s }), format!("p{i}"));
            let (k, s) = ([0.0; 4], p);
            let name = ["sx1", "sy1"][i];
            let lens = Lens::ThinPrismFisheye { k, p: [0.0; 2], s };
            assert_eq!(named(lens), name);
        }
        assert_eq!(named(Lens::Fov { omega: BAD }), "omega");
    }
}

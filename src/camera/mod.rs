//! What an image was taken with: lenses as numbers.
//!
//! In all processes. Never in here: files, pixels, threads.

use serde::{Deserialize, Serialize};

/// What an image was taken with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Camera {
    pub width: u32,
    pub height: u32,
    pub fx: f64,
    pub fy: f64,
    pub cx: f64,
    pub cy: f64,
    pub lens: Lens,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Lens {
    Pinhole,
    Brown {
        k: [f64; 4],
        p: [f64; 2],
    },
    Rational {
        k: [f64; 6],
        p: [f64; 2],
    },
    Fisheye {
        k: [f64; 4],
    },
    Fisheye624 {
        k: [f64; 6],
        p: [f64; 2],
        s: [f64; 4],
    },
    ThinPrismFisheye {
        k: [f64; 4],
        p: [f64; 2],
        s: [f64; 2],
    },
    Fov {
        omega: f64,
    },
    Equirectangular,
    Orthographic,
}

impl Camera {
    /// The same camera for the image at another size.
    pub fn scaled(&self, width: u32, height: u32) -> Camera {
        let x = f64::from(width) / f64::from(self.width);
        let y = f64::from(height) / f64::from(self.height);
        Camera {
            width,
            height,
            fx: self.fx * x,
            fy: self.fy * y,
            cx: self.cx * x,
            cy: self.cy * y,
            lens: self.lens,
        }
    }
}

//! Parallel rays: a drawing, or a map from far above.
//!
//! With `(u, v)` the image point less the principal point, over the focal lengths: the ray
//! starts at `(u, v, 0)` and goes along z.
//!
//! Source: nerfstudio, `cameras/cameras.py`, ORTHOPHOTO in `_generate_rays_from_coords`, there
//! in axes with y up and z backwards; its distortion coefficients have no effect there.
//! In every process.

/// Where the light of a point arrives; none behind the plane that rays start from.
pub fn distort([x, y, z]: [f64; 3]) -> Option<[f64; 2]> {
    (z >= 0.0).then_some([x, y])
}

/// Where the ray through `(u, v)` starts. All have the direction [`FORWARD`].
pub fn origin([u, v]: [f64; 2]) -> [f64; 3] {
    [u, v, 0.0]
}

pub const FORWARD: [f64; 3] = [0.0, 0.0, 1.0];

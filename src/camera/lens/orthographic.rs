//! Orthographic: parallel rays, as in a drawing or a map from far above.
//!
//! `(u, v)` is the image point minus the principal point, divided by the focal lengths. The ray
//! starts at `(u, v, 0)` and goes along z.
//!
//! Source: nerfstudio, `cameras/cameras.py`, ORTHOPHOTO in `_generate_rays_from_coords`, there in
//! axes with y up and z backwards. Distortion coefficients have no effect there. Used in every
//! process.

/// The image point of a point; `None` behind the plane where rays start.
pub fn distort([x, y, z]: [f64; 3]) -> Option<[f64; 2]> {
    (z >= 0.0).then_some([x, y])
}

/// Start of the ray through `(u, v)`. All rays have the direction [`FORWARD`].
pub fn origin([u, v]: [f64; 2]) -> [f64; 3] {
    [u, v, 0.0]
}

pub const FORWARD: [f64; 3] = [0.0, 0.0, 1.0];

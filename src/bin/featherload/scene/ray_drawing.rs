//! Draws the rays of a step in their scene: `featherload rays --svg`.

use featherload::Result;
use featherload::rays::{RayBatch, RayField};
use featherload::scene::{PointCloud, Scene, scene_svg};

/// The scene with one dot on each ray, in the ray's colour. The dot's distance from the ray's
/// origin is a tenth of the cameras' extent, so each camera has a coarse image before it. At most
/// 2,000 are drawn.
pub fn draw(scene: &Scene, batch: &RayBatch) -> Result<String> {
    let (origins, directions) = (
        batch.floats(RayField::Origins)?.as_chunks::<3>().0,
        batch.floats(RayField::Directions)?.as_chunks::<3>().0,
    );
    let colors = batch.floats(RayField::Colors)?;
    let width = batch.width(RayField::Colors);
    let valid = batch.valid()?;
    let reach = reach(scene);
    let mut ends = PointCloud::default();
    for ray in (0..batch.len()).filter(|ray| valid[*ray] == 1) {
        let (from, along) = (origins[ray], directions[ray]);
        ends.xyz
            .push([0, 1, 2].map(|axis| from[axis] + reach * along[axis]));
        let color = &colors[width * ray..];
        ends.rgb
            .push([0, 1, 2].map(|channel| (255.0 * color[channel] + 0.5) as u8));
    }
    Ok(scene_svg(scene, Some(&ends)))
}

/// A tenth of the cameras' extent, or of 1 if all cameras are at one place.
fn reach(scene: &Scene) -> f32 {
    let span = (0..3).map(|axis| {
        let places = scene.frames.iter().map(|frame| frame.pose.centre()[axis]);
        let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| {
            (low.min(at), high.max(at))
        });
        high - low
    });
    match span.fold(0.0, f64::max) {
        span if span > 0.0 => (span / 10.0) as f32,
        _ => 0.1,
    }
}

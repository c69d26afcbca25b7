//! Draws a scene as SVG: from above and from the side.
//!
//! Runs in the consumer. Only writes text: opens no image, and draws the point cloud that the
//! caller passes.

use std::fmt::Write;

use crate::scene::data::point_cloud::PointCloud;
use crate::scene::data::scene::{Frame, Scene, SceneSplit};

/// Most points that are drawn.
const MOST_POINTS: usize = 2000;

/// Side of a drawing, and the margin around it, in pixels.
const SIDE: f64 = 480.0;
const MARGIN: f64 = 24.0;
/// Height of the legend.
const HEAD: f64 = 36.0;

const COLOURS: [(SceneSplit, &str, &str); 3] = [
    (SceneSplit::Train, "train", "#1f77b4"),
    (SceneSplit::Eval, "eval", "#ff7f0e"),
    (SceneSplit::Test, "test", "#d62728"),
];

/// Coordinates to the right and upwards in each drawing.
const VIEWS: [(&str, usize, usize); 2] =
    [("from above: x, y", 0, 1), ("from the side: x, z", 0, 2)];

/// Draws the scene from above and from the side: cameras as frustums, coloured by split, the
/// bounding box of their centres, and up to 2,000 points.
pub fn scene_svg(scene: &Scene, points: Option<&PointCloud>) -> String {
    let (width, height) = (2.0 * SIDE + 3.0 * MARGIN, SIDE + HEAD + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    legend(&mut svg, scene);
    let drawn = chosen(points);
    let size = frustum_size(scene);
    // Both drawings have the same scale, so that lengths can be compared.
    let extent = extent(scene, &drawn, size);
    for (number, (title, right, up)) in VIEWS.into_iter().enumerate() {
        let left = MARGIN + number as f64 * (SIDE + MARGIN);
        let view = SvgView {
            left,
            top: HEAD + MARGIN,
            right,
            up,
            low: extent.0,
            unit: SIDE / extent.1,
        };
        view.draw(&mut svg, title, scene, &drawn, size);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Up to [`MOST_POINTS`] points with their colours, evenly spaced in the list.
fn chosen(points: Option<&PointCloud>) -> Vec<([f64; 3], [u8; 3])> {
    let Some(points) = points else {
        return Vec::new();
    };
    let every = points.xyz.len().div_ceil(MOST_POINTS).max(1);
    let numbers = (0..points.xyz.len()).step_by(every);
    numbers
        .map(|i| {
            let colour = points.rgb.get(i).copied().unwrap_or([128; 3]);
            (points.xyz[i].map(f64::from), colour)
        })
        .collect()
}

/// Length of a frustum: a twentieth of the extent of the cameras.
fn frustum_size(scene: &Scene) -> f64 {
    let [low, high] = scene.bounds();
    let span = (0..3).map(|i| high[i] - low[i]).fold(0.0, f64::max);
    match span > 0.0 && span.is_finite() {
        true => span / 20.0,
        false => 0.1,
    }
}

/// Corner and side length of the drawings. Points far from the cameras do not count: a few stray
/// ones would shrink the rest to a dot.
fn extent(scene: &Scene, points: &[([f64; 3], [u8; 3])], size: f64) -> ([f64; 3], f64) {
    let [mut low, mut high] = scene.bounds();
    for i in 0..3 {
        let reach = 0.75 * (high[i] - low[i]).max(10.0 * size);
        let (least, most) = (low[i] - reach, high[i] + reach);
        let near = points.iter().map(|(place, _)| place[i]);
        for value in near.filter(|value| (least..=most).contains(value)) {
            low[i] = low[i].min(value);
            high[i] = high[i].max(value);
        }
        low[i] -= 2.0 * size;
        high[i] += 2.0 * size;
    }
    let span = (0..3)
        .map(|i| high[i] - low[i])
        .fold(f64::MIN_POSITIVE, f64::max);
    // Centred in the square.
    let corner = [0, 1, 2].map(|i| 0.5 * (low[i] + high[i] - span));
    (corner, span)
}

fn legend(svg: &mut String, scene: &Scene) {
    let mut x = MARGIN;
    for (split, name, colour) in COLOURS {
        let count = (scene.frames.iter())
            .filter(|frame| frame.split == split)
            .count();
        if count == 0 {
            continue;
        }
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"14\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"24\">{name}: {count}</text>",
            x + 18.0
        );
        x += 110.0;
    }
}

struct SvgView {
    left: f64,
    top: f64,
    right: usize,
    up: usize,
    low: [f64; 3],
    unit: f64,
}

impl SvgView {
    fn at(&self, place: [f64; 3]) -> (f64, f64) {
        let along = |axis: usize| (place[axis] - self.low[axis]) * self.unit;
        (
            self.left + along(self.right),
            self.top + SIDE - along(self.up),
        )
    }

    fn is_inside(&self, (x, y): (f64, f64)) -> bool {
        (self.left..=self.left + SIDE).contains(&x) && (self.top..=self.top + SIDE).contains(&y)
    }

    fn draw(
        &self,
        svg: &mut String,
        title: &str,
        scene: &Scene,
        points: &[([f64; 3], [u8; 3])],
        size: f64,
    ) {
        let _ = writeln!(
            svg,
            "<g><text x=\"{}\" y=\"{}\">{title}</text>\
             <rect x=\"{}\" y=\"{}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" \
             stroke=\"#cccccc\"/>",
            self.left,
            self.top - 6.0,
            self.left,
            self.top
        );
        for (place, [r, g, b]) in points {
            let (x, y) = self.at(*place);
            if self.is_inside((x, y)) {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1\" fill=\"#{r:02x}{g:02x}{b:02x}\"/>"
                );
            }
        }
        let [low, high] = scene.bounds();
        let ((x0, y1), (x1, y0)) = (self.at(low), self.at(high));
        let _ = writeln!(
            svg,
            "<rect x=\"{x0:.1}\" y=\"{y0:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" \
             stroke=\"#888888\" stroke-dasharray=\"4 3\"/>",
            x1 - x0,
            y1 - y0
        );
        for frame in &scene.frames {
            self.frustum(svg, scene, frame, size);
        }
        svg.push_str("</g>\n");
    }

    /// Draws the centre, and lines to the corners of the image.
    fn frustum(&self, svg: &mut String, scene: &Scene, frame: &Frame, size: f64) {
        let (half_w, half_h) = match scene.cameras.get(frame.camera as usize) {
            // The corners of a wide lens would be far away.
            Some(camera) => (
                (0.5 * f64::from(camera.width) / camera.fx).min(1.0),
                (0.5 * f64::from(camera.height) / camera.fy).min(1.0),
            ),
            None => (0.5, 0.5),
        };
        let centre = frame.pose.centre();
        let axes = [0, 1, 2].map(|column| frame.pose.axis(column));
        let corner = |x: f64, y: f64| {
            self.at([0, 1, 2].map(|i| {
                centre[i] + size * (x * half_w * axes[0][i] + y * half_h * axes[1][i] + axes[2][i])
            }))
        };
        let colour = COLOURS.iter().find(|(split, ..)| *split == frame.split);
        let colour = colour.map_or("black", |(.., colour)| colour);
        let c = self.at(centre);
        let [p, q, r, s] =
            [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)].map(|(x, y)| corner(x, y));
        let _ = write!(
            svg,
            "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"0.7\" d=\""
        );
        let _ = write!(svg, "M{:.1} {:.1}", p.0, p.1);
        for (x, y) in [q, r, s, p, c, q] {
            let _ = write!(svg, "L{x:.1} {y:.1}");
        }
        let _ = write!(svg, "M{:.1} {:.1}", r.0, r.1);
        for (x, y) in [c, s] {
            let _ = write!(svg, "L{x:.1} {y:.1}");
        }
        svg.push_str("\"/>\n");
    }
}

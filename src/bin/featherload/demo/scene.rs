//! Images with the statistics of photos: soft and sharp edges, surfaces with different textures,
//! smooth noise in octaves, light, film grain. Their entropy coding and decoding cost as much as
//! those of photos.
//!
//! Uses only integers, and f32 additions, multiplications, divisions and square roots. IEEE 754
//! defines the result of each, so every machine paints the same bytes. Never in here: sine, power,
//! exponential, fused multiply-add.

use super::random::{RandomStream, hash, unit};

/// Side lengths of the cells of the octaves in pixels. All but the finest are odd, so no octave is
/// aligned to JPEG's grid of 8 x 8 blocks.
const COARSE: [usize; 4] = [151, 73, 37, 19];
const FINE: [usize; 4] = [11, 5, 3, 2];
const TINT: [usize; 4] = [61, 23, 7, 3];

/// An RGB image, 3 bytes per pixel. `look` chooses the palette and the kinds of surfaces, which the
/// images of a class share. `key` chooses everything else.
pub(super) fn paint(width: usize, height: usize, look: u64, key: u64) -> Vec<u8> {
    let scene = Scene::new(width as f32, height as f32, look, key);
    let mut coarse = Field::new(&COARSE, hash(key, 1), width);
    let mut fine = Field::new(&FINE, hash(key, 2), width);
    let mut warm = Field::new(&TINT, hash(key, 3), width);
    let grain_key = hash(key, 4);

    let mut row = vec![Point::default(); width];
    let mut pixels = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        scene.fill(y as f32 + 0.5, &mut row);
        let coarse = coarse.row(y);
        let fine = fine.row(y);
        let warm = warm.row(y);
        let row_key = hash(grain_key, y as u64);
        for x in 0..width {
            let p = &row[x];
            // Texture is rougher where the surface is lighter.
            let rough = p.fine * (1.0 + 0.5 * coarse[x]) * fine[x];
            let light = p.light * (1.0 + p.coarse * coarse[x] + rough);
            let tint = scene.tint * warm[x];
            let grain = hash(row_key, x as u64);
            let [a, b, c, d, e, f, _, _] = grain.to_le_bytes().map(f32::from);
            // The sum of four bytes is close to a normal distribution.
            let luma = scene.grain * (a + b + c + d - 510.0);
            let chroma = scene.grain * (e - f);
            let shown = [
                p.colour[0] * light + tint + luma + chroma,
                p.colour[1] * light + luma,
                p.colour[2] * light - tint + luma - chroma,
            ];
            // `as` saturates at 0 and 255.
            pixels.extend(shown.map(|v| (v + 0.5) as u8));
        }
    }
    pixels
}

/// Smooth noise in octaves, one row at a time, downwards.
struct Field {
    octaves: Vec<Octave>,
    sum: Vec<f32>,
}

impl Field {
    fn new(cells: &[usize], key: u64, width: usize) -> Self {
        let octaves = cells
            .iter()
            .enumerate()
            .map(|(i, &cell)| Octave::new(cell, hash(key, i as u64), width))
            .collect();
        let sum = vec![0.0; width];
        Self { octaves, sum }
    }

    fn row(&mut self, y: usize) -> &[f32] {
        self.sum.fill(0.0);
        for octave in &mut self.octaves {
            octave.add(y, &mut self.sum);
        }
        &self.sum
    }
}

/// Value noise in [-1, 1]: random numbers on a lattice, blended smoothly.
struct Octave {
    key: u64,
    /// Offset of the lattice from the image, in pixels: x, y.
    shift: [usize; 2],
    /// Weight of the second neighbour, for each position within a cell.
    blend: Vec<f32>,
    /// The lattice rows above and below, and the number of the row above.
    above: Vec<f32>,
    below: Vec<f32>,
    at: Option<usize>,
}

impl Octave {
    fn new(cell: usize, key: u64, width: usize) -> Self {
        let shift = |axis| (hash(key, axis) % cell as u64) as usize;
        let blend = (0..cell)
            .map(|i| {
                let t = (i as f32 + 0.5) / cell as f32;
                t * t * (3.0 - 2.0 * t)
            })
            .collect();
        let nodes = (width + cell) / cell + 2;
        Self {
            key,
            shift: [shift(u64::MAX), shift(u64::MAX - 1)],
            blend,
            above: vec![0.0; nodes],
            below: vec![0.0; nodes],
            at: None,
        }
    }

    fn lattice(key: u64, row: usize, out: &mut [f32]) {
        let key = hash(key, row as u64);
        for (x, v) in out.iter_mut().enumerate() {
            *v = 2.0 * unit(hash(key, x as u64)) - 1.0;
        }
    }

    fn add(&mut self, y: usize, sum: &mut [f32]) {
        let cell = self.blend.len();
        let y = y + self.shift[1];
        let (row, within) = (y / cell, y % cell);
        if self.at != Some(row) {
            Self::lattice(self.key, row, &mut self.above);
            Self::lattice(self.key, row + 1, &mut self.below);
            self.at = Some(row);
        }
        let down = self.blend[within];
        let node = |i: usize| self.above[i] + (self.below[i] - self.above[i]) * down;
        // The first cell starts left of the image.
        let mut skip = self.shift[0];
        let mut rest = sum;
        let mut i = 0;
        while !rest.is_empty() {
            let take = (cell - skip).min(rest.len());
            let (now, later) = rest.split_at_mut(take);
            let (left, right) = (node(i), node(i + 1));
            for (s, t) in now.iter_mut().zip(&self.blend[skip..]) {
                *s += left + (right - left) * t;
            }
            (rest, skip, i) = (later, 0, i + 1);
        }
    }
}

/// The appearance of a surface at one pixel, before texture and grain.
#[derive(Clone, Copy, Default)]
struct Point {
    colour: [f32; 3],
    light: f32,
    coarse: f32,
    fine: f32,
}

impl Point {
    fn blend(&mut self, over: &Point, cover: f32) {
        let to = |a: &mut f32, b: f32| *a += (b - *a) * cover;
        for (a, b) in self.colour.iter_mut().zip(over.colour) {
            to(a, b);
        }
        to(&mut self.light, over.light);
        to(&mut self.coarse, over.coarse);
        to(&mut self.fine, over.fine);
    }
}

/// Surfaces from the back to the front, the first without bounds.
struct Scene {
    surfaces: Vec<Surface>,
    grain: f32,
    tint: f32,
}

struct Surface {
    shape: Shape,
    point: Point,
    /// The light is the point's at `origin`. It changes by `slope` for each pixel to the right and
    /// down.
    origin: [f32; 2],
    slope: [f32; 2],
    /// Width of the edge in pixels: near 1 in focus.
    edge: f32,
}

impl Surface {
    fn light(&self, x: f32, y: f32) -> f32 {
        let change = self.slope[0] * (x - self.origin[0]) + self.slope[1] * (y - self.origin[1]);
        (self.point.light + change).clamp(0.25, 1.6)
    }
}

/// A convex shape: a row of pixels meets it in one span.
enum Shape {
    Everywhere,
    /// Two straight sides between two heights: trunks, walls, roads, ground.
    Band {
        top: f32,
        bottom: f32,
        left: f32,
        right: f32,
        /// Movement of the two sides for each pixel down.
        slant: [f32; 2],
    },
    /// A sheared ellipse: heads, stones, leaves, lights.
    Ellipse {
        centre: [f32; 2],
        radius: [f32; 2],
        shear: f32,
    },
}

impl Shape {
    /// Left and right end in the row at `y`, and how much of the row is covered.
    fn span(&self, y: f32, edge: f32) -> Option<(f32, f32, f32)> {
        match *self {
            Self::Everywhere => Some((f32::MIN, f32::MAX, 1.0)),
            Self::Band {
                top,
                bottom,
                left,
                right,
                slant,
            } => {
                let cover = ramp(y - top, edge) * ramp(bottom - y, edge);
                let down = y - top;
                (cover > 0.0).then_some((left + slant[0] * down, right + slant[1] * down, cover))
            }
            Self::Ellipse {
                centre,
                radius,
                shear,
            } => {
                let v = (y - centre[1]) / radius[1];
                let inside = 1.0 - v * v;
                (inside > 0.0).then(|| {
                    let half = radius[0] * inside.sqrt();
                    let middle = centre[0] + shear * (y - centre[1]);
                    (middle - half, middle + half, 1.0)
                })
            }
        }
    }
}

/// 0 outside, 1 inside, linear across the edge.
fn ramp(inside: f32, edge: f32) -> f32 {
    (inside / edge + 0.5).clamp(0.0, 1.0)
}

impl Scene {
    fn new(width: f32, height: f32, look: u64, key: u64) -> Self {
        let palette = Palette::new(look);
        let mut s = RandomStream::new(hash(key, 5));
        let side = width.min(height);
        let mut surfaces = vec![Surface {
            shape: Shape::Everywhere,
            point: palette.point(0, &mut s),
            origin: [width / 2.0, height / 2.0],
            slope: [s.between(-0.4, 0.4) / width, s.between(-0.7, 0.7) / height],
            edge: 1.0,
        }];

        let horizon = height * s.between(0.35, 0.75);
        let ground = Shape::Band {
            top: horizon,
            bottom: 2.0 * height,
            left: -1.0,
            right: width + 1.0,
            slant: [0.0; 2],
        };
        let edge = s.between(1.0, 5.0);
        surfaces.push(Surface {
            shape: ground,
            point: palette.point(1, &mut s),
            origin: [width / 2.0, horizon],
            slope: [s.between(-0.2, 0.2) / width, s.between(-0.3, 0.5) / height],
            edge,
        });

        let bands = 2 + s.below(6);
        for _ in 0..bands {
            let top = height * s.between(-0.2, 0.7);
            let left = width * s.between(-0.1, 1.0);
            let thick = side * s.between(0.02, 0.3);
            let shape = Shape::Band {
                top,
                bottom: top + height * s.between(0.1, 0.9),
                left,
                right: left + thick,
                slant: [s.between(-0.4, 0.4), s.between(-0.4, 0.4)],
            };
            surfaces.push(palette.surface(shape, [left + thick / 2.0, top], thick, &mut s));
        }

        // Most things are small, as in photos.
        let things = 12 + s.below(40);
        for _ in 0..things {
            let u = s.between(0.1, 1.0);
            let size = side * palette.size * u * u * u;
            let centre = [width * s.between(0.0, 1.0), height * s.between(0.0, 1.0)];
            let shape = Shape::Ellipse {
                centre,
                radius: [
                    1.5 + size * s.between(0.4, 1.2),
                    1.5 + size * s.between(0.4, 1.2),
                ],
                shear: s.between(-0.6, 0.6),
            };
            surfaces.push(palette.surface(shape, centre, size + 1.0, &mut s));
        }
        Self {
            surfaces,
            grain: s.between(0.01, 0.065),
            tint: s.between(2.0, 10.0),
        }
    }

    fn fill(&self, y: f32, row: &mut [Point]) {
        let width = row.len();
        for surface in &self.surfaces {
            let Some((left, right, cover)) = surface.shape.span(y, surface.edge) else {
                continue;
            };
            let half = surface.edge / 2.0;
            // `as` saturates, so both stay within the row.
            let from = ((left - half) as usize).min(width);
            let to = ((right + half) as usize).saturating_add(1).min(width);
            let mut point = surface.point;
            for (x, under) in row.iter_mut().enumerate().take(to).skip(from) {
                let x = x as f32 + 0.5;
                let sides = ramp(x - left, surface.edge) * ramp(right - x, surface.edge);
                point.light = surface.light(x, y);
                under.blend(&point, cover * sides);
            }
        }
    }
}

/// The colours and textures that the images of a class share.
struct Palette {
    kinds: [Point; 6],
    size: f32,
}

impl Palette {
    fn new(look: u64) -> Self {
        let mut s = RandomStream::new(look);
        let kinds = std::array::from_fn(|_| {
            let grey = s.between(50.0, 205.0);
            let rough = s.between(0.05, 1.0);
            Point {
                colour: std::array::from_fn(|_| grey + s.between(-35.0, 35.0)),
                light: 1.0,
                coarse: 0.03 + 0.15 * rough * s.between(0.3, 1.0),
                fine: 0.06 + 0.34 * rough * rough,
            }
        });
        let size = s.between(0.1, 0.4);
        Self { kinds, size }
    }

    /// A surface of this kind, with small random differences.
    fn point(&self, kind: usize, s: &mut RandomStream) -> Point {
        let mut point = self.kinds[kind];
        for c in &mut point.colour {
            *c += s.between(-18.0, 18.0);
        }
        let texture = s.between(0.6, 1.5);
        point.light = s.between(0.75, 1.25);
        point.coarse *= texture;
        point.fine *= texture;
        point
    }

    /// A surface about `size` pixels across. One in four is out of focus.
    fn surface(&self, shape: Shape, origin: [f32; 2], size: f32, s: &mut RandomStream) -> Surface {
        let kind = s.below(self.kinds.len() as u32) as usize;
        let mut point = self.point(kind, s);
        let blurred = s.below(4) == 0;
        let edge = if blurred {
            point.fine *= 0.25;
            s.between(3.0, 8.0)
        } else {
            s.between(0.8, 2.0)
        };
        Surface {
            shape,
            point,
            origin,
            slope: [s.between(-0.25, 0.25) / size, s.between(-0.25, 0.25) / size],
            edge: edge.min(size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_painted_at_any_size() {
        for (w, h) in [(1, 1), (1, 40), (40, 1), (3, 3), (151, 152), (200, 113)] {
            assert_eq!(paint(w, h, 1, 2).len(), w * h * 3, "{w} x {h}");
        }
    }

    #[test]
    fn octaves_are_smooth_and_fill_their_range() {
        for cell in [3, 11, 151] {
            let mut octave = Octave::new(cell, 9, 500);
            let (mut low, mut high, mut step) = (0f32, 0f32, 0f32);
            let mut last: Option<Vec<f32>> = None;
            for y in 0..400 {
                let mut row = vec![0.0; 500];
                octave.add(y, &mut row);
                for x in 0..500 {
                    low = low.min(row[x]);
                    high = high.max(row[x]);
                    if x > 0 {
                        step = step.max((row[x] - row[x - 1]).abs());
                    }
                    if let Some(last) = &last {
                        step = step.max((row[x] - last[x]).abs());
                    }
                }
                last = Some(row);
            }
            assert!(low >= -1.0 && high <= 1.0 && low < -0.5 && high > 0.5);
            // The steepest smoothstep is 1.5 of the range over a cell.
            assert!(step <= 3.0 / cell as f32 + 1e-5, "cell {cell}: {step}");
        }
    }

    #[test]
    fn pictures_have_contrast_and_differ() {
        let spread = |p: &[u8]| {
            let mean = p.iter().map(|&v| f64::from(v)).sum::<f64>() / p.len() as f64;
            let squares = p
                .iter()
                .map(|&v| (f64::from(v) - mean).powi(2))
                .sum::<f64>();
            (squares / p.len() as f64).sqrt()
        };
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for key in 0..6 {
            let picture = paint(200, 150, key / 2, key);
            let deviation = spread(&picture);
            assert!((15.0..110.0).contains(&deviation), "{deviation}");
            assert!(!seen.contains(&picture));
            seen.push(picture);
        }
    }
}

//! Trains a radiance field on the rays of a scene, on the CPU, in half a minute:
//! `featherload demo --scene scenes`, then
//! `cargo run --release --example 08_nerf -- scenes/many`.
//!
//! The field is the sum of two grids of density and colour, one coarse and one fine. A ray is
//! rendered by the quadrature of NeRF (Mildenhall and others, 2020, equation 3). Space outside
//! the unit ball is contracted (Barron and others, "Mip-NeRF 360", equation 10). The example
//! prints the PSNR on images that it was not trained on.

use std::num::NonZero;
use std::time::Instant;

use featherload::rays::{RayBatch, RayField, Rays};
use featherload::scene::SceneSplit;

const STEPS: u64 = 600;
const RAYS: u64 = 2048;
const SAMPLES: usize = 48;
/// Cells along each side of the two grids.
const SIDES: [usize; 2] = [20, 64];
/// Red, green, blue, density.
const CHANNELS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    featherload::init();
    let scene = std::env::args().nth(1).ok_or("usage: 08_nerf SCENE")?;
    let began = Instant::now();
    let mut rays = Rays::builder(scene.as_str()).rays(RAYS).build()?;
    let mut field = Field::new();
    for step in 0..STEPS {
        let batch = rays.next_batch()?;
        // From 0.1 down to 0.01.
        let rate = 0.1 * 0.1f32.powf(step as f32 / STEPS as f32);
        let error = field.train(&Seen::of(&batch)?, step, rate);
        if step % 100 == 99 {
            let seconds = began.elapsed().as_secs_f32();
            println!(
                "step {:4}  {seconds:5.1} s  PSNR {:.1} dB",
                step + 1,
                psnr(error)
            );
        }
    }
    let mut unseen = Rays::builder(scene.as_str())
        .split(SceneSplit::Eval)
        .rays(1 << 14)
        .joining(0)
        .build()?;
    let batch = unseen.next_batch()?;
    let error = field.error(&Seen::of(&batch)?);
    println!(
        "PSNR {:.1} dB on {} images that it has not seen; {:.1} s in all",
        psnr(error),
        unseen.images().len(),
        began.elapsed().as_secs_f32()
    );
    Ok(())
}

/// The PSNR in dB, for colours from 0 to 1.
fn psnr(mean_square_error: f32) -> f32 {
    -10.0 * mean_square_error.log10()
}

/// Views of the arrays of a batch, without a copy.
struct Seen<'a> {
    origins: &'a [[f32; 3]],
    directions: &'a [[f32; 3]],
    colors: &'a [[f32; 3]],
}

impl<'a> Seen<'a> {
    fn of(batch: &'a RayBatch) -> featherload::Result<Self> {
        let field = |field| Ok::<_, featherload::Error>(batch.floats(field)?.as_chunks().0);
        Ok(Self {
            origins: field(RayField::Origins)?,
            directions: field(RayField::Directions)?,
            colors: field(RayField::Colors)?,
        })
    }
}

/// The cell of a sample in each grid: the indices and interpolation weights of its corners.
#[derive(Clone, Copy, Default)]
struct Corners {
    cells: [[usize; 8]; SIDES.len()],
    weights: [[f32; 8]; SIDES.len()],
}

impl Corners {
    fn of(point: [f32; 3]) -> Self {
        let mut corners = Self::default();
        let [x, y, z] = contracted(point);
        for (level, side) in SIDES.into_iter().enumerate() {
            let cell = |x: f32| {
                let x = (x + 2.0) / 4.0 * (side - 1) as f32;
                let low = (x as usize).min(side - 2);
                (low, x - low as f32)
            };
            let [(x, fx), (y, fy), (z, fz)] = [cell(x), cell(y), cell(z)];
            for corner in 0..8 {
                let [dx, dy, dz] = [corner & 1, corner >> 1 & 1, corner >> 2];
                let part = |d: usize, f: f32| if d == 1 { f } else { 1.0 - f };
                corners.cells[level][corner] = ((z + dz) * side + y + dy) * side + x + dx;
                corners.weights[level][corner] = part(dx, fx) * part(dy, fy) * part(dz, fz);
            }
        }
        corners
    }
}

/// Maps all of space into a ball of radius 2. Points of the unit ball keep their place.
fn contracted(point: [f32; 3]) -> [f32; 3] {
    let length = point.iter().map(|x| x * x).sum::<f32>().sqrt();
    let scale = if length <= 1.0 {
        1.0
    } else {
        (2.0 - 1.0 / length) / length
    };
    point.map(|x| x * scale)
}

/// The distance of a sample along its ray, moved by `shift` steps. Samples are evenly spaced up
/// to a distance of about 1, and from there evenly spaced in the inverse of the distance.
fn distance(sample: usize, shift: f32) -> f32 {
    // Less than 1, because 1 is infinitely far.
    let s = (sample as f32 + shift) / (SAMPLES as f32 + 2.0);
    if s < 0.5 {
        0.02 + 2.0 * s
    } else {
        1.0 / (2.0 - 2.0 * s)
    }
}

/// One sample of a ray, with the values that the backward pass needs.
#[derive(Clone, Copy, Default)]
struct Sample {
    corners: Corners,
    color: [f32; 3],
    density: f32,
    step: f32,
    /// The share of the sample in the colour of the pixel.
    weight: f32,
    /// The transmittance after the sample.
    left: f32,
}

struct Field {
    /// The cells of both grids, one grid after the other. Adam's two means follow, for each value.
    values: Vec<[f32; CHANNELS]>,
    mean: Vec<[f32; CHANNELS]>,
    mean_square: Vec<[f32; CHANNELS]>,
    begins: [usize; SIDES.len()],
}

impl Field {
    fn new() -> Self {
        let cells = SIDES.map(|side| side * side * side);
        let zeros = || vec![[0.0; CHANNELS]; cells.iter().sum()];
        Self {
            values: zeros(),
            mean: zeros(),
            mean_square: zeros(),
            begins: [0, cells[0]],
        }
    }

    /// One step of Adam. Returns the mean square error before it.
    fn train(&mut self, seen: &Seen<'_>, step: u64, rate: f32) -> f32 {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let share = seen.origins.len().div_ceil(threads);
        let field = &*self;
        let done: Vec<_> = std::thread::scope(|scope| {
            let parts = (0..threads).map(|part| {
                scope.spawn(move || {
                    let mut slopes = vec![[0.0; CHANNELS]; field.values.len()];
                    let mut error = 0.0;
                    let end = seen.origins.len().min((part + 1) * share);
                    for ray in part * share..end {
                        error += field.learn(seen, ray, random(step, ray), &mut slopes);
                    }
                    (error, slopes)
                })
            });
            let parts: Vec<_> = parts.collect();
            parts
                .into_iter()
                .filter_map(|part| part.join().ok())
                .collect()
        });
        let (first, second) = (
            1.0 - 0.9f32.powi(step as i32 + 1),
            1.0 - 0.99f32.powi(step as i32 + 1),
        );
        for (cell, value) in self.values.iter_mut().enumerate() {
            for channel in 0..CHANNELS {
                let slope: f32 = done.iter().map(|(_, slopes)| slopes[cell][channel]).sum();
                // Values that no ray met are not changed.
                if slope != 0.0 {
                    let mean = &mut self.mean[cell][channel];
                    let square = &mut self.mean_square[cell][channel];
                    *mean = 0.9 * *mean + 0.1 * slope;
                    *square = 0.99 * *square + 0.01 * slope * slope;
                    let deviation = (*square / second).sqrt() + 1e-12;
                    value[channel] -= rate * (*mean / first) / deviation;
                }
            }
        }
        done.iter().map(|(error, _)| error).sum::<f32>() / (3 * seen.origins.len()) as f32
    }

    /// The mean square error of the colours.
    fn error(&self, seen: &Seen<'_>) -> f32 {
        let mut sum = 0.0;
        for ray in 0..seen.origins.len() {
            let (color, _) = self.look(seen.origins[ray], seen.directions[ray], 0.5);
            sum += (0..3)
                .map(|c| (color[c] - seen.colors[ray][c]).powi(2))
                .sum::<f32>();
        }
        sum / (3 * seen.origins.len()) as f32
    }

    /// The rendered colour of a ray, and its samples from front to back.
    fn look(
        &self,
        origin: [f32; 3],
        direction: [f32; 3],
        shift: f32,
    ) -> ([f32; 3], [Sample; SAMPLES]) {
        let mut samples = [Sample::default(); SAMPLES];
        let (mut color, mut left) = ([0.0; 3], 1.0);
        for (number, sample) in samples.iter_mut().enumerate() {
            let at = distance(number, shift);
            let corners = Corners::of([0, 1, 2].map(|axis| origin[axis] + at * direction[axis]));
            let mut found = [0.0; CHANNELS];
            for (level, begin) in self.begins.into_iter().enumerate() {
                for corner in 0..8 {
                    let value = self.values[begin + corners.cells[level][corner]];
                    for channel in 0..CHANNELS {
                        found[channel] += corners.weights[level][corner] * value[channel];
                    }
                }
            }
            let step = distance(number + 1, shift) - at;
            let density = found[3].clamp(-9.0, 9.0).exp();
            let past = (-density * step).exp();
            *sample = Sample {
                corners,
                color: [0, 1, 2].map(|channel| 1.0 / (1.0 + (-found[channel]).exp())),
                density,
                step,
                weight: left * (1.0 - past),
                left: left * past,
            };
            left *= past;
            for (sum, own) in color.iter_mut().zip(sample.color) {
                *sum += sample.weight * own;
            }
        }
        (color, samples)
    }

    /// Adds the gradient of one ray's square error to `slopes`, and returns the error.
    fn learn(
        &self,
        seen: &Seen<'_>,
        ray: usize,
        shift: f32,
        slopes: &mut [[f32; CHANNELS]],
    ) -> f32 {
        let (color, samples) = self.look(seen.origins[ray], seen.directions[ray], shift);
        let wrong = [0, 1, 2].map(|channel| color[channel] - seen.colors[ray][channel]);
        // The summed contributions of the samples behind this one to the gradient.
        let mut behind = 0.0;
        for sample in samples.iter().rev() {
            let own: f32 = (0..3).map(|c| 2.0 * wrong[c] * sample.color[c]).sum();
            let by_density = sample.step * (sample.left * own - behind);
            behind += sample.weight * own;
            let mut slope = [0.0; CHANNELS];
            for channel in 0..3 {
                let color = sample.color[channel];
                slope[channel] = 2.0 * wrong[channel] * sample.weight * color * (1.0 - color);
            }
            slope[3] = by_density * sample.density;
            for (level, begin) in self.begins.into_iter().enumerate() {
                for corner in 0..8 {
                    let weight = sample.corners.weights[level][corner];
                    let cell = &mut slopes[begin + sample.corners.cells[level][corner]];
                    for channel in 0..CHANNELS {
                        cell[channel] += weight * slope[channel];
                    }
                }
            }
        }
        wrong.iter().map(|wrong| wrong * wrong).sum()
    }
}

/// A number from 0 to 1, by which the samples of a ray are moved (splitmix64).
fn random(step: u64, ray: usize) -> f32 {
    let mut x = (step << 32 | ray as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ x >> 31) >> 40) as f32 / (1u64 << 24) as f32
}

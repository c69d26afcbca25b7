//! Draws the objects of a row: boxes, keypoints with their skeleton, and masks, each category in a
//! colour of its own.

use std::collections::BTreeMap;

use featherload::objects::ObjectForm;
use featherload::{Batch, BatchObjects, Result};
use image::{Rgb, RgbImage};

use super::mask_overlay::color_of;

/// A line is this part of the picture's longer side.
const LINE: u32 = 250;

/// Labels begin with this colour: that of label 0 in a mask is black.
const FIRST_COLOR: i64 = 1;

/// The picture of a row with its objects.
pub fn drawn(
    mut picture: RgbImage,
    batch: &Batch,
    row: usize,
    form: Option<&ObjectForm>,
) -> Result<RgbImage> {
    let (Some(objects), Some(form)) = (batch.objects(), form) else {
        return Ok(picture);
    };
    let range = objects.row(row);
    if batch.instance_mask_layout(row).is_some() {
        let masks = batch.instance_masks(row)?;
        let [_, height, width] = masks.shape();
        for (object, mask) in range
            .clone()
            .zip(masks.bytes().chunks_exact(height * width))
        {
            blend(&mut picture, (mask, width, height), color(objects, object));
        }
    }
    let (width, height) = picture.dimensions();
    let pen = Pen {
        radius: (width.max(height) / LINE).max(1) as i64,
    };
    let each = form.keypoints;
    for object in range {
        let color = color(objects, object);
        let [x0, y0, x1, y1] = objects.boxes[object];
        for (from, to) in [
            ([x0, y0], [x1, y0]),
            ([x1, y0], [x1, y1]),
            ([x1, y1], [x0, y1]),
            ([x0, y1], [x0, y0]),
        ] {
            pen.line(&mut picture, from, to, color);
        }
        let points = &objects.keypoints[object * each..(object + 1) * each];
        let seen = |n: usize| points.get(n).filter(|[.., seen]| *seen > 0.0);
        for &[from, to] in &form.skeleton {
            if let (Some(from), Some(to)) = (seen(from), seen(to)) {
                pen.line(&mut picture, [from[0], from[1]], [to[0], to[1]], color);
            }
        }
        for [x, y, _] in (0..each).filter_map(seen) {
            let dot = Pen {
                radius: 2 * pen.radius,
            };
            dot.dot(&mut picture, [*x, *y], Rgb([255, 255, 255]));
        }
        let numbers = objects.rotated_numbers();
        let rotated = &objects.rotated[object * numbers..(object + 1) * numbers];
        let corners = corners_of(rotated);
        for (from, to) in corners.iter().zip(corners.iter().cycle().skip(1)) {
            pen.line(&mut picture, *from, *to, color);
        }
    }
    Ok(picture)
}

/// How many objects of each category a row has, and how many were dropped: `2 person, 1 dog`.
pub fn counted(objects: &BatchObjects, row: usize, form: &ObjectForm) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for label in &objects.labels[objects.row(row)] {
        *counts.entry(*label).or_insert(0usize) += 1;
    }
    let name = |label: i64| {
        let by_place = usize::try_from(label)
            .ok()
            .and_then(|n| form.categories.get(n));
        let by_id = form.categories.iter().find(|of| of.id == label);
        // Which of the two a label is depends on the rule: with ids, a place is mostly no id.
        let found = if objects.has_ids_as_labels() {
            by_id
        } else {
            by_place
        };
        found.map_or_else(|| label.to_string(), |of| of.name.clone())
    };
    let mut words: Vec<String> = (counts.iter())
        .map(|(label, count)| format!("{count} {}", name(*label)))
        .collect();
    let dropped = objects.dropped.get(row).map_or(0, |counts| counts.total());
    if dropped > 0 {
        words.push(format!("{dropped} dropped"));
    }
    words
}

fn color(objects: &BatchObjects, object: usize) -> Rgb<u8> {
    color_of(objects.labels[object].wrapping_add(FIRST_COLOR))
}

/// The corners of a rotated box: of four corners, or of centre, sides and degrees.
fn corners_of(numbers: &[f32]) -> Vec<[f32; 2]> {
    match *numbers {
        [x, y, w, h, degrees] => {
            let (sin, cos) = (-degrees).to_radians().sin_cos();
            let corner = |(dx, dy): (f32, f32)| {
                let (dx, dy) = (dx * w / 2.0, dy * h / 2.0);
                [x + dx * cos - dy * sin, y + dx * sin + dy * cos]
            };
            [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
                .map(corner)
                .to_vec()
        }
        _ => numbers.as_chunks::<2>().0.to_vec(),
    }
}

/// Mixes a colour into the picture where the mask is inside. The mask may be smaller.
fn blend(picture: &mut RgbImage, (mask, width, height): (&[u8], usize, usize), color: Rgb<u8>) {
    let (wide, high) = picture.dimensions();
    for (x, y, pixel) in picture.enumerate_pixels_mut() {
        let column = x as usize * width / wide as usize;
        let line = y as usize * height / high as usize;
        if mask[line * width + column] != 0 {
            for (level, other) in pixel.0.iter_mut().zip(color.0) {
                *level = level.midpoint(other);
            }
        }
    }
}

/// Draws squares of `2 * radius + 1` pixels.
struct Pen {
    radius: i64,
}

impl Pen {
    fn dot(&self, picture: &mut RgbImage, [x, y]: [f32; 2], color: Rgb<u8>) {
        let (width, height) = (i64::from(picture.width()), i64::from(picture.height()));
        // A cast of a float beyond the range gives its end.
        let (x, y) = (x as i64, y as i64);
        let range = |at: i64, side: i64| {
            at.saturating_sub(self.radius).max(0)..at.saturating_add(self.radius + 1).min(side)
        };
        for y in range(y, height) {
            for x in range(x, width) {
                picture.put_pixel(x as u32, y as u32, color);
            }
        }
    }

    fn line(&self, picture: &mut RgbImage, from: [f32; 2], to: [f32; 2], color: Rgb<u8>) {
        let (width, height) = (picture.width() as f32, picture.height() as f32);
        let inside =
            |[x, y]: [f32; 2]| [x.clamp(-width, 2.0 * width), y.clamp(-height, 2.0 * height)];
        let (from, to) = (inside(from), inside(to));
        let steps = (to[0] - from[0]).abs().max((to[1] - from[1]).abs()).ceil() as u32;
        for step in 0..=steps {
            let part = step as f32 / steps.max(1) as f32;
            let at = |n: usize| from[n] + (to[n] - from[n]) * part;
            self.dot(picture, [at(0), at(1)], color);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_dots_stay_within_the_picture() {
        let mut picture = RgbImage::new(10, 6);
        let white = Rgb([255; 3]);
        let pen = Pen { radius: 0 };
        pen.line(&mut picture, [2.5, 3.5], [7.5, 3.5], white);
        let lit = |picture: &RgbImage| picture.pixels().filter(|pixel| **pixel == white).count();
        assert_eq!(lit(&picture), 6);
        pen.line(&mut picture, [f32::MIN, 0.0], [f32::MAX, 5.9], white);
        Pen { radius: 3 }.dot(&mut picture, [1e30, -1e30], white);
        Pen { radius: 99 }.dot(&mut picture, [0.0, 0.0], white);
        assert_eq!(lit(&picture), 60);
    }

    #[test]
    fn rotated_boxes_have_four_corners() {
        let corners = corners_of(&[10.0, 20.0, 4.0, 2.0, 90.0]);
        let want = [[9.0, 22.0], [9.0, 18.0], [11.0, 18.0], [11.0, 22.0]];
        for ([x, y], [u, v]) in corners.iter().zip(want) {
            assert!((x - u).abs() < 1e-5 && (y - v).abs() < 1e-5, "{corners:?}");
        }
        assert_eq!(corners_of(&[1.0; 8]), [[1.0; 2]; 4]);
        assert_eq!(corners_of(&[]), [[0.0f32; 2]; 0]);
    }

    #[test]
    fn masks_of_a_quarter_cover_the_picture() {
        let mut picture = RgbImage::new(8, 8);
        blend(&mut picture, (&[0, 1, 0, 0], 2, 2), Rgb([200; 3]));
        for (x, y, pixel) in picture.enumerate_pixels() {
            let inside = x >= 4 && y < 4;
            assert_eq!(pixel.0, [if inside { 100 } else { 0 }; 3]);
        }
    }
}

//! Poses that are no rotations.

use std::fs;

use featherload::rays::{RayField, Rays};
use serde_json::Value;

use crate::common::scene::Written;

/// The scene, whose rotations are each multiplied from the right by a matrix.
fn changed(by: [[f64; 3]; 3]) -> Written {
    let scene = Written::new();
    let file = scene.path().join("transforms.json");
    let mut text: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for frame in text["frames"].as_array_mut().unwrap() {
        let matrix = frame["transform_matrix"].as_array_mut().unwrap();
        for row in matrix.iter_mut().take(3) {
            let before = [0, 1, 2].map(|i| row[i].as_f64().unwrap());
            for (column, number) in row.as_array_mut().unwrap().iter_mut().take(3).enumerate() {
                let after: f64 = (0..3).map(|i| before[i] * by[i][column]).sum();
                *number = after.into();
            }
        }
    }
    fs::write(&file, text.to_string()).unwrap();
    scene
}

fn times(scale: f64) -> [[f64; 3]; 3] {
    [[scale, 0.0, 0.0], [0.0, scale, 0.0], [0.0, 0.0, scale]]
}

fn floats(rays: &mut Rays, field: RayField) -> Vec<f32> {
    rays.next_batch().unwrap().floats(field).unwrap().to_vec()
}

#[test]
fn a_scale_in_a_rotation_changes_no_ray() {
    let plain = Written::new();
    for scale in [2.5, 0.2, 1.01] {
        let scaled = changed(times(scale));
        for field in [
            RayField::Directions,
            RayField::Origins,
            RayField::DirectionNorms,
            RayField::PixelAreas,
        ] {
            let [expected, found] =
                [&plain, &scaled].map(|s| floats(&mut s.rays(1).build().unwrap(), field));
            assert!(
                expected
                    .iter()
                    .zip(&found)
                    .all(|(a, b)| (a - b).abs() < 1e-6),
                "{scale} {field:?}"
            );
        }
        let mut rays = scaled.rays(0).build().unwrap();
        for frame in &rays.scene().frames {
            for column in 0..3 {
                let length: f64 = frame.pose.axis(column).iter().map(|v| v * v).sum();
                assert!((length - 1.0).abs() < 1e-9, "{scale}");
            }
        }
        rays.next_batch().unwrap();
    }
}

/// As nerfstudio: the direction of the camera times the matrix, made 1 long.
#[test]
fn directions_have_length_1_whatever_the_pose() {
    let mirrored = [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let stretched = [[2.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.5]];
    let skewed = [[1.0, 0.3, 0.0], [0.0, 1.0, 0.2], [0.0, 0.0, 1.0]];
    let plain = Written::new();
    let mut expected = plain.rays(1).build().unwrap();
    let straight = expected.next_batch().unwrap();
    let (indices, before) = (
        straight.indices().unwrap(),
        straight.floats(RayField::Directions),
    );
    for by in [times(3.0), mirrored, stretched, skewed] {
        let scene = changed(by);
        let mut rays = scene.rays(1).build().unwrap();
        let [of_plain, of_changed] = [&expected, &rays].map(|rays| rays.scene().frames.clone());
        let batch = rays.next_batch().unwrap();
        assert!(batch.indices().unwrap() == indices);
        let found = batch.floats(RayField::Directions).unwrap();
        let valid = batch.bytes(RayField::Valid).unwrap();
        let pairs = found
            .as_chunks::<3>()
            .0
            .iter()
            .zip(before.as_ref().unwrap().as_chunks::<3>().0);
        for (ray, (found, before)) in pairs.enumerate() {
            if valid[ray] == 0 {
                continue;
            }
            let length = found.iter().map(|v| v * v).sum::<f32>();
            assert!((length - 1.0).abs() < 1e-5, "{by:?}: {length}");
            let image = indices[ray][0] as usize;
            let (from, to) = (&of_plain[image].pose, &of_changed[image].pose);
            // Into the camera by the rotation, and out of it by the matrix.
            let inside = [0, 1, 2].map(|column| {
                let axis = from.axis(column);
                (0..3).map(|i| axis[i] * f64::from(before[i])).sum::<f64>()
            });
            let mut out = [0, 1, 2].map(|row| {
                (0..3)
                    .map(|column| to.0[row][column] * inside[column])
                    .sum::<f64>()
            });
            let length = out.iter().map(|v| v * v).sum::<f64>().sqrt();
            out = out.map(|v| v / length);
            let near = |i: usize| (out[i] - f64::from(found[i])).abs() < 1e-5;
            assert!((0..3).all(near), "{by:?}: {out:?} {found:?}");
        }
    }
}

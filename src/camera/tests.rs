//! Compares cameras and points with COLMAP, nerfstudio and OpenCV: `tests/goldens/camera.json`,
//! made by `scripts/camera_goldens`.

use std::collections::HashSet;
use std::{fs, mem};

use serde::Deserialize;

use crate::camera::{Camera, CameraOptics, CameraUnprojector, Lens, RayDirections};

#[derive(Deserialize)]
struct Goldens {
    cases: Vec<Case>,
}

/// `scripts/camera_goldens/goldens.py` explains the fields.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    camera: Camera,
    #[serde(default)]
    rays: Vec<[f64; 5]>,
    #[serde(default)]
    seen: Vec<[f64; 5]>,
    #[serde(default)]
    bundle: Vec<[f64; 7]>,
    #[serde(default)]
    origins: Vec<[f64; 5]>,
    straight: Option<Camera>,
    within: Option<f64>,
    #[serde(default)]
    places: Vec<[f64; 4]>,
}

/// Allowed difference of directions, lengths and image points; for areas, relative.
const TOLERANCE: f64 = 1e-6;

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/goldens/camera.json");
    let goldens: Goldens = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    goldens.cases
}

fn apart<const N: usize>(given: [f64; N], wanted: &[f64]) -> f64 {
    assert_eq!(wanted.len(), N);
    let differences = given.iter().zip(wanted).map(|(g, w)| (g - w).abs());
    differences.fold(0.0, f64::max)
}

/// The largest difference of a case; infinite if a result is missing.
fn difference(case: &Case) -> f64 {
    let optics = CameraOptics::new(&case.camera);
    let rays = case.rays.iter().map(|ray| {
        let given = optics.unproject(ray[0], ray[1]);
        given.map_or(f64::INFINITY, |given| apart(given.unit(), &ray[2..]))
    });
    let seen = case.seen.iter().map(|point| {
        let given = optics.project([point[0], point[1], point[2]]);
        given.map_or(f64::INFINITY, |given| apart(given, &point[3..]))
    });
    let bundle = case.bundle.iter().map(|row| {
        let ray = optics.unproject(row[0], row[1]);
        let footprint = optics.footprint(row[0], row[1]);
        let (Some(ray), Some(footprint)) = (ray, footprint) else {
            return f64::INFINITY;
        };
        let area = if row[5] == 0.0 {
            footprint.pixel_area
        } else {
            footprint.pixel_area / row[5] - 1.0
        };
        let norm = footprint.directions_norm - row[6];
        apart(ray.unit(), &row[2..5])
            .max(area.abs())
            .max(norm.abs())
    });
    let origins = case.origins.iter().map(|row| {
        let given = optics.unproject(row[0], row[1]);
        given.map_or(f64::INFINITY, |given| apart(given.origin, &row[2..]))
    });
    let all = rays.chain(seen).chain(bundle).chain(origins);
    all.fold(0.0, f64::max)
}

#[test]
fn rays_and_places_are_those_of_colmap_and_nerfstudio() {
    let mut families = HashSet::new();
    for case in cases() {
        let points = case.rays.len() + case.seen.len() + case.bundle.len();
        assert!(points >= 40 || case.straight.is_some(), "{}", case.name);
        let difference = difference(&case);
        assert!(difference < TOLERANCE, "{}: {difference:e}", case.name);
        families.insert(mem::discriminant(&case.camera.lens));
    }
    // Every lens.
    assert_eq!(families.len(), 9);
}

#[test]
fn many_points_at_a_time_have_the_same_rays() {
    for case in cases() {
        let bundle = case
            .bundle
            .iter()
            .map(|row| [row[0], row[1], row[2], row[3], row[4]]);
        let rays: Vec<[f64; 5]> = case.rays.iter().copied().chain(bundle).collect();
        let column = |i: usize| rays.iter().map(|ray| ray[i]).collect::<Vec<f64>>();
        let zeros = || vec![0.0; rays.len()];
        let (mut x, mut y, mut z) = (zeros(), zeros(), zeros());
        let mut valid = vec![false; rays.len()];
        let out = RayDirections {
            x: &mut x,
            y: &mut y,
            z: &mut z,
            valid: &mut valid,
        };
        CameraUnprojector::new(&case.camera).directions(&column(0), &column(1), out);
        for (i, ray) in rays.iter().enumerate() {
            let length = (x[i] * x[i] + y[i] * y[i] + z[i] * z[i]).sqrt();
            let given = [x[i] / length, y[i] / length, z[i] / length];
            let difference = apart(given, &ray[2..]);
            assert!(valid[i] && difference < TOLERANCE, "{} {ray:?}", case.name);
        }
    }
}

#[test]
fn a_slip_in_a_camera_is_caught() {
    for case in cases().into_iter().filter(|case| case.straight.is_none()) {
        let slipped = |what: &str, slip: &dyn Fn(&mut Case)| {
            let mut case = case.clone();
            slip(&mut case);
            let difference = difference(&case);
            assert!(difference > 10.0 * TOLERANCE, "{} {what}", case.name);
        };
        slipped("half a column", &|case| case.camera.cx += 0.5);
        slipped("half a row", &|case| case.camera.cy -= 0.5);
        slipped("rows for columns", &|case| {
            case.rays.iter_mut().for_each(|ray| ray.swap(0, 1));
            case.seen.iter_mut().for_each(|point| point.swap(0, 1));
            case.bundle.iter_mut().for_each(|row| row.swap(0, 1));
            case.origins.iter_mut().for_each(|row| row.swap(0, 1));
        });
        slipped("y upwards", &|case| {
            case.rays.iter_mut().for_each(|ray| ray[3] *= -1.0);
            case.seen.iter_mut().for_each(|point| point[1] *= -1.0);
            case.bundle.iter_mut().for_each(|row| row[3] *= -1.0);
            case.origins.iter_mut().for_each(|row| row[3] *= -1.0);
        });
        for (name, slip) in without_one(case.camera.lens) {
            slipped(&name, &|case| case.camera.lens = slip);
        }
    }
}

/// The lens without one of its coefficients, for each nonzero one.
fn without_one(lens: Lens) -> Vec<(String, Lens)> {
    let mut all = Vec::new();
    for (i, (name, value)) in lens.coefficients().into_iter().enumerate() {
        if value != 0.0 {
            let mut lens = lens;
            let coefficients: Vec<&mut f64> = match &mut lens {
                Lens::Brown { k, p } => k.iter_mut().chain(p).collect(),
                Lens::Rational { k, p } => k.iter_mut().chain(p).collect(),
                Lens::Fisheye { k } => k.iter_mut().collect(),
                Lens::Fisheye624 { k, p, s } => k.iter_mut().chain(p).chain(s).collect(),
                Lens::ThinPrismFisheye { k, p, s } => k.iter_mut().chain(p).chain(s).collect(),
                Lens::Fov { omega } => vec![omega],
                Lens::Pinhole | Lens::Equirectangular | Lens::Orthographic => Vec::new(),
            };
            *coefficients.into_iter().nth(i).unwrap() = 0.0;
            all.push((format!("without {name}"), lens));
        }
    }
    all
}

#[test]
fn straightened_images_are_those_of_opencv() {
    let mut seen = 0;
    for case in cases() {
        let (Some(straight), Some(within)) = (case.straight, case.within) else {
            continue;
        };
        seen += 1;
        let given = case.camera.undistorted().unwrap();
        let camera = given.camera();
        assert_eq!(camera.lens, Lens::Pinhole);
        assert_eq!(
            (camera.width, camera.height),
            (straight.width, straight.height)
        );
        let numbers = |camera: &Camera| [camera.fx, camera.fy, camera.cx, camera.cy];
        let difference = apart(numbers(camera), &numbers(&straight));
        assert!(difference < within, "{}: {difference:e}", case.name);
        for place in &case.places {
            let at = given.source(place[0], place[1]).unwrap();
            let difference = apart(at, &place[2..]);
            // OpenCV's points are those of its own camera, in f32.
            assert!(difference < 1e-3 + within, "{}: {difference:e}", case.name);
        }
    }
    assert_eq!(seen, 5);
}

/// The straightened image only has content of the distorted one: no point is taken from more than
/// half a pixel beyond the centres of the outer pixels.
#[test]
fn straightened_images_have_pixels_everywhere() {
    for case in cases().iter().filter(|case| case.straight.is_some()) {
        let given = case.camera.undistorted().unwrap();
        let (width, height) = (given.camera().width, given.camera().height);
        let (mut x, mut y) = (vec![0.0; width as usize], vec![0.0; width as usize]);
        for row in 0..height {
            given.source_row(row, &mut x, &mut y);
            let across = 0.0..=f64::from(case.camera.width);
            let down = 0.0..=f64::from(case.camera.height);
            let inside = |(x, y): (&f64, &f64)| across.contains(x) && down.contains(y);
            assert!(x.iter().zip(&y).all(inside), "{} row {row}", case.name);
        }
    }
}

//! Masks against pycocotools, and hostile masks.

use serde::Deserialize;

use super::library_goldens::read;
use super::{CaseNumbers, crop, size};
use crate::recipe::Step;
use crate::targets::SampleMotion;
use crate::targets::masks::{
    MAX_MASK_PIXELS, MaskScale, PolygonLimits, RunLengths, mask_of_polygons,
};

#[derive(Deserialize)]
struct MaskFile {
    polygons: Vec<PolygonCase>,
    quarters: Vec<PolygonCase>,
    pixels: Vec<PixelCase>,
}

#[derive(Deserialize)]
struct PolygonCase {
    size: (u32, u32),
    picture: Option<(u32, u32)>,
    rings: Vec<Vec<[f64; 2]>>,
    text: String,
    counts: Vec<u32>,
    area: u64,
    bounds: [u32; 4],
}

#[derive(Deserialize)]
struct PixelCase {
    size: (u32, u32),
    rows: String,
    text: String,
    area: u64,
    bounds: [u32; 4],
}

fn slices(rings: &[Vec<[f64; 2]>]) -> impl Iterator<Item = &[[f64; 2]]> {
    rings.iter().map(Vec::as_slice)
}

fn mask_at(rings: &[Vec<[f64; 2]>], picture: (u32, u32), scale: MaskScale) -> RunLengths {
    let limits = PolygonLimits::default();
    mask_of_polygons(slices(rings), picture.into(), scale, &limits).unwrap()
}

#[test]
fn polygons_have_the_pixels_of_pycocotools() {
    let file: MaskFile = read("masks.json");
    let full = file.polygons.iter().map(|case| (case, MaskScale::Full));
    let quarters = file.quarters.iter().map(|case| (case, MaskScale::Quarter));
    let mut inside = 0;
    for (number, (case, scale)) in full.chain(quarters).enumerate() {
        let picture = case.picture.unwrap_or(case.size);
        let mask = mask_at(&case.rings, picture, scale);
        let at = format!("{number}: {:?} {:?}", case.size, case.rings);
        assert_eq!(mask.size(), case.size.into(), "{at}");
        assert_eq!(mask.counts(), case.counts, "{at}");
        assert_eq!(mask.to_text(), case.text, "{at}");
        assert_eq!(mask.area(), case.area, "{at}");
        assert_eq!(mask.bounds(), case.bounds, "{at}");
        inside += mask.area();
    }
    assert_eq!(file.polygons[0].area, 70);
    assert!(inside > 50_000, "{inside}");
}

#[test]
fn pixels_have_the_run_lengths_of_pycocotools() {
    let file: MaskFile = read("masks.json");
    for case in &file.pixels {
        let rows: Vec<u8> = case.rows.bytes().map(|digit| digit - b'0').collect();
        let mask = RunLengths::encode(case.size.into(), &rows).unwrap();
        assert_eq!(mask.to_text(), case.text, "{:?}", case.size);
        assert_eq!(mask.area(), case.area);
        assert_eq!(mask.bounds(), case.bounds, "{:?} {}", case.size, case.rows);
        let read = RunLengths::from_text(case.size.into(), case.text.as_bytes()).unwrap();
        assert_eq!(read, mask);
        let mut decoded = vec![9; rows.len()];
        read.decode(&mut decoded).unwrap();
        assert_eq!(decoded, rows);
    }
}

#[test]
fn every_mask_survives_its_text() {
    let mut numbers = CaseNumbers::new(11);
    for _ in 0..10_000 {
        let of = size(numbers.whole(1, 12), numbers.whole(1, 12));
        let share = numbers.unit();
        let pixels = (of.width * of.height) as usize;
        let rows: Vec<u8> = (0..pixels)
            .map(|_| u8::from(numbers.unit() < share))
            .collect();
        let mask = RunLengths::encode(of, &rows).unwrap();
        let read = RunLengths::from_text(of, mask.to_text().as_bytes()).unwrap();
        assert_eq!(read, mask);
        assert_eq!(RunLengths::new(of, mask.counts().to_vec()).unwrap(), mask);
        let mut decoded = vec![9; pixels];
        read.decode(&mut decoded).unwrap();
        assert_eq!(decoded, rows);
        assert_eq!(mask.area(), rows.iter().map(|v| u64::from(*v)).sum::<u64>());
    }
    // Long runs need several letters, and differences of both signs.
    let of = size(40_000, 50_000);
    let counts = vec![1_999_999_000, 3, 1, 900, 2, 94];
    let mask = RunLengths::new(of, counts).unwrap();
    assert_eq!(
        RunLengths::from_text(of, mask.to_text().as_bytes()).unwrap(),
        mask
    );
}

#[test]
fn runs_that_do_not_fit_are_refused() {
    let of = size(4, 5);
    let reason =
        |result: Result<RunLengths, crate::targets::TargetFault>| result.unwrap_err().to_string();
    let sums = reason(RunLengths::new(of, vec![10, 11]));
    assert_eq!(
        sums,
        "counts add up to 21, and a mask of 5 x 4 has 20 pixels"
    );
    // A bomb: few bytes, and more pixels than any memory has.
    assert!(reason(RunLengths::new(of, vec![u32::MAX; 9])).contains("add up to"));
    let huge = size(1_000_000, 1_000_000);
    assert!(reason(RunLengths::new(huge, vec![1])).contains("1 to 2147483648 pixels"));
    assert!(reason(RunLengths::new(size(0, 5), Vec::new())).contains("1 to"));
    assert!(u64::from(u32::MAX) > MAX_MASK_PIXELS);
    let text = RunLengths::new(of, vec![3, 2, 15]).unwrap().to_text();
    assert_eq!(text, "32?");
    let read = |text: &[u8]| reason(RunLengths::from_text(of, text));
    assert!(read(b"32").contains("add up to 5"), "{}", read(b"32"));
    assert!(read(b"32o").contains("the text is cut"), "{}", read(b"32o"));
    assert!(
        read(b"3 2").contains("the byte 32 at 1"),
        "{}",
        read(b"3 2")
    );
    assert!(read(b"3\xff").contains("the byte 255"));
    assert!(read(b"O").contains("the length -1"), "{}", read(b"O"));
    assert!(read(b"oooooooooo0").contains("more than 33 bits"));
    assert!(
        read(b"oo1").contains("exceed the 20 pixels"),
        "{}",
        read(b"oo1")
    );
    assert!(read(b"").contains("add up to 0"));
    let mask = RunLengths::new(of, vec![20]).unwrap();
    assert!(mask.decode(&mut [0; 19]).is_err());
    assert!(RunLengths::encode(of, &[0; 21]).is_err());
}

#[test]
fn any_text_is_read_or_refused() {
    let mut numbers = CaseNumbers::new(12);
    let mut read = 0;
    for _ in 0..10_000 {
        let of = size(numbers.whole(1, 9), numbers.whole(1, 9));
        let length = numbers.whole(0, 9);
        let text: Vec<u8> = (0..length)
            .map(|_| match numbers.whole(0, 9) {
                0 => numbers.whole(0, 255) as u8,
                _ => 48 + numbers.whole(0, 40) as u8,
            })
            .collect();
        if let Ok(mask) = RunLengths::from_text(of, &text) {
            read += 1;
            let mut rows = vec![0; (of.width * of.height) as usize];
            mask.decode(&mut rows).unwrap();
            let counted: u64 = rows.iter().map(|v| u64::from(*v)).sum();
            assert_eq!(counted, mask.area());
        }
    }
    assert!(read > 10, "{read}");
}

#[test]
fn any_polygon_is_drawn_or_refused() {
    let mut numbers = CaseNumbers::new(13);
    let odd = [
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
        1e300,
        -1e9,
        1_000_001.0,
        -0.0,
        1e-300,
    ];
    let limits = PolygonLimits::default();
    let (mut drawn, mut refused) = (0, 0);
    for _ in 0..10_000 {
        let of = size(numbers.whole(1, 40), numbers.whole(1, 40));
        let rings: Vec<Vec<[f64; 2]>> = (0..numbers.whole(0, 3))
            .map(|_| {
                (0..numbers.whole(0, 6))
                    .map(|_| {
                        std::array::from_fn(|_| match numbers.whole(0, 30) {
                            0 => odd[numbers.whole(0, 7) as usize],
                            _ => numbers.between(-60.0, 90.0),
                        })
                    })
                    .collect()
            })
            .collect();
        match mask_of_polygons(slices(&rings), of, MaskScale::Full, &limits) {
            Ok(mask) => {
                drawn += 1;
                assert!(mask.area() <= u64::from(of.width * of.height));
                RunLengths::new(of, mask.counts().to_vec()).unwrap();
            }
            Err(fault) => {
                refused += 1;
                assert!(fault.to_string().starts_with("polygons have"), "{fault}");
            }
        }
    }
    assert!(drawn > 5_000 && refused > 500, "{drawn} {refused}");
}

#[test]
fn huge_polygons_are_refused_before_anything_is_drawn() {
    let reason = |ring: Vec<[f64; 2]>, of: (u32, u32)| {
        let limits = PolygonLimits::default();
        let rings = [ring];
        mask_of_polygons(slices(&rings), of.into(), MaskScale::Full, &limits)
            .unwrap_err()
            .to_string()
    };
    let many = vec![[1.0, 2.0]; 1_000_000];
    let fault = reason(many, (10, 10));
    assert!(
        fault.contains("1000000 points: an object has at most 100000"),
        "{fault}"
    );
    // Few points, and an outline that goes to and fro.
    let long = (0..100)
        .map(|i| [f64::from(i % 2) * 999_999.0, 1.0])
        .collect();
    assert!(reason(long, (10, 10)).contains("an outline of"));
    let far = vec![[0.0, 0.0], [1e9, 0.0], [0.0, 9.0]];
    assert!(reason(far, (10, 10)).contains("from -1000000 to 1000000"));
    let square = vec![[0.0, 0.0], [9.0, 0.0], [9.0, 9.0]];
    assert!(reason(square, (100_000, 100_000)).contains("1 to 2147483648 pixels"));
}

/// A rectangle on whole pixels is the same mask, moved before or after it is drawn.
#[test]
fn masks_of_moved_rectangles_are_moved_masks() {
    let mut numbers = CaseNumbers::new(14);
    for _ in 0..2_000 {
        let of = size(numbers.whole(8, 40), numbers.whole(8, 40));
        let (w, h) = (of.width, of.height);
        let (x0, y0) = (numbers.whole(0, w - 2), numbers.whole(0, h - 2));
        let (x1, y1) = (numbers.whole(x0 + 1, w), numbers.whole(y0 + 1, h));
        let (cw, ch) = (numbers.whole(1, w), numbers.whole(1, h));
        let (left, top) = (numbers.whole(0, w - cw), numbers.whole(0, h - ch));
        let steps = [Step::Mirror, crop(left, top, cw, ch)];
        let motion = SampleMotion::of(of, steps.iter().enumerate());
        let path = motion.path();
        let corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
        let ring = vec![corners.map(|at| path.map(at.map(f64::from))).to_vec()];
        let output = motion.output();
        let mask = mask_at(&ring, (output.height, output.width), MaskScale::Full);
        let mut rows = vec![0; (cw * ch) as usize];
        mask.decode(&mut rows).unwrap();
        for (at, pixel) in (0..).zip(&rows) {
            let (x, y) = (w - 1 - (at % cw + left), at / cw + top);
            let inside = (x0..x1).contains(&x) && (y0..y1).contains(&y);
            assert_eq!(*pixel == 1, inside, "{of} {corners:?} {left} {top}");
        }
    }
}

/// People of COCO: areas and boxes of the annotation follow from its polygons.
#[test]
fn polygons_of_coco_have_their_areas_and_boxes() {
    let data = std::env::var("FEATHERLOAD_DATA").unwrap_or_else(|_| "../shared/data".into());
    let path = std::path::Path::new(&data).join("targets/coco/test_coco.json");
    let Ok(text) = std::fs::read(&path) else {
        println!(
            "SKIP: no {} (FEATHERLOAD_DATA names the folder)",
            path.display()
        );
        return;
    };
    let file: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let images = file["images"].as_array().unwrap();
    let mut people = 0;
    for of in file["annotations"].as_array().unwrap() {
        let Some(parts) = of["segmentation"].as_array() else {
            continue;
        };
        let image = images
            .iter()
            .find(|image| image["id"] == of["image_id"])
            .unwrap();
        let side = |name: &str| image[name].as_u64().unwrap() as u32;
        let rings: Vec<Vec<[f64; 2]>> = parts
            .iter()
            .map(|ring| {
                let values: Vec<f64> = serde_json::from_value(ring.clone()).unwrap();
                values.as_chunks::<2>().0.to_vec()
            })
            .collect();
        let mask = mask_at(&rings, (side("height"), side("width")), MaskScale::Full);
        let area = of["area"].as_f64().unwrap();
        let off = (mask.area() as f64 - area).abs();
        assert!(
            off < 0.02 * area + 8.0,
            "{}: {} of {area}",
            of["id"],
            mask.area()
        );
        let bounds: [f64; 4] = serde_json::from_value(of["bbox"].clone()).unwrap();
        for (got, want) in mask.bounds().iter().zip(bounds) {
            assert!(
                (f64::from(*got) - want).abs() < 2.0,
                "{}: {:?}",
                of["id"],
                mask.bounds()
            );
        }
        people += 1;
    }
    assert!(people > 5, "{people}");
}

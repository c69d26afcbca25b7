//! Images standardised by their own mean and deviation, and the patches of Pix2Struct.

use std::fs;

use featherload::recipe::{
    Cast, ColorJitter, Grayscale, Normalize, Patches, Resize, Span, Standardize,
};
use featherload::{DataType, Loader, OnError, Recipe, bf16, f16};

use crate::common::{Picture, builder};

const SIZE: (u16, u16) = (37, 29);

/// A loader of one image.
fn one(recipe: Recipe) -> (tempfile::TempDir, featherload::Result<Loader>) {
    let dir = tempfile::tempdir().unwrap();
    let picture = Picture::rgb(SIZE.1, SIZE.0, 5).encode();
    fs::write(dir.path().join("a.jpg"), picture).unwrap();
    let loader = builder(dir.path()).recipe(recipe).on_error(OnError::Stop);
    let loader = loader.num_workers(1).build();
    (dir, loader)
}

fn floats(recipe: Recipe) -> Vec<f32> {
    let (_dir, loader) = one(recipe.with_dtype(DataType::F32));
    let batch = loader.unwrap().epoch().next().unwrap().unwrap();
    let bytes = batch.row(0).unwrap().bytes().unwrap().to_vec();
    let values = bytes.as_chunks::<4>().0.iter();
    values.map(|bytes| f32::from_ne_bytes(*bytes)).collect()
}

fn check(got: &[f32], levels: &[f64], count: f64) {
    let sum: f64 = levels.iter().sum();
    let mean = sum / count;
    let spread: f64 = levels.iter().map(|v| (v - mean).powi(2)).sum();
    let deviation = (spread / (count - 1.0)).sqrt().max(1.0 / count.sqrt());
    assert!(deviation > 20.0);
    assert_eq!(got.len(), levels.len());
    for (got, level) in got.iter().zip(levels) {
        let wanted = (level - mean) / deviation;
        assert!(
            (f64::from(*got) - wanted).abs() < 1e-6,
            "{got}, not {wanted}"
        );
    }
}

#[test]
fn an_image_gets_its_own_mean_and_deviation() {
    let plain = floats(Recipe::new("plain").then(Cast {
        dtype: DataType::F32,
    }));
    // Without normalize, floats are levels divided by 255.
    let levels: Vec<f64> = plain
        .iter()
        .map(|v| (f64::from(*v) * 255.0).round())
        .collect();
    let count = levels.len() as f64;
    let recipe = Recipe::new("own").then(Standardize {});
    check(&floats(recipe.clone()), &levels, count);
    // Of floats, too, and after a resize to the same size.
    let cast = Recipe::new("floats").then(Cast {
        dtype: DataType::F32,
    });
    check(&floats(cast.then(Standardize {})), &levels, count);
    let (height, width) = (SIZE.0.into(), SIZE.1.into());
    check(
        &floats(recipe.then(Resize::exact(height, width))),
        &levels,
        count,
    );
    let grey = Recipe::new("grey").then(Grayscale::default());
    let plain = floats(grey.clone());
    let levels: Vec<f64> = plain
        .iter()
        .map(|v| (f64::from(*v) * 255.0).round())
        .collect();
    check(
        &floats(grey.then(Standardize {})),
        &levels,
        levels.len() as f64,
    );
    let (normalize, standardize) = (Normalize::imagenet(), Standardize {});
    for (twice, says) in [
        (
            Recipe::new("r").then(normalize.clone()).then(standardize),
            "standardize: comes after normalize",
        ),
        (
            Recipe::new("r").then(standardize).then(normalize),
            "normalize: comes after standardize",
        ),
        (
            Recipe::new("r").then(standardize).then(ColorJitter {
                saturation: Span(0.5, 1.5),
                ..ColorJitter::default()
            }),
            "comes after standardize: move it before standardize",
        ),
    ] {
        let text = one(twice).1.unwrap_err().to_string();
        assert!(text.contains(says), "{text}");
    }
    let text = one(Recipe::new("r")
        .then(Standardize {})
        .with_dtype(DataType::U8));
    let text = text.1.unwrap_err().to_string();
    assert!(text.contains("u8 holds levels"), "{text}");
}

/// An image of one level: the deviation is that of one value among all.
#[test]
fn an_even_image_is_all_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let pixels = vec![77; 3 * 20 * 10];
    let head = b"P6 20 10 255\n".to_vec();
    fs::write(dir.path().join("a.ppm"), [head, pixels].concat()).unwrap();
    let recipe = Recipe::new("own").then(Standardize {});
    let loader = builder(dir.path()).recipe(recipe.with_dtype(DataType::F32));
    let mut loader = loader
        .num_workers(0)
        .on_error(OnError::Stop)
        .build()
        .unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    assert!(
        batch
            .row(0)
            .unwrap()
            .bytes()
            .unwrap()
            .iter()
            .all(|v| *v == 0)
    );
}

/// Each patch has its row and its column before its pixels, and zeros follow the patches.
#[test]
fn patches_of_pix2struct_have_their_places() {
    // 37 x 29 in at most 30 patches of 8 x 8: 6 x 4.
    let patches = Patches::pix2struct(8, 30);
    let recipe = || Recipe::new("p").then(Standardize {}).then(patches);
    let all = floats(recipe());
    let resized = floats(
        Recipe::new("r")
            .then(Standardize {})
            .then(Resize::exact(48, 32)),
    );
    let values = 2 + 3 * 64;
    assert_eq!(all.len(), 30 * values);
    for (number, patch) in all.chunks_exact(values).enumerate() {
        if number >= 24 {
            assert!(patch.iter().all(|v| *v == 0.0));
            continue;
        }
        let (row, column) = (number / 4, number % 4);
        assert_eq!(patch[..2], [(row + 1) as f32, (column + 1) as f32]);
        for (at, value) in patch[2..].iter().enumerate() {
            let (y, x, c) = (row * 8 + at / 24, column * 8 + at / 3 % 8, at % 3);
            assert_eq!(
                *value,
                resized[(c * 48 + y) * 32 + x],
                "{row}, {column}, {at}"
            );
        }
    }
    let halves = |dtype| {
        let (_dir, loader) = one(recipe().with_dtype(dtype));
        let batch = loader.unwrap().epoch().next().unwrap().unwrap();
        batch.row(0).unwrap().bytes().unwrap().to_vec()
    };
    let (half, brain) = (halves(DataType::F16), halves(DataType::Bf16));
    let pairs = half.as_chunks::<2>().0.iter().zip(brain.as_chunks::<2>().0);
    assert_eq!(pairs.len(), all.len());
    for (value, (half, brain)) in all.iter().zip(pairs) {
        assert_eq!(*half, f16::from_f32(*value).to_ne_bytes());
        assert_eq!(*brain, bf16::from_f32(*value).to_ne_bytes());
    }
    for (most, dtype) in [
        (257, DataType::Bf16),
        (2049, DataType::F16),
        (256, DataType::U8),
    ] {
        let recipe = Recipe::new("p").then(Patches::pix2struct(8, most));
        let text = one(recipe.with_dtype(dtype)).1.unwrap_err().to_string();
        assert!(text.contains("holds whole numbers up to"), "{text}");
    }
}

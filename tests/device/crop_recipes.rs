//! Recipes with several crops that a device makes, and images of all kinds for them.

use std::fs;
use std::path::Path;

use featherload::recipe::{
    CenterCrop, ColorJitter, CornerCrop, GaussianBlur, Grayscale, ImageCorner, PillowGaussianBlur,
    RandomApply, RandomChannelPermutation, RandomGrayscale, RandomHorizontalFlip, RandomInvert,
    RandomPhotometricDistort, RandomPosterize, RandomResizedCrop, RandomRotate90, RandomSolarize,
    RandomVerticalFlip, Resize,
};
use featherload::recipe::{
    ColorOrder, Decode, DecodeMode, InterpolationMode, JitterStyle, Normalize, Op, OrientationMode,
    Span,
};
use featherload::{DataType, MemoryLayout, Recipe, ReorderMode};

use crate::common::{Picture, Random, npy};

fn cut(size: impl Into<featherload::recipe::Size>, scale: Span) -> Recipe {
    let crop = RandomResizedCrop {
        scale,
        interpolation: InterpolationMode::Bicubic,
        ..RandomResizedCrop::new(size)
    };
    Recipe::new("crop").then(crop)
}

fn jitter(style: JitterStyle) -> ColorJitter {
    ColorJitter {
        brightness: Span(0.6, 1.4),
        contrast: Span(0.6, 1.4),
        saturation: Span(0.0, 1.9),
        hue: Span(-0.5, 0.5),
        p: 0.8,
        style,
        ..ColorJitter::default()
    }
}

fn all(recipe: Recipe, ops: &[Op]) -> Recipe {
    ops.iter().cloned().fold(recipe, Recipe::then)
}

/// The views of DINO: two global ones, and eight local ones.
pub fn dino(global: u32, local: u32) -> Recipe {
    let crop = |size, scale, blur: f64, solarize: f64| {
        let recipe = cut(size, scale)
            .then(RandomHorizontalFlip::default())
            .then(jitter(JitterStyle::Pillow))
            .then(RandomGrayscale { p: 0.2 })
            .then(PillowGaussianBlur {
                radius: Span(0.1, 2.0),
                p: blur,
            });
        let recipe = match solarize {
            0.0 => recipe,
            p => recipe.then(RandomSolarize {
                p,
                ..RandomSolarize::new(128.0)
            }),
        };
        recipe
            .then(Normalize::imagenet())
            .with_decode(DecodeMode::Full)
    };
    Recipe::new("dino")
        .with_crop(crop(global, Span(0.4, 1.0), 1.0, 0.0), 1)
        .with_crop(crop(global, Span(0.4, 1.0), 0.1, 0.2), 1)
        .with_crop(crop(local, Span(0.05, 0.4), 0.5, 0.0), 8)
}

/// Two equal views of SimCLR, in f16.
pub fn simclr(size: u32) -> Recipe {
    let crop = cut(size, Span(0.08, 1.0))
        .then(RandomHorizontalFlip::default())
        .then(jitter(JitterStyle::Pillow))
        .then(RandomGrayscale { p: 0.2 })
        .then(PillowGaussianBlur {
            radius: Span(0.1, 11.2),
            p: 0.5,
        })
        .then(Normalize::imagenet());
    Recipe::new("simclr").with_crop(crop.with_dtype(DataType::F16), 2)
}

/// The views of DINOv2, whose blur is torchvision's.
pub fn dino2(global: u32, local: u32) -> Recipe {
    let blur = |p| RandomApply {
        transforms: vec![Op::from(GaussianBlur {
            sigma: Span(0.1, 2.0),
            ..GaussianBlur::new(9)
        })],
        p,
    };
    let crop = |size, scale, p| {
        cut(size, scale)
            .then(RandomHorizontalFlip::default())
            .then(jitter(JitterStyle::Tensor))
            .then(RandomGrayscale { p: 0.2 })
            .then(blur(p))
            .then(Normalize::imagenet())
            .with_dtype(DataType::Bf16)
    };
    Recipe::new("dino2")
        .with_crop(crop(global, Span(0.32, 1.0), 0.9), 2)
        .with_crop(crop(local, Span(0.05, 0.32), 0.5), 3)
}

/// Every other step, turns, and all forms.
fn others() -> Vec<Recipe> {
    let turned: [Op; 7] = [
        RandomVerticalFlip::default().into(),
        RandomRotate90::default().into(),
        PillowGaussianBlur {
            radius: Span(0.1, 60.0),
            p: 1.0,
        }
        .into(),
        RandomRotate90::default().into(),
        RandomPosterize::new(3).into(),
        RandomInvert { p: 0.5 }.into(),
        RandomChannelPermutation::default().into(),
    ];
    let blurred: [Op; 4] = [
        RandomRotate90::default().into(),
        GaussianBlur::new((63, 5)).into(),
        RandomRotate90::default().into(),
        RandomHorizontalFlip::default().into(),
    ];
    let distorted: [Op; 3] = [
        RandomPhotometricDistort::default().into(),
        RandomPhotometricDistort {
            style: JitterStyle::Pillow,
            ..RandomPhotometricDistort::default()
        }
        .into(),
        Grayscale {
            num_output_channels: 1,
        }
        .into(),
    ];
    let plain = |recipe: Recipe| recipe.then(RandomHorizontalFlip::default());
    let corner = |corner| {
        Recipe::new("corner")
            .then(Resize::exact(70, 90))
            .then(CornerCrop::new(33, corner))
            .with_dtype(DataType::U8)
    };
    let full = |recipe| plain(recipe).with_decode(DecodeMode::Full);
    let opened = |color| {
        let decode = Decode {
            color,
            ..Decode::default()
        };
        let crop = Recipe::new("opened")
            .then(decode)
            .then(RandomResizedCrop::new((20, 30)))
            .then(RandomHorizontalFlip::default());
        match color {
            ColorOrder::Grey => crop.then(Normalize::new([0.4; 3], [0.3; 3])),
            _ => crop.then(Normalize::imagenet()),
        }
    };
    let middle = Recipe::new("middle")
        .then(Resize::shorter(40))
        .then(CenterCrop::new(33))
        .with_dtype(DataType::U8);
    let filtered = |interpolation| {
        let crop = RandomResizedCrop {
            interpolation,
            ..RandomResizedCrop::new((35, 26))
        };
        plain(Recipe::new("filtered").then(crop)).with_dtype(DataType::U8)
    };
    vec![
        Recipe::new("filters")
            .with_crop(filtered(InterpolationMode::Nearest), 1)
            .with_crop(filtered(InterpolationMode::Area), 1)
            .with_crop(filtered(InterpolationMode::Lanczos), 1),
        Recipe::new("turned")
            .with_crop(all(cut(31, Span(0.1, 1.0)), &turned), 2)
            .with_crop(all(cut(64, Span(0.1, 1.0)), &blurred), 2),
        Recipe::new("grey").with_crop(all(cut((17, 40), Span(0.01, 1.0)), &distorted), 3),
        Recipe::new("levels")
            .with_crop(
                plain(cut((40, 17), Span(0.2, 1.0))).with_dtype(DataType::U8),
                2,
            )
            .with_crop(
                plain(cut((1, 1), Span(0.2, 1.0))).with_dtype(DataType::U8),
                1,
            ),
        Recipe::new("last")
            .with_crop(
                plain(cut((13, 50), Span(0.2, 1.0)))
                    .with_layout(MemoryLayout::Nhwc)
                    .with_dtype(DataType::F32),
                2,
            )
            .with_crop(
                all(
                    cut(24, Span(0.2, 1.0)),
                    &[jitter(JitterStyle::Tensor).into()],
                )
                .with_layout(MemoryLayout::Nhwc)
                .with_dtype(DataType::F32),
                1,
            ),
        // Strong reductions, whose resize begins with the pass down.
        Recipe::new("down")
            .with_crop(full(Recipe::new("small").then(Resize::exact(50, 70))), 1)
            .with_crop(full(cut(150, Span(0.5, 1.0))), 1),
        Recipe::new("bgr")
            .with_crop(opened(ColorOrder::Bgr), 2)
            .with_crop(opened(ColorOrder::Bgr).with_layout(MemoryLayout::Nchw), 1),
        Recipe::new("bgr, last")
            .with_crop(opened(ColorOrder::Bgr).with_layout(MemoryLayout::Nhwc), 2),
        Recipe::new("luma").with_crop(
            // In this order the grey is made after the resize.
            opened(ColorOrder::Grey).with_reorder(ReorderMode::Fast),
            2,
        ),
        Recipe::new("corners")
            .with_crop(corner(ImageCorner::TopLeft), 1)
            .with_crop(corner(ImageCorner::BottomRight), 1)
            .with_crop(middle, 1),
    ]
}

/// All recipes.
pub fn recipes() -> Vec<Recipe> {
    let mut recipes = vec![dino(48, 21), simclr(33), dino2(40, 16)];
    recipes.extend(others());
    recipes
        .into_iter()
        .map(|recipe| Recipe {
            crops: (recipe.crops.into_iter())
                .map(|mut crop| {
                    crop.recipe = crop.recipe.with_orientation(OrientationMode::Exif);
                    crop
                })
                .collect(),
            ..recipe
        })
        .collect()
}

/// Images of all kinds: tiny ones, thin ones, some whose hull has no room in a row, grey and
/// progressive ones, arrays, and files that are read row by row.
pub fn images(folder: &Path) {
    let class = folder.join("class");
    fs::create_dir_all(&class).unwrap();
    let sizes = [
        (1, 1),
        (2, 300),
        (300, 3),
        (40, 33),
        (33, 33),
        (129, 200),
        (256, 171),
        (500, 375),
        (90, 1200),
        (1300, 1100),
        (64, 64),
    ];
    for (i, (width, height)) in (0..).zip(sizes) {
        let picture = Picture {
            grey: i % 5 == 4,
            progressive: i % 4 == 3,
            ..Picture::rgb(width, height, i)
        };
        fs::write(class.join(format!("{i:02}.jpg")), picture.encode()).unwrap();
    }
    for (i, shape) in (20..).zip(["(50, 61, 3)", "(7, 90, 3)"]) {
        // Arrays are read by their content, whatever the name says.
        fs::write(class.join(format!("{i}.png")), npy(shape, i)).unwrap();
    }
    for (i, (width, height)) in (30..).zip([(61, 50), (400, 300)]) {
        let mut random = Random(i);
        let mut file = format!("P6 {width} {height} 255\n").into_bytes();
        file.extend((0..3 * width * height).map(|_| random.next() as u8));
        fs::write(class.join(format!("{i}.ppm")), file).unwrap();
    }
}

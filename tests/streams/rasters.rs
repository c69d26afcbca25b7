//! Rasters of images: one stream for any number of workers, and numbers that follow from the place
//! of each pixel.

use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::recipe::{
    AugMix, CenterCrop, ColorJitter, Normalize, RandomCrop, RandomHorizontalFlip,
    RandomPerspective, RandomResizedCrop, RandomRotate90, RandomRotation, RandomVerticalFlip,
    Resize, Rotate90, Span,
};
use featherload::{
    Batch, DataType, FlowRule, LoaderBuilder, MaskRule, MemoryLayout, NumberRule, OnError,
    PairColors, PairRule, RasterFilter, RasterFloat, RasterNumber, RasterOptions, RasterRule,
    Recipe, RowStatus, State,
};
use image::{ImageBuffer, Luma, Rgb, RgbImage};

use crate::common::builder;
use crate::common::rows::{assert_same, rows, stream, take};

const COUNT: u32 = 21;

fn size_of_image(n: u32) -> (u32, u32) {
    (30 + 3 * n, 71 - 2 * n)
}

/// An array of NumPy.
fn npy(shape: &str, numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(numbers.into_iter().flat_map(f32::to_le_bytes));
    file
}

/// Images whose pixels are their column, their row and the number of the image. Depths have 1 +
/// column + 256 x row in sixteenths, flows have column and row, larger images have their own place.
fn images(dir: &Path) {
    for folder in ["images", "depth", "flow", "large", "right"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    for n in 0..COUNT {
        let (width, height) = size_of_image(n);
        let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, n as u8]));
        image.save(dir.join(format!("images/{n:02}.png"))).unwrap();
        let right = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, 100 + n as u8]));
        right.save(dir.join(format!("right/{n:02}.png"))).unwrap();
        let depth = ImageBuffer::from_fn(width, height, |x, y| {
            Luma([(16 * (1 + x) + 256 * y) as u16])
        });
        depth.save(dir.join(format!("depth/{n:02}.png"))).unwrap();
        let large = RgbImage::from_fn(3 * width, 3 * height, |x, y| {
            Rgb([x as u8, y as u8, (x / 256 + 16 * (y / 256)) as u8])
        });
        large.save(dir.join(format!("large/{n:02}.png"))).unwrap();
        let places = (0..height).flat_map(|y| (0..width).map(move |x| [x as f32, y as f32]));
        let flow = npy(&format!("{height}, {width}, 2"), places.flatten());
        fs::write(dir.join(format!("flow/{n:02}.npy")), flow).unwrap();
    }
}

fn files(name: &str, rule: RasterRule) -> RasterOptions {
    let ending = if name == "flow" { "npy" } else { "png" };
    RasterOptions::new(format!("../{name}/{{stem}}.{ending}"), rule)
}

fn depth() -> NumberRule {
    NumberRule {
        divide: 16.0,
        ..NumberRule::depth()
    }
}

fn bilinear() -> NumberRule {
    NumberRule {
        filter: RasterFilter::Bilinear,
        ..depth()
    }
}

fn loader(dir: &Path, recipe: Recipe) -> LoaderBuilder {
    builder(&dir.join("images")).recipe(recipe).shuffle(false)
}

/// The numbers of a raster, row by row.
fn numbers(batch: &Batch, name: &str) -> Vec<f32> {
    let raster = batch.raster(name).unwrap();
    let bytes = raster.bytes().as_chunks().0.iter();
    bytes.map(|n| f32::from_ne_bytes(*n)).collect()
}

fn batches(builder: LoaderBuilder) -> Vec<Batch> {
    let mut loader = builder.build().unwrap();
    let all = loader.epoch().map(|batch| batch.unwrap().detach().unwrap());
    all.collect()
}

fn augmented() -> Recipe {
    Recipe::new("augmented")
        .then(RandomResizedCrop::new(32))
        .then(RandomHorizontalFlip::default())
        .then(RandomRotation::new(Span(-20.0, 20.0)))
        .then(ColorJitter::default())
        .with_dtype(DataType::U8)
}

#[test]
fn the_stream_is_the_same_for_any_number_of_workers_and_from_any_point() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let make = |workers| {
        let half = NumberRule {
            dtype: RasterFloat::Float16,
            ..bilinear()
        };
        let valid = FlowRule {
            valid: true,
            ..FlowRule::default()
        };
        builder(&dir.path().join("images"))
            .recipe(augmented())
            .raster("depth", files("depth", RasterRule::Numbers(depth())))
            .raster("smooth", files("depth", RasterRule::Numbers(half)))
            .raster("flow", files("flow", RasterRule::Flow(valid)))
            .raster(
                "right",
                files("right", RasterRule::Image(PairRule::default())),
            )
            .raster(
                "mask",
                files(
                    "right",
                    RasterRule::Mask(MaskRule {
                        form: featherload::LabelForm::Colors,
                        ..MaskRule::default()
                    }),
                ),
            )
            .num_workers(workers)
            .epochs(2)
    };
    let want = stream(&mut make(0).build().unwrap(), 2);
    assert_eq!(want.len(), 2 * COUNT as usize);
    assert!(want.iter().all(|row| row.status == RowStatus::Ok));
    for workers in [1, 2, 8] {
        let got = stream(&mut make(workers).build().unwrap(), 2);
        assert_same(&got, &want, &format!("{workers} workers"));
    }
    let got = make(2).kill_workers_every(Duration::from_millis(4));
    let mut killed = got.build().unwrap();
    assert_same(&stream(&mut killed, 2), &want, "killed");
    let (first, state) = take(&mut make(2).build().unwrap(), 2);
    let text = serde_json::to_string(&state).unwrap();
    let state: State = serde_json::from_str(&text).unwrap();
    let rest = stream(&mut make(3).resume(state.clone()).build().unwrap(), 2);
    assert_same(&[first, rest].concat(), &want, "resumed");
    // A run with other rasters is another run.
    let other = make(2)
        .raster("more", files("depth", RasterRule::Numbers(depth())))
        .resume(state);
    let e = other.build().unwrap_err().to_string();
    assert!(e.contains("the rasters was depth "), "{e}");
}

/// Members of tars give the rows of files.
#[test]
fn members_of_tars_are_rasters() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let tar = dir.path().join("a.tar");
    let mut writer = tar::Builder::new(fs::File::create(&tar).unwrap());
    for n in 0..COUNT {
        for (folder, ending, member) in [
            ("images", "png", "png"),
            ("depth", "png", "depth.png"),
            ("flow", "npy", "flow.npy"),
        ] {
            let file = dir.path().join(format!("{folder}/{n:02}.{ending}"));
            let name = format!("{n:02}.{member}");
            writer.append_path_with_name(file, name).unwrap();
        }
    }
    writer.into_inner().unwrap();
    let flow = || RasterRule::Flow(FlowRule::default());
    let of_files = loader(dir.path(), augmented())
        .raster("depth", files("depth", RasterRule::Numbers(depth())))
        .raster("flow", files("flow", flow()));
    let member = |name: &str| {
        builder(&tar)
            .recipe(augmented())
            .shuffle(false)
            .raster(
                "depth",
                RasterOptions::member("depth.png", RasterRule::Numbers(depth())),
            )
            .raster("flow", RasterOptions::member(name, flow()))
    };
    let (want, got) = (
        batches(of_files),
        batches(member("flow.npy").num_workers(2)),
    );
    assert_eq!(want.len(), got.len());
    for (want, got) in want.iter().zip(&got) {
        assert_eq!(
            want.pixels().unwrap().bytes(),
            got.pixels().unwrap().bytes()
        );
        for name in ["depth", "flow"] {
            let (want, got) = (want.raster(name).unwrap(), got.raster(name).unwrap());
            assert!(want.bytes() == got.bytes(), "{name} differs");
        }
    }
    let e = member("none.npy").build().unwrap_err().to_string();
    assert!(e.contains("has no member 'none.npy'"), "{e}");
    let both = RasterOptions::member("depth.png", RasterRule::Numbers(depth()));
    let e = loader(dir.path(), augmented())
        .raster("depth", both)
        .build();
    let e = e.unwrap_err().to_string();
    assert!(e.contains("rasters") && e.contains("member"), "{e}");
    let cache = RasterOptions::new("cache", RasterRule::Numbers(depth()));
    let e = loader(dir.path(), augmented())
        .raster("depth", cache)
        .build();
    let e = e.unwrap_err().to_string();
    assert!(e.contains("these images are in no cache"), "{e}");
}

/// Images are equal with and without rasters.
#[test]
fn images_do_not_depend_on_their_rasters() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let plain = batches(loader(dir.path(), augmented()));
    let with = loader(dir.path(), augmented())
        .raster("depth", files("depth", RasterRule::Numbers(depth())))
        .raster(
            "right",
            files("right", RasterRule::Image(PairRule::default())),
        );
    for (plain, with) in plain.iter().zip(batches(with)) {
        assert!(plain.pixels().unwrap().bytes() == with.pixels().unwrap().bytes());
    }
}

/// Without a step that mixes pixels, the image says where each pixel was.
#[test]
fn depths_and_flows_go_where_their_image_goes() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = Recipe::new("flips")
        .then(RandomCrop::new(23))
        .then(RandomHorizontalFlip::default())
        .then(RandomVerticalFlip::default())
        .then(RandomRotate90::default())
        .with_layout(MemoryLayout::Nhwc)
        .with_dtype(DataType::U8);
    let rasters = loader(dir.path(), recipe)
        .raster("depth", files("depth", RasterRule::Numbers(depth())))
        .raster("smooth", files("depth", RasterRule::Numbers(bilinear())))
        .raster("flow", files("flow", RasterRule::Flow(FlowRule::default())))
        .num_workers(2);
    let mut turned = 0;
    for batch in batches(rasters) {
        let (depths, flows) = (numbers(&batch, "depth"), numbers(&batch, "flow"));
        assert_eq!(
            batch.raster("depth").unwrap().shape(),
            [batch.len(), 1, 23, 23]
        );
        assert_eq!(
            batch.raster("flow").unwrap().shape(),
            [batch.len(), 2, 23, 23]
        );
        assert_eq!(numbers(&batch, "smooth"), depths);
        for row in 0..batch.len() {
            let image = batch.row(row).unwrap().bytes().unwrap().as_chunks::<3>().0;
            let at = |x: usize, y: usize| image[y * 23 + x].map(f32::from);
            let area = 23 * 23;
            // How a step to the right and a step down of the file look in the row.
            let (right, down) = (at(1, 0), at(0, 1));
            let across = [right[0] - at(0, 0)[0], down[0] - at(0, 0)[0]];
            let along = [right[1] - at(0, 0)[1], down[1] - at(0, 0)[1]];
            turned += usize::from(across[0] == 0.0);
            for place in 0..area {
                let [x, y, _] = at(place % 23, place / 23);
                assert_eq!(depths[row * area + place], 1.0 + x + 16.0 * y);
                let u = flows[row * 2 * area + place];
                let v = flows[(row * 2 + 1) * area + place];
                assert_eq!(
                    [u, v],
                    [across[0] * x + along[0] * y, across[1] * x + along[1] * y]
                );
            }
        }
    }
    assert!((1..COUNT as usize).contains(&turned));
}

/// A resize of a ramp is a ramp, so each number follows from its place.
#[test]
fn resized_depths_and_flows_follow_from_their_places() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let (out, crop) = ((15usize, 37usize), 25usize);
    let recipe = Recipe::new("resized")
        .then(CenterCrop::new(crop as u32))
        .then(RandomHorizontalFlip { p: 1.0 })
        .then(Resize::exact(out.0 as u32, out.1 as u32))
        .with_dtype(DataType::U8);
    let rasters = loader(dir.path(), recipe)
        .raster("floor", files("depth", RasterRule::Numbers(depth())))
        .raster("smooth", files("depth", RasterRule::Numbers(bilinear())))
        .raster("flow", files("flow", RasterRule::Flow(FlowRule::default())));
    let mut seen = 0;
    for batch in batches(rasters) {
        let [floor, smooth, flow] = ["floor", "smooth", "flow"].map(|name| numbers(&batch, name));
        for row in 0..batch.len() {
            let (width, height) = size_of_image(batch.ids()[row] as u32);
            // As torchvision: half of an odd rest is rounded to the even number.
            let border = |side: u32| ((f64::from(side) - crop as f64) / 2.0).round_ties_even();
            let (left, top) = (border(width) as usize, border(height) as usize);
            for place in 0..out.0 * out.1 {
                let (x, y) = (place % out.1, place / out.1);
                // PyTorch's nearest: floor(output * scale), in the flipped crop.
                let near_x = crop - 1 - x * crop / out.1;
                let near_y = y * crop / out.0;
                let at = row * out.0 * out.1 + place;
                let want = 1 + left + near_x + 16 * (top + near_y);
                assert_eq!(floor[at], want as f32, "{x} {y}");
                // PyTorch's bilinear without align_corners.
                let between = |at: usize, out: usize| {
                    let at = (at as f64 + 0.5) * crop as f64 / out as f64 - 0.5;
                    at.clamp(0.0, (crop - 1) as f64)
                };
                let x = (crop - 1) as f64 - between(x, out.1);
                let y = between(y, out.0);
                let want = 1.0 + left as f64 + x + 16.0 * (top as f64 + y);
                assert!(
                    (f64::from(smooth[at]) - want).abs() < 1e-3,
                    "{} {want}",
                    smooth[at]
                );
                let area = out.0 * out.1;
                let [u, v] = [0, 1].map(|plane| flow[(row * 2 + plane) * area + place]);
                let want_u = -((left + near_x) as f64) * out.1 as f64 / crop as f64;
                let want_v = (top + near_y) as f64 * out.0 as f64 / crop as f64;
                assert!((f64::from(u) - want_u).abs() < 1e-3, "{u} {want_u}");
                assert!((f64::from(v) - want_v).abs() < 1e-3, "{v} {want_v}");
            }
            seen += 1;
        }
    }
    assert_eq!(seen, COUNT);
}

/// The centre of a rotated flow turns with the picture, and uncovered corners have the fill.
#[test]
fn rotations_turn_vectors_and_uncover_fill() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    for n in 0..COUNT {
        let (width, height) = size_of_image(n);
        let flow = (0..width * height).flat_map(|_| [3.0, 1.0]);
        let path = dir.path().join(format!("flow/{n:02}.npy"));
        fs::write(path, npy(&format!("{height}, {width}, 2"), flow)).unwrap();
    }
    let recipe = Recipe::new("turned")
        .then(RandomRotation::new(Span(30.0, 30.0)))
        .then(Resize::exact(29, 29))
        .with_dtype(DataType::U8);
    for filter in [RasterFilter::Center, RasterFilter::Bilinear] {
        let valid = FlowRule {
            valid: true,
            fill: Some(RasterNumber(-7.0)),
            filter,
            ..FlowRule::default()
        };
        let rasters = loader(dir.path(), recipe.clone())
            .raster("flow", files("flow", RasterRule::Flow(valid)));
        for batch in batches(rasters) {
            let flow = numbers(&batch, "flow");
            for row in 0..batch.len() {
                let (width, height) = size_of_image(batch.ids()[row] as u32);
                let (scale_x, scale_y) = (29.0 / f64::from(width), 29.0 / f64::from(height));
                let (sin, cos) = 30f64.to_radians().sin_cos();
                // Counter-clockwise, with y down.
                let want = [
                    (3.0 * cos + sin) * scale_x,
                    (-3.0 * sin + cos) * scale_y,
                    1.0,
                ];
                let area = 29 * 29;
                for (plane, want) in want.iter().enumerate() {
                    let at = |place: usize| f64::from(flow[(row * 3 + plane) * area + place]);
                    let centre = at(14 * 29 + 14);
                    assert!((centre - want).abs() < 1e-4, "{centre} {want}");
                    let outside = if plane == 2 { 0.0 } else { -7.0 };
                    assert_eq!([at(0), at(28)], [outside; 2]);
                }
            }
        }
    }
}

/// A value next to a missing one is not mixed with it, and missing values stay missing.
#[test]
fn missing_values_are_never_mixed() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("images")).unwrap();
    fs::create_dir(dir.path().join("depth")).unwrap();
    let image = RgbImage::from_pixel(4, 1, Rgb([1, 2, 3]));
    image.save(dir.path().join("images/0.png")).unwrap();
    let stored = [100.0, 0.0, 200.0, f32::INFINITY];
    let recipe = Recipe::new("wide")
        .then(Resize::exact(1, 8))
        .with_dtype(DataType::U8);
    fs::write(dir.path().join("depth/0.npy"), npy("1, 4", stored)).unwrap();
    let make = |rule: NumberRule| {
        let files = RasterOptions::new("../depth/{stem}.npy", RasterRule::Numbers(rule));
        numbers(
            &batches(loader(dir.path(), recipe.clone()).raster("d", files))[0],
            "d",
        )
    };
    let smooth = NumberRule {
        filter: RasterFilter::Bilinear,
        fill: RasterNumber(-1.0),
        ..NumberRule::depth()
    };
    assert_eq!(
        make(smooth.clone()),
        [100.0, 100.0, -1.0, -1.0, 200.0, 200.0, -1.0, -1.0]
    );
    // Without a missing number, 0 is a depth.
    let all = NumberRule {
        missing: None,
        ..smooth
    };
    assert_eq!(
        make(all),
        [100.0, 75.0, 25.0, 50.0, 150.0, 200.0, -1.0, -1.0]
    );
    let nan = NumberRule {
        fill: RasterNumber(f32::NAN),
        ..NumberRule::depth()
    };
    let got = make(nan);
    assert_eq!(got[..2], [100.0, 100.0]);
    assert!(got[2].is_nan() && got[3].is_nan() && got[6].is_nan());
}

/// A pair that is the same file is the same picture, whatever the recipe does.
#[test]
fn a_pair_has_the_moves_colours_and_numbers_of_its_image() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = Recipe::new("normal")
        .then(RandomResizedCrop::new(24))
        .then(RandomHorizontalFlip::default())
        .then(RandomRotation::new(Span(-20.0, 20.0)))
        .then(ColorJitter {
            brightness: Span(0.4, 1.6),
            contrast: Span(0.4, 1.6),
            ..ColorJitter::default()
        })
        .then(Normalize::imagenet());
    for n in 0..COUNT {
        let from = dir.path().join(format!("images/{n:02}.png"));
        fs::copy(from, dir.path().join(format!("right/{n:02}.png"))).unwrap();
    }
    let plain = PairRule {
        colors: PairColors::None,
        ..PairRule::default()
    };
    let rasters = loader(dir.path(), recipe)
        .raster(
            "same",
            files("right", RasterRule::Image(PairRule::default())),
        )
        .raster("plain", files("right", RasterRule::Image(plain)))
        .num_workers(2);
    for batch in batches(rasters) {
        let pixels = batch.pixels().unwrap();
        let same = batch.raster("same").unwrap();
        assert_eq!(same.shape(), [batch.len(), 3, 24, 24]);
        assert!(same.bytes() == pixels.bytes());
        assert!(batch.raster("plain").unwrap().bytes() != pixels.bytes());
    }
}

/// The pixel of a larger image is where the image's pixel says.
#[test]
fn a_larger_pair_shows_the_same_part() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = Recipe::new("pair")
        .then(RandomCrop::new(11))
        .then(RandomHorizontalFlip::default())
        .then(RandomRotate90::default())
        .with_layout(MemoryLayout::Nhwc)
        .with_dtype(DataType::U8);
    let three = PairRule {
        scale: 3,
        ..PairRule::default()
    };
    let rasters = loader(dir.path(), recipe)
        .raster("large", files("large", RasterRule::Image(three)))
        .num_workers(2);
    for batch in batches(rasters) {
        let large = batch.raster("large").unwrap();
        assert_eq!(large.shape(), [batch.len(), 33, 33, 3]);
        for row in 0..batch.len() {
            let small = batch.row(row).unwrap().bytes().unwrap().as_chunks::<3>().0;
            let large = large.row(row).unwrap().as_chunks::<3>().0;
            for y in 0..33 {
                for x in 0..33 {
                    let [left, top, _] = small[y / 3 * 11 + x / 3].map(u32::from);
                    let [low_x, low_y, high] = large[y * 33 + x].map(u32::from);
                    let place = (low_x + 256 * (high % 16), low_y + 256 * (high / 16));
                    assert_eq!((place.0 / 3, place.1 / 3), (left, top));
                }
            }
        }
    }
}

#[test]
fn a_flip_exchanges_the_images_of_a_stereo_pair() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = Recipe::new("stereo")
        .then(RandomCrop::new(16))
        .then(RandomHorizontalFlip::default())
        .with_layout(MemoryLayout::Nhwc)
        .with_dtype(DataType::U8);
    let swap = PairRule {
        swap: true,
        ..PairRule::default()
    };
    let rasters =
        loader(dir.path(), recipe).raster("right", files("right", RasterRule::Image(swap)));
    let mut flips = 0;
    for batch in batches(rasters) {
        for row in 0..batch.len() {
            let image = batch.row(row).unwrap().bytes().unwrap().as_chunks::<3>().0;
            let right = batch
                .raster("right")
                .unwrap()
                .row(row)
                .unwrap()
                .as_chunks::<3>()
                .0;
            let flipped = image[0][0] > image[1][0];
            flips += u32::from(flipped);
            let n = batch.ids()[row] as u8;
            let (of_image, of_right) = if flipped { (100 + n, n) } else { (n, 100 + n) };
            assert!(image.iter().all(|pixel| pixel[2] == of_image));
            assert!(right.iter().all(|pixel| pixel[2] == of_right));
            assert!(image.iter().zip(right).all(|(a, b)| a[..2] == b[..2]));
        }
    }
    assert!((1..COUNT).contains(&flips));
}

#[test]
fn rows_of_bad_rasters_are_filled_and_named() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    fs::remove_file(dir.path().join("depth/04.png")).unwrap();
    fs::write(dir.path().join("flow/09.npy"), "no array").unwrap();
    let wrong = ImageBuffer::from_pixel(9, 7, Luma([3u16]));
    wrong.save(dir.path().join("depth/11.png")).unwrap();
    let huge = npy("1000000000, 1000000000", [0.0; 4]);
    fs::write(dir.path().join("depth/13.png"), huge).unwrap();
    let small = RgbImage::from_pixel(5, 5, Rgb([0; 3]));
    small.save(dir.path().join("right/15.png")).unwrap();
    let make = |policy| {
        let recipe = Recipe::new("small")
            .then(Resize::exact(16, 16))
            .with_dtype(DataType::U8);
        let fill = NumberRule {
            fill: RasterNumber(-2.0),
            ..depth()
        };
        loader(dir.path(), recipe)
            .raster("depth", files("depth", RasterRule::Numbers(fill)))
            .raster("flow", files("flow", RasterRule::Flow(FlowRule::default())))
            .raster(
                "right",
                files("right", RasterRule::Image(PairRule::default())),
            )
            .on_error(policy)
    };
    let mut reasons = Vec::new();
    for batch in batches(make(OnError::Skip).num_workers(2)) {
        for row in 0..batch.len() {
            let is_failed = batch.status()[row] == RowStatus::Failed;
            let [depth, flow] = ["depth", "flow"].map(|name| {
                let raster = batch.raster(name).unwrap();
                let bytes = raster.row(row).unwrap().as_chunks().0.iter();
                bytes.map(|n| f32::from_ne_bytes(*n)).collect::<Vec<_>>()
            });
            assert_eq!(depth.iter().all(|n| *n == -2.0), is_failed);
            assert_eq!(flow.iter().all(|n| n.is_nan()), is_failed);
        }
        let faults = batch.faults().iter();
        reasons.extend(faults.map(|fault| (fault.id, fault.fault.reason.clone())));
    }
    let want = [
        (4, "raster depth ", "/depth/04.png: "),
        (9, "raster flow ", "/flow/09.npy: the flow is no .flo file"),
        (
            11,
            "raster depth ",
            "the raster has 9 x 7 pixels, and its image 63 x 49",
        ),
        (13, "raster depth ", "over max_pixels"),
        (
            15,
            "raster right ",
            "the raster has 5 x 5 pixels, and its image 75 x 41",
        ),
    ];
    assert_eq!(reasons.len(), want.len(), "{reasons:?}");
    for ((id, reason), (want, start, part)) in reasons.iter().zip(want) {
        assert_eq!(*id, want);
        assert!(
            reason.starts_with(start) && reason.contains(part),
            "{reason}"
        );
    }
    let want = stream(
        &mut make(OnError::Substitute).num_workers(0).build().unwrap(),
        1,
    );
    let got = stream(
        &mut make(OnError::Substitute).num_workers(3).build().unwrap(),
        1,
    );
    assert_same(&got, &want, "substituted");
}

#[test]
fn a_short_last_batch_and_detached_batches_have_their_rasters() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let mut loader = loader(dir.path(), augmented())
        .raster("depth", files("depth", RasterRule::Numbers(depth())))
        .raster(
            "right",
            files("right", RasterRule::Image(PairRule::default())),
        )
        .num_workers(2)
        .build()
        .unwrap();
    let mut sizes = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        sizes.push(batch.len());
        let before = rows(&batch);
        assert_eq!(rows(&batch.detach().unwrap()), before);
    }
    assert_eq!(sizes, [8, 8, 5]);
}

#[test]
fn rasters_that_cannot_be_are_refused_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let crop = || {
        Recipe::new("crop")
            .then(CenterCrop::new(16))
            .with_dtype(DataType::U8)
    };
    let flow = || files("flow", RasterRule::Flow(FlowRule::default()));
    let large = |rule: PairRule| files("large", RasterRule::Image(rule));
    let warped = Recipe::new("warped")
        .then(RandomPerspective::default())
        .then(CenterCrop::new(16))
        .with_dtype(DataType::U8);
    let turned = Recipe::new("turned")
        .then(RandomRotation::new(Span(-9.0, 9.0)))
        .then(CenterCrop::new(16))
        .with_dtype(DataType::U8);
    let pair = PairRule {
        scale: 3,
        ..PairRule::default()
    };
    let both = PairRule {
        swap: true,
        colors: PairColors::None,
        ..PairRule::default()
    };
    let plain = PairRule {
        colors: PairColors::None,
        ..PairRule::default()
    };
    let zero = NumberRule {
        divide: 0.0,
        ..NumberRule::depth()
    };
    let wide = NumberRule {
        fill: RasterNumber(1e6),
        dtype: RasterFloat::Float16,
        ..NumberRule::depth()
    };
    for (recipe, name, raster, what) in [
        (warped, "flow", flow(), "random_perspective"),
        (
            turned,
            "large",
            large(pair),
            "random_rotation has no exact multiple",
        ),
        (
            crop().then(AugMix::default()),
            "right",
            files("right", RasterRule::Image(plain)),
            "without its colours a pair has no such mixture",
        ),
        (crop(), "no name", flow(), "letters, digits and _ only"),
        (crop(), "masks", flow(), "belongs to the option `masks`"),
        (crop(), "right", large(both), "both must be made alike"),
        (
            crop(),
            "d",
            files("depth", RasterRule::Numbers(zero)),
            "`divide` is 0",
        ),
        (
            crop(),
            "d",
            files("depth", RasterRule::Numbers(wide)),
            "float16 does not hold",
        ),
        (
            crop(),
            "d",
            files("none", RasterRule::Numbers(depth())),
            "does not exist",
        ),
        (
            Recipe::full(),
            "flow",
            flow(),
            "rows of own sizes have no rasters yet",
        ),
    ] {
        let e = loader(dir.path(), recipe)
            .raster(name, raster)
            .build()
            .unwrap_err();
        assert!(e.to_string().contains(what), "{e}");
    }
    let twice = loader(dir.path(), crop())
        .raster("flow", flow())
        .raster("flow", flow());
    let e = twice.build().unwrap_err().to_string();
    assert!(e.contains("two rasters have this name"), "{e}");
}

/// `plan` counts the rows of rasters and their decoders.
#[test]
fn the_plan_counts_rasters() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = || {
        Recipe::new("plan")
            .then(CenterCrop::new(16))
            .then(Rotate90 { times: 1 })
            .with_dtype(DataType::U8)
    };
    let plain = loader(dir.path(), recipe()).memory_plan(0).unwrap().memory;
    let with = loader(dir.path(), recipe())
        .raster("flow", files("flow", RasterRule::Flow(FlowRule::default())))
        .raster(
            "large",
            files(
                "large",
                RasterRule::Image(PairRule {
                    scale: 3,
                    ..PairRule::default()
                }),
            ),
        )
        .memory_plan(0)
        .unwrap()
        .memory;
    let rows = 8 * 16 * 16 * (2 * 4 + 9 * 3);
    assert!((rows..rows + 256).contains(&(with.slot_bytes - plain.slot_bytes)));
    let flow = 8 * 90 * 31;
    assert!(with.scratch_bytes - plain.scratch_bytes > flow);
}

//! Caches with rasters: a loader of the cache gives what a loader of the folder gives, bit by bit;
//! resized rasters have the numbers of a loader that resizes; bytes do not depend on workers, kills
//! and interruptions; what a cache lacks is named.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use featherload::cache::{
    self, BuildOptions, BuildPart, CacheBuilder, CacheEncoding, FindingKind, OnBadSample,
};
use featherload::fetch::{FetchOptions, StoreAddress};
use featherload::index::ShardOptions;
use featherload::internals::DrillBuilder;
use featherload::recipe::{
    CenterCrop, OrientationMode, RandomHorizontalFlip, RandomResizedCrop, Resize,
};
use featherload::{
    DataType, FlowRule, LoaderBuilder, MaskOptions, MaskRule, NumberRule, PairRule, RasterFilter,
    RasterList, RasterNumber, RasterOptions, RasterRule, Recipe, Sampler, Source,
};
use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage};

use super::contents::with_orientation;
use super::scene::{
    assert_same as assert_same_files, check_whole_shards, files, members, wait_for_shard,
};
use super::small::{flip, verified};
use crate::common::FEATHERLOAD;
use crate::common::command::{featherload, object, stdout};
use crate::common::rows::{assert_same, stream};
use crate::common::{Picture, builder};

const COUNT: u32 = 13;

fn size_of(n: u32) -> (u32, u32) {
    (40 + 3 * n, 70 - 2 * n)
}

/// Images, and beside them depths of 16 bits (0 is missing), alpha, flows (some not known), images
/// that are twice as large, and two kinds of masks.
fn scene() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in [
        "images", "depth", "alpha", "flow", "large", "parts", "masks",
    ] {
        fs::create_dir(dir.path().join(folder)).unwrap();
    }
    for n in 0..COUNT {
        let (width, height) = size_of(n);
        let at = |folder: &str, ending: &str| dir.path().join(format!("{folder}/{n:02}.{ending}"));
        let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, n as u8]));
        image.save(at("images", "png")).unwrap();
        let large = RgbImage::from_fn(2 * width, 2 * height, |x, y| {
            Rgb([(3 * x) as u8, (5 * y) as u8, (x * y) as u8])
        });
        large.save(at("large", "png")).unwrap();
        let depth: ImageBuffer<Luma<u16>, _> = ImageBuffer::from_fn(width, height, |x, y| {
            let far = 300 * y + 7 * x + 1;
            Luma([if (x + y) % 11 == 0 { 0 } else { far as u16 }])
        });
        depth.save(at("depth", "png")).unwrap();
        let level = |x: u32, y: u32| Luma([(13 * x + 31 * y) as u8]);
        GrayImage::from_fn(width, height, level)
            .save(at("alpha", "png"))
            .unwrap();
        let part = |x: u32, y: u32| Luma([(x / 7 + y / 5) as u8]);
        GrayImage::from_fn(width, height, part)
            .save(at("parts", "png"))
            .unwrap();
        GrayImage::from_fn(width, height, part)
            .save(at("masks", "png"))
            .unwrap();
        let mut flow = b"PIEH".to_vec();
        flow.extend(width.to_le_bytes());
        flow.extend(height.to_le_bytes());
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            let (u, v) = (x as f32 * 0.25 - 3.0, 1.0 / (1.0 + y as f32));
            let pair = if (x + 2 * y) % 9 == 0 {
                [2e9; 2]
            } else {
                [u, v]
            };
            flow.extend(pair.into_iter().flat_map(f32::to_le_bytes));
        }
        fs::write(at("flow", "flo"), flow).unwrap();
    }
    dir
}

fn depth() -> NumberRule {
    NumberRule {
        divide: 1000.0,
        fill: RasterNumber(-1.0),
        ..NumberRule::depth()
    }
}

/// Names and rules of the rasters.
fn rules() -> [(&'static str, RasterRule); 5] {
    let large = PairRule {
        scale: 2,
        ..PairRule::default()
    };
    let parts = MaskRule {
        ignore: Some(3),
        ..MaskRule::default()
    };
    [
        ("depth", RasterRule::Numbers(depth())),
        ("alpha", RasterRule::Numbers(NumberRule::alpha())),
        (
            "flow",
            RasterRule::Flow(FlowRule {
                valid: true,
                ..FlowRule::default()
            }),
        ),
        ("large", RasterRule::Image(large)),
        ("parts", RasterRule::Mask(parts)),
    ]
}

fn of_files() -> RasterList {
    let mut list = RasterList::default();
    for (name, rule) in rules() {
        let ending = if name == "flow" { "flo" } else { "png" };
        let pattern = format!("../{name}/{{stem}}.{ending}");
        list.push(name, RasterOptions::new(pattern, rule));
    }
    list
}

fn of_cache() -> RasterList {
    let mut list = RasterList::default();
    for (name, _) in rules() {
        list.push(name, RasterOptions::of_cache());
    }
    list
}

fn recipe() -> Recipe {
    Recipe::new("augmented")
        .then(RandomResizedCrop::new(32))
        .then(RandomHorizontalFlip::default())
        .with_dtype(DataType::U8)
}

fn making(dir: &Path, cache: &Path, options: BuildOptions) -> CacheBuilder {
    let source = Source::detect(dir.join("images")).unwrap();
    CacheBuilder::new(source, cache, options)
        .rasters(of_files())
        .masks(MaskOptions::new("../masks/{stem}.png"))
        .helper(FEATHERLOAD)
        .num_workers(2)
}

fn copied() -> BuildOptions {
    BuildOptions {
        shard_samples: Some(3),
        ..BuildOptions::default()
    }
}

fn resized() -> BuildOptions {
    BuildOptions {
        encode: CacheEncoding::Raw,
        resize: Some("exact:30x50".parse().unwrap()),
        ..copied()
    }
}

fn run(source: &Path, rasters: RasterList, masks: &str) -> LoaderBuilder {
    builder(source)
        .rasters(rasters)
        .masks(MaskOptions::new(masks))
        .recipe(recipe())
        .epochs(2)
}

#[test]
fn rows_of_a_cache_are_those_of_its_folder() {
    let dir = scene();
    let images = dir.path().join("images");
    let cache = dir.path().join("cache");
    making(dir.path(), &cache, copied()).build().unwrap();
    let of_folder = run(&images, of_files(), "../masks/{stem}.png");
    let want = stream(&mut of_folder.num_workers(0).build().unwrap(), 2);
    assert_eq!(want.len(), 2 * COUNT as usize);
    for workers in [0, 1, 2] {
        let of_cache = run(&cache, of_cache(), "cache").num_workers(workers);
        let got = stream(&mut of_cache.build().unwrap(), 2);
        assert_same(&got, &want, &format!("{workers} workers"));
    }
    let killed = run(&cache, of_cache(), "cache").num_workers(2);
    let killed = killed.kill_workers_every(Duration::from_millis(4));
    assert_same(&stream(&mut killed.build().unwrap(), 2), &want, "killed");

    // A cache of the cache, with images as pixels and rasters as they are.
    let again = dir.path().join("again");
    let raw = BuildOptions {
        encode: CacheEncoding::Raw,
        ..copied()
    };
    CacheBuilder::new(Source::detect(&cache).unwrap(), &again, raw)
        .rasters(of_cache())
        .masks(MaskOptions::new("cache"))
        .num_workers(0)
        .build()
        .unwrap();
    let of_again = run(&again, of_cache(), "cache").num_workers(1);
    assert_same(&stream(&mut of_again.build().unwrap(), 2), &want, "again");

    // In a store.
    let address = format!("file://{}", cache.display());
    let mut fetched = FetchOptions::default();
    fetched.dir = Some(dir.path().join("fetched"));
    let store = Source::Store(StoreAddress::parse(Path::new(&address)).unwrap(), fetched);
    let in_order = |builder: LoaderBuilder| builder.sampler(Sampler::Sequential).recipe(recipe());
    let of_store = in_order(featherload::Loader::builder(store))
        .rasters(of_cache())
        .helper(FEATHERLOAD)
        .epochs(1)
        .batch_size(4);
    let here = in_order(featherload::Loader::builder(
        Source::detect(&images).unwrap(),
    ))
    .rasters(of_files())
    .epochs(1)
    .batch_size(4);
    let want = stream(&mut here.num_workers(0).build().unwrap(), 1);
    let got = stream(&mut of_store.num_workers(2).build().unwrap(), 1);
    assert_same(&got, &want, "store");

    let sent = dir.path().join("sent");
    let address = format!("file://{}", sent.display());
    let build = making(dir.path(), Path::new(&address), copied());
    build.stage_dir(dir.path().join("stages")).build().unwrap();
    assert_same_files(&files(&sent), &files(&cache), "sent");

    // Fields of a run replace those of the cache.
    let other = NumberRule {
        divide: 10.0,
        filter: RasterFilter::Bilinear,
        ..depth()
    };
    let one = |rasters: RasterList, source: &Path| {
        let loader = builder(source).rasters(rasters).recipe(recipe()).epochs(1);
        stream(&mut loader.num_workers(1).build().unwrap(), 1)
    };
    let mut list = RasterList::default();
    let files = RasterOptions::new("../depth/{stem}.png", RasterRule::Numbers(other));
    list.push("depth", files);
    let given = r#"depth={"files": "cache", "divide": 10, "filter": "bilinear"}"#;
    assert_same(
        &one(given.parse().unwrap(), &cache),
        &one(list, &images),
        "given",
    );
    // With a kind, the rule is that of the run.
    let alpha = r#"depth={"files": "cache", "kind": "alpha"}"#;
    let files = r#"depth={"files": "../depth/{stem}.png", "kind": "alpha"}"#;
    let want = one(files.parse().unwrap(), &images);
    assert_same(&one(alpha.parse().unwrap(), &cache), &want, "kind");
}

#[test]
fn bytes_are_the_same_for_any_workers_and_after_kills_and_every_file_is_verified() {
    let dir = scene();
    let at = |name: &str| dir.path().join("built").join(name);
    for (name, options) in [("copied", copied()), ("resized", resized())] {
        let whole = at(name);
        let report = making(dir.path(), &whole, options).build().unwrap();
        let want = files(&whole);
        let on_disk = |bytes: &Vec<u8>| (bytes.len() as u64).next_multiple_of(4096);
        let written: u64 = want.values().map(on_disk).sum();
        // The manifest is counted twice, and PNG are estimated.
        let more = report.needed_bytes.checked_sub(written).unwrap();
        assert!(
            more < if name == "copied" { 64 << 10 } else { written },
            "{name}: {more}"
        );
        for file in ["masks.fli", "raster-depth.fli", "raster-parts.fli"] {
            assert!(want.contains_key(file), "{file}");
        }
        for workers in [0, 1] {
            let other = at(&format!("{name}-{workers}"));
            let build = making(dir.path(), &other, options).num_workers(workers);
            let build = build.kill_workers_every(Duration::from_millis(3 * workers as u64 + 1));
            build.build().unwrap();
            assert_same_files(&files(&other), &want, &format!("{workers} workers"));
        }
        // A build that ends after its first shard, and then goes on.
        let ended = at(&format!("{name}-ended"));
        let report =
            making(dir.path(), &ended, options).build_watched(
                &mut |progress| match progress.shards {
                    0 => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                },
            );
        let report = report.unwrap();
        assert!(!report.complete && report.shards >= 1, "{report:?}");
        assert!(!ended.join("raster-depth.fli").exists());
        let info = cache::info(&ended).unwrap();
        assert!(
            info.rasters.iter().all(|raster| raster.bytes > 0),
            "{info:?}"
        );
        let report = making(dir.path(), &ended, options).build().unwrap();
        assert!(report.complete && report.kept_shards >= 1, "{report:?}");
        assert_same_files(&files(&ended), &want, "ended");

        assert!(verified(&whole, 2).is_good());
        let file = "raster-flow.fli";
        flip(&whole.join(file), 90, 3);
        let report = verified(&whole, 2);
        assert_eq!(report.findings[0].kind, FindingKind::IndexFile);
        assert_eq!(report.findings[0].file, Path::new(file));
        let e = run(&whole, of_cache(), "cache").num_workers(0).build();
        let e = e.unwrap_err().to_string();
        assert!(e.contains(file) && e.contains("damaged"), "{e}");
        fs::remove_file(whole.join(file)).unwrap();
        assert_eq!(verified(&whole, 2).findings[0].kind, FindingKind::Missing);
        making(dir.path(), &whole, options).build().unwrap();
        assert_same_files(&files(&whole), &want, "written again");
    }
    // A raster in a shard: bytes of its data.
    let tar = at("copied").join("shard-000000.tar");
    let all = members(&tar);
    let flow = all.iter().find(|m| m.name.ends_with(".flow.flo")).unwrap();
    flip(&tar, flow.at + 40, 1);
    let report = verified(&at("copied"), 1);
    assert!(
        report.findings[0].message.contains("flow.flo"),
        "{report:?}"
    );
}

/// The numbers of the first raster of all samples, in their order.
fn numbers(builder: LoaderBuilder, name: &str) -> Vec<f32> {
    let mut loader = builder
        .shuffle(false)
        .epochs(1)
        .num_workers(0)
        .build()
        .unwrap();
    let mut all = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        for row in 0..batch.ids().len() {
            let bytes = batch.raster(name).unwrap();
            let bytes = bytes.row(row).unwrap().to_vec();
            match name {
                "large" | "parts" => all.extend(bytes.into_iter().map(f32::from)),
                _ => all.extend(bytes.as_chunks().0.iter().map(|n| f32::from_ne_bytes(*n))),
            }
        }
    }
    all
}

#[test]
fn resized_rasters_have_the_numbers_of_a_loader_that_resizes() {
    let dir = scene();
    let images = dir.path().join("images");
    let whole = || {
        let resize = Recipe::new("whole").then(Resize::exact(30, 50));
        resize.with_dtype(DataType::U8)
    };
    let jpeg = BuildOptions {
        encode: CacheEncoding::Jpeg { quality: 90 },
        ..resized()
    };
    for (name, options, large) in [("raw", resized(), "npy"), ("jpeg", jpeg, "png")] {
        let cache = dir.path().join(name);
        making(dir.path(), &cache, options).build().unwrap();
        assert!(verified(&cache, 1).is_good());
        let names: Vec<String> = members(&cache.join("shard-000000.tar"))
            .into_iter()
            .map(|member| member.name)
            .filter(|name| name.starts_with("00000000_00."))
            .collect();
        let endings: Vec<&str> = names
            .iter()
            .map(|name| &name["00000000_00.".len()..])
            .collect();
        let large = format!("large.{large}");
        let want = [
            "mask.png",
            "depth.png",
            "alpha.npy",
            "flow.flo",
            &large,
            "parts.png",
        ];
        assert_eq!(endings[1..], want, "{name}");
        for (raster, _) in rules() {
            let want = numbers(builder(&images).rasters(of_files()).recipe(whole()), raster);
            let got = numbers(builder(&cache).rasters(of_cache()).recipe(whole()), raster);
            assert_eq!(got.len(), want.len(), "{raster}");
            for (at, (got, want)) in got.iter().zip(&want).enumerate() {
                // Means of four numbers are divided before or after.
                let near = raster == "alpha" && (got - want).abs() < 1e-6;
                assert!(
                    got == want || near,
                    "{name}: {raster} {at}: {got} is not {want}"
                );
            }
            if raster == "depth" {
                assert!(want.contains(&-1.0) && want.iter().any(|n| *n > 10.0));
            }
        }
    }
}

/// Computers that build shares of a cache, one of them twice, write what one build writes.
#[test]
fn shares_of_a_build_keep_rasters() {
    let dir = scene();
    for (name, options) in [("copied", copied()), ("resized", resized())] {
        let at = |kind: &str| dir.path().join("shares").join(format!("{name}-{kind}"));
        making(dir.path(), &at("whole"), options).build().unwrap();
        let of = |part| making(dir.path(), &at("parts"), options).part(part).build();
        for number in [2, 0, 1, 2] {
            of(BuildPart::Share { number, of: 3 }).unwrap();
        }
        assert!(of(BuildPart::Finish).unwrap().complete);
        assert_same_files(&files(&at("parts")), &files(&at("whole")), name);
    }
}

/// A build into a store that ends after its first shard, and then goes on.
#[test]
fn a_resumed_build_into_a_store_keeps_rasters() {
    let dir = scene();
    let whole = dir.path().join("whole");
    making(dir.path(), &whole, resized()).build().unwrap();
    let sent = dir.path().join("sent");
    let address = format!("file://{}", sent.display());
    let make = || {
        let make = making(dir.path(), Path::new(&address), resized());
        make.stage_dir(dir.path().join("stages"))
    };
    let report = make().build_watched(&mut |progress| match progress.shards {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert!(!report.unwrap().complete);
    assert!(!sent.join("raster-depth.fli").exists());
    let report = make().build().unwrap();
    assert!(report.complete && report.kept_shards >= 1, "{report:?}");
    assert_same_files(&files(&sent), &files(&whole), "sent");
}

/// A file of NumPy.
fn array(height: u32, width: u32, numbers: &[f32]) -> Vec<u8> {
    let shape = format!("({height}, {width})");
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = [b"\x93NUMPY\x01\0\x76\0", text.as_bytes()].concat();
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// KITTI's flows, and arrays with numbers that are not measured, through a bilinear resize: the
/// numbers of a loader that resizes. Images that are small enough keep their size, and their files.
#[test]
fn numbers_that_are_not_known_pass_a_resize() {
    let dir = tempfile::tempdir().unwrap();
    let path = |folder: &str| dir.path().join(folder);
    for folder in ["images", "flow", "depth"] {
        fs::create_dir(path(folder)).unwrap();
    }
    for n in 0..6u32 {
        let (width, height) = (30 + 4 * n, 26 + 6 * n);
        let at = |folder: &str, ending: &str| path(folder).join(format!("{n}.{ending}"));
        let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, n as u8]));
        image.save(at("images", "png")).unwrap();
        let flow: ImageBuffer<Rgb<u16>, _> = ImageBuffer::from_fn(width, height, |x, y| {
            let known = u16::from((x + 3 * y + n) % 13 != 0);
            Rgb([(32768 + 40 * x) as u16, (32768 - 25 * y) as u16, known])
        });
        flow.save(at("flow", "png")).unwrap();
        let depth: Vec<f32> = (0..width * height)
            .map(|place| match place % 17 {
                0 => f32::NAN,
                1 => 0.0,
                _ => place as f32 * 0.5,
            })
            .collect();
        fs::write(at("depth", "npy"), array(height, width, &depth)).unwrap();
    }
    let rasters = || {
        let depth = NumberRule {
            filter: RasterFilter::Bilinear,
            fill: RasterNumber(-7.0),
            ..NumberRule::depth()
        };
        let flow = FlowRule {
            valid: true,
            ..FlowRule::default()
        };
        let mut list = RasterList::default();
        let files = RasterOptions::new("../depth/{stem}.npy", RasterRule::Numbers(depth));
        list.push("depth", files);
        let files = RasterOptions::new("../flow/{stem}.png", RasterRule::Flow(flow));
        list.push("flow", files);
        list
    };
    let cached = || {
        let mut list = RasterList::default();
        list.push("depth", RasterOptions::of_cache());
        list.push("flow", RasterOptions::of_cache());
        list
    };
    let make = |cache: &Path, resize: &str| {
        let options = BuildOptions {
            resize: Some(resize.parse().unwrap()),
            ..resized()
        };
        let source = Source::detect(path("images")).unwrap();
        let build = CacheBuilder::new(source, cache, options).rasters(rasters());
        build.num_workers(0).build().unwrap();
    };
    let resized = path("resized");
    make(&resized, "exact:24x20");
    let whole = Recipe::new("whole").then(Resize::exact(24, 20));
    let whole = whole.with_dtype(DataType::U8);
    let images = path("images");
    for name in ["depth", "flow"] {
        let of = |source: &Path, list: RasterList| {
            numbers(builder(source).rasters(list).recipe(whole.clone()), name)
        };
        let (want, got) = (of(&images, rasters()), of(&resized, cached()));
        assert_eq!(got.len(), want.len());
        let unequal = got.iter().zip(&want).filter(|(got, want)| got != want);
        assert_eq!(unequal.count(), 0, "{name}");
        if name == "depth" {
            assert!(want.contains(&-7.0) && want.iter().any(|n| *n > 100.0));
        } else {
            // Horizontal and vertical parts, then whether they are known.
            let known = want.chunks(24 * 20).skip(2).step_by(3).flatten();
            let known: Vec<f32> = known.copied().collect();
            assert!(known.contains(&0.0) && known.contains(&1.0));
        }
    }

    // The first three images have a shorter side of at most 38.
    let shorter = path("shorter");
    make(&shorter, "shorter:38");
    let small = |source: &Path, list| {
        let crop = Recipe::new("corner").then(CenterCrop::new(20));
        let crop = crop.with_dtype(DataType::U8);
        numbers(builder(source).rasters(list).recipe(crop), "depth")
    };
    let (want, got) = (small(&images, rasters()), small(&shorter, cached()));
    let of_rows = want.chunks(400).zip(got.chunks(400));
    let same: Vec<bool> = of_rows.map(|(want, got)| want == got).collect();
    assert_eq!(same, [true, true, true, false, false, false]);
}

#[test]
fn rasters_that_cannot_be_kept_or_found_are_named() {
    let dir = scene();
    let cache = dir.path().join("cache");
    making(dir.path(), &cache, copied()).build().unwrap();
    let failing = |rasters: &str, source: &Path| {
        let loader = builder(source).rasters(rasters.parse().unwrap());
        let e = loader.recipe(recipe()).num_workers(0).build().unwrap_err();
        e.to_string()
    };
    let e = failing("disparity=cache", &cache);
    let all = "has no raster 'disparity'. It has: depth, alpha, flow, large, parts";
    assert!(e.contains(all), "{e}");
    let e = failing("depth=cache", &dir.path().join("images"));
    assert!(e.contains("in no cache"), "{e}");
    let e = failing(r#"depth={"files": "cache", "valid": true}"#, &cache);
    assert!(e.contains("depth") && e.contains("valid"), "{e}");
    let plain = dir.path().join("plain");
    let source = || Source::detect(dir.path().join("images")).unwrap();
    let build = |to: &Path| CacheBuilder::new(source(), to, copied()).num_workers(0);
    build(&plain).build().unwrap();
    let e = failing("depth=cache", &plain);
    assert!(
        e.contains("has no rasters") && e.contains("--raster"),
        "{e}"
    );

    // Another build.
    let e = build(&cache).build().unwrap_err().to_string();
    assert!(
        e.contains("rasters was depth {") && e.contains("now none"),
        "{e}"
    );
    // The same rule, and other members of tars.
    let (tars, of_tars) = (dir.path().join("tars"), dir.path().join("of_tars"));
    fs::create_dir(&tars).unwrap();
    fs::copy(cache.join("shard-000000.tar"), tars.join("a.tar")).unwrap();
    let member = |member: &str| {
        let source = Source::Shards(vec![tars.join("a.tar")], ShardOptions::default());
        let raster = format!(r#"depth={{"member": "{member}"}}"#);
        CacheBuilder::new(source, &of_tars, copied())
            .rasters(raster.parse().unwrap())
            .num_workers(0)
    };
    let report = member("depth.png").build().unwrap();
    assert!(!report.other_fields.contains_key("depth.png"), "{report:?}");
    assert!(member("depth.png").build().unwrap().kept_samples > 0);
    let e = member("alpha.png").build().unwrap_err().to_string();
    assert!(
        e.contains("the members that are raster depth have changed"),
        "{e}"
    );
    let to = dir.path().join("refused");
    let refused = |names: &[&str]| {
        let mut list = RasterList::default();
        for name in names {
            let rule = RasterRule::Numbers(depth());
            list.push(*name, RasterOptions::new("../depth/{stem}.png", rule));
        }
        let build = build(&to)
            .rasters(list)
            .masks(MaskOptions::new("../masks/{stem}.png"));
        build.build().unwrap_err().to_string()
    };
    for names in [&["mask"][..], &["cls"], &["png"], &["Far", "far"]] {
        let e = refused(names);
        assert!(e.contains("another member of this name"), "{names:?}: {e}");
    }
    let e = refused(&["a", "b", "c", "d", "e", "f", "g"]);
    assert!(e.contains("7 rasters at most"), "{e}");
    assert!(!to.exists());
}

#[test]
fn a_bad_raster_is_a_bad_sample() {
    let dir = scene();
    let small = GrayImage::new(3, 4);
    small.save(dir.path().join("alpha/04.png")).unwrap();
    fs::remove_file(dir.path().join("depth/06.png")).unwrap();
    fs::write(dir.path().join("flow/08.flo"), b"PIEH").unwrap();
    for (name, options) in [("copied", copied()), ("resized", resized())] {
        let cache = dir.path().join(name);
        let e = making(dir.path(), &cache, options).build().unwrap_err();
        let e = e.to_string();
        assert!(e.contains("raster alpha") && e.contains("04.png"), "{e}");
        assert!(e.contains("3 x 4 pixels"), "{e}");
        let skipping = BuildOptions {
            on_error: OnBadSample::Skip,
            ..options
        };
        let build = making(dir.path(), &cache, skipping).force(true);
        let report = build.build().unwrap();
        assert_eq!(report.skipped, 3, "{report:?}");
        let reasons = report.skipped_examples.iter().map(|one| &*one.reason);
        let mut reasons: Vec<&str> = reasons.collect();
        reasons.sort_unstable();
        for (reason, name) in reasons.iter().zip(["alpha", "depth", "flow"]) {
            assert!(reason.starts_with(&format!("raster {name} ")), "{reason}");
        }
        assert!(verified(&cache, 1).is_good());
        let mut loader = run(&cache, of_cache(), "cache")
            .num_workers(1)
            .build()
            .unwrap();
        assert_eq!(stream(&mut loader, 1).len(), COUNT as usize - 3);
    }
}

#[test]
fn a_killed_build_goes_on_to_the_same_bytes() {
    let dir = scene();
    let at = |name: &str| dir.path().join("built").join(name);
    fs::create_dir(dir.path().join("built")).unwrap();
    let command = |to: &Path| {
        let mut command = Command::new(FEATHERLOAD);
        command
            .args(["cache", "build"])
            .arg(dir.path().join("images"))
            .arg(to);
        command.args([
            "--encode",
            "raw",
            "--resize",
            "exact:30x50",
            "--shard-samples",
            "1",
        ]);
        command.args([
            "--num-workers",
            "2",
            "--raster",
            "depth=../depth/{stem}.png",
        ]);
        command.args([
            "--raster",
            "flow=../flow/{stem}.flo",
            "--masks",
            "../masks/{stem}.png",
        ]);
        command.args([
            "--raster",
            r#"large={"files": "../large/{name}", "kind": "image", "scale": 2}"#,
        ]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let whole = at("whole");
    assert!(command(&whole).status().unwrap().success());
    let want = files(&whole);
    for number in [0, 4, 9] {
        let cache = at(&format!("killed-{number}"));
        let mut child = command(&cache).spawn().unwrap();
        wait_for_shard(&mut child, &cache, number);
        child.kill().unwrap();
        child.wait().unwrap();
        check_whole_shards(&cache);
        assert!(command(&cache).status().unwrap().success());
        assert_same_files(
            &files(&cache),
            &want,
            &format!("killed after shard {number}"),
        );
    }
}

#[test]
fn the_command_line_takes_and_prints_rasters() {
    let dir = scene();
    let (images, cache) = (dir.path().join("images"), dir.path().join("cache"));
    let (images, at) = (images.to_str().unwrap(), cache.to_str().unwrap());
    let depth = r#"--raster=depth={"files": "../depth/{stem}.png", "divide": 1000}"#;
    let flow = "--raster=flow=../flow/{stem}.flo";
    let built = featherload(&["cache", "build", images, at, depth, flow, "--json"]);
    assert_eq!(object(&built)["report"]["complete"], true);
    let info = object(&featherload(&["cache", "info", at, "--json"]));
    let rasters = &info["info"]["rasters"];
    let rule = serde_json::json!({"divide": 1000.0, "kind": "depth"});
    assert_eq!(
        (&rasters[0]["name"], &rasters[0]["rule"]),
        (&"depth".into(), &rule)
    );
    let bytes: u64 = (0..COUNT)
        .map(|n| {
            fs::metadata(dir.path().join(format!("flow/{n:02}.flo")))
                .unwrap()
                .len()
        })
        .sum();
    assert_eq!(rasters[1]["bytes"], bytes);
    let text = stdout(&featherload(&["cache", "info", at]));
    assert!(text.contains("\nrasters    depth, "), "{text}");
    assert!(text.contains("\n           flow, "), "{text}");
    let slot = |source: &str, rasters: &[&str]| {
        let planned = featherload(&[&["plan", source, "--json"], rasters].concat());
        object(&planned)["memory"]["slot_bytes"].as_u64().unwrap()
    };
    let cached = slot(at, &["--raster=depth=cache"]);
    assert!(cached > slot(at, &[]));
    assert_eq!(cached, slot(images, &[depth]));
}

/// A build of a cache with the depths in this folder.
fn with_depths(dir: &Path, folder: &str, options: BuildOptions) -> CacheBuilder {
    let mut rasters = RasterList::default();
    let rule = RasterRule::Numbers(depth());
    let files = format!("../{folder}/{{stem}}.png");
    rasters.push("depth", RasterOptions::new(files, rule));
    let source = Source::detect(dir.join("images")).unwrap();
    CacheBuilder::new(source, dir.join("cache"), options)
        .rasters(rasters)
        .helper(FEATHERLOAD)
        .num_workers(1)
}

/// Also where files have the same names, lengths and times.
#[test]
fn rasters_of_another_folder_are_another_source() {
    let dir = scene();
    let build = |folder: &str| with_depths(dir.path(), folder, copied()).build();
    build("depth").unwrap();
    let (from, to) = (dir.path().join("depth"), dir.path().join("other"));
    let mut copy = Command::new("cp");
    let status = copy.arg("-a").args([&from, &to]).status().unwrap();
    assert!(status.success());
    let e = build("other").unwrap_err().to_string();
    assert!(e.contains("holds a cache with other settings"), "{e}");
    build("depth").unwrap();
}

/// An image whose bytes are copied may be used as stored, and its numbers with it.
#[test]
fn numbers_of_images_as_stored_are_copied() {
    let dir = scene();
    let images = dir.path().join("images");
    fs::remove_dir_all(&images).unwrap();
    fs::create_dir(&images).unwrap();
    let stored = Picture::rgb(90, 60, 3).encode();
    fs::write(images.join("00.jpg"), with_orientation(&stored, 6)).unwrap();
    let save = |width, height| {
        let depth = ImageBuffer::<Luma<u16>, _>::from_pixel(width, height, Luma([700]));
        depth.save(dir.path().join("depth/00.png")).unwrap();
    };
    save(90, 60);
    let raw = BuildOptions {
        encode: CacheEncoding::Raw,
        ..copied()
    };
    let e = with_depths(dir.path(), "depth", raw).build().unwrap_err();
    let e = e.to_string();
    assert!(e.contains("use orientation 'stored'"), "{e}");
    let build = with_depths(dir.path(), "depth", copied()).force(true);
    build.build().unwrap();
    let recipe = recipe().with_orientation(OrientationMode::Stored);
    let mut rasters = RasterList::default();
    rasters.push("depth", RasterOptions::of_cache());
    let cache = dir.path().join("cache");
    let builder = builder(&cache).rasters(rasters).recipe(recipe);
    assert_eq!(numbers(builder, "depth"), vec![0.7; 32 * 32]);
    // Neither upright nor as stored.
    save(60, 61);
    let build = with_depths(dir.path(), "depth", copied()).force(true);
    let e = build.build().unwrap_err().to_string();
    assert!(e.contains("60 x 61 pixels"), "{e}");
}

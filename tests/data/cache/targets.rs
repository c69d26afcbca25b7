//! Caches with objects and masks: a loader of the cache gives what a loader of the folder gives, bit
//! by bit; the bytes are the same for any number of workers and after kills; damage is found; changed
//! annotations are another source.

use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::cache::{self, BuildOptions, BuildPart, CacheBuilder, CacheEncoding, FindingKind};
use featherload::fetch::{FetchOptions, StoreAddress};
use featherload::index::ShardOptions;
use featherload::internals::DrillBuilder;
use featherload::recipe::{RandomHorizontalFlip, RandomResizedCrop, Resize};
use featherload::{
    DataType, Index, InstanceMasks, LoaderBuilder, MaskOptions, MaskRule, ObjectOptions,
    ObjectRule, Recipe, Sampler, Source, State,
};
use image::{GrayImage, Luma, Rgb, RgbImage};
use serde_json::{Value, json};

use super::scene::{assert_same as assert_same_files, files, members};
use super::small::{flip, verified};
use crate::common::FEATHERLOAD;
use crate::common::builder;
use crate::common::command::{featherload, object, refusal, stdout};
use crate::common::rows::{Row, assert_same, rows, stream, take};

const COUNT: u32 = 21;

fn size_of(n: u32) -> (u32, u32) {
    (40 + 3 * n, 90 - 2 * n)
}

/// Images and masks in folders beside each other, and a COCO file with polygons, run lengths,
/// keypoints and crowds.
fn scene() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["images", "masks"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
    }
    let (mut images, mut annotations) = (Vec::new(), Vec::new());
    for n in 0..COUNT {
        let (width, height) = size_of(n);
        let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, n as u8]));
        let name = format!("{n:02}.png");
        image.save(dir.path().join("images").join(&name)).unwrap();
        let mask = GrayImage::from_fn(width, height, |x, y| Luma([(x / 3 + y / 5) as u8]));
        mask.save(dir.path().join("masks").join(&name)).unwrap();
        images.push(json!({"id": n + 500, "file_name": name, "width": width, "height": height}));
        let count = if n.is_multiple_of(4) { 0 } else { n % 5 + 1 };
        for k in 0..count {
            let (x, y) = (
                f64::from(k * 5) + 0.1 * f64::from(n),
                f64::from(k * 7) + 1.0 / 3.0,
            );
            let (w, h) = (8.5 + f64::from(k), 11.25);
            let run = height * 3 + 5;
            let shape = match k % 3 {
                0 => json!([
                    [x, y, x + w, y, x + w, y + h, x, y + h],
                    [3, 3, 9, 3, 5.5, 9]
                ]),
                1 => {
                    json!({"size": [height, width], "counts": [run, 20, width * height - run - 20]})
                }
                _ => json!([[x, y, x + w, y + 0.007, x, y + h]]),
            };
            annotations.push(json!({
                "id": 1000 * n + k, "image_id": n + 500, "category_id": 10 * (k % 3) + 5,
                "bbox": [x, y, w, h], "area": w * h * 0.7, "iscrowd": u8::from(k % 3 == 1),
                "segmentation": shape, "num_keypoints": 2,
                "keypoints": [x + 1.5, y + 2.25, 2, x + 3.0, y + 1.0, 1],
            }));
        }
    }
    let categories: Vec<Value> = [5, 15, 25]
        .into_iter()
        .map(|id| {
            json!({"id": id, "name": format!("kind {id}"), "keypoints": ["left_eye", "right_eye"]})
        })
        .collect();
    let file = json!({"images": images, "annotations": annotations, "categories": categories});
    fs::write(dir.path().join("coco.json"), file.to_string()).unwrap();
    dir
}

fn annotations(dir: &Path) -> String {
    dir.join("coco.json").to_str().unwrap().to_owned()
}

fn rule() -> ObjectRule {
    ObjectRule {
        masks: Some(InstanceMasks::Full),
        min_size: Some(2.0),
        ..ObjectRule::default()
    }
}

fn mask_rule() -> MaskRule {
    MaskRule {
        ignore: Some(255),
        ..MaskRule::default()
    }
}

fn recipe() -> Recipe {
    Recipe::new("augmented")
        .then(RandomResizedCrop::new(32))
        .then(RandomHorizontalFlip::default())
        .with_dtype(DataType::U8)
}

/// A loader of the folder, with objects and masks.
fn of_folder(dir: &Path) -> LoaderBuilder {
    builder(&dir.join("images"))
        .objects(ObjectOptions::new(annotations(dir)).rule(rule()))
        .masks(MaskOptions::new("../masks/{stem}.png").rule(mask_rule()))
        .recipe(recipe())
        .epochs(2)
}

fn cached_objects() -> ObjectOptions {
    r#"{"files": "cache", "masks": "full"}"#.parse().unwrap()
}

fn with_targets(builder: LoaderBuilder) -> LoaderBuilder {
    builder
        .objects(cached_objects())
        .masks(MaskOptions::new("cache"))
        .recipe(recipe())
        .epochs(2)
}

fn of_cache(cache: &Path) -> LoaderBuilder {
    with_targets(builder(cache))
}

fn making(dir: &Path, cache: &Path, options: BuildOptions) -> CacheBuilder {
    let source = Source::detect(dir.join("images")).unwrap();
    CacheBuilder::new(source, cache, options)
        .objects(ObjectOptions::new(annotations(dir)).rule(rule()))
        .masks(MaskOptions::new("../masks/{stem}.png").rule(mask_rule()))
        .helper(FEATHERLOAD)
        .num_workers(2)
}

fn copied() -> BuildOptions {
    BuildOptions {
        shard_samples: Some(4),
        ..BuildOptions::default()
    }
}

#[test]
fn the_stream_of_a_cache_is_that_of_its_folder() {
    let dir = scene();
    let cache = dir.path().join("cache");
    assert!(
        making(dir.path(), &cache, copied())
            .build()
            .unwrap()
            .complete
    );
    let want = stream(
        &mut of_folder(dir.path()).num_workers(0).build().unwrap(),
        2,
    );
    assert_eq!(want.len(), 2 * COUNT as usize);
    for workers in [0, 1, 2, 8] {
        let got = stream(
            &mut of_cache(&cache).num_workers(workers).build().unwrap(),
            2,
        );
        assert_same(&got, &want, &format!("{workers} workers"));
    }
    let make = || of_cache(&cache).num_workers(2);
    let killed = make().kill_workers_every(Duration::from_millis(4));
    assert_same(&stream(&mut killed.build().unwrap(), 2), &want, "killed");
    let (first, state) = take(&mut make().build().unwrap(), 2);
    let text = serde_json::to_string(&state).unwrap();
    let state: State = serde_json::from_str(&text).unwrap();
    let rest = stream(&mut make().resume(state).build().unwrap(), 2);
    assert_same(&[first, rest].concat(), &want, "resumed");
    // Without instance masks, and with another style, as from the folder.
    let other = || {
        r#"{"files": "cache", "style": "hf", "min_size": null}"#
            .parse()
            .unwrap()
    };
    let of_cache = builder(&cache).recipe(recipe()).objects(other());
    let hf = ObjectRule {
        style: featherload::targets::TargetStyle::Hf,
        ..ObjectRule::default()
    };
    let of_folder = builder(&dir.path().join("images"))
        .recipe(recipe())
        .objects(ObjectOptions::new(annotations(dir.path())).rule(hf));
    let rows_of = |builder: LoaderBuilder| stream(&mut builder.epochs(1).build().unwrap(), 1);
    assert_same(&rows_of(of_cache), &rows_of(of_folder), "hf");
}

#[test]
fn bytes_are_the_same_for_any_workers_and_shares_and_every_file_is_verified() {
    let dir = scene();
    let at = |name: &str| dir.path().join("built").join(name);
    let resized = BuildOptions {
        encode: CacheEncoding::Raw,
        resize: Some("exact:30x50".parse().unwrap()),
        shuffle: Some(3),
        ..copied()
    };
    for (name, options) in [("copied", copied()), ("resized", resized)] {
        let whole = at(name);
        making(dir.path(), &whole, options).build().unwrap();
        let want = files(&whole);
        assert!(want.contains_key("objects.flo") && want.contains_key("masks.fli"));
        for workers in [0, 1, 8] {
            let other = at(&format!("{name}-{workers}"));
            let build = making(dir.path(), &other, options).num_workers(workers);
            let build = build.kill_workers_every(Duration::from_millis(3 * workers as u64 + 1));
            build.build().unwrap();
            assert_same_files(&files(&other), &want, &format!("{workers} workers"));
        }
        let shares = at(&format!("{name}-shares"));
        let parts = [1, 0].map(|number| BuildPart::Share { number, of: 2 });
        for part in parts.into_iter().chain([BuildPart::Finish]) {
            making(dir.path(), &shares, options)
                .part(part)
                .build()
                .unwrap();
        }
        assert_same_files(&files(&shares), &want, "shares");
        let again = making(dir.path(), &shares, options).build().unwrap();
        assert_eq!(again.kept_samples, u64::from(COUNT));

        let report = verified(&whole, 2);
        assert!(report.is_good(), "{:?}", report.findings);
        for (file, at) in [("objects.flo", 70), ("masks.fli", 90)] {
            flip(&whole.join(file), at, 3);
            let report = verified(&whole, 2);
            let first = &report.findings[0];
            assert_eq!(first.kind, FindingKind::IndexFile, "{first:?}");
            assert_eq!(first.file, Path::new(file));
            let e = of_cache(&whole)
                .num_workers(0)
                .build()
                .unwrap_err()
                .to_string();
            assert!(e.contains(file) && e.contains("damaged"), "{e}");
            // The same build writes it again.
            assert!(
                making(dir.path(), &whole, options)
                    .build()
                    .unwrap()
                    .complete
            );
            assert_same_files(&files(&whole), &want, "repaired");
            fs::remove_file(whole.join(file)).unwrap();
            let report = verified(&whole, 2);
            assert_eq!(report.findings[0].kind, FindingKind::Missing);
            let e = of_cache(&whole)
                .num_workers(0)
                .build()
                .unwrap_err()
                .to_string();
            assert!(e.contains(file) && e.contains("missing"), "{e}");
            assert!(
                making(dir.path(), &whole, options)
                    .build()
                    .unwrap()
                    .complete
            );
            assert_same_files(&files(&whole), &want, "written again");
        }
    }
}

/// Members of tars have COCO's form, which tar readers take, too.
#[test]
fn shards_are_webdataset_with_json_and_masks() {
    let dir = scene();
    let cache = dir.path().join("cache");
    making(dir.path(), &cache, copied()).build().unwrap();
    let tar = cache.join("shard-000000.tar");
    let all = members(&tar);
    let names: Vec<&str> = all.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(
        names[..4],
        [
            "00000000_00.png",
            "00000000_00.objects.json",
            "00000000_00.mask.png",
            "00000001_01.png"
        ]
    );
    let text: Value = serde_json::from_slice(&all[4].data).unwrap();
    assert_eq!(
        (&text["image_id"], &text["width"]),
        (&json!(501), &json!(43))
    );
    let object = &text["annotations"][0];
    assert_eq!(object["bbox"], json!([0.1, 1.0 / 3.0, 8.5, 11.25]));
    assert_eq!(
        (&object["category_id"], &object["id"]),
        (&json!(5), &json!(1000))
    );
    assert_eq!(
        all[5].data,
        fs::read(dir.path().join("masks/01.png")).unwrap()
    );

    // The same shards as plain tars.
    let tars: Vec<_> = (0..6)
        .map(|n| cache.join(format!("shard-{n:06}.tar")))
        .collect();
    let plain = dir.path().join("plain");
    fs::create_dir(&plain).unwrap();
    let copies: Vec<_> = tars
        .iter()
        .map(|tar| {
            let to = plain.join(tar.file_name().unwrap());
            fs::copy(tar, &to).unwrap();
            to
        })
        .collect();
    // A cache of them has the same targets.
    let again = dir.path().join("again");
    let source = || Source::Shards(copies.clone(), ShardOptions::default());
    let report = CacheBuilder::new(source(), &again, copied())
        .objects(r#"{"member": "objects.json", "min_size": 2}"#.parse().unwrap())
        .masks(r#"{"member": "mask.png", "ignore": 255}"#.parse().unwrap())
        .helper(FEATHERLOAD)
        .num_workers(1)
        .build()
        .unwrap();
    assert!(report.other_fields.is_empty(), "{:?}", report.other_fields);
    assert!(verified(&again, 1).is_good());
    let source = source();
    let of_tars = featherload::Loader::builder(source)
        .objects(r#"{"member": "objects.json", "min_size": 2}"#.parse().unwrap())
        .masks(r#"{"member": "mask.png", "ignore": 255}"#.parse().unwrap())
        .recipe(recipe())
        .seed(11)
        .helper(FEATHERLOAD);
    let of_cache = |cache: &Path| {
        builder(cache)
            .objects(ObjectOptions::new("cache"))
            .masks(MaskOptions::new("cache"))
            .recipe(recipe())
    };
    let all = |builder: LoaderBuilder| -> Vec<_> {
        let mut loader = builder
            .epochs(1)
            .batch_size(4)
            .num_workers(2)
            .build()
            .unwrap();
        let mut all = Vec::new();
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            let objects = batch.objects().unwrap();
            let masks = batch.masks().unwrap().bytes().to_vec();
            all.push((
                objects.boxes.clone(),
                objects.labels.clone(),
                objects.ids.clone(),
                masks,
            ));
        }
        all
    };
    let want = all(of_tars);
    assert_eq!(all(of_cache(&cache)), want);
    assert_eq!(all(of_cache(&again)), want);
}

#[test]
fn resized_targets_follow_their_images() {
    let dir = scene();
    let cache = dir.path().join("cache");
    let options = BuildOptions {
        encode: CacheEncoding::Raw,
        resize: Some("exact:60x45".parse().unwrap()),
        ..BuildOptions::default()
    };
    making(dir.path(), &cache, options).build().unwrap();
    let whole = Recipe::new("whole")
        .then(Resize::exact(60, 45))
        .with_dtype(DataType::U8);
    let object_rule = || ObjectRule {
        min_size: Some(0.0),
        min_area: Some(0.0),
        ..ObjectRule::default()
    };
    let of = |builder: LoaderBuilder, objects: ObjectOptions, masks: MaskOptions| {
        let builder = builder
            .objects(objects.rule(object_rule()))
            .masks(masks.rule(mask_rule()));
        let mut loader = builder.recipe(whole.clone()).epochs(1).build().unwrap();
        let batches: Vec<_> = loader.epoch().map(Result::unwrap).collect();
        let rows: Vec<Row> = batches.iter().flat_map(rows).collect();
        let objects: Vec<_> = batches
            .iter()
            .flat_map(|batch| batch.objects().unwrap().boxes.clone())
            .collect();
        let masks: Vec<u8> = batches
            .iter()
            .flat_map(|batch| batch.masks().unwrap().bytes().to_vec())
            .collect();
        (rows.len(), objects, masks)
    };
    let source = dir.path().join("images");
    let (count, boxes, masks) = of(
        builder(&source),
        ObjectOptions::new(annotations(dir.path())),
        MaskOptions::new("../masks/{stem}.png"),
    );
    let (cached, moved, labels) = of(
        builder(&cache),
        ObjectOptions::new("cache"),
        MaskOptions::new("cache"),
    );
    assert_eq!((count, masks.len()), (cached, labels.len()));
    // Labels are equal. Boxes differ by roundings of float32 only, since torchvision's are rounded.
    assert!(masks == labels);
    assert_eq!(boxes.len(), moved.len());
    for (a, b) in boxes.iter().zip(&moved) {
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{a} {b}");
        }
    }
}

#[test]
fn changed_annotations_and_masks_are_another_source() {
    let dir = scene();
    let cache = dir.path().join("cache");
    let make = || making(dir.path(), &cache, copied());
    make().build().unwrap();
    let path = dir.path().join("coco.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("11.25", "11.5", 1)).unwrap();
    let e = make().build().unwrap_err().to_string();
    assert!(e.contains("the objects of the source have changed"), "{e}");
    assert!(make().force(true).build().unwrap().complete);
    fs::write(&path, &text).unwrap();
    assert!(make().force(true).build().unwrap().complete);
    let other = ObjectRule {
        min_size: Some(3.0),
        ..rule()
    };
    let other = ObjectOptions::new(annotations(dir.path())).rule(other);
    let e = make().objects(other).build().unwrap_err().to_string();
    assert!(
        e.contains(r#"objects was {"min_size":2.0} and is now {"min_size":3.0}"#),
        "{e}"
    );
    let mask = dir.path().join("masks/03.png");
    let bytes = fs::read(&mask).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    fs::write(&mask, &bytes).unwrap();
    let e = make().build().unwrap_err().to_string();
    assert!(e.contains("files of the source have changed"), "{e}");
}

#[test]
fn wrong_masks_and_objects_are_named() {
    let dir = scene();
    let cache = dir.path().join("cache");
    let small = GrayImage::new(5, 5);
    small.save(dir.path().join("masks/06.png")).unwrap();
    let e = making(dir.path(), &cache, copied())
        .build()
        .unwrap_err()
        .to_string();
    assert!(e.contains("masks/06.png") && e.contains("5 x 5"), "{e}");
    let skip = BuildOptions {
        on_error: cache::OnBadSample::Skip,
        ..copied()
    };
    let report = making(dir.path(), &cache, skip)
        .force(true)
        .build()
        .unwrap();
    assert_eq!((report.samples, report.skipped), (u64::from(COUNT) - 1, 1));
    let mut loader = of_cache(&cache).num_workers(2).build().unwrap();
    let got = stream(&mut loader, 1);
    assert_eq!(got.len(), COUNT as usize - 1);
    assert!(verified(&cache, 1).is_good());

    // A cache without targets, and images that are in no cache.
    let none = dir.path().join("none");
    let source = Source::detect(dir.path().join("images")).unwrap();
    let build = CacheBuilder::new(source, &none, copied()).num_workers(0);
    build.build().unwrap();
    for at in [&none, &dir.path().join("images")] {
        let loader = builder(at)
            .objects(ObjectOptions::new("cache"))
            .recipe(recipe());
        let e = loader.build().unwrap_err().to_string();
        assert!(e.contains("objects"), "{e}");
        let loader = builder(at)
            .masks(MaskOptions::new("cache"))
            .recipe(recipe());
        let e = loader.build().unwrap_err().to_string();
        assert!(e.contains("masks"), "{e}");
    }
    // An index of some of its samples.
    let some = Index::cache(&cache).unwrap().subset(&[0, 1]).unwrap();
    let loader = featherload::Loader::builder(some).objects(cached_objects());
    let e = loader.build().unwrap_err().to_string();
    assert!(e.contains("2 of the 20 samples"), "{e}");
}

#[test]
fn a_cache_in_a_store_has_its_targets() {
    let dir = scene();
    let store = dir.path().join("store");
    fs::create_dir(&store).unwrap();
    let address = format!("file://{}/set", store.display());
    let built = making(dir.path(), Path::new(&address), copied())
        .stage_dir(dir.path().join("stage"))
        .build();
    assert!(built.unwrap().complete);
    let make = |source: Source, workers| {
        let loader = featherload::Loader::builder(source).helper(FEATHERLOAD);
        let loader = with_targets(loader.batch_size(4).sampler(Sampler::Sequential));
        stream(&mut loader.num_workers(workers).build().unwrap(), 2)
    };
    let local = store.join("set");
    let bytes: u64 = files(&local).values().map(|file| file.len() as u64).sum();
    let want = make(Source::Cache(local), 0);
    assert_eq!(want.len(), 2 * COUNT as usize);
    for (limit, workers) in [(None, 1), (None, 2), (Some(bytes * 4 / 5), 2)] {
        let mut options = FetchOptions::default();
        options.dir = Some(dir.path().join(format!("fetched-{}", limit.is_some())));
        options.limit = limit;
        let source = Source::Store(StoreAddress::parse(Path::new(&address)).unwrap(), options);
        assert_same(&make(source, workers), &want, &format!("{limit:?}"));
    }
}

#[test]
fn the_commands_print_targets() {
    let dir = scene();
    let (images, cache) = (dir.path().join("images"), dir.path().join("cache"));
    let objects = json!({"files": annotations(dir.path()), "style": "hf", "masks": "full"});
    let args = |cache: &Path| {
        [
            "cache".to_owned(),
            "build".into(),
            images.display().to_string(),
            cache.display().to_string(),
            format!("--objects={objects}"),
            "--masks=../masks/{stem}.png".into(),
            "--json".into(),
        ]
    };
    let all = args(&cache);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(object(&featherload(&all))["report"]["samples"], COUNT);
    let at = cache.to_str().unwrap();
    let info = object(&featherload(&["cache", "info", at, "--json"]));
    let found = &info["info"]["objects"];
    assert_eq!(found["rule"], json!({"style": "hf"}));
    assert_eq!(found["categories"][2]["name"], "kind 25");
    assert_eq!(
        (&found["keypoints"], &found["outlines"]),
        (&json!(2), &json!(true))
    );
    let text = stdout(&featherload(&["cache", "info", at]));
    assert!(
        text.contains("\nobjects    ") && text.contains("3 categories; 2 keypoints"),
        "{text}"
    );
    assert!(text.contains("\nmasks      one for each image"), "{text}");
    let planned = featherload(&[
        "plan",
        at,
        "--objects",
        "cache",
        "--masks",
        "cache",
        "--json",
    ]);
    assert!(object(&planned).is_object());
    let e = refusal(&featherload(&[
        "plan",
        at,
        "--objects",
        r#"{"files": "cache", "strict": true}"#,
    ]));
    assert!(e.contains("the cache says how its objects are read"), "{e}");
}

/// JSON members and masks of tars in a store, images of a store with a file of annotations that is
/// in a store, too.
#[test]
fn annotations_and_members_in_stores() {
    let dir = scene();
    let cache = dir.path().join("cache");
    making(dir.path(), &cache, copied()).build().unwrap();
    let store = dir.path().join("tars");
    fs::create_dir(&store).unwrap();
    for n in 0..6 {
        let name = format!("shard-{n:06}.tar");
        fs::copy(cache.join(&name), store.join(&name)).unwrap();
    }
    let fetched = |name: &str, limit| {
        let mut options = FetchOptions::default();
        options.dir = Some(dir.path().join(name));
        options.limit = limit;
        options
    };
    let of = |source: Source, objects: &str, masks: Option<&str>| {
        let loader = featherload::Loader::builder(source).helper(FEATHERLOAD);
        let loader = loader
            .sampler(Sampler::Sequential)
            .recipe(recipe())
            .epochs(1);
        let loader = loader.objects(objects.parse().unwrap()).batch_size(4);
        match masks {
            Some(masks) => loader.masks(masks.parse().unwrap()),
            None => loader,
        }
    };
    let (objects, masks) = (
        r#"{"member": "objects.json"}"#,
        Some(r#"{"member": "mask.png"}"#),
    );
    let tars = Index::expand_shards(&[store.join("*.tar")]).unwrap();
    let here = of(
        Source::Shards(tars, ShardOptions::default()),
        objects,
        masks,
    );
    let want = stream(&mut here.num_workers(0).build().unwrap(), 1);
    assert_eq!(want.len(), COUNT as usize);
    let pattern = format!("file://{}/shard-{{000000..000005}}.tar", store.display());
    let address = StoreAddress::parse(Path::new(&pattern)).unwrap();
    for workers in [1, 2] {
        let source = Source::Store(address.clone(), fetched("fetched", None));
        let loader = of(source, objects, masks).num_workers(workers);
        assert_same(
            &stream(&mut loader.build().unwrap(), 1),
            &want,
            "of the store",
        );
    }

    // A file in a store, for a folder, and for images in a store.
    let file = format!("file://{}/coco.json", dir.path().display());
    let images = dir.path().join("images");
    let local = of(
        Source::detect(&images).unwrap(),
        &annotations(dir.path()),
        None,
    );
    let want = stream(&mut local.num_workers(0).build().unwrap(), 1);
    let both = of(Source::detect(&images).unwrap(), &file, None);
    assert_same(
        &stream(&mut both.num_workers(1).build().unwrap(), 1),
        &want,
        "of a file",
    );
    let address = StoreAddress::parse(Path::new(&format!("file://{}", images.display()))).unwrap();
    let remote = of(
        Source::Store(address, fetched("images-fetched", None)),
        &file,
        None,
    );
    let got = stream(&mut remote.num_workers(2).build().unwrap(), 1);
    let pixels = |rows: &[Row]| {
        rows.iter()
            .map(|row| (row.id, row.pixels))
            .collect::<Vec<_>>()
    };
    assert_eq!(pixels(&got), pixels(&want));
    let none = format!("file://{}/none.json", dir.path().display());
    let e = of(Source::detect(&images).unwrap(), &none, None)
        .build()
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("none.json") && e.contains("no such object"),
        "{e}"
    );
    let web = of(
        Source::detect(&images).unwrap(),
        "https://example.org/a.json",
        None,
    );
    let e = web.build().unwrap_err().to_string();
    assert!(e.contains("download the file"), "{e}");
}

/// Members that are cut, wrong or missing: the error names shard and member.
#[test]
fn hostile_members_of_tars_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut png = Vec::new();
    let image = RgbImage::new(20, 10);
    image
        .write_to(&mut std::io::Cursor::new(&mut png), image::ImageFormat::Png)
        .unwrap();
    let mask = |width, height| {
        let mut bytes = Vec::new();
        GrayImage::new(width, height)
            .write_to(
                &mut std::io::Cursor::new(&mut bytes),
                image::ImageFormat::Png,
            )
            .unwrap();
        bytes
    };
    let good =
        br#"{"height": 10, "width": 20, "annotations": [{"bbox": [1, 2, 3, 4], "label": 1}]}"#;
    let run = |members: &[(&str, Vec<u8>)], objects: &str, masks: &str| {
        let tar = dir.path().join("a.tar");
        let mut writer = tar::Builder::new(fs::File::create(&tar).unwrap());
        for (name, bytes) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            writer.append_data(&mut header, name, &bytes[..]).unwrap();
        }
        writer.into_inner().unwrap();
        let loader = builder(&tar).recipe(recipe()).epochs(1).num_workers(1);
        let loader = loader.objects(objects.parse().unwrap());
        let mut loader = loader.masks(masks.parse().unwrap()).build()?;
        loader
            .epoch()
            .collect::<featherload::Result<Vec<_>>>()
            .map(|all| all.len())
    };
    let (objects, masks) = (
        r#"{"member": "json", "strict": true}"#,
        r#"{"member": "seg.png"}"#,
    );
    let sample = |json: &[u8], seg: Vec<u8>| {
        vec![
            ("x.png", png.clone()),
            ("x.json", json.to_vec()),
            ("x.seg.png", seg),
        ]
    };
    assert_eq!(run(&sample(good, mask(20, 10)), objects, masks).unwrap(), 1);
    let many = format!(r#"{{"annotations": [{}]}}"#, "1,".repeat(5_000_000) + "1");
    let bomb = r#"{"annotations": [{"bbox": [1, 2, 3, 4], "label": 1, "segmentation":
        {"size": [4294967295, 4294967295], "counts": "oooooooo"}}]}"#;
    let rle = r#"{"member": "json", "strict": true, "masks": "full"}"#;
    for (json, option) in [
        (&good[..30], objects),
        (many.as_bytes(), objects),
        (bomb.as_bytes(), rle),
    ] {
        let e = run(&sample(json, mask(20, 10)), option, masks)
            .unwrap_err()
            .to_string();
        assert!(e.contains("a.tar") && e.contains("json of x.png"), "{e}");
    }
    let e = run(&sample(good, mask(21, 10)), objects, masks)
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("a.tar") && e.contains("x.seg.png") && e.contains("21 x 10"),
        "{e}"
    );
    let e = run(&sample(good, b"no png".to_vec()), objects, masks)
        .unwrap_err()
        .to_string();
    assert!(e.contains("x.seg.png"), "{e}");
    let e = run(&sample(good, mask(20, 10))[..2], objects, masks)
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("has no member 'seg.png'") && e.contains("json"),
        "{e}"
    );
}

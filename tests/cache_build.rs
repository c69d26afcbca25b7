//! Caches are built: the same bytes by any number of workers, by any number of
//! attempts; shards that others read; nothing half done, whatever ends a build.
//!
//! `FEATHERLOAD_KILLS` says how often a builder is killed (default 6). Where no
//! tmpfs can be mounted the tests of full disks say `SKIP` and pass; with
//! `FEATHERLOAD_REQUIRE_MOUNT=1` they fail.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{FEATHERLOAD, Picture, Random, builder, data};
use featherload::cache::{BuildOptions, BuildReport, Builder, CacheResize, Encoding, OnBadSample};
use featherload::index::{Index, KeepIndex, Label, ShardOptions};
use featherload::recipe::{Decode, Resize};
use featherload::{DecodeMode, Dtype, Error, MemoryLayout, Recipe, Source};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Every file of a folder, by name.
type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let mut all = Files::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        all.insert(name, fs::read(&path).unwrap());
    }
    all
}

/// Like `assert_eq`, without megabytes of text.
fn assert_same(a: &Files, b: &Files, what: &str) {
    let names = |f: &Files| f.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(a), names(b), "{what}");
    for (name, bytes) in a {
        assert!(*bytes == b[name], "{what}: {name} differs");
    }
}

fn built(src: &Path, dst: &Path, options: BuildOptions) -> Builder {
    Builder::new(Source::detect(src).unwrap(), dst, options)
        .helper(FEATHERLOAD)
        .workers(2)
}

fn build(src: &Path, dst: &Path, options: BuildOptions) -> BuildReport {
    let report = built(src, dst, options).build().unwrap();
    assert!(report.complete);
    report
}

fn jpeg(quality: u8) -> BuildOptions {
    BuildOptions {
        encode: Encoding::Jpeg { quality },
        shard_size: 100_000,
        ..BuildOptions::default()
    }
}

fn raw() -> BuildOptions {
    BuildOptions {
        encode: Encoding::Raw,
        shard_size: 600_000,
        ..BuildOptions::default()
    }
}

fn copy() -> BuildOptions {
    BuildOptions {
        shard_size: 100_000,
        ..BuildOptions::default()
    }
}

/// A member as the `tar` crate reads it, with where its data begin.
struct Member {
    name: String,
    at: u64,
    data: Vec<u8>,
}

fn members(tar: &Path) -> Vec<Member> {
    let mut archive = tar::Archive::new(fs::File::open(tar).unwrap());
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut data = Vec::new();
            entry.read_to_end(&mut data).unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 0);
            Member {
                name: entry.path().unwrap().to_str().unwrap().to_owned(),
                at: entry.raw_file_position(),
                data,
            }
        })
        .collect()
}

/// The members of all shards, with their shard's path; each `.idx` is compared.
fn all_members(cache: &Path) -> Vec<(PathBuf, Member)> {
    let mut all = Vec::new();
    for number in 0.. {
        let tar = cache.join(format!("shard-{number:06}.tar"));
        if !tar.exists() {
            break;
        }
        let members = members(&tar);
        check_idx(&tar, &members);
        all.extend(members.into_iter().map(|m| (tar.clone(), m)));
    }
    assert!(!all.is_empty());
    all
}

/// Every member stands in the `.idx`, a line a sample, at its offset.
fn check_idx(tar: &Path, members: &[Member]) {
    let text = fs::read_to_string(tar.with_extension("idx")).unwrap();
    let mut lines = text.lines();
    let samples: usize = lines.next().unwrap()["v1.2 ".len()..].parse().unwrap();
    assert_eq!(lines.clone().count(), samples);
    let mut told = Vec::new();
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        let key = words[3].split('.').next().unwrap();
        for word in words.chunks(4) {
            let [extension, at, size, name] = word else {
                panic!("{line}");
            };
            assert_eq!(*name, format!("{key}.{extension}"));
            told.push((name.to_string(), at.parse().unwrap(), size.parse().unwrap()));
        }
    }
    let there = members.iter().map(|m| (m.name.clone(), m.at, m.data.len()));
    assert_eq!(told, there.collect::<Vec<_>>());
}

/// Height, width and pixels of every sample of a folder, by a loader.
fn pixels_of(folder: &Path, recipe: Recipe) -> Vec<(usize, usize, Vec<u8>)> {
    let mut loader = builder(folder)
        .workers(0)
        .sampler(featherload::Sampler::Sequential)
        .recipe(recipe)
        .build()
        .unwrap();
    let mut all = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        for row in 0..batch.len() {
            let (height, width) = batch.row_size(row).unwrap();
            all.push((height, width, batch.row_as_u8(row).unwrap().to_vec()));
        }
    }
    all
}

/// Height, width and pixels of an array as it lies in a shard.
fn array(data: &[u8]) -> (usize, usize, &[u8]) {
    assert_eq!(&data[..8], b"\x93NUMPY\x01\0");
    let len = usize::from(u16::from_le_bytes([data[8], data[9]]));
    let text = std::str::from_utf8(&data[10..10 + len]).unwrap();
    let shape = text.split("'shape': (").nth(1).unwrap();
    let sides: Vec<usize> = shape[..shape.find(')').unwrap()]
        .split(", ")
        .map(|n| n.parse().unwrap())
        .collect();
    assert!(
        text.contains("'descr': '|u1', 'fortran_order': False"),
        "{text}"
    );
    let [height, width, 3] = sides[..] else {
        panic!("{text}");
    };
    (height, width, &data[10 + len..])
}

#[test]
fn the_bytes_are_the_same_by_any_number_of_workers() {
    let src = data(3, 12);
    let dst = tempfile::tempdir().unwrap();
    let shuffled = BuildOptions {
        shuffle: Some(5),
        resize: Some(CacheResize::Shorter(64)),
        ..jpeg(90)
    };
    let sets = [
        ("copy", copy()),
        ("jpeg", jpeg(80)),
        ("raw", raw()),
        ("mixed", shuffled),
    ];
    for (name, options) in sets {
        let mut first = None;
        for workers in [0, 1, 2, 4, 2] {
            let to = dst.path().join(format!("{name}-{workers}"));
            let _ = fs::remove_dir_all(&to);
            let report = built(src.path(), &to, options)
                .workers(workers)
                .build()
                .unwrap();
            assert!(report.complete && report.shards > 1, "{report:?}");
            assert_eq!(report.samples, 36);
            let got = files(&to);
            match &first {
                None => first = Some(got),
                Some(first) => assert_same(first, &got, &format!("{name}, {workers} workers")),
            }
        }
        let to = dst.path().join(format!("{name}-killed"));
        let report = built(src.path(), &to, options)
            .kill_workers_every(Duration::from_millis(10))
            .build()
            .unwrap();
        assert!(report.complete);
        assert_same(
            first.as_ref().unwrap(),
            &files(&to),
            &format!("{name}, killed"),
        );
    }
}

#[test]
fn copies_are_the_files_and_labels_stand_beside_them() {
    let src = data(3, 5);
    let dst = tempfile::tempdir().unwrap();
    let report = build(src.path(), dst.path(), copy());
    let (source, _) = Source::detect(src.path()).unwrap().open().unwrap();
    let all = all_members(dst.path());
    assert_eq!(all.len(), 2 * source.len() as usize);
    for (id, pair) in (0..).zip(all.chunks(2)) {
        let [(_, picture), (_, label)] = pair else {
            panic!("odd");
        };
        let path = source.path(id);
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(picture.name, format!("{id:08}_{stem}.jpg"));
        assert_eq!(label.name, format!("{id:08}_{stem}.cls"));
        assert!(picture.data == fs::read(&path).unwrap());
        let Label::Class(class) = source.label(id) else {
            panic!("no class");
        };
        assert_eq!(label.data, class.to_string().as_bytes());
    }
    let tars = files(dst.path())
        .into_iter()
        .filter(|(n, _)| n.ends_with(".tar"));
    assert_eq!(report.bytes, tars.map(|(_, b)| b.len() as u64).sum::<u64>());

    let index = Index::load(&dst.path().join("index.fli")).unwrap();
    assert_eq!(index.len(), source.len());
    assert_eq!(index.shards(), report.shards);
    assert_eq!(index.classes(), source.classes());
    for id in 0..index.len() {
        assert_eq!(index.label(id), source.label(id));
        assert_eq!(
            index.relative_path(id).to_str().unwrap(),
            all[2 * id as usize].1.name
        );
    }
}

/// The same JPEG with an EXIF block that holds nothing but the orientation.
fn with_orientation(jpeg: &[u8], tag: u8) -> Vec<u8> {
    let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([tag, 0, 0, 0, 0, 0, 0, 0]);
    let mut out = jpeg[..2].to_vec();
    out.extend([0xff, 0xe1]);
    out.extend((exif.len() as u16 + 2).to_be_bytes());
    out.extend(exif);
    out.extend(&jpeg[2..]);
    out
}

#[test]
fn raw_pixels_are_the_loaders_and_begin_at_blocks_of_the_file() {
    let src = data(2, 6);
    // Turned by EXIF, and transparent.
    let stored = Picture::rgb(90, 60, 3).encode();
    fs::write(
        src.path().join("class0/turned.jpg"),
        with_orientation(&stored, 6),
    )
    .unwrap();
    let clear = image::RgbaImage::from_fn(31, 17, |x, y| {
        image::Rgba([x as u8 * 8, y as u8 * 15, 99, (x * y) as u8])
    });
    clear.save(src.path().join("class1/clear.png")).unwrap();
    let dst = tempfile::tempdir().unwrap();
    let nhwc = |recipe: Recipe| recipe.with_dtype(Dtype::U8).with_layout(MemoryLayout::Nhwc);
    let exact = nhwc(
        Recipe::new("exact")
            .then(Decode::default())
            .then(Resize::exact(70, 90))
            .with_decode(DecodeMode::Full),
    );
    let sets = [
        (None, Recipe::full()),
        (
            Some(CacheResize::Exact {
                height: 70,
                width: 90,
            }),
            exact,
        ),
    ];
    for (resize, recipe) in sets {
        let to = dst.path().join(format!("{}", resize.is_some()));
        build(src.path(), &to, BuildOptions { resize, ..raw() });
        let expected = pixels_of(src.path(), recipe);
        let all = all_members(&to);
        let pictures: Vec<_> = all.iter().filter(|m| m.1.name.ends_with(".npy")).collect();
        assert_eq!(pictures.len(), expected.len());
        for ((tar, member), (height, width, pixels)) in pictures.into_iter().zip(expected) {
            let (h, w, got) = array(&member.data);
            assert_eq!((h, w), (height, width));
            assert!(got == pixels, "{}", member.name);
            let begin = member.at + (member.data.len() - got.len()) as u64;
            assert_eq!(begin % 512, 0);
            let whole = fs::read(tar).unwrap();
            assert!(whole[begin as usize..].starts_with(got));
        }
    }
}

#[test]
fn resizes_keep_shapes_and_never_enlarge_unless_they_are_exact() {
    let src = data(1, 30);
    let dst = tempfile::tempdir().unwrap();
    let full = pixels_of(src.path(), Recipe::full());
    type Due = fn(usize, usize) -> (usize, usize);
    let sets: [(CacheResize, Due); 2] = [
        (CacheResize::Shorter(150), |h, w| match h.min(w) {
            short if short <= 150 => (h, w),
            short => (h * 150 / short, w * 150 / short),
        }),
        (CacheResize::Longer(200), |h, w| match h.max(w) {
            long if long <= 200 => (h, w),
            long => (h * 200 / long, w * 200 / long),
        }),
    ];
    for (resize, due) in sets {
        let to = dst.path().join(resize.to_string());
        let resize = Some(resize);
        build(src.path(), &to, BuildOptions { resize, ..raw() });
        let all = all_members(&to);
        let pictures = all.iter().filter(|m| m.1.name.ends_with(".npy"));
        let (mut kept, mut changed) = (0, 0);
        for ((_, member), (height, width, pixels)) in pictures.zip(&full) {
            let (h, w, got) = array(&member.data);
            assert_eq!((h, w), due(*height, *width));
            if (h, w) == (*height, *width) {
                assert!(got == pixels, "no pixel is changed");
                kept += 1;
            } else {
                changed += 1;
            }
        }
        assert!(kept > 0 && changed > 0, "{kept} kept, {changed} changed");
    }
}

#[test]
fn jpegs_decode_close_to_what_they_were_made_of() {
    let src = data(1, 8);
    let dst = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    for quality in [50, 95] {
        let to = dst.path().join(quality.to_string());
        bytes.push(build(src.path(), &to, jpeg(quality)).bytes);
        let out = dst.path().join(format!("out-{quality}"));
        fs::create_dir(&out).unwrap();
        for (_, member) in all_members(&to) {
            if member.name.ends_with(".jpg") {
                fs::write(out.join(&member.name), &member.data).unwrap();
            }
        }
        let was = pixels_of(src.path(), Recipe::full());
        let is = pixels_of(&out, Recipe::full());
        assert_eq!(was.len(), is.len());
        for ((h, w, a), (height, width, b)) in was.into_iter().zip(is) {
            assert_eq!((h, w), (height, width));
            let far = a.iter().zip(&b).map(|(a, b)| f64::from(a.abs_diff(*b)));
            let mean = far.sum::<f64>() / a.len() as f64;
            // Noise in chroma is lost by 4:2:0, whatever the quality.
            assert!(mean < 9.0, "mean {mean}");
        }
    }
    assert!(bytes[0] < bytes[1]);
}

#[test]
fn a_shuffled_cache_has_every_sample_once_under_its_own_label() {
    let src = data(4, 10);
    let dst = tempfile::tempdir().unwrap();
    let mut orders = Vec::new();
    for seed in [Some(1), Some(2), None] {
        let to = dst.path().join(format!("{seed:?}"));
        let options = BuildOptions {
            shuffle: seed,
            ..copy()
        };
        build(src.path(), &to, options);
        let (source, _) = Source::detect(src.path()).unwrap().open().unwrap();
        let by_bytes: BTreeMap<Vec<u8>, u64> = (0..source.len())
            .map(|id| (fs::read(source.path(id)).unwrap(), id))
            .collect();
        let index = Index::load(&to.join("index.fli")).unwrap();
        let all = all_members(&to);
        let order: Vec<u64> = all
            .iter()
            .filter(|m| m.1.name.ends_with(".jpg"))
            .map(|m| by_bytes[&m.1.data])
            .collect();
        for (at, id) in (0..).zip(&order) {
            assert_eq!(index.label(at), source.label(*id));
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..source.len()).collect::<Vec<_>>());
        orders.push(order);
    }
    assert!(orders[0] != orders[1] && orders[1] != orders[2]);
    assert!(orders[2].is_sorted());
}

#[test]
fn a_complete_cache_is_left_alone_and_a_damaged_one_is_completed() {
    let src = data(2, 10);
    let small = || BuildOptions {
        shard_size: 40_000,
        ..copy()
    };
    let dst = tempfile::tempdir().unwrap();
    fs::write(dst.path().join("notes.txt"), "mine").unwrap();
    let report = build(src.path(), dst.path(), small());
    assert!(report.shards >= 3);
    let whole = files(dst.path());
    assert_eq!(whole["notes.txt"], b"mine");
    let times = |folder: &Path| -> Vec<_> {
        let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap());
        let mut times: Vec<_> = entries
            .map(|e| (e.file_name(), e.metadata().unwrap().modified().unwrap()))
            .collect();
        times.sort();
        times
    };
    let before = times(dst.path());
    let again = build(src.path(), dst.path(), small());
    assert_eq!(again.kept_samples, 20);
    assert_eq!(times(dst.path()), before, "nothing was written");

    let at = |name: &str| dst.path().join(name);
    let broken: [(&str, &dyn Fn(), u64); 6] = [
        (
            "a tar is gone",
            &|| fs::remove_file(at("shard-000001.tar")).unwrap(),
            1,
        ),
        (
            "a tar is cut",
            &|| {
                let file = fs::File::options()
                    .write(true)
                    .open(at("shard-000001.tar"))
                    .unwrap();
                file.set_len(700).unwrap();
            },
            1,
        ),
        (
            "a manifest is gone",
            &|| fs::remove_file(at("shard-000000.json")).unwrap(),
            0,
        ),
        (
            "a manifest is damaged",
            &|| {
                let mut text = whole["shard-000002.json"].clone();
                let middle = text.len() / 2;
                text[middle] ^= 1;
                fs::write(at("shard-000002.json"), text).unwrap();
            },
            2,
        ),
        (
            "the index is gone",
            &|| fs::remove_file(at("index.fli")).unwrap(),
            report.shards,
        ),
        (
            "an idx is damaged",
            &|| fs::write(at("shard-000000.idx"), "v1.2 0\n").unwrap(),
            report.shards,
        ),
    ];
    for (what, damage, kept) in broken {
        damage();
        let report = build(src.path(), dst.path(), small());
        assert_eq!(report.kept_shards, kept, "{what}");
        assert_same(&whole, &files(dst.path()), what);
    }
}

#[test]
fn a_shard_that_cannot_be_read_ends_the_build_and_nothing_is_removed() {
    use std::os::unix::fs::symlink;
    let src = data(2, 10);
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: 40_000,
        ..copy()
    };
    let to = dst.path().join("cache");
    let shards = build(src.path(), &to, options).shards;
    assert!(shards >= 3);
    let whole = files(&to);
    // A link to itself: an error of the system that is not "no such file", for
    // root too.
    for name in ["shard-000001.json", "shard-000001.tar"] {
        let path = to.join(name);
        fs::remove_file(&path).unwrap();
        symlink(name, &path).unwrap();
        let e = built(src.path(), &to, options).build().unwrap_err();
        assert!(matches!(e, Error::Io { .. }), "{e:?}");
        assert!(e.to_string().contains(name), "{e}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, &whole[name]).unwrap();
        assert_same(&whole, &files(&to), name);
    }
    // A shard on another disk is a shard.
    let (tar, elsewhere) = (to.join("shard-000001.tar"), dst.path().join("elsewhere"));
    fs::rename(&tar, &elsewhere).unwrap();
    symlink(&elsewhere, &tar).unwrap();
    assert_eq!(build(src.path(), &to, options).kept_shards, shards);
    assert!(tar.symlink_metadata().unwrap().is_symlink());
    assert_same(&whole, &files(&to), "a link");
}

#[test]
fn changed_sources_and_options_are_refused_by_name_and_force_builds_anew() {
    let src = data(2, 6);
    let dst = tempfile::tempdir().unwrap();
    let resize = Some(CacheResize::Shorter(64));
    build(src.path(), dst.path(), jpeg(90));
    let whole = files(dst.path());
    let refused = |options: BuildOptions, parts: &[&str]| {
        let e = built(src.path(), dst.path(), options).build().unwrap_err();
        assert!(e.is_usage(), "{e}");
        for part in parts.iter().chain(&["--force"]) {
            assert!(e.to_string().contains(part), "{e} lacks {part}");
        }
        assert_same(&whole, &files(dst.path()), "after a refusal");
    };
    refused(jpeg(80), &["encode was jpeg:90 and is now jpeg:80"]);
    refused(
        BuildOptions {
            resize,
            shuffle: Some(3),
            ..jpeg(90)
        },
        &[
            "resize was none and is now shorter:64",
            "shuffle was none and is now 3",
        ],
    );
    refused(
        BuildOptions {
            shard_size: 99_999,
            ..jpeg(90)
        },
        &["shard_size"],
    );
    refused(
        BuildOptions {
            on_error: OnBadSample::Skip,
            ..jpeg(90)
        },
        &["on_error"],
    );
    refused(
        BuildOptions {
            max_pixels: 1 << 20,
            ..jpeg(90)
        },
        &["max_pixels"],
    );

    let picture = src.path().join("class0/000.jpg");
    let was = fs::read(&picture).unwrap();
    fs::write(&picture, Picture::rgb(50, 40, 99).encode()).unwrap();
    refused(jpeg(90), &["files of the source have changed"]);
    fs::write(src.path().join("class0/zzz.jpg"), &was).unwrap();
    refused(jpeg(90), &["the number of samples was 12 and is now 13"]);

    let report = built(src.path(), dst.path(), jpeg(70))
        .force(true)
        .build()
        .unwrap();
    assert!(report.complete && report.kept_samples == 0 && report.samples == 13);
    let fresh = tempfile::tempdir().unwrap();
    build(src.path(), fresh.path(), jpeg(70));
    assert_same(&files(fresh.path()), &files(dst.path()), "forced");
}

#[test]
fn force_takes_the_place_of_a_damaged_manifest_and_of_no_foreign_shards() {
    let src = data(1, 4);
    let dst = tempfile::tempdir().unwrap();
    build(src.path(), dst.path(), copy());
    let whole = files(dst.path());
    let mut text = whole["manifest.json"].clone();
    text[40] ^= 2;
    fs::write(dst.path().join("manifest.json"), text).unwrap();
    let e = built(src.path(), dst.path(), copy()).build().unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("manifest.json"),
        "{e}"
    );
    let report = built(src.path(), dst.path(), copy())
        .force(true)
        .build()
        .unwrap();
    assert!(report.complete);
    assert_same(&whole, &files(dst.path()), "forced");

    fs::remove_file(dst.path().join("manifest.json")).unwrap();
    for force in [false, true] {
        let e = built(src.path(), dst.path(), copy())
            .force(force)
            .build()
            .unwrap_err();
        assert!(e.is_usage() && e.to_string().contains("index.fli"), "{e}");
    }
}

#[test]
fn force_mends_a_cache_whose_bytes_were_flipped() {
    let src = data(2, 20);
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: 40_000,
        ..copy()
    };
    let shards = build(src.path(), dst.path(), options).shards;
    assert!(shards >= 4);
    let whole = files(dst.path());
    let forced = || {
        let forced = built(src.path(), dst.path(), options).force(true).build();
        forced.unwrap().kept_shards
    };
    assert_eq!(forced(), shards, "nothing is hurt");
    for (number, at) in [(2u64, 700), (0, 0), (shards - 1, usize::MAX)] {
        let name = format!("shard-{number:06}.tar");
        let mut bytes = whole[&name].clone();
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 1;
        fs::write(dst.path().join(&name), bytes).unwrap();
        assert_eq!(build(src.path(), dst.path(), options).kept_shards, shards);
        assert_eq!(forced(), number);
        assert_same(&whole, &files(dst.path()), &name);
    }
}

#[test]
fn a_forced_build_that_is_refused_leaves_the_cache_that_was_there() {
    let src = data(2, 8);
    let dst = tempfile::tempdir().unwrap();
    build(src.path(), dst.path(), copy());
    let whole = files(dst.path());
    // The last of all: the survey finds it before anything is removed.
    let other = data(2, 9);
    fs::write(other.path().join("class1/008.jpg"), "no picture").unwrap();
    for workers in [0, 2] {
        let e = built(other.path(), dst.path(), copy())
            .workers(workers)
            .force(true)
            .build()
            .unwrap_err();
        assert!(matches!(e, Error::Sample { id: 17, .. }), "{e:?}");
        assert_same(&whole, &files(dst.path()), "a bad picture");
    }
    let mut text = whole["manifest.json"].clone();
    text[40] ^= 2;
    fs::write(dst.path().join("manifest.json"), text).unwrap();
    let damaged = files(dst.path());
    let e = built(other.path(), dst.path(), copy()).force(true).build();
    assert!(e.unwrap_err().is_sample());
    assert_same(&damaged, &files(dst.path()), "of a damaged manifest");
}

#[test]
fn shards_beside_a_manifest_that_is_not_ours_stay_whatever_force_says() {
    let src = data(1, 4);
    let beginning = "{\n  \"format\": \"featherload-cache";
    let manifests = [
        "{\"my\":\"notes\"}",
        "",
        "{\n  \"format\": \"featherload-shard\"",
        beginning,
    ];
    for text in manifests {
        let dst = tempfile::tempdir().unwrap();
        let names = ["shard-000000.tar", "shard-000001.tar", "shard-000002.tar"];
        for name in names.iter().chain(&["index.fli", "shard-000001.json"]) {
            fs::write(dst.path().join(name), "theirs").unwrap();
        }
        fs::write(dst.path().join("manifest.json"), text).unwrap();
        let theirs = files(dst.path());
        for force in [false, true] {
            let e = built(src.path(), dst.path(), copy())
                .force(force)
                .build()
                .unwrap_err();
            assert!(
                e.is_usage() && e.to_string().contains("name another folder"),
                "{text}: {e}"
            );
            assert_same(&theirs, &files(dst.path()), text);
        }
    }
}

/// A folder of good pictures with bad ones among them, and their names.
fn with_bad_pictures() -> (tempfile::TempDir, [&'static str; 3]) {
    let src = data(2, 8);
    let at = |name: &str| src.path().join(name);
    // No header; a header without an end; a fine header and a cut picture.
    fs::write(at("class0/000.jpg"), "no picture").unwrap();
    fs::write(at("class0/005.jpg"), b"\xff\xd8\xff").unwrap();
    let whole = fs::read(at("class1/003.jpg")).unwrap();
    fs::write(at("class1/003.jpg"), &whole[..whole.len() / 2]).unwrap();
    (src, ["class0/000.jpg", "class0/005.jpg", "class1/003.jpg"])
}

#[test]
fn a_bad_picture_stops_the_build_by_name_or_is_listed() {
    let (src, bad) = with_bad_pictures();
    let dst = tempfile::tempdir().unwrap();
    for workers in [0, 2] {
        let to = dst.path().join(format!("stop-{workers}"));
        let e = built(src.path(), &to, jpeg(90))
            .workers(workers)
            .build()
            .unwrap_err();
        let Error::Sample { id: 0, path, .. } = &e else {
            panic!("{e:?}");
        };
        assert!(path.ends_with(bad[0]), "{e}");
    }
    let skip = |options| BuildOptions {
        on_error: OnBadSample::Skip,
        ..options
    };
    for (name, options, left_out) in [("jpeg", skip(jpeg(90)), 3), ("copy", skip(copy()), 2)] {
        let to = dst.path().join(name);
        let report = build(src.path(), &to, options);
        assert_eq!((report.skipped, report.samples), (left_out, 16 - left_out));
        let told: Vec<_> = report.skipped_examples.iter().map(|s| &s.path).collect();
        for (told, bad) in told.iter().zip(bad) {
            assert!(told.ends_with(bad), "{told:?}");
        }
        assert_eq!(told.len() as u64, left_out);
        let manifests: Vec<String> = files(&to)
            .into_iter()
            .filter(|(n, _)| n.starts_with("shard-") && n.ends_with(".json"))
            .map(|(_, b)| String::from_utf8(b).unwrap())
            .collect();
        for bad in &bad[..left_out as usize] {
            let named = manifests.iter().filter(|m| m.contains(bad)).count();
            assert_eq!(named, 1, "{bad}");
        }
        let index = Index::load(&to.join("index.fli")).unwrap();
        assert_eq!(index.len(), report.samples);
        all_members(&to);
        // Gone on with behind a shard whose places were not all samples.
        let whole = files(&to);
        for number in (0..report.shards).rev() {
            fs::remove_file(to.join(format!("shard-{number:06}.json"))).unwrap();
            assert_eq!(build(src.path(), &to, options).kept_shards, number);
            assert_same(&whole, &files(&to), name);
        }
    }
}

#[test]
fn what_may_pass_is_not_left_out_for_good() {
    let src = tempfile::tempdir().unwrap();
    fs::write(src.path().join("a.jpg"), Picture::rgb(40, 30, 1).encode()).unwrap();
    fs::write(src.path().join("b.jpg"), common::slow_picture(2)).unwrap();
    let dst = tempfile::tempdir().unwrap();
    let mut slow = command(src.path(), dst.path());
    let output = slow
        .args(["--on-error", "skip", "--row-limit", "30"])
        .output()
        .unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for part in ["took longer than 30 ms", "run the command again"] {
        assert!(said.contains(part), "{said}");
    }
    // The same command, with time enough, has both.
    let output = command(src.path(), dst.path())
        .args(["--on-error", "skip"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(all_members(dst.path()).len(), 2);
}

#[test]
fn a_missing_file_is_left_out_and_listed() {
    let src = data(1, 3);
    let list = src.path().join("list.txt");
    fs::write(
        &list,
        "class0/000.jpg 0\nclass0/none.jpg 1\nclass0/002.jpg 0\n",
    )
    .unwrap();
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        on_error: OnBadSample::Skip,
        ..copy()
    };
    let report = build(&list, &dst.path().join("cache"), options);
    assert_eq!((report.samples, report.skipped), (2, 1));
    let told = &report.skipped_examples[0].path;
    assert!(told.ends_with("none.jpg"), "{report:?}");
}

#[test]
fn a_source_without_a_picture_is_an_error_that_says_why() {
    let src = tempfile::tempdir().unwrap();
    fs::write(src.path().join("a.jpg"), "no").unwrap();
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        on_error: OnBadSample::Skip,
        ..copy()
    };
    let e = built(src.path(), dst.path(), options).build().unwrap_err();
    assert!(e.to_string().contains("none of 1 samples"), "{e}");
}

#[test]
fn a_watched_build_may_be_ended_and_goes_on() {
    let src = data(2, 20);
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: 30_000,
        ..copy()
    };
    let fresh = dst.path().join("fresh");
    build(src.path(), &fresh, options);
    let to = dst.path().join("ended");
    let mut calls = 0;
    let report = built(src.path(), &to, options)
        .build_watched(&mut |p| {
            calls += 1;
            assert_eq!(p.samples, 40);
            ControlFlow::Break(())
        })
        .unwrap();
    assert!(!report.complete && calls == 1);
    assert!(!files(&to).keys().any(|n| n.ends_with(".tar")));
    let report = build(src.path(), &to, options);
    assert_eq!(report.samples, 40);
    assert_same(&files(&fresh), &files(&to), "gone on");
}

#[test]
fn a_cache_is_a_source_and_never_its_own() {
    let src = data(2, 8);
    let dst = tempfile::tempdir().unwrap();
    let (first, second) = (dst.path().join("first"), dst.path().join("second"));
    let shards = build(src.path(), &first, raw()).shards;
    assert!(shards > 1);
    let report = build(&first, &second, raw());
    assert_eq!((report.samples, report.shards), (16, shards));
    let members = |cache: &Path| all_members(cache).into_iter().map(|(_, m)| m);
    for (a, b) in members(&first).zip(members(&second)) {
        assert!(a.data == b.data, "{} {}", a.name, b.name);
        let (id, key) = a.name.split_at(8);
        assert_eq!(b.name, format!("{id}_{id}{key}"));
    }
    let whole = files(&first);
    for force in [false, true] {
        let e = built(&first, &first, copy())
            .force(force)
            .build()
            .unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains("shard of the source"),
            "{e}"
        );
        assert_same(&whole, &files(&first), "its own source");
    }
}

#[test]
fn a_cache_within_its_source_and_options_that_cannot_work_are_refused() {
    let src = data(1, 2);
    let e = built(src.path(), &src.path().join("class0/cache"), copy())
        .build()
        .unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("within the source"),
        "{e}"
    );
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        resize: Some(CacheResize::Longer(9)),
        ..copy()
    };
    let e = built(src.path(), dst.path(), options).build().unwrap_err();
    assert!(e.is_usage() && e.to_string().contains("copy keeps"), "{e}");
    assert!(files(dst.path()).is_empty());
}

/// A tar as others write it: two samples with classes, and fields that are
/// neither picture nor label.
fn foreign_shard(path: &Path) {
    let mut tar = tar::Builder::new(fs::File::create(path).unwrap());
    for n in 0..6u64 {
        let picture = Picture::rgb(60, 40, n).encode();
        let fields: [(&str, &[u8]); 4] = [
            ("jpg", &picture),
            ("cls", b"1"),
            ("txt", b"a caption"),
            ("seg.png", b"a mask"),
        ];
        for (extension, bytes) in fields {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            let name = format!("{n:04}.{extension}");
            tar.append_data(&mut header, name, bytes).unwrap();
        }
    }
    tar.finish().unwrap();
}

/// A source of one tar, whose index is kept nowhere.
fn of_tar(path: &Path) -> Source {
    let options = ShardOptions {
        keep: KeepIndex::Nowhere,
        ..ShardOptions::default()
    };
    Source::Shards(vec![path.to_owned()], options)
}

#[test]
fn a_damaged_shard_of_the_source_stops_the_build_or_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let tar = dir.path().join("train-000.tar");
    foreign_shard(&tar);
    let mut bytes = fs::read(&tar).unwrap();
    // The header of the fourth sample's picture.
    let header = members(&tar)[12].at as usize - 512;
    bytes[header..header + 512].fill(0xee);
    fs::write(&tar, bytes).unwrap();
    let to = dir.path().join("cache");
    let make = |options| {
        Builder::new(of_tar(&tar), &to, options)
            .helper(FEATHERLOAD)
            .workers(2)
            .build()
    };
    let e = make(copy()).unwrap_err();
    assert!(e.is_usage(), "{e:?}");
    for part in ["train-000.tar: ", "--on-error skip"] {
        assert_eq!(e.to_string().matches(part).count(), 1, "{e}");
    }
    assert!(!to.exists());
    let skip = BuildOptions {
        on_error: OnBadSample::Skip,
        ..copy()
    };
    let report = make(skip).unwrap();
    assert_eq!((report.samples, report.damaged_shards), (5, 1));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["damaged_shards"], 1);
    // What is left of the sample has no picture.
    let left_out: u64 = report.left_out.values().sum();
    assert!(report.damaged_samples + left_out >= 1, "{json}");
    assert_eq!(json["damaged_samples"], report.damaged_samples);
}

// ---- the command ----

fn command(src: &Path, dst: &Path) -> Command {
    let mut command = Command::new(FEATHERLOAD);
    command.args(["cache", "build"]).args([src, dst]);
    command.args(["--encode", "raw", "--shard-size", "400K", "--workers", "2"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(both).unwrap()
}

/// Waits until a shard is complete, or the command is over.
fn wait_for_shard(child: &mut Child, dst: &Path, number: u64) {
    let path = dst.join(format!("shard-{number:06}.json"));
    let until = Instant::now() + Duration::from_secs(60);
    while !path.exists() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "no shard {number}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// No half shard: what has a manifest is whole, as the `tar` crate reads it.
fn check_whole_shards(dst: &Path) -> u64 {
    let mut complete = 0;
    for number in 0.. {
        let tar = dst.join(format!("shard-{number:06}.tar"));
        if !tar.with_extension("json").exists() {
            break;
        }
        check_idx(&tar, &members(&tar));
        complete += 1;
    }
    complete
}

#[test]
fn a_killed_builder_goes_on_to_the_same_bytes() {
    let kills: u64 = std::env::var("FEATHERLOAD_KILLS").map_or(6, |n| n.parse().unwrap());
    let src = data(4, 40);
    let dst = tempfile::tempdir().unwrap();
    let fresh = dst.path().join("fresh");
    let began = Instant::now();
    let output = command(src.path(), &fresh).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let whole_build = began.elapsed();
    let expected = files(&fresh);
    let shards = check_whole_shards(&fresh);
    assert!(shards > 4, "{shards}");
    let mut random = Random(17);
    let (mut left, mut kept, mut middle) = (0, 0, 0);
    let to = dst.path().join("killed");
    let mut rounds = 0;
    // More rounds where a busy machine let none of the kills fall into the middle.
    while rounds < kills || (middle == 0 && rounds < kills + 20) {
        // Each begins anew when the one before was complete.
        if to.join("index.fli").exists() {
            fs::remove_dir_all(&to).unwrap();
        }
        let complete = check_whole_shards(&to);
        let mut child = command(src.path(), &to).spawn().unwrap();
        // At any moment, and every second time behind a shard of this call's.
        if rounds % 2 == 0 {
            let behind = complete + random.below((shards - complete).div_ceil(2).max(1));
            wait_for_shard(&mut child, &to, behind);
            std::thread::sleep(Duration::from_micros(random.below(2000)));
        } else {
            let micros = whole_build.as_micros() as u64;
            std::thread::sleep(Duration::from_micros(random.below(micros)));
        }
        kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        rounds += 1;
        if to.exists() {
            let complete = check_whole_shards(&to);
            kept += complete;
            middle += u64::from(complete > 0 && complete < shards);
            let temporary = |n: &String| n.starts_with(".featherload-") && !n.ends_with("-lock");
            left += files(&to).keys().filter(|n| temporary(n)).count();
        }
        if rounds % 2 == 0 || rounds >= kills {
            let output = command(src.path(), &to).output().unwrap();
            assert!(output.status.success(), "{}", text(&output));
            assert_same(&expected, &files(&to), &format!("after {rounds} kills"));
        }
    }
    assert!(
        kept > 0 && middle > 0,
        "{rounds} kills, and none of them hit the middle of a build"
    );
    println!(
        "{rounds} kills, {middle} of them in the middle: {kept} shards kept, {left} temporary \
         files left"
    );
}

#[test]
fn ctrl_c_leaves_complete_shards_and_says_130() {
    let src = data(4, 60);
    let dst = tempfile::tempdir().unwrap();
    let (fresh, to) = (dst.path().join("fresh"), dst.path().join("to"));
    assert!(command(src.path(), &fresh).status().unwrap().success());
    let mut child = command(src.path(), &to).spawn().unwrap();
    wait_for_shard(&mut child, &to, 1);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(check_whole_shards(&to) >= 2);
    assert!(!to.join("index.fli").exists());
    let output = command(src.path(), &to).arg("--json").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["report"]["kept_shards"].as_u64().unwrap() >= 2);
    assert_same(&files(&fresh), &files(&to), "gone on");
}

#[test]
fn two_builders_of_one_folder_do_not_meet() {
    let src = data(4, 60);
    let dst = tempfile::tempdir().unwrap();
    let mut child = command(src.path(), dst.path()).spawn().unwrap();
    wait_for_shard(&mut child, dst.path(), 0);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGSTOP).unwrap();
    let output = command(src.path(), dst.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("another process is building"));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGCONT).unwrap();
    assert!(child.wait().unwrap().success());
    check_whole_shards(dst.path());
}

#[test]
fn the_command_says_that_other_fields_are_not_copied() {
    let dir = tempfile::tempdir().unwrap();
    let tar = dir.path().join("train-000.tar");
    foreign_shard(&tar);
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    // (source, cache, whether it has fields to lose)
    for (src, dst, due) in [(&tar, &first, true), (&first, &second, false)] {
        let mut build = command(src, dst);
        build.arg("--json");
        if due {
            build.args(["--index-dir", "none"]);
        }
        let output = build.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains("other fields of samples"), due, "{said}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["report"]["fields_left_out"], due);
        assert_eq!(all_members(dst).len(), 12);
    }
}

#[test]
fn the_command_says_what_changed_and_exits_with_2() {
    let src = data(1, 4);
    let dst = tempfile::tempdir().unwrap();
    let output = command(src.path(), dst.path()).output().unwrap();
    assert!(output.status.success() && text(&output).contains("4 samples in"));
    // Before it starts, on no terminal too.
    let whole: u64 = files(dst.path()).values().map(|b| b.len() as u64).sum();
    let said = String::from_utf8(output.stderr).unwrap();
    let line = said.lines().find(|l| l.contains("bytes will be written"));
    let told = numbers(line.unwrap().rsplit(": ").next().unwrap())[0];
    assert!(told >= whole && told < whole + 20 * 4096, "{said} {whole}");
    assert!(line.unwrap().contains("for 4 of 4 samples"), "{said}");
    let output = command(src.path(), dst.path())
        .args(["--shuffle", "7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output).contains("shuffle was none and is now 7"),
        "{}",
        text(&output)
    );
    for wrong in [
        ["--encode", "jpg"],
        ["--resize", "256"],
        ["--shard-size", "0"],
    ] {
        let output = Command::new(FEATHERLOAD)
            .args(["cache", "build", "a", "b"])
            .args(wrong)
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong:?}: {}",
            text(&output)
        );
    }
}

// ---- full disks ----

/// A small file system of its own; none, said aloud, where nobody may mount.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new(test: &str, bytes: u64) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={bytes}"),
                "featherload-test",
            ])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|o| o.status.success()) {
            return Some(Self(dir));
        }
        assert!(
            std::env::var_os("FEATHERLOAD_REQUIRE_MOUNT").is_none_or(|v| v != "1"),
            "FEATHERLOAD_REQUIRE_MOUNT=1, and a tmpfs cannot be mounted here (needs root)"
        );
        // Not by `eprintln`, which the harness catches.
        use std::io::Write;
        let mut err = std::io::stderr();
        writeln!(
            err,
            "SKIP: {test}: a tmpfs cannot be mounted here (needs root)"
        )
        .unwrap();
        None
    }

    fn resize(&self, bytes: u64) {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,size={bytes}")])
            .arg(self.0.path())
            .status()
            .unwrap();
        assert!(done.success());
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// The numbers in a text.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|n| n.parse().ok())
        .collect()
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_a_shard_is_begun() {
    let src = data(2, 20);
    let dst = tempfile::tempdir().unwrap();
    let report = build(src.path(), &dst.path().join("fresh"), raw());
    let whole: u64 = files(&dst.path().join("fresh"))
        .values()
        .map(|b| b.len() as u64)
        .sum();
    // To the byte, but for what files are rounded up to and the manifest's rewriting.
    let many = 4096 * (3 * report.shards + 8);
    assert!(report.needed_bytes >= whole, "{report:?} {whole}");
    assert!(report.needed_bytes - whole <= many, "{report:?} {whole}");

    let Some(disk) = Tmpfs::new("a_disk_that_is_too_small", report.needed_bytes / 2) else {
        return;
    };
    let e = built(src.path(), disk.path(), raw()).build().unwrap_err();
    assert!(!e.is_usage(), "{e}");
    let text = e.to_string();
    assert!(text.contains("bytes are needed and"), "{text}");
    let told = numbers(&text);
    assert!(told.contains(&report.needed_bytes), "{text}");
    assert!(files(disk.path()).keys().all(|n| !n.starts_with("shard-")));
    let output = command(src.path(), disk.path()).output().unwrap();
    let said = self::text(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("bytes are needed and"), "{said}");
    assert!(files(disk.path()).keys().all(|n| !n.starts_with("shard-")));
    // Nothing is lost by other options then.
    let e = built(
        src.path(),
        disk.path(),
        BuildOptions {
            shuffle: Some(1),
            ..raw()
        },
    );
    assert!(
        e.build()
            .unwrap_err()
            .to_string()
            .contains("bytes are needed")
    );
    disk.resize(2 * report.needed_bytes);
    assert!(build(src.path(), disk.path(), raw()).complete);
    let fresh = files(&dst.path().join("fresh"));
    assert_same(&fresh, &files(disk.path()), "on a larger disk");

    // What is replaced counts as free, and stays where that is not enough.
    disk.resize(report.needed_bytes + report.needed_bytes / 4);
    let larger = data(2, 40);
    let e = built(larger.path(), disk.path(), raw()).force(true).build();
    let e = e.unwrap_err().to_string();
    assert!(e.contains("bytes are needed and"), "{e}");
    assert_same(&fresh, &files(disk.path()), "forced on a disk too small");
    let other = BuildOptions {
        shuffle: Some(1),
        ..raw()
    };
    let forced = built(src.path(), disk.path(), other).force(true).build();
    assert_eq!(forced.unwrap().kept_shards, 0);
}

#[test]
fn a_disk_that_runs_full_leaves_complete_shards_and_says_what_is_missing() {
    // Noise takes several times what is estimated for photos.
    let src = tempfile::tempdir().unwrap();
    for n in 0..24u64 {
        let picture = image_of_noise(160, 160, n);
        fs::write(src.path().join(format!("{n:02}.png")), picture).unwrap();
    }
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: 120_000,
        ..jpeg(95)
    };
    let fresh = dst.path().join("fresh");
    let report = build(src.path(), &fresh, options);
    let needed = report.needed_bytes;
    assert!(needed + 200_000 < report.bytes, "{report:?}");
    let Some(disk) = Tmpfs::new("a_disk_that_runs_full", needed + 60_000) else {
        return;
    };
    let to = disk.path().join("cache");
    let output = Command::new(FEATHERLOAD)
        .args(["cache", "build"])
        .args([src.path(), &to])
        .args([
            "--encode",
            "jpeg:95",
            "--shard-size",
            "120000",
            "--workers",
            "2",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("no space is left"), "{said}");
    assert!(said.contains("complete shards stay"), "{said}");
    let complete = check_whole_shards(&to);
    assert!(complete > 0, "{said}");
    assert!(
        files(&to)
            .keys()
            .all(|n| !n.starts_with(".featherload-") || n == ".featherload-lock"),
        "the half shard is gone"
    );
    // By the rate so far: within a quarter of the truth.
    let missing: u64 = files(&fresh)
        .iter()
        .filter(|(n, _)| n.ends_with(".tar") && !to.join(n).exists())
        .map(|(_, b)| b.len() as u64)
        .sum();
    let near = |n: &u64| n.abs_diff(missing) < missing / 4;
    assert!(
        numbers(&said).iter().any(near),
        "{said}; missing are {missing}"
    );

    disk.resize(4 * report.bytes);
    let again = build(src.path(), &to, options);
    assert_eq!(again.kept_shards, complete);
    assert_same(&files(&fresh), &files(&to), "gone on");
}

fn image_of_noise(width: u32, height: u32, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let rgb = (0..width * height * 3)
        .map(|_| random.next() as u8)
        .collect();
    let image = image::RgbImage::from_raw(width, height, rgb).unwrap();
    let mut out = std::io::Cursor::new(Vec::new());
    image.write_to(&mut out, image::ImageFormat::Png).unwrap();
    out.into_inner()
}

//! A sample that cannot be read ends a build with its name, or is left out and listed.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use featherload::cache::{self, BuildOptions, BuildPhase, CacheBuilder, OnBadSample};
use featherload::index::{Index, KeepIndex, ShardOptions};
use featherload::{Error, Source};

use super::scene::{
    all_members, assert_same, build, built, command, copy, files, foreign_shard, jpeg, members,
    text,
};
use super::small::{object, run, verified};
use crate::common::{FEATHERLOAD, Picture, data, slow_picture};

/// A folder of good images and some bad ones, and the names of the bad ones.
fn with_bad_pictures() -> (tempfile::TempDir, [&'static str; 3]) {
    let src = data(2, 8);
    let at = |name: &str| src.path().join(name);
    // No header; a header without an end; an intact header and a truncated image.
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
    let mut gone = Vec::new();
    for workers in [0, 2] {
        let to = dst.path().join(format!("stop-{workers}"));
        let e = built(src.path(), &to, jpeg(90))
            .num_workers(workers)
            .build()
            .unwrap_err();
        let Error::Sample { id: 0, path, .. } = &e else {
            panic!("{e:?}");
        };
        assert!(path.ends_with(bad[0]), "{e}");
        let advice = "; use `on_error: skip` to leave such samples out";
        assert!(e.to_string().ends_with(advice), "{e}");
        // The next bad image has a good header, and fails when it is decoded.
        for name in &bad[..2] {
            let held = fs::read(src.path().join(name)).unwrap();
            fs::remove_file(src.path().join(name)).unwrap();
            gone.push((name, held));
        }
        let to = dst.path().join(format!("decoded-{workers}"));
        let e = built(src.path(), &to, jpeg(90))
            .num_workers(workers)
            .build()
            .unwrap_err();
        assert!(e.path().unwrap().ends_with(bad[2]), "{e}");
        assert!(e.to_string().ends_with(advice), "{e}");
        for (name, held) in gone.drain(..) {
            fs::write(src.path().join(name), held).unwrap();
        }
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
        // Resumes after a shard with left-out samples.
        let whole = files(&to);
        for number in (0..report.shards).rev() {
            fs::remove_file(to.join(format!("shard-{number:06}.json"))).unwrap();
            assert_eq!(build(src.path(), &to, options).kept_shards, number);
            assert_same(&whole, &files(&to), name);
        }
    }
}

#[test]
fn what_is_left_out_behind_a_shard_of_an_earlier_call_is_listed_there() {
    let src = tempfile::tempdir().unwrap();
    for (n, name) in [(1, "a.jpg"), (2, "b.jpg")] {
        fs::write(src.path().join(name), Picture::rgb(90, 80, n).encode()).unwrap();
    }
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        on_error: OnBadSample::Skip,
        shard_size: Some(4096),
        ..copy()
    };
    assert_eq!(build(src.path(), dst.path(), options).shards, 2);
    // Loses the second shard, and the bytes of its sample without a change of length or time.
    fs::remove_file(dst.path().join("shard-000001.tar")).unwrap();
    let picture = src.path().join("b.jpg");
    let meta = picture.metadata().unwrap();
    fs::write(&picture, vec![0xee; meta.len() as usize]).unwrap();
    let file = fs::File::options().append(true).open(&picture).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
    let report = build(src.path(), dst.path(), options);
    assert_eq!((report.samples, report.skipped), (1, 1));
    assert_eq!(report.skipped_examples.len(), 1);
    let manifest = |name: &str| fs::read_to_string(dst.path().join(name)).unwrap();
    assert!(manifest("shard-000000.json").contains("b.jpg"));
    assert!(manifest("manifest.json").contains("\"skipped\": 1"));
    assert!(verified(dst.path(), 1).is_good());
    // A second build does not try the sample again.
    let whole = files(dst.path());
    let again = build(src.path(), dst.path(), options);
    assert_eq!((again.kept_samples, again.skipped), (1, 1));
    assert_eq!(again.needed_bytes, 0);
    assert_same(&whole, &files(dst.path()), "again");
}

#[test]
fn a_build_that_a_bad_picture_stopped_goes_on_without_it() {
    let src = data(2, 10);
    // The header is intact, so the survey does not find the fault.
    let bad = src.path().join("class1/007.jpg");
    let whole = fs::read(&bad).unwrap();
    fs::write(&bad, &whole[..whole.len() / 2]).unwrap();
    let dst = tempfile::tempdir().unwrap();
    let (fresh, to) = (dst.path().join("fresh"), dst.path().join("to"));
    let stop = BuildOptions {
        shard_size: Some(40_000),
        ..jpeg(90)
    };
    let skip = BuildOptions {
        on_error: OnBadSample::Skip,
        ..stop
    };
    build(src.path(), &fresh, skip);
    let e = built(src.path(), &to, stop).build().unwrap_err();
    assert!(matches!(e, Error::Sample { id: 17, .. }), "{e:?}");
    let shards = files(&to).keys().filter(|n| n.ends_with(".tar")).count() as u64;
    assert!(shards >= 2, "{shards}");
    let report = build(src.path(), &to, skip);
    assert_eq!((report.kept_shards, report.skipped), (shards, 1));
    assert_same(&files(&fresh), &files(&to), "resumed with skip");
    // From `skip` to `stop` is rejected, for a complete cache and for an unfinished one.
    let refused = || {
        let e = built(src.path(), &to, stop).build().unwrap_err();
        assert!(e.is_usage(), "{e:?}");
        assert!(e.to_string().contains("on_error was skip"), "{e}");
    };
    refused();
    fs::remove_file(to.join("shard-000001.json")).unwrap();
    let ended =
        built(src.path(), &to, skip).build_watched(&mut |p| match p.phase == BuildPhase::Writing {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
    assert!(!ended.unwrap().complete);
    refused();
}

#[test]
fn what_may_pass_is_not_left_out_for_good() {
    let src = tempfile::tempdir().unwrap();
    fs::write(src.path().join("a.jpg"), Picture::rgb(40, 30, 1).encode()).unwrap();
    fs::write(src.path().join("b.jpg"), slow_picture(2)).unwrap();
    let dst = tempfile::tempdir().unwrap();
    let mut slow = command(src.path(), dst.path());
    let output = slow
        .args(["--on-error", "skip", "--row-limit", "0.03"])
        .output()
        .unwrap();
    let message = text(&output);
    assert_eq!(output.status.code(), Some(3), "{message}");
    for part in ["took longer than 30 ms", "build again"] {
        assert!(message.contains(part), "{message}");
    }
    // The same command with enough time has both samples.
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

/// A source of one tar. Its index is not saved.
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
    // The tar header of the fourth sample's image.
    let header = members(&tar)[12].at as usize - 512;
    bytes[header..header + 512].fill(0xee);
    fs::write(&tar, bytes).unwrap();
    let to = dir.path().join("cache");
    let make = |options| {
        CacheBuilder::new(of_tar(&tar), &to, options)
            .helper(FEATHERLOAD)
            .num_workers(2)
            .build()
    };
    let e = make(copy()).unwrap_err();
    assert!(e.is_usage(), "{e:?}");
    for part in ["train-000.tar: ", "`on_error: skip`"] {
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
    // The rest of the sample has no image.
    let left_out: u64 = report.left_out.values().sum();
    assert!(report.damaged_samples + left_out >= 1, "{json}");
    assert_eq!(json["damaged_samples"], report.damaged_samples);
    // The manifest of the cache keeps the losses.
    let lost = cache::info(&to).unwrap().lost.unwrap();
    assert_eq!(
        (lost.damaged_shards, lost.damaged_samples),
        (1, report.damaged_samples)
    );
    assert_eq!(lost.left_out, report.left_out);
    let message = text(&run(&["info"], &to));
    assert!(
        message.contains("in 1 damaged shards of the source"),
        "{message}"
    );
    let told = object(&run(&["info", "--json"], &to));
    assert_eq!(told["info"]["lost"]["damaged_shards"], 1);
    // The damage does not count as a change of the source.
    let whole = files(&to);
    assert_eq!(make(skip).unwrap().kept_samples, 5);
    assert_same(&whole, &files(&to), "again");
}

#[test]
fn what_the_source_lost_stays_known_where_a_build_goes_on_by_a_saved_index() {
    let dir = tempfile::tempdir().unwrap();
    let tar = dir.path().join("train-000.tar");
    foreign_shard(&tar);
    let options = BuildOptions {
        shard_size: Some(4096),
        ..copy()
    };
    let make = |source, to: &Path| {
        CacheBuilder::new(source, to, options)
            .helper(FEATHERLOAD)
            .num_workers(0)
    };
    let (fresh, to) = (dir.path().join("fresh"), dir.path().join("to"));
    assert!(make(of_tar(&tar), &fresh).build().unwrap().complete);
    let ended = make(of_tar(&tar), &to).build_watched(&mut |p| match p.shards > 1 {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    assert!(!ended.unwrap().complete);
    let saved = dir.path().join("saved.fli");
    of_tar(&tar).open().unwrap().0.save(&saved).unwrap();
    let report = make(Source::detect(&saved).unwrap(), &to).build().unwrap();
    assert!(report.complete && report.kept_shards > 0, "{report:?}");
    let lost = cache::info(&to).unwrap().lost.unwrap();
    assert_eq!(lost.other_fields["txt"], 6);
    assert_same(&files(&fresh), &files(&to), "gone on");
}

#[test]
fn reasons_are_the_same_with_and_without_workers() {
    let dir = tempfile::tempdir().unwrap();
    let tar = dir.path().join("train-000.tar");
    let mut writer = tar::Builder::new(fs::File::create(&tar).unwrap());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        writer.append_data(&mut header, name, bytes).unwrap();
    };
    add("0.jpg", &Picture::rgb(30, 20, 1).encode());
    let dictionary = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}\n",
        "7, ".repeat(300)
    );
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend((dictionary.len() as u16).to_le_bytes());
    array.extend(dictionary.as_bytes());
    add("1.npy", &array);
    add("2.ppm", b"P6 2 1 255\n\x01\x02\x03\x04\x05\x06");
    writer.finish().unwrap();
    drop(writer);
    let mut all = Vec::new();
    for workers in [0, 2] {
        let to = dir.path().join(format!("cache-{workers}"));
        let options = BuildOptions {
            on_error: OnBadSample::Skip,
            ..copy()
        };
        let report = CacheBuilder::new(of_tar(&tar), &to, options)
            .helper(FEATHERLOAD)
            .num_workers(workers)
            .build()
            .unwrap();
        assert_eq!((report.samples, report.skipped), (2, 1));
        let reason = &report.skipped_examples[0].reason;
        assert!(
            reason.contains("shape (7, 7, ") && reason.ends_with(".npy"),
            "{reason}"
        );
        all.push(files(&to));
    }
    assert_same(&all[0], &all[1], "0 and 2 workers");
}

#[test]
fn a_cache_says_what_its_source_had_that_was_no_sample() {
    let src = data(1, 3);
    fs::write(src.path().join("class0/notes.txt"), "mine").unwrap();
    let dst = tempfile::tempdir().unwrap();
    let (first, second) = (dst.path().join("first"), dst.path().join("second"));
    build(src.path(), &first, copy());
    let lost = cache::info(&first).unwrap().lost.unwrap();
    assert_eq!(
        lost.left_out,
        BTreeMap::from([("no image extension".into(), 1)])
    );
    assert_eq!((lost.damaged_shards, lost.damaged_samples), (0, 0));
    assert!(lost.other_fields.is_empty());
    let message = text(&run(&["info"], &first));
    assert!(message.contains("1 x no image extension"), "{message}");
    // There are no losses for a source whose names were not read.
    build(&first, &second, copy());
    assert_eq!(cache::info(&second).unwrap().lost, None);
}

//! Disks that are too small, or that fill up.

use std::fs;
use std::path::Path;
use std::process::Command;

use featherload::cache::BuildOptions;
use featherload::error;

use super::scene::{
    assert_same, build, built, check_whole_shards, command, files, jpeg, raw, sizes, text,
};
use crate::common::{FEATHERLOAD, Random, data};

/// A small file system. None, with a printed SKIP, if this user may not mount one.
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

#[test]
fn a_disk_that_is_too_small_is_refused_before_a_shard_is_begun() {
    let src = data(2, 20);
    let dst = tempfile::tempdir().unwrap();
    let report = build(src.path(), &dst.path().join("fresh"), raw());
    let whole: u64 = files(&dst.path().join("fresh"))
        .values()
        .map(|b| b.len() as u64)
        .sum();
    // Exact to the byte, except for rounded file sizes and the manifest, which is written twice.
    let many = 4096 * (3 * report.shards + 8);
    assert!(report.needed_bytes >= whole, "{report:?} {whole}");
    assert!(report.needed_bytes - whole <= many, "{report:?} {whole}");

    let Some(disk) = Tmpfs::new("a_disk_that_is_too_small", report.needed_bytes / 2) else {
        return;
    };
    let e = built(src.path(), disk.path(), raw()).build().unwrap_err();
    assert!(!e.is_usage(), "{e}");
    let text = e.to_string();
    assert!(text.contains("the cache needs "), "{text}");
    assert!(
        text.contains(&error::size_rounded_up(report.needed_bytes)),
        "{text}"
    );
    assert!(files(disk.path()).keys().all(|n| !n.starts_with("shard-")));
    let output = command(src.path(), disk.path()).output().unwrap();
    let message = self::text(&output);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("the cache needs "), "{message}");
    assert!(files(disk.path()).keys().all(|n| !n.starts_with("shard-")));
    // Other options then lose nothing.
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
            .contains("the cache needs ")
    );
    disk.resize(2 * report.needed_bytes);
    assert!(build(src.path(), disk.path(), raw()).complete);
    let fresh = files(&dst.path().join("fresh"));
    assert_same(&fresh, &files(disk.path()), "on a larger disk");

    // Files to be replaced count as free. They stay if the space is not enough.
    disk.resize(report.needed_bytes + report.needed_bytes / 4);
    let larger = data(2, 40);
    let e = built(larger.path(), disk.path(), raw()).force(true).build();
    let e = e.unwrap_err().to_string();
    assert!(e.contains("the cache needs "), "{e}");
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
    // Noise takes several times the space that is estimated for photos.
    let src = tempfile::tempdir().unwrap();
    for n in 0..24u64 {
        let picture = image_of_noise(160, 160, n);
        fs::write(src.path().join(format!("{n:02}.png")), picture).unwrap();
    }
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: Some(120_000),
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
            "120000B",
            "--num-workers",
            "2",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let message = text(&output);
    assert!(message.contains("no space is left"), "{message}");
    assert!(message.contains("Complete shards stay"), "{message}");
    let complete = check_whole_shards(&to);
    assert!(complete > 0, "{message}");
    assert!(
        files(&to)
            .keys()
            .all(|n| !n.starts_with(".featherload-") || n == ".featherload-lock"),
        "the half shard is gone"
    );
    // Estimated from the rate so far: within a quarter of the true value.
    let missing: u64 = files(&fresh)
        .iter()
        .filter(|(n, _)| n.ends_with(".tar") && !to.join(n).exists())
        .map(|(_, b)| b.len() as u64)
        .sum();
    let near = |n: &u64| n.abs_diff(missing) < missing / 4;
    assert!(
        sizes(&message).iter().any(near),
        "{message}; missing are {missing}"
    );

    disk.resize(4 * report.bytes);
    let again = build(src.path(), &to, options);
    assert_eq!(again.kept_shards, complete);
    assert_same(&files(&fresh), &files(&to), "gone on");
}

#[test]
fn a_full_disk_is_explained_whatever_was_to_be_written() {
    let src = tempfile::tempdir().unwrap();
    for n in 0..24u64 {
        let picture = image_of_noise(160, 160, n);
        fs::write(src.path().join(format!("{n:02}.png")), picture).unwrap();
    }
    let dst = tempfile::tempdir().unwrap();
    let options = |quality| BuildOptions {
        shard_size: Some(120_000),
        ..jpeg(quality)
    };
    let report = build(src.path(), &dst.path().join("fresh"), options(95));
    let size = report.needed_bytes + 60_000;
    let Some(disk) = Tmpfs::new("a_full_disk_is_explained", size) else {
        return;
    };
    let to = disk.path().join("cache");
    build(src.path(), &to, options(1));
    let whole = files(&to);

    // There is no space for a file that is repaired before anything else.
    let idx = to.join("shard-000000.idx");
    fs::remove_file(&idx).unwrap();
    let ballast = disk.path().join("ballast");
    let full = fs::write(&ballast, vec![1; 4 * size as usize]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let e = built(src.path(), &to, options(1)).build().unwrap_err();
    for part in ["no space is left", "are available"] {
        assert!(e.to_string().contains(part), "{e}");
    }
    fs::remove_file(&ballast).unwrap();
    build(src.path(), &to, options(1));
    assert_same(&whole, &files(&to), "put right");

    // A run may still map the files that were removed to make room.
    let e = built(src.path(), &to, options(95)).force(true).build();
    let e = e.unwrap_err().to_string();
    for part in ["no space is left", "Removed shards hold", "trainings"] {
        assert!(e.contains(part), "{e}");
    }
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

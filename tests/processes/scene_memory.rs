//! A run over the images of a scene stays inside of what `--plan` printed before it: the
//! peak of all its processes together, sampled from outside.
//!
//! Page cache of executable, libraries and input does not count against the plan: the system
//! takes it back, and an executable that is built for tests has several times a release's.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use featherload::rays::{Rays, RaysBuilder};
use featherload::scene::SceneMemoryPlan;
use featherload::views::{Views, ViewsBuilder};
use featherload::{Error, Result};
use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use jpeg_encoder::{ColorType, Encoder};
use serde_json::{Value, json};

use crate::common::FEATHERLOAD;
use crate::common::command::{command, featherload, object, refusal, refusal_of_plan, stdout};
use crate::common::processes::{MARK, fresh_mark, marked};
use crate::namespaces::unshared;

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 900;
const IMAGES: u32 = 14;
const PIXELS: u64 = WIDTH as u64 * HEIGHT as u64;

/// A forecast is at most so many times what a run took.
const FACTOR: f64 = 1.6;

/// Images whose decoded pixels are most of what a run takes.
struct Large(tempfile::TempDir);

impl Large {
    /// JPEG, and nothing beside.
    fn plain() -> Self {
        Self::write("jpg", false)
    }

    /// PNG with alpha, masks and depths.
    fn full() -> Self {
        Self::write("png", true)
    }

    fn write(extension: &str, full: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["images", "masks", "depths"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let level = |x: u32, y: u32, n: u32| ((x / 7 + 3 * (y / 5) + 31 * n) % 251) as u8;
        let mut frames = Vec::new();
        for n in 0..IMAGES {
            let name = format!("images/{n:02}.{extension}");
            let color = |x, y| [level(x, y, n), level(y, x, n), 90];
            let path = dir.path().join(&name);
            match full {
                false => {
                    let picture = RgbImage::from_fn(WIDTH, HEIGHT, |x, y| Rgb(color(x, y)));
                    let encoder = Encoder::new_file(&path, 90).unwrap();
                    let size = (WIDTH as u16, HEIGHT as u16);
                    let encoded = encoder.encode(&picture, size.0, size.1, ColorType::Rgb);
                    encoded.unwrap();
                }
                true => {
                    let picture = RgbaImage::from_fn(WIDTH, HEIGHT, |x, y| {
                        let [r, g, b] = color(x, y);
                        Rgba([r, g, b, 255 - level(x, y, 0) / 2])
                    });
                    picture.save(&path).unwrap();
                }
            }
            let mut frame = json!({
                "file_path": name,
                "transform_matrix": [[1, 0, 0, n], [0, 1, 0, 0], [0, 0, 1, 2], [0, 0, 0, 1]],
            });
            if full {
                let mask = GrayImage::from_fn(WIDTH, HEIGHT, |x, y| Luma([u8::from(x > y / 3)]));
                let deep = |x: u32, y: u32| Luma([(40 * x + y) as u16]);
                let depths: ImageBuffer<Luma<u16>, Vec<u16>> =
                    ImageBuffer::from_fn(WIDTH, HEIGHT, deep);
                let names = ["masks", "depths"].map(|of| format!("{of}/{n:02}.png"));
                mask.save(dir.path().join(&names[0])).unwrap();
                depths.save(dir.path().join(&names[1])).unwrap();
                frame["mask_path"] = names[0].as_str().into();
                frame["depth_file_path"] = names[1].as_str().into();
            }
            frames.push(frame);
        }
        let names: Vec<_> = frames.iter().map(|f| f["file_path"].clone()).collect();
        let transforms = json!({
            "camera_model": "OPENCV", "w": WIDTH, "h": HEIGHT,
            "fl_x": 1000.0, "fl_y": 1000.0, "cx": 600.0, "cy": 450.0, "k1": 0.05, "k2": -0.02,
            "frames": frames,
            "train_filenames": names, "val_filenames": [], "test_filenames": [],
        });
        fs::write(dir.path().join("transforms.json"), transforms.to_string()).unwrap();
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn image(&self, n: u32, extension: &str) -> PathBuf {
        self.path().join(format!("images/{n:02}.{extension}"))
    }

    /// The words of a command over this scene.
    fn words<'a>(&'a self, kind: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let scene = self.path().to_str().unwrap();
        [&[kind, scene, "--own-store"], more].concat()
    }

    fn rays(&self, workers: usize) -> RaysBuilder {
        let rays = Rays::builder(self.path()).helper(FEATHERLOAD);
        rays.num_workers(workers).share_store(false)
    }

    fn views(&self, workers: usize) -> ViewsBuilder {
        let views = Views::builder(self.path()).helper(FEATHERLOAD);
        views.num_workers(workers).share_store(false)
    }
}

/// Ends the run that it holds.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The most that all processes of a run take together: their own pages and shared memory, and with
/// page cache.
///
/// Processes are read one after the other. Shared pages are counted by file, not as a share of each
/// process: if one of them ends meanwhile, the shares that were read before and after do not add up.
#[derive(Debug, Default)]
struct Peak {
    own: u64,
    all: u64,
}

impl Peak {
    /// From the start of a run to its end.
    fn of(words: &[&str]) -> Self {
        let mark = fresh_mark();
        let child = command(words)
            .env(MARK, &mark)
            .stdout(Stdio::null())
            .spawn();
        let mut run = Running(child.unwrap());
        let (mut peak, mut samples, mut pids) = (Self::default(), 0, Vec::new());
        let end = Instant::now() + Duration::from_secs(120);
        while run.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "{words:?} does not end");
            // Looking for them takes longer than looking at them.
            if samples % 8 == 0 {
                pids = marked(&mark)
                    .into_iter()
                    .map(|process| process.pid)
                    .collect();
            }
            let (mut own, mut cached, mut shared) = (0, 0, HashMap::new());
            for pid in &pids {
                let (of_process, file) = pss(*pid).unwrap_or_default();
                own += of_process;
                cached += file;
                shared.extend(shared_memory(*pid));
            }
            own += shared.values().sum::<u64>();
            peak = Self {
                own: peak.own.max(own),
                all: peak.all.max(own + cached),
            };
            samples += 1;
        }
        let status = run.0.wait().unwrap();
        assert!(status.success(), "{words:?}: {status}");
        assert!(samples >= 40, "{words:?}: {samples} samples");
        peak
    }
}

/// PSS of a process: its own pages, and page cache; none when it is gone.
fn pss(pid: i32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let of = |name: &str| {
        let mut lines = text.lines();
        let rest = lines.find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    };
    Some((of("Pss_Anon:")?, of("Pss_File:")?))
}

/// The bytes of each shared memory that a process has open, by its number.
fn shared_memory(pid: i32) -> Vec<(u64, u64)> {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let paths = open.filter_map(|file| Some(file.ok()?.path()));
    let of_memory = |path: &PathBuf| {
        let target = fs::read_link(path).unwrap_or_default();
        target.to_string_lossy().starts_with("/memfd:")
    };
    let sizes = paths.filter(of_memory).filter_map(|path| {
        let found = fs::metadata(path).ok()?;
        Some((found.ino(), found.blocks() * 512))
    });
    sizes.collect()
}

/// Runs so many steps of what was planned, and compares.
#[track_caller]
fn stays_inside(words: &[&str], steps: &str) -> Value {
    let plan = object(&featherload(&[words, &["--plan", "--json"]].concat()));
    let total = plan["memory"]["total_bytes"].as_u64().unwrap();
    let found = Peak::of(&[words, &["--steps", steps, "--json"]].concat());
    println!("{words:?}: {found:?} of {total} bytes");
    assert!(
        found.own <= total,
        "{words:?} took {found:?} bytes, planned {total}"
    );
    let factor = total as f64 / found.all as f64;
    assert!(
        factor <= FACTOR,
        "{words:?} took {found:?} bytes, planned {total}: {factor}"
    );
    plan
}

#[test]
fn rays_stay_inside_of_their_plan() {
    let scene = Large::plain();
    for workers in ["1", "4"] {
        let words = scene.words("rays", &["--num-workers", workers, "--joining", "0"]);
        let plan = stays_inside(&words, "100");
        assert_eq!(plan["store"]["in_file"], false);
        let store = plan["memory"]["store_bytes"].as_u64().unwrap();
        assert!(store >= u64::from(IMAGES) * 3 * PIXELS, "{plan}");
    }
}

#[test]
fn rays_with_alpha_masks_and_depths_stay_inside_of_their_plan() {
    let scene = Large::full();
    let words = scene.words("rays", &["--num-workers", "4", "--alpha", "--joining", "0"]);
    let plan = stays_inside(&words, "100");
    let worker = &plan["memory"]["worker"];
    assert_eq!(worker["alpha_bytes"], 6 * PIXELS);
    assert!(worker["depth_bytes"].as_u64().unwrap() >= 4 * PIXELS);
    assert!(plan["memory"]["reading_masks_bytes"].as_u64().unwrap() > 4 * 4 * PIXELS);
}

#[test]
fn straight_views_stay_inside_of_their_plan() {
    let scene = Large::full();
    for workers in ["1", "4"] {
        let words = ["--num-workers", workers, "--undistort", "--float"];
        let plan = stays_inside(&scene.words("views", &words), "24");
        // Three bytes of colours, one of mask, four of depths; a map of eight bytes a pixel.
        let copies = plan["memory"]["worker"]["view_bytes"].as_u64().unwrap();
        assert!((8 * PIXELS..9 * PIXELS).contains(&copies), "{copies}");
        assert!(plan["memory"]["maps_bytes"].as_u64().unwrap() > 7 * PIXELS);
    }
}

#[test]
fn images_in_a_file_stay_inside_of_the_limit() {
    let scene = Large::plain();
    let all = ["--num-workers", "4", "--joining", "0"];
    let words = scene.words("rays", &all);
    let plan = object(&featherload(&[&words[..], &["--plan", "--json"]].concat()));
    let limit = plan["memory"]["total_bytes"].as_u64().unwrap() - 1;
    let limit = limit.to_string();
    let words = [&words[..], &["--memory-limit", &limit]].concat();
    let plan = stays_inside(&words, "100");
    assert_eq!(plan["store"]["in_file"], true);
    assert!(plan["store"]["folder"].is_string(), "{plan}");
    assert!(
        plan["memory"]["worker"]["file_buffer_bytes"]
            .as_u64()
            .unwrap()
            >= 3 * PIXELS
    );
}

/// Both say the same of every limit: in memory, in a file, refused with the same words.
fn agree(
    what: &str,
    forecast: impl Fn(u64) -> Result<SceneMemoryPlan>,
    build: impl Fn(u64) -> Result<bool>,
) {
    let whole = forecast(1 << 40).unwrap().memory.total_bytes;
    let least = forecast(whole - 1).unwrap().memory.total_bytes;
    assert!(least < whole, "{what}");
    for (limit, in_file) in [
        (whole, Some(false)),
        (whole - 1, Some(true)),
        (least, Some(true)),
        (least - 1, None),
        (1, None),
    ] {
        let text = |e: Error| (e.is_usage(), e.to_string());
        let planned = forecast(limit)
            .map(|found| found.store.in_file)
            .map_err(text);
        let found = build(limit).map_err(text);
        assert_eq!(found, planned, "{what}, limit {limit}");
        match in_file {
            Some(in_file) => assert_eq!(found, Ok(in_file), "{what}, limit {limit}"),
            None => assert!(matches!(&found, Err((true, text)) if text.contains("the run needs "))),
        }
    }
}

#[test]
fn a_run_is_refused_exactly_where_its_plan_is() {
    let scenes = [Large::plain(), Large::full()];
    for (scene, workers) in scenes.iter().zip([0, 2]) {
        let rays = |limit| scene.rays(workers).memory_limit(limit);
        agree(
            &format!("rays, {workers} workers"),
            |limit| rays(limit).memory_plan(),
            |limit| rays(limit).build()?.report().map(|report| report.in_file),
        );
        let views = |limit| scene.views(workers).float(true).memory_limit(limit);
        agree(
            &format!("views, {workers} workers"),
            |limit| views(limit).memory_plan(),
            |limit| views(limit).build()?.report().map(|report| report.in_file),
        );
    }
}

#[test]
fn a_plan_needs_neither_pixels_nor_processes() {
    let scene = Large::plain();
    let whole = scene.rays(2).memory_plan().unwrap();
    for n in 0..IMAGES {
        let bytes = fs::read(scene.image(n, "jpg")).unwrap();
        fs::write(scene.image(n, "jpg"), &bytes[..bytes.len() / 2]).unwrap();
    }
    let found = scene
        .rays(2)
        .helper("/nowhere/featherload")
        .memory_plan()
        .unwrap();
    let longest = whole.memory.worker.input_bytes;
    assert_eq!(found.memory.worker.input_bytes, longest / 2);
    let less = 2 * (longest - longest / 2);
    assert_eq!(found.memory.total_bytes, whole.memory.total_bytes - less);
    let views = scene.views(2).helper("/nowhere/featherload");
    assert_eq!(views.memory_plan().unwrap().images, u64::from(IMAGES));
}

#[test]
fn a_plan_is_printed_and_refused_like_the_run() {
    let scene = Large::plain();
    let rays = scene.words("rays", &["--num-workers", "2", "--plan"]);
    let text = stdout(&featherload(&rays));
    for words in [
        "14 images | no masks, no depths | 2 workers",
        "MiB decoded images, in memory, shared by all processes",
        "4 batches of 4,096 rays of 0.3 MiB",
        "2 workers,",
        "MiB in all: PSS of all processes at most",
        "images     in memory",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let folder = ["--memory-limit", "36M", "--store-folder", "/dev/shm"];
    let message = refusal_of_plan(&featherload(&[&rays[..], &folder].concat()));
    assert!(message.contains("/dev/shm is in memory"), "{message}");
    let views = scene.words(
        "views",
        &["--num-workers", "2", "--plan", "--memory-limit", "50M"],
    );
    let text = stdout(&featherload(&views));
    assert!(text.contains("4 views of 3.1 MiB"), "{text}");
    assert!(
        text.contains("images     in a file of 43.3 MiB in"),
        "{text}"
    );
    for kind in ["rays", "views"] {
        let words = scene.words(kind, &["--plan", "--memory-limit", "1M"]);
        let message = refusal_of_plan(&featherload(&words));
        assert!(message.contains("--memory-limit allows 1 MiB"), "{message}");
        let device = ["--plan", "--device", "cuda", "--gpu-memory-limit", "1M"];
        let message = refusal_of_plan(&featherload(&scene.words(kind, &device)));
        assert!(
            message.contains("gpu-memory-limit allows 1 MiB"),
            "{message}"
        );
    }
}

#[test]
fn a_store_folder_on_overlayfs_over_memory_is_refused() {
    let scene = Large::plain();
    let folder = tempfile::tempdir().unwrap();
    let script = "
        cd \"$1\" && shift
        mkdir memory merged && mount -t tmpfs none memory
        mkdir memory/lower memory/upper memory/work
        layers=lowerdir=memory/lower,upperdir=memory/upper,workdir=memory/work
        mount -t overlay none -o \"$layers\" merged || { echo none && exit 0; }
        exec \"$@\" --store-folder merged";
    let limit = ["--num-workers", "2", "--plan", "--memory-limit", "36M"];
    let words = scene.words("rays", &limit);
    let arguments = [&[folder.path().to_str().unwrap(), FEATHERLOAD], &words[..]];
    let Some(out) = unshared("-Urm", script, &arguments.concat()) else {
        return;
    };
    if stdout(&out) == "none\n" {
        println!("NOT CHECKED: this system gives tests no overlayfs");
        return;
    }
    let message = refusal_of_plan(&out);
    assert!(message.contains("merged is in memory"), "{message}");
}

#[test]
fn what_a_device_takes_is_planned_without_one() {
    let scene = Large::plain();
    let device = ["--num-workers", "2", "--plan", "--json", "--device", "cuda"];
    let words = scene.words("rays", &device);
    let all = object(&featherload(&words))["device"].clone();
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    let images = number(&all, "image_bytes");
    assert!(images >= u64::from(IMAGES) * 3 * PIXELS);
    let (total, beside) = (number(&all, "total_bytes"), number(&all, "batch_bytes"));
    let beside = beside + number(&all, "scene_bytes");
    let decoder = number(&all, "decoder_bytes");
    assert!(decoder > 0);
    assert_eq!(total, images + beside + decoder);
    let limited = |bytes: u64, more: &[&str]| {
        let bytes = bytes.to_string();
        featherload(&[&words[..], &["--gpu-memory-limit", &bytes], more].concat())
    };
    // Without room for the decoder workers decode, and all images are there.
    let less = object(&limited(total - 1, &[]))["device"].clone();
    assert_eq!(number(&less, "decoder_bytes"), 0);
    assert_eq!(number(&less, "host_image_bytes"), 0);
    assert_eq!(number(&less, "total_bytes"), images + beside);
    let total = images + beside;
    // Whole images, in the driver's steps of 2 MiB.
    let less = object(&limited(total - 1, &[]))["device"].clone();
    let (there, left) = (
        number(&less, "image_bytes"),
        number(&less, "host_image_bytes"),
    );
    assert!(number(&less, "total_bytes") < total && there.is_multiple_of(2 << 20));
    assert!(left > 0 && left.is_multiple_of(3 * PIXELS) && left + there >= 14 * 3 * PIXELS);
    assert_eq!(
        number(&object(&limited(beside, &[]))["device"], "image_bytes"),
        0
    );
    let message = refusal(&limited(beside - 1, &[]));
    assert!(message.contains("raise it, or lower rays"), "{message}");
    // What lies in a file no device reads.
    let file = ["--memory-limit", "256M"];
    assert_eq!(object(&limited(total, &file))["store"]["in_file"], true);
    let message = refusal(&limited(total - 1, &file));
    assert!(
        message.contains("cannot read images in a file"),
        "{message}"
    );
}

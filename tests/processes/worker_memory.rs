//! A worker stays inside of what `plan` says of it, whichever pictures follow one another.
//!
//! Memory of its own alone: the executable of a test, and the file that it decodes, are page
//! cache.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use crate::common::command::{command, featherload, object};
use crate::common::processes::{children, coordinator_of, wait_for};

/// Bytes of a process that are no file's.
fn anonymous(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find(|line| line.starts_with("Anonymous:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn write(path: &Path, (w, h): (u16, u16), form: ColorType, progressive: bool) {
    let channels = match form {
        ColorType::Cmyk => 4,
        _ => 3,
    };
    let count = usize::from(w) * usize::from(h) * channels;
    let pixels: Vec<u8> = (0..count).map(|i| (i / 97 % 251) as u8).collect();
    let mut encoder = Encoder::new_file(path, 80).unwrap();
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_progressive(progressive);
    encoder.encode(&pixels, w, h, form).unwrap();
}

/// One leaves the inks of a large crop; beside them lie the coefficients of the next.
#[test]
fn pictures_of_all_kinds_stay_inside_of_the_plan() {
    // A bound that is far away says nothing.
    stays_inside_of_the_plan("train224", 2);
}

/// All crops of an image come from one decoded image, which the plan counts as all of it.
#[test]
fn several_crops_stay_inside_of_the_plan() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = dir.path().join("dino.yaml");
    fs::write(
        &recipe,
        "featherload: 1\ncrops:\n  - count: 2\n    ops:\n      - random_resized_crop: {size: 224, \
         scale: [0.32, 1.0]}\n      - random_horizontal_flip\n  - count: 8\n    ops:\n      - \
         random_resized_crop: {size: 96, scale: [0.05, 0.32]}\n      - gaussian_blur: \
         {kernel_size: 9, sigma: [0.1, 2.0]}\n",
    )
    .unwrap();
    stays_inside_of_the_plan(recipe.to_str().unwrap(), 3);
}

/// Fails unless a worker takes at most the planned bytes, and more than `1 / share` of them.
fn stays_inside_of_the_plan(recipe: &str, share: u64) {
    let dir = tempfile::tempdir().unwrap();
    let class = dir.path().join("class");
    fs::create_dir(&class).unwrap();
    for n in 0..4 {
        let path = |kind: &str| class.join(format!("{n}-{kind}.jpg"));
        write(&path("cmyk"), (1440, 1080), ColorType::Cmyk, false);
        write(&path("progressive"), (1920, 1080), ColorType::Rgb, true);
        write(&path("small"), (500, 375), ColorType::Rgb, false);
    }
    let source = dir.path().to_str().unwrap();
    let shape = [
        "--recipe",
        recipe,
        "--batch-size",
        "4",
        "--num-workers",
        "1",
    ];
    let plan = object(&featherload(
        &[&["plan", source, "--json"], &shape[..]].concat(),
    ));
    let memory = |name: &str| plan["memory"][name].as_u64().unwrap();
    let most = memory("worker_bytes") - memory("input_bytes");
    let more = ["--epochs", "40", "--json"];
    let mut bench = command(&[&["bench", source], &shape[..], &more[..]].concat())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let limit = Duration::from_secs(10);
    let coordinator = wait_for(limit, || coordinator_of(bench.id() as i32)).unwrap();
    let mut peak = 0;
    let status = loop {
        // Whoever is there: the first child only tries the sandbox.
        let workers = children(coordinator);
        peak = (workers.iter().filter_map(|w| anonymous(w.pid))).fold(peak, u64::max);
        if let Some(status) = bench.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(status.success());
    println!("{peak} of {most} bytes");
    assert!(peak <= most, "{peak} bytes, and {most} were planned");
    assert!(peak > most / share, "{peak} bytes, and {most} were planned");
}

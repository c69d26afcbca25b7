//! How a device gets at pixels that workers decoded: what `plan` says, what a run then does
//! with the stand-in for the NVIDIA driver in front, and what does not fit.

use std::fs;

use featherload::Device;
use serde_json::Value;

use crate::common::standin::Standin;
use crate::common::{Picture, builder, data};

const ON_DEVICE: [&str; 4] = ["--device", "cuda", "--decode-on", "cpu"];

/// `command` over the data, in batches of 4 by 2 workers, on the device.
fn json(standin: &Standin, command: &str, dir: &str, more: &[&str]) -> Value {
    let out = output(standin, command, dir, &[more, &["--json"]].concat());
    assert_eq!(out.status.code(), Some(0), "{more:?}: {out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

fn output(standin: &Standin, command: &str, dir: &str, more: &[&str]) -> std::process::Output {
    let usual = [command, dir, "--batch-size", "12", "--num-workers", "2"];
    standin.run(&[&usual[..], &ON_DEVICE, more].concat(), &[]).0
}

fn refused(standin: &Standin, command: &str, dir: &str, more: &[&str]) -> String {
    let out = output(standin, command, dir, more);
    assert_eq!(out.status.code(), Some(2), "{more:?}: {out:?}");
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn the_plan_says_the_way_and_the_run_takes_it() {
    let data = data(3, 4);
    let dir = data.path().to_str().unwrap();
    let standin = Standin::new();
    let plan = |more: &[&str]| json(&standin, "plan", dir, more);
    let bytes = |plan: &Value| plan["memory"]["device_bytes"].as_u64().unwrap();
    let copied = bytes(&plan(&["--upload", "copied"]));
    let in_place = bytes(&plan(&["--upload", "in-place"]));
    assert!(in_place < copied);
    let (fits, not) = (copied.to_string(), (copied - 1).to_string());
    for (more, upload, why) in [
        (&[][..], "in-place", "over the bus"),
        (&["--upload", "auto"], "in-place", "over the bus"),
        (&["--upload", "copied"], "copied", "as requested"),
        (
            &["--gpu-memory-limit", &fits],
            "copied",
            "fit gpu_memory_limit",
        ),
        (
            &["--gpu-memory-limit", &not],
            "in-place",
            "copies would need ",
        ),
        (
            &["--gpu-memory-limit", &not, "--upload", "in-place"],
            "in-place",
            "as requested",
        ),
    ] {
        let plan = plan(more);
        assert_eq!(plan["upload"]["upload"], upload, "{more:?}");
        let message = plan["upload"]["why"].as_str().unwrap();
        assert!(message.contains(why), "{more:?}: {message}");
        let text = String::from_utf8(output(&standin, "plan", dir, more).stdout).unwrap();
        // As one line.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains(&format!("; upload {upload}: {message}")),
            "{text}"
        );
        // Nobody asked the driver.
        assert!(!standin.log().exists());

        let run = json(&standin, "bench", dir, more);
        assert_eq!(run["device"]["upload"], upload, "{more:?}");
        assert_eq!(run["device"]["planned_bytes"], bytes(&plan), "{more:?}");
        let taken = standin.calls("cuMemAlloc_v2");
        // In steps of 2 MiB, and 8 MiB for the driver's own.
        let taken = taken.iter().map(|l| {
            let bytes = l.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
            bytes.next_multiple_of(2 << 20)
        });
        let taken = taken.sum::<u64>() + (8 << 20);
        assert_eq!(taken, bytes(&plan), "{more:?}");
        fs::remove_file(standin.log()).unwrap();
    }
}

#[test]
fn what_does_not_fit_the_device_is_refused_before_the_run() {
    let data = data(3, 4);
    let dir = data.path().to_str().unwrap();
    let standin = Standin::new();
    // Two slots are the least that the device takes.
    let two = json(
        &standin,
        "plan",
        dir,
        &["--depth", "2", "--upload", "in-place"],
    );
    let least = two["memory"]["device_bytes"].as_u64().unwrap();
    let limit = least.to_string();
    let run = json(&standin, "bench", dir, &["--gpu-memory-limit", &limit]);
    assert_eq!(run["device"]["planned_bytes"], least);
    fs::remove_file(standin.log()).unwrap();
    let low = (least - 1).to_string();
    for more in [
        &["--gpu-memory-limit", &low][..],
        &["--gpu-memory-limit", &limit, "--depth", "3"],
        &[
            "--gpu-memory-limit",
            &limit,
            "--depth",
            "2",
            "--upload",
            "copied",
        ],
    ] {
        let message = refused(&standin, "plan", dir, more);
        assert_eq!(message, refused(&standin, "bench", dir, more));
        for word in [
            " of the device with depth ",
            "--gpu-memory-limit allows",
            ": use --batch-size ",
        ] {
            assert!(message.contains(word), "{message}");
        }
        assert!(!standin.log().exists());
        let (_, batch) = message.split_once(": use --batch-size ").unwrap();
        let batch = batch.split(',').next().unwrap();
        let fits = [more, &["--batch-size", batch]].concat();
        let args = ["plan", dir, "--num-workers", "2"];
        let (out, _) = standin.run(&[&args[..], &ON_DEVICE, &fits].concat(), &[]);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
    }
    let message = refused(
        &standin,
        "plan",
        dir,
        &["--gpu-memory-limit", &limit, "--depth", "3"],
    );
    assert!(
        message.contains("or depth 2, or a higher limit"),
        "{message}"
    );
}

/// The limit is looked at before a helper is.
#[test]
fn no_process_is_started_for_what_does_not_fit() {
    let data = data(1, 4);
    let refused = |limit: Option<u64>| {
        let mut b = builder(data.path()).device(Device::Cuda(0)).num_workers(1);
        if let Some(bytes) = limit {
            b = b.gpu_memory_limit(bytes);
        }
        let built = b.helper("/nowhere/featherload").build();
        built.unwrap_err().to_string()
    };
    assert!(refused(None).contains("/nowhere/featherload"));
    assert!(refused(Some(1)).contains("gpu_memory_limit allows 1 byte"));
}

#[test]
fn a_limit_needs_a_device_and_data() {
    let data = data(1, 2);
    let dir = data.path().to_str().unwrap();
    let standin = Standin::new();
    for args in [
        &["plan", dir, "--gpu-memory-limit", "1G"][..],
        &["bench", dir, "--gpu-memory-limit", "1G"],
        &["bench", dir, "--device", "cpu", "--gpu-memory-limit", "1G"],
        &["plan", "--gpu-memory-limit", "1G"],
        &[
            "bench",
            dir,
            "--device",
            "cuda",
            "--gpu-memory-limit",
            "much",
        ],
    ] {
        let (out, _) = standin.run(args, &[]);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {out:?}");
        let message = String::from_utf8(out.stderr).unwrap().replace('-', "_");
        assert!(message.contains("gpu_memory_limit"), "{args:?}: {message}");
    }
    for upload in ["in-place", "copied"] {
        let (out, _) = standin.run(&["bench", dir, "--upload", upload], &[]);
        assert_eq!(out.status.code(), Some(2), "{upload}: {out:?}");
        let message = String::from_utf8(out.stderr).unwrap();
        assert!(
            message.contains("upload has no effect on device cpu"),
            "{message}"
        );
    }
}

#[test]
fn rows_that_workers_finish_have_one_way() {
    let data = data(3, 4);
    let dir = data.path().to_str().unwrap();
    let standin = Standin::new();
    for upload in ["auto", "in-place", "copied"] {
        let more = ["--reorder", "off", "--upload", upload];
        let plan = json(&standin, "plan", dir, &more);
        assert_eq!(plan["upload"]["upload"], "copied");
        let why = plan["upload"]["why"].as_str().unwrap();
        assert!(
            why.contains("always copied") && why.contains("reorder: off"),
            "{why}"
        );
        let run = json(&standin, "bench", dir, &more);
        assert_eq!(run["device"]["upload"], "copied");
        assert_eq!(
            run["device"]["planned_bytes"],
            plan["memory"]["device_bytes"]
        );
    }
}

/// A picture that is stored row by row and never decoded smaller: 3 bytes a pixel.
fn pnm(width: u32, height: u32) -> Vec<u8> {
    let mut file = format!("P6\n{width} {height}\n255\n").into_bytes();
    file.extend((0..3 * width * height).map(|i| (i % 251) as u8));
    file
}

#[test]
fn rows_without_room_for_their_crop_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    // To 32 x 24 a JPEG is decoded smaller first, and so has room; a quarter has none.
    for i in 0..6 {
        let file = Picture::rgb(300, 300, i).encode();
        fs::write(dir.path().join(format!("{i}.jpg")), file).unwrap();
    }
    for (name, side) in [("large0.ppm", 300), ("large1.ppm", 200), ("small.ppm", 40)] {
        fs::write(dir.path().join(name), pnm(side, side)).unwrap();
    }
    let recipe = dir.path().join("recipe.yaml");
    let text = "featherload: 1\nops:\n  - decode: {mode: scaled}\n  - resize: {size: [32, 24]}\n";
    fs::write(&recipe, text).unwrap();
    let standin = Standin::new();
    let folder = dir.path().to_str().unwrap();
    let args = ["--recipe", recipe.to_str().unwrap(), "--epochs", "2"];
    let run = json(&standin, "bench", folder, &args);
    assert_eq!(run["samples"], 18);
    assert_eq!(run["loader"]["resized_by_workers"], 4);
    let all = [&args[..], &["-v"]].concat();
    let text = String::from_utf8(output(&standin, "bench", folder, &all).stdout).unwrap();
    assert!(
        text.contains("4 of 18 rows had no room for their crop"),
        "{text}"
    );
    // Where workers resize every row there is nothing to count.
    let cpu = [
        &["bench", folder, "--num-workers", "2", "--json"],
        &args[..],
    ]
    .concat();
    let run: Value = serde_json::from_slice(&standin.run(&cpu, &[]).0.stdout).unwrap();
    assert_eq!(run["loader"]["resized_by_workers"], 0);
}

//! Runs that end on a device, with the stand-in for the NVIDIA driver
//! (`tests/standin_cuda/cuda.c`) in front: the whole way of the consumer but for the
//! kernel's arithmetic. What becomes of a run when the driver refuses: `failures`.

use std::fs;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::common::data;
use crate::common::standin::Standin;

/// The stand-in, and a small data set.
struct Scene {
    standin: Standin,
    data: tempfile::TempDir,
}

const SAMPLES: u64 = 18;

impl Scene {
    fn new() -> Self {
        Self {
            standin: Standin::new(),
            data: data(3, SAMPLES / 3),
        }
    }

    fn run(&self, args: &[&str], environment: &[(&str, &str)]) -> (Output, Duration) {
        self.standin.run(args, environment)
    }

    fn calls(&self, name: &str) -> Vec<String> {
        self.standin.calls(name)
    }

    /// A benchmark of two epochs in batches of 4 by 2 workers.
    fn bench(&self, more: &[&str], environment: &[(&str, &str)]) -> (Output, Duration) {
        let dir = self.data.path().to_str().unwrap();
        let usual = [
            "bench",
            dir,
            "--batch-size",
            "4",
            "--num-workers",
            "2",
            "--epochs",
            "2",
        ];
        let args: Vec<&str> = usual.iter().chain(more).copied().collect();
        self.run(&args, environment)
    }
}

fn report(out: &Output) -> Value {
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

/// 18 samples in batches of 4, two epochs.
const BATCHES: usize = 10;

#[test]
fn a_run_is_so_many_launches_a_batch_and_gives_all_memory_back() {
    // What is copied comes in two parts.
    for (upload, launches) in [("in-place", BATCHES), ("copied", 2 * BATCHES)] {
        let scene = Scene::new();
        let crops = ["--device", "cuda", "--decode-on", "cpu", "--upload", upload];
        let more = [&crops[..], &["--json"]].concat();
        let (out, _) = scene.bench(&more, &[]);
        let report = report(&out);
        assert_eq!(report["samples"], 2 * SAMPLES);
        assert_eq!(report["profile"]["hand_over"], "crops");
        let resampler = report["profile"]["resampler"].as_str().unwrap();
        assert!(resampler.starts_with("f32 CUDA"), "{resampler}");
        assert_eq!(scene.calls("cuLaunchKernel").len(), launches);
        // Of the ring once, whatever its depth.
        assert_eq!(scene.calls("cuMemHostRegister_v2").len(), 1);
        for (made, gone) in [
            ("cuMemAlloc_v2", "cuMemFree_v2"),
            ("cuMemHostRegister_v2", "cuMemHostUnregister"),
            ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"),
        ] {
            assert_eq!(scene.calls(made).len(), scene.calls(gone).len(), "{made}");
        }
        // What was said is each buffer in steps of 2 MiB, and 8 MiB for the driver's own.
        let taken = scene.calls("cuMemAlloc_v2");
        let taken = taken.iter().map(|l| bytes_of(l).next_multiple_of(2 << 20));
        let planned = report["device"]["planned_bytes"].as_u64().unwrap();
        assert_eq!(taken.sum::<u64>() + (8 << 20), planned);
        let dir = scene.data.path().to_str().unwrap();
        let plan = ["plan", dir, "--batch-size", "4", "--num-workers", "2"];
        let (out, _) = scene.run(&[&plan[..], &more].concat(), &[]);
        let plan: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(plan["memory"]["device_bytes"], planned);
    }
}

/// The bytes of an allocation, the last word of its line.
fn bytes_of(line: &str) -> u64 {
    let last = line.rsplit(' ').next().unwrap_or_default();
    last.parse().unwrap_or_else(|_| panic!("{line}"))
}

/// A slot and a batch on the device, held by the caller while the next is made.
#[test]
fn one_slot_is_enough() {
    let scene = Scene::new();
    let (out, _) = scene.bench(&["--device", "cuda", "--depth", "1", "--json"], &[]);
    assert_eq!(report(&out)["samples"], 2 * SAMPLES);
}

/// A picture that is none: its row is masked, and the others are as they were.
#[test]
fn masked_rows_are_told_to_the_kernel() {
    let scene = Scene::new();
    fs::write(scene.data.path().join("class0/zzz.jpg"), "no picture").unwrap();
    let more = ["--device", "cuda", "--on-error", "skip", "--json"];
    let (out, _) = scene.bench(&more, &[]);
    let report = report(&out);
    assert_eq!(report["failed"], 2);
    assert_eq!(report["samples"], 2 * (SAMPLES + 1));
}

#[test]
fn what_the_kernel_cannot_do_is_finished_by_workers_and_copied() {
    let scene = Scene::new();
    let recipe = scene.standin.path().join("blur.yaml");
    let text = "featherload: 1\nops:\n  - decode\n  - resize: {size: [32, 24]}\n  - gaussian_blur: \
                {kernel_size: 3}\n";
    fs::write(&recipe, text).unwrap();
    let recipe = recipe.to_str().unwrap();
    let more = ["--recipe", recipe, "--dtype", "f32", "--digest", "--json"];
    let (on_host, _) = scene.bench(&more, &[]);
    let on_device: Vec<&str> = more.into_iter().chain(["--device", "cuda:0"]).collect();
    let (out, _) = scene.bench(&on_device, &[]);
    let (on_device, on_host) = (report(&out), report(&on_host));
    assert_eq!(on_device["profile"]["hand_over"], "finished rows");
    assert!(scene.calls("cuLaunchKernel").is_empty());
    // The rows of the host's run, there and back.
    assert_eq!(on_device["digest"], on_host["digest"]);
}

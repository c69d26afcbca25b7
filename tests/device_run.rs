//! Runs that end on a device, with the stand-in for the NVIDIA driver
//! (`tests/standin_cuda/cuda.c`) in front: the whole way of the consumer but for the
//! kernel's arithmetic, and what becomes of a run when the driver refuses.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{FEATHERLOAD, data, processes};
use serde_json::Value;

/// A folder with the stand-in, its log and a small data set.
struct Scene {
    dir: tempfile::TempDir,
    data: tempfile::TempDir,
}

const SAMPLES: u64 = 18;

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libcuda.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin_cuda/cuda.c");
        let out = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(source)
            .output()
            .expect("a C compiler, `cc`");
        assert!(out.status.success(), "{out:?}");
        symlink(&library, dir.path().join("libcuda.so.1")).unwrap();
        Self {
            dir,
            data: data(3, SAMPLES / 3),
        }
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// `featherload` with these arguments and variables, and how long it took. None
    /// of its processes is left behind.
    fn run(&self, args: &[&str], environment: &[(&str, &str)]) -> (Output, Duration) {
        let mark = processes::fresh_mark();
        let began = Instant::now();
        let out = Command::new(FEATHERLOAD)
            .args(args)
            .env_remove("FEATHERLOAD_HELPER")
            .env_remove("FEATHERLOAD_CPU")
            .env(processes::MARK, &mark)
            .env("LD_LIBRARY_PATH", self.dir.path())
            .env("STANDIN_LOG", self.log())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let took = began.elapsed();
        let left = processes::wait_gone(&mark, Duration::from_secs(2));
        assert!(left.is_ok(), "{left:?}");
        (out, took)
    }

    /// A benchmark of two epochs in batches of 4 by 2 workers.
    fn bench(&self, more: &[&str], environment: &[(&str, &str)]) -> (Output, Duration) {
        let dir = self.data.path().to_str().unwrap();
        let usual = [
            "bench",
            dir,
            "--batch",
            "4",
            "--workers",
            "2",
            "--epochs",
            "2",
        ];
        let args: Vec<&str> = usual.iter().chain(more).copied().collect();
        self.run(&args, environment)
    }

    /// Lines of the log that begin with this call.
    fn calls(&self, name: &str) -> Vec<String> {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let of = log.lines().filter(|l| l.split(' ').next() == Some(name));
        of.map(str::to_owned).collect()
    }
}

fn report(out: &Output) -> Value {
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

/// What was said of a run that ended with this exit status: 3 for the machine, 2 for
/// the arguments.
fn said(out: &Output, status: i32) -> String {
    assert_eq!(out.status.code(), Some(status), "{out:?}");
    String::from_utf8(out.stderr.clone()).unwrap()
}

/// 18 samples in batches of 4, two epochs.
const BATCHES: usize = 10;

#[test]
fn a_run_is_one_launch_a_batch_and_gives_all_memory_back() {
    for upload in ["in-place", "copied"] {
        let scene = Scene::new();
        let more = ["--device", "cuda", "--upload", upload, "--json"];
        let (out, _) = scene.bench(&more, &[]);
        let report = report(&out);
        assert_eq!(report["samples"], 2 * SAMPLES);
        assert_eq!(report["profile"]["hand_over"], "crops");
        let resampler = report["profile"]["resampler"].as_str().unwrap();
        assert!(resampler.starts_with("f32 CUDA"), "{resampler}");
        assert_eq!(scene.calls("cuLaunchKernel").len(), BATCHES);
        // Of the ring once, whatever its depth.
        assert_eq!(scene.calls("cuMemHostRegister_v2").len(), 1);
        for (made, gone) in [
            ("cuMemAlloc_v2", "cuMemFree_v2"),
            ("cuMemHostRegister_v2", "cuMemHostUnregister"),
            ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"),
        ] {
            assert_eq!(scene.calls(made).len(), scene.calls(gone).len(), "{made}");
        }
        // What was taken is what was said.
        let taken: u64 = scene
            .calls("cuMemAlloc_v2")
            .iter()
            .map(|l| bytes_of(l))
            .sum();
        let planned = report["device"]["planned_bytes"].as_u64().unwrap();
        assert_eq!(taken, planned);
        let dir = scene.data.path().to_str().unwrap();
        let plan = [
            "plan",
            dir,
            "--batch",
            "4",
            "--workers",
            "2",
            "--device",
            "cuda",
        ];
        let args: Vec<&str> = plan
            .into_iter()
            .chain(["--upload", upload, "--json"])
            .collect();
        let (out, _) = scene.run(&args, &[]);
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
    let recipe = scene.dir.path().join("blur.yaml");
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

#[test]
fn what_is_missing_is_said_before_the_run() {
    let scene = Scene::new();
    let cuda = ["--device", "cuda"];
    for (environment, words) in [
        (
            ("STANDIN_DRIVER", "11040"),
            &["11.4", "update the driver"][..],
        ),
        (("STANDIN_DEVICES", "0"), &["CUDA_VISIBLE_DEVICES"]),
        (("STANDIN_CAPABILITY", "61"), &["6.1", "7.0"]),
        (("STANDIN_FAIL", "cuMemAlloc_v2:2:1"), &["bytes"]),
        (("STANDIN_FAIL", "cuMemHostRegister_v2:2:1"), &["bytes"]),
        (
            ("STANDIN_FAIL", "cuDevicePrimaryCtxRetain:2:1"),
            &["cuDevicePrimaryCtxRetain"],
        ),
    ] {
        let (out, took) = scene.bench(&cuda, &[environment]);
        let said = said(&out, 3);
        for word in words {
            assert!(said.contains(word), "{environment:?}: {said}");
        }
        assert!(took < Duration::from_secs(5), "{environment:?}: {took:?}");
    }
    let (out, _) = scene.bench(&["--device", "cuda:7"], &[]);
    assert!(said(&out, 3).contains("cuda:7"));
    let dir = scene.data.path().to_str().unwrap();
    let (out, _) = scene.run(&["bench", dir, "--device", "cuda", "--workers", "0"], &[]);
    assert!(said(&out, 2).contains("at least 1 worker"));
}

#[test]
fn an_error_of_the_device_in_the_midst_ends_the_run() {
    let scene = Scene::new();
    for fail in [
        "cuLaunchKernel:700:3",
        "cuMemcpy2DAsync_v2:700:4",
        "cuEventRecord:700:3",
        "cuEventQuery:700:2",
    ] {
        let (out, took) = scene.bench(&["--device", "cuda"], &[("STANDIN_FAIL", fail)]);
        let said = said(&out, 3);
        let call = fail.split(':').next().unwrap();
        assert!(
            said.contains(call) && said.contains("700"),
            "{fail}: {said}"
        );
        assert!(took < Duration::from_secs(5), "{fail}: {took:?}");
    }
}

//! Runs on a device that cannot go on, with the stand-in for the NVIDIA driver
//! (`tests/standin_cuda/cuda.c`) in front: each ends soon with exit status 3, says
//! which device and what to do, and leaves no process behind.

use std::fs;
use std::process::Output;
use std::time::Duration;

use featherload::error;

use crate::common::data;
use crate::common::standin::Standin;

/// How long a run that is refused, or broken, takes at most; a good one takes a tenth.
const SOON: Duration = Duration::from_secs(10);

/// 18 samples in batches of 4, two epochs, 2 workers.
const BENCH: [&str; 7] = [
    "--batch-size",
    "4",
    "--num-workers",
    "2",
    "--epochs",
    "2",
    "--json",
];

fn bench(standin: &Standin, more: &[&str], environment: &[(&str, &str)]) -> Output {
    let data = data(3, 6);
    let dir = data.path().to_str().unwrap();
    let args: Vec<&str> = ["bench", dir]
        .iter()
        .chain(&BENCH)
        .chain(more)
        .copied()
        .collect();
    let (out, took) = standin.run(&args, environment);
    assert!(took < SOON, "{environment:?} took {took:?}: {out:?}");
    out
}

/// The error text of a run with this exit status: 3 for the machine, 2 for the arguments. It is
/// one line, without a panic or a warning.
#[track_caller]
fn stderr_line(out: &Output, status: i32) -> String {
    assert_eq!(out.status.code(), Some(status), "{out:?}");
    assert_eq!(out.stdout, b"", "{out:?}");
    let stderr_line = String::from_utf8(out.stderr.clone()).unwrap();
    assert_eq!(stderr_line.lines().count(), 1, "{stderr_line}");
    stderr_line
}

#[track_caller]
fn has(stderr_line: &str, words: &[&str]) {
    for word in words {
        assert!(
            stderr_line.contains(word),
            "`{word}` is not in: {stderr_line}"
        );
    }
}

#[test]
fn without_a_driver_it_is_said_what_to_install() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        fs::write(dir.path().join(name), "no library").unwrap();
    }
    let folder = dir.path().to_str().unwrap();
    let out = bench(
        &Standin::new(),
        &["--device", "cuda"],
        &[("LD_LIBRARY_PATH", folder)],
    );
    has(
        &stderr_line(&out, 3),
        &["cuda:0", "libcuda.so.1", "install", "--gpus all"],
    );
}

#[test]
fn what_is_missing_is_said_before_the_run() {
    let standin = Standin::new();
    let fail = "STANDIN_FAIL";
    for (environment, words) in [
        (
            ("STANDIN_DRIVER", "11040"),
            &["11.4", "12.0", "update the driver"][..],
        ),
        (
            ("STANDIN_DEVICES", "0"),
            &["CUDA_VISIBLE_DEVICES is not set"],
        ),
        (
            ("CUDA_VISIBLE_DEVICES", ""),
            &["CUDA_VISIBLE_DEVICES is \"\"", "nvidia-smi"],
        ),
        (("STANDIN_CAPABILITY", "61"), &["Stand-in 0", "6.1", "7.0"]),
        ((fail, "cuInit:999:1"), &["cuInit", "nvidia_uvm"]),
        ((fail, "cuInit:803:1"), &["cuInit", "two versions"]),
        (
            (fail, "cuDevicePrimaryCtxRetain:2:1"),
            &["cuDevicePrimaryCtxRetain", "nvidia-smi"],
        ),
        (
            (fail, "cuMemHostAlloc:2:1"),
            &["pinned host memory", "batch or depth"],
        ),
        (
            (fail, "cuMemHostRegister_v2:304:1"),
            &["pin the ring (", "RLIMIT_MEMLOCK", "batch or depth"],
        ),
        (
            (fail, "cuModuleLoadData:218:1"),
            &["cuModuleLoadData", "update it"],
        ),
        (
            (fail, "cuModuleLoadData:222:1"),
            &["cuModuleLoadData", "update it"],
        ),
        (
            (fail, "cuModuleLoadData:221:1"),
            &["cuModuleLoadData", "libnvidia-ptxjitcompiler"],
        ),
        (
            (fail, "cuStreamCreate:2:1"),
            &["cuStreamCreate", "batch or depth"],
        ),
    ] {
        let stderr_line = stderr_line(&bench(&standin, &["--device", "cuda"], &[environment]), 3);
        has(&stderr_line, words);
        has(&stderr_line, &["cuda:0"]);
    }
    assert!(standin.calls("cuLaunchKernel").is_empty());
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    let standin = Standin::new();
    let out = bench(
        &standin,
        &["--device", "cuda:3"],
        &[("STANDIN_DEVICES", "2")],
    );
    has(
        &stderr_line(&out, 3),
        &[
            "cuda:3 does not exist",
            "cuda:0 (Stand-in 0), cuda:1 (Stand-in 1)",
            "CUDA_VISIBLE_DEVICES is not set",
        ],
    );
}

/// Memory that others have: too little for the first buffer, and for a later one.
#[test]
fn memory_that_others_have_is_counted() {
    let standin = Standin::new();
    // Else two threads take memory at a time.
    let device = ["--device", "cuda", "--decode-on", "cpu"];
    let out = bench(&standin, &device, &[]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let buffers = standin.calls("cuMemAlloc_v2");
    let bytes = |line: &String| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let all: u64 = buffers.iter().map(bytes).sum();
    let (first, last) = (bytes(&buffers[0]), bytes(&buffers[buffers.len() - 1]));
    assert!(buffers.len() > 2 && last > 1);
    for (free, needed, left) in [(first - 1, first, first - 1), (all - 1, last, last - 1)] {
        let free = free.to_string();
        let stderr_line = stderr_line(&bench(&standin, &device, &[("STANDIN_FREE", &free)]), 3);
        has(
            &stderr_line,
            &[
                "cuda:0 (Stand-in 0)",
                &format!("{} of device memory", error::size_rounded_up(needed)),
                &format!("({} free)", error::size_rounded_down(left)),
                "lower batch or depth",
                "nvidia-smi",
            ],
        );
    }
    let enough = all.to_string();
    let out = bench(&standin, &device, &[("STANDIN_FREE", &enough)]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
}

#[test]
fn a_driver_without_a_function_is_named_without_a_panic() {
    let standin = Standin::compiled(&["-DWITHOUT_EVENT_QUERY"]);
    let out = bench(&standin, &["--device", "cuda"], &[]);
    has(&stderr_line(&out, 3), &["cuda:0", "cuEventQuery", "525"]);
}

#[test]
fn an_error_of_the_device_in_the_midst_ends_the_run() {
    let standin = Standin::new();
    let recipe = standin.path().join("blur.yaml");
    let text = "featherload: 1\nops:\n  - decode\n  - resize: {size: [32, 24]}\n  - gaussian_blur: \
                {kernel_size: 3}\n";
    fs::write(&recipe, text).unwrap();
    let finished = ["--device", "cuda", "--recipe", recipe.to_str().unwrap()];
    // One thread makes all calls. A lost context fails the next call of each thread, and with a thread
    // of JPEGs another call may be reported first.
    let crops = ["--device", "cuda", "--decode-on", "cpu"];
    for (args, fail) in [
        (&crops[..], "cuLaunchKernel:700:3"),
        (&crops, "cuMemcpy2DAsync_v2:700:4"),
        (&crops, "cuMemcpyHtoDAsync_v2:214:2"),
        (&crops, "cuEventCreate:2:3"),
        (&crops, "cuEventRecord:700:3"),
        (&crops, "cuEventQuery:700:2"),
        (&crops, "cuEventSynchronize:700:1"),
        (&finished, "cuMemcpyHtoDAsync_v2:719:2"),
        (&finished, "cuEventRecord:999:2"),
    ] {
        let stderr_line = stderr_line(&bench(&standin, args, &[("STANDIN_FAIL", fail)]), 3);
        let mut parts = fail.split(':');
        let (call, code) = (parts.next().unwrap(), parts.next().unwrap());
        has(&stderr_line, &["cuda:0 (Stand-in 0)", call, code]);
    }
}

/// Whoever shares the primary context resets it, at any call: the run ends, and nothing
/// is done with what was in it, not even where another context has come in its place.
#[test]
fn a_context_that_is_reset_ends_the_run() {
    // A thread of JPEGs may be between its asking and its call, too.
    let runs = ["0", "1"]
        .into_iter()
        .flat_map(|revived| [(revived, "cpu", 0), (revived, "gpu", 1)]);
    for (revived, decode_on, more) in runs {
        for (reset, stale) in [
            // Found out by asking.
            ("cuDevicePrimaryCtxGetState:709:40", 0),
            ("cuCtxGetId:709:60", 0),
            // Between the asking and the call.
            ("cuLaunchKernel:709:3", 1),
            ("cuEventQuery:709:2", 1),
            ("cuMemcpy2DAsync_v2:201:3", 1),
        ] {
            let standin = Standin::new();
            let environment = [("STANDIN_RESET", reset), ("STANDIN_REVIVED", revived)];
            let device = ["--device", "cuda", "--decode-on", decode_on];
            let out = bench(&standin, &device, &environment);
            has(
                &stderr_line(&out, 3),
                &["cuda:0 (Stand-in 0)", "reset", "build the loader behind it"],
            );
            let calls = standin.stale_calls();
            let is_right = (stale..=stale + more).contains(&calls.len());
            assert!(is_right, "{reset}, {revived}, {decode_on}: {calls:?}");
        }
    }
}

/// The same once all batches are there: nobody has to know.
#[test]
fn a_context_that_is_reset_at_the_end_is_no_error() {
    for revived in ["0", "1"] {
        let standin = Standin::new();
        let environment = [
            ("STANDIN_RESET", "cuStreamSynchronize:709:1"),
            ("STANDIN_REVIVED", revived),
        ];
        let out = bench(&standin, &["--device", "cuda"], &environment);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        assert_eq!(out.stderr, b"", "{out:?}");
        assert_eq!(standin.stale_calls().len(), 1);
        assert!(standin.calls("cuMemFree_v2").is_empty());
    }
}

#[test]
fn options_that_a_device_cannot_have_are_refused() {
    let standin = Standin::new();
    let more = ["--device", "cuda", "--num-workers", "0"];
    let data = data(1, 2);
    let dir = data.path().to_str().unwrap();
    let args: Vec<&str> = ["bench", dir].into_iter().chain(more).collect();
    has(
        &stderr_line(&standin.run(&args, &[]).0, 2),
        &["0 workers: use at least 1"],
    );
    let out = bench(&standin, &["--gpu-memory-limit", "1G"], &[]);
    has(
        &stderr_line(&out, 2),
        &["--gpu-memory-limit", "device cuda"],
    );
}

//! Tests with the stand-in for the driver (`tests/standin_cuda/cuda.c`): each runs
//! once more in a child process that finds it in front of any driver.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const CHILD: &str = "FEATHERLOAD_TEST_STANDIN";

/// The calls of the driver, a line each, in their order.
pub(in crate::device::cuda) struct Log(Vec<String>);

/// In the test's own process: runs it in a child with the stand-in, and gives the
/// log. In the child: runs `body`.
pub(in crate::device::cuda) fn with_standin(
    test: &str,
    environment: &[(&str, &str)],
    body: impl FnOnce(),
) -> Option<Log> {
    with_compiled(test, &[], environment, body)
}

/// As [`with_standin`], with flags for the compiler.
pub(in crate::device::cuda) fn with_compiled(
    test: &str,
    flags: &[&str],
    environment: &[(&str, &str)],
    body: impl FnOnce(),
) -> Option<Log> {
    if env::var_os(CHILD).is_some() {
        body();
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("libcuda.so");
    compile("tests/standin_cuda/cuda.c", &library, flags);
    symlink(&library, dir.path().join("libcuda.so.1")).unwrap();
    let log = dir.path().join("log");
    let out = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("LD_LIBRARY_PATH", dir.path())
        .env("STANDIN_LOG", &log)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let (printed, errors) = (
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr),
    );
    let calls = fs::read_to_string(&log).unwrap_or_default();
    assert!(
        out.status.success() && printed.contains("1 passed"),
        "the child of {test} ended with {}:\n{printed}\n{errors}\n{calls}",
        out.status
    );
    Some(Log(calls.lines().map(str::to_owned).collect()))
}

fn compile(source: &str, library: &Path, flags: &[&str]) {
    let out = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-ffp-contract=off"])
        .args(flags)
        .arg("-o")
        .arg(library)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
        .output()
        .expect("a C compiler, `cc`");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

impl Log {
    /// The first words of the calls, those of `names` alone.
    pub(in crate::device::cuda) fn calls(&self, names: &[&str]) -> Vec<&str> {
        let firsts = self.0.iter().filter_map(|l| l.split(' ').next());
        firsts.filter(|name| names.contains(name)).collect()
    }

    /// As [`Log::calls`], whole lines.
    pub(in crate::device::cuda) fn all(&self, names: &[&str]) -> Vec<&str> {
        let lines = self.0.iter().map(String::as_str);
        lines
            .filter(|l| {
                l.split(' ')
                    .next()
                    .is_some_and(|name| names.contains(&name))
            })
            .collect()
    }

    /// The calls of one name that were done.
    pub(in crate::device::cuda) fn lines(&self, name: &str) -> Vec<&str> {
        let lines = self.0.iter().map(String::as_str);
        lines
            .filter(|l| l.split(' ').next() == Some(name) && !l.contains(" answers "))
            .collect()
    }

    /// Where the first line that begins so stands.
    pub(in crate::device::cuda) fn position(&self, begin: &str) -> usize {
        self.0
            .iter()
            .position(|l| l.starts_with(begin))
            .unwrap_or_else(|| panic!("no `{begin}` in:\n{}", self.0.join("\n")))
    }

    /// What was made is gone, once each, the pinned ring before its context, and the
    /// thread's own context is as it was.
    pub(in crate::device::cuda) fn is_balanced(&self) {
        let second = |line: &&str| line.split(' ').nth(1).unwrap_or_default().to_owned();
        for (made, gone) in [
            ("cuStreamCreate", "cuStreamDestroy_v2"),
            ("cuEventCreate", "cuEventDestroy_v2"),
            ("cuMemAlloc_v2", "cuMemFree_v2"),
            ("cuMemHostAlloc", "cuMemFreeHost"),
            ("cuMemHostRegister_v2", "cuMemHostUnregister"),
            ("cuModuleLoadData", "cuModuleUnload"),
        ] {
            // Addresses come again.
            let mut made_ones: Vec<String> = self.lines(made).iter().map(second).collect();
            let mut gone_ones: Vec<String> = self.lines(gone).iter().map(second).collect();
            made_ones.sort();
            gone_ones.sort();
            assert_eq!(
                made_ones,
                gone_ones,
                "{made}, {gone}:\n{}",
                self.0.join("\n")
            );
        }
        let retained = self.lines("cuDevicePrimaryCtxRetain").len();
        let released = self.lines("cuDevicePrimaryCtxRelease_v2");
        assert_eq!(retained, released.len(), "{}", self.0.join("\n"));
        for line in released {
            assert!(line.ends_with("0 left current"), "{line}");
        }
    }
}

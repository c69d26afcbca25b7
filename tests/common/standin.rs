//! The stand-in for the NVIDIA driver (`tests/standin_cuda/cuda.c`): compiled, in front
//! of `featherload`, or of a test that runs once more in a child process.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{FEATHERLOAD, processes};

/// A run that takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);
/// Of the name of the test that runs in a child.
const CHILD: &str = "FEATHERLOAD_TEST_STANDIN";

/// A folder with the stand-in and its log.
pub struct Standin {
    dir: tempfile::TempDir,
}

impl Standin {
    pub fn new() -> Self {
        Self::compiled(&[])
    }

    /// With flags for the compiler.
    pub fn compiled(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libcuda.so");
        compile("tests/standin_cuda/cuda.c", &library, flags);
        symlink(&library, dir.path().join("libcuda.so.1")).unwrap();
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// Lines of the log that begin with this call.
    pub fn calls(&self, name: &str) -> Vec<String> {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let of = log.lines().filter(|l| l.split(' ').next() == Some(name));
        of.map(str::to_owned).collect()
    }

    /// Calls that were made for what had gone with its context.
    pub fn stale_calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let of = log.lines().filter(|l| l.ends_with("of what is gone"));
        of.map(str::to_owned).collect()
    }

    /// `featherload` with these arguments and variables, and how long it took. It ends,
    /// and none of its processes is left behind.
    pub fn run(&self, args: &[&str], environment: &[(&str, &str)]) -> (Output, Duration) {
        let mut command = Command::new(FEATHERLOAD);
        command
            .args(args)
            .env_remove("FEATHERLOAD_HELPER")
            .env_remove("FEATHERLOAD_CPU");
        self.ended(&mut command, environment)
    }

    /// The end of a process with the stand-in in front, and of all that it started.
    fn ended(&self, command: &mut Command, environment: &[(&str, &str)]) -> (Output, Duration) {
        let mark = processes::fresh_mark();
        let began = Instant::now();
        let child = command
            .env_remove("CUDA_VISIBLE_DEVICES")
            .env(processes::MARK, &mark)
            .env("LD_LIBRARY_PATH", self.path())
            .env("STANDIN_LOG", self.log())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(out) = ended.recv_timeout(HANGS) else {
            processes::send(pid, nix::sys::signal::Signal::SIGKILL);
            panic!("{command:?} did not end within {HANGS:?}: {environment:?}");
        };
        let took = began.elapsed();
        let left = processes::wait_gone(&mark, Duration::from_secs(2));
        assert!(left.is_ok(), "{environment:?} left {left:?}");
        (out.unwrap(), took)
    }
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
    assert!(out.status.success(), "{out:?}");
}

/// In the test's own process: runs it in a child with the stand-in in front, and gives
/// the stand-in and what the child said on stderr. In the child: runs `body`, with the
/// stand-in's folder; a file `reset` there resets the device's context.
pub fn with_standin(
    test: &str,
    environment: &[(&str, &str)],
    body: impl FnOnce(&Path),
) -> Option<(Standin, String)> {
    if env::var_os(CHILD).is_some_and(|name| name == test) {
        body(Path::new(&env::var_os("STANDIN_DIR").unwrap()));
        return None;
    }
    let standin = Standin::new();
    let dir = standin.path().to_str().unwrap().to_owned();
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .env("STANDIN_RESET_FILE", standin.path().join("reset"))
        .env("STANDIN_DIR", &dir);
    let (out, _) = standin.ended(&mut command, environment);
    let (printed, errors) = (
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    );
    assert!(
        out.status.success() && printed.contains("1 passed"),
        "the child of {test} ended with {}:\n{printed}\n{errors}",
        out.status
    );
    Some((standin, errors))
}

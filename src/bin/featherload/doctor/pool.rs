//! Starts a real pool: the helper, the handshake, a worker, one image. Also checks whether the
//! memory of its processes can be read.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use featherload::measure::ProcessUsage;
use featherload::{Error, Loader, Result, SandboxStatus, Source};

use super::finding::DoctorFinding;
use crate::demo;

const POOL: &str = "a pool starts and delivers batches";
const MEMORY: &str = "reports show the memory of the processes of a run";

pub fn findings() -> Vec<DoctorFinding> {
    let mut findings = vec![helper()];
    match start() {
        Ok(started) => {
            findings.push(DoctorFinding::ok(
                "pool",
                format!(
                    "{:.0} ms to the first batch of 1, {:.0} ms with its end",
                    started.first_batch_ms, started.all_ms
                ),
                "the helper has this version, and a worker decoded an image into the ring",
            ));
            findings.push(memory_of_workers(&started.usage));
            findings.extend(sandbox(started.sandboxed));
        }
        Err(e) => findings.push(
            DoctorFinding::missing(
                "pool",
                e.to_string(),
                "no run with workers. --num-workers 0 decodes in one process",
            )
            .breaks(POOL),
        ),
    }
    findings.extend(process_files());
    findings
}

struct Started {
    first_batch_ms: f64,
    all_ms: f64,
    /// Memory of the coordinator and the worker.
    usage: Vec<Result<ProcessUsage>>,
    sandboxed: SandboxStatus,
}

fn start() -> Result<Started> {
    let dir = tempfile::tempdir().map_err(|e| {
        Error::io(
            "make a folder for the test image (TMPDIR names another place)",
            e,
        )
    })?;
    let path = dir.path().join("one.jpg");
    let jpeg = demo::one_photo().map_err(|e| Error::io_at("encode", &path, e))?;
    fs::write(&path, jpeg).map_err(|e| Error::io_at("write", &path, e))?;
    let source = Source::detect(dir.path())?;

    let began = Instant::now();
    let ms = || began.elapsed().as_secs_f64() * 1e3;
    let mut loader = Loader::builder(source)
        .num_workers(1)
        .batch_size(1)
        .epochs(1)
        .build()?;
    let batch = loader.epoch().next().transpose()?;
    let first_batch_ms = ms();
    if batch.is_none_or(|b| b.len() != 1) {
        return Err(Error::worker("the pool delivered no image"));
    }
    let report = loader.report()?;
    let usage = report
        .coordinator
        .into_iter()
        .chain(report.workers.iter().copied())
        .map(ProcessUsage::read)
        .collect();
    drop(loader);
    Ok(Started {
        sandboxed: report.sandboxed,
        first_batch_ms,
        all_ms: ms(),
        usage,
    })
}

/// The sandbox of the pool's worker.
fn sandbox(kept: SandboxStatus) -> [DoctorFinding; 2] {
    let possible = SandboxStatus::possible();
    let part = |name, (works, possible), what: &str, fix: &str| {
        // The kernel's answer decides which advice would help.
        let fix = match possible {
            true => {
                "this kernel supports it, so a limit of this process or a container blocks it: \
                 `bench --sandbox require` prints which"
            }
            false => fix,
        };
        match works {
            true => DoctorFinding::ok(name, "works", what),
            false => {
                DoctorFinding::limited(name, "refused", format!("not enforced ({what}): {fix}"))
            }
        }
    };
    [
        part(
            "sandbox: calls",
            (kept.calls, possible.calls),
            "workers make no system call but those of a short list",
            "a container's profile may refuse seccomp(2)",
        ),
        part(
            "sandbox: files",
            (kept.files, possible.files),
            "workers open no file but those of the data set",
            "Landlock needs Linux 5.13, `landlock` in lsm= on the kernel's command line, and a \
             container's profile that lets it through",
        ),
    ]
}

fn helper() -> DoctorFinding {
    let name = "helper";
    let (path, meaning) = match env::var_os("FEATHERLOAD_HELPER").map(PathBuf::from) {
        Some(path) => (path, "named by FEATHERLOAD_HELPER"),
        None => (
            env::current_exe().unwrap_or_default(),
            "this executable; a program with `featherload::init();` as the first line of main is \
             its own helper, others find it beside their executable, on PATH, or by \
             FEATHERLOAD_HELPER",
        ),
    };
    let value = path.display().to_string();
    match fs::metadata(&path) {
        Ok(_) => DoctorFinding::ok(name, value, meaning),
        Err(e) => DoctorFinding::missing(name, value, format!("{meaning}: {e}")).breaks(POOL),
    }
}

fn memory_of_workers(usage: &[Result<ProcessUsage>]) -> DoctorFinding {
    let name = "memory of workers";
    let refused = usage.iter().find_map(|u| u.as_ref().err());
    let shares: Option<u64> = usage
        .iter()
        .map(|u| u.as_ref().ok().map(|u| u.memory.pss_bytes))
        .sum();
    match (refused, shares) {
        (None, Some(pss)) if pss > 0 => DoctorFinding::ok(
            name,
            format!("{:.1} MiB PSS", crate::output::mib(pss)),
            "smaps_rollup of a coordinator and a worker can be read",
        ),
        (Some(e), _) => DoctorFinding::missing(
            name,
            e.to_string(),
            "smaps_rollup (Linux 4.14) of other processes cannot be read: bench leaves them out",
        )
        .breaks(MEMORY),
        _ => DoctorFinding::missing(name, "0 MiB PSS", "smaps_rollup exists but reports 0 bytes")
            .breaks(MEMORY),
    }
}

/// What may hide processes. Reading memory was tried above.
fn process_files() -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if let Err(e) = fs::read_dir("/proc/self/task") {
        let finding = DoctorFinding::missing(
            "/proc",
            e.to_string(),
            "is not mounted, and a process that forks reads its threads there: mount it, or use \
             --num-workers 0",
        );
        findings.push(finding.breaks(POOL));
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let hidden = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?, words.next()?))
        })
        .filter(|(place, kind, _)| *place == "/proc" && *kind == "proc")
        .find_map(|(_, _, options)| {
            let hidepid = |o: &&str| o.starts_with("hidepid=") && *o != "hidepid=0";
            options.split(',').find(hidepid).map(str::to_owned)
        });
    if let Some(hidden) = hidden {
        findings.push(DoctorFinding::ok(
            "/proc",
            hidden,
            "other users' processes are hidden; a run has no such processes",
        ));
    }
    findings
}

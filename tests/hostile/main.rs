//! A worker whose decoder was taken over: whatever it tries, it is refused, the row at which
//! it was is named, and every other row of the run is what it would have been. This
//! executable is the helper too. No harness, as in `third_job`.

#[path = "../common/mod.rs"]
mod common;
mod job;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use common::processes::{children, wait_for};
use featherload::error::Result;
use featherload::internals::{
    BatchRequest, FilledBatch, JobRequest, RingShape, WorkerOptions, init_with,
};
use featherload::{Sandbox, SandboxStatus};
use job::{Act, KIND, KINDS, Spec};

const TESTS: [(&str, fn()); 4] = [
    ("whatever_a_worker_tries_is_refused_and_named", refused),
    ("what_is_refused_goes_through_without_the_sandbox", open),
    ("a_row_that_is_given_back_for_ever_ends_the_run", no_end),
    ("a_link_that_is_made_later_leads_nowhere", later_link),
];

const ROWS: u32 = 8;
const BATCHES: u64 = 3;
const AT: (u64, u32) = (1, 3);

/// Each act, and a word of its error text.
const ACTS: [(Act, &str); 27] = [
    (Act::ReadOutside, "Permission denied"),
    (Act::ReadThroughLink, "Permission denied"),
    (Act::ReadMemoryOfConsumer, "Permission denied"),
    (Act::WriteInside, "openat to write"),
    (Act::MakeFile, "openat to write"),
    (Act::Unlink, "system call"),
    (Act::Connect, "(socket)"),
    (Act::Execve, "(execve)"),
    (Act::Fork, "(clone)"),
    (Act::Thread, "system call"),
    (Act::Ptrace, "(ptrace)"),
    (Act::WriteMemoryOfConsumer, "(process_vm_writev)"),
    (Act::KillConsumer, "(kill)"),
    (Act::AbortConsumer, "(tgkill)"),
    (Act::WriteTicket, "SIGSEGV"),
    (Act::WriteRecordOfAnotherLane, "SIGSEGV"),
    (Act::UnprotectTickets, "(mprotect)"),
    (Act::LengthenRing, "(mremap of shared memory)"),
    (Act::MapExecutable, "mmap of shared or executable memory"),
    (Act::MapSharedToWrite, "mmap of shared or executable memory"),
    (Act::RemoveRing, "(madvise)"),
    (Act::FillMemory, "MiB: mmap: Cannot allocate memory"),
    (Act::FillSharedMemory, "mmap of shared or executable memory"),
    (
        Act::FillReadOnlyMemory,
        "mmap of shared or executable memory",
    ),
    (Act::RaiseOwnLimits, "system call"),
    (Act::ForgetHandler, "(rt_sigaction)"),
    (Act::ReadInside, ""),
];

/// The result of a run: whether all other rows were right, and the fault of the hostile one.
struct RunOutcome {
    others_right: bool,
    fault: Option<String>,
}

/// A folder `data` with `sample` and `link`, which leads to `outside`.
fn scene() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    for file in ["data/sample", "outside"] {
        fs::write(dir.path().join(file), file).unwrap();
    }
    std::os::unix::fs::symlink("../outside", dir.path().join("data/link")).unwrap();
    dir
}

fn run(act: Act, dir: &Path, sandbox: Sandbox) -> RunOutcome {
    try_run(act, dir, sandbox).unwrap()
}

fn try_run(act: Act, dir: &Path, sandbox: Sandbox) -> Result<RunOutcome> {
    let options = WorkerOptions {
        workers: Some(2),
        helper: Some(std::env::current_exe().unwrap()),
        sandbox,
        row_limit: Duration::from_secs(2),
        ..WorkerOptions::default()
    };
    let shape = RingShape {
        slots: 2,
        rows: ROWS,
        slot_bytes: u64::from(ROWS) * Spec::BYTES as u64,
        lanes: 2,
    };
    let spec = Spec {
        act,
        at: AT,
        rows: ROWS,
        consumer: std::process::id() as i32,
        data: dir.join("data"),
        outside: dir.join("outside"),
        // Tickets lie behind 4 cache lines, then come two pages, a record each.
        ticket: 256,
        record: 4096,
        // Behind 64 records, a cache line of all slots, and one of this slot. Words of rows,
        // of which there are 8, are followed by a record of 256 bytes for each.
        row_word: 4096 + 64 * 4096 + 64 + 64,
        slot_bytes: 64 + 8 * ROWS as usize + 256 * ROWS as usize,
        slots: 2,
    };
    let place = |batch| BatchRequest::numbered(batch, ROWS);
    let order = JobRequest::new(KIND.name, &spec, 0, Vec::new()).unwrap();
    let order = order.reading(&spec);
    let ready = options.launch(KINDS).unwrap();
    let too_large = |needed, free| format!("{needed} bytes of {free}");
    let mut filler = ready.start(&order, shape, place(0), too_large).unwrap();
    let mut output = RunOutcome {
        others_right: true,
        fault: None,
    };
    for batch in 0..BATCHES {
        let upcoming = |n| (batch + n as u64 <= BATCHES).then(|| place(batch + n as u64));
        let FilledBatch { rows, bad, .. } = filler.next(&upcoming)?;
        for row in 0..ROWS {
            let begin = row as usize * Spec::BYTES;
            let right = rows.bytes()[begin..][..Spec::BYTES] == Spec::row((batch, row));
            if (batch, row) != AT {
                output.others_right &= right && bad.iter().all(|b| b.row != row);
            } else if let Some(bad) = bad.iter().find(|b| b.row == row) {
                output.fault = Some(bad.fault.reason.clone());
            } else {
                assert!(right, "{act:?}: a row that did not fail is whole");
            }
        }
    }
    Ok(output)
}

/// False, and says so, where the kernel cannot do all of it.
fn can_be_tried() -> bool {
    let possible = SandboxStatus::possible();
    let all = possible.calls && possible.files;
    if !all {
        println!("SKIP: this system keeps workers from: {}", possible.text());
    }
    all
}

fn refused() {
    if !can_be_tried() {
        return;
    }
    for (act, word) in ACTS {
        let dir = scene();
        let output = run(act, dir.path(), Sandbox::Require);
        assert!(output.others_right, "{act:?}");
        let message = output.fault.unwrap_or_default();
        assert_eq!(message.is_empty(), word.is_empty(), "{act:?}: {message}");
        assert!(message.contains(word), "{act:?}: {message}");
        let data = dir.path().join("data");
        assert_eq!(fs::read(data.join("sample")).unwrap(), b"data/sample");
        assert!(!data.join("made").exists());
        let me = std::process::id() as i32;
        let gone = || children(me).is_empty().then_some(());
        assert!(wait_for(Duration::from_secs(5), gone).is_some(), "{act:?}");
    }
}

/// That the acts are what they are called.
fn open() {
    for act in [
        Act::ReadOutside,
        Act::ReadThroughLink,
        Act::WriteInside,
        Act::MakeFile,
        Act::Unlink,
        Act::Connect,
        Act::Fork,
        Act::Thread,
        Act::KillConsumer,
        Act::UnprotectTickets,
        Act::MapExecutable,
        Act::MapSharedToWrite,
        Act::FillSharedMemory,
        Act::FillReadOnlyMemory,
        Act::ForgetHandler,
    ] {
        let dir = scene();
        let output = run(act, dir.path(), Sandbox::Off);
        assert_eq!(output.fault, None, "{act:?}");
        assert!(output.others_right, "{act:?}");
    }
    // What no sandbox is needed for.
    for (act, word) in ACTS {
        if matches!(
            act,
            Act::WriteTicket | Act::WriteRecordOfAnotherLane | Act::FillMemory
        ) {
            let output = run(act, scene().path(), Sandbox::Off);
            let message = output.fault.unwrap_or_default();
            assert!(
                output.others_right && message.contains(word),
                "{act:?}: {message}"
            );
        }
    }
}

/// Nobody waits longer than the limit of a row, and what it takes to find out: 14 s here.
fn no_end() {
    for (act, word) in [
        (Act::NeverAgain, "no row was finished"),
        (Act::GiveBackForEver, "no row was finished"),
        // By the coordinator, or by the consumer where it waits for that batch.
        (Act::ClaimWhatNobodyAsksFor, "by a faulty decoder"),
    ] {
        let ended = try_run(act, scene().path(), Sandbox::Auto);
        let why = ended.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(why.contains(word), "{act:?}: {why}");
        let me = std::process::id() as i32;
        let gone = || children(me).is_empty().then_some(());
        assert!(wait_for(Duration::from_secs(5), gone).is_some(), "{act:?}");
    }
}

/// Links that were there when the data set was read are followed; see
/// `data/index/sandbox_roots.rs`.
fn later_link() {
    if !can_be_tried() {
        return;
    }
    let dir = scene();
    let data = dir.path().join("data");
    for (name, picture) in [("0.jpg", 1), ("1.jpg", 2)] {
        fs::write(
            data.join(name),
            common::Picture::rgb(40, 30, picture).encode(),
        )
        .unwrap();
    }
    let far = dir.path().join("far");
    fs::create_dir(&far).unwrap();
    fs::rename(data.join("1.jpg"), far.join("1.jpg")).unwrap();
    std::os::unix::fs::symlink("../far/1.jpg", data.join("1.jpg")).unwrap();
    let elsewhere = dir.path().join("elsewhere.jpg");
    fs::copy(far.join("1.jpg"), &elsewhere).unwrap();

    let mut loader = featherload::Loader::builder(featherload::Source::detect(&data).unwrap())
        .recipe(featherload::Recipe::eval224())
        .batch_size(2)
        .num_workers(1)
        .depth(1)
        .on_error(featherload::OnError::Skip)
        .sandbox(Sandbox::Require)
        .helper(common::FEATHERLOAD)
        .build()
        .unwrap();
    let mut faults = || -> Vec<String> {
        let mut all = Vec::new();
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            all.extend(batch.faults().iter().map(|f| f.fault.reason.clone()));
        }
        all
    };
    assert_eq!(
        faults(),
        Vec::<String>::new(),
        "links of the data set lead on"
    );
    fs::remove_file(data.join("1.jpg")).unwrap();
    std::os::unix::fs::symlink("../elsewhere.jpg", data.join("1.jpg")).unwrap();
    let message = faults();
    assert_eq!(message.len(), 1, "{message:?}");
    assert!(message[0].contains("option sandbox"), "{message:?}");
}

fn main() -> ExitCode {
    init_with(KINDS);
    common::harness::run(&TESTS)
}

//! What stands in the rows of bad samples under `skip` and `substitute`: the
//! same for any number of workers, through deaths, from any point on.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use featherload::Rank;
use featherload::index::FolderOptions;
use featherload::internals::DrillBuilder;
use featherload::{
    EpochTail, FaultKind, Index, Loader, LoaderBuilder, LoaderReport, OnError, RowFault, RowStatus,
    State,
};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use twox_hash::XxHash3_128;

use crate::common::hunt::{LIVENESS, hunt};
use crate::common::processes::send;
use crate::common::rows::{Row, assert_same, rows, stream, take};
use crate::common::{Picture, Random, builder, data, endless_picture, slow_picture};

/// Samples that may stand in for one.
const TRIES: usize = 8;

/// A data set that is clean at first: 30 pictures that stay good and those that
/// `spoil` spoils, with the index of both and the clean stream of three epochs.
struct Hostile {
    dir: tempfile::TempDir,
    index: PathBuf,
    clean: Vec<Row>,
    bad: BTreeSet<u64>,
}

/// What becomes of a picture at a path.
type Spoiler = Box<dyn Fn(&Path)>;

/// Every kind of file that gives no pixels, by name.
fn spoilers() -> Vec<(String, Spoiler)> {
    let replaced = |act: fn(&Path)| -> Spoiler {
        Box::new(move |path| {
            fs::remove_file(path).unwrap();
            act(path);
        })
    };
    let mut all: Vec<(String, Spoiler)> = (0..10u64)
        .map(|tenth| {
            let cut: Spoiler = Box::new(move |path| {
                let file = fs::OpenOptions::new().write(true).open(path).unwrap();
                file.set_len(file.metadata().unwrap().len() * tenth / 10)
                    .unwrap();
            });
            (format!("cut{tenth}"), cut)
        })
        .collect();
    all.push((
        "text".into(),
        replaced(|path| fs::write(path, "no picture, but a text\n".repeat(20)).unwrap()),
    ));
    all.push((
        "fifo".into(),
        replaced(|path| nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap()),
    ));
    all.push((
        "dangling".into(),
        replaced(|path| symlink("nowhere", path).unwrap()),
    ));
    all.push((
        "directory".into(),
        replaced(|path| fs::create_dir(path).unwrap()),
    ));
    all.push(("removed".into(), replaced(|_| {})));
    if nix::unistd::geteuid().is_root() {
        println!("LEFT OUT: a file of mode 000, which root can read");
    } else {
        all.push((
            "locked".into(),
            Box::new(|path| {
                fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
            }),
        ));
    }
    all
}

impl Hostile {
    /// With every spoiler's file spoilt.
    fn new() -> Self {
        Self::with(spoilers())
    }

    fn with(spoilers: Vec<(String, Spoiler)>) -> Self {
        let dir = data(3, 10);
        let mut random = Random(99);
        let path = |i: usize, name: &str| dir.path().join(format!("class{}/{name}.jpg", i % 3));
        for (i, (name, _)) in spoilers.iter().enumerate() {
            let picture = Picture::rgb(100 + i as u16, 120, random.next()).encode();
            fs::write(path(i, name), picture).unwrap();
        }
        let (index, _) = Index::folder(dir.path(), &FolderOptions::default()).unwrap();
        let saved = tempfile::NamedTempFile::new_in(dir.path()).unwrap();
        let saved = saved.into_temp_path().keep().unwrap();
        index.save(&saved).unwrap();
        let mut this = Self {
            index: saved,
            clean: Vec::new(),
            bad: BTreeSet::new(),
            dir,
        };
        this.clean = stream(&mut this.builder().num_workers(0).build().unwrap(), 3);
        for (i, (name, spoil)) in spoilers.iter().enumerate() {
            let path = this.dir.path().join(format!("class{}/{name}.jpg", i % 3));
            spoil(&path);
            let id = (0..index.len()).find(|id| index.path(*id) == path);
            this.bad.insert(id.unwrap());
        }
        this
    }

    fn builder(&self) -> LoaderBuilder {
        Loader::builder(Index::load(&self.index).unwrap())
            .helper(crate::common::FEATHERLOAD)
            .batch_size(8)
            .seed(11)
    }

    fn epoch(&self, epoch: u64) -> Vec<Row> {
        let of = |r: &&Row| r.epoch == epoch;
        self.clean.iter().filter(of).copied().collect()
    }

    /// What `substitute` must give in epochs 0 to `epochs - 1`.
    fn substituted(&self, epochs: u64) -> Vec<Row> {
        (0..epochs)
            .flat_map(|e| {
                let clean = self.epoch(e);
                substituted(&clean, &clean, &self.bad, |row| row)
            })
            .collect()
    }
}

/// A row without pixels of the default recipe: 3 x 224 x 224 as f16.
fn masked() -> u128 {
    XxHash3_128::oneshot(&vec![0; 3 * 224 * 224 * 2])
}

/// The rule, written down once more: the row whose sample is bad takes what
/// stands in the clean epoch at one of the next 8 positions. `positions` is the
/// clean epoch of a process alone, so that row n is position n; `own` are the
/// rows of the process at hand and `position` says where they stand.
fn substituted(
    own: &[Row],
    positions: &[Row],
    bad: &BTreeSet<u64>,
    position: impl Fn(usize) -> usize,
) -> Vec<Row> {
    let n = positions.len();
    own.iter()
        .enumerate()
        .map(|(i, row)| {
            if row.status == RowStatus::Padding || !bad.contains(&row.id) {
                return *row;
            }
            let behind = (1..n.min(TRIES + 1)).map(|k| &positions[(position(i) + k) % n]);
            match { behind }.find(|r| !bad.contains(&r.id)) {
                Some(r) => Row {
                    id: r.id,
                    label: r.label,
                    pixels: r.pixels,
                    status: RowStatus::Substituted,
                    ..*row
                },
                None => Row {
                    status: RowStatus::Failed,
                    label: -1,
                    pixels: masked(),
                    ..*row
                },
            }
        })
        .collect()
}

/// Rows and faults from where the loader stands to the end of epoch `epochs - 1`;
/// what a batch says about its faults must agree with its rows.
fn run(loader: &mut Loader, epochs: u64) -> (Vec<Row>, Vec<(Row, RowFault)>) {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    while loader.state().epoch < epochs {
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            let rows = rows(&batch);
            for fault in batch.faults() {
                let row = rows[fault.row];
                assert!(!fault.fault.reason.is_empty());
                match fault.substitute {
                    Some(id) => {
                        assert_eq!((row.status, row.id), (RowStatus::Substituted, id));
                        assert_ne!(id, fault.id);
                    }
                    None => {
                        assert_eq!((row.status, row.id), (RowStatus::Failed, fault.id));
                        assert_eq!(row.pixels, masked());
                    }
                }
                faults.push((row, fault.clone()));
            }
            let bad = rows
                .iter()
                .filter(|r| matches!(r.status, RowStatus::Failed | RowStatus::Substituted));
            assert_eq!(bad.count(), batch.faults().len());
            all.extend(rows);
        }
    }
    (all, faults)
}

/// Each bad sample is named once an epoch, with its path.
fn assert_named(hostile: &Hostile, faults: &[(Row, RowFault)], epochs: u64) {
    let index = Index::load(&hostile.index).unwrap();
    for epoch in 0..epochs {
        let of = faults.iter().filter(|(row, _)| row.epoch == epoch);
        let mut named: Vec<u64> = of.clone().map(|(_, f)| f.id).collect();
        named.sort_unstable();
        assert_eq!(named, hostile.bad.iter().copied().collect::<Vec<_>>());
        assert!({ of }.all(|(_, f)| f.path == index.path(f.id)));
    }
}

#[test]
fn under_skip_the_good_rows_are_those_of_a_clean_run() {
    let hostile = Hostile::new();
    let want: Vec<Row> = hostile
        .clean
        .iter()
        .map(|row| match hostile.bad.contains(&row.id) {
            false => *row,
            true => Row {
                status: RowStatus::Failed,
                label: -1,
                pixels: masked(),
                ..*row
            },
        })
        .collect();
    for workers in [0, 1, 2, 8] {
        let mut loader = hostile
            .builder()
            .num_workers(workers)
            .on_error(OnError::Skip)
            .build()
            .unwrap();
        let (got, faults) = run(&mut loader, 3);
        assert_same(&got, &want, &format!("{workers} workers"));
        assert_named(&hostile, &faults, 3);
        assert!(faults.iter().all(|(_, f)| f.substitute.is_none()));
        assert_eq!(loader.report().unwrap().worker_deaths, 0);
    }
}

#[test]
fn under_substitute_a_row_takes_what_stands_behind_it() {
    let hostile = Hostile::new();
    let want = hostile.substituted(3);
    assert!(want.iter().any(|r| r.status == RowStatus::Substituted));
    for workers in [0, 1, 2, 8] {
        let mut loader = hostile
            .builder()
            .num_workers(workers)
            .on_error(OnError::Substitute)
            .build()
            .unwrap();
        let (got, faults) = run(&mut loader, 3);
        assert_same(&got, &want, &format!("{workers} workers"));
        assert_named(&hostile, &faults, 3);
        assert_eq!(loader.report().unwrap().worker_deaths, 0);
    }
}

#[test]
fn substitutes_stay_the_same_while_workers_are_killed() {
    let hostile = Hostile::new();
    let mut loader = hostile
        .builder()
        .num_workers(3)
        .epochs(60)
        .on_error(OnError::Substitute)
        .kill_workers_every(Duration::from_millis(3))
        .build()
        .unwrap();
    let want = hostile.substituted(3);
    let mut rounds = 0;
    loop {
        // The same three epochs, until enough workers have died in them.
        loader.set_epoch(0);
        let (got, faults) = run(&mut loader, 3);
        assert_same(&got, &want, "kills by order");
        assert_named(&hostile, &faults, 3);
        let report = loader.report().unwrap();
        assert_eq!(report.worker_deaths, report.ordered_deaths, "{report:?}");
        rounds += 1;
        if report.worker_deaths >= 30 || rounds == 20 {
            assert!(report.worker_deaths > 0, "{report:?}");
            break;
        }
    }
}

#[test]
fn a_state_in_the_midst_of_bad_rows_goes_on_with_the_same() {
    let hostile = Hostile::new();
    for (policy, want) in [
        (OnError::Substitute, hostile.substituted(2)),
        (OnError::Skip, {
            let builder = hostile.builder().num_workers(0).on_error(OnError::Skip);
            run(&mut builder.build().unwrap(), 2).0
        }),
    ] {
        for (batches, before, after) in [(1, 0, 2), (3, 2, 1), (7, 1, 0)] {
            let make = |workers| hostile.builder().num_workers(workers).on_error(policy);
            let mut loader = make(before).build().unwrap();
            let (mut got, state) = take(&mut loader, batches);
            drop(loader);
            let text = serde_json::to_string(&state).unwrap();
            let state: State = serde_json::from_str(&text).unwrap();
            let mut loader = make(after).resume(state).build().unwrap();
            got.extend(run(&mut loader, 2).0);
            assert_same(&got, &want, &format!("{policy:?} behind {batches} batches"));
        }
    }
}

#[test]
fn a_run_that_stopped_at_a_bad_sample_goes_on_under_substitute() {
    let hostile = Hostile::new();
    let want = hostile.substituted(1);
    for workers in [0, 2] {
        let mut loader = hostile.builder().num_workers(workers).build().unwrap();
        let mut got = Vec::new();
        for batch in loader.epoch() {
            match batch {
                Ok(batch) => got.extend(rows(&batch)),
                Err(e) => assert!(e.is_sample(), "{e}"),
            }
        }
        let state = loader.state();
        assert_eq!(state.samples, got.len() as u64);
        drop(loader);
        let make = hostile.builder().num_workers(workers).resume(state);
        let mut loader = make.on_error(OnError::Substitute).build().unwrap();
        got.extend(run(&mut loader, 1).0);
        assert_same(&got, &want, &format!("{workers} workers"));
    }
}

/// Ranks have no row at some of the positions that their rows take pixels from,
/// and repeated rows stand behind the end.
#[test]
fn ranks_and_padded_batches_take_the_next_positions_of_the_whole_epoch() {
    let hostile = Hostile::new();
    let alone = hostile.epoch(0);
    let mut bad_repeats = 0;
    for (world, tail) in [
        (2, EpochTail::Pad),
        (4, EpochTail::Short),
        (7, EpochTail::Pad),
        (31, EpochTail::Pad),
    ] {
        for rank in 0..world {
            let make = || hostile.builder().rank(Rank::new(rank, world)).tail(tail);
            // Attempt 0 as a clean run of this rank has it: its repeated rows
            // have random parameters of their own.
            let skip = make().num_workers(0).on_error(OnError::Skip);
            let (skipped, _) = run(&mut skip.build().unwrap(), 1);
            let position = |i| i * world as usize + rank as usize;
            let want = substituted(&skipped, &alone, &hostile.bad, position);
            // A bad repeat has lost its status, not that it is one.
            for (i, row) in want.iter().enumerate() {
                let repeat = position(i) >= alone.len() && row.status != RowStatus::Padding;
                assert_eq!(row.repeated, repeat, "{row:?}");
                bad_repeats += usize::from(repeat && row.status != RowStatus::Repeated);
            }
            for workers in [0, 2] {
                let builder = make().num_workers(workers).on_error(OnError::Substitute);
                let (got, _) = run(&mut builder.build().unwrap(), 1);
                assert_same(&got, &want, &format!("rank {rank} of {world}"));
            }
        }
    }
    assert!(bad_repeats > 0);
}

/// `n` pictures in a flat folder, in order; those in `bad` are empty.
fn flat(n: usize, bad: &[usize]) -> (tempfile::TempDir, Vec<Row>, BTreeSet<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let path = |i: usize| dir.path().join(format!("{i:02}.jpg"));
    for i in 0..n {
        fs::write(path(i), Picture::rgb(90, 80, i as u64).encode()).unwrap();
    }
    let make = builder(dir.path()).num_workers(0).shuffle(false);
    let clean = stream(&mut make.build().unwrap(), 1);
    for i in bad {
        fs::write(path(*i), b"").unwrap();
    }
    (dir, clean, bad.iter().map(|i| *i as u64).collect())
}

#[test]
fn nine_bad_samples_in_a_row_mask_the_first_of_them() {
    // In the midst, and over the epoch's end: of 20, 15 to 19 and 0 to 3.
    for bad in [
        (4..13).collect::<Vec<_>>(),
        (15..20).chain(0..4).collect::<Vec<_>>(),
    ] {
        let (dir, clean, ids) = flat(20, &bad);
        let want = substituted(&clean, &clean, &ids, |row| row);
        let failed = |rows: &[Row]| {
            let rows = rows.iter().filter(|r| r.status == RowStatus::Failed);
            rows.map(|r| r.id).collect::<Vec<_>>()
        };
        assert_eq!(failed(&want), [bad[0] as u64]);
        for workers in [0, 1, 2] {
            let mut loader = builder(dir.path())
                .num_workers(workers)
                .shuffle(false)
                .on_error(OnError::Substitute)
                .build()
                .unwrap();
            let (got, faults) = run(&mut loader, 1);
            assert_same(&got, &want, &format!("{workers} workers"));
            assert_eq!(faults.len(), 9);
            for (row, fault) in faults {
                let fault = fault.fault;
                assert_eq!(fault.kind, FaultKind::Truncated);
                let all = fault.reason.contains("; its 8 substitutes failed too");
                assert_eq!(all, row.status == RowStatus::Failed, "{fault}");
            }
        }
    }
}

#[test]
fn a_data_set_without_a_good_sample_is_masked_to_its_end() {
    for n in [1, 2, 5, 30] {
        let (dir, clean, ids) = flat(n, &(0..n).collect::<Vec<_>>());
        let want = substituted(&clean, &clean, &ids, |row| row);
        assert!(want.iter().all(|r| r.status == RowStatus::Failed));
        for workers in [0, 2] {
            let mut loader = builder(dir.path())
                .num_workers(workers)
                .shuffle(false)
                .on_error(OnError::Substitute)
                .build()
                .unwrap();
            let (got, faults) = run(&mut loader, 1);
            assert_same(&got, &want, &format!("{n} samples, {workers} workers"));
            let behind = format!("; its {} substitutes failed too", TRIES.min(n - 1));
            for (_, f) in &faults {
                let message = f.fault.reason.contains(&behind);
                assert_eq!(message, n > 1, "{}", f.fault);
            }
            assert_eq!(faults.len(), n);
        }
    }
}

#[test]
fn files_that_are_removed_or_cut_in_the_midst_of_a_run_are_substituted_from_then_on() {
    for workers in [0, 2] {
        let mut hostile = Hostile::with(Vec::new());
        let before = hostile.substituted(1);
        let mut loader = hostile
            .builder()
            .num_workers(workers)
            .on_error(OnError::Substitute)
            .build()
            .unwrap();
        let mut got = Vec::new();
        let mut epoch = loader.epoch();
        got.extend(rows(&epoch.next().unwrap().unwrap()));
        let index = Index::load(&hostile.index).unwrap();
        for id in [3, 4, 17] {
            fs::remove_file(index.path(id)).unwrap();
            hostile.bad.insert(id);
        }
        for id in [8, 20] {
            let file = fs::OpenOptions::new().write(true).open(index.path(id));
            file.unwrap().set_len(40).unwrap();
            hostile.bad.insert(id);
        }
        for batch in epoch {
            got.extend(rows(&batch.unwrap()));
        }
        // Workers may have been ahead: a row is the one or the other.
        let after = hostile.substituted(3);
        assert_eq!(got.len(), before.len());
        for (i, row) in got.iter().enumerate() {
            assert!([before[i], after[i]].contains(row), "{row:?}");
        }
        let (got, _) = run(&mut loader, 3);
        assert_same(&got, &after[before.len()..], &format!("{workers} workers"));
    }
}

/// Slow pictures among good ones, in order, and who decodes them is worked on
/// for as long as the run lasts. What must not happen to the others is checked;
/// faults, how often somebody was caught, the report.
fn disturbed(
    workers: usize,
    row_limit: Duration,
    slow: &[usize],
    act: fn(i32, &Path),
) -> (Vec<RowFault>, u32, LoaderReport) {
    let (dir, _, _) = flat(20, &[]);
    let path = |i: usize| dir.path().join(format!("{i:02}.jpg"));
    for i in slow {
        fs::write(path(*i), slow_picture(5 + *i as u64)).unwrap();
    }
    let make = || builder(dir.path()).shuffle(false).seed(11);
    let clean = stream(&mut make().num_workers(0).build().unwrap(), 1);
    let ids = slow.iter().map(|i| *i as u64).collect();
    let want = substituted(&clean, &clean, &ids, |row| row);
    let mut loader = make()
        .num_workers(workers)
        .row_limit(row_limit)
        .on_error(OnError::Substitute)
        .build()
        .unwrap();
    let coordinator = loader.report().unwrap().coordinator.unwrap();
    let hunters: Vec<_> = slow
        .iter()
        .map(|i| {
            let path = path(*i);
            let file = path.clone();
            hunt(coordinator, &path, move |worker| {
                act(worker, &file);
                true
            })
        })
        .collect();
    let (got, faults) = run(&mut loader, 1);
    let report = loader.report().unwrap();
    let mut times = 0;
    for (stop, thread) in hunters {
        stop.store(true, Ordering::Release);
        times += thread.join().unwrap();
    }
    assert_same(&got, &want, "disturbed");
    let faults: Vec<RowFault> = faults.into_iter().map(|(_, f)| f).collect();
    let named: Vec<u64> = faults.iter().map(|f| f.id).collect();
    assert_eq!(named, ids.into_iter().collect::<Vec<_>>());
    (faults, times, report)
}

#[test]
fn a_sample_whose_workers_crash_makes_room_for_the_next() {
    fn crash(worker: i32, _: &Path) {
        send(worker, Signal::SIGSEGV);
        send(worker, Signal::SIGCONT);
    }
    for workers in [1, 2] {
        let (faults, times, report) = disturbed(workers, LIVENESS, &[6], crash);
        assert_eq!(faults[0].fault.kind, FaultKind::Quarantined);
        assert_eq!(faults[0].substitute, Some(7));
        assert_eq!((times, report.worker_deaths), (2, 2), "{report:?}");
        let message = |e: &&String| e.contains("the next sample is tried");
        assert_eq!(
            report.events.iter().filter(message).count(),
            1,
            "{report:?}"
        );
    }
}

/// More deaths in a row than end a pool that does not start: each attempt that
/// is given up is a step on.
#[test]
fn substitutes_that_crash_as_well_are_given_up_one_by_one() {
    fn crash(worker: i32, _: &Path) {
        send(worker, Signal::SIGSEGV);
        send(worker, Signal::SIGCONT);
    }
    let (faults, times, report) = disturbed(1, LIVENESS, &[5, 6, 7], crash);
    for fault in &faults {
        assert_eq!(fault.fault.kind, FaultKind::Quarantined);
        assert_eq!(fault.substitute, Some(8));
    }
    // Two for each attempt: three at the first row, two at the second, one.
    assert_eq!((times, report.worker_deaths), (12, 12), "{report:?}");
}

#[test]
fn a_decode_that_takes_too_long_makes_room_for_the_next_sample_and_the_one_behind() {
    let (dir, clean, _) = flat(20, &[]);
    let endless = endless_picture();
    for name in ["06.jpg", "07.jpg"] {
        fs::write(dir.path().join(name), &endless).unwrap();
    }
    let want = substituted(&clean, &clean, &BTreeSet::from([6, 7]), |row| row);
    // Long enough for any other row on a busy machine.
    let mut loader = builder(dir.path())
        .shuffle(false)
        .num_workers(2)
        .row_limit(Duration::from_secs(2))
        .on_error(OnError::Substitute)
        .build()
        .unwrap();
    let (got, faults) = run(&mut loader, 1);
    let report = loader.report().unwrap();
    assert_same(&got, &want, "two that take too long");
    assert_eq!(faults.len(), 2);
    for (_, fault) in &faults {
        assert_eq!(fault.fault.kind, FaultKind::TimedOut);
        assert!(fault.fault.reason.contains("2000 ms"), "{}", fault.fault);
        assert_eq!(fault.substitute, Some(8));
    }
    // The first row, its substitute, and the second row.
    assert!(report.worker_deaths >= 3, "{report:?}");
}

#[test]
fn a_sample_whose_workers_are_stopped_makes_room_after_five() {
    // Those who are caught stay stopped until they are killed.
    fn nothing(_: i32, _: &Path) {}
    let (faults, times, report) = disturbed(2, LIVENESS, &[6], nothing);
    assert_eq!(faults[0].fault.kind, FaultKind::Quarantined);
    assert!(
        faults[0].fault.reason.contains("(SIGSTOP)"),
        "{}",
        faults[0].fault
    );
    assert_eq!(faults[0].substitute, Some(7));
    assert_eq!((times, report.worker_deaths), (5, 5), "{report:?}");
}

#[test]
fn a_file_that_shrinks_while_it_is_decoded_makes_room_for_the_next() {
    fn shrink(worker: i32, path: &Path) {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(100).unwrap();
        send(worker, Signal::SIGCONT);
    }
    for workers in [1, 2] {
        let (faults, times, report) = disturbed(workers, LIVENESS, &[6], shrink);
        assert_eq!(faults[0].fault.kind, FaultKind::Shrunk);
        assert_eq!(faults[0].substitute, Some(7));
        assert_eq!((times, report.worker_deaths), (1, 1), "{report:?}");
    }
}

#[test]
fn a_sample_whose_workers_are_killed_from_outside_makes_room_after_five() {
    fn end(worker: i32, _: &Path) {
        send(worker, Signal::SIGKILL);
    }
    let (faults, times, report) = disturbed(2, LIVENESS, &[6], end);
    assert_eq!(faults[0].fault.kind, FaultKind::Quarantined);
    assert_eq!(faults[0].substitute, Some(7));
    assert_eq!((times, report.worker_deaths), (5, 5), "{report:?}");
}

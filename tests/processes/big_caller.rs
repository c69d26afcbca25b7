//! A caller with gigabytes of its own: none of them reaches a worker, and the
//! start does not copy page tables. `FEATHERLOAD_BIG_MIB` says how many MiB
//! (default 1024).

use std::fs;

use featherload::LaunchMethod;
use featherload::measure::ProcessUsage;

use crate::common::{builder, data};

const MIB: u64 = 1 << 20;
const WORKERS: usize = 16;

#[test]
fn no_page_of_a_big_caller_reaches_a_worker() {
    let mib: u64 = std::env::var("FEATHERLOAD_BIG_MIB").map_or(1024, |n| n.parse().unwrap());
    let dir = data(4, 32);
    let start = |what: &str| {
        let mut loader = builder(dir.path())
            .num_workers(WORKERS)
            .launch(LaunchMethod::Exec)
            .epochs(8)
            .build()
            .unwrap();
        for _ in 0..2 {
            for batch in loader.epoch() {
                std::hint::black_box(batch.unwrap().pixels().unwrap().bytes()[0]);
            }
        }
        let report = loader.report().unwrap();
        println!(
            "{what}: first row after {:.1} ms, {:.1} ms to build",
            report.first_row_ms.unwrap(),
            loader.startup().as_secs_f64() * 1e3
        );
        (loader, report)
    };
    drop(start("a small caller"));
    let mut block = vec![0u8; (mib * MIB) as usize];
    for page in block.chunks_mut(4096) {
        page[0] = 1;
    }
    let (loader, report) = start(&format!("a caller of {mib} MiB"));
    let me = ProcessUsage::read(std::process::id() as i32).unwrap();
    assert!(me.memory.rss_bytes >= mib * MIB);
    assert_eq!(report.workers.len(), WORKERS);
    let ring = report.ring_bytes;
    let (mut rss, mut pss, mut uss, mut most) = (0, 0, 0, 0);
    for pid in report.workers.iter().copied().chain(report.coordinator) {
        let usage = ProcessUsage::read(pid).unwrap();
        rss += usage.memory.rss_bytes;
        pss += usage.memory.pss_bytes;
        uss += usage.memory.uss_bytes;
        most = most.max(usage.memory.uss_bytes);
        assert!(
            usage.memory.uss_bytes < 32 * MIB,
            "pid {pid} has {} MiB of its own",
            usage.memory.uss_bytes / MIB
        );
        // No mapping is as large as the block: it is not there, not even as
        // pages that nobody has touched.
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        for line in maps.lines() {
            let (range, _) = line.split_once(' ').unwrap();
            let (from, to) = range.split_once('-').unwrap();
            let at = |text| u64::from_str_radix(text, 16).unwrap();
            assert!(at(to) - at(from) < mib * MIB / 2, "{line}");
        }
    }
    println!(
        "{} processes: RSS {} MiB, PSS {} MiB, own {} MiB (the largest {:.1}); ring {} MiB",
        WORKERS + 1,
        rss / MIB,
        pss / MIB,
        uss / MIB,
        most as f64 / MIB as f64,
        ring / MIB
    );
    assert!(pss < mib * MIB / 2, "PSS {pss}");
    assert!(rss < mib * MIB + WORKERS as u64 * ring, "RSS {rss}");
    drop(loader);
    std::hint::black_box(&block);
}

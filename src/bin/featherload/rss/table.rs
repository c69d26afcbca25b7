//! The report for people.

use featherload::Result;
use featherload::measure::{Memory, Role, SteadyProcess};

use super::report::{ForkAfterLoad, Row, RssReport, copied_parents_bytes, slope_mib};
use super::watch::WARM_ROWS;
use crate::output::{line, mib};

/// Columns that hold a figure in MiB.
const WIDTH: usize = 9;

pub fn print(report: &RssReport) -> Result<()> {
    line(&format!(
        "{}: {} samples, {}, batch {}, depth {} at most",
        report.source, report.samples, report.recipe, report.batch, report.depth
    ))?;
    let span = match (report.seconds, report.epochs) {
        (_, Some(epochs)) => format!("{epochs} epochs"),
        (Some(seconds), None) => format!("{seconds} s at least"),
        (None, None) => String::new(),
    };
    line(&format!(
        "MiB; medians over {span}, once every worker had committed {WARM_ROWS} rows"
    ))?;
    line("")?;
    print_totals(report)?;
    line("")?;
    print_processes(report)?;
    if report.epochs.is_some() {
        line("")?;
        print_epochs(report)?;
    }
    if let Some(fork) = &report.fork_after_load {
        line("")?;
        print_fork(fork, report.decoded_bytes)?;
    }
    line("")?;
    print_conclusions(report)
}

fn figures(values: &[f64]) -> String {
    values.iter().map(|v| format!("{v:>WIDTH$.1}")).collect()
}

fn heads(names: &[&str]) -> String {
    names.iter().map(|n| format!("{n:>WIDTH$}")).collect()
}

fn print_totals(report: &RssReport) -> Result<()> {
    line("PSS of all processes: each page is divided among those who map it")?;
    line(&format!(
        "workers{}{:>13}{:>9}  samples  deaths",
        heads(&["total", "ring", "input", "the rest", "peak", "unmapped"]),
        "page cache",
        "mapped"
    ))?;
    for row in &report.rows {
        let cache = match &row.page_cache {
            Some(cache) => format!("{:>13.1}", mib(cache.bytes)),
            None => format!("{:>13}", "not told"),
        };
        line(&format!(
            "{:>7}{}{cache}{:>9.1}{:>9}{:>8}",
            row.workers,
            figures(&[
                mib(row.pss_total_bytes),
                mib(row
                    .pss_total_bytes
                    .saturating_sub(row.pss_without_ring_bytes)),
                mib(row.pss_input_bytes),
                mib(row.pss_own_bytes),
                mib(row.peak_pss_bytes),
                mib(row.ring_unmapped_bytes),
            ]),
            mib(row.steady.total.pss_file_bytes),
            row.steady.samples,
            row.worker_deaths
        ))?;
    }
    line(
        "        ring: what is mapped of it; unmapped: what is allocated of the ring and mapped by",
    )?;
    line("        nobody, so in no total and no peak, though it takes memory")?;
    line(
        "        input: page cache of input files that the processes map; it is the system's, goes when",
    )?;
    line("        memory is short, and is no part of the rest")?;
    let Some(cache) = report.rows.iter().find_map(|r| r.page_cache.as_ref()) else {
        return Ok(());
    };
    line(&format!(
        "        page cache: {}; no part of the total but for what is mapped",
        cache.source
    ))
}

fn print_processes(report: &RssReport) -> Result<()> {
    line(
        "by process; anon, file and shmem are parts of PSS: own memory, mapped files, shared memory (ring, index); input is what is page cache of input files",
    )?;
    line(&format!(
        "workers  {:<18}{}",
        "process",
        heads(&[
            "RSS", "PSS", "anon", "file", "shmem", "input", "USS", "shared", "pinned", "swap"
        ])
    ))?;
    for row in &report.rows {
        for role in Role::ALL {
            let processes: Vec<&SteadyProcess> = row.steady.of_role(role).collect();
            let Some(first) = processes.first() else {
                continue;
            };
            let name = match processes.len() {
                1 => role.name().to_owned(),
                n => format!("{} (of {n})", role.name()),
            };
            let memory = match role {
                // One of them that is like the others.
                Role::Worker => {
                    Memory::median(&processes.iter().map(|p| p.memory).collect::<Vec<_>>())
                }
                _ => first.memory,
            };
            print_memory(row, &name, &memory)?;
        }
        print_memory(row, "all", &row.steady.total)?;
    }
    line(
        "        a worker is the median of its kind; the RSS of all counts shared pages again and again",
    )
}

fn print_memory(row: &Row, name: &str, m: &Memory) -> Result<()> {
    line(&format!(
        "{:>7}  {name:<18}{}",
        row.workers,
        figures(&[
            mib(m.rss_bytes),
            mib(m.pss_bytes),
            mib(m.pss_anon_bytes),
            mib(m.pss_file_bytes),
            mib(m.pss_shmem_bytes),
            mib(m.pss_input_bytes),
            mib(m.uss_bytes),
            mib(m.shared_bytes),
            mib(m.pinned_bytes),
            mib(m.swap_bytes),
        ])
    ))
}

fn print_epochs(report: &RssReport) -> Result<()> {
    line("PSS of all processes without the ring and mapped input, the median of each epoch")?;
    for row in &report.rows {
        let medians: Vec<f64> = row
            .epoch_medians
            .iter()
            .map(|e| mib(e.pss_own_bytes))
            .collect();
        for (i, some) in medians.chunks(10).enumerate() {
            let workers = match i {
                0 => row.workers.to_string(),
                _ => String::new(),
            };
            line(&format!("{workers:>7}{}", figures(some)))?;
        }
        if let Some(growth) = row.growth_mib {
            line(&format!(
                "        growth {growth:+.2}: the last five epochs less the first five"
            ))?;
        }
    }
    Ok(())
}

fn print_fork(fork: &ForkAfterLoad, decoded_bytes: Option<u64>) -> Result<()> {
    let decoded = decoded_bytes.unwrap_or(0);
    line(&format!(
        "the same pools, forked from a process that holds {} images as RGB, {:.1} MiB: PSS of all",
        fork.images,
        mib(decoded)
    ))?;
    line(&format!(
        "workers{}{:>13}",
        heads(&["read", "written"]),
        "computed"
    ))?;
    for row in &fork.rows {
        line(&format!(
            "{:>7}{}{:>13.1}",
            row.workers,
            figures(&[mib(row.read_pss_bytes), mib(row.written_pss_bytes)]),
            mib(copied_parents_bytes(decoded, row.workers))
        ))?;
    }
    line(
        "        read: the workers inherit the images and nobody writes to them, so all share them",
    )?;
    line(
        "        written: a byte of each inherited page was written in each worker, as Python does",
    )?;
    line("        when it counts references: parent and workers each have a copy")?;
    line("        computed: images x (workers + 1), without ring, code and scratch")?;
    if let Some(slope) = slope_mib(fork.rows.iter().map(|r| (r.workers, r.written_pss_bytes))) {
        line(&format!("        {slope:.1} MiB a worker when written"))?;
    }
    for out in &fork.left_out {
        line(&format!(
            "{:>7} left out: copies would take {:.1} MiB, {:.1} are available",
            out.workers,
            mib(out.needed_bytes),
            mib(out.available_bytes)
        ))?;
    }
    if fork.failed > 0 {
        line(&format!(
            "{:>7} images did not decode and were not held",
            fork.failed
        ))?;
    }
    Ok(())
}

fn print_conclusions(report: &RssReport) -> Result<()> {
    if let Some(slope) = report.slope_mib_per_worker {
        line(&format!(
            "{slope:>10.2} MiB a worker, ring and mapped input not counted, by least squares"
        ))?;
    }
    if let Some(row) = report.rows.iter().find(|r| r.ring_bytes > 0) {
        let ring = mib(row.ring_bytes);
        line(&match report.ring_bytes_equal {
            true => format!(
                "{ring:>10.2} MiB in the ring for any number of workers, all of it allocated, mapped or not"
            ),
            false => format!(
                "{ring:>10.2} MiB in the ring with {} workers; IT DIFFERS with others",
                row.workers
            ),
        })?;
    }
    for row in report.rows.iter().filter(|r| r.skipped > 0) {
        line(&format!(
            "{:>10} failed samples skipped with {} workers",
            row.skipped, row.workers
        ))?;
    }
    for bound in &report.broken_bounds {
        line(&format!("FAILED     {bound}"))?;
    }
    Ok(())
}

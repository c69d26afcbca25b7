//! The printed report.

use featherload::Result;
use featherload::measure::{ProcessMemory, ProcessRole, SteadyProcess};

use super::report::{ReportRow, RssReport};
use super::watch::WARM_ROWS;
use crate::output::fields::{WIDTH, print_beside};
use crate::output::{line, mib, mib_at_most};

/// Columns of a figure in MiB.
const FIGURE: usize = 9;

/// Columns before a note below a table.
const NOTE: usize = 8;

/// Medians in a line.
const EPOCHS: usize = 8;

pub fn print(report: &RssReport) -> Result<()> {
    let (samples, recipe) = (report.samples, &report.recipe);
    let (batch, depth) = (report.batch, report.depth);
    let run = format!("{samples} samples, {recipe}, batch {batch}, depth {depth} at most");
    print_beside("", &format!("{}: {run}", report.source))?;
    let span = match (report.seconds, report.epochs) {
        (_, Some(epochs)) => format!("{epochs} epochs"),
        (Some(seconds), None) => format!("{seconds} s at least"),
        (None, None) => String::new(),
    };
    print_beside(
        "",
        &format!("MiB; medians over {span}, after every worker has committed {WARM_ROWS} rows"),
    )?;
    line("")?;
    print_totals(report)?;
    line("")?;
    print_samples(report)?;
    line("")?;
    print_processes(report)?;
    if report.epochs.is_some() {
        line("")?;
        print_epochs(report)?;
    }
    line("")?;
    print_conclusions(report)
}

/// Prints an explanation of a table.
fn note(words: &str) -> Result<()> {
    print_beside(&" ".repeat(NOTE), words)
}

/// Prints a figure and its meaning.
fn conclusion(figure: &str, words: &str) -> Result<()> {
    print_beside(&format!("{figure:>10} "), words)
}

fn figures(values: &[f64]) -> String {
    values.iter().map(|v| format!("{v:>FIGURE$.1}")).collect()
}

fn heads(names: &[&str]) -> String {
    names.iter().map(|n| format!("{n:>FIGURE$}")).collect()
}

fn print_totals(report: &RssReport) -> Result<()> {
    line("PSS of all processes: each page is divided among the processes that map it")?;
    line(&format!(
        "workers{}",
        heads(&[
            "planned", "measured", "PSS", "ring", "input", "the rest", "unmapped", "peak"
        ])
    ))?;
    for row in &report.rows {
        line(&format!(
            "{:>7}{}",
            row.workers,
            figures(&[
                mib_at_most(row.planned_bytes),
                mib(row.measured_bytes),
                mib(row.pss_total_bytes),
                mib(row
                    .pss_total_bytes
                    .saturating_sub(row.pss_without_ring_bytes)),
                mib(row.pss_input_bytes),
                mib(row.pss_own_bytes),
                mib(row.ring_unmapped_bytes),
                mib(row.peak_pss_bytes),
            ]),
        ))?;
    }
    note(
        "planned: the upper limit of `plan`; measured: PSS and unmapped, without mapped shards, \
         which the plan lists separately",
    )?;
    note(
        "ring: its mapped part; unmapped: the part that is allocated but that no process maps. It \
         takes memory, but is in no PSS and no peak",
    )?;
    note(
        "input: page cache of input files that the processes map. The system drops it when memory \
         is short; it is not part of the rest",
    )
}

fn print_samples(report: &RssReport) -> Result<()> {
    line("workers   page cache   mapped  samples   deaths")?;
    for row in &report.rows {
        let cache = match &row.page_cache {
            Some(cache) => format!("{:.1}", mib(cache.bytes)),
            None => "unknown".to_owned(),
        };
        line(&format!(
            "{:>7}{cache:>13}{:>9.1}{:>9}{:>9}",
            row.workers,
            mib(row.steady.total.pss_file_bytes),
            row.steady.samples,
            row.worker_deaths
        ))?;
    }
    let Some(cache) = report.rows.iter().find_map(|r| r.page_cache.as_ref()) else {
        return Ok(());
    };
    note(&format!(
        "page cache: {}; only its mapped part is in PSS",
        shortened(&cache.source, WIDTH - NOTE)
    ))
}

/// A text in which a path longer than this number of columns is cut to its end. `--json` has the
/// whole path.
fn shortened(text: &str, columns: usize) -> String {
    let short = |word: &str| {
        if word.chars().count() <= columns || !word.contains('/') {
            return word.to_owned();
        }
        let mut end = "";
        for (at, _) in word.rmatch_indices('/') {
            if word[at..].chars().count() + 3 > columns {
                break;
            }
            end = &word[at..];
        }
        format!("...{end}")
    };
    text.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

/// One of the figures of a process.
type Part = (&'static str, fn(&ProcessMemory) -> u64);

/// Figures of processes, in tables that fit.
const OF_PROCESSES: [&[Part]; 2] = [
    &[
        ("RSS", |m| m.rss_bytes),
        ("PSS", |m| m.pss_bytes),
        ("anon", |m| m.pss_anon_bytes),
        ("file", |m| m.pss_file_bytes),
        ("shmem", |m| m.pss_shmem_bytes),
        ("input", |m| m.pss_input_bytes),
    ],
    &[
        ("USS", |m| m.uss_bytes),
        ("shared", |m| m.shared_bytes),
        ("pinned", |m| m.pinned_bytes),
        ("swap", |m| m.swap_bytes),
    ],
];

fn print_processes(report: &RssReport) -> Result<()> {
    print_beside(
        "",
        "by process; anon, file and shmem are parts of PSS: private memory, mapped files, shared \
         memory (ring, index); input is page cache of input files",
    )?;
    for parts in OF_PROCESSES {
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        line(&format!("workers  {:<16}{}", "process", heads(&names)))?;
        for row in &report.rows {
            print_processes_of(row, parts)?;
        }
    }
    note("worker: the median of all workers; the RSS of `all` counts a shared page in each process")
}

fn print_processes_of(row: &ReportRow, parts: &[Part]) -> Result<()> {
    for role in ProcessRole::ALL {
        let processes: Vec<&SteadyProcess> = row.steady.of_role(role).collect();
        let Some(first) = processes.first() else {
            continue;
        };
        let name = match processes.len() {
            1 => role.name().to_owned(),
            n => format!("{} (of {n})", role.name()),
        };
        let memory = match role {
            ProcessRole::Worker => {
                ProcessMemory::median(&processes.iter().map(|p| p.memory).collect::<Vec<_>>())
            }
            _ => first.memory,
        };
        print_memory(row, &name, &memory, parts)?;
    }
    print_memory(row, "all", &row.steady.total, parts)
}

fn print_memory(row: &ReportRow, name: &str, memory: &ProcessMemory, parts: &[Part]) -> Result<()> {
    let values: Vec<f64> = parts.iter().map(|(_, bytes)| mib(bytes(memory))).collect();
    line(&format!(
        "{:>7}  {name:<16}{}",
        row.workers,
        figures(&values)
    ))
}

fn print_epochs(report: &RssReport) -> Result<()> {
    print_beside(
        "",
        "PSS of all processes without the ring and mapped input, the median of each epoch",
    )?;
    for row in &report.rows {
        let medians: Vec<f64> = row
            .epoch_medians
            .iter()
            .map(|e| mib(e.pss_own_bytes))
            .collect();
        for (i, some) in medians.chunks(EPOCHS).enumerate() {
            let workers = match i {
                0 => row.workers.to_string(),
                _ => String::new(),
            };
            line(&format!("{workers:>7}{}", figures(some)))?;
        }
        if let Some(growth) = row.growth_mib {
            note(&format!(
                "growth {growth:+.2}: the last five epochs less the first five"
            ))?;
        }
    }
    Ok(())
}

fn print_conclusions(report: &RssReport) -> Result<()> {
    if let Some(slope) = report.slope_mib_per_worker {
        conclusion(
            &format!("{slope:.2}"),
            "MiB a worker, ring and mapped input not counted, by least squares",
        )?;
    }
    if let Some(row) = report.rows.iter().find(|r| r.ring_bytes > 0) {
        let words = match report.ring_bytes_equal {
            true => "MiB in the ring for any number of workers, all of it allocated, mapped or not"
                .to_owned(),
            false => format!(
                "MiB in the ring with {} workers; IT DIFFERS with other numbers",
                row.workers
            ),
        };
        conclusion(&format!("{:.2}", mib(row.ring_bytes)), &words)?;
    }
    for row in report.rows.iter().filter(|r| r.skipped > 0) {
        conclusion(
            &row.skipped.to_string(),
            &format!("failed samples skipped with {} workers", row.workers),
        )?;
    }
    for bound in &report.broken_bounds {
        print_beside("FAILED     ", bound)?;
    }
    print_beside("verdict    ", &report.verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_has_its_end_alone() {
        let path = format!("/sys/fs/cgroup/{}/job/memory.stat", "x".repeat(60));
        let text = shortened(&format!("total_cache of {path}"), 40);
        assert_eq!(text, "total_cache of .../job/memory.stat");
        assert_eq!(shortened("cache of /sys/a", 40), "cache of /sys/a");
    }
}

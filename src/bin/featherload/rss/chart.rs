//! The report as a chart: memory stacked by kind of process against the number of workers,
//! with the figures in a table under the bars; and what copied parents take, where that was
//! measured.

use super::report::{ForkAfterLoad, Row, RssReport, copied_parents_bytes, own};
use crate::chart::{Anchor, MARGIN, Sheet, WIDTH};
use crate::output::mib;

/// Where columns begin: names of the table stand in front of them.
const LEFT: f64 = 236.0;
const RIGHT: f64 = WIDTH - MARGIN;
const STACK: f64 = 250.0;
const LINES: f64 = 220.0;
/// A line of the table.
const LINE: f64 = 22.0;
const WIDEST_BAR: f64 = 96.0;

/// A band of the stack, from below.
struct Band {
    name: &'static str,
    class: &'static str,
    bytes: fn(&Row) -> u64,
}

const BANDS: [Band; 6] = [
    Band {
        name: "ring, in use",
        class: "ring",
        bytes: |row| row.steady.total.pss_ring_bytes,
    },
    Band {
        name: "ring, not in use",
        class: "hatch",
        bytes: |row| row.ring_unmapped_bytes,
    },
    Band {
        name: "consumer",
        class: "consumer",
        bytes: |row| own(&row.steady.consumer),
    },
    Band {
        name: "coordinator",
        class: "coordinator",
        bytes: |row| own(&row.steady.coordinator),
    },
    Band {
        name: "workers",
        class: "workers",
        bytes: |row| own(&row.steady.all_workers),
    },
    Band {
        name: "page cache of input",
        class: "input",
        bytes: |row| row.pss_input_bytes,
    },
];

/// The chart as SVG.
pub fn draw(report: &RssReport) -> String {
    let title = format!(
        "Memory of all processes: {}, {}, batch {}, depth {} at most",
        report.source, report.recipe, report.batch, report.depth
    );
    let mut sheet = Sheet::new(&title, &under(report));
    draw_stack(&mut sheet, &report.rows);
    if let Some(fork) = report
        .fork_after_load
        .as_ref()
        .filter(|fork| !fork.rows.is_empty())
    {
        draw_lines(&mut sheet, report, fork);
    }
    sheet.finish()
}

fn under(report: &RssReport) -> Vec<String> {
    let fewest = report.rows.iter().map(|r| r.steady.samples).min();
    let mut lines = vec![format!(
        "MiB. Medians of {} samples or more of PSS, which counts memory that processes share \
         once; and the part of the ring that no process uses.",
        fewest.unwrap_or(0)
    )];
    if let Some(slope) = report.slope_mib_per_worker {
        lines.push(format!(
            "{slope:.2} MiB for each worker more, ring and page cache not counted."
        ));
    }
    lines
}

/// One decimal, or none where columns are narrow.
fn figure(bytes: u64, width: f64) -> String {
    match width < 52.0 {
        true => format!("{:.0}", mib(bytes)),
        false => format!("{:.1}", mib(bytes)),
    }
}

fn draw_stack(sheet: &mut Sheet, rows: &[Row]) {
    // Bands that nobody has are left out: no shards, no input; no workers, no ring.
    let bands: Vec<&Band> = BANDS
        .iter()
        .filter(|band| rows.iter().any(|row| (band.bytes)(row) > 0))
        .collect();
    let whole = |row: &Row| bands.iter().map(|b| mib((b.bytes)(row))).sum::<f64>();
    let most = rows.iter().map(whole).fold(1.0, f64::max) * 1.1;
    let top = sheet.y + 16.0;
    let bottom = top + STACK;
    let y = sheet.scale((LEFT, RIGHT), (top, bottom), most);
    let column = (RIGHT - LEFT) / rows.len().max(1) as f64;
    let bar = (0.62 * column).min(WIDEST_BAR);
    for (i, row) in rows.iter().enumerate() {
        let middle = LEFT + column * (i as f64 + 0.5);
        let mut below = 0.0;
        for band in &bands {
            let above = below + mib((band.bytes)(row));
            let at = (middle - bar / 2.0, y(above));
            let size = (bar, y(below) - y(above));
            match band.class {
                "hatch" if above > below => sheet.hatched("hatch", at, size),
                class => sheet.rect(class, at, size),
            }
            below = above;
        }
        let words = figure(row.memory_bytes, column);
        sheet.text(
            "over bold",
            Anchor::Middle,
            (middle, y(below) - 7.0),
            &words,
        );
    }
    sheet.line("axis", (LEFT, bottom), (RIGHT, bottom));
    sheet.y = bottom + LINE;
    let mut line = |name: &str, class: &'static str, text: &dyn Fn(&Row) -> String| {
        let (at, weight) = match class {
            "" => (MARGIN, "bold"),
            _ => (MARGIN + 20.0, ""),
        };
        if !class.is_empty() {
            sheet.swatch(class, (MARGIN, sheet.y - 11.0));
        }
        let y = sheet.y;
        sheet.text(weight, Anchor::Start, (at, y), name);
        for (i, row) in rows.iter().enumerate() {
            let middle = LEFT + column * (i as f64 + 0.5);
            sheet.text(weight, Anchor::Middle, (middle, y), &text(row));
        }
        sheet.y += LINE;
    };
    line("worker processes", "", &|row| row.workers.to_string());
    // As they lie in the bar: the uppermost first.
    for band in bands.iter().rev() {
        line(band.name, band.class, &|row| {
            figure((band.bytes)(row), column)
        });
    }
    line("all, MiB", "", &|row| figure(row.memory_bytes, column));
    sheet.y -= LINE - 6.0;
}

/// A line of the comparison.
struct Line {
    name: &'static str,
    class: &'static str,
    /// Workers, MiB.
    points: Vec<(f64, f64)>,
}

/// Ours, and pools that were forked from a process that holds all images.
fn lines(report: &RssReport, fork: &ForkAfterLoad) -> Vec<Line> {
    let ours = report.rows.iter().filter(|row| row.workers > 0);
    let forked = |bytes: fn(&super::report::ForkRow) -> u64| {
        let rows = fork.rows.iter();
        rows.map(|row| (row.workers, bytes(row))).collect()
    };
    let mut all: Vec<(_, _, Vec<(usize, u64)>)> = vec![
        (
            "featherload",
            "ours",
            ours.map(|row| (row.workers, row.memory_bytes)).collect(),
        ),
        (
            "images inherited, only read",
            "read",
            forked(|row| row.read_pss_bytes),
        ),
        (
            "images inherited, then written to",
            "written",
            forked(|row| row.written_pss_bytes),
        ),
    ];
    // Where copies do not fit, nobody can measure them.
    if let Some(decoded) = report.decoded_bytes.filter(|_| !fork.left_out.is_empty()) {
        let counts = report.rows.iter().map(|row| row.workers).filter(|n| *n > 0);
        let points = counts.map(|n| (n, copied_parents_bytes(decoded, n)));
        all.push((
            "computed: images x (workers + 1)",
            "computed",
            points.collect(),
        ));
    }
    let all = all.into_iter().map(|(name, class, mut points)| {
        points.sort_unstable();
        Line {
            name,
            class,
            points: points
                .into_iter()
                .map(|(workers, bytes)| (workers as f64, mib(bytes)))
                .collect(),
        }
    });
    all.collect()
}

fn draw_lines(sheet: &mut Sheet, report: &RssReport, fork: &ForkAfterLoad) {
    let lines = lines(report, fork);
    sheet.heading(
        "The same pools, forked from a process that holds all images as RGB",
        "",
    );
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|p| p.1).fold(1.0, f64::max) * 1.05;
    let widest = points().map(|p| p.0).fold(1.0, f64::max) * 1.04;
    let (left, top) = (MARGIN + 64.0, sheet.y + 14.0);
    let bottom = top + LINES;
    let y = sheet.scale((left, RIGHT), (top, bottom), most);
    let x = |workers: f64| left + (RIGHT - left) * workers / widest;
    for line in &lines {
        let places: Vec<_> = line.points.iter().map(|p| (x(p.0), y(p.1))).collect();
        sheet.path(&format!("line {}", line.class), &places);
        for at in places.iter().filter(|_| line.class != "computed") {
            let class = format!("line {}", line.class);
            sheet.path(&class, &[(at.0 - 3.0, at.1), (at.0 + 3.0, at.1)]);
            sheet.path(&class, &[(at.0, at.1 - 3.0), (at.0, at.1 + 3.0)]);
        }
    }
    sheet.line("axis", (left, bottom), (RIGHT, bottom));
    for workers in labels(points().map(|p| p.0)) {
        let at = (x(workers), bottom + 18.0);
        sheet.text("", Anchor::Middle, at, &format!("{workers:.0}"));
    }
    let middle = f64::midpoint(left, RIGHT);
    let at = (middle, bottom + 36.0);
    sheet.text("soft", Anchor::Middle, at, "worker processes; upwards MiB");
    sheet.y = bottom + 40.0;
    key(sheet, &lines);
}

/// What each line is, and its last value, the highest first.
fn key(sheet: &mut Sheet, lines: &[Line]) {
    let end = |line: &Line| line.points.last().copied().unwrap_or_default();
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by(|a, b| end(b).1.total_cmp(&end(a).1));
    for line in lines {
        sheet.y += 20.0;
        let (left, y) = (MARGIN + 64.0, sheet.y);
        let class = format!("line {}", line.class);
        sheet.path(&class, &[(left, y - 4.0), (left + 30.0, y - 4.0)]);
        let (workers, mib) = end(line);
        let words = format!("{}: {mib:.1} MiB with {workers:.0} workers", line.name);
        sheet.text("", Anchor::Start, (left + 40.0, y), &words);
    }
}

/// Numbers under the axis: those measured, but for the small ones that would
/// stand on each other.
fn labels(xs: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut xs: Vec<f64> = xs.collect();
    xs.sort_by(|a, b| b.total_cmp(a));
    xs.dedup();
    let gap = xs.first().copied().unwrap_or(1.0) / 24.0;
    let mut kept: Vec<f64> = Vec::new();
    for x in xs {
        if kept.last().is_none_or(|above| above - x >= gap) {
            kept.push(x);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_stand_on_each_other() {
        let labels = |xs: &[f64]| labels(xs.iter().copied());
        assert_eq!(
            labels(&[1.0, 2.0, 4.0, 8.0, 16.0]),
            [16.0, 8.0, 4.0, 2.0, 1.0]
        );
        assert_eq!(labels(&[1.0, 2.0, 4.0, 64.0, 64.0]), [64.0, 4.0, 1.0]);
        assert_eq!(labels(&[]), [0.0; 0]);
    }
}

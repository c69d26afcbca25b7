//! The report as a chart: memory stacked by kind of process against the number of workers, with a
//! table of the figures under the bars.

use super::report::{ReportRow, RssReport, own};
use crate::chart::{ChartSheet, MARGIN, TextAnchor, WIDTH};
use crate::output::mib;

/// Left edge of the columns, after the row names of the table.
const LEFT: f64 = 236.0;
const RIGHT: f64 = WIDTH - MARGIN;
const STACK: f64 = 250.0;
/// A line of the table.
const LINE: f64 = 22.0;
const WIDEST_BAR: f64 = 96.0;

/// A band of the stack: its name, its CSS class and its bytes.
type Band = (&'static str, &'static str, fn(&ReportRow) -> u64);

/// From the bottom up.
#[rustfmt::skip] // A band a line.
const BANDS: [Band; 6] = [
    ("ring, in use", "ring", |row| row.steady.total.pss_ring_bytes),
    ("ring, not in use", "hatch", |row| row.ring_unmapped_bytes),
    ("consumer", "consumer", |row| own(&row.steady.consumer)),
    ("coordinator", "coordinator", |row| own(&row.steady.coordinator)),
    ("workers", "workers", |row| own(&row.steady.all_workers)),
    ("page cache of input", "input", |row| row.pss_input_bytes),
];

/// The chart as SVG.
pub fn draw(report: &RssReport) -> String {
    let title = format!(
        "Memory of all processes: {}, {}, batch {}, depth {} at most",
        report.source, report.recipe, report.batch, report.depth
    );
    let mut sheet = ChartSheet::new(&title, &caption(report));
    draw_stack(&mut sheet, &report.rows);
    sheet.finish()
}

fn caption(report: &RssReport) -> Vec<String> {
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

/// One decimal, or none in narrow columns.
fn figure(bytes: u64, width: f64) -> String {
    match width < 52.0 {
        true => format!("{:.0}", mib(bytes)),
        false => format!("{:.1}", mib(bytes)),
    }
}

fn draw_stack(sheet: &mut ChartSheet, rows: &[ReportRow]) {
    // Bands that are always empty are left out: no input without shards, no ring without workers.
    let is_there = |(_, _, bytes): &Band| rows.iter().any(|row| bytes(row) > 0);
    let bands: Vec<Band> = BANDS.into_iter().filter(is_there).collect();
    let whole = |row: &ReportRow| bands.iter().map(|(_, _, b)| mib(b(row))).sum::<f64>();
    let most = rows.iter().map(whole).fold(1.0, f64::max) * 1.1;
    let top = sheet.y + 16.0;
    let bottom = top + STACK;
    let y = sheet.scale((LEFT, RIGHT), (top, bottom), most);
    let column = (RIGHT - LEFT) / rows.len().max(1) as f64;
    let bar = (0.62 * column).min(WIDEST_BAR);
    for (i, row) in rows.iter().enumerate() {
        let middle = LEFT + column * (i as f64 + 0.5);
        let mut below = 0.0;
        for &(_, class, bytes) in &bands {
            let above = below + mib(bytes(row));
            let at = (middle - bar / 2.0, y(above));
            let size = (bar, y(below) - y(above));
            match class {
                "hatch" if above > below => sheet.hatched("hatch", at, size),
                class => sheet.rect(class, at, size),
            }
            below = above;
        }
        let words = figure(row.memory_bytes, column);
        sheet.text(
            "over bold",
            TextAnchor::Middle,
            (middle, y(below) - 7.0),
            &words,
        );
    }
    sheet.line("axis", (LEFT, bottom), (RIGHT, bottom));
    sheet.y = bottom + LINE;
    let mut line = |name: &str, class: &'static str, text: &dyn Fn(&ReportRow) -> String| {
        let (at, weight) = match class {
            "" => (MARGIN, "bold"),
            _ => (MARGIN + 20.0, ""),
        };
        if !class.is_empty() {
            sheet.swatch(class, (MARGIN, sheet.y - 11.0));
        }
        let y = sheet.y;
        sheet.text(weight, TextAnchor::Start, (at, y), name);
        for (i, row) in rows.iter().enumerate() {
            let middle = LEFT + column * (i as f64 + 0.5);
            sheet.text(weight, TextAnchor::Middle, (middle, y), &text(row));
        }
        sheet.y += LINE;
    };
    line("worker processes", "", &|row| row.workers.to_string());
    // In the order of the bar, from the top down.
    for (name, class, bytes) in bands.iter().rev() {
        line(name, class, &|row| figure(bytes(row), column));
    }
    line("all, MiB", "", &|row| figure(row.memory_bytes, column));
    sheet.y -= LINE - 6.0;
}

//! The report as a chart: PSS stacked by kind of process against the number of
//! workers, and beside it what copied parents take, computed and, where it was
//! asked for, measured.
//!
//! SVG text is laid out by whoever shows it: the widths here are estimates, with
//! room to spare.

use std::ops::Range;

use featherload::{Error, Result};
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::report::{Row, RssReport, copied_parents_bytes, own};
use crate::output::mib;

const HEIGHT: u32 = 600;
const STACK_WIDTH: u32 = 820;
const LINES_WIDTH: u32 = 740;
const TITLE_HEIGHT: u32 = 70;
const LEGEND_HEIGHT: u32 = 34;
const FONT: &str = "Helvetica, Arial, sans-serif";

// Okabe and Ito's colours, which people who see few colours can tell apart.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const ORANGE: RGBColor = RGBColor(230, 159, 0);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const PURPLE: RGBColor = RGBColor(170, 80, 140);
const PALE: RGBColor = RGBColor(200, 205, 212);
const INK: RGBColor = RGBColor(34, 34, 34);
const SOFT: RGBColor = RGBColor(105, 105, 105);
const GRID: RGBColor = RGBColor(228, 228, 228);

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A band of the stack, from below.
struct Band {
    name: &'static str,
    color: RGBColor,
    bytes: fn(&Row) -> u64,
}

const BANDS: [Band; 5] = [
    Band {
        name: "ring, shared by all",
        color: PALE,
        bytes: |row| row.steady.total.pss_ring_bytes,
    },
    Band {
        name: "consumer",
        color: BLUE,
        bytes: |row| own(&row.steady.consumer),
    },
    Band {
        name: "coordinator",
        color: ORANGE,
        bytes: |row| own(&row.steady.coordinator),
    },
    Band {
        name: "workers",
        color: GREEN,
        bytes: |row| own(&row.steady.all_workers),
    },
    Band {
        name: "page cache of input",
        color: GRID,
        bytes: |row| row.pss_input_bytes,
    },
];

/// A line of the comparison.
struct Line {
    name: &'static str,
    color: RGBColor,
    dashed: bool,
    /// Workers, MiB.
    points: Vec<(f64, f64)>,
}

/// The chart as SVG.
pub fn draw(report: &RssReport) -> Result<String> {
    let lines = Some(lines(report)).filter(|lines| lines.len() > 1);
    let width = STACK_WIDTH + lines.as_ref().map_or(0, |_| LINES_WIDTH);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width, HEIGHT)).into_drawing_area();
        let drawn = draw_all(&root, report, lines.as_deref()).and_then(|()| root.present());
        drawn.map_err(|e| Error::io("draw the chart", std::io::Error::other(e.to_string())))?;
    }
    Ok(svg)
}

type Drawn = std::result::Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn draw_all(root: &Area<'_>, report: &RssReport, lines: Option<&[Line]>) -> Drawn {
    root.fill(&WHITE)?;
    let title = format!(
        "Memory of all processes: {}, {}, batch {}, depth {}",
        report.source, report.recipe, report.batch, report.depth
    );
    text(root, &title, (24, 16), 21, INK, HPos::Left)?;
    text(root, &subtitle(report), (24, 44), 14, SOFT, HPos::Left)?;
    let (_, below) = root.split_vertically(TITLE_HEIGHT);
    let (left, right) = below.split_horizontally(STACK_WIDTH);
    draw_stack(&left, &report.rows)?;
    match lines {
        Some(lines) => draw_lines(&right, lines),
        None => Ok(()),
    }
}

fn subtitle(report: &RssReport) -> String {
    let fewest = report.rows.iter().map(|r| r.steady.samples).min();
    let mut parts = vec![format!(
        "PSS, medians of {} samples or more",
        fewest.unwrap_or(0)
    )];
    if let Some(slope) = report.slope_mib_per_worker {
        parts.push(format!(
            "{slope:.2} MiB for each worker more, ring and mapped input not counted"
        ));
    }
    if let Some(row) = report.rows.iter().find(|r| r.ring_bytes > 0)
        && report.ring_bytes_equal
    {
        let unmapped = report.rows.iter().map(|r| r.ring_unmapped_bytes).max();
        parts.push(format!(
            "the ring has {:.1} MiB: {:.1} of them, allocated and mapped by nobody, are not shown",
            mib(row.ring_bytes),
            mib(unmapped.unwrap_or(0))
        ));
    }
    parts.join("; ")
}

fn text(area: &Area<'_>, words: &str, at: (i32, i32), size: i32, ink: RGBColor, h: HPos) -> Drawn {
    let style = TextStyle::from((FONT, size).into_font())
        .color(&ink)
        .pos(Pos::new(h, VPos::Top));
    area.draw_text(words, &style, at)
}

/// Axes with a grid of horizontal lines, and labels with units.
fn axes<'a, 'b>(
    area: &'a Area<'b>,
    x: Range<f64>,
    most: f64,
    right_margin: u32,
) -> std::result::Result<Chart<'a, 'b>, DrawingAreaErrorKind<std::io::Error>> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(LEGEND_HEIGHT + 10)
        .margin_left(12)
        .margin_right(right_margin)
        .margin_bottom(34)
        .x_label_area_size(26)
        .y_label_area_size(76)
        .build_cartesian_2d(x, 0.0..most)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(8)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(SOFT)
        .label_style((FONT, 13).into_font().color(&INK))
        .y_desc("PSS, MiB")
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()?;
    Ok(chart)
}

/// A number under the horizontal axis.
fn x_label(area: &Area<'_>, chart: &Chart<'_, '_>, x: f64, words: &str) -> Drawn {
    let (px, py) = in_area(area, chart, (x, 0.0));
    text(area, words, (px, py + 9), 13, INK, HPos::Center)
}

fn x_title(area: &Area<'_>, chart: &Chart<'_, '_>) -> Drawn {
    let plot = chart.plotting_area().get_x_range();
    let (px, py) = in_area(area, chart, (f64::midpoint(plot.start, plot.end), 0.0));
    text(
        area,
        "worker processes",
        (px, py + 32),
        14,
        INK,
        HPos::Center,
    )
}

/// Pixels within `area`; the chart knows those of the whole picture.
fn in_area(area: &Area<'_>, chart: &Chart<'_, '_>, at: (f64, f64)) -> (i32, i32) {
    let (x, y) = chart.plotting_area().map_coordinate(&at);
    let (left, top) = area.get_base_pixel();
    (x - left, y - top)
}

fn draw_stack(area: &Area<'_>, rows: &[Row]) -> Drawn {
    let total = |row: &Row| BANDS.iter().map(|b| mib((b.bytes)(row))).sum::<f64>();
    let most = rows.iter().map(total).fold(1.0, f64::max);
    let mut chart = axes(area, 0.0..rows.len() as f64, most * 1.16, 24)?;
    let mut at = 90;
    for band in &BANDS {
        let (x, y) = (at, 12);
        area.draw(&Rectangle::new(
            [(x, y), (x + 14, y + 14)],
            band.color.filled(),
        ))?;
        text(area, band.name, (x + 20, y), 14, INK, HPos::Left)?;
        at += 54 + 7 * band.name.len() as i32;
    }
    for (i, row) in rows.iter().enumerate() {
        let (from, to) = (i as f64 + 0.2, i as f64 + 0.8);
        let mut below = 0.0;
        for band in &BANDS {
            let above = below + mib((band.bytes)(row));
            let shape = Rectangle::new([(from, below), (to, above)], band.color.filled());
            chart.draw_series([shape])?;
            below = above;
        }
        let middle = f64::midpoint(from, to);
        let (x, y) = in_area(area, &chart, (middle, below));
        let whole = format!("{:.1} MiB", mib(row.pss_total_bytes));
        text(area, &whole, (x, y - 37), 15, INK, HPos::Center)?;
        if row.ring_bytes > 0 {
            let rest = format!("{:.1} + ring + input", mib(row.pss_own_bytes));
            text(area, &rest, (x, y - 18), 12, SOFT, HPos::Center)?;
        }
        x_label(area, &chart, middle, &row.workers.to_string())?;
    }
    x_title(area, &chart)
}

/// Ours, and what is known of copied parents.
fn lines(report: &RssReport) -> Vec<Line> {
    let measured = |name, color, points| Line {
        name,
        color,
        dashed: false,
        points,
    };
    let ours = report.rows.iter().filter(|r| r.workers > 0).map(|r| {
        let memory = r.pss_total_bytes.saturating_sub(r.pss_input_bytes);
        (r.workers as f64, mib(memory))
    });
    let mut lines = vec![measured("featherload", GREEN, in_order(ours))];
    if let Some(fork) = report
        .fork_after_load
        .as_ref()
        .filter(|f| !f.rows.is_empty())
    {
        let of = |pss: fn(&super::report::ForkRow) -> u64| {
            let points = fork.rows.iter();
            points
                .map(|r| (r.workers as f64, mib(pss(r))))
                .collect::<Vec<_>>()
        };
        lines.push(measured(
            "images inherited, only read",
            PURPLE,
            of(|r| r.read_pss_bytes),
        ));
        lines.push(measured(
            "images inherited, then written to",
            VERMILION,
            of(|r| r.written_pss_bytes),
        ));
    }
    if let Some(decoded) = report.decoded_bytes {
        lines.push(Line {
            name: "computed: images x (workers + 1)",
            color: INK,
            dashed: true,
            points: in_order(report.rows.iter().filter(|r| r.workers > 0).map(|r| {
                let bytes = copied_parents_bytes(decoded, r.workers);
                (r.workers as f64, mib(bytes))
            })),
        });
    }
    lines
}

fn in_order(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn draw_lines(area: &Area<'_>, lines: &[Line]) -> Drawn {
    let all = || lines.iter().flat_map(|l| &l.points);
    let most = all().map(|p| p.1).fold(1.0, f64::max);
    let widest = all().map(|p| p.0).fold(1.0, f64::max);
    let mut chart = axes(area, 0.0..widest * 1.04, most * 1.42, 30)?;
    for line in lines {
        let style = line.color.stroke_width(if line.dashed { 1 } else { 3 });
        if line.dashed {
            let shape = DashedPathElement::new(line.points.clone(), 6, 5, style);
            chart.draw_series([shape])?;
        } else {
            chart.draw_series([PathElement::new(line.points.clone(), style)])?;
            let dots = line
                .points
                .iter()
                .map(|p| Circle::new(*p, 4, line.color.filled()));
            chart.draw_series(dots)?;
        }
    }
    for x in ticks(all().map(|p| p.0)) {
        x_label(area, &chart, x, &format!("{x:.0}"))?;
    }
    x_title(area, &chart)?;
    draw_key(area, lines)
}

/// Numbers under the axis: those measured, but for the small ones that would
/// stand on each other.
fn ticks(xs: impl Iterator<Item = f64>) -> Vec<f64> {
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

/// What each line is, and its last value, in the order of the lines' ends.
fn draw_key(area: &Area<'_>, lines: &[Line]) -> Drawn {
    let end = |l: &Line| l.points.last().copied().unwrap_or_default();
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by(|a, b| end(b).1.total_cmp(&end(a).1));
    let what = match lines.len() {
        2 => "Beside workers that each hold a copy of all images as RGB",
        _ => "The same pools, forked from a process that holds all images as RGB",
    };
    text(area, what, (106, 12), 14, INK, HPos::Left)?;
    let top = LEGEND_HEIGHT as i32 + 24;
    for (i, line) in lines.into_iter().enumerate() {
        let y = top + 24 * i as i32;
        let style = line.color.stroke_width(if line.dashed { 1 } else { 3 });
        let from: &[i32] = if line.dashed {
            &[106, 117, 128]
        } else {
            &[106]
        };
        let length = if line.dashed { 6 } else { 28 };
        for x in from {
            area.draw(&PathElement::new([(*x, y + 7), (x + length, y + 7)], style))?;
        }
        let (workers, mib) = end(line);
        let words = format!("{}: {mib:.0} MiB with {workers:.0} workers", line.name);
        text(area, &words, (142, y), 14, INK, HPos::Left)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_do_not_stand_on_each_other() {
        let ticks = |xs: &[f64]| ticks(xs.iter().copied());
        assert_eq!(
            ticks(&[1.0, 2.0, 4.0, 8.0, 16.0]),
            [16.0, 8.0, 4.0, 2.0, 1.0]
        );
        assert_eq!(ticks(&[1.0, 2.0, 4.0, 64.0, 64.0]), [64.0, 4.0, 1.0]);
        assert_eq!(ticks(&[]), [0.0; 0]);
    }
}

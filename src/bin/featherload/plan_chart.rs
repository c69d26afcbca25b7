//! The chart of a plan: `featherload plan --svg`.
//!
//! Shows one sample stage by stage, in written and in executed order, on one scale. Shows the whole
//! run as one bar, against the limit.

use featherload::error;
use featherload::memory_plan::{MemoryLimit, RecipeOutline, RecipeStages, RunMemory};

use crate::chart::{ChartSheet, LegendKey, MARGIN, TextAnchor, WIDTH, fitted};
use crate::flags;
use crate::output::size;

/// Left and right ends of the stage bars.
const FROM: f64 = 440.0;
const TO: f64 = WIDTH - 100.0;
/// Height of a stage's bar, and distance between bars.
const BAR: f64 = 16.0;
const STAGE: f64 = 24.0;

/// The chart as SVG. `source` is the name of the data set, if there is one.
pub fn draw(
    outline: &RecipeOutline,
    memory: &RunMemory,
    limit: Option<&MemoryLimit>,
    source: Option<&str>,
) -> String {
    let (height, width) = outline.picture;
    let of = source.unwrap_or("no data set");
    let picture = match source {
        Some(_) => format!("The image that takes the most memory has {width} x {height} pixels."),
        None => format!("For images of {width} x {height} pixels."),
    };
    let title = format!("Memory before the run: {of}, {}", outline.recipe);
    let what = format!(
        "Memory of one sample in a worker, stage by stage from top to bottom. {picture} Later \
         stages reuse the buffers of earlier ones. The dashed line is the most that any draw \
         takes."
    );
    let mut sheet = ChartSheet::new(&title, &[what]);
    sheet.keys(&[
        ("one", "the image after the stage".into()),
        ("rest", "other buffers at that time".into()),
    ]);
    let orders = [&outline.written, &outline.planned];
    let held = orders.iter().flat_map(|order| &order.stages);
    let most = held.map(|stage| stage.held_bytes);
    let most = most
        .chain(orders.map(|order| order.scratch_bytes))
        .max()
        .unwrap_or(0);
    waterfall(
        &mut sheet,
        "As written, each operation by itself",
        &outline.written,
        most,
    );
    let planned = format!("As it runs (reorder: {})", outline.reorder);
    waterfall(&mut sheet, &planned, &outline.planned, most);
    run(&mut sheet, memory, limit);
    sheet.finish()
}

/// The stages of an order, one bar each, on a scale that ends at `most`.
fn waterfall(sheet: &mut ChartSheet, title: &str, order: &RecipeStages, most: u64) {
    let head = format!("{} a sample at most", size(order.scratch_bytes));
    sheet.heading(title, &head);
    sheet.y += 6.0;
    let x = |bytes: u64| FROM + (TO - FROM) * bytes as f64 / most.max(1) as f64;
    let top = sheet.y;
    let mut before: Option<f64> = None;
    for stage in &order.stages {
        let y = sheet.y;
        let held = x(stage.held_bytes);
        let picture = x(stage.picture_bytes.min(stage.held_bytes));
        let middle = y + BAR / 2.0 + 4.5;
        let shape = format!("{} x {} {}", stage.width, stage.height, stage.element);
        let name = fitted(&stage.name, 40);
        sheet.text("", TextAnchor::Start, (MARGIN, middle), &name);
        sheet.text("soft", TextAnchor::End, (FROM - 12.0, middle), &shape);
        if let Some(before) = before {
            sheet.line("step", (before, y - STAGE + BAR), (before, y + BAR));
        }
        sheet.rect("rest", (FROM, y), (held - FROM, BAR));
        sheet.rect("one", (FROM, y), (picture - FROM, BAR));
        // A separate column, which no line crosses.
        let at = (WIDTH - MARGIN, middle);
        sheet.text("", TextAnchor::End, at, &size(stage.held_bytes));
        before = Some(held);
        sheet.y += STAGE;
    }
    let at = x(order.scratch_bytes);
    sheet.line("mean", (at, top - 4.0), (at, sheet.y - STAGE + BAR + 4.0));
}

/// The bar of the whole run, with the limit.
fn run(sheet: &mut ChartSheet, memory: &RunMemory, limit: Option<&MemoryLimit>) {
    let missing = limit.and_then(|l| memory.total_bytes.checked_sub(l.bytes));
    let missing = missing.filter(|bytes| *bytes > 0);
    sheet.heading(
        "The whole run, all processes",
        &match missing {
            Some(bytes) => format!(
                "REFUSED: needs {}, {} over the limit",
                error::size_rounded_up(memory.total_bytes),
                error::size_rounded_up(bytes)
            ),
            None => format!("{} at most", size(memory.total_bytes)),
        },
    );
    let workers = u64::from(memory.workers);
    let ring = match memory.workers {
        0 => "batches".to_owned(),
        _ => {
            let slots = if memory.depth == 1 { "slot" } else { "slots" };
            format!("ring, {} {slots} of {} rows", memory.depth, memory.batch)
        }
    };
    let others = memory.fixed_bytes + memory.kept_picture_bytes;
    // Without workers the consumer decodes, and takes the memory of a worker.
    let of_workers = match workers {
        0 => memory
            .total_bytes
            .saturating_sub(memory.ring_bytes + others),
        n => n * memory.worker_bytes,
    };
    let each = match workers {
        0 => "decoding in the consumer".to_owned(),
        n => format!("{n} workers, {} each:", size(memory.worker_bytes)),
    };
    let parts = [
        ("ring", memory.ring_bytes, ring),
        ("workers", of_workers, each),
        (
            "consumer",
            others,
            match memory.kept_picture_bytes {
                0 => "consumer, coordinator, index".to_owned(),
                _ => "consumer, coordinator, index, pictures of `partner_window`".to_owned(),
            },
        ),
    ];
    // A much larger limit would make the bar unreadable, so it gets its own bar.
    let near = limit.filter(|l| l.bytes < 4 * memory.total_bytes);
    let whole = near.map_or(memory.total_bytes, |l| l.bytes.max(memory.total_bytes));
    let width = WIDTH - 2.0 * MARGIN;
    let y = sheet.y + 4.0;
    let mut x = MARGIN;
    for (class, bytes, _) in &parts {
        let part = width * *bytes as f64 / whole.max(1) as f64;
        sheet.rect(class, (x, y), (part, 30.0));
        if *class == "workers" {
            for n in 1..workers.min(64) {
                let at = x + part * n as f64 / workers as f64;
                sheet.line("grid", (at, y), (at, y + 30.0));
            }
        }
        x += part;
    }
    sheet.rect("edge", (MARGIN, y), (width, 30.0));
    sheet.y = y + 34.0;
    let free = limit.map(|l| l.bytes.saturating_sub(memory.total_bytes));
    let mut keys: Vec<LegendKey> = parts
        .into_iter()
        .map(|(class, bytes, words)| (class, format!("{words} {}", size(bytes))))
        .collect();
    if let (Some(free), Some(_), None) = (free, near, missing) {
        keys.push(("edge", format!("free {}", size(free))));
    }
    sheet.keys(&keys);
    match (limit, free) {
        (Some(limit), Some(free)) => {
            let words = format!("Limit {}: {}", size(limit.bytes), flags::in_place(limit.by));
            match near {
                Some(_) => sheet.note(&words),
                None => draw_against_limit(sheet, memory, limit, &words, free),
            }
        }
        _ => sheet.note("No limit is known. With SRC, the memory of this machine is the limit."),
    }
    if memory.device_bytes > 0 {
        sheet.note(&format!(
            "In addition, {} on the device, without its context.",
            size(memory.device_bytes)
        ));
    }
    if memory.page_cache_bytes > 0 {
        sheet.note(&format!(
            "Workers map up to {} of shards. This is page cache: the system reclaims it when it \
             needs memory.",
            size(memory.page_cache_bytes)
        ));
    }
}

/// The run as a fraction of a much larger limit.
fn draw_against_limit(
    sheet: &mut ChartSheet,
    memory: &RunMemory,
    limit: &MemoryLimit,
    words: &str,
    free: u64,
) {
    let width = WIDTH - 2.0 * MARGIN;
    let y = sheet.y + 6.0;
    let used = width * memory.total_bytes as f64 / limit.bytes.max(1) as f64;
    sheet.rect("one", (MARGIN, y), (used.max(1.0), 12.0));
    sheet.rect("edge", (MARGIN, y), (width, 12.0));
    sheet.y = y + 12.0;
    let share = 100.0 * memory.total_bytes as f64 / limit.bytes.max(1) as f64;
    sheet.note(&format!(
        "{words}. The run takes {share:.1}% of it; {} stay free.",
        size(free)
    ));
}

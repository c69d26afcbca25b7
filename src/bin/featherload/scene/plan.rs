//! `--plan` of the commands over a scene: the memory of a run, printed before it begins.

use std::path::Path;

use featherload::scene::{SceneDeviceMemory, SceneMemoryPlan, SceneWorkerMemory};
use featherload::{Error, Result, error};

use crate::flags;
use crate::outcome::CommandOutcome;
use crate::output::{self, grouped, line, mib_at_most};

/// Prints a memory plan, then the reason if the run is rejected. `slot` is the singular and plural
/// name of a ring slot's contents.
///
/// # Errors
/// The run is rejected.
pub fn print(
    scene: &Path,
    (forecast, refusal): (SceneMemoryPlan, Option<Error>),
    slot: &[String; 2],
    json: bool,
) -> Result<CommandOutcome> {
    output::plan(&forecast, refusal, json, |forecast| {
        print_text(scene, forecast, slot)
    })?;
    Ok(CommandOutcome::Done)
}

fn print_text(scene: &Path, f: &SceneMemoryPlan, [one, many]: &[String; 2]) -> Result<()> {
    let m = &f.memory;
    line(&format!(
        "{} | {} | {} | {}",
        scene.display(),
        count_text(f.images, "image", "images"),
        [(f.masks, "mask", "masks"), (f.depths, "depth", "depths")]
            .map(|(n, one, more)| count_text(n, one, more))
            .join(", "),
        count_text(u64::from(m.workers), "worker", "workers"),
    ))?;
    line("")?;
    if !f.store.in_file {
        row(
            m.store_bytes,
            "decoded images, in memory, shared by all processes",
        )?;
    }
    let (slots, each) = (u64::from(m.depth), mib_at_most(m.slot_bytes));
    row(
        m.ring_bytes,
        &match (m.workers, &f.device) {
            (_, Some(_)) => "messages to workers: batches are made on the device".to_owned(),
            (0, None) => format!("2 {many} of {each:.1} MiB"),
            (_, None) => {
                let of = if slots == 1 { one } else { many };
                format!("{slots} {of} of {each:.1} MiB, shared by all processes")
            }
        },
    )?;
    if m.masks_bytes > 0 {
        row(
            m.masks_bytes,
            "masks, one bit a pixel, twice while they are put in order",
        )?;
    }
    if m.maps_bytes > 0 {
        row(
            m.maps_bytes,
            "maps of cameras, to straighten images, shared by all processes",
        )?;
    }
    row(m.tables_bytes, "cameras, poses, names, tables")?;
    row(
        m.fixed_bytes,
        &match (&f.device, m.workers) {
            (Some(_), _) => "main process with the device's driver, coordinator".to_owned(),
            (None, 0) => "this process".to_owned(),
            (None, _) => "main process, coordinator".to_owned(),
        },
    )?;
    let w = &m.worker;
    row(
        w.total_bytes * u64::from(m.workers.max(1)),
        &match m.workers {
            0 => format!("to decode: {}", parts(w)),
            1 => format!("1 worker: {}", parts(w)),
            n => format!(
                "{n} workers, {:.1} MiB each: {}",
                mib_at_most(w.total_bytes),
                parts(w)
            ),
        },
    )?;
    row(m.total_bytes, "in all: PSS of all processes at most")?;
    if m.reading_masks_bytes > m.running_bytes {
        line(&format!(
            "{:>14}(while masks are read; {:.1} MiB after that)",
            "",
            mib_at_most(m.running_bytes)
        ))?;
    }
    line("")?;
    match &f.store.folder {
        None => field("images", "in memory")?,
        Some(folder) => field(
            "images",
            &format!(
                "in a file of {} in {}",
                error::size(f.store.bytes),
                folder.display()
            ),
        )?,
    }
    if let (Some(room), Some(limit)) = (f.store.room_bytes, &f.limit) {
        field(
            "why",
            &format!(
                "with images in memory the run takes {}, and there is room for {}",
                error::size_rounded_up(f.store.needed_bytes),
                error::size_rounded_down(room)
            ),
        )?;
        let kept = match room < limit.bytes {
            true => "; a quarter is kept for the trainer",
            false => "",
        };
        field(
            "limit",
            &format!(
                "{} ({}{kept})",
                error::size_rounded_down(limit.bytes),
                flags::in_place(limit.by)
            ),
        )?;
    }
    if let Some(image) = &f.largest {
        field(
            "largest",
            &format!(
                "{} ({}, {} x {}) takes the most to decode: {}",
                image.path.display(),
                image.format,
                image.width,
                image.height,
                error::size(image.scratch_bytes)
            ),
        )?;
    }
    match &f.device {
        Some(device) => print_device(device),
        None => Ok(()),
    }
}

fn print_device(d: &SceneDeviceMemory) -> Result<()> {
    line("")?;
    line("On the device, without its context:")?;
    row(d.image_bytes, "decoded images")?;
    row(
        d.batch_bytes,
        &format!(
            "{} and the kernel",
            count_text(u64::from(d.batches), "batch", "batches")
        ),
    )?;
    row(d.scene_bytes, "cameras, masks, tables")?;
    if d.decoder_bytes > 0 {
        row(
            d.decoder_bytes,
            "to decode JPEGs, until all images are there",
        )?;
    }
    row(d.total_bytes, "in all")?;
    if let Some(limit) = d.limit_bytes {
        field(
            "limit",
            &format!("{} (--gpu-memory-limit)", error::size_rounded_down(limit)),
        )?;
    }
    match d.host_image_bytes {
        0 => Ok(()),
        bytes => field(
            "images",
            &format!(
                "{} do not fit and are read from the host's memory",
                error::size(bytes)
            ),
        ),
    }
}

/// The memory of a worker, without zero entries.
fn parts(w: &SceneWorkerMemory) -> String {
    let parts = [
        (w.decode_bytes, "to decode"),
        (w.alpha_bytes, "alpha"),
        (w.depth_bytes, "depths"),
        (w.view_bytes, "copies for the view"),
        (w.file_buffer_bytes, "on the way to the file"),
        (w.input_bytes, "the longest file"),
        (w.process_bytes, "the process"),
    ];
    let parts = parts.into_iter().filter(|(bytes, _)| *bytes > 0);
    let parts = parts.map(|(bytes, what)| format!("{:.1} {what}", mib_at_most(bytes)));
    parts.collect::<Vec<_>>().join(", ")
}

fn row(bytes: u64, what: &str) -> Result<()> {
    line(&format!("{:>10.1} MiB {what}", mib_at_most(bytes)))
}

fn field(what: &str, text: &str) -> Result<()> {
    line(&format!("{what:<10} {text}"))
}

fn count_text(n: u64, one: &str, many: &str) -> String {
    match n {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        n => format!("{} {many}", grouped(n)),
    }
}

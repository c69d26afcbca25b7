//! `featherload plan`: shows the operations on a sample and the memory of a run, before it starts.

use std::path::PathBuf;

use clap::Args;
use featherload::memory_plan::{RecipeOutline, RecipeStages, RunMemory, RunShape};
use featherload::options::{SourceOptions, cli};
use featherload::recipe::OperationMove;
use featherload::{Device, Error, MemoryPlan, Result, UploadChoice, error};
use serde::Serialize;

use crate::flags;
use crate::index::print_skipped;
use crate::loader_args::LoaderArgs;
use crate::outcome::CommandOutcome;
use crate::output::fields::print_beside;
use crate::output::{self, mib, mib_at_most};
use crate::plan_chart;
use crate::setup::RunSetup;
use crate::step_text;

/// Show the operations of a recipe, their order, and the memory of the whole run.
///
/// The recipe is shown in its written order and in the order of execution, with the reason for each
/// move and the bytes at every stage. Reads headers; decodes and starts nothing.
#[derive(Args)]
pub struct PlanArgs {
    #[command(flatten)]
    source: SourceOptions,

    #[command(flatten)]
    loader: LoaderArgs,

    /// Worker processes. Default: the usable CPUs.
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    num_workers: Option<usize>,

    /// Show the random values of the first N rows.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = cli::MEASURE)]
    sample: u64,

    /// Without SRC: the size of the images, HEIGHTxWIDTH [1080x1920].
    ///
    /// The data set of a config is not read then.
    #[arg(long, value_name = "HxW", value_parser = parse_size, conflicts_with_all = ["path", "list"], help_heading = cli::MEASURE)]
    picture: Option<(u32, u32)>,

    /// Draw the memory of a sample stage by stage, and the run's memory against the limit, as SVG.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    svg: Option<PathBuf>,

    /// Print one JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    json: bool,
}

/// Plans without a data set.
#[derive(Serialize)]
struct Assumed {
    outline: RecipeOutline,
    memory: RunMemory,
}

/// The plan, with notes about the config.
#[derive(Serialize)]
struct Noted<'a, T> {
    #[serde(flatten)]
    plan: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Vec<String>>,
}

pub fn run(args: PlanArgs) -> Result<CommandOutcome> {
    if let Some(file) = &args.svg {
        output::check_text_writable("--svg", file)?;
    }
    let setup = RunSetup::new(&args.loader, &args.source)?;
    let workers = setup.worker_count(args.num_workers);
    if args.picture.is_some() || !setup.options.has_data() {
        setup.refuse_without_data()?;
        if args.loader.options.device != Device::Cpu {
            return Err(Error::config(
                "the memory of --device depends on the data set: give SRC, or remove --device",
            ));
        }
        if args.sample > 0 {
            return Err(Error::config(
                "--sample has no effect without a data set: give SRC",
            ));
        }
        if setup.options.loader.images == Some(false) {
            return Err(Error::option(
                "images",
                "a plan without images needs a data set: give SRC, or remove --no-images",
            ));
        }
        let picture = args.picture.unwrap_or((1080, 1920));
        let recipe = setup.options.recipe()?;
        let shape = RunShape {
            workers: u32::try_from(workers).map_err(|_| {
                Error::config(format!(
                    "--num-workers {workers} is too large: use at most 4096"
                ))
            })?,
            batch: setup.options.batch(),
            depth: args.loader.options.depth,
            memory_limit: args.loader.options.memory_limit,
        };
        let (memory, refusal) = RunMemory::with_refusal(&recipe, picture, shape)?;
        let outline = RecipeOutline::of(&recipe, picture)?;
        let assumed = Assumed { outline, memory };
        write_chart(&args, || {
            plan_chart::draw(&assumed.outline, &assumed.memory, None, None)
        })?;
        return print_plan(&assumed, refusal, args.json, &setup, |assumed| {
            print_outline(&assumed.outline)?;
            print_memory(&assumed.memory, None)
        });
    }
    let (forecast, refusal) = setup
        .builder(setup.options.data()?)?
        .num_workers(workers)
        .memory_plan_with_refusal(args.sample)?;
    write_chart(&args, || {
        let (outline, memory) = (&forecast.outline, &forecast.memory);
        let source = setup.options.source_name();
        plan_chart::draw(outline, memory, forecast.limit.as_ref(), Some(&source))
    })?;
    print_skipped(forecast.scan.as_ref());
    print_plan(&forecast, refusal, args.json, &setup, |forecast| {
        print(forecast, setup.options.loader.device)
    })
}

/// Prints a plan, and notes about the config.
fn print_plan<T: Serialize>(
    plan: &T,
    refusal: Option<Error>,
    json: bool,
    setup: &RunSetup<'_>,
    print: impl FnOnce(&T) -> Result<()>,
) -> Result<CommandOutcome> {
    let notes = setup.notes();
    let noted = Noted {
        plan,
        notes: setup.options.training().map(|_| notes.clone()),
    };
    output::plan(&noted, refusal, json, |_| {
        print(plan)?;
        notes
            .iter()
            .try_for_each(|note| print_beside("note       ", note))
    })?;
    Ok(CommandOutcome::Done)
}

fn write_chart(args: &PlanArgs, draw: impl FnOnce() -> String) -> Result<()> {
    match &args.svg {
        Some(file) => output::write_whole(file, draw().as_bytes()),
        None => Ok(()),
    }
}

fn print(f: &MemoryPlan, device: Device) -> Result<()> {
    match f.reads_images {
        true => print_outline(&f.outline)?,
        false => output::line("no image is read, and rows have no pixels")?,
    }
    if let Some(l) = &f.largest {
        print_beside(
            "largest    ",
            &format!(
                "{} ({}, {} x {}) takes the most to decode: {}",
                l.path.display(),
                l.format,
                l.width,
                l.height,
                error::size(l.scratch_bytes)
            ),
        )?;
    }
    if f.object_bytes > 0 {
        let of_file = (f.annotations.as_ref())
            .map(|report| format!("{} in {} images, ", report.objects, report.images));
        let of_file = of_file.unwrap_or_default();
        let bytes = error::size(f.object_bytes);
        print_beside(
            "objects    ",
            &format!("{of_file}{bytes} that all processes share"),
        )?;
    }
    print_memory(&f.memory, f.upload.as_ref())?;
    if let Some(limit) = &f.limit {
        print_beside(
            "limit      ",
            &format!(
                "{} ({})",
                error::size_rounded_down(limit.bytes),
                flags::in_place(limit.by)
            ),
        )?;
    }
    if let Some(lowered) = &f.lowered {
        print_beside("depth      ", &flags::in_place(lowered))?;
    }
    print_beside("profile    ", &f.profile.to_string())?;
    if device != Device::Cpu {
        let jpegs = format!("{}: {}", f.jpegs.on, f.jpegs.why);
        print_beside("jpegs      ", &flags::in_place(&jpegs))?;
    }
    for row in &f.drawn {
        output::line(&format!(
            "row {:<6} {} (sample {})",
            row.row,
            row.path.display(),
            row.id
        ))?;
        if let Some(label) = row.label {
            output::line(&format!("           label: {label}"))?;
        }
        for (op, draw) in row.steps.iter().flat_map(|drawn| &drawn.joints) {
            output::line(&format!(
                "           {op}: {}",
                step_text::describe_joint(draw)
            ))?;
        }
        for (op, step) in row.steps.iter().flat_map(|drawn| &drawn.steps) {
            output::line(&format!("           {op}: {}", step_text::describe(step)))?;
        }
        if let Some(fault) = &row.fault {
            output::line(&format!(
                "           {}: {}",
                fault.kind.name(),
                fault.reason
            ))?;
        }
    }
    Ok(())
}

fn print_outline(o: &RecipeOutline) -> Result<()> {
    if !o.crops.is_empty() {
        let count: u32 = o.crops.iter().map(|crop| crop.count).sum();
        output::line(&format!(
            "recipe {}: {count} crops of each image, from one decode",
            o.recipe
        ))?;
        for (number, crop) in o.crops.iter().enumerate() {
            // A crop without a name has its number as one.
            let unnamed = format!("crop {number}");
            let name = match crop.outline.recipe.as_str() {
                "" => String::new(),
                name if name == unnamed => String::new(),
                name => format!(" ({name})"),
            };
            let times = match crop.count {
                1 => String::new(),
                count => format!(", {count} times"),
            };
            output::line("")?;
            let shared = match crop.shared {
                0 => String::new(),
                1 => ", the first operation as drawn for crop 0".into(),
                shared => format!(", the first {shared} operations as drawn for crop 0"),
            };
            output::line(&format!("{unnamed}{name}{times}{shared}:"))?;
            print_outline(&crop.outline)?;
        }
        return Ok(());
    }
    for (number, joint) in (1..).zip(&o.joined) {
        print_outline(&joint.outline)?;
        let (height, width) = joint.canvas;
        let chance = match joint.p {
            1.0 => String::new(),
            p => format!(" with probability {p}"),
        };
        let text = format!(
            "joins {} images{chance} to one of {width} x {height}: {}",
            joint.pictures,
            error::size(joint.bytes)
        );
        output::line("")?;
        print_beside(&format!("{:<11} ", joint.name), &text)?;
        output::line("")?;
        output::line(&format!("stage {}, after {}:", number + 1, joint.name))?;
    }
    let (height, width) = o.picture;
    output::line(&format!(
        "recipe {}, reorder {}; bytes for an image of {width} x {height}",
        o.recipe, o.reorder
    ))?;
    print_order("as written, each operation by itself", &o.written)?;
    print_order("as it runs", &o.planned)?;
    print_moves("moved", &o.moves)?;
    print_moves("not moved", &o.refused)?;
    for fusion in &o.fused {
        print_beside(
            "fused      ",
            &format!("{}: {}", fusion.ops.join(" + "), fusion.stage),
        )?;
    }
    for choice in &o.choices {
        print_beside(
            "choice     ",
            &format!("{}: {}", choice.what, choice.effect),
        )?;
    }
    if let Some(mixing) = &o.mixing {
        print_beside("mixing     ", &mixing.to_string())?;
    }
    Ok(())
}

fn print_order(title: &str, order: &RecipeStages) -> Result<()> {
    output::lines(&format!(
        "\n{title}: {:.2} MiB a sample\n{:>12} {:>5} {:>12} {:>12}  stage",
        mib(order.scratch_bytes),
        "width,height",
        "type",
        "image MiB",
        "held MiB"
    ))?;
    for stage in &order.stages {
        let head = format!(
            "{:>12} {:>5} {:>12.2} {:>12.2}  ",
            format!("{}x{}", stage.width, stage.height),
            stage.element,
            mib(stage.picture_bytes),
            mib(stage.held_bytes),
        );
        print_beside(&head, &stage.name)?;
    }
    Ok(())
}

fn print_moves(word: &str, moves: &[OperationMove]) -> Result<()> {
    if !moves.is_empty() {
        output::line("")?;
    }
    for m in moves {
        let effect = if m.exact { "exact" } else { "changes values" };
        let text = format!("{} after {} ({effect}): {}", m.op, m.behind, m.why);
        print_beside(&format!("{word:<10} "), &text)?;
    }
    Ok(())
}

fn print_memory(m: &RunMemory, upload: Option<&UploadChoice>) -> Result<()> {
    output::line("")?;
    let row =
        |bytes: u64, text: &str| print_beside(&format!("{:>10.1} MiB ", mib_at_most(bytes)), text);
    let slots = if m.depth == 1 { "slot" } else { "slots" };
    let ring = format!(
        "ring: {} {slots} of {} rows, shared by all",
        m.depth, m.batch
    );
    row(m.ring_bytes, &ring)?;
    let worker = format!(
        "for each of {} workers: {:.1} of scratch, {:.1} of input, the process",
        m.workers,
        mib_at_most(m.scratch_bytes),
        mib_at_most(m.input_bytes)
    );
    row(m.worker_bytes, &worker)?;
    row(m.fixed_bytes, "consumer, coordinator, index")?;
    if m.kept_picture_bytes > 0 {
        let text = "pictures of `partner_window`, shared by all";
        row(m.kept_picture_bytes, text)?;
    }
    if let Some(choice) = upload {
        let limit = choice.limit_bytes.map_or(String::new(), |bytes| {
            format!(
                " (--gpu-memory-limit allows {})",
                error::size_rounded_down(bytes)
            )
        });
        let device = format!(
            "on the device, without its context{limit}; upload {}: {}",
            choice.upload, choice.why
        );
        row(m.device_bytes, &device)?;
    }
    let cache = match m.page_cache_bytes {
        0 => String::new(),
        bytes => format!(
            ", without the page cache of mapped shards ({} at most)",
            error::size(bytes)
        ),
    };
    let all = format!("in all: PSS of all processes at most{cache}");
    row(m.total_bytes, &all)
}

fn parse_size(text: &str) -> std::result::Result<(u32, u32), String> {
    let (height, width) = text
        .split_once('x')
        .ok_or("it must be HxW, such as 1080x1920")?;
    let side = |s: &str| match s.parse::<u32>() {
        Ok(n) if (1..=65_535).contains(&n) => Ok(n),
        _ => Err(format!("'{s}' is not a number from 1 to 65535")),
    };
    Ok((side(height)?, side(width)?))
}

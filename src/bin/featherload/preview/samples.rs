//! Selects the samples, reads their originals, and draws from the recipe.
//!
//! Uses three loaders, one after the other. The user's own loader, without workers, gives the
//! order. One loader reads whole images. One makes the draws: each epoch is one draw.

use std::path::PathBuf;

use featherload::index::{ClassList, Index, Label};
use featherload::options::UploadOption;
use featherload::order::EpochPlan;
use featherload::recipe::{ColorOrder, Op};
use featherload::{
    Batch, BatchLabels, DataType, DecodeMode, Device, DrawnRow, EpochTail, Error, LoaderBuilder,
    MemoryLayout, OnError, Position, Rank, RasterList, Recipe, Result, RowStatus, Sampler,
};
use image::RgbImage;
use serde::Serialize;
use tracing::subscriber::NoSubscriber;

use super::args::PreviewArgs;
use super::corners::{self, RowCorners};
use super::draw_text;
use super::levels::ScreenLevels;
use super::mask_overlay;
use super::object_overlay;
use super::picture_size;
use super::raster_picture;
use crate::index::print_skipped;
use crate::setup::RunSetup;

/// Most processes for this small number of rows.
const WORKERS: usize = 2;

/// All that is shown.
pub struct SamplePreview {
    pub source: String,
    pub recipe: String,
    pub seed: u64,
    pub samples: Vec<PreviewSample>,
}

/// One sample, with its draws. Field names are part of the `--json` format.
#[derive(Serialize)]
pub struct PreviewSample {
    pub id: u64,
    #[serde(serialize_with = "crate::output::lossy")]
    pub path: PathBuf,
    /// The class's name, or the label itself. None without labels.
    pub label: Option<String>,
    /// Width and height.
    pub size: Option<(u32, u32)>,
    /// Why the original is missing.
    pub fault: Option<String>,
    #[serde(skip)]
    pub original: Option<RgbImage>,
    pub draws: Vec<SampleDraw>,
}

/// One draw of the recipe for a sample, or a crop of one.
#[derive(Serialize, Default)]
pub struct SampleDraw {
    /// The number of the crop, if the recipe makes several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crop: Option<usize>,
    /// The name of the raster that it shows, if it shows none of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raster: Option<String>,
    /// The label, if it differs from the sample's: mixed, or drawn.
    pub label: Option<String>,
    /// Corners of the row on the original: clockwise, starting with the row's upper left.
    pub corners: Option<RowCorners>,
    /// The drawn values, as text.
    pub said: Vec<String>,
    pub fault: Option<String>,
    #[serde(skip)]
    pub picture: Option<RgbImage>,
}

impl PreviewSample {
    /// Id, label and size.
    pub fn title(&self) -> String {
        let mut title = format!("{}", self.id);
        if let Some(label) = &self.label {
            title.push_str(&format!("  {label}"));
        }
        if let Some((width, height)) = self.size {
            title.push_str(&format!("  {width} x {height}"));
        }
        title
    }
}

impl SampleDraw {
    /// The draw for `sample`, or why it is missing. None if the sample itself has failed.
    pub fn words(&self, sample: &PreviewSample) -> Option<String> {
        if let Some(fault) = &self.fault {
            return Some(fault.clone()).filter(|_| sample.fault.is_none());
        }
        let crop = self.crop.map(|crop| format!("crop {crop}"));
        let named = crop.iter().chain(&self.raster);
        let said = named.chain(&self.label).chain(&self.said);
        let words = said.map(String::as_str).collect::<Vec<_>>().join(", ");
        Some(words).filter(|words| !words.is_empty())
    }
}

/// Reads the samples of `args`.
pub fn read(args: &PreviewArgs) -> Result<SamplePreview> {
    let setup = RunSetup::new(&args.loader, &args.source)?;
    setup.warn();
    let recipe = setup.options.recipe()?;
    let rasters = setup.options.loader.rasters.iter();
    let crops = shown_crops(&recipe).len() + rasters.map(RasterList::len).sum::<usize>();
    let rows = match args.ids.len() {
        0 => args.rows as usize,
        ids => ids,
    };
    picture_size::check_size(rows, args.draws, crops, args.side)?;
    let (index, ids) = choose(args)?;
    let samples = (0..).zip(&ids).map(|(at, &id)| PreviewSample {
        id,
        path: index.path(at),
        label: label_of(index.label(at), index.classes()),
        size: None,
        fault: None,
        original: None,
        draws: Vec::new(),
    });
    let mut samples: Vec<PreviewSample> = samples.collect();
    let all: Vec<u64> = (0..index.len()).collect();
    originals(args, &recipe, index.subset(&all)?, &mut samples)?;
    draws(args, &recipe, index, &mut samples)?;
    Ok(SamplePreview {
        source: setup.options.source_name(),
        recipe: recipe.name,
        seed: setup.seed(),
        samples,
    })
}

/// The shown samples as a separate index, and their ids in the data set.
fn choose(args: &PreviewArgs) -> Result<(Index, Vec<u64>)> {
    let setup = on_cpu(args)?;
    if !args.ids.is_empty() && setup.options.loader.objects.is_none() {
        let (index, scan) = setup.options.data()?.open()?;
        print_skipped(scan.as_ref());
        return Ok((index.subset(&args.ids)?, args.ids.clone()));
    }
    // Without this, a recipe whose rows differ in size would read all headers.
    let builder = setup
        .builder(setup.options.data()?)?
        .recipe(Recipe::eval224());
    let loader = builder.num_workers(0).build()?;
    print_skipped(loader.scan_report());
    let ids = match args.ids.is_empty() {
        true => first(loader.plan(), args.rows),
        false => args.ids.clone(),
    };
    Ok((loader.index().subset(&ids)?, ids))
}

/// The first samples of the first epoch, each once.
fn first(plan: &EpochPlan, rows: u32) -> Vec<u64> {
    let mut ids = Vec::new();
    let batches = (0..plan.batches()).flat_map(|batch| {
        let at = plan.mark(0, batch);
        (0..plan.filled_rows_at(at)).map(move |row| (at, row))
    });
    for (at, row) in batches {
        let id = plan.row_at(at, row).id;
        if !ids.contains(&id) {
            ids.push(id);
        }
        if ids.len() == rows as usize {
            break;
        }
    }
    ids
}

/// The setup of the arguments, with batches on the CPU.
fn on_cpu(args: &PreviewArgs) -> Result<RunSetup<'_>> {
    let mut setup = RunSetup::new(&args.loader, &args.source)?;
    if matches!(setup.options.loader.sampler, Some(Sampler::Buckets(_))) {
        return Err(Error::config(
            "preview shows rows of one size, and buckets have several: remove --sampler buckets, and \
             the size of cover_crop is shown",
        ));
    }
    if matches!(
        setup.options.loader.sampler,
        Some(Sampler::PatchBudget { .. })
    ) {
        return Err(Error::config(
            "preview shows chosen rows, and a budget of patches makes batches of all images: remove \
             --sampler patch-budget",
        ));
    }
    setup.options.clear_multi_scale();
    let said = &mut setup.options.loader;
    (said.device, said.upload, said.gpu_memory_limit) = (Device::Cpu, UploadOption::Auto, None);
    (said.decode_on, said.memory_limit) = (None, None);
    // Originals are shown without masks and rasters, and samples are chosen without them.
    said.masks = None;
    said.rasters.clear();
    Ok(setup)
}

/// A loader of these samples alone, in their order, with `rows` rows a batch.
fn in_order(mut setup: RunSetup<'_>, index: Index, rows: usize) -> Result<LoaderBuilder> {
    // Before the build: ratios and lengths of a config belong to its sampler.
    setup.options.clear_multi_scale();
    setup.options.loader.sampler = Some(Sampler::Sequential);
    let builder = setup.builder(index.into())?;
    Ok(builder
        .batch_size(rows as u32)
        .tail(EpochTail::Short)
        .rank(Rank::default())
        .on_error(OnError::Skip)
        .num_workers(WORKERS.min(rows)))
}

/// Fills in the originals, one a batch. They are decoded as in the recipe, but whole and in RGB.
fn originals(
    args: &PreviewArgs,
    recipe: &Recipe,
    index: Index,
    samples: &mut [PreviewSample],
) -> Result<()> {
    let decode = recipe.all_ops().find_map(|op| match op {
        Op::Decode(decode) => Some(*decode),
        _ => None,
    });
    let mut decode = decode.unwrap_or_default();
    (decode.color, decode.mode) = (ColorOrder::Rgb, Some(DecodeMode::Full));
    let whole = Recipe::new("originals")
        .then(decode)
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc);
    let builder = in_order(on_cpu(args)?, index, 1)?.recipe(whole.clone());
    let build = || builder.depth(2).epochs(1).build();
    // Its warnings do not concern the user's run.
    let mut loader = tracing::subscriber::with_default(NoSubscriber::default(), build)?;
    let levels = ScreenLevels::of(&whole);
    let form = loader.object_form().cloned();
    for batch in loader.epoch() {
        let batch = batch?;
        let Some(sample) = samples.get_mut(batch.ids()[0] as usize) else {
            continue;
        };
        sample.fault = fault_of(&batch, 0);
        if sample.fault.is_none() {
            let picture = levels.picture(&batch, 0, None)?;
            let picture = object_overlay::drawn(picture, &batch, 0, form.as_ref())?;
            sample.size = Some(picture.dimensions());
            sample.original = Some(picture);
        }
    }
    Ok(())
}

/// The crops of a sample, each with what shows it. Without crops: the one image.
fn shown_crops(recipe: &Recipe) -> Vec<(Option<usize>, ScreenLevels)> {
    if recipe.crops.is_empty() {
        return vec![(None, ScreenLevels::of(recipe))];
    }
    let crops = recipe.crops.iter();
    let each = crops.flat_map(|crop| (0..crop.count).map(|_| &crop.recipe));
    each.enumerate()
        .map(|(number, recipe)| (Some(number), ScreenLevels::of(recipe)))
        .collect()
}

/// Fills in the draws, one epoch each, with one batch an epoch.
fn draws(
    args: &PreviewArgs,
    recipe: &Recipe,
    index: Index,
    samples: &mut [PreviewSample],
) -> Result<()> {
    let crops = shown_crops(recipe);
    let setup = RunSetup::new(&args.loader, &args.source)?;
    let epochs = u64::from(args.draws);
    let mut recipe = recipe.clone();
    for op in &mut recipe.ops {
        // They depend on the size of a batch, which is the recipe's here.
        if let Op::RandAugment(op) = op {
            (op.sizes, op.magnitudes) = (Vec::new(), Vec::new());
        }
    }
    let mut loader = in_order(setup, index, samples.len())?
        .recipe(recipe)
        .epochs(epochs)
        .build()?;
    for _ in 0..epochs {
        let mut batches = Vec::new();
        for batch in loader.epoch() {
            // Copied, so that the next draw never waits for the batch.
            batches.push(batch?.to_host()?.detach()?);
        }
        for batch in &batches {
            let drawn = loader.drawn(Position::new(batch.epoch(), batch.number()));
            for (row, drawn) in drawn.iter().enumerate() {
                let Some(sample) = samples.get_mut(drawn.id as usize) else {
                    continue;
                };
                for (crop, levels) in &crops {
                    let mut draw = draw(batch, (row, drawn, *crop), levels, sample)?;
                    if let (Some(objects), Some(form)) = (batch.objects(), loader.object_form()) {
                        let picture = draw
                            .picture
                            .take()
                            .map(|picture| object_overlay::drawn(picture, batch, row, Some(form)));
                        draw.picture = picture.transpose()?;
                        draw.said
                            .extend(object_overlay::counted(objects, row, form));
                    }
                    if draw.label.is_none() {
                        let label = label_in(batch.labels(), row, loader.index().classes());
                        draw.label = label.filter(|label| sample.label.as_ref() != Some(label));
                    }
                    let is_failed = draw.fault.is_some();
                    sample.draws.push(draw);
                    if !is_failed {
                        let rasters = batch.raster_names();
                        let shown = rasters.map(|name| raster_draw(batch, row, name, levels));
                        sample.draws.extend(shown.collect::<Result<Vec<_>>>()?);
                    }
                }
            }
        }
    }
    Ok(())
}

fn draw(
    batch: &Batch,
    (row, drawn, crop): (usize, &DrawnRow, Option<usize>),
    levels: &ScreenLevels,
    sample: &PreviewSample,
) -> Result<SampleDraw> {
    if let Some(fault) = fault_of(batch, row) {
        return Ok(SampleDraw {
            crop,
            fault: Some(fault),
            ..SampleDraw::default()
        });
    }
    let steps = drawn.steps.as_ref().map(|drawn| drawn.steps.as_slice());
    let steps = steps.unwrap_or_default();
    let of_crop: Vec<_> = match crop {
        None => steps.to_vec(),
        Some(crop) => {
            let prefix = format!("crop {crop}: ");
            let own = steps.iter().filter(|(name, _)| name.starts_with(&prefix));
            own.cloned().collect()
        }
    };
    let steps = &of_crop[..];
    let joints = drawn.steps.as_ref().map(|drawn| drawn.joints.as_slice());
    let joints = joints.unwrap_or_default();
    Ok(SampleDraw {
        crop,
        raster: None,
        label: drawn.label.map(|label| format!("label {label}")),
        // A row of several samples shows more than the original.
        corners: sample
            .size
            .filter(|_| joints.is_empty())
            .map(|size| corners::of(size, steps)),
        said: [draw_text::of_joints(joints), draw_text::of(steps)].concat(),
        fault: None,
        picture: Some(mask_overlay::drawn(
            levels.picture(batch, row, crop)?,
            batch,
            row,
        )?),
    })
}

/// What shows a raster of a row, beside its draw.
fn raster_draw(batch: &Batch, row: usize, name: &str, levels: &ScreenLevels) -> Result<SampleDraw> {
    Ok(SampleDraw {
        raster: Some(name.to_owned()),
        picture: Some(raster_picture::drawn(batch, row, name, levels)?),
        ..SampleDraw::default()
    })
}

/// Why a row has no pixels. None if it has pixels.
fn fault_of(batch: &Batch, row: usize) -> Option<String> {
    if batch.status().get(row) != Some(&RowStatus::Failed) {
        return None;
    }
    let fault = batch.faults().iter().find(|fault| fault.row == row);
    Some(fault.map_or_else(
        || "no pixels".to_owned(),
        |f| format!("{}: {}", f.fault.kind.name(), f.fault.reason),
    ))
}

fn label_of(label: Label<'_>, classes: &ClassList) -> Option<String> {
    match label {
        Label::None | Label::Class(-1) => None,
        Label::Class(class) => Some(class_name(class, classes)),
        Label::Vector(vector) => Some(shares(&vector.iter().collect::<Vec<_>>(), classes)),
    }
}

fn label_in(labels: &BatchLabels, row: usize, classes: &ClassList) -> Option<String> {
    match labels {
        BatchLabels::Classes(all) => {
            let class = all.get(row).copied().filter(|class| *class >= 0)?;
            Some(class_name(class, classes))
        }
        BatchLabels::Vectors { width, values } => {
            let vector = values.get(row * width..(row + 1) * width)?;
            Some(shares(vector, classes))
        }
        _ => None,
    }
}

fn class_name(class: i64, classes: &ClassList) -> String {
    let name = classes.name(class).map(|name| name.to_string_lossy());
    name.map_or_else(|| class.to_string(), |name| name.into_owned())
}

/// A vector over the classes as its two largest entries. Another short vector as it is.
fn shares(vector: &[f32], classes: &ClassList) -> String {
    let sum: f32 = vector.iter().sum();
    if (sum - 1.0).abs() > 1e-3 {
        let numbers: Vec<String> = vector.iter().take(6).map(|v| format!("{v:.2}")).collect();
        return numbers.join(" ");
    }
    let mut order: Vec<usize> = (0..vector.len()).collect();
    order.sort_by(|a, b| vector[*b].total_cmp(&vector[*a]));
    let parts = order.iter().take(2).filter(|i| vector[**i] > 0.0);
    let parts = parts.map(|i| match vector[*i] {
        1.0 => class_name(*i as i64, classes),
        part => format!("{part:.2} {}", class_name(*i as i64, classes)),
    });
    parts.collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_labels_are_said_as_shares() {
        let classes = ClassList::new(["ant", "bee", "cat"]).unwrap();
        assert_eq!(shares(&[0.25, 0.0, 0.75], &classes), "0.75 cat + 0.25 ant");
        assert_eq!(shares(&[0.0, 1.0, 0.0], &classes), "bee");
        assert_eq!(shares(&[4.0, 2.5], &classes), "4.00 2.50");
    }
}

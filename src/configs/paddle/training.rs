//! One tree of a config, and the loader that it describes.
//!
//! Runs in the consumer or the CLI. Never in here: the meaning of a single name in a config.

use std::path::{Path, PathBuf};

use super::note::{ConfigNote, NoteList, SkippedOperation};
use super::options::ConfigOptions;
use super::params::{ConfigParams, ConfigResult};
use super::{batch, dataset, ops, sampler, tree};
use crate::data::index::{CifarOptions, ListOptions};
use crate::error::{Error, Result};
use crate::loader::{LoaderBuilder, OnError, Source};
use crate::order::{EpochLength, EpochTail, IdentityRatio, MultiScale, Rank, Sampler};
use crate::recipe::file::{self, NodeValue, TreeNode};
use crate::recipe::{Recipe, RecipeFormat, ReorderMode, SampleProgram};

/// The settings of one tree of a config for a loader.
#[derive(Debug)]
#[non_exhaustive]
pub struct TrainingConfig {
    pub recipe: Recipe,
    pub sampler: Sampler,
    /// Rows per batch. With several sizes, of the first size.
    pub batch: u32,
    pub tail: EpochTail,
    pub multi_scale: Option<MultiScale>,
    /// PKSampler's `id_list` and `ratio`.
    pub identity_ratios: Vec<IdentityRatio>,
    pub epoch_length: EpochLength,
    /// The rank of this process.
    pub rank: Rank,
    pub seed: u64,
    pub workers: usize,
    /// `Global.epochs`, for the caller. Nothing here uses it.
    pub epochs: Option<u64>,
    /// `Arch.class_num`.
    pub class_num: Option<u32>,
    pub notes: Vec<ConfigNote>,
    pub skipped: Vec<SkippedOperation>,
    /// The list of the data set, if this kind has one.
    pub list: Option<PathBuf>,
    /// Options for reading the list. Paths are relative to the working directory.
    pub list_options: ListOptions,
    /// For CIFAR batches: which samples are read.
    pub cifar: Option<CifarOptions>,
    /// The folder of the CIFAR batches, if the config has it.
    pub cifar_folder: Option<PathBuf>,
    origin: PathBuf,
    /// Line of each operation, from 1.
    lines: Vec<u64>,
}

impl TrainingConfig {
    /// Whether a file is a config: YAML with `DataLoader` and without `featherload`. Also false if
    /// it cannot be read.
    pub fn is_config(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        matches!(RecipeFormat::of(path), Ok(RecipeFormat::Yaml))
            && file::read_text(path)
                .and_then(|text| file::parse_tree(&text, RecipeFormat::Yaml, path))
                .is_ok_and(|root| tree::is_config(&root))
    }

    /// Reads the tree `mode` (`train`, `eval`, `eval.query`; case-insensitive) of the config at
    /// `path`.
    ///
    /// # Errors
    /// One line with the file, the line, what is wrong and the fix. Or the environment variable
    /// without a valid rank.
    pub fn read(path: impl AsRef<Path>, mode: &str, options: &ConfigOptions) -> Result<Self> {
        let path = path.as_ref();
        Self::from_text(&file::read_text(path)?, path, mode, options)
    }

    /// Reads a config from text. `origin` is its name in errors. Without its extension it is the
    /// name of the recipe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_text(
        text: &str,
        origin: impl AsRef<Path>,
        mode: &str,
        options: &ConfigOptions,
    ) -> Result<Self> {
        let origin = origin.as_ref();
        let root = file::parse_tree(text, RecipeFormat::Yaml, origin)?;
        let mut training = translate(&root, origin, mode, options)
            .map_err(|e| Error::dataset_line(origin, e.line() as u64, e.to_string()))?;
        let (rank, note) = options.environment.rank()?;
        training.rank = rank;
        training
            .notes
            .extend(note.map(|text| ConfigNote { line: None, text }));
        Ok(training)
    }

    /// Checks the recipe.
    ///
    /// # Errors
    /// One line with the config's name and the line of the operation.
    pub fn check(&self) -> Result<()> {
        SampleProgram::check(&self.recipe).map_err(|fault| {
            match fault.op.and_then(|op| self.lines.get(op)) {
                Some(line) => Error::dataset_line(&self.origin, *line, fault.message),
                None => Error::dataset(&self.origin, fault.message),
            }
        })
    }

    /// The data set of the config.
    ///
    /// # Errors
    /// If this kind of data set has no list. The caller must give another source.
    pub fn source(&self) -> Result<Source> {
        match (&self.list, &self.cifar, &self.cifar_folder) {
            (Some(list), ..) => Ok(Source::List(list.clone(), self.list_options.clone())),
            (None, Some(options), Some(folder)) => {
                Ok(Source::Cifar(folder.clone(), options.clone()))
            }
            (None, Some(_), None) => Err(Error::dataset(
                &self.origin,
                "data_file is not written, and nothing is downloaded: give the folder that CIFAR's \
                 archive is unpacked to as the source",
            )),
            (None, None, _) => Err(Error::dataset(
                &self.origin,
                "its data set has no list: give one with lines of path and label as the source \
                 (`list`)",
            )),
        }
    }

    /// A loader with these settings over `source`. The next sample takes the row of a failed one.
    /// The number of epochs is unlimited.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn builder(&self, source: Source) -> Result<LoaderBuilder> {
        self.check()?;
        let mut builder = crate::loader::Loader::builder(source)
            .recipe(self.recipe.clone())
            .batch_size(self.batch)
            .sampler(self.sampler)
            .identity_ratios(self.identity_ratios.clone())
            .epoch_length(self.epoch_length)
            .tail(self.tail)
            .rank(self.rank)
            .seed(self.seed)
            .num_workers(self.workers)
            .on_error(OnError::Substitute);
        if let Some(scales) = &self.multi_scale {
            builder = builder.multi_scale(scales.clone());
        }
        Ok(builder)
    }
}

fn translate(
    root: &TreeNode,
    origin: &Path,
    mode: &str,
    options: &ConfigOptions,
) -> ConfigResult<TrainingConfig> {
    if !tree::is_config(root) {
        return Err(root
            .at
            .mistake("is not a PaddleClas config: one has 'DataLoader', and no 'featherload'"));
    }
    let mut notes = NoteList::default();
    let mut skipped = Vec::new();
    let tree = tree::find(root, mode)?;
    let global = section(root, "Global")?;
    let class_num = section(root, "Arch")?.map(|mut arch| arch.whole("class_num"));
    let class_num = class_num.transpose()?.flatten();
    let (seed, epochs, is_progressive) = match global {
        None => (0, None, false),
        Some(mut global) => {
            if let Some(node) = global.node("use_dali")
                && node.value == NodeValue::Bool(true)
            {
                notes.at(
                    node.at,
                    "use_dali is true: operations have the meaning of PaddleClas' CPU path, not \
                     DALI's",
                );
            }
            (
                global.whole("seed")?.unwrap_or(0).into(),
                global.whole("epochs")?.map(u64::from),
                matches!(global.text("train_mode"), Ok(Some("progressive"))),
            )
        }
    };
    let part = |name: &str| tree.get(name).filter(|node| node.value != NodeValue::Null);
    let missing = |name: &str| tree.at.mistake(format!("'{name}' is missing in the tree"));
    let dataset = dataset::read(
        part("dataset").ok_or_else(|| missing("dataset"))?,
        &mut notes,
    )?;
    let order = sampler::read(
        part("sampler").ok_or_else(|| missing("sampler"))?,
        dataset.multi_scale,
        &mut notes,
    )?;
    let workers = sampler::workers(part("loader"), options.usable_cpus, &mut notes)?;
    let rules = ops::OpListRules {
        opener: dataset.opener,
        multi_scale: dataset.multi_scale,
        label_key: dataset.label_key,
        skip_unknown: options.skip_unknown_ops,
        progressive: is_progressive && mode.eq_ignore_ascii_case("train"),
    };
    let ops::TranslatedOps {
        ops,
        mut lines,
        stages,
    } = ops::translate(dataset.transform_ops, &rules, &mut notes, &mut skipped)?;
    let multi_scale = match (stages.is_empty(), epochs) {
        (true, _) => order.multi_scale,
        (false, None) => {
            return Err(dataset.transform_ops.at.mistake(
                "progress_size needs Global.epochs, of which each stage is a quarter: write them",
            ));
        }
        (false, Some(epochs)) => {
            let sizes = stages.iter().map(|size| (size.height, size.width));
            let scales = MultiScale::by_epoch(ops::first_epochs(epochs).into_iter().zip(sizes));
            notes.general(format!("progress_size: rows are {scales}"));
            Some(scales)
        }
    };
    let mixing = match dataset.batch_transform_ops {
        None => None,
        Some(list) => {
            let rules = batch::BatchOpRules {
                class_num,
                skip_unknown: options.skip_unknown_ops,
            };
            batch::translate(list, &rules, &mut notes, &mut skipped)?
        }
    };
    let mixing = mixing.map(|(mixing, of_mixing)| {
        lines.extend(of_mixing);
        mixing
    });
    let (cifar_folder, cifar) = dataset.cifar.unzip();
    notes.general(
        "a failed image's row goes to the next image. PaddleClas takes any (`on_error` changes \
         it)",
    );
    let stem = origin.file_stem().unwrap_or_default();
    Ok(TrainingConfig {
        recipe: Recipe {
            name: stem.to_string_lossy().into(),
            reorder: Some(ReorderMode::Exact),
            ops,
            mixing,
            crops: Vec::new(),
        },
        sampler: order.sampler,
        batch: order.batch,
        tail: order.tail,
        multi_scale,
        identity_ratios: order.ratios,
        epoch_length: order.length,
        rank: Rank::default(),
        seed,
        workers,
        epochs,
        class_num,
        notes: notes.0,
        skipped,
        list: dataset.list,
        list_options: dataset.options,
        cifar: cifar.map(|options| CifarOptions { seed, ..options }),
        cifar_folder: cifar_folder.flatten(),
        origin: origin.to_owned(),
        lines,
    })
}

/// A top-level section. It may have other keys.
fn section<'a>(root: &'a TreeNode, name: &'a str) -> ConfigResult<Option<ConfigParams<'a>>> {
    let node = root.get(name);
    node.map(|node| ConfigParams::of(name, node.at, node))
        .transpose()
}

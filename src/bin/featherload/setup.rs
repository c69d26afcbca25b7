//! What the arguments say together with the PaddleClas config that `--recipe` may
//! name: the config's values stand, and flags that are given override them.

use std::time::Duration;

use featherload::internals::Drilled;
use featherload::measure::system::default_workers;
use featherload::paddle::Training;
use featherload::{Error, Launch, Loader, LoaderBuilder, OnError, Recipe, Result, Source};

use crate::flags;
use crate::output;
use crate::run_args::LoaderArgs;
use crate::source_args::SourceArgs;

/// Rows of a batch, where nobody says another number.
const BATCH: u32 = 64;

pub struct Setup<'a> {
    loader: &'a LoaderArgs,
    source: &'a SourceArgs,
    training: Option<Training>,
}

impl<'a> Setup<'a> {
    /// Reads the config, if there is one.
    pub fn new(loader: &'a LoaderArgs, source: &'a SourceArgs) -> Result<Self> {
        let training = loader.training()?;
        Ok(Self {
            loader,
            source,
            training,
        })
    }

    /// Whether somebody said where samples come from.
    pub fn has_data(&self) -> bool {
        self.training.is_some() || self.source.is_given()
    }

    pub fn has_config(&self) -> bool {
        self.training.is_some()
    }

    pub fn source(&self) -> Result<Source> {
        self.source.source(self.training.as_ref())
    }

    /// What people call the data set.
    pub fn source_name(&self) -> String {
        let list = self.training.as_ref().and_then(|t| t.list.as_deref());
        self.source.name(list)
    }

    pub fn recipe(&self) -> Result<Recipe> {
        let recipe = match &self.training {
            Some(training) => {
                training.check()?;
                training.recipe.clone()
            }
            None => Recipe::load(&self.loader.recipe)?,
        };
        Ok(self.loader.overridden(recipe))
    }

    pub fn batch(&self) -> u32 {
        let of_config = self.training.as_ref().map(|t| t.batch);
        self.loader.batch.or(of_config).unwrap_or(BATCH)
    }

    /// Workers, `given` by a flag or not; none leaves it to the library.
    pub fn workers(&self, given: Option<usize>) -> Option<usize> {
        given.or(self.training.as_ref().map(|t| t.workers))
    }

    /// How many workers the run has, those included that are being replaced.
    pub fn worker_count(&self, given: Option<usize>) -> usize {
        self.workers(given).unwrap_or_else(default_workers)
    }

    /// What the config left to say, one line each.
    pub fn notes(&self) -> Vec<String> {
        let Some(training) = &self.training else {
            return Vec::new();
        };
        let name = &self.loader.recipe;
        let skipped = training
            .skipped
            .iter()
            .map(|op| format!("{name}:{}: {} is left out", op.line, op.name));
        let notes = training.notes.iter().map(|note| match note.line {
            Some(line) => format!("{name}:{line}: {}", flags::in_ticks(&note.text)),
            None => format!("{name}: {}", flags::in_ticks(&note.text)),
        });
        skipped.chain(notes).collect()
    }

    /// Says on stderr what `--skip-unknown-ops` left out: batches lack it.
    pub fn warn(&self) {
        for op in self.training.iter().flat_map(|t| &t.skipped) {
            let (name, line) = (&self.loader.recipe, op.line);
            output::complain(&format!(
                "featherload: {name}:{line}: {} is left out",
                op.name
            ));
        }
    }

    /// The loader that all of it describes; workers and epochs are open.
    pub fn builder(&self, source: Source) -> Result<LoaderBuilder> {
        let (args, training) = (self.loader, self.training.as_ref());
        let on_error = match training {
            Some(_) => OnError::Substitute,
            None => OnError::Stop,
        };
        let sampler = args.sampler.sampler(training.map(|t| t.sampler))?;
        let scales = args.sampler.multi_scale(sampler)?;
        let mut b = Loader::builder(source)
            .recipe(self.recipe()?)
            .batch_size(self.batch())
            .seed(args.seed.or(training.map(|t| t.seed)).unwrap_or(0))
            .sampler(sampler)
            .tail(args.tail().or(training.map(|t| t.tail)).unwrap_or_default())
            .rank(args.rank.or(training.map(|t| t.rank)).unwrap_or_default())
            .row_limit(Duration::from_millis(args.row_limit))
            .on_error(args.on_error().unwrap_or(on_error))
            .launch(args.launch())
            // Whatever FEATHERLOAD_HELPER names for other programs.
            .helper(std::env::current_exe().map_err(|e| Error::io("find this executable", e))?)
            .device(args.device);
        if let Some(upload) = args.upload.asked() {
            b = b.upload(upload);
        }
        if let Some(bytes) = args.gpu_memory_limit {
            b = b.gpu_memory_limit(bytes);
        }
        if let Some(slots) = args.depth {
            b = b.depth(slots);
        }
        if let Some(bytes) = args.memory_limit {
            b = b.memory_limit(bytes);
        }
        if let Some(scales) = scales.or_else(|| training.and_then(|t| t.multi_scale.clone())) {
            b = b.multi_scale(scales);
        }
        // They are of the config's order, and go with it.
        if let Some(training) = training.filter(|t| t.sampler == sampler) {
            b = b
                .identity_ratios(training.identity_ratios.clone())
                .epoch_length(training.epoch_length);
        }
        if let Some(pixels) = args.max_pixels {
            b = b.max_pixels(pixels);
        }
        if let Some(mib) = args.max_scratch {
            b = b.max_scratch(mib << 20);
        }
        if let Some(ms) = args.kill_workers_every {
            b = b.kill_workers_every(Duration::from_millis(ms));
        }
        Ok(b)
    }

    /// Refuses flags that say nothing without a data set.
    pub fn refuse_without_data(&self) -> Result<()> {
        let (a, s) = (self.loader, self.source);
        let flags = [
            ("--sampler", a.sampler.is_given()),
            ("--rank", a.rank.is_some()),
            ("--max-pixels", a.max_pixels.is_some()),
            ("--max-scratch", a.max_scratch.is_some()),
            ("--gpu-memory-limit", a.gpu_memory_limit.is_some()),
            (
                "--root, --delimiter, --classes and the like",
                s.has_options(),
            ),
        ];
        match flags.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(Error::config(format!(
                "{flag} says nothing without a data set: give SRC"
            ))),
        }
    }
}

/// As the arguments spell them.
impl LoaderArgs {
    fn launch(&self) -> Launch {
        match self.launch {
            crate::run_args::How::Exec => Launch::Exec,
            crate::run_args::How::Fork => Launch::Fork,
        }
    }
}

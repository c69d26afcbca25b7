//! The library's setup of what the arguments say, and what only the command line adds:
//! how the pool is launched, drills, and texts with flags in them.

use std::time::Duration;

use featherload::internals::Drilled;
use featherload::measure::system::default_workers;
use featherload::options::{self, LoaderOptions, SourceOptions};
use featherload::{DecodeOn, Device, Error, Launch, LoaderBuilder, Recipe, Result, Source};

use crate::flags;
use crate::loader_args::{How, LoaderArgs};
use crate::output;

/// Of rows that are levels.
const NO_NORMALIZE: &str = "rows are u8 levels, which have no room for what normalize makes: it is \
                            not done. For normalized rows use --dtype f32, f16 or bf16";

pub struct Setup<'a> {
    args: &'a LoaderArgs,
    said: options::Setup,
}

impl<'a> Setup<'a> {
    /// Reads the config, if there is one.
    pub fn new(args: &'a LoaderArgs, source: &SourceOptions) -> Result<Self> {
        let mut said = options::Setup::new(source.clone(), args.options.clone())?;
        let of_config = said.training().map(|t| t.sampler);
        let sampler = args.sampler.sampler(of_config)?;
        said.loader.multi_scale = args.sampler.multi_scale(sampler)?;
        said.loader.sampler = Some(sampler);
        Ok(Self { args, said })
    }

    /// Whether somebody said where samples come from.
    pub fn has_data(&self) -> bool {
        self.said.has_data()
    }

    pub fn has_config(&self) -> bool {
        self.said.training().is_some()
    }

    pub fn source(&self) -> Result<Source> {
        self.said.data()
    }

    /// What people call the data set.
    pub fn source_name(&self) -> String {
        self.said.source_name()
    }

    /// The data set as it was typed, or the config's.
    pub fn source_text(&self) -> String {
        let source = &self.said.source;
        let typed = source.list.as_ref().or(source.path.as_ref());
        typed.map_or_else(|| self.source_name(), |path| path.display().to_string())
    }

    pub fn recipe(&self) -> Result<Recipe> {
        self.said.recipe()
    }

    pub fn batch(&self) -> u32 {
        self.said.batch()
    }

    pub fn seed(&self) -> u64 {
        let of_config = self.said.training().map(|t| t.seed);
        self.said.loader.seed.or(of_config).unwrap_or(0)
    }

    /// Where batches end.
    pub fn device(&self) -> Device {
        self.said.loader.device
    }

    /// Which decoders make the pixels of JPEGs.
    pub fn decode_on(&self) -> DecodeOn {
        self.said.loader.decode_on.unwrap_or_default()
    }

    /// What the flags say, for a sub-command that says otherwise.
    pub fn options(&mut self) -> &mut LoaderOptions {
        &mut self.said.loader
    }

    /// Leaves the size of rows to the recipe.
    pub fn clear_multi_scale(&mut self) {
        self.said.clear_multi_scale();
    }

    /// Workers, `given` by a flag or not; none leaves it to the library.
    pub fn num_workers(&self, given: Option<usize>) -> Option<usize> {
        given.or(self.said.num_workers())
    }

    /// How many workers the run has, those included that are being replaced.
    pub fn worker_count(&self, given: Option<usize>) -> usize {
        self.num_workers(given).unwrap_or_else(default_workers)
    }

    /// What the config left to say, one line each.
    pub fn notes(&self) -> Vec<String> {
        let dropped = self.said.drops_normalize().unwrap_or(false);
        let mut all: Vec<String> = dropped
            .then(|| NO_NORMALIZE.to_owned())
            .into_iter()
            .collect();
        let Some(training) = self.said.training() else {
            return all;
        };
        let name = self.args.options.recipe_name();
        let skipped = training
            .skipped
            .iter()
            .map(|op| format!("{name}:{}: {} is left out", op.line, op.name));
        let notes = training.notes.iter().map(|note| match note.line {
            Some(line) => format!("{name}:{line}: {}", flags::in_ticks(&note.text)),
            None => format!("{name}: {}", flags::in_ticks(&note.text)),
        });
        all.extend(skipped.chain(notes));
        all
    }

    /// Prints on stderr what batches lack: operations that `--skip-unknown-ops` left out, and
    /// `normalize` where rows are levels.
    pub fn warn(&self) {
        if self.said.drops_normalize().unwrap_or(false) {
            output::complain(&format!("featherload: {NO_NORMALIZE}"));
        }
        for op in self.said.training().iter().flat_map(|t| &t.skipped) {
            let (name, line) = (self.args.options.recipe_name(), op.line);
            output::complain(&format!(
                "featherload: {name}:{line}: {} is left out",
                op.name
            ));
        }
    }

    /// The loader that all of it describes; workers and epochs are open.
    pub fn builder(&self, source: Source) -> Result<LoaderBuilder> {
        let launch = match self.args.launch {
            How::Exec => Launch::Exec,
            How::Fork => Launch::Fork,
        };
        let mut b = self.said.builder(source)?.launch(launch);
        // Whatever FEATHERLOAD_HELPER names for other programs. Without /proc this one has no
        // name, and no helper either: `build` says so, or needs none with zero workers.
        if let Ok(this) = std::env::current_exe() {
            b = b.helper(this);
        }
        if let Some(ms) = self.args.kill_workers_every {
            b = b.kill_workers_every(Duration::from_millis(ms));
        }
        Ok(b)
    }

    /// Refuses flags that say nothing without a data set.
    pub fn refuse_without_data(&self) -> Result<()> {
        let (a, s) = (self.args, &self.said.source);
        let flags = [
            ("--sampler", a.sampler.is_given()),
            ("--rank", a.options.rank.is_some()),
            ("--max-pixels", a.options.max_pixels.is_some()),
            ("--max-scratch", a.options.max_scratch.is_some()),
            ("--gpu-memory-limit", a.options.gpu_memory_limit.is_some()),
            (
                "--root, --delimiter, --classes and the like",
                s.has_options(),
            ),
        ];
        match flags.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(Error::config(format!(
                "{flag} has no effect without a data set: give SRC"
            ))),
        }
    }
}

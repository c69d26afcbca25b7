//! Converts the arguments to the library's setup. Adds the launch of the pool, drills, and texts
//! with flags.

use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::measure::system::default_workers;
use featherload::options::{self, SourceOptions};
use featherload::{Error, LaunchMethod, LoaderBuilder, Result, Source};

use crate::flags;
use crate::loader_args::{LoaderArgs, RunPlace};
use crate::output;

/// Note for rows without `normalize`.
const NO_NORMALIZE: &str = "rows are u8 levels, which cannot hold normalized values: normalize is \
                            left out. For normalized rows use --dtype f32, f16 or bf16";

pub struct RunSetup<'a> {
    args: &'a LoaderArgs,
    /// Flags and config as the library's setup.
    pub options: options::LoaderSetup,
}

impl<'a> RunSetup<'a> {
    /// Reads the config, if there is one.
    pub fn new(args: &'a LoaderArgs, source: &SourceOptions) -> Result<Self> {
        let mut options = options::LoaderSetup::new(source.clone(), args.options.clone())?;
        let of_config = options.training().map(|t| t.sampler);
        let sampler = args.sampler.sampler(of_config)?;
        options.loader.multi_scale = args.sampler.multi_scale(sampler)?;
        options.loader.sampler = Some(sampler);
        Ok(Self { args, options })
    }

    /// The data set as typed, or the config's.
    pub fn source_text(&self) -> String {
        let source = &self.options.source;
        let typed = source.list.as_ref().or(source.path.as_ref());
        typed.map_or_else(
            || self.options.source_name(),
            |path| path.display().to_string(),
        )
    }

    pub fn seed(&self) -> u64 {
        let of_config = self.options.training().map(|t| t.seed);
        self.options.loader.seed.or(of_config).unwrap_or(0)
    }

    /// The number of workers: `given`, or the config's. None leaves it to the library.
    pub fn num_workers(&self, given: Option<usize>) -> Option<usize> {
        given.or(self.options.num_workers())
    }

    /// The number of workers of the run: `given`, the config's, or the usable CPUs.
    pub fn worker_count(&self, given: Option<usize>) -> usize {
        self.num_workers(given).unwrap_or_else(default_workers)
    }

    /// Notes on missing operations, one line each: operations that `--skip-unknown-ops` left out,
    /// and `normalize` if rows are levels.
    fn missing_operations(&self) -> Vec<String> {
        let dropped = self.options.drops_normalize().unwrap_or(false);
        let dropped = dropped.then(|| NO_NORMALIZE.to_owned());
        let name = self.args.options.recipe_name();
        let skipped = self.options.training().into_iter().flat_map(|t| &t.skipped);
        let skipped = skipped.map(|op| format!("{name}:{}: {} is left out", op.line, op.name));
        dropped.into_iter().chain(skipped).collect()
    }

    /// Like `lacks`, with the other notes about the config.
    pub fn notes(&self) -> Vec<String> {
        let name = self.args.options.recipe_name();
        let notes = self.options.training().into_iter().flat_map(|t| &t.notes);
        let notes = notes.map(|note| match note.line {
            Some(line) => format!("{name}:{line}: {}", flags::in_ticks(&note.text)),
            None => format!("{name}: {}", flags::in_ticks(&note.text)),
        });
        self.missing_operations().into_iter().chain(notes).collect()
    }

    /// Prints the notes on missing operations on stderr.
    pub fn warn(&self) {
        for lack in self.missing_operations() {
            output::print_to_stderr(&format!("featherload: {lack}"));
        }
    }

    /// The loader, without the numbers of workers and epochs.
    pub fn builder(&self, source: Source) -> Result<LoaderBuilder> {
        let launch = match self.args.launch {
            RunPlace::Exec => LaunchMethod::Exec,
            RunPlace::Fork => LaunchMethod::Fork,
        };
        let mut b = self.options.builder(source)?.launch(launch);
        // Ignores FEATHERLOAD_HELPER. Without /proc this executable has no path and there is no
        // helper: `build` reports it, unless there are zero workers.
        if let Ok(this) = std::env::current_exe() {
            b = b.helper(this);
        }
        if let Some(ms) = self.args.kill_workers_every {
            b = b.kill_workers_every(Duration::from_millis(ms));
        }
        Ok(b)
    }

    /// Rejects flags that have no effect without a data set.
    pub fn refuse_without_data(&self) -> Result<()> {
        let (a, s) = (self.args, &self.options.source);
        let flags = [
            ("--sampler", a.sampler.is_given()),
            ("--rank", a.options.rank.is_some()),
            ("--max-pixels", a.options.max_pixels.is_some()),
            ("--max-scratch", a.options.max_scratch.is_some()),
            ("--gpu-memory-limit", a.options.gpu_memory_limit.is_some()),
            (
                "an option of the source (--root, --delimiter, --classes, ...)",
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

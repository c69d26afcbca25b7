//! Options together with a PaddleClas config, if the recipe is one. The config's values hold for
//! options that are not set.
//!
//! In the consumer.

use crate::configs::paddle::{ConfigOptions, LauncherEnvironment, TrainingConfig};
use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::loader::RasterList;
use crate::loader::{Loader, LoaderBuilder, OnError, Source};
use crate::options::{LoaderOptions, SourceOptions};
use crate::order::Sampler;
use crate::recipe::{DataType, Op, Recipe};

/// Calls the builder's method of the same name for each option that is set.
macro_rules! set_given {
    ($builder:ident, $options:expr, $($name:ident)*) => {$(
        if let Some(value) = $options.$name.clone() {
            $builder = $builder.$name(value);
        }
    )*};
}

/// The options, with the config read.
#[derive(Debug)]
pub struct LoaderSetup {
    pub source: SourceOptions,
    pub loader: LoaderOptions,
    training: Option<TrainingConfig>,
}

impl LoaderSetup {
    /// Default rows per batch.
    pub const BATCH: u32 = 64;

    /// Reads the config, if there is one.
    ///
    /// # Errors
    /// A config with errors; options for configs without a config.
    pub fn new(source: SourceOptions, loader: LoaderOptions) -> Result<Self> {
        let training = training(&loader)?;
        Ok(Self {
            source,
            loader,
            training,
        })
    }

    /// The config, if the recipe is one.
    pub fn training(&self) -> Option<&TrainingConfig> {
        self.training.as_ref()
    }

    /// Uses the recipe's row size, whatever the options and the config set.
    pub fn clear_multi_scale(&mut self) {
        self.loader.multi_scale = None;
        if let Some(training) = &mut self.training {
            training.multi_scale = None;
        }
    }

    /// Whether options or config name a data set.
    pub fn has_data(&self) -> bool {
        self.training.is_some() || self.source.is_given()
    }

    /// The data set, not read yet.
    ///
    /// # Errors
    /// As [`SourceOptions::source`].
    pub fn data(&self) -> Result<Source> {
        self.source.source(self.training.as_ref())
    }

    /// Samples that a program lists, which may be addresses, with the options of downloads.
    pub fn listed(&self, index: Index) -> Source {
        self.source.with_fetch_options(Source::from(index))
    }

    /// Name of the data set for people.
    pub fn source_name(&self) -> String {
        let list = self.training.as_ref().and_then(|t| t.list.as_deref());
        self.source.name(list)
    }

    /// The recipe, changed by the options.
    ///
    /// # Errors
    /// A recipe that cannot run, or does not exist.
    pub fn recipe(&self) -> Result<Recipe> {
        Ok(self.loader.overridden(self.own_recipe()?))
    }

    /// The recipe without the options.
    fn own_recipe(&self) -> Result<Recipe> {
        match &self.training {
            Some(training) => {
                training.check()?;
                Ok(training.recipe.clone())
            }
            None => self.loader.recipe(),
        }
    }

    /// Whether the option `dtype` removes a `normalize` from the recipe: integer levels are not
    /// normalized.
    ///
    /// # Errors
    /// As [`LoaderSetup::recipe`].
    pub fn drops_normalize(&self) -> Result<bool> {
        let normalizes = |op: &Op| matches!(op, Op::Normalize(_));
        Ok(self.loader.dtype == Some(DataType::U8) && self.own_recipe()?.all_ops().any(normalizes))
    }

    /// Rows of a batch.
    pub fn batch(&self) -> u32 {
        let of_config = self.training.as_ref().map(|t| t.batch);
        self.loader.batch_size.or(of_config).unwrap_or(Self::BATCH)
    }

    /// Worker processes. None: the builder's default.
    pub fn num_workers(&self) -> Option<usize> {
        self.loader
            .num_workers
            .or(self.training.as_ref().map(|t| t.workers))
    }

    /// The order of an epoch.
    pub fn sampler(&self) -> Sampler {
        let of_config = self.training.as_ref().map(|t| t.sampler);
        self.loader.sampler.or(of_config).unwrap_or_default()
    }

    /// The builder for a loader with all options.
    ///
    /// # Errors
    /// As [`LoaderSetup::recipe`].
    pub fn builder(&self, source: Source) -> Result<LoaderBuilder> {
        let (said, training) = (&self.loader, self.training.as_ref());
        let on_error = match training {
            Some(_) => OnError::Substitute,
            None => OnError::Stop,
        };
        let sampler = self.sampler();
        let mut b = Loader::builder(source)
            .recipe(self.recipe()?)
            .batch_size(self.batch())
            .seed(said.seed.or(training.map(|t| t.seed)).unwrap_or(0))
            .sampler(sampler)
            .tail(
                said.tail()?
                    .or(training.map(|t| t.tail))
                    .unwrap_or_default(),
            )
            .rank(
                said.given_rank()?
                    .or(training.map(|t| t.rank))
                    .unwrap_or_default(),
            )
            .on_error(said.on_error.unwrap_or(on_error))
            .columns(said.columns.iter().flatten().cloned())
            .device(said.device);
        if let Some(n) = self.num_workers() {
            b = b.num_workers(n);
        }
        if let Some(scales) = &said.multi_scale {
            b = b.multi_scale(scales.clone());
        } else if let Some(scales) = training.and_then(|t| t.multi_scale.as_ref()) {
            b = b.multi_scale(scales.clone());
        }
        // These weights belong to the config's sampler.
        if let Some(training) = training.filter(|t| t.sampler == sampler) {
            b = b
                .identity_ratios(training.identity_ratios.clone())
                .epoch_length(training.epoch_length);
        }
        Ok(said.apply_limits(b))
    }
}

impl LoaderOptions {
    /// Sets the options that no config has.
    fn apply_limits(&self, mut b: LoaderBuilder) -> LoaderBuilder {
        if let Some(upload) = self.upload.upload() {
            b = b.upload(upload);
        }
        if self.images == Some(false) {
            b = b.without_images();
        }
        if !self.rasters.is_empty() {
            b = b.rasters(RasterList::joined(self.rasters.iter().cloned()));
        }
        set_given!(b, self,
            captions masks objects sample_weights decode_on gpu_memory_limit depth memory_limit sandbox row_limit
            hold_timeout max_pixels max_scratch epochs start resume helper);
        b
    }
}

/// The config that the recipe names, if it names one.
fn training(said: &LoaderOptions) -> Result<Option<TrainingConfig>> {
    let name = said.recipe_name();
    let preset = Recipe::PRESETS.contains(&name);
    if said.recipe_text.is_none() && !preset && TrainingConfig::is_config(name) {
        let mut options = ConfigOptions::of_process();
        options.skip_unknown_ops = said.skip_unknown_ops;
        if said.rank.is_some() {
            options.environment = LauncherEnvironment::default();
        }
        let mode = said.mode.as_deref().unwrap_or("train");
        return TrainingConfig::read(name, mode, &options).map(Some);
    }
    for (option, given) in [
        ("mode", said.mode.is_some()),
        ("skip_unknown_ops", said.skip_unknown_ops),
    ] {
        if given {
            return Err(Error::option(
                option,
                format!(
                    "`{option}` needs a PaddleClas config, and `recipe: {name}` is not one: \
                         remove it"
                ),
            ));
        }
    }
    Ok(None)
}

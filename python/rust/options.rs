//! Options from Python. They come as JSON: the library defines its options as data
//! (`featherload::options`), so this module needs no list of them.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use featherload::memory_plan::{RecipeOutline, RunMemory, RunShape};
use featherload::options::{LoaderOptions, LoaderSetup, SourceOptions, units};
use featherload::scene::{RaysOptions, SceneOptions, ViewsOptions};
use featherload::{Index, ItemFeed, LoaderBuilder, MaskOptions, RasterList, Recipe, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::errors::{mistake, raised};
use crate::items::RawItems;
use crate::json::json;
use crate::objects::RawObjects;
use crate::wait::in_thread;

/// Default rows of a batch, if neither the caller nor a config sets it. The docs of `Loader` state
/// it.
const BATCH: u32 = 256;

/// Assumed height and width of an image, if no data set is named.
const PICTURE: (u32, u32) = (1080, 1920);

/// A memory plan without a data set.
#[derive(Serialize)]
struct Assumed {
    outline: RecipeOutline,
    memory: RunMemory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoaderKeywords {
    source: SourceOptions,
    loader: LoaderOptions,
}

/// A scene, and the options to read it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SceneRequest {
    pub path: PathBuf,
    pub scene: SceneOptions,
}

/// A run over a scene, and its scene. `None` if the scene was read already.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest<O> {
    #[serde(default)]
    pub path: Option<PathBuf>,
    #[serde(default)]
    pub scene: SceneOptions,
    #[serde(alias = "rays", alias = "views")]
    pub run: O,
}

/// A parsed request for a loader.
pub struct LoaderRequest {
    pub builder: LoaderBuilder,
    pub recipe: Recipe,
    /// Notes about the config.
    pub told: Vec<String>,
}

/// Parses options from Python.
///
/// # Errors
/// A value that an option cannot have, with the option's name.
pub fn parse<T: DeserializeOwned>(py: Python<'_>, text: &str) -> PyResult<T> {
    let from = &mut serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(from).map_err(|e| {
        // "loader.on_error: unknown variant `x`, expected one of ... at line 1 column 9"
        let path = e.path().to_string();
        let mut fields = path.split('.');
        let option = match path.as_str() {
            "source.path" => "src",
            path => {
                let first = fields.next().unwrap_or(path);
                fields.next().unwrap_or(first)
            }
        };
        let why = e.inner().to_string().replace('`', "'");
        let why = why.split(" at line ").next().unwrap_or(&why);
        // For a sampler: its field.
        let field = match (option, fields.next_back()) {
            ("sampler", Some(field)) => format!("{field}: "),
            _ => String::new(),
        };
        mistake(py, option, format!("{option}: {field}{}", in_words(why)))
    })
}

/// Replaces the names of Rust's integer types by ranges.
fn in_words(why: &str) -> String {
    let types = [
        (
            "expected u32",
            format!("expected a whole number from 0 to {}", u32::MAX),
        ),
        (
            "expected u64",
            format!("expected a whole number from 0 to {}", u64::MAX),
        ),
        (
            "expected usize",
            format!("expected a whole number from 0 to {}", usize::MAX),
        ),
        ("expected f64", "expected a number".to_owned()),
        ("expected f32", "expected a number".to_owned()),
    ];
    let known = types.iter().find(|(name, _)| why.ends_with(name));
    known.map_or_else(|| why.to_owned(), |(name, range)| why.replace(name, range))
}

/// A raster whose files Python lists: its name and its files. Masks have the name `masks`.
pub type ListedRaster<'py> = (String, PyRef<'py, RawItems>);

impl LoaderKeywords {
    /// The same options, with files of masks and other rasters that Python lists.
    pub fn with_rasters(mut self, listed: Vec<ListedRaster<'_>>) -> PyResult<Self> {
        let index = |(name, items): ListedRaster<'_>| Ok((name, items.index()?));
        let listed = listed.into_iter().map(index);
        let listed = listed.collect::<PyResult<Vec<(String, Index)>>>()?;
        let (masks, listed): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|(name, _)| name == "masks");
        for (_, masks) in masks {
            let rule = self.loader.masks.take();
            let rule = rule.unwrap_or_else(|| MaskOptions::new(""));
            self.loader.masks = Some(rule.listed(masks));
        }
        if !listed.is_empty() {
            let rasters = RasterList::joined(std::mem::take(&mut self.loader.rasters));
            let rasters = rasters.with_listed(listed).map_err(|e| raised(&e))?;
            self.loader.rasters.push(rasters);
        }
        Ok(self)
    }

    /// The same options, with objects that Python lists.
    pub fn with_objects(mut self, objects: Option<&RawObjects>) -> PyResult<Self> {
        if let Some(objects) = objects {
            let rule = self.loader.objects.take();
            let listed = objects.options().with_rule_of(rule);
            self.loader.objects = Some(listed.map_err(|e| raised(&e))?);
        }
        Ok(self)
    }

    /// Builds the request, with the config if one is named.
    /// `items`: the samples, if no source is named.
    pub fn wanted(self, items: Option<Index>) -> Result<LoaderRequest> {
        let setup = self.setup()?;
        let source = items.map_or_else(|| setup.data(), |index| Ok(setup.listed(index)))?;
        Ok(LoaderRequest {
            builder: setup.builder(source)?,
            recipe: setup.recipe()?,
            told: told(&setup)?,
        })
    }

    fn setup(self) -> Result<LoaderSetup> {
        let mut setup = LoaderSetup::new(self.source, self.loader)?;
        if setup.training().is_none() {
            setup.loader.batch_size.get_or_insert(BATCH);
        }
        Ok(setup)
    }

    /// The memory plan of the run. Without a data set it assumes images of a usual size.
    fn plan(self, items: Option<Index>, feed: Option<&ItemFeed>) -> Result<String> {
        let setup = self.setup()?;
        if let Some(index) = items {
            let builder = setup.builder(setup.listed(index))?;
            let builder = match feed {
                Some(feed) => builder.feed(feed),
                None => builder,
            };
            return json(&builder.memory_plan(0)?);
        }
        if setup.has_data() {
            return json(&setup.builder(setup.data()?)?.memory_plan(0)?);
        }
        let usable = || thread::available_parallelism().map_or(1, NonZero::get);
        let workers = setup.num_workers().unwrap_or_else(usable);
        let shape = RunShape {
            workers: u32::try_from(workers).unwrap_or(u32::MAX),
            batch: setup.batch(),
            depth: setup.loader.depth,
            memory_limit: setup.loader.memory_limit,
        };
        let recipe = setup.recipe()?;
        json(&Assumed {
            outline: RecipeOutline::of(&recipe, PICTURE)?,
            memory: RunMemory::of(&recipe, PICTURE, shape)?,
        })
    }
}

/// Notes about operations that are left out of a config, or of a recipe because of its dtype.
fn told(setup: &LoaderSetup) -> Result<Vec<String>> {
    let left_out = setup.training().into_iter().flat_map(|t| &t.skipped);
    let name = setup.loader.recipe_name();
    let of_config = left_out.map(|op| format!("{name}:{}: {} is left out", op.line, op.name));
    let of_dtype = setup.drops_normalize()?.then(|| {
        format!(
            "{name}: normalize is left out, because uint8 rows hold levels: normalise them \
             later, or set another dtype"
        )
    });
    Ok(of_config.chain(of_dtype).collect())
}

/// The recipe of this name or file, as JSON.
#[pyfunction]
pub fn recipe_json(py: Python<'_>, name: &str) -> PyResult<String> {
    let text = Recipe::load(name).and_then(|recipe| json(&recipe));
    text.map_err(|e| mistake(py, "recipe", e.to_string()))
}

/// The memory plan of a loader with these options, as JSON. Starts nothing. `feed_limit`: the bytes of
/// `items` come while the run goes on, at most this number at one time. `rasters`, `objects`:
/// those that Python lists.
#[pyfunction]
#[pyo3(signature = (options, items=None, feed_limit=None, *, rasters=vec![], objects=None))]
pub fn plan(
    py: Python<'_>,
    options: &str,
    items: Option<&RawItems>,
    feed_limit: Option<u64>,
    rasters: Vec<ListedRaster<'_>>,
    objects: Option<&RawObjects>,
) -> PyResult<String> {
    let options: LoaderKeywords = parse(py, options)?;
    let options = options.with_rasters(rasters)?.with_objects(objects)?;
    let items = items.map(RawItems::index).transpose()?;
    in_thread(py, move || {
        let feed = feed_limit.map(ItemFeed::new).transpose()?;
        options.plan(items, feed.as_ref())
    })
}

/// Parses a size like the command line.
///
/// # Errors
/// A text that is not a size, with the accepted forms.
#[pyfunction]
pub fn size_in_bytes(text: &str) -> PyResult<u64> {
    units::bytes(text).map_err(PyValueError::new_err)
}

/// The names of all options: those of the source, which the package passes on by name, and those of
/// `Loader`.
#[pyfunction]
pub fn option_names() -> (Vec<String>, Vec<String>) {
    (names::<SourceOptions>(), names::<LoaderOptions>())
}

/// Like [`option_names`], for scenes and `Rays`.
#[pyfunction]
pub fn rays_option_names() -> (Vec<String>, Vec<String>) {
    (names::<SceneOptions>(), names::<RaysOptions>())
}

/// Like [`option_names`], for `Views`.
#[pyfunction]
pub fn views_option_names() -> Vec<String> {
    names::<ViewsOptions>()
}

/// The fields of a struct that rejects unknown ones, taken from the text of its error.
fn names<T: DeserializeOwned>() -> Vec<String> {
    let Err(refused) = serde_json::from_str::<T>("{\"?\": 0}") else {
        return Vec::new();
    };
    let text = refused.to_string();
    let listed = text
        .split_once("expected one of")
        .map_or("", |(_, list)| list);
    listed
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

//! What Python asks for. It comes as JSON: the library knows its options as data
//! (`featherload::options`), and there is no third list of them here.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use featherload::memory_plan::{RecipeOutline, RunMemory, RunShape};
use featherload::options::{LoaderOptions, LoaderSetup, SourceOptions, units};
use featherload::scene::{RaysOptions, SceneOptions, ViewsOptions};
use featherload::{Index, LoaderBuilder, Recipe, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::errors::mistake;
use crate::items::RawItems;
use crate::json::json;
use crate::wait::in_thread;

/// Rows of a batch, where neither the caller nor a config says another number: as the
/// docs of `Loader` have it.
const BATCH: u32 = 256;

/// Height and width of a picture, where no data set is named.
const PICTURE: (u32, u32) = (1080, 1920);

/// A plan without a data set.
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

/// A scene, and how it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SceneRequest {
    pub path: PathBuf,
    pub scene: SceneOptions,
}

/// A run over a scene, and that scene; None where it was read already.
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

/// What a text asks for.
pub struct LoaderRequest {
    pub builder: LoaderBuilder,
    pub recipe: Recipe,
    /// Notes about the config.
    pub told: Vec<String>,
}

/// Reads what Python says.
///
/// # Errors
/// A value that an option cannot have, by the option's name.
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
        // Of a sampler: its field.
        let field = match (option, fields.next_back()) {
            ("sampler", Some(field)) => format!("{field}: "),
            _ => String::new(),
        };
        mistake(py, option, format!("{option}: {field}{}", in_words(why)))
    })
}

/// Whole numbers of Rust's types as ranges.
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

impl LoaderKeywords {
    /// What they ask for, with the config that may be named.
    /// `items`: the samples, if no source is named.
    pub fn wanted(self, items: Option<Index>) -> Result<LoaderRequest> {
        let setup = self.setup()?;
        let source = items.map_or_else(|| setup.data(), |index| Ok(index.into()))?;
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

    /// The forecast of the run; of pictures of a usual size where no data is named.
    fn plan(self, items: Option<Index>) -> Result<String> {
        let setup = self.setup()?;
        if let Some(index) = items {
            return json(&setup.builder(index.into())?.memory_plan(0)?);
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

/// Operations that are left out of a config, or of a recipe for its dtype.
fn told(setup: &LoaderSetup) -> Result<Vec<String>> {
    let left_out = setup.training().into_iter().flat_map(|t| &t.skipped);
    let name = setup.loader.recipe_name();
    let of_config = left_out.map(|op| format!("{name}:{}: {} is left out", op.line, op.name));
    let of_dtype = setup.drops_normalize()?.then(|| {
        format!(
            "{name}: normalize is left out, since rows of uint8 are levels: normalise them later, \
             or give another dtype"
        )
    });
    Ok(of_config.chain(of_dtype).collect())
}

/// What a loader with these options would take, as JSON. Starts nothing.
#[pyfunction]
#[pyo3(signature = (options, items=None))]
pub fn plan(py: Python<'_>, options: &str, items: Option<&RawItems>) -> PyResult<String> {
    let options: LoaderKeywords = parse(py, options)?;
    let items = items.map(RawItems::index).transpose()?;
    in_thread(py, move || options.plan(items))
}

/// A size as the command line reads it.
///
/// # Errors
/// A text that is none, with what to write.
#[pyfunction]
pub fn size_in_bytes(text: &str) -> PyResult<u64> {
    units::bytes(text).map_err(PyValueError::new_err)
}

/// The names of all options: of the source, which the package hands on by them, and of `Loader`.
#[pyfunction]
pub fn option_names() -> (Vec<String>, Vec<String>) {
    (names::<SourceOptions>(), names::<LoaderOptions>())
}

/// As [`option_names`], of scenes and of `Rays`.
#[pyfunction]
pub fn rays_option_names() -> (Vec<String>, Vec<String>) {
    (names::<SceneOptions>(), names::<RaysOptions>())
}

/// As [`option_names`], of `Views`.
#[pyfunction]
pub fn views_option_names() -> Vec<String> {
    names::<ViewsOptions>()
}

/// The fields of a struct that refuses others, by the text with which it does.
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

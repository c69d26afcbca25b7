//! What Python asks for. It comes as JSON: the library knows its options as data
//! (`featherload::options`), and there is no third list of them here.

use featherload::options::{LoaderOptions, Setup, SourceOptions};
use featherload::{Error, LoaderBuilder, Recipe, Result};
use pyo3::prelude::*;
use serde::Deserialize;

/// Rows of a batch, where neither the caller nor a config says another number: as the
/// docs of `Loader` have it.
const BATCH: u32 = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    source: SourceOptions,
    loader: LoaderOptions,
}

/// What a text asks for.
pub struct Wanted {
    pub builder: LoaderBuilder,
    pub recipe: Recipe,
    /// What is said of the config.
    pub told: Vec<String>,
}

pub fn read(text: &str) -> Result<Wanted> {
    let options: Options = serde_json::from_str(text)
        .map_err(|e| Error::config(format!("options: {}", e.to_string().replace('`', "'"))))?;
    let mut setup = Setup::new(options.source, options.loader)?;
    if setup.training().is_none() {
        setup.loader.batch_size.get_or_insert(BATCH);
    }
    let left_out = setup.training().into_iter().flat_map(|t| &t.skipped);
    let told = left_out
        .map(|op| {
            format!(
                "{}:{}: {} is left out",
                setup.loader.recipe_name(),
                op.line,
                op.name
            )
        })
        .collect();
    Ok(Wanted {
        builder: setup.builder(setup.data()?)?,
        recipe: setup.recipe()?,
        told,
    })
}

/// The names of all options, for the test that keeps the keywords of `Loader` to them.
#[pyfunction]
pub fn option_names() -> (Vec<String>, Vec<String>) {
    (names::<SourceOptions>(), names::<LoaderOptions>())
}

/// The fields of a struct that refuses others, by the text with which it does.
fn names<T: serde::de::DeserializeOwned>() -> Vec<String> {
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

//! Arguments of the commands over a scene.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use featherload::rays::SceneSource;
use featherload::scenes::{SceneFormat, SceneOptions, Split};
use featherload::{Error, Result};

use crate::output;

/// Frames of a scene.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SplitArg {
    Train,
    Eval,
    Test,
}

impl From<SplitArg> for Split {
    fn from(said: SplitArg) -> Self {
        match said {
            SplitArg::Train => Self::Train,
            SplitArg::Eval => Self::Eval,
            SplitArg::Test => Self::Test,
        }
    }
}

/// How a scene is read.
#[derive(Debug, Args)]
pub struct SceneReading {
    /// Read this description of the scene, where there are several (default: the one with the
    /// most images that are there).
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub format: Option<SceneFormat>,
}

impl SceneReading {
    pub fn source(&self, scene: &Path) -> SceneSource {
        let mut options = SceneOptions::default();
        options.format = self.format;
        SceneSource::Path(scene.to_owned(), options)
    }
}

fn formats() -> impl TypedValueParser<Value = SceneFormat> {
    let names = SceneFormat::ALL.map(SceneFormat::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let format = SceneFormat::ALL.into_iter().find(|f| f.name() == name);
        format.ok_or_else(|| Error::config(format!("{name:?} is no format of scenes")))
    })
}

/// Prints what the scene's files name and is not there.
pub fn print_missing(lines: &[String]) -> Result<()> {
    lines
        .iter()
        .try_for_each(|line| output::line(&format!("  missing        {line}")))
}

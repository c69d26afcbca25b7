//! Arguments of the commands over a scene.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use featherload::rays::SceneSource;
use featherload::scenes::{ImageOrder, SceneFormat, SceneOptions, Split};
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
    /// The order of the images, which decides how they are split: by name, or as nerfstudio's
    /// parser of the format has it (default: nerfstudio; for COLMAP name, as gsplat).
    #[arg(long, value_name = "ORDER", value_parser = orders())]
    pub image_order: Option<ImageOrder>,
}

impl SceneReading {
    pub fn source(&self, scene: &Path) -> SceneSource {
        let mut options = SceneOptions::default();
        options.format = self.format;
        options.image_order = self.image_order;
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

fn orders() -> impl TypedValueParser<Value = ImageOrder> {
    let names = ImageOrder::ALL.map(ImageOrder::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let order = ImageOrder::ALL.into_iter().find(|o| o.name() == name);
        order.ok_or_else(|| Error::config(format!("{name:?} is no order of images")))
    })
}

/// Prints what the scene's files name and is not there.
pub fn print_missing(lines: &[String]) -> Result<()> {
    lines
        .iter()
        .try_for_each(|line| output::line(&format!("  missing        {line}")))
}

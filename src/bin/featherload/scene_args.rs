//! Arguments of the commands over a scene.

use clap::ValueEnum;
use featherload::scenes::Split;

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

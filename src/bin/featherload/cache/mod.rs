//! `featherload cache`: converts data sets to shards. One file for each sub-command.
//!
//! - `build`: writes a cache;
//! - `info`: shows its contents;
//! - `verify`: compares its bytes with the checksums;
//! - `progress`: the progress of a build.

mod build;
mod info;
mod progress;
mod verify;

pub use self::verify::{print as print_verified, verified};

use clap::{Args, Subcommand};
use featherload::Result;

use crate::outcome::CommandOutcome;

/// Convert a data set to shards (tars with DALI's index and checksums), which later runs map and
/// read at the speed of the link.
#[derive(Args)]
pub struct CacheArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(Box<build::BuildArgs>),
    Verify(verify::VerifyArgs),
    Info(info::InfoArgs),
}

pub fn run(args: CacheArgs) -> Result<CommandOutcome> {
    match args.command {
        Command::Build(args) => build::run(*args),
        Command::Verify(args) => verify::run(args),
        Command::Info(args) => info::run(args),
    }
}

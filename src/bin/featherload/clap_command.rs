//! The whole command line as clap defines it, for texts that name flags.
//!
//! `main` registers it, because it knows every sub-command.

use std::sync::OnceLock;

use clap::Command;

static COMMAND: OnceLock<fn() -> Command> = OnceLock::new();

/// Registers the command line. Only the first call has an effect.
pub fn set(command: fn() -> Command) {
    COMMAND.get_or_init(|| command);
}

/// The command line with all sub-commands.
pub fn clap_command() -> Command {
    #[cfg(test)]
    set(<crate::Cli as clap::CommandFactory>::command);
    let command = COMMAND.get();
    debug_assert!(command.is_some(), "`main` sets it first of all");
    command.map_or_else(Command::default, |command| command())
}

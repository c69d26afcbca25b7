//! The whole command line as clap knows it, for texts that name its flags.
//!
//! `main` hands it in: it knows every sub-command, and each of these has such texts.

use std::sync::OnceLock;

use clap::Command;

static COMMAND: OnceLock<fn() -> Command> = OnceLock::new();

/// The first call counts.
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

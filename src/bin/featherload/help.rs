//! Help pages: the first page, groups of options, examples. Completions and man pages are made from
//! the same text.
//!
//! An option names its group where it is defined. A command with few options shows no groups.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;
use featherload::options::cli::OUTPUT;
use featherload::{Error, Result};

use crate::clap_command::clap_command;
use crate::outcome::CommandOutcome;
use crate::output;

/// The program's name, in pages and completions.
const NAME: &str = "featherload";

/// A command with more options than this shows some on its first page, and all with `--help-all`.
const MOST: usize = 10;

/// Options on the first page of such a command.
const FIRST: &str = "batch-size device draws encode epochs force ids json limit memory-limit \
                     no-headers num-workers on-error out picture plan rays recipe resize rows \
                     sample save scene shard-size shuffle split steps undistort verbose write-idx";

/// Example commands, each with an explanation if needed, by the command whose page shows them.
const EXAMPLES: &str = "
featherload
  featherload demo /tmp/demo                    256 photo-like JPEGs
  featherload bench /tmp/demo                   how fast, and why not faster
  featherload plan /tmp/demo --memory-limit 1G
bench
  featherload bench DIR                         train224, batch 64, all cores
  featherload bench DIR --num-workers 1,2,4     which number is enough
  featherload bench DIR --recipe recipe.yaml --epochs 3
  featherload bench 'DIR/train-{000..123}.tar'  shards
  featherload bench DIR --on-error skip --failures bad.jsonl
plan
  featherload plan                              train224 on 1920 x 1080 pixels
  featherload plan DIR --num-workers 8 --memory-limit 2G
  featherload plan --recipe recipe.yaml --picture 480x640
preview
  featherload preview DIR                       4 samples, 4 draws of train224
  featherload preview DIR --recipe recipe.yaml --out grid.png
rss
  featherload rss DIR                           memory of 1 to 16 workers
  featherload rss DIR --num-workers 4 --epochs 20  does it grow?
build
  featherload cache build DIR CACHE             the files as they are
  featherload cache build DIR CACHE --encode jpeg:90 --resize shorter:256
index
  featherload index DIR                         counts, sizes, unreadable files
  featherload index DIR --save names.index      then: bench names.index
rays
  featherload rays SCENE --plan                 what it will take
  featherload rays SCENE --rays 8192 --steps 100
views
  featherload views SCENE --plan                what it will take
  featherload views SCENE --undistort --steps 100
";

fn examples(command: &str) -> impl Iterator<Item = &'static str> {
    let behind = EXAMPLES.lines().skip_while(move |line| *line != command);
    behind.skip(1).take_while(|line| line.starts_with("  "))
}

/// The command line with its help pages.
pub fn command() -> Command {
    paged(all(), MOST)
}

fn all() -> Command {
    clap_command().after_help(
        "Sizes are printed as width x height. An option that takes HEIGHTxWIDTH says so.",
    )
}

/// Adds groups to commands with many options. A command with more than `most` options hides some on
/// its first page.
fn paged(command: Command, most: usize) -> Command {
    let long = |arg: &Arg| arg.get_long().map(str::to_owned);
    let options = command.get_arguments().filter_map(long).count();
    let (many, hides) = (options > MOST, options > most);
    let command = command.mut_args(|arg| {
        let name = long(&arg);
        let first = name.is_none_or(|name| FIRST.split(' ').any(|first| first == name));
        let arg = arg.hide_short_help(hides && !first);
        match many {
            true => arg,
            false => arg.help_heading(None::<&str>),
        }
    });
    let heading = many.then_some(OUTPUT);
    let command = command
        .disable_help_flag(true)
        .arg(
            Arg::new("help")
                .short('h')
                .long("help")
                .action(ArgAction::HelpShort)
                .help(if hides {
                    "Print the options used most"
                } else {
                    "Print help"
                })
                .help_heading(heading),
        )
        .arg(
            Arg::new("help-all")
                .long("help-all")
                .action(ArgAction::HelpLong)
                .help("Print all options, in full")
                .hide_short_help(!hides)
                .help_heading(heading),
        );
    let text = after(&command);
    let command = match text.is_empty() {
        true => command,
        false => command.after_help(text),
    };
    command.mut_subcommands(|sub| paged(sub, most))
}

/// Examples and notes of the command.
fn after(command: &Command) -> String {
    let text = command.get_after_help().map(ToString::to_string);
    let examples: Vec<&str> = examples(command.get_name()).collect();
    let examples = (!examples.is_empty()).then(|| format!("Examples:\n{}", examples.join("\n")));
    let parts: Vec<String> = text.into_iter().chain(examples).collect();
    parts.join("\n\n")
}

/// Print completions for a shell: `source <(featherload completions bash)`.
#[derive(Args)]
pub struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

/// Write the man pages, one for each command: `man DIR/featherload-bench.1`.
#[derive(Args)]
pub struct ManArgs {
    /// Folder to write to. Created if missing.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub fn completions(args: &CompletionsArgs) -> Result<CommandOutcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), NAME, &mut script);
    output::script(String::from_utf8_lossy(&script).trim_end())?;
    Ok(CommandOutcome::Done)
}

pub fn man(args: &ManArgs) -> Result<CommandOutcome> {
    // Options hidden on the first page would have no text there.
    let pages = paged(all(), usize::MAX);
    let written = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(pages, &args.dir));
    written.map_err(|e| Error::io_at("write man pages to", &args.dir, e))?;
    Ok(CommandOutcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(command: &Command, check: &mut dyn FnMut(&Command)) {
        check(command);
        command.get_subcommands().for_each(|sub| each(sub, check));
    }

    fn options(command: &Command) -> impl Iterator<Item = &Arg> {
        let ours = |arg: &&Arg| !["help", "help-all", "version"].contains(&arg.get_id().as_str());
        command
            .get_arguments()
            .filter(|arg| arg.get_long().is_some())
            .filter(ours)
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_first_page_has_ten_options_at_most() {
        each(&command(), &mut |command| {
            let shown = options(command).filter(|arg| !arg.is_hide_short_help_set());
            let shown: Vec<_> = shown.filter_map(Arg::get_long).collect();
            let name = command.get_name();
            assert!(shown.len() <= MOST, "{name}: {shown:?}");
            let all = options(command).count();
            assert!(shown.len() >= all.min(4), "{name}: {shown:?}");
        });
    }

    #[test]
    fn names_of_the_first_page_are_those_of_options() {
        let mut known = std::collections::BTreeSet::new();
        each(&clap_command(), &mut |command| {
            known.extend(
                options(command)
                    .filter_map(Arg::get_long)
                    .map(str::to_owned),
            );
        });
        for name in FIRST.split(' ') {
            assert!(known.contains(name), "{name}");
        }
    }

    #[test]
    fn commands_with_many_options_have_them_in_groups() {
        each(&command(), &mut |command| {
            for arg in options(command).filter(|_| options(command).count() > MOST) {
                let at = format!("{} {:?}", command.get_name(), arg.get_long());
                assert!(arg.get_help_heading().is_some(), "{at}");
            }
        });
    }

    #[test]
    fn examples_are_command_lines() {
        let mut seen = 0;
        each(&command(), &mut |sub| {
            for line in examples(sub.get_name()) {
                let (typed, does) = line.trim_start().split_once("  ").unwrap_or((line, ""));
                let parsed = command().try_get_matches_from(typed.split_whitespace());
                assert!(parsed.is_ok(), "{typed}: {:?}", parsed.err());
                assert!(line.len() <= output::fields::WIDTH, "{line}");
                let does = does.trim_start();
                assert!(
                    does.is_empty() || line == format!("  {typed:<44}  {does}"),
                    "{line}"
                );
                seen += 1;
            }
        });
        let all = EXAMPLES.lines().filter(|line| line.starts_with("  "));
        assert_eq!(seen, all.count(), "one is under the name of no command");
    }
}

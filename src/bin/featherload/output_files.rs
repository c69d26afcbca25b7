//! Files that a command writes: none that it reads, and none twice.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use featherload::{Error, Result};

/// Options that name a file which is replaced, whatever it holds. `--save` replaces saved indexes
/// alone.
const OUTPUTS: [&str; 5] = ["save_classes", "svg", "out", "save_state", "failures"];

/// # Errors
/// A file that is written and that another argument names, too.
pub fn check(matches: &ArgMatches) -> Result<()> {
    let mut matches = matches;
    while let Some((_, deeper)) = matches.subcommand() {
        matches = deeper;
    }
    let ids = || matches.ids().map(clap::Id::as_str);
    // Values of other types are no files, but a recipe, which may be a preset's name.
    let files = |id: &str| {
        let paths = matches.try_get_many::<PathBuf>(id).ok().flatten();
        let recipe = (id == "recipe").then(|| matches.try_get_raw(id).ok().flatten());
        let recipe = recipe.flatten().into_iter().flatten();
        let paths = paths.into_iter().flatten().map(PathBuf::as_path);
        paths.chain(recipe.map(Path::new))
    };
    for output in ids().filter(|id| OUTPUTS.contains(id)) {
        for other in ids().filter(|id| *id != output) {
            // A run goes on with its state, and keeps the next one there.
            if (output, other) == ("save_state", "resume") {
                continue;
            }
            let mut others = files(other);
            if let Some(file) = files(output).find(|file| others.any(|other| are_one(file, other)))
            {
                return Err(Error::config(format!(
                    "{} would replace {}, which is {} too: name another file",
                    named(output),
                    file.display(),
                    named(other)
                )));
            }
        }
    }
    Ok(())
}

/// A folder is no file to replace: the command itself refuses it.
fn are_one(one: &Path, two: &Path) -> bool {
    let is_other = || one.is_file() && one.canonicalize().ok() == two.canonicalize().ok();
    !one.is_dir() && (one == two || is_other())
}

/// The argument as it is written.
fn named(id: &str) -> String {
    match id {
        "path" => "SRC".to_owned(),
        id => format!("--{}", id.replace('_', "-")),
    }
}

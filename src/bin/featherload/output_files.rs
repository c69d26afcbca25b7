//! Rejects output files that are also inputs, or outputs of another option.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use featherload::{Error, Result};

/// Options that name a file which is replaced, whatever it contains. `--save` replaces only saved
/// indexes.
const OUTPUTS: [&str; 5] = ["save_classes", "svg", "out", "save_state", "failures"];

/// # Errors
/// Another argument names the same file.
pub fn check(matches: &ArgMatches) -> Result<()> {
    let mut matches = matches;
    while let Some((_, deeper)) = matches.subcommand() {
        matches = deeper;
    }
    let ids = || matches.ids().map(clap::Id::as_str);
    // Values of other types are not files, except a recipe, which may also be the name of a preset.
    let files = |id: &str| {
        let paths = matches.try_get_many::<PathBuf>(id).ok().flatten();
        let recipe = (id == "recipe").then(|| matches.try_get_raw(id).ok().flatten());
        let recipe = recipe.flatten().into_iter().flatten();
        let paths = paths.into_iter().flatten().map(PathBuf::as_path);
        paths.chain(recipe.map(Path::new))
    };
    for output in ids().filter(|id| OUTPUTS.contains(id)) {
        for other in ids().filter(|id| *id != output) {
            // A resumed run may save its next state to the same file.
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

/// A folder is not a file to replace: the command itself rejects it.
fn are_one(one: &Path, two: &Path) -> bool {
    let is_other = || one.is_file() && one.canonicalize().ok() == two.canonicalize().ok();
    !one.is_dir() && (one == two || is_other())
}

/// The argument as typed.
fn named(id: &str) -> String {
    match id {
        "path" => "SRC".to_owned(),
        id => format!("--{}", id.replace('_', "-")),
    }
}

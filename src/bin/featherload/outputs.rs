//! Files that a command writes: none that it reads, and none twice.

use std::path::Path;

use clap::ArgMatches;
use featherload::{Error, Result};

/// Options that name a file which is replaced, whatever it holds. `--save` replaces saved indexes
/// alone.
const OUTPUTS: [&str; 5] = ["save_classes", "svg", "out", "save_state", "failures"];

/// # Errors
/// A file that is written and that another argument names, too.
pub fn check(matches: &ArgMatches) -> Result<()> {
    let Some((_, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let ids = || matches.ids().map(clap::Id::as_str);
    let files = |id: &str| {
        let raw = matches.try_get_raw(id).ok().flatten();
        raw.into_iter().flatten().map(Path::new)
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

fn are_one(one: &Path, two: &Path) -> bool {
    one == two || (one.is_file() && one.canonicalize().ok() == two.canonicalize().ok())
}

/// The argument as it is written.
fn named(id: &str) -> String {
    match id {
        "path" => "SRC".to_owned(),
        id => format!("--{}", id.replace('_', "-")),
    }
}

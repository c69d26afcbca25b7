//! Checks that the stack of a process may become as large as this crate needs.
//!
//! Runs in the consumer; the processes that it starts inherit the limit.

use nix::sys::resource::{Resource, getrlimit};

use crate::error::{Error, Result};

/// Smallest allowed limit in bytes. With less, a process may crash without a message.
const LEAST: u64 = 512 << 10;

/// Checks the limit of the stack. A program calls it first.
///
/// # Errors
/// The limit (`ulimit -s`) is too low. The text states the smallest value and how to raise it.
pub fn check() -> Result<()> {
    let failed = |e| Error::io("read the limit of the stack", e);
    let (soft, _) = getrlimit(Resource::RLIMIT_STACK).map_err(failed)?;
    enough(soft)
}

fn enough(bytes: u64) -> Result<()> {
    match bytes < LEAST {
        true => Err(Error::config(format!(
            "the stack of this process may take {} KiB, but at least {} KiB are needed: raise the \
             limit with ulimit -s 8192",
            bytes / 1024,
            LEAST / 1024
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_stack_is_refused_by_its_number_and_an_endless_one_is_not() {
        check().unwrap();
        enough(LEAST).unwrap();
        enough(nix::sys::resource::RLIM_INFINITY).unwrap();
        let e = enough(100 << 10).unwrap_err();
        assert!(e.is_config());
        for words in ["100 KiB", "512 KiB", "ulimit -s 8192"] {
            assert!(e.to_string().contains(words), "{e}");
        }
    }
}

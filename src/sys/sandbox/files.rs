//! The files that a worker may open, by Landlock: those below some folders, to read.
//!
//! A rule is bound to the folder or file at its path when the rules are made. If another one
//! replaces it later, that one may not be opened.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use crate::error::{Error, Result};

/// The newest version whose rights are used. An older kernel applies the rights that it knows.
const NEWEST: ABI = ABI::V6;

/// Folders can be opened too, because one may have the name of an image: the fault then tells that
/// it is a folder. No worker can list it, because that call is not allowed.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// Number of folders to keep open: the first ones, which belong to the data set.
const HELD: usize = 16;

/// The files that may be opened.
#[derive(Debug)]
pub(crate) struct FileRules {
    rules: RulesetCreated,
    /// Keeps folders open. A rule is bound to a folder in memory. Some file systems recreate a
    /// folder that is not open (9p), and some are unmounted then (autofs).
    _held: Vec<PathFd>,
}

/// Checks that this kernel has Landlock.
///
/// # Errors
/// The kernel lacks it, or was started without it.
pub(crate) fn check() -> Result<()> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no rules and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0,
            VERSION,
        )
    };
    match version {
        1.. => Ok(()),
        _ => Err(Error::io("ask for Landlock", io::Error::last_os_error())),
    }
}

impl FileRules {
    /// Allows files at or below `readable`, which are folders or files. A missing or unreachable
    /// path has no rule; workers cannot open it either.
    ///
    /// # Errors
    /// The kernel rejects it; a limit of this process is reached.
    pub(crate) fn new(readable: &[PathBuf]) -> Result<Self> {
        let ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
            .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
            .and_then(Ruleset::create);
        let mut rules = ruleset.map_err(refused)?;
        let mut held = Vec::new();
        for path in readable {
            let at = match PathFd::new(path) {
                Ok(at) => at,
                Err(e) => {
                    let e = io::Error::from_raw_os_error(os_error(&e).unwrap_or_default());
                    let e = Error::io_at("open for the list of files", path, e);
                    match e.is_limit() {
                        true => return Err(e),
                        false => continue,
                    }
                }
            };
            rules = rules
                .add_rule(PathBeneath::new(&at, READ))
                .map_err(refused)?;
            if held.len() < HELD {
                held.push(at);
            }
        }
        Ok(Self { rules, _held: held })
    }

    /// From here on this process can open no other file.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub(crate) fn enter(&self) -> Result<()> {
        let rules = self.rules.try_clone();
        let rules = rules.map_err(|e| Error::io("limit the files of a worker", e))?;
        match rules.restrict_self().map_err(refused)?.ruleset {
            RulesetStatus::NotEnforced => Err(Error::config(
                "Landlock does not limit files on this \
                                                             system",
            )),
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
                LIMITED.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

static LIMITED: AtomicBool = AtomicBool::new(false);

/// Whether this process is limited to some files.
pub(crate) fn is_limited() -> bool {
    LIMITED.load(Ordering::Relaxed)
}

fn refused(e: RulesetError) -> Error {
    match os_error(&e) {
        Some(errno) => Error::io(
            "make a list of files for workers",
            io::Error::from_raw_os_error(errno),
        ),
        None => Error::config(format!("no list of files can be made for workers: {e}")),
    }
}

/// The system's error number, if there is one.
fn os_error(e: &(dyn std::error::Error + 'static)) -> Option<i32> {
    match e.downcast_ref::<io::Error>() {
        Some(e) => e.raw_os_error(),
        None => os_error(e.source()?),
    }
}

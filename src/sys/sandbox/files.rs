//! The files that a worker may open, by Landlock: those below some folders, to be read.
//!
//! A rule is bound to the folder or file that lies at its path when the rules are made. One
//! that takes its place later is another one, which may not be opened.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use crate::error::{Error, Result};

/// The newest version whose rights are asked for; of an older kernel those that it knows.
const NEWEST: ABI = ABI::V6;

/// Folders are opened too, where one has the name of a picture: the fault then says what it
/// is. Nobody can list one, for want of the call.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// Folders that are kept open: the first ones, which are the data set's own.
const HELD: usize = 16;

/// Which files may be opened.
#[derive(Debug)]
pub(crate) struct FileRules {
    rules: RulesetCreated,
    /// A rule is bound to a folder in memory. Some file systems make another one of the same
    /// name when nobody has it open (9p), and some are unmounted then (autofs).
    _held: Vec<PathFd>,
}

/// Whether this kernel has Landlock, or why not.
///
/// # Errors
/// A kernel without it, or one that was started without it.
pub(crate) fn check() -> Result<()> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no rules and answers with a number.
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
    /// Nothing but what lies below `readable`, which are folders or files. What is not there,
    /// or cannot be reached, has no rule, and is not there for a worker either.
    ///
    /// # Errors
    /// A kernel that refuses; a limit of this process that was reached.
    pub(crate) fn new(readable: &[PathBuf]) -> Result<Self> {
        let begun = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
            .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
            .and_then(Ruleset::create);
        let mut rules = begun.map_err(refused)?;
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

    /// From here on this process opens nothing else.
    ///
    /// # Errors
    /// A kernel that refuses.
    pub(crate) fn enter(&self) -> Result<()> {
        let rules = self.rules.try_clone();
        let rules = rules.map_err(|e| Error::io("limit the files of a worker", e))?;
        match rules.restrict_self().map_err(refused)?.ruleset {
            RulesetStatus::NotEnforced => Err(Error::config("Landlock limits no files here")),
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
                LIMITED.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

static LIMITED: AtomicBool = AtomicBool::new(false);

/// Whether this process is kept to some files.
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

/// The number of the system's error that an error comes from.
fn os_error(e: &(dyn std::error::Error + 'static)) -> Option<i32> {
    match e.downcast_ref::<io::Error>() {
        Some(e) => e.raw_os_error(),
        None => os_error(e.source()?),
    }
}

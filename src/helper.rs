//! What a helper process can do: every kind of job, fetcher and uploader.
//!
//! Runs in the process that a loader starts as its helper, at the very start of its `main`.

use crate::jobs::kinds;
use crate::pool::coordinator::init;
use crate::pool::coordinator::init::HelperEntry;
#[cfg(feature = "stores")]
use crate::remote::{fetch, upload};
use crate::scene::jobs::kinds as scene_kinds;

/// The helpers other than the coordinator.
const OTHERS: &[HelperEntry] = &[
    #[cfg(feature = "stores")]
    fetch::FETCHER,
    #[cfg(feature = "stores")]
    upload::SENDER,
];

/// Lets this program start its own worker processes. It must be the first line of `main`.
///
/// ```no_run
/// fn main() -> featherload::Result<()> {
///     featherload::init();
///     // Arguments, threads and loaders come after that line.
///     Ok(())
/// }
/// ```
///
/// [`LaunchMethod::Exec`](crate::LaunchMethod::Exec) starts an executable that begins with this
/// line. There it never returns: the process becomes the parent of the workers. In any other
/// process it returns at once.
///
/// Code before this line would run in the helper too, so there should be none. A parser of
/// arguments would find an unknown argument, and the helper may have only one thread. A library
/// that starts threads before `main` makes a program unfit as its own helper. Such a program uses
/// the executable `featherload` instead (`cargo install featherload --features cli`).
///
/// Programs built by `cargo test` have a `main` of the test harness. A test names a program that
/// begins with this line, `LoaderBuilder::helper(env!("CARGO_BIN_EXE_trainer"))`, or uses zero
/// workers.
pub fn init() {
    let all = [kinds::KINDS, scene_kinds::KINDS].concat();
    init::init_with_others(&all, OTHERS);
}

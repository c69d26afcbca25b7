//! What a helper process can be: every kind of job, fetcher and sender.
//!
//! In the process that a loader starts as its helper, at the very start of its `main`.

use crate::jobs::kinds;
use crate::pool::coordinator::init;
use crate::pool::coordinator::init::HelperEntry;
#[cfg(feature = "stores")]
use crate::remote::{fetch, upload};
use crate::scene::jobs::kinds as scene_kinds;

/// What a helper can be beside the coordinator.
const OTHERS: &[HelperEntry] = &[
    #[cfg(feature = "stores")]
    fetch::FETCHER,
    #[cfg(feature = "stores")]
    upload::SENDER,
];

/// Lets this program start its own worker processes: the first line of `main`.
///
/// ```no_run
/// fn main() -> featherload::Result<()> {
///     featherload::init();
///     // Arguments, threads, loaders: all of it behind that line.
///     Ok(())
/// }
/// ```
///
/// [`Launch::Exec`](crate::Launch::Exec) starts an executable that begins with this
/// line, which then never returns: the process becomes the parent of the workers.
/// Started in any other way the program goes on at once.
///
/// Whatever stands before it runs in the helper too, so nothing should: a parser of
/// arguments would meet an argument that it does not know, and the helper may have one
/// thread only. A program that links a library which starts threads before `main`
/// cannot be its own helper; it takes the executable `featherload`
/// (`cargo install featherload --features cli`).
///
/// Programs that `cargo test` builds have a `main` of the test harness. Tests name a
/// program that begins with this line,
/// `LoaderBuilder::helper(env!("CARGO_BIN_EXE_trainer"))`, or take zero workers.
pub fn init() {
    let all = [kinds::KINDS, scene_kinds::KINDS].concat();
    init::init_with_others(&all, OTHERS);
}

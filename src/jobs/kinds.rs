//! Every kind of job that this library does: one line each.
//!
//! Used in the process that builds jobs: the coordinator, and the consumer with zero
//! workers. Without the decoders there are none, and a helper does them.

#[cfg(all(feature = "codecs", feature = "stores"))]
use crate::fetch;
use crate::jobs::{encode, images, masks, pictures, rays, views};
#[cfg(feature = "codecs")]
use crate::pool::coordinator::own;
#[cfg(feature = "codecs")]
use crate::pool::coordinator::own::Life;
use crate::pool::job::JobKind;
#[cfg(all(feature = "codecs", feature = "stores"))]
use crate::send;

pub(crate) const KINDS: &[JobKind] = &[
    #[cfg(feature = "codecs")]
    images::worker::KIND,
    #[cfg(feature = "codecs")]
    encode::worker::KIND,
    #[cfg(feature = "codecs")]
    masks::worker::KIND,
    #[cfg(feature = "codecs")]
    pictures::worker::KIND,
    #[cfg(feature = "codecs")]
    rays::worker::KIND,
    #[cfg(feature = "codecs")]
    views::worker::KIND,
];

/// What a helper can be beside the coordinator.
#[cfg(feature = "codecs")]
const OTHERS: &[Life] = &[
    #[cfg(feature = "stores")]
    fetch::FETCHER,
    #[cfg(feature = "stores")]
    send::SENDER,
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
#[cfg(feature = "codecs")]
pub fn init() {
    own::init_with_others(KINDS, OTHERS);
}

//! The process between the consumer and its workers.
//!
//! - [`launch`] and [`handle`] run in the consumer: they make the coordinator,
//!   shake hands, and end it;
//! - [`messages`] is what the two say to each other;
//! - [`process`] and what it uses run in the coordinator: single-threaded for
//!   life, no pixels, no CUDA, so that it can fork a lean worker at any time.
//!
//! Not here: what a row is made of (`worker::job`), who may claim it (`ring`).

pub(crate) mod handle;
mod helper;
pub(crate) mod launch;
pub(crate) mod messages;

#[cfg(feature = "codecs")]
mod lanes;
#[cfg(feature = "codecs")]
mod overdue;
#[cfg(feature = "codecs")]
pub(crate) mod process;
#[cfg(feature = "codecs")]
mod strikes;
#[cfg(feature = "codecs")]
mod supervisor;

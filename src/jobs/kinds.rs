//! Every kind of job on images: one line each.

#[cfg(feature = "codecs")]
use crate::jobs::{encode, images};
use crate::pool::job::JobKind;

/// Without the decoders there are none, and a helper does them.
pub(crate) const KINDS: &[JobKind] = &[
    #[cfg(feature = "codecs")]
    images::worker::KIND,
    #[cfg(feature = "codecs")]
    encode::worker::KIND,
];

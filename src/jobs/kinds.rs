//! All kinds of jobs on images, one per line.

#[cfg(feature = "codecs")]
use crate::jobs::{encode, images};
use crate::pool::job::JobKind;

/// Empty without the decoders: a helper executable runs the jobs then.
pub(crate) const KINDS: &[JobKind] = &[
    #[cfg(feature = "codecs")]
    images::worker::KIND,
    #[cfg(feature = "codecs")]
    encode::worker::KIND,
];

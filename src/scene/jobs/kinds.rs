//! List of the kinds of jobs on a scene, one line each.

use crate::pool::job::JobKind;
#[cfg(feature = "codecs")]
use crate::scene::jobs::{device_images, masks, rays, views};

/// Empty in a build without the decoders, where a helper executable runs the jobs.
pub(crate) const KINDS: &[JobKind] = &[
    #[cfg(feature = "codecs")]
    masks::worker::KIND,
    #[cfg(feature = "codecs")]
    device_images::worker::KIND,
    #[cfg(feature = "codecs")]
    rays::worker::KIND,
    #[cfg(feature = "codecs")]
    views::worker::KIND,
];

//! Every kind of job on a scene: one line each.

use crate::pool::job::JobKind;
#[cfg(feature = "codecs")]
use crate::scene::jobs::{device_images, masks, rays, views};

/// Without the decoders there are none, and a helper does them.
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

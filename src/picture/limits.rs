//! Limits on the size and memory of one image.
//!
//! Plain numbers, used in every process.

use serde::{Deserialize, Serialize};

use crate::error::{self, FaultKind, SampleFault};

/// Limits on one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PictureLimits {
    /// Maximum pixels of an image.
    pub(crate) max_pixels: u64,
    /// Maximum bytes that a worker may use to decode one image.
    pub(crate) max_scratch: u64,
}

impl Default for PictureLimits {
    fn default() -> Self {
        Self {
            max_pixels: 178_956_970,
            max_scratch: 512 << 20,
        }
    }
}

impl PictureLimits {
    /// Checks the size of an image: width and height in pixels. `what` names it in the text.
    ///
    /// # Errors
    /// `TooLarge` for a picture with more pixels than `max_pixels`. The text has both numbers.
    pub(crate) fn check_pixels(
        &self,
        what: &str,
        (width, height): (u32, u32),
    ) -> Result<(), SampleFault> {
        let pixels = u64::from(width) * u64::from(height);
        if pixels <= self.max_pixels {
            return Ok(());
        }
        Err(FaultKind::TooLarge.fault(format!(
            "{what} of {width} x {height} = {pixels} pixels, over max_pixels = {}",
            self.max_pixels
        )))
    }

    /// Checks the memory of a decode in bytes.
    ///
    /// # Errors
    /// `TooLarge` for a decode that needs more memory than `max_scratch`. The text has both
    /// numbers.
    pub(crate) fn check_scratch(&self, what: &str, bytes: u64) -> Result<(), SampleFault> {
        if bytes <= self.max_scratch {
            return Ok(());
        }
        Err(FaultKind::TooLarge.fault(format!(
            "{what} needs {} to decode, over max_scratch = {}",
            error::size_rounded_up(bytes),
            error::size_rounded_down(self.max_scratch)
        )))
    }
}

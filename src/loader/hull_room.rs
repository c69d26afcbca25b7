//! Whether the ring and the device have room for rows with hulls, from which a device makes several
//! crops. If not, workers finish the crops, which changes no bit of a batch.
//!
//! In the consumer. Follows only from recipe, options and limits.

use crate::error::{size_rounded_down, size_rounded_up};
use crate::loader::upload::UploadPlanner;
use crate::memory_plan::MemoryLimit;
use crate::memory_plan::run_memory::RingDepth;
use crate::recipe::SampleProgram;

/// Most bytes of a ring that is larger with hulls than with finished crops.
const MOST_RING: u64 = 4 << 30;

/// What has no room for the hulls of `uploads`, in one line. None if all has. `finished`: the
/// program whose workers finish the crops.
pub(super) fn what_is_too_large(
    uploads: &UploadPlanner<'_>,
    finished: &SampleProgram,
    depth: RingDepth,
) -> Option<String> {
    // Options with an error are rejected later, with that error.
    let needed = uploads.least_bytes(depth).ok()?;
    if let Some(limit) = uploads.limit
        && needed > limit
    {
        return Some(format!(
            "gpu_memory_limit allows {}, and the device needs {} to make the crops",
            size_rounded_down(limit),
            size_rounded_up(needed)
        ));
    }
    let ring = |uploads: &UploadPlanner<'_>| {
        let slot = uploads.fixed_slot_bytes().ok()?;
        Some(slot.saturating_mul(u64::from(depth.most_slots())))
    };
    let hulls = ring(uploads)?;
    let finished = ring(&UploadPlanner {
        program: finished,
        ..uploads.clone()
    })?;
    (hulls > MOST_RING.max(finished)).then(|| {
        format!(
            "the ring would take {} instead of {} if the device made the crops, over {}",
            size_rounded_up(hulls),
            size_rounded_up(finished),
            size_rounded_down(MOST_RING)
        )
    })
}

/// Why workers finish the crops of a run that has room for more slots with them.
pub(super) fn is_over_limit(limit: MemoryLimit, depth: u32) -> String {
    format!(
        "{} allows {}, which is too little for depth {depth} if the device makes the crops",
        limit.by,
        size_rounded_down(limit.bytes)
    )
}

//! The resized image of a crop, kept for later crops of the same image that begin with its resize.
//!
//! Runs where rows are made. Crops with `shared` operations often draw one crop and one resize. An
//! equal plan for the same pixels gives equal pixels, so they are copied. No image is kept for the
//! next sample.

use crate::decode_plan::stored_picture::DecodePlan;

#[derive(Debug, Default)]
pub(super) struct SharedResize {
    /// The plan of the pixels. None: there are none.
    plan: Option<DecodePlan>,
    pixels: Vec<u8>,
    /// Whether a later crop has the plan of the current one.
    is_repeated: bool,
    /// Resizes that were not made again.
    pub(super) saved: u64,
}

impl SharedResize {
    /// Begins an image, or ends it.
    pub(super) fn reset(&mut self) {
        (self.plan, self.is_repeated) = (None, false);
    }

    /// Begins a crop. `later`: the plans of those after it.
    pub(super) fn begin_crop(&mut self, plan: &DecodePlan, later: &[DecodePlan]) {
        self.is_repeated = later.contains(plan);
    }

    /// Copies the resized image of a crop with this plan to `to`, if it is kept.
    pub(super) fn copy_to(&mut self, plan: &DecodePlan, to: &mut [u8]) -> bool {
        let is_kept = self.plan.as_ref() == Some(plan) && self.pixels.len() == to.len();
        if is_kept {
            to.copy_from_slice(&self.pixels);
            self.saved += 1;
        }
        is_kept
    }

    /// Keeps the resized image of the current crop, if a later one has its plan.
    pub(super) fn keep(&mut self, plan: &DecodePlan, resized: &[u8]) {
        if !self.is_repeated {
            return;
        }
        if self.pixels.capacity() < resized.len() {
            // Growing alone could double the buffer.
            self.pixels = Vec::with_capacity(resized.len());
        }
        self.pixels.clear();
        self.pixels.extend_from_slice(resized);
        self.plan = Some(*plan);
    }

    /// Most bytes that are kept for crops with these plans.
    pub(super) fn most_bytes(plans: &[DecodePlan]) -> u64 {
        let repeated = plans
            .iter()
            .enumerate()
            .filter(|(number, plan)| plan.axes.is_some() && plans[number + 1..].contains(plan));
        let bytes = repeated.map(|(_, plan)| 3 * u64::from(plan.size.0) * u64::from(plan.size.1));
        bytes.max().unwrap_or(0)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.pixels.capacity()
    }
}

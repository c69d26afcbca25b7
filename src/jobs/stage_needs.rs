//! Which labels go through the stages of a row of several samples, and their bytes.
//!
//! Pure. The plan counts them, and workers move them (`jobs::sample::stage_labels`).

use crate::jobs::object_rule::ObjectRule;
use crate::picture::labels::LABEL;
use crate::recipe::{JoinedStage, LabelFilter, SampleProgram};
use crate::targets::masks::BitMask;

/// Masks that a label holds, one in each bit.
pub(crate) const BITS: usize = 8 * LABEL;

/// Which labels go through the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StageNeeds {
    /// Whether images have masks of classes.
    pub(crate) classes: bool,
    /// Masks of objects, and which label a resized pixel of them takes.
    pub(crate) objects: Option<LabelFilter>,
}

impl StageNeeds {
    /// Those of a program. None of them unless it joins samples.
    pub(crate) fn of(program: &SampleProgram, classes: bool, rule: Option<&ObjectRule>) -> Self {
        let is_joined = program.is_joined();
        let needed = |rule: &&ObjectRule| rule.masks.is_some() || program.pastes_objects();
        Self {
            classes: classes && is_joined,
            objects: rule
                .filter(|rule| is_joined && needed(rule))
                .map(ObjectRule::mask_filter),
        }
    }

    pub(crate) fn any(self) -> bool {
        self.classes || self.objects.is_some()
    }

    /// Bytes of the labels that a stage keeps: of the row, and with classes of the picture and the
    /// canvas.
    pub(crate) fn bytes(self, stage: &JoinedStage) -> u64 {
        let (most, canvas) = (label_bytes(stage.most), label_bytes(stage.canvas));
        let of_row = if self.any() { most } else { 0 };
        let of_classes = if self.classes { most + canvas } else { 0 };
        of_row.saturating_add(of_classes)
    }

    /// Most bytes of the masks of this number of objects between these stages.
    pub(crate) fn mask_bytes<'a>(
        self,
        stages: impl Iterator<Item = &'a JoinedStage>,
        objects: u64,
    ) -> u64 {
        let sizes = stages.flat_map(|stage| [stage.most, stage.canvas]);
        let most = sizes.map(BitMask::most_bytes).max().unwrap_or(0);
        // Those that are being moved, and all that are pasted.
        let at_once = objects.saturating_add(BITS as u64 + 1);
        match self.objects {
            Some(_) => at_once.saturating_mul(most),
            None => 0,
        }
    }
}

/// Bytes of the labels of an image of this height and width.
pub(crate) fn label_bytes((height, width): (u32, u32)) -> u64 {
    (u64::from(width) * u64::from(height)).saturating_mul(LABEL as u64)
}

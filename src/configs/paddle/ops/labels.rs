//! Labels that an operation draws: by which names PaddleClas hands them on.

use super::op_pipeline::OpPipeline;
use crate::configs::paddle::params::ConfigResult;

/// What RandomRot90 calls its draw.
pub(crate) const ROT90_KEYS: [&str; 2] = ["random_rot90_orientation", "orientation"];

/// What BlurImage calls its own.
pub(crate) const BLUR_KEY: &str = "blur_image";

impl OpPipeline<'_> {
    /// Refuses a data set whose labels no operation gives.
    pub(super) fn check_labels(&self) -> ConfigResult<()> {
        let Some(key) = self.label_key else {
            return Ok(());
        };
        if self.ops.iter().any(|op| op.gives_labels().is_some()) {
            return Ok(());
        }
        let name = key.name;
        let drawn_by = if ROT90_KEYS.contains(&name) {
            Some("RandomRot90")
        } else if name == BLUR_KEY {
            Some("BlurImage")
        } else {
            None
        };
        let text = match drawn_by {
            Some(op) => format!("label_key: '{name}' comes from {op}: add it to transform_ops"),
            None => format!(
                "label_key: '{name}' is not served: use {} (RandomRot90's number of quarter \
                 turns) or {BLUR_KEY} (whether BlurImage blurred)",
                ROT90_KEYS[0]
            ),
        };
        Err(key.at.mistake(text))
    }
}

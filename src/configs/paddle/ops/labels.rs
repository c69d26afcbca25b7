//! Labels that an operation draws, and the keys under which PaddleClas passes them on.

use super::op_pipeline::OpPipeline;
use crate::configs::paddle::params::ConfigResult;

/// The keys of RandomRot90's drawn value.
pub(crate) const ROT90_KEYS: [&str; 2] = ["random_rot90_orientation", "orientation"];

/// The key of BlurImage's drawn value.
pub(crate) const BLUR_KEY: &str = "blur_image";

impl OpPipeline<'_> {
    /// Rejects a data set with a label key that no operation sets.
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
                "label_key: '{name}' is not supported: use {} (RandomRot90's number of quarter \
                 turns) or {BLUR_KEY} (whether BlurImage blurred)",
                ROT90_KEYS[0]
            ),
        };
        Err(key.at.mistake(text))
    }
}

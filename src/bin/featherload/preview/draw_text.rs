//! The drawn values of a sample, as text. Steps that all rows share are left out.

use featherload::recipe::{JointDraw, Step};
use serde::Serialize;
use serde_json::Value;

/// A word or two for each step that depends on the draw.
pub fn of(steps: &[(String, Step)]) -> Vec<String> {
    steps
        .iter()
        .filter_map(|(_, step)| short_text(step))
        .collect()
}

/// The joints of several samples that were drawn, with the number of images: `mosaic of 4`.
pub fn of_joints(joints: &[(String, JointDraw)]) -> Vec<String> {
    let joined = joints.iter().filter(|(_, draw)| !draw.partners.is_empty());
    joined
        .map(|(name, draw)| format!("{name} of {}", draw.partners.len() + 1))
        .collect()
}

fn short_text(step: &Step) -> Option<String> {
    match step {
        Step::Crop(r) => Some(format!(
            "crop {} x {} at {}, {}",
            r.width, r.height, r.left, r.top
        )),
        // These belong to the recipe, not the draw; or the corners show them.
        Step::Resize { .. }
        | Step::Pad { .. }
        | Step::Luma
        | Step::Convert(..)
        | Step::Normalize { .. }
        | Step::Standardize { .. }
        | Step::Cast(_) => None,
        Step::Erase { rect: r, .. } => Some(format!(
            "erase {} x {} at {}, {}",
            r.width, r.height, r.left, r.top
        )),
        Step::Augment(augment) => step_text(augment),
        _ => step_text(step),
    }
}

/// The name of a step as in JSON, and its numbers. Lists, choices of the recipe and keys of random
/// numbers are left out.
fn step_text(step: &impl Serialize) -> Option<String> {
    let value = serde_json::to_value(step).ok()?;
    let (name, value) = match &value {
        Value::String(name) => (name, &Value::Null),
        Value::Object(short_text) => short_text.iter().next()?,
        _ => return None,
    };
    let mut words = vec![name.replace('_', " ")];
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "key");
            words.extend(fields.filter_map(|(_, value)| number(value)));
        }
        value => words.extend(number(value)),
    }
    Some(words.join(" "))
}

fn number(value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    Some(match number.fract() == 0.0 {
        true => format!("{number:.0}"),
        false => format!("{number:.2}"),
    })
}

#[cfg(test)]
mod tests {
    use featherload::recipe::{AugmentStep, InterpolationMode, PixelRect};

    use super::*;

    #[test]
    fn steps_are_said_with_their_numbers() {
        let step_text = |step: Step| short_text(&step).unwrap_or_default();
        let rect = PixelRect {
            left: 40,
            top: 12,
            width: 312,
            height: 280,
        };
        assert_eq!(step_text(Step::Crop(rect)), "crop 312 x 280 at 40, 12");
        assert_eq!(step_text(Step::Mirror), "mirror");
        assert_eq!(step_text(Step::Turn(3)), "turn 3");
        assert_eq!(step_text(Step::Brightness(1.2)), "brightness 1.20");
        assert_eq!(
            step_text(Step::Augment(AugmentStep::AutoContrast)),
            "auto contrast"
        );
        assert_eq!(
            step_text(Step::Augment(AugmentStep::Color(0.75))),
            "color 0.75"
        );
        assert_eq!(
            step_text(Step::Augment(AugmentStep::Posterize { bits: 4 })),
            "posterize 4"
        );
        let turned = AugmentStep::Rotate {
            degrees: -12.5,
            interpolation: InterpolationMode::Nearest,
            fill: [0; 3],
        };
        assert_eq!(step_text(Step::Augment(turned)), "rotate -12.50");
    }
}

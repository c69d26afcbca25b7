//! One drawn step as a line of text: its name and all its values.

use featherload::recipe::{JointDraw, Step};
use serde_json::Value;

/// For example `crop: height 280, left 40, top 12, width 312`. Names are those of the JSON output.
/// Numbers have at most four digits after the point.
pub fn describe(step: &Step) -> String {
    // A step is plain data: serialization cannot fail.
    describe_value(serde_json::to_value(step).unwrap_or_default())
}

/// For example `partners: [4, 0, 7], center: [310, 402]`.
pub fn describe_joint(draw: &JointDraw) -> String {
    match draw.partners.is_empty() {
        true => "alone".into(),
        false => describe_value(serde_json::to_value(draw).unwrap_or_default()),
    }
}

fn describe_value(value: Value) -> String {
    match value {
        Value::Object(one) => {
            let parts = one.iter().map(|(name, value)| match value {
                Value::Object(_) | Value::Array(_) => format!("{}: {}", plain(name), text(value)),
                _ => format!("{} {}", plain(name), text(value)),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        value => text(&value),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::String(name) => plain(name),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (None, Some(number)) => short(number),
            _ => number.to_string(),
        },
        Value::Array(values) => {
            format!(
                "[{}]",
                values.iter().map(text).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{} {}", plain(name), text(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
    }
}

fn plain(name: &str) -> String {
    name.replace('_', " ")
}

fn short(number: f64) -> String {
    let number = format!("{number:.4}");
    number
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use featherload::recipe::{AugmentStep, DataType, InterpolationMode, PixelRect};

    use super::*;

    #[test]
    fn every_shape_of_step_is_text() {
        let crop = Step::Crop(PixelRect {
            left: 40,
            top: 12,
            width: 312,
            height: 280,
        });
        assert_eq!(
            describe(&crop),
            "crop: height 280, left 40, top 12, width 312"
        );
        assert_eq!(describe(&Step::Mirror), "mirror");
        assert_eq!(describe(&Step::Turn(3)), "turn 3");
        assert_eq!(describe(&Step::Brightness(1.2)), "brightness 1.2");
        assert_eq!(
            describe(&Step::Shift([0.0, -0.5, 1.0])),
            "shift: [0, -0.5, 1]"
        );
        assert_eq!(describe(&Step::Cast(DataType::U8)), "cast u8");
        let rotate = AugmentStep::Rotate {
            degrees: -12.5,
            interpolation: InterpolationMode::Nearest,
            fill: [0; 3],
        };
        assert_eq!(
            describe(&Step::Augment(rotate)),
            "augment: rotate degrees -12.5, fill [0, 0, 0], interpolation nearest"
        );
    }
}

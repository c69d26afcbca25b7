//! How the labels of a file become the numbers of a batch's masks.
//!
//! Pure. The consumer checks the rule, and workers apply it to each pixel of a row.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::picture::LabelForm;
use crate::picture::labels::{LABEL, OUTSIDE};
use crate::recipe::{LabelFilter, LabelMoves};

/// The element type of masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MaskType {
    Uint8,
    Int32,
    Int64,
}

impl MaskType {
    /// Bytes of an element.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Uint8 => 1,
            Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }

    /// The name in NumPy.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uint8 => "uint8",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }

    /// The numbers that it holds.
    fn range(self) -> RangeInclusive<i64> {
        match self {
            Self::Uint8 => 0..=i64::from(u8::MAX),
            Self::Int32 => i64::from(i32::MIN)..=i64::from(i32::MAX),
            Self::Int64 => i64::MIN..=i64::MAX,
        }
    }

    /// The range in words.
    fn range_text(self) -> String {
        let range = self.range();
        format!("{} holds {} to {}", self.name(), range.start(), range.end())
    }
}

/// How the labels of files become the numbers of masks. The default keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MaskRule {
    /// How files store labels.
    pub form: LabelForm,
    /// Which label a resized pixel takes.
    pub filter: LabelFilter,
    /// The number that a loss ignores, such as 255 or -100. It stays as it is.
    pub ignore: Option<i64>,
    /// 0 becomes `ignore` (255 if it is not set), and all other numbers decrease by 1, as in
    /// ADE20K and in Hugging Face's `do_reduce_labels`. A label that decreases to `ignore` is an
    /// error of its sample.
    pub reduce_zero_label: bool,
    /// New numbers for labels, before `reduce_zero_label`. A label that is not listed becomes
    /// `ignore`; without `ignore` it is an error of its sample.
    pub map: BTreeMap<u32, i64>,
    /// The number outside of an image: of padding, and of what a rotation uncovers. Default:
    /// `ignore`, or 0 without it.
    pub fill: Option<i64>,
    /// The element type. Default: `uint8`, and `int32` for labels in colours.
    pub dtype: Option<MaskType>,
}

/// The number of labels that have an entry in a table.
const FEW: usize = 256;

/// The number that ADE20K ignores.
const USUAL_IGNORE: i64 = 255;

impl MaskRule {
    /// The element type of masks.
    #[must_use]
    pub fn element(&self) -> MaskType {
        self.dtype.unwrap_or(match self.form {
            LabelForm::Numbers => MaskType::Uint8,
            LabelForm::Colors => MaskType::Int32,
        })
    }

    fn ignored(&self) -> Option<i64> {
        let usual = self.reduce_zero_label.then_some(USUAL_IGNORE);
        self.ignore.or(usual)
    }

    /// The number outside of an image.
    fn outside(&self) -> i64 {
        self.fill.or(self.ignored()).unwrap_or(0)
    }

    /// Checks that all numbers fit the element type, and that `reduce_zero_label` keeps classes
    /// apart.
    ///
    /// # Errors
    /// A number that does not fit; `reduce_zero_label` with 0 as the ignored number.
    pub(crate) fn check(&self) -> Result<()> {
        if self.reduce_zero_label && self.ignored() == Some(0) {
            return Err(Error::option(
                "masks",
                "masks: `reduce_zero_label` makes class 0 of label 1, so `ignore` cannot be 0: use \
                 255",
            ));
        }
        let element = self.element();
        let given = [("ignore", self.ignored()), ("fill", self.fill)];
        let named = given.into_iter().filter_map(|(name, n)| Some((name, n?)));
        let mapped = self.map.values().map(|number| ("map", *number));
        match named
            .chain(mapped)
            .find(|(_, n)| !element.range().contains(n))
        {
            None => Ok(()),
            Some((name, number)) => Err(Error::option(
                "masks",
                format!(
                    "masks: `{name}` has {number}, and {}: use another dtype",
                    element.range_text()
                ),
            )),
        }
    }

    /// Fingerprint of this rule and of files with this hash, as hexadecimal digits.
    pub(crate) fn fingerprint(&self, files: u128) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let text = format!("{files:032x} {text}");
        format!("{:032x}", twox_hash::XxHash3_128::oneshot(text.as_bytes()))
    }

    /// How labels move.
    pub(crate) fn moves(&self) -> LabelMoves {
        LabelMoves {
            filter: self.filter,
            fill: OUTSIDE,
        }
    }

    /// Fills `bytes`, a mask without a sample, with the number outside of an image.
    pub(crate) fn fill_empty(&self, bytes: &mut [u8]) {
        let number = self.outside();
        match self.element() {
            MaskType::Uint8 => bytes.fill(number as u8),
            MaskType::Int32 => (bytes.as_chunks_mut().0.iter_mut())
                .for_each(|to| *to = (number as i32).to_ne_bytes()),
            MaskType::Int64 => {
                (bytes.as_chunks_mut().0.iter_mut()).for_each(|to| *to = number.to_ne_bytes())
            }
        }
    }

    /// The number of a label of a file.
    fn number(&self, label: u32) -> std::result::Result<i64, SampleFault> {
        let fault = |what: String| Err(FaultKind::Corrupt.fault(what));
        let ignored = self.ignored();
        let mapped = match (self.map.get(&label), ignored) {
            (Some(to), _) => *to,
            (None, _) if self.map.is_empty() => i64::from(label),
            (None, Some(ignored)) => ignored,
            (None, None) => {
                return fault(format!(
                    "the mask has label {label}, which `map` does not list: list it, or set \
                     `ignore`"
                ));
            }
        };
        let number = match (self.reduce_zero_label, mapped) {
            (true, 0) => self.ignored().unwrap_or(USUAL_IGNORE),
            (true, n) if Some(n) != ignored => n - 1,
            (_, n) => n,
        };
        if number != mapped && mapped != 0 && Some(number) == ignored {
            return fault(format!(
                "the mask has label {mapped}, which `reduce_zero_label` makes {number}, the \
                 ignored number: use another `ignore`"
            ));
        }
        let element = self.element();
        match element.range().contains(&number) {
            true => Ok(number),
            false => fault(format!(
                "the mask has label {number}, and {}: use another dtype for masks",
                element.range_text()
            )),
        }
    }
}

/// A rule with a table of its most frequent labels.
#[derive(Debug)]
pub(crate) struct MaskWriter {
    rule: MaskRule,
    table: Vec<Option<i64>>,
}

impl MaskWriter {
    pub(crate) fn new(rule: &MaskRule) -> Self {
        let few = 0..FEW as u32;
        Self {
            rule: rule.clone(),
            table: few.map(|label| rule.number(label).ok()).collect(),
        }
    }

    pub(crate) fn rule(&self) -> &MaskRule {
        &self.rule
    }

    /// Checks that labels have numbers, wherever they are in the file. So a file is good or bad
    /// whatever part of it is used.
    ///
    /// # Errors
    /// A label without a number.
    pub(crate) fn check(&self, labels: &[u8]) -> std::result::Result<(), SampleFault> {
        let labels = labels.as_chunks::<LABEL>().0.iter();
        labels
            .copied()
            .try_for_each(|label| self.number(label).map(drop))
    }

    /// Whether [`MaskWriter::check`] may return a fault for labels up to this one.
    pub(crate) fn may_reject(&self, most: u32) -> bool {
        let rule = &self.rule;
        let keeps_all = rule.map.is_empty()
            && !rule.reduce_zero_label
            && rule.element().range().contains(&i64::from(most));
        let fits_table = (most as usize) < FEW && self.table.iter().all(Option::is_some);
        !keeps_all && !fits_table
    }

    /// Writes the numbers of labels of [`LABEL`] bytes each. `to` has room for all of them.
    ///
    /// # Errors
    /// A label without a number.
    pub(crate) fn write(
        &self,
        labels: &[u8],
        to: &mut [u8],
    ) -> std::result::Result<(), SampleFault> {
        let labels = labels.as_chunks::<LABEL>().0.iter();
        match self.rule.element() {
            MaskType::Uint8 => {
                for (to, label) in to.iter_mut().zip(labels) {
                    *to = self.number(*label)? as u8;
                }
            }
            MaskType::Int32 => {
                for (to, label) in to.as_chunks_mut().0.iter_mut().zip(labels) {
                    *to = (self.number(*label)? as i32).to_ne_bytes();
                }
            }
            MaskType::Int64 => {
                for (to, label) in to.as_chunks_mut().0.iter_mut().zip(labels) {
                    *to = self.number(*label)?.to_ne_bytes();
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn number(&self, label: [u8; LABEL]) -> std::result::Result<i64, SampleFault> {
        if let [low, 0, 0] = label
            && let Some(number) = self.table[usize::from(low)]
        {
            return Ok(number);
        }
        if label == OUTSIDE {
            return Ok(self.rule.outside());
        }
        let [low, middle, high] = label;
        self.rule.number(u32::from_le_bytes([low, middle, high, 0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(rule: &MaskRule, labels: &[u32]) -> std::result::Result<Vec<i64>, SampleFault> {
        rule.check().unwrap();
        let bytes: Vec<u8> = (labels.iter())
            .flat_map(|label| label.to_le_bytes()[..LABEL].to_vec())
            .collect();
        let size = rule.element().size();
        let mut to = vec![0xaa; size * labels.len()];
        MaskWriter::new(rule).write(&bytes, &mut to)?;
        Ok(to
            .chunks_exact(size)
            .map(|n| match *n {
                [v] => i64::from(v),
                [a, b, c, d] => i64::from(i32::from_ne_bytes([a, b, c, d])),
                _ => i64::from_ne_bytes(n.try_into().unwrap()),
            })
            .collect())
    }

    const OUT: u32 = 0xff_ffff;

    #[test]
    fn labels_become_the_numbers_of_their_rule() {
        let plain = MaskRule::default();
        assert_eq!(written(&plain, &[0, 7, 255, OUT]).unwrap(), [0, 7, 255, 0]);
        let ade = MaskRule {
            reduce_zero_label: true,
            ..MaskRule::default()
        };
        // Hugging Face: 0 becomes 255, all others decrease, and 254 from 255 becomes 255 again.
        assert_eq!(
            written(&ade, &[0, 1, 150, 255, OUT]).unwrap(),
            [255, 0, 149, 255, 255]
        );
        let cityscapes = MaskRule {
            map: [(7, 0), (8, 1), (33, 18)].into(),
            ignore: Some(255),
            dtype: Some(MaskType::Int64),
            ..MaskRule::default()
        };
        assert_eq!(
            written(&cityscapes, &[0, 7, 8, 33, 34, 300, OUT]).unwrap(),
            [255, 0, 1, 18, 255, 255, 255]
        );
        let panoptic = MaskRule {
            form: LabelForm::Colors,
            fill: Some(3),
            ..MaskRule::default()
        };
        let ids = [0, 255, 256, 3_226_956, OUT];
        assert_eq!(
            written(&panoptic, &ids).unwrap(),
            [0, 255, 256, 3_226_956, 3]
        );
    }

    #[test]
    fn labels_without_a_number_and_numbers_without_room_are_faults() {
        let fault = written(&MaskRule::default(), &[1, 256]).unwrap_err();
        assert!(
            fault.reason.contains("label 256, and uint8 holds 0 to 255"),
            "{fault}"
        );
        let listed = MaskRule {
            map: [(1, 2)].into(),
            ..MaskRule::default()
        };
        let fault = written(&listed, &[1, 3]).unwrap_err();
        assert!(
            fault.reason.contains("label 3, which `map` does not list"),
            "{fault}"
        );
        let collides = MaskRule {
            reduce_zero_label: true,
            ignore: Some(150),
            ..MaskRule::default()
        };
        let labels = [0, 150, 152];
        assert_eq!(written(&collides, &labels).unwrap(), [150, 150, 151]);
        let fault = written(&collides, &[151]).unwrap_err();
        assert!(
            fault.reason.contains("`reduce_zero_label` makes 150"),
            "{fault}"
        );
        let zero = MaskRule {
            ignore: Some(0),
            ..collides
        };
        let e = zero.check().unwrap_err().to_string();
        assert!(e.contains("`ignore` cannot be 0"), "{e}");
        let negative = MaskRule {
            ignore: Some(-100),
            map: [(1, -1)].into(),
            dtype: Some(MaskType::Int64),
            ..MaskRule::default()
        };
        assert_eq!(written(&negative, &[1, 2, OUT]).unwrap(), [-1, -100, -100]);
        for rule in [
            MaskRule {
                ignore: Some(256),
                ..MaskRule::default()
            },
            MaskRule {
                fill: Some(300),
                ..MaskRule::default()
            },
            MaskRule {
                map: [(1, 256)].into(),
                ..MaskRule::default()
            },
        ] {
            let e = rule.check().unwrap_err().to_string();
            assert!(e.contains("uint8 holds 0 to 255"), "{e}");
            let wide = MaskRule {
                dtype: Some(MaskType::Int32),
                ..rule
            };
            wide.check().unwrap();
        }
    }

    #[test]
    fn rows_without_a_sample_have_the_number_outside_of_images() {
        for dtype in [MaskType::Uint8, MaskType::Int32, MaskType::Int64] {
            let rule = MaskRule {
                ignore: Some(200),
                dtype: Some(dtype),
                ..MaskRule::default()
            };
            let mut bytes = vec![1; 16];
            rule.fill_empty(&mut bytes);
            let mut want = vec![0; 16];
            let labels = [0xff; 3 * 16];
            MaskWriter::new(&rule).write(&labels, &mut want).unwrap();
            assert_eq!(bytes, want);
        }
    }
}

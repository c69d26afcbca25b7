//! Which caption a row gets: one of several, dropped, with shuffled tags.
//!
//! In the consumer. Pure: no file, no column, no random numbers of its own. The steps are in
//! `caption_steps`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Which of several captions a row gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaptionChoice {
    #[default]
    First,
    /// Each is equally likely.
    Random,
}

/// What a row without a caption gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MissingCaption {
    /// An error that names the sample.
    #[default]
    Error,
    /// An empty text, which `prefix` and `suffix` are added to.
    Empty,
}

/// How a column of texts becomes one caption for each row. The default keeps the first text of a
/// row, without white space at its ends.
///
/// Meaning and order of the steps are those of kohya's `sd-scripts`: choose, add `prefix` and
/// `suffix`, `drop`, `wildcards`, then tags: split, keep, `shuffle`, `tag_drop`, join with `", "`.
/// Random numbers follow from seed, epoch and position of the row. So they depend neither on workers
/// nor on ranks, and pixels keep theirs.
///
/// ```
/// use featherload::{CaptionChoice, CaptionRule};
///
/// let rule = CaptionRule {
///     choose: CaptionChoice::Random,
///     drop: 0.1,
///     ..CaptionRule::of_column("caption")
/// };
/// # let _ = rule;
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaptionRule {
    /// A column of texts, or of lists of texts. None: the program gives the values
    /// ([`BatchCaptions::of_values`](crate::batch::BatchCaptions::of_values)).
    pub column: Option<String>,
    pub choose: CaptionChoice,
    /// Each line of a text is a caption. Blank lines are none.
    pub lines: bool,
    pub missing: MissingCaption,
    /// Text before each caption, with a blank between them. It is a part of the first tag.
    pub prefix: String,
    /// Text after each caption, with a blank between them. It is a part of the last tag.
    pub suffix: String,
    /// Probability of an empty caption, 0 to 1.
    pub drop: f64,
    /// `{a|b}` becomes one of its parts. `{{` and `}}` are braces.
    pub wildcards: bool,
    /// Tags of a caption are in a random order.
    pub shuffle: bool,
    /// The first tags of this number keep their places, and are not dropped.
    pub keep: u32,
    /// Probability that a tag is dropped, 0 to 1.
    pub tag_drop: f64,
    /// What separates the tags of a column. Default: a comma. Tags of a caption have `", "` between
    /// them.
    pub separator: String,
    /// If a caption has this text, tags before it are kept instead of the first `keep`. Tags after a
    /// second one are kept, too.
    pub keep_separator: Option<String>,
    /// Stands inside of one tag for `separator`, which replaces it in the end.
    pub secondary_separator: Option<String>,
}

impl Default for CaptionRule {
    fn default() -> Self {
        Self {
            column: None,
            choose: CaptionChoice::default(),
            lines: false,
            missing: MissingCaption::default(),
            prefix: String::new(),
            suffix: String::new(),
            drop: 0.0,
            wildcards: false,
            shuffle: false,
            keep: 0,
            tag_drop: 0.0,
            separator: Self::SEPARATOR.to_owned(),
            keep_separator: None,
            secondary_separator: None,
        }
    }
}

impl CaptionRule {
    const SEPARATOR: &str = ",";

    /// The default rule for a column.
    pub fn of_column(column: impl Into<String>) -> Self {
        Self {
            column: Some(column.into()),
            ..Self::default()
        }
    }

    /// Whether captions are split into tags.
    pub(super) fn has_tags(&self) -> bool {
        self.shuffle || self.tag_drop > 0.0
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// No probability; an empty separator or column; a field without effect.
    pub(crate) fn check(&self) -> Result<()> {
        let refused = |what: String| Err(Error::option("captions", format!("captions: {what}")));
        for (name, value) in [("drop", self.drop), ("tag_drop", self.tag_drop)] {
            if !(0.0..=1.0).contains(&value) {
                return refused(format!(
                    "`{name}: {value}` is no probability: give 0 to 1, such as 0.1"
                ));
            }
        }
        let separators = [
            ("column", self.column.as_deref()),
            ("separator", Some(self.separator.as_str())),
            ("keep_separator", self.keep_separator.as_deref()),
            ("secondary_separator", self.secondary_separator.as_deref()),
        ];
        if let Some((name, _)) = separators.iter().find(|(_, text)| *text == Some("")) {
            return refused(format!("`{name}` is empty: give a text, or remove it"));
        }
        let is_split = self.has_tags() || self.secondary_separator.is_some();
        let without_effect = [
            ("keep", self.keep > 0 && !self.has_tags()),
            (
                "keep_separator",
                self.keep_separator.is_some() && !self.has_tags(),
            ),
            ("separator", self.separator != Self::SEPARATOR && !is_split),
        ];
        match without_effect.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((name, _)) => refused(format!(
                "`{name}` is about tags, which this rule leaves as they are: set `shuffle` or \
                 `tag_drop`, or remove `{name}`"
            )),
        }
    }
}

impl FromStr for CaptionRule {
    type Err = Error;

    /// A column, or a JSON object of the fields of a rule.
    fn from_str(text: &str) -> Result<Self> {
        if !text.trim_start().starts_with('{') {
            return Ok(Self::of_column(text));
        }
        let refused = |what: String| Error::option("captions", format!("captions: {what}"));
        let rule: Self = serde_json::from_str(text).map_err(|e| refused(e.to_string()))?;
        match rule.column {
            Some(_) => Ok(rule),
            None => Err(refused(
                "`column` is missing: add it, such as \"column\": \"caption\"".into(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_without_a_meaning_are_named() {
        let tags = CaptionRule {
            shuffle: true,
            ..CaptionRule::default()
        };
        let of = |json: &str| -> String {
            let rule: CaptionRule = serde_json::from_str(json).unwrap();
            rule.check().unwrap_err().to_string()
        };
        for (json, name) in [
            (r#"{"drop": 1.5}"#, "`drop: 1.5`"),
            (r#"{"drop": -0.1}"#, "`drop: -0.1`"),
            (r#"{"tag_drop": 2}"#, "`tag_drop: 2`"),
            (r#"{"column": ""}"#, "`column` is empty"),
            (
                r#"{"separator": "", "shuffle": true}"#,
                "`separator` is empty",
            ),
            (
                r#"{"keep_separator": "", "shuffle": true}"#,
                "`keep_separator` is empty",
            ),
            (r#"{"secondary_separator": ""}"#, "`secondary_separator` is"),
            (r#"{"keep": 2}"#, "remove `keep`"),
            (r#"{"keep_separator": "|||"}"#, "remove `keep_separator`"),
            (r#"{"separator": ";"}"#, "remove `separator`"),
        ] {
            let text = of(json);
            assert!(text.contains(name) && text.contains("captions"), "{text}");
        }
        let nan = CaptionRule {
            drop: f64::NAN,
            ..CaptionRule::default()
        };
        assert!(nan.check().is_err());
        for rule in [
            CaptionRule::default(),
            CaptionRule {
                keep: 2,
                separator: ";".into(),
                ..tags
            },
            serde_json::from_str(r#"{"separator": ";", "secondary_separator": ";;"}"#).unwrap(),
            serde_json::from_str(r#"{"drop": 1, "tag_drop": 1, "keep": 1}"#).unwrap(),
        ] {
            rule.check().unwrap();
        }
    }

    #[test]
    fn a_text_is_a_column_or_an_object() {
        let of = |text: &str| text.parse::<CaptionRule>();
        assert_eq!(of(".txt").unwrap(), CaptionRule::of_column(".txt"));
        let rule = of(r#" {"column": "a", "choose": "random", "missing": "empty"}"#).unwrap();
        assert_eq!(rule.column.as_deref(), Some("a"));
        assert_eq!(rule.choose, CaptionChoice::Random);
        assert_eq!(rule.missing, MissingCaption::Empty);
        let e = of(r#"{"colum": "a"}"#).unwrap_err().to_string();
        assert!(e.contains("colum") && e.contains("tag_drop"), "{e}");
        assert!(of(r#"{"choose": "longest"}"#).is_err());
        let e = of(r#"{"drop": 0.1}"#).unwrap_err().to_string();
        assert!(e.contains("`column` is missing"), "{e}");
    }
}

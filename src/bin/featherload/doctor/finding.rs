//! One finding of `doctor`.

use std::fmt;

use serde::Serialize;

use crate::output::fields::with_text;

/// Column at which the text begins: after the verdict and the name.
const TEXT: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingVerdict {
    /// Good, or without effect.
    Ok,
    /// Works, with restrictions.
    Limited,
    Missing,
}

/// What was found, and its consequence.
#[derive(Debug, Serialize)]
pub struct DoctorFinding {
    pub name: &'static str,
    pub value: String,
    pub verdict: FindingVerdict,
    pub meaning: String,
    /// The promise of featherload that is broken here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<&'static str>,
}

impl DoctorFinding {
    pub fn new(
        verdict: FindingVerdict,
        name: &'static str,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self {
            name,
            value: value.into(),
            verdict,
            meaning: meaning.into(),
            promise: None,
        }
    }

    pub fn ok(name: &'static str, value: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self::new(FindingVerdict::Ok, name, value, meaning)
    }

    pub fn limited(
        name: &'static str,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self::new(FindingVerdict::Limited, name, value, meaning)
    }

    pub fn missing(
        name: &'static str,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self::new(FindingVerdict::Missing, name, value, meaning)
    }

    pub fn breaks(mut self, promise: &'static str) -> Self {
        self.promise = Some(promise);
        self
    }
}

/// Prints a line that begins with the verdict, then as many lines as the text needs.
impl fmt::Display for DoctorFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            FindingVerdict::Ok => "ok",
            FindingVerdict::Limited => "limited",
            FindingVerdict::Missing => "missing",
        };
        let text = format!("{}: {}", self.value, self.meaning);
        let head = format!("{verdict:<8} {:<22} ", self.name);
        f.write_str(&with_text(&head, TEXT, &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::fields::WIDTH;

    #[test]
    fn a_long_meaning_goes_on_below_itself() {
        let finding =
            DoctorFinding::limited("disk", "sda, reported as rotating", "seeks ".repeat(30));
        let text = finding.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() > 3, "{text}");
        assert!(lines[0].starts_with("limited  disk                   sda, "));
        for line in &lines {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        for line in &lines[1..] {
            assert_eq!(line.find(|c| c != ' '), Some(TEXT), "{line}");
        }
        // A path has no space to break at.
        let path = format!("/{}", "x".repeat(100));
        let text = DoctorFinding::ok("helper", &*path, "found").to_string();
        assert!(text.contains(&path), "{text}");
    }
}

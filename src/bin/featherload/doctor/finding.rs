//! One thing that was looked at.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As good as it can be, or of no consequence.
    Ok,
    /// It works, with less than there could be.
    Limited,
    Missing,
}

/// What was seen, and what it means.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub name: &'static str,
    pub value: String,
    pub verdict: Verdict,
    pub meaning: String,
    /// What featherload promises and cannot keep here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<&'static str>,
}

impl Finding {
    fn new(
        verdict: Verdict,
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
        Self::new(Verdict::Ok, name, value, meaning)
    }

    pub fn limited(
        name: &'static str,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self::new(Verdict::Limited, name, value, meaning)
    }

    pub fn missing(
        name: &'static str,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self::new(Verdict::Missing, name, value, meaning)
    }

    pub fn breaks(mut self, promise: &'static str) -> Self {
        self.promise = Some(promise);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Limited => "limited",
            Verdict::Missing => "missing",
        };
        write!(
            f,
            "{verdict:<8} {:<22} {}: {}",
            self.name, self.value, self.meaning
        )
    }
}

//! Messages between a consumer and any helper.
//!
//! Used in both. Written as JSON, because the options of an order omit fields.

use std::fmt;
use std::ops::Add;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Longest message in bytes.
pub(crate) const LONGEST: usize = 60 << 10;

/// Longest text in a message, in bytes.
#[cfg(feature = "stores")]
const LONGEST_TEXT: usize = 4 << 10;

/// A message of a helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HelperMessage<T> {
    Reply(T),
    /// For the user, independent of requests: for example, that the store is slow.
    Warning(String),
    /// The helper ends, for this reason.
    Trouble(HelperError),
}

/// Counters of a helper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransferCounts {
    /// Downloaded shards, or uploaded objects.
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    /// Deleted shards.
    pub(crate) removed: u64,
    /// Requests that failed and were repeated.
    pub(crate) retries: u64,
}

impl Add for TransferCounts {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            objects: self.objects + more.objects,
            bytes: self.bytes + more.bytes,
            removed: self.removed + more.removed,
            retries: self.retries + more.retries,
        }
    }
}

/// Why a helper cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HelperError {
    /// The option to change; `None` if the data set is at fault.
    pub(crate) option: Option<String>,
    /// The address or folder that failed.
    pub(crate) about: String,
    pub(crate) what: String,
    /// The same request may succeed later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) may_pass: bool,
}

impl HelperError {
    #[cfg(feature = "stores")]
    pub(crate) fn new(about: impl Into<String>, what: impl Into<String>) -> Self {
        let cut = |mut text: String| {
            let mut end = text.len().min(LONGEST_TEXT);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text
        };
        Self {
            option: None,
            about: cut(about.into()),
            what: cut(what.into()),
            may_pass: false,
        }
    }

    /// The same error of a request that may succeed later.
    #[cfg(feature = "stores")]
    pub(crate) fn that_may_pass(self) -> Self {
        Self {
            may_pass: true,
            ..self
        }
    }

    /// An error about a file or folder of this machine.
    #[cfg(feature = "stores")]
    pub(crate) fn of_path(path: &std::path::Path, what: impl Into<String>) -> Self {
        Self::new(path.display().to_string(), what)
    }

    /// The same error, which another value of that option would fix.
    #[cfg(feature = "stores")]
    pub(crate) fn of_option(self, option: &str) -> Self {
        Self {
            option: Some(option.to_owned()),
            ..self
        }
    }

    pub(crate) fn into_error(self) -> Error {
        match self.option.as_deref() {
            Some("fetch_limit") => Error::option("fetch_limit", self.what),
            Some("fetch_dir") => Error::option("fetch_dir", self.what),
            _ => Error::dataset(self.about, self.what),
        }
    }
}

/// The name of a message's variant.
pub(crate) fn name_of(message: &impl fmt::Debug) -> String {
    let text = format!("{message:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

pub(crate) fn to_bytes(message: &impl Serialize) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(message)
        .map_err(|e| Error::protocol(format!("write a message to a helper: {e}")))?;
    if bytes.len() > LONGEST {
        return Err(Error::config(format!(
            "the options of the order take {} bytes, but the limit with an object store is \
             {LONGEST}",
            bytes.len()
        )));
    }
    Ok(bytes)
}

pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| Error::protocol(format!("read a message of a helper: {e}")))
}

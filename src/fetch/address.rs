//! Addresses of object stores, as text.
//!
//! In every process. Never in here: a store, or credentials, which come from the environment and
//! are in no address.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::data::shard::expand;
use crate::error::{Error, Result};

/// How addresses begin that a store is known for.
const SCHEMES: &[&str] = &[
    "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https", "file",
];

/// Where a cache lies in an object store: `s3://BUCKET/PREFIX`, `gs://`, `az://`, `https://`,
/// `file:///`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address(String);

impl Address {
    /// How addresses begin, for messages.
    pub const KINDS: &str = "s3://, gs://, az://, https:// or file://";

    /// Whether a text begins as the address of a store.
    pub fn is_one(text: impl AsRef<OsStr>) -> bool {
        let text = text
            .as_ref()
            .to_str()
            .and_then(|text| text.split_once("://"));
        text.is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
    }

    /// # Errors
    /// A text that begins otherwise; one with a password, a query or a fragment in it.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<Self> {
        let given = text.as_ref();
        let wrong = |shown: &str, what: &str| {
            Error::dataset(
                shown,
                format!("{what}: give {}BUCKET/PREFIX or the like", Self::KINDS),
            )
        };
        let Some(text) = given.to_str() else {
            return Err(wrong(&given.to_string_lossy(), "is no UTF-8"));
        };
        let Some((scheme, rest)) = text.split_once("://").filter(|(s, _)| SCHEMES.contains(s))
        else {
            return Err(wrong(text, "is no address of an object store"));
        };
        if let Some(at) = rest.find(['?', '#']) {
            let shown = format!("{scheme}://{}", &rest[..at]);
            return Err(wrong(
                &shown,
                "has a query behind it, which may hold a secret: credentials come from the \
                 environment",
            ));
        }
        let host = rest.split('/').next().unwrap_or_default();
        // `abfs://CONTAINER@ACCOUNT` has no password.
        if host.contains('@') && (host.contains(':') || !scheme.starts_with("abfs")) {
            return Err(wrong(
                &format!("{scheme}://..."),
                "has a user or a password in it: credentials come from the environment",
            ));
        }
        if host.is_empty() && scheme != "file" {
            return Err(wrong(text, "names no bucket"));
        }
        let trimmed = rest.trim_end_matches('/');
        if trimmed.is_empty() {
            return Err(wrong(text, "names nothing"));
        }
        Ok(Self(format!("{scheme}://{trimmed}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where its objects lie: of tars that are named, the folders that they are in.
    ///
    /// # Errors
    /// A pattern that is none.
    pub(crate) fn folders(&self) -> Result<BTreeSet<String>> {
        if !Index::names_tars(&self.0) {
            return Ok(BTreeSet::from([self.0.clone()]));
        }
        let all = expand::addresses(&self.0)?;
        let folders = all.iter().filter_map(|one| one.rsplit_once('/'));
        Ok(folders.map(|(folder, _)| folder.to_owned()).collect())
    }

    /// The address of an object below it, for people.
    pub(crate) fn of(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_stores_are_told_from_paths() {
        for text in ["s3://b/p", "gs://b", "https://h/p", "file:///p", "az://c/p"] {
            assert!(Address::is_one(text), "{text}");
        }
        for text in [
            "/s3://b",
            "s3:/b",
            "train.tar",
            "pipe:cat",
            "hf://x/y",
            "S3://b",
            "",
        ] {
            assert!(!Address::is_one(text), "{text}");
            assert!(Address::parse(text).is_err(), "{text}");
        }
        let address = Address::parse("s3://b/p//").unwrap();
        assert_eq!(address.as_str(), "s3://b/p");
        assert_eq!(address.of("manifest.json"), "s3://b/p/manifest.json");
    }

    #[test]
    fn secrets_are_refused_and_not_repeated() {
        for text in [
            "https://user:hunter2@host/p",
            "s3://hunter2@bucket/p",
            "https://host/p?sig=hunter2",
            "abfss://c:hunter2@account/p",
        ] {
            let e = Address::parse(text).unwrap_err().to_string();
            assert!(!e.contains("hunter2") && e.contains("environment"), "{e}");
        }
        assert!(Address::parse("abfss://container@account.dfs.core.windows.net/p").is_ok());
        for text in ["s3://", "s3:///p", "file:///"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}

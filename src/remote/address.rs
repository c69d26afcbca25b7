//! Addresses of object stores, as text.
//!
//! Used in every process. Never in here: a store, or credentials. Those come from the environment
//! and are part of no address.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::index::{Index, SCHEMES};
use crate::data::shard::shard_patterns;
use crate::error::{Error, Result};
use crate::sys::location::ResolvedPath;

/// The address of a cache in an object store: `s3://BUCKET/PREFIX`, `gs://`, `az://`, `https://`,
/// `file:///`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoreAddress(String);

impl StoreAddress {
    /// The schemes, for messages.
    pub const KINDS: &str = "s3://, gs://, az://, https:// or file://";

    /// Whether a text begins like the address of a store.
    pub fn is_address(text: impl AsRef<OsStr>) -> bool {
        let text = text
            .as_ref()
            .to_str()
            .and_then(|text| text.split_once("://"));
        text.is_some_and(|(scheme, _)| known_scheme(scheme).is_some())
    }

    /// # Errors
    /// An unknown scheme; a password, a query or a fragment; a `file://` without an absolute path.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<Self> {
        let given = text.as_ref();
        let wrong = |address_text: &str, what: &str| {
            Error::dataset(
                address_text,
                format!("{what}: give {}BUCKET/PREFIX or the like", Self::KINDS),
            )
        };
        let Some(text) = given.to_str() else {
            return Err(wrong(&given.to_string_lossy(), "is not UTF-8"));
        };
        let found = text.split_once("://");
        let found = found.and_then(|(scheme, rest)| Some((known_scheme(scheme)?, rest)));
        let Some((scheme, rest)) = found else {
            return Err(wrong(text, "is not an address of an object store"));
        };
        if let Some(at) = rest.find(['?', '#']) {
            let address_text = format!("{scheme}://{}", &rest[..at]);
            return Err(wrong(
                &address_text,
                "has a query, which may contain a secret: credentials come from the \
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
        if scheme == "file" {
            return Self::of_file(text, trimmed);
        }
        Ok(Self(format!("{scheme}://{trimmed}")))
    }

    /// `rest`: the part after `file://`.
    fn of_file(text: &str, rest: &str) -> Result<Self> {
        let wrong = |what: &str| {
            let form = "write file:///FOLDER with the whole path, or the path alone";
            Err(Error::dataset(text, format!("{what}: {form}")))
        };
        // The name of this machine in RFC 8089.
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        if !path.starts_with('/') {
            return wrong("names a host or a relative path, but files must be on this machine");
        }
        // Parsers of addresses drop or convert these.
        if path.contains(|c: char| c == '\\' || c.is_control()) {
            return wrong("has a backslash or a control character (%5C is a backslash)");
        }
        match local_path(path) {
            Some(_) => Ok(Self(format!("file://{path}"))),
            None => wrong("has a percent sign without a byte of UTF-8 (%25 is a percent sign)"),
        }
    }

    /// The `file://` address of an absolute path; `None` for a name that is not UTF-8.
    pub(crate) fn of_local(path: &Path) -> Option<Self> {
        let mut text = String::from("file://");
        for byte in path.to_str()?.bytes() {
            match byte {
                b'/' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
                _ if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
        Some(Self(text))
    }

    /// The path of a `file://` address; `None` for other addresses.
    pub(crate) fn local_path(&self) -> Option<PathBuf> {
        local_path(self.0.strip_prefix("file://")?)
    }

    /// Resolves a path or a `file://` address; `None` for other addresses.
    ///
    /// # Errors
    /// An invalid address; an empty path.
    pub(crate) fn location(place: &Path) -> Result<Option<ResolvedPath>> {
        let path = match Self::is_address(place) {
            true => Self::parse(place)?.local_path(),
            false => Some(place.to_owned()),
        };
        let located =
            path.map(|path| ResolvedPath::of(&path).map_err(|e| Error::io_at("find", path, e)));
        located.transpose()
    }

    /// Whether `place`, a path or an address, is this place.
    ///
    /// # Errors
    /// Like [`StoreAddress::location`].
    pub(crate) fn is_same_place(&self, place: &Path) -> Result<bool> {
        let own = Self::location(Path::new(&self.0))?;
        Ok(match (own, Self::location(place)?) {
            (Some(own), Some(place)) => place.is_same_place(&own),
            (None, None) => self.bucket_path() == Self::parse(place)?.bucket_path(),
            _ => false,
        })
    }

    /// Whether `place`, a path or an address, is this place or below it.
    ///
    /// # Errors
    /// Like [`StoreAddress::location`].
    pub(crate) fn contains(&self, place: &Path) -> Result<bool> {
        let own = Self::location(Path::new(&self.0))?;
        Ok(match (own, Self::location(place)?) {
            (Some(own), Some(place)) => place.is_within(&own),
            (None, None) => {
                let (own, place) = (self.bucket_path(), Self::parse(place)?.bucket_path());
                let below = place.strip_prefix(&own);
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            _ => false,
        })
    }

    /// The address with one scheme for each kind of store.
    fn bucket_path(&self) -> String {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("", &self.0));
        let scheme = match scheme {
            "s3a" => "s3",
            "azure" => "az",
            "abfss" => "abfs",
            scheme => scheme,
        };
        format!("{scheme}://{rest}")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders of its objects. For named tars, the folders that contain them.
    ///
    /// # Errors
    /// An invalid pattern.
    pub(crate) fn folders(&self) -> Result<BTreeSet<String>> {
        if !Index::names_tars(&self.0) {
            return Ok(BTreeSet::from([self.0.clone()]));
        }
        let all = shard_patterns::addresses(&self.0)?;
        let folders = all.iter().filter_map(|one| one.rsplit_once('/'));
        Ok(folders.map(|(folder, _)| folder.to_owned()).collect())
    }

    /// The address of an object below it, for people.
    pub(crate) fn of(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The scheme in lower case, if it is known.
fn known_scheme(scheme: &str) -> Option<&'static str> {
    let mut known = SCHEMES.iter();
    known
        .find(|known| known.eq_ignore_ascii_case(scheme))
        .copied()
}

/// The path after `file://`, as stores read it: percent signs decoded, `.` and `..` resolved
/// textually. `None` for an invalid percent sign, or bytes that are not UTF-8.
fn local_path(text: &str) -> Option<PathBuf> {
    let mut path = PathBuf::from("/");
    for part in text.split('/') {
        let name = decoded(part)?;
        match name.as_str() {
            "" | "." => {}
            ".." => _ = path.pop(),
            // A slash may be encoded, too.
            name => path.extend(name.split('/').filter(|part| !part.is_empty())),
        }
    }
    Some(path)
}

fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
            bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
            rest = &behind[2..];
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_stores_are_told_from_paths() {
        for text in ["s3://b/p", "gs://b", "https://h/p", "file:///p", "az://c/p"] {
            assert!(StoreAddress::is_address(text), "{text}");
        }
        for text in ["/s3://b", "s3:/b", "train.tar", "pipe:cat", "hf://x/y", ""] {
            assert!(!StoreAddress::is_address(text), "{text}");
            assert!(StoreAddress::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            StoreAddress::parse("S3://b/P").unwrap().as_str(),
            "s3://b/P"
        );
        let address = StoreAddress::parse("s3://b/p//").unwrap();
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
            let e = StoreAddress::parse(text).unwrap_err().to_string();
            assert!(!e.contains("hunter2") && e.contains("environment"), "{e}");
        }
        assert!(StoreAddress::parse("abfss://container@account.dfs.core.windows.net/p").is_ok());
        for text in ["s3://", "s3:///p", "file:///"] {
            assert!(StoreAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_address_names_one_path_however_it_is_written() {
        for text in [
            "file:///data/c2",
            "FILE:///data/c2/",
            "file://localhost/data/c2",
            "file:///data/c%32",
            "file:///data/x/../c2",
            "file:///data/x/%2e%2E/./c2",
            "file:///data%2Fc2//",
        ] {
            let address = StoreAddress::parse(text).unwrap();
            let path = address.local_path();
            assert_eq!(path.as_deref(), Some(Path::new("/data/c2")), "{text}");
        }
        for text in [
            "file://c2",
            "file://./c2",
            "file://host/c2",
            "file:///a\\c2",
            "file:///a%2",
        ] {
            let e = StoreAddress::parse(text).unwrap_err().to_string();
            assert!(e.contains("write file:///FOLDER"), "{e}");
        }
        assert_eq!(StoreAddress::parse("s3://b/p").unwrap().local_path(), None);
    }

    #[test]
    fn a_place_below_an_address_is_found_by_path_and_by_address() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("c2")).unwrap();
        std::os::unix::fs::symlink("c2", at("link")).unwrap();
        let own = StoreAddress::parse(format!("file://{}", at("c2").display())).unwrap();
        let address = |name: &str| PathBuf::from(format!("file://{}", at(name).display()));
        for inside in ["c2", "c2/new", "link", "link/new", "other/../c2/"] {
            assert!(own.contains(&at(inside)).unwrap(), "{inside}");
            assert!(own.contains(&address(inside)).unwrap(), "{inside}");
        }
        for outside in ["c", "c22", "c2/../new"] {
            assert!(!own.contains(&at(outside)).unwrap(), "{outside}");
            assert!(!own.contains(&address(outside)).unwrap(), "{outside}");
        }
        let bucket = StoreAddress::parse("s3://b/p").unwrap();
        for (place, is_below) in [
            ("s3a://b/p/q", true),
            ("s3://b/p/", true),
            ("s3://b/pq", false),
        ] {
            assert_eq!(
                bucket.contains(Path::new(place)).unwrap(),
                is_below,
                "{place}"
            );
        }
        assert!(!bucket.contains(&at("c2")).unwrap());
    }
}

//! Addresses of objects as texts, in place of paths.
//!
//! Used in consumer and fetcher.

use crate::data::index::names::shown;

/// The root of an index of addresses. No file can be below it.
pub(super) const ROOT: &str = "/dev/null/addresses";

/// Schemes of known stores.
pub(crate) const SCHEMES: &[&str] = &[
    "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https", "file",
];

/// Whether a path is the address of an object in a store that can be read.
pub(super) fn is_of_store(path: &[u8]) -> bool {
    let end = path.windows(3).position(|bytes| bytes == b"://");
    let scheme = end.and_then(|end| std::str::from_utf8(&path[..end]).ok());
    scheme.is_some_and(|scheme| SCHEMES.iter().any(|one| one.eq_ignore_ascii_case(scheme)))
}

/// The part of an address that names it for people: without a query or a fragment, which may be a
/// signature. The names of objects in `s3` and `gs` may contain their marks.
pub(crate) fn without_query(address: &str) -> &str {
    let scheme = address.split("://").next().unwrap_or_default();
    let has_marks = ["s3", "s3a", "gs", "file"]
        .iter()
        .any(|one| one.eq_ignore_ascii_case(scheme));
    match address.find(['?', '#']).filter(|_| !has_marks) {
        Some(at) => &address[..at],
        None => address,
    }
}

/// Whether an address has a user name or a password before its host. In `abfs` the name before the
/// host is a container.
pub(super) fn has_login(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_container = ["abfs", "abfss"]
        .iter()
        .any(|one| one.eq_ignore_ascii_case(scheme));
    match host.rsplit_once('@') {
        Some((login, _)) => !is_container || login.contains(':'),
        None => false,
    }
}

/// An address for an error text: without query, user name and password.
pub(super) fn for_people(address: &[u8]) -> String {
    let text = String::from_utf8_lossy(address);
    let plain = without_query(&text);
    match plain.split_once("://") {
        Some((scheme, rest)) if has_login(plain) => {
            let (_, rest) = rest.split_once('@').unwrap_or(("", rest));
            shown(format!("{scheme}://{rest}").as_bytes())
        }
        _ => shown(plain.as_bytes()),
    }
}

/// The path of a `file://` address of this machine. None for any other address.
pub(super) fn file_path(address: &[u8]) -> Option<Vec<u8>> {
    let (scheme, rest) = address.split_at_checked(b"file://".len())?;
    let local = b"localhost";
    let path = match rest.split_at_checked(local.len()) {
        Some((host, path)) if host.eq_ignore_ascii_case(local) => path,
        _ => rest,
    };
    if !scheme.eq_ignore_ascii_case(b"file://") || !path.starts_with(b"/") {
        return None;
    }
    let digit = |byte: Option<&u8>| Some(char::from(*byte?).to_digit(16)? as u8);
    let mut decoded = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = path.get(at) {
        let pair = (*byte == b'%').then(|| (digit(path.get(at + 1)), digit(path.get(at + 2))));
        match pair {
            Some((Some(high), Some(low))) => {
                decoded.push(high * 16 + low);
                at += 3;
            }
            // As a browser reads it.
            _ if matches!(byte, b'\t' | b'\n' | b'\r') => at += 1,
            _ => {
                decoded.push(if *byte == b'\\' { b'/' } else { *byte });
                at += 1;
            }
        }
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_have_paths() {
        for (address, path) in [
            ("file:///a/b%20c.jpg", Some("/a/b c.jpg")),
            ("FILE://LocalHost/a/%2e%2E/b", Some("/a/../b")),
            ("file:///a%zz%", Some("/a%zz%")),
            ("file:///a/.\t./b", Some("/a/../b")),
            ("file:///a\\..\\b", Some("/a/../b")),
            ("file://host/a", None),
            ("https://h/a", None),
            ("file", None),
        ] {
            let found = file_path(address.as_bytes());
            assert_eq!(found.as_deref(), path.map(str::as_bytes), "{address}");
        }
    }

    #[test]
    fn queries_and_logins_are_not_shown() {
        for (address, login, want) in [
            ("https://host/a.jpg?sig=1#x", false, "https://host/a.jpg"),
            ("https://me:pw@host/a.jpg?sig=1", true, "https://host/a.jpg"),
            ("https://:token@host/a.jpg", true, "https://host/a.jpg"),
            ("ftp://me:pw@host/a.jpg", true, "ftp://host/a.jpg"),
            (
                "s3://key:secret@bucket/a?b.jpg",
                true,
                "s3://bucket/a?b.jpg",
            ),
            ("s3://bucket/a@b?c.jpg", false, "s3://bucket/a@b?c.jpg"),
            ("az://box/a.jpg?sig=1", false, "az://box/a.jpg"),
            (
                "abfss://box@account.dfs.core.windows.net/a.jpg",
                false,
                "abfss://box@account.dfs.core.windows.net/a.jpg",
            ),
            ("https://host/a@b.jpg", false, "https://host/a@b.jpg"),
        ] {
            assert_eq!(has_login(address), login, "{address}");
            assert_eq!(for_people(address.as_bytes()), want);
        }
    }
}

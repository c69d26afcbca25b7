//! Addresses of objects as texts, in place of paths.
//!
//! Used in consumer and fetcher.

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

/// The part of an address that names it for people: without a query, which may be a signature.
pub(crate) fn without_query(address: &str) -> &str {
    let scheme = address.split("://").next().unwrap_or_default();
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    match address.find(['?', '#']).filter(|_| web) {
        Some(at) => &address[..at],
        None => address,
    }
}

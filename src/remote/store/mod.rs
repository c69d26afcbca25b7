//! A store, for fetcher and uploader.
//!
//! | contents | files |
//! |---|---|
//! | the store; its error responses; retries | `client`, `answer`, `retry_policy` |
//! | the HTTP client, which limits responses; redirects | `connector`, `redirect` |
//! | servers without usable ranges | `ranges` |

mod answer;
pub(super) mod client;
mod connector;
pub(super) mod ranges;
mod redirect;
pub(super) mod retry_policy;

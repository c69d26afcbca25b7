//! A store, as fetcher and sender speak with it.
//!
//! | what it is | files |
//! |---|---|
//! | the store; what its answers mean; how long an object is tried | `client`, `answer`, `patience` |
//! | the HTTP client of stores, which bounds answers; the redirects that it follows | `connector`, `redirect` |
//! | servers whose ranges cannot be used | `ranges` |

mod answer;
pub(super) mod client;
mod connector;
pub(super) mod ranges;
mod redirect;
pub(super) mod retry_policy;

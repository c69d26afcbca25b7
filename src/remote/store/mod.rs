//! A store, for fetcher and uploader.
//!
//! | contents | files |
//! |---|---|
//! | the store; its error responses; retries | `client`, `answer`, `retry_policy` |
//! | the HTTP client, which limits responses; redirects | `connector`, `redirect` |
//! | servers without usable ranges | `ranges` |
//! | the stores of a list of addresses; web addresses of any host | `address_stores`, `web_address` |
//! | hosts that ask for fewer requests | `slow_hosts` |

pub(super) mod address_stores;
mod answer;
pub(super) mod client;
mod connector;
pub(super) mod ranges;
mod redirect;
pub(super) mod retry_policy;
pub(super) mod slow_hosts;
mod web_address;

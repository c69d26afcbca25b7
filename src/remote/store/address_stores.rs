//! The stores of a list of addresses, which are opened when their first object is requested.
//!
//! Runs in the fetcher.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use object_store::path::Path;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::data::index::without_query;
use crate::remote::address::StoreAddress;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::client::Store;
use crate::remote::store::slow_hosts::SlowHosts;

/// Most buckets that are kept open. Web servers count as one.
const MOST_OPEN: usize = 256;

/// Most objects that are downloaded from a web server at a time, and from a bucket.
const FROM_WEB: usize = 16;
const FROM_BUCKET: usize = 64;

/// Time between two requests to a host that gives no answer.
const PROBE: Duration = Duration::from_secs(30);

/// An object, and its store.
#[derive(Debug)]
pub(crate) struct LocatedObject {
    pub(crate) store: Store,
    pub(crate) path: Path,
    /// Its name in error texts, which follows the address of the store.
    pub(crate) name: String,
}

/// The stores of a list of addresses.
#[derive(Debug)]
pub(crate) struct AddressStores {
    allow_redirects: bool,
    /// Whether an object that cannot be had is left out, instead of ending the run.
    pub(crate) leaves_out: bool,
    /// The file of what the stores have answered.
    pub(crate) answers: Option<PathBuf>,
    /// Objects that have arrived from the network.
    pub(crate) arrived: AtomicU64,
    /// The last of them, and when.
    last: Mutex<Option<(String, Instant)>>,
    /// Held by the one that asks whether the network works.
    pub(crate) probing: tokio::sync::Mutex<()>,
    slow: Arc<SlowHosts>,
    /// Hosts that give no answer, with the reason, and when one is asked again.
    silent: Mutex<HashMap<String, (String, Instant)>>,
    /// Turns of downloads, by host.
    turns: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// By scheme and bucket.
    open: Mutex<HashMap<String, Store>>,
}

impl LocatedObject {
    /// The object of this name: in `store`, or at this address if there are stores of addresses.
    ///
    /// # Errors
    /// An invalid name or address.
    pub(crate) fn find(
        store: &Store,
        others: Option<&AddressStores>,
        name: &str,
    ) -> Result<Self, HelperError> {
        match others {
            Some(others) => others.locate(name).map_err(NotLocated::into_error),
            None => Ok(Self {
                store: store.clone(),
                path: store.object(name)?,
                name: name.to_owned(),
            }),
        }
    }
}

/// Why there is no request for an address.
#[derive(Debug)]
pub(crate) enum NotLocated {
    /// The address is wrong.
    Address(HelperError),
    /// The settings of this machine open no store. So it is with all addresses of the bucket.
    Store(HelperError),
}

impl NotLocated {
    fn into_error(self) -> HelperError {
        match self {
            Self::Address(error) | Self::Store(error) => error,
        }
    }
}

impl AddressStores {
    pub(crate) fn new(allow_redirects: bool, leaves_out: bool, answers: Option<PathBuf>) -> Self {
        Self {
            allow_redirects,
            leaves_out,
            answers,
            arrived: AtomicU64::new(0),
            last: Mutex::default(),
            probing: tokio::sync::Mutex::default(),
            slow: Arc::default(),
            silent: Mutex::default(),
            turns: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// The object at an address.
    ///
    /// # Errors
    /// An invalid address; settings that open no store.
    pub(crate) fn locate(&self, address: &str) -> Result<LocatedObject, NotLocated> {
        let wrong =
            |what: String| NotLocated::Address(HelperError::new(without_query(address), what));
        let (scheme, rest) = address.split_once("://").unwrap_or_default();
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "http" || scheme == "https" {
            let path = Store::web_object(address).map_err(wrong)?;
            let store = self
                .store("web", || {
                    Store::open_web(self.allow_redirects, self.slow.clone())
                })
                .map_err(NotLocated::Store)?;
            let name = without_query(address).to_owned();
            return Ok(LocatedObject { store, path, name });
        }
        if scheme == "file" {
            // Parts may have percent signs, which only the whole address decodes.
            let whole = StoreAddress::parse(address).map_err(|e| wrong(words(&e, address)))?;
            let local = whole.local_path();
            let name = local.as_deref().and_then(|path| path.file_name()?.to_str());
            let (Some(name), Some(folder)) = (name, local.as_deref().and_then(|p| p.parent()))
            else {
                return Err(wrong("names no file".to_owned()));
            };
            let base = StoreAddress::of_local(folder)
                .ok_or_else(|| wrong("has a folder whose name is not UTF-8".to_owned()))?;
            let store = Store::open(&base, false).map_err(NotLocated::Store)?;
            let path = store.object(name).map_err(NotLocated::Address)?;
            let name = name.to_owned();
            return Ok(LocatedObject { store, path, name });
        }
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if key.is_empty() || key.ends_with('/') {
            return Err(wrong("names no object".to_owned()));
        }
        let root = format!("{scheme}://{bucket}");
        let base = StoreAddress::parse(&root).map_err(|e| wrong(words(&e, &root)))?;
        let store = self
            .store(&root, || {
                Store::open_paced(&base, self.allow_redirects, self.slow.clone())
            })
            .map_err(NotLocated::Store)?;
        let (path, name) = (
            store.object(key).map_err(NotLocated::Address)?,
            key.to_owned(),
        );
        Ok(LocatedObject { store, path, name })
    }

    /// Why the host of an address is not asked now. `None` if it is, and whether it may be silent.
    pub(crate) fn silent_host(&self, address: &str) -> (Option<String>, bool) {
        let mut all = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&host(address).to_ascii_lowercase()) {
            Some((_, next)) if *next <= Instant::now() => {
                *next = Instant::now() + PROBE;
                (None, true)
            }
            Some((why, _)) => (Some(why.clone()), true),
            None => (None, false),
        }
    }

    /// Records whether the host of an address gives an answer, or why none.
    pub(crate) fn record_host(&self, address: &str, why: Option<&str>) {
        let mut all = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        let host = host(address).to_ascii_lowercase();
        match why {
            Some(why) => _ = all.insert(host, (why.to_owned(), Instant::now() + PROBE)),
            None => _ = all.remove(&host),
        }
    }

    /// Records that an object has arrived.
    pub(crate) fn record_arrival(&self, address: &str) {
        if !is_file(address) {
            self.arrived.fetch_add(1, Ordering::Relaxed);
            self.record_answer(address);
        }
    }

    /// Records that the network answers at this address.
    pub(crate) fn record_answer(&self, address: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((address.to_owned(), Instant::now()));
    }

    /// The last address with an answer, and when it came.
    pub(crate) fn last_answer(&self) -> Option<(String, Instant)> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }

    /// Waits until another object of its host may be downloaded, until the permit is dropped.
    pub(crate) async fn turn(&self, address: &str) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MOST_OPEN {
                // Those that somebody has or waits for stay.
                all.retain(|_, turns| Arc::strong_count(turns) > 1);
            }
            let most = match is_web(address) {
                true => FROM_WEB,
                false => FROM_BUCKET,
            };
            let host = host(address).to_ascii_lowercase();
            let turns = all.entry(host);
            turns
                .or_insert_with(|| Arc::new(Semaphore::new(most)))
                .clone()
        };
        // It is never closed.
        turns.acquire_owned().await.ok()
    }

    fn store(
        &self,
        key: &str,
        open: impl FnOnce() -> Result<Store, HelperError>,
    ) -> Result<Store, HelperError> {
        // Its content is valid between any two operations.
        let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = all.get(key) {
            return Ok(store.clone());
        }
        let store = open()?;
        if all.len() >= MOST_OPEN {
            all.clear();
        }
        all.insert(key.to_owned(), store.clone());
        Ok(store)
    }
}

/// Whether requests for an address carry no credentials, and each object has its own answer.
pub(crate) fn is_web(address: &str) -> bool {
    let scheme = address.split("://").next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Whether an address is a file of this machine, which says nothing about the network.
pub(crate) fn is_file(address: &str) -> bool {
    let scheme = address.split("://").next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("file")
}

/// The folder of an address, whose objects often share a fate: all up to the last slash of its path.
pub(crate) fn folder(address: &str) -> &str {
    let path = without_query(address);
    let end = path.rfind('/').unwrap_or(path.len());
    &address[..end.max(host(address).len())]
}

/// Scheme and host, or bucket, of an address.
pub(crate) fn host(address: &str) -> &str {
    let begin = address.find("://").map_or(0, |at| at + 3);
    let end = address[begin..].find(['/', '?', '#']);
    &address[..end.map_or(address.len(), |at| begin + at)]
}

/// The text of an error without the address, which is added again.
fn words(e: &crate::error::Error, address: &str) -> String {
    let text = e.to_string();
    text.strip_prefix(&format!("{address}: "))
        .unwrap_or(&text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_a_host() {
        assert_eq!(host("https://h:1/a/b"), "https://h:1");
        assert_eq!(host("https://h?a=/b"), "https://h");
        assert_eq!(host("s3://b"), "s3://b");
        assert_eq!(folder("https://h:1/a/b/c?x=/y"), "https://h:1/a/b");
        assert_eq!(folder("https://h/a"), "https://h");
        assert_eq!(folder("https://h?a=/b"), "https://h");
        assert_eq!(folder("s3://b"), "s3://b");
        assert!(is_web("HTTP://h/a") && !is_web("s3://h/a") && is_file("File:///a"));
    }
}

//! The stores of a list of addresses, which are opened when their first object is requested.
//!
//! Runs in the fetcher.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use object_store::path::Path;

use crate::data::index::without_query;
use crate::remote::address::StoreAddress;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::client::Store;

/// Most buckets that are kept open. Web servers count as one.
const MOST_OPEN: usize = 256;

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
    /// Objects that have arrived.
    pub(crate) arrived: AtomicU64,
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
                .store("web", || Store::open_web(self.allow_redirects))
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
            .store(&root, || Store::open(&base, self.allow_redirects))
            .map_err(NotLocated::Store)?;
        let (path, name) = (
            store.object(key).map_err(NotLocated::Address)?,
            key.to_owned(),
        );
        Ok(LocatedObject { store, path, name })
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

/// The text of an error without the address, which is added again.
fn words(e: &crate::error::Error, address: &str) -> String {
    let text = e.to_string();
    text.strip_prefix(&format!("{address}: "))
        .unwrap_or(&text)
        .to_owned()
}

//! Annotations in object stores: a file of them, or members of tars.
//!
//! In the consumer, before a run.

use std::ops::ControlFlow;
use std::path::Path;

use tempfile::TempDir;

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::remote::fetch::StoreAddress;
use crate::remote::fetch::fetcher::Fetcher;
use crate::remote::upload::uploader;

/// A file of annotations that was downloaded. Removed when this is dropped.
#[derive(Debug)]
pub(crate) struct FetchedAnnotations {
    folder: TempDir,
    name: String,
}

impl FetchedAnnotations {
    /// Downloads the file at `address`. `helper`: the helper executable, if the user named one.
    ///
    /// # Errors
    /// There is no such object; a web server; a store that cannot be read.
    pub(super) fn download(address: &str, helper: Option<&Path>) -> Result<Self> {
        let refused = |what: &str| Error::dataset(address, format!("objects: {what}"));
        let (base, name) = match address.rsplit_once('/') {
            Some((base, name)) if !name.is_empty() && !base.ends_with('/') => (base, name),
            _ => return Err(refused("is no file: give the address of a file")),
        };
        if address.starts_with("http") {
            return Err(refused(
                "annotations are not read from web servers: download the file, and give its path",
            ));
        }
        let folder = tempfile::tempdir().map_err(|e| Error::io("make a temporary folder", e))?;
        let to = folder.path().join(name);
        let base = StoreAddress::parse(base)?;
        match uploader::get(&base, helper, (name.to_owned(), &to))? {
            true => Ok(Self {
                name: name.to_owned(),
                folder,
            }),
            false => Err(refused("there is no such object in the store")),
        }
    }

    /// The path of the file on this machine, as text.
    ///
    /// # Errors
    /// A temporary folder whose name is not UTF-8.
    pub(super) fn path(&self) -> Result<String> {
        let path = self.folder.path().join(&self.name);
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| Error::dataset(&path, "its name is not UTF-8: set another TMPDIR"))
    }
}

/// Downloads all tars of `index`, whose members are read before the run.
///
/// # Errors
/// A folder without room for all of them; a shard that cannot be downloaded.
pub(crate) fn fetch_members(
    fetcher: &mut Fetcher,
    index: &Index,
    option: &'static str,
) -> Result<()> {
    if !index.has_tars() {
        // Opening the members says so.
        return Ok(());
    }
    if fetcher.evicts() {
        return Err(Error::option(
            option,
            format!(
                "{option}: `member` reads all shards before the run, and `fetch_limit` keeps only \
                 some of them: give room for all, or build a cache with `cache build --{option}`, \
                 which has them in one file"
            ),
        ));
    }
    let all: Vec<u64> = (0..index.shards()).collect();
    let fetched = fetcher.fetch_shards(index, &all, &mut |_| ControlFlow::Continue(()))?;
    match fetched {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::protocol("downloading the shards ended early")),
    }
}

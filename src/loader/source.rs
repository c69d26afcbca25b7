//! The source of samples.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::data::index::{
    ArrowFiles, CifarOptions, FolderOptions, Index, ListOptions, ParquetOptions, ScanReport,
    ShardOptions, TableOptions,
};
use crate::error::{Error, Result};
use crate::remote::fetch::fetcher::{Fetcher, TarIndexPolicy};
use crate::remote::fetch::{FetchOptions, StoreAddress};
use crate::remote::upload::uploader;

/// The name of a list that a program gives, in texts.
const NO_FILE: &str = "/list-of-addresses";

/// A data set that has not been read yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source {
    /// A folder, flat or with one sub-folder per class.
    Folder(PathBuf, FolderOptions),
    /// A text file with a path and a label on each line.
    List(PathBuf, ListOptions),
    /// A list with named columns: CSV with a header line, or JSON lines.
    Table(PathBuf, TableOptions),
    /// A file that [`Index::save`] wrote.
    Saved(PathBuf),
    /// The folder of a cache that [`crate::cache`] built.
    Cache(PathBuf),
    /// Uncompressed tar shards in WebDataset's layout. [`Index::expand_shards`] expands patterns to
    /// paths.
    Shards(Vec<PathBuf>, ShardOptions),
    /// Parquet files in Hugging Face's layout. [`Index::expand_parquet`] expands a folder or a
    /// pattern to paths. Needs the feature `parquet`.
    Parquet(Vec<PathBuf>, ParquetOptions),
    /// Arrow files, such as a folder that Hugging Face's `save_to_disk` wrote.
    /// [`Index::expand_arrow`] expands a folder or a pattern to paths. The options are those of
    /// Parquet files.
    Arrow(ArrowFiles, ParquetOptions),
    /// A file of NumPy with an array of many images: N x H x W or N x H x W x C, `u8`.
    Array(PathBuf),
    /// A folder with CIFAR's batches, as in its Python archive. PaddleClas configs name such
    /// folders. [`Source::detect`] does not recognise them.
    Cifar(PathBuf, CifarOptions),
    /// A cache or tar shards in an object store. The index of tar shards is kept in the fetch
    /// folder. [`Source::index`] makes it, and so does a loader whose folder has room for all
    /// shards.
    Store(StoreAddress, FetchOptions),
    /// A list or a table of addresses (`s3://BUCKET/a.jpg`, `https://HOST/a.jpg`), and how their
    /// objects are downloaded. The inner source gives addresses and labels. A list of addresses
    /// that is given without this has default options.
    Addresses(Box<Source>, FetchOptions),
    /// An index in memory.
    Index(Box<Index>),
}

/// What an address without an object does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadAddresses {
    /// Ends the run.
    Refused,
    /// Is a sample that fails.
    Kept,
}

impl Source {
    /// All kinds of data sets in words, for help and error texts.
    pub const KINDS: &str = "a folder, tar shards, Parquet or Arrow files, a list file, a table, a \
                              cache, a saved index, a NumPy array of images (.npy), or the \
                              address of a cache, of tar shards or of images (s3://BUCKET/PREFIX)";

    /// Recognises the kind of data set at a path. Default options.
    ///
    /// | path | kind |
    /// |---|---|
    /// | an address of an object store | cache or tar shards in the store |
    /// | a folder with a cache's manifest | cache |
    /// | Parquet by [`Index::names_parquet`] | Parquet files |
    /// | Arrow by [`Index::names_arrow`] | Arrow files |
    /// | ends in `.tar`, or is missing and has the signs of a brace or glob | tar shards |
    /// | ends like a compressed tar (`.tar.gz`, `.tgz`) | tar shards; opening rejects it |
    /// | any other folder | folder of images |
    /// | a file that begins like a saved index | saved index |
    /// | a file that ends in `.npy` | array of images |
    /// | a file, table by [`Index::names_table`] | table |
    /// | any other file | list |
    ///
    /// # Errors
    /// There is nothing at `path`.
    pub fn detect(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        if StoreAddress::is_address(&path) {
            return Ok(Self::Store(
                StoreAddress::parse(&path)?,
                FetchOptions::default(),
            ));
        }
        if !Index::is_cache(&path) && Index::names_parquet(&path) {
            let files = Index::expand_parquet(&path)?;
            return Ok(Self::Parquet(files, ParquetOptions::default()));
        }
        if !Index::is_cache(&path) && Index::names_arrow(&path) {
            let files = Index::expand_arrow(&path)?;
            return Ok(Self::Arrow(files, ParquetOptions::default()));
        }
        if Index::names_shards(&path) {
            let shards = Index::expand_shards(&[&path])?;
            return Ok(Self::Shards(shards, ShardOptions::default()));
        }
        let meta = std::fs::metadata(&path).map_err(|e| {
            let what = match e.kind() {
                ErrorKind::NotFound => format!("no such file or folder: give {}", Self::KINDS),
                _ => format!("cannot be read: {e}"),
            };
            Error::dataset(&path, what)
        })?;
        if meta.is_dir() && Index::is_cache(&path) {
            Ok(Self::Cache(path))
        } else if meta.is_dir() {
            Ok(Self::Folder(path, FolderOptions::default()))
        } else if Index::is_saved(&path)? {
            Ok(Self::Saved(path))
        } else if Index::names_array(&path) {
            Ok(Self::Array(path))
        } else if Index::names_table(&path) {
            Ok(Self::Table(path, TableOptions::default()))
        } else {
            Ok(Self::List(path, ListOptions::default()))
        }
    }

    /// Reads names and labels. Reads no image.
    ///
    /// # Errors
    /// A data set that cannot be read, or is empty.
    pub fn open(self) -> Result<(Index, Option<ScanReport>)> {
        let kept = DeadAddresses::Kept;
        let (index, report, _) = self.open_with_fetcher(None, TarIndexPolicy::Never, kept)?;
        Ok((index, report))
    }

    /// Like [`Source::open`], but also makes the index of tar shards in an object store that lack
    /// one. It downloads each shard once, within the limit of the fetch folder, and keeps the index
    /// there. `progress` receives the number of shards read, and of all.
    ///
    /// # Errors
    /// A data set that cannot be read, or is empty.
    pub fn index(self, progress: &dyn Fn(u64, u64)) -> Result<(Index, Option<ScanReport>)> {
        let making = TarIndexPolicy::Always(progress);
        let (index, report, _) = self.open_with_fetcher(None, making, DeadAddresses::Kept)?;
        Ok((index, report))
    }

    /// Like [`Source::index`], and uploads the index of tar shards to their store. Other machines
    /// find it there and need not make one.
    ///
    /// # Errors
    /// As those of [`Source::index`]; a source other than tar shards in an object store; a store
    /// that cannot be written.
    pub fn index_and_share(
        self,
        progress: &dyn Fn(u64, u64),
    ) -> Result<(Index, Option<ScanReport>)> {
        if let Self::Store(address, _) = &self
            && address.as_str().starts_with("http")
        {
            return Err(Error::dataset(
                address.as_str(),
                "is on a web server, which cannot store an index: do not share the index",
            ));
        }
        let (index, report, fetcher) =
            self.open_with_fetcher(None, TarIndexPolicy::Always(progress), DeadAddresses::Kept)?;
        let kept = fetcher.as_ref().map(Fetcher::index_location).transpose()?;
        let Some((file, base, name)) = kept.flatten() else {
            return Err(Error::dataset(
                index.root(),
                "is not of tar shards in an object store, whose index alone is shared: a cache has \
                 its index beside it, and of others `Index::save` keeps one",
            ));
        };
        uploader::put(&base, None, (name, &file))?;
        Ok((index, report))
    }

    /// Like [`Source::open`], and returns the fetcher of a remote data set. `helper`: the helper
    /// executable, if the user named one.
    pub(crate) fn open_with_fetcher(
        self,
        helper: Option<&Path>,
        making: TarIndexPolicy<'_>,
        dead: DeadAddresses,
    ) -> Result<(Index, Option<ScanReport>, Option<Fetcher>)> {
        let helper = helper.map(Path::to_owned);
        let (here, given) = match self {
            Self::Store(address, options) => {
                if let Some(dir) = &options.dir
                    && address.contains(dir)?
                {
                    return Err(Error::option(
                        "fetch_dir",
                        format!(
                            "{} is inside the source {address} and would change it: name a \
                             folder elsewhere",
                            dir.display()
                        ),
                    ));
                }
                let (fetcher, index, scan) = Fetcher::open(address, options, helper, making)?;
                return Ok((index, scan, Some(fetcher)));
            }
            Self::Addresses(list, options) => (*list, Some(options)),
            here => (here, None),
        };
        let name = here.list_name();
        let (index, scan) = here.open_here()?;
        if !index.is_of_addresses() {
            return match given {
                None => Ok((index, scan, None)),
                Some(_) => Err(Error::config(format!(
                    "`fetch_dir`, `fetch_limit` and `allow_redirects` have no effect on {}, whose \
                     images are on this machine: remove them, or give a list of addresses",
                    name.as_deref().unwrap_or(index.root()).display()
                ))),
            };
        }
        let mut options = given.unwrap_or_default();
        options.leaves_out = dead == DeadAddresses::Kept;
        let name = name.as_deref().unwrap_or(Path::new(NO_FILE));
        let name = std::path::absolute(name).map_err(|e| Error::io_at("find", name, e))?;
        let address = StoreAddress::of_local(&name).ok_or_else(|| {
            Error::dataset(&name, "has a name that is not UTF-8: rename the list")
        })?;
        let (fetcher, index, found) = Fetcher::open_addresses(address, index, options, helper)?;
        let scan = match (scan, found) {
            (Some(mut scan), Some(found)) => {
                scan.skipped.extend(found.skipped);
                Some(scan)
            }
            (scan, found) => scan.or(found),
        };
        Ok((index, scan, Some(fetcher)))
    }

    /// The file of a list, for texts.
    fn list_name(&self) -> Option<PathBuf> {
        match self {
            Self::List(path, _) | Self::Table(path, _) | Self::Saved(path) => Some(path.clone()),
            Self::Parquet(files, _) => files.first().cloned(),
            Self::Arrow(files, _) => files.data.first().cloned(),
            _ => None,
        }
    }

    fn open_here(self) -> Result<(Index, Option<ScanReport>)> {
        match self {
            Self::Folder(path, options) => {
                Index::folder(&path, &options).map(|(i, r)| (i, Some(r)))
            }
            Self::List(path, options) => Index::list(&path, &options).map(|(i, r)| (i, Some(r))),
            Self::Table(path, options) => Index::table(&path, &options).map(|(i, r)| (i, Some(r))),
            Self::Parquet(files, options) => {
                Index::parquet(&files, &options).map(|(i, r)| (i, Some(r)))
            }
            Self::Arrow(files, options) => {
                Index::arrow(&files, &options).map(|(i, r)| (i, Some(r)))
            }
            Self::Array(file) => Index::array_file(&file).map(|(i, r)| (i, Some(r))),
            Self::Cifar(folder, options) => {
                Index::cifar(&folder, &options).map(|(i, r)| (i, Some(r)))
            }
            Self::Saved(path) => {
                let index = Index::load(&path)?;
                index.check_shards()?;
                Ok((index, None))
            }
            Self::Cache(path) => Ok((Index::cache(&path)?, None)),
            Self::Shards(shards, options) => {
                Index::from_shards(&shards, &options).map(|(i, r)| (i, Some(r)))
            }
            Self::Index(index) => Ok((*index, None)),
            Self::Addresses(list, _) => list.open_here(),
            Self::Store(address, _) => Err(Error::dataset(
                address.as_str(),
                "is in an object store, and this needs a data set on this machine",
            )),
        }
    }
}

impl From<Index> for Source {
    fn from(index: Index) -> Self {
        Self::Index(Box::new(index))
    }
}

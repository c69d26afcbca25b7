//! Where samples come from.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::data::index::{
    CifarOptions, FolderOptions, Index, ListOptions, ParquetOptions, ScanReport, ShardOptions,
    TableOptions,
};
use crate::error::{Error, Result};
use crate::remote::fetch::fetcher::{Fetcher, TarIndexPolicy};
use crate::remote::fetch::{FetchOptions, StoreAddress};
use crate::remote::upload::uploader;

/// A data set, not read yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source {
    /// A folder, flat or with class sub-folders.
    Folder(PathBuf, FolderOptions),
    /// A text file with a path and a label on each line.
    List(PathBuf, ListOptions),
    /// A list whose columns have names: CSV with a header line, or lines of JSON.
    Table(PathBuf, TableOptions),
    /// A file that [`Index::save`] wrote.
    Saved(PathBuf),
    /// The folder of a cache that was built by [`crate::cache`].
    Cache(PathBuf),
    /// Uncompressed tar shards, as WebDataset writes them;
    /// [`Index::expand_shards`] makes paths of patterns.
    Shards(Vec<PathBuf>, ShardOptions),
    /// Parquet files, as Hugging Face writes them; [`Index::expand_parquet`] makes paths of a
    /// folder or a pattern. Read with the feature `parquet`.
    Parquet(Vec<PathBuf>, ParquetOptions),
    /// A folder of CIFAR's batches, as its archive for Python holds them: what a PaddleClas
    /// config names. [`Source::detect`] does not look for it.
    Cifar(PathBuf, CifarOptions),
    /// A cache or tar shards that lie in an object store. Of tar shards an index is kept in their
    /// folder: [`Source::index`] makes it, and so does a loader whose folder has room for all.
    Store(StoreAddress, FetchOptions),
    /// An index that is in memory already.
    Index(Box<Index>),
}

impl Source {
    /// What a data set may be, in words: for help and for messages.
    pub const KINDS: &str = "a folder, tar shards, Parquet files, a list file, a table, a cache, a \
                              saved index, or the address of a cache or of tar shards \
                              (s3://BUCKET/PREFIX)";

    /// A folder is a cache when it has a cache's manifest, and a folder of images
    /// otherwise; a file is a saved index when it begins like one, a table when
    /// [`Index::names_table`] says so, and a list file otherwise. A path that ends in `.tar`, or as
    /// a compressed one does (`.tar.gz`, `.tgz` and the like, which opening refuses with what to
    /// do), or that is not there and has the signs of a brace or a glob, is of tar shards; what
    /// [`Index::names_parquet`] says, of Parquet files. An
    /// address of an object store is that of a cache or of tar shards. All with default options.
    ///
    /// # Errors
    /// When nothing is at `path`.
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
        } else if Index::names_table(&path) {
            Ok(Self::Table(path, TableOptions::default()))
        } else {
            Ok(Self::List(path, ListOptions::default()))
        }
    }

    /// Reads names, labels and nothing else.
    ///
    /// # Errors
    /// When the data set cannot be read, or is empty.
    pub fn open(self) -> Result<(Index, Option<ScanReport>)> {
        let (index, report, _) = self.open_with_fetcher(None, TarIndexPolicy::Never)?;
        Ok((index, report))
    }

    /// As [`Source::open`]; of tar shards in an object store that have no index each is fetched
    /// once to make it, within the limit of their folder, where it is kept. `progress` is told how
    /// many were read, of how many.
    ///
    /// # Errors
    /// When the data set cannot be read, or is empty.
    pub fn index(self, progress: &dyn Fn(u64, u64)) -> Result<(Index, Option<ScanReport>)> {
        let (index, report, _) = self.open_with_fetcher(None, TarIndexPolicy::Always(progress))?;
        Ok((index, report))
    }

    /// As [`Source::index`]; puts the index of tar shards into their store, beside them, where
    /// other machines find it: they need not make one.
    ///
    /// # Errors
    /// As those of [`Source::index`]; a source that is no tar shards in an object store, a store
    /// that takes nothing.
    pub fn index_and_share(
        self,
        progress: &dyn Fn(u64, u64),
    ) -> Result<(Index, Option<ScanReport>)> {
        if let Self::Store(address, _) = &self
            && address.as_str().starts_with("http")
        {
            return Err(Error::dataset(
                address.as_str(),
                "is of a web server, which takes no index: leave out sharing it",
            ));
        }
        let (index, report, fetcher) =
            self.open_with_fetcher(None, TarIndexPolicy::Always(progress))?;
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

    /// The same, with what gets the shards, where they lie elsewhere. `helper`: the executable
    /// that it is started from, where it is named.
    pub(crate) fn open_with_fetcher(
        self,
        helper: Option<&Path>,
        making: TarIndexPolicy<'_>,
    ) -> Result<(Index, Option<ScanReport>, Option<Fetcher>)> {
        let here = match self {
            Self::Store(address, options) => {
                if let Some(dir) = &options.dir
                    && address.contains(dir)?
                {
                    return Err(Error::option(
                        "fetch_dir",
                        format!(
                            "{} lies inside the source {address}, which it would change: name a \
                             folder elsewhere",
                            dir.display()
                        ),
                    ));
                }
                let helper = helper.map(Path::to_owned);
                let (fetcher, index, scan) = Fetcher::open(address, options, helper, making)?;
                return Ok((index, scan, Some(fetcher)));
            }
            here => here.open_here()?,
        };
        Ok((here.0, here.1, None))
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
            Self::Store(address, _) => Err(Error::dataset(
                address.as_str(),
                "lies in an object store, and this needs a data set on this machine",
            )),
        }
    }
}

impl From<Index> for Source {
    fn from(index: Index) -> Self {
        Self::Index(Box::new(index))
    }
}

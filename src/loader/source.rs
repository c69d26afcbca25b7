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
    /// An index in memory.
    Index(Box<Index>),
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
        let (index, report, _) = self.open_with_fetcher(None, TarIndexPolicy::Never)?;
        Ok((index, report))
    }

    /// Like [`Source::open`], but also makes the index of tar shards in an object store that lack
    /// one. It downloads each shard once, within the limit of the fetch folder, and keeps the index
    /// there. `progress` receives the number of shards read, and of all.
    ///
    /// # Errors
    /// A data set that cannot be read, or is empty.
    pub fn index(self, progress: &dyn Fn(u64, u64)) -> Result<(Index, Option<ScanReport>)> {
        let (index, report, _) = self.open_with_fetcher(None, TarIndexPolicy::Always(progress))?;
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

    /// Like [`Source::open`], and returns the fetcher of a remote data set. `helper`: the helper
    /// executable, if the user named one.
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
                            "{} is inside the source {address} and would change it: name a \
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

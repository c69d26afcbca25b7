//! What the user asks for, and the order of the start: first the coordinator,
//! then the names of the samples, then the folder.
//!
//! In the consumer.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cache::build::{BuildDestination, CacheBuild};
use crate::cache::columns::{CacheColumns, file_stamps};
use crate::cache::overlap;
use crate::cache::source_shards::SourceShards;
use crate::cache::stage::{StoreTarget, default_stages};
use crate::cache::targets::{CacheTargets, KeptObjects};
use crate::cache::{BuildOptions, BuildPart, BuildProgress, BuildReport, OnBadSample};
use crate::data::index::{Index, ScanReport};
use crate::error::{Error, Result};
use crate::jobs::kinds::KINDS;
use crate::loader::{
    ColumnSource, DeadAddresses, MaskOptions, ObjectOptions, RasterList, RasterOptions,
    RasterSources, Source, fetch_members,
};
use crate::pool::coordinator::launch::LaunchMethod;
use crate::pool::sandbox::Sandbox;
use crate::pool::worker_options::WorkerOptions;
use crate::remote::fetch::StoreAddress;
use crate::remote::fetch::fetcher::TarIndexPolicy;
use crate::sys::cpu::CpuLevel;
use crate::sys::location::ResolvedPath;

/// Builds a cache: a folder of shards.
///
/// The same source and options produce the same bytes, with any number of workers and
/// interruptions: complete shards stay, and the same call continues after them.
///
/// A sample of a cache is an image and its label, and the values of [`CacheBuilder::columns`]. Other
/// fields of WebDataset samples are not copied.
///
/// ```
/// # fn main() -> featherload::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
/// # std::fs::create_dir(&src).unwrap();
/// # std::fs::write(src.join("1.ppm"), b"P6 2 1 255\n\x01\x02\x03\x04\x05\x06").unwrap();
/// use featherload::Source;
/// use featherload::cache::{BuildOptions, CacheBuilder, CacheEncoding};
///
/// let options = BuildOptions {
///     encode: CacheEncoding::Raw,
///     ..BuildOptions::default()
/// };
/// // `.num_workers(0)`: this process does all work.
/// let report = CacheBuilder::new(Source::detect(&src)?, &dst, options)
///     .num_workers(0)
///     .build()?;
/// assert!(report.complete && report.samples == 1);
/// assert!(dst.join("shard-000000.tar").is_file());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing before build"]
pub struct CacheBuilder {
    source: Source,
    folder: PathBuf,
    options: BuildOptions,
    columns: Vec<String>,
    objects: Option<ObjectOptions>,
    masks: Option<MaskOptions>,
    rasters: RasterList,
    force: bool,
    part: BuildPart,
    crew: WorkerOptions,
    stages: Option<PathBuf>,
}

impl CacheBuilder {
    /// A cache of `source` in `folder`. The build creates the folder if it is missing. It does not
    /// touch other files in it.
    ///
    /// `folder` may be the address of an object store (`s3://BUCKET/PREFIX`; see [`StoreAddress`]).
    /// Then shards are built in a local folder, and each is uploaded as soon as it is complete.
    /// Index and manifest are uploaded last. Existing objects are compared, and none is replaced
    /// without [`CacheBuilder::force`]. Needs the feature `stores` in the helper.
    pub fn new(source: Source, folder: impl AsRef<Path>, options: BuildOptions) -> Self {
        Self {
            source,
            folder: folder.as_ref().to_owned(),
            options,
            columns: Vec::new(),
            objects: None,
            masks: None,
            rasters: RasterList::default(),
            force: false,
            part: BuildPart::All,
            crew: WorkerOptions::default(),
            stages: None,
        }
    }

    /// Columns of the source that the cache keeps beside its samples, by the names that
    /// [`LoaderBuilder::columns`](crate::LoaderBuilder::columns) takes. A loader of the cache then
    /// gives the same values by the same names. They belong to what a cache is: a call with other
    /// columns is rejected as one with other options is. Default: none.
    ///
    /// A shard ends with an Arrow file of the columns of its samples. They count as bytes of the
    /// shard.
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = names.into_iter().map(Into::into).collect();
        self
    }

    /// Objects of the images that the cache keeps, as
    /// [`LoaderBuilder::objects`](crate::LoaderBuilder::objects) takes them. A loader of the cache
    /// then has them by `ObjectOptions::new("cache")`, with this rule. Outlines are kept if the rule
    /// has [`ObjectRule::masks`](crate::ObjectRule::masks). Other annotations are another source: a
    /// cache of the former ones is rejected, or replaced with [`CacheBuilder::force`]. Default: none.
    ///
    /// With a resize, coordinates are multiplied by new / old side in float64.
    pub fn objects(mut self, objects: ObjectOptions) -> Self {
        self.objects = Some(objects);
        self
    }

    /// Masks of the images that the cache keeps, as
    /// [`LoaderBuilder::masks`](crate::LoaderBuilder::masks) takes them. A loader of the cache then
    /// has them by `MaskOptions::new("cache")`, with this rule. Default: none.
    ///
    /// Files are copied. With a resize, labels are resized by the rule's filter, and are PNG.
    pub fn masks(mut self, masks: MaskOptions) -> Self {
        self.masks = Some(masks);
        self
    }

    /// Rasters of the images that the cache keeps under this name, as
    /// [`LoaderBuilder::raster`](crate::LoaderBuilder::raster) takes them: depths, a flow, another
    /// image, further masks. May be called several times. A loader of the cache then has them by
    /// [`RasterOptions::of_cache`], with this rule. Default: none. At most seven, with masks.
    ///
    /// Files are copied. With a resize, numbers are resized by the rule's filter. They are stored as
    /// they are in the file, without `divide`, and never rounded.
    pub fn raster(mut self, name: impl Into<String>, raster: RasterOptions) -> Self {
        self.rasters.push(name, raster);
        self
    }

    /// All rasters, in place of those before.
    pub fn rasters(mut self, rasters: RasterList) -> Self {
        self.rasters = rasters;
        self
    }

    /// The folder in which a cache for an object store is built, in a folder of its own. Default:
    /// `$XDG_CACHE_HOME/featherload/building`, or `~/.cache/featherload/building`. It holds a few
    /// shards at a time, and is removed at the end. After an interruption it stays, and the same
    /// call continues with it.
    pub fn stage_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.stages = Some(folder.into());
        self
    }

    /// Replaces a cache of other options or of a changed source. Without `force` that is an error.
    ///
    /// A cache of the same options and source is read and repaired: the first shard whose bytes
    /// differ from its manifest, and all shards after it, are built again. Without `force` the
    /// lengths of files decide which shards are complete; [`verify`](fn@crate::cache::verify)
    /// checks their bytes.
    ///
    /// In an object store every shard is built and uploaded again.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// The number of worker processes; 0 decodes in this process. Default: the number of CPUs that
    /// this process may use, by affinity and cgroup quota.
    pub fn num_workers(mut self, workers: usize) -> Self {
        self.crew.workers = Some(workers);
        self
    }

    /// The part of the cache to build. Default [`BuildPart::All`].
    pub fn part(mut self, part: BuildPart) -> Self {
        self.part = part;
        self
    }

    /// How worker processes are started. Default [`LaunchMethod::Exec`].
    pub fn launch(mut self, launch: LaunchMethod) -> Self {
        self.crew.launch = launch;
        self
    }

    /// As [`LoaderBuilder::helper`](crate::LoaderBuilder::helper).
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.crew.helper = Some(path.into());
        self
    }

    /// The sandbox of workers. Default [`Sandbox::Auto`].
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.crew.sandbox = sandbox;
        self
    }

    /// The time limit for one sample. After it the worker is killed and the sample fails. Default
    /// 60 s. With zero workers there is no limit.
    pub fn row_limit(mut self, limit: Duration) -> Self {
        self.crew.row_limit = limit;
        self
    }

    /// Builds the missing shards of the cache, its index and its manifest.
    ///
    /// # Errors
    /// - Invalid options.
    /// - A source that cannot be read, or has no readable header.
    /// - A folder inside the source or beside its files, a folder with another cache, or one that
    ///   another process writes.
    /// - A disk with too little space.
    /// - Objects, masks or rasters that cannot be found or read, or are of another number of images.
    /// - A column that the source does not have, or a value that its column cannot express.
    /// - Under [`OnBadSample::Stop`] the first bad sample or damaged shard; otherwise the first
    ///   temporary fault.
    pub fn build(self) -> Result<BuildReport> {
        self.build_watched(&mut |_| ControlFlow::Continue(()))
    }

    /// Like [`CacheBuilder::build`], and reports progress to `watch`: first when the names of the
    /// source are read, then regularly in each [`BuildPhase`](crate::cache::BuildPhase). If `watch`
    /// returns `Break`, the build ends, and its report states that it is incomplete.
    ///
    /// # Errors
    /// As [`CacheBuilder::build`].
    pub fn build_watched(
        mut self,
        watch: &mut dyn FnMut(&BuildProgress<'_>) -> ControlFlow<()>,
    ) -> Result<BuildReport> {
        let began = Instant::now();
        self.options.check()?;
        self.part.check(&self.options, self.force)?;
        // Asked again by the workers; here for an error that the caller sees.
        CpuLevel::detect()?;
        // Links are resolved only here: another process may change a link while the cache is built.
        self.folder = without_links(self.folder)?;
        let target = self.target()?;
        // What is written: the cache, and the stage of one that goes to an address.
        let stages = target.iter().map(|target| target.stages.as_path());
        for place in stages.chain([self.folder.as_path()]) {
            overlap::check_source(&self.source, place)?;
        }
        let is_folder = matches!(self.source, Source::Folder(..));
        let crew = WorkerOptions {
            // One slot of at least two is held at a time.
            hold_timeout: self.crew.row_limit,
            ..self.crew
        };
        let ready = crew.clone().launch(KINDS)?;
        let helper = crew.helper.as_deref();
        let column_source = ColumnSource::of_cached(&self.source, &self.columns)?;
        // Before the source is read, so that a later change differs from them.
        let files = column_source.files();
        let stamps = file_stamps(&files)?;
        let dead = match self.options.on_error {
            OnBadSample::Stop => DeadAddresses::Refused,
            OnBadSample::Skip => DeadAddresses::Kept,
        };
        self.rasters.check()?;
        let rasters = RasterSources::of(self.masks.as_ref(), &self.rasters, &self.source)?;
        let downloaded = self.objects.as_ref().map(|objects| {
            objects.check_for_cache()?;
            objects.downloaded(helper)
        });
        let (objects, _fetched) = downloaded.transpose()?.unzip();
        let objects = objects.as_ref();
        let object_source = objects.map(|objects| objects.column_source(&self.source));
        let object_source = object_source.transpose()?.flatten();
        let described = objects.map(|objects| objects.open_with_images(&self.source));
        let (index, scan, fetcher, opened) = match described.transpose()?.flatten() {
            Some((index, opened)) => (index, None, None, Some(opened)),
            None => {
                let policy = TarIndexPolicy::OfWholeSets;
                let (index, scan, mut fetcher) =
                    self.source.open_with_fetcher(helper, policy, dead)?;
                let of_objects = objects.filter(|objects| objects.are_members());
                let option = (of_objects.map(|_| "objects")).or(rasters.of_members());
                if let (Some(fetcher), Some(option)) = (&mut fetcher, option) {
                    fetch_members(fetcher, &index, option)?;
                }
                let opened = objects.map(|objects| objects.open(&index, object_source));
                (index, scan, fetcher, opened.transpose()?)
            }
        };
        if fetcher.is_none() {
            index.check_local("a cache is not made of it")?;
        }
        index.check_in_files("a cache")?;
        let targets = CacheTargets {
            objects: (opened.zip(objects))
                .map(|(opened, given)| KeptObjects::new(opened.table, given.given_rule())),
            rasters: rasters.open(&index, fetcher.is_some())?,
            fields: [
                self.objects.as_ref().and_then(|of| of.member_extension()),
                self.masks.as_ref().and_then(|of| of.member_extension()),
            ]
            .into_iter()
            .flatten()
            .chain(self.rasters.member_extensions())
            .map(str::to_owned)
            .collect(),
        };
        targets.check(&index)?;
        let source_store = fetcher.map(SourceShards::new).transpose()?;
        self.options.check_with(&index)?;
        if self.options.on_error == OnBadSample::Stop {
            check_whole(scan.as_ref())?;
        }
        overlap::check_files(&index, &self.folder, is_folder)?;
        // The manifest of a cache has the types of its columns.
        let probes = column_source.probes() && !Index::is_cache(index.root());
        if let Some(store) = source_store.as_ref().filter(|_| probes) {
            let fetched = store.fetch_first(&index, &self.options, &mut |done, samples| {
                watch(&BuildProgress::fetching(done, samples, scan.as_ref()))
            })?;
            if fetched.is_break() {
                return Ok(BuildReport::default().with_scan(scan));
            }
        }
        let readers = column_source.open(&self.columns, &index)?;
        let columns = CacheColumns::new(readers, files, stamps);
        let build = CacheBuild {
            index: &index,
            options: &self.options,
            columns: columns.as_ref(),
            targets: &targets,
            part: self.part,
            force: self.force,
            scan: scan.as_ref(),
            share: None,
            source_store: source_store.as_ref(),
        };
        let destination = match &target {
            Some(target) => BuildDestination::Store(target),
            None => BuildDestination::Folder(&self.folder),
        };
        let mut report = build.build(destination, (&crew, ready), watch)?;
        report.seconds = began.elapsed().as_secs_f64();
        report.fetched = source_store.as_ref().map(SourceShards::report);
        let mut report = report.with_scan(scan);
        report.other_fields.retain(|field, _| {
            let in_columns = (columns.as_ref()).is_some_and(|columns| columns.keeps_field(field));
            !in_columns && !targets.keeps_field(field)
        });
        Ok(report)
    }

    /// The destination store; none if the destination is a folder.
    fn target(&self) -> Result<Option<StoreTarget>> {
        if !StoreAddress::is_address(&self.folder) {
            return match &self.stages {
                None => Ok(None),
                Some(_) => Err(Error::option(
                    "stage_dir",
                    "`stage_dir` is for a cache that goes into an object store: leave it out, or \
                     name an address",
                )),
            };
        }
        let stages = match &self.stages {
            Some(stages) => stages.clone(),
            None => default_stages()?,
        };
        Ok(Some(StoreTarget {
            address: StoreAddress::parse(&self.folder)?,
            // The sender, another process, gets it too.
            stages: std::path::absolute(&stages).map_err(|e| Error::io_at("find", &stages, e))?,
            helper: self.crew.helper.clone(),
        }))
    }
}

#[cfg(feature = "internals")]
impl crate::pool::worker_options::DrillBuilder for CacheBuilder {
    fn worker_options(&mut self) -> &mut WorkerOptions {
        &mut self.crew
    }
}

/// The path of the folder with all links resolved. The path is unchanged if it has no links, or is
/// an address.
fn without_links(folder: PathBuf) -> Result<PathBuf> {
    let is_address = StoreAddress::is_address(&folder);
    let path = match is_address {
        true => StoreAddress::parse(&folder)?.local_path(),
        false => Some(folder.clone()).filter(|path| !path.as_os_str().is_empty()),
    };
    let Some(path) = path else {
        return Ok(folder);
    };
    let failed = |e| Error::io_at("find", &path, e);
    let found = ResolvedPath::of(&path).map_err(failed)?;
    if std::path::absolute(&path).map_err(failed)? == found.path() {
        return Ok(folder);
    }
    Ok(match is_address {
        false => found.path().to_owned(),
        true => {
            StoreAddress::of_local(found.path()).map_or(folder, |address| address.as_str().into())
        }
    })
}

/// # Errors
/// The first shard of the source of which something is lost: what has no name in
/// the index cannot fail as a sample.
fn check_whole(scan: Option<&ScanReport>) -> Result<()> {
    let Some(damaged) = scan.and_then(|scan| scan.damaged.first()) else {
        return Ok(());
    };
    let said = damaged.to_string();
    // The error names it, too.
    let named = format!("{}: ", damaged.path.display());
    let what = said.strip_prefix(&named).unwrap_or(&said);
    Err(Error::dataset(
        &damaged.path,
        format!("{what}: to build from what is left, use `on_error: skip`"),
    ))
}

//! Builds a cache, whole or share by share, in a folder or into an object store.
//!
//! Runs in the consumer. `CacheBuild::build_in_folder`, in `folder_build`, makes the shards of one
//! part.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use crate::cache::cache_folder::CacheFolder;
use crate::cache::columns::CacheColumns;
use crate::cache::options::{BuildOptions, BuildPart};
use crate::cache::report::{BuildPhase, BuildProgress, BuildReport, SendReport};
use crate::cache::shard_places::IndependentShards;
use crate::cache::source_shards::SourceShards;
use crate::cache::stage::{self, StoreTarget};
use crate::cache::targets::CacheTargets;
use crate::cache::upload::{CacheUpload, LOOK};
use crate::data::index::{Index, ScanReport};
use crate::data::shard::manifest::{CACHE_MANIFEST, CacheManifest};
use crate::error::{Error, Result};
use crate::jobs::kinds::KINDS;
use crate::pool::worker_options::{LaunchedWorkers, WorkerOptions};

/// Receives the progress of a build. Ends the build with `Break`.
pub(super) type BuildWatch<'a> = &'a mut dyn FnMut(&BuildProgress<'_>) -> ControlFlow<()>;

/// The fixed inputs of the build of one part of a cache.
#[derive(Clone, Copy)]
pub(super) struct CacheBuild<'a> {
    pub(super) index: &'a Index,
    pub(super) options: &'a BuildOptions,
    /// The columns that the cache keeps, if it keeps any.
    pub(super) columns: Option<&'a CacheColumns>,
    /// The objects and masks that the cache keeps.
    pub(super) targets: &'a CacheTargets,
    /// The part of the cache to build.
    pub(super) part: BuildPart,
    pub(super) force: bool,
    /// Results of reading the names of the source's samples; none for a saved index or a cache.
    pub(super) scan: Option<&'a ScanReport>,
    /// Number of this share, and of all shares, if one call makes all of them.
    pub(super) share: Option<(u64, u64)>,
    /// The source's shards, if the source is in an object store.
    pub(super) source_store: Option<&'a SourceShards>,
}

/// The place where a cache is built.
#[derive(Clone, Copy)]
pub(super) enum BuildDestination<'a> {
    Folder(&'a Path),
    Store(&'a StoreTarget),
}

impl CacheBuild<'_> {
    /// Builds the cache, or one part of it. If the whole source does not fit on this machine,
    /// builds the cache in shares, one after the other.
    ///
    /// # Errors
    /// Like [`CacheBuilder::build`](crate::cache::CacheBuilder::build).
    pub(super) fn build(
        &self,
        destination: BuildDestination<'_>,
        (crew, ready): (&WorkerOptions, LaunchedWorkers),
        watch: BuildWatch<'_>,
    ) -> Result<BuildReport> {
        let shares = match (self.part, self.source_store) {
            (BuildPart::All, Some(store)) => store.shares_that_fit(self.index, self.options),
            _ => None,
        };
        match shares {
            Some(of) => self.build_in_shares(of, destination, (crew, ready), watch),
            None => self.build_part(destination, ready, watch),
        }
    }

    /// Makes `of` shares, one after the other, then index and manifest. Fetches the shards of the
    /// source for one share at a time.
    fn build_in_shares(
        &self,
        of: u64,
        destination: BuildDestination<'_>,
        (crew, ready): (&WorkerOptions, LaunchedWorkers),
        watch: BuildWatch<'_>,
    ) -> Result<BuildReport> {
        let is_new = match destination {
            BuildDestination::Folder(folder) => !folder.join(CACHE_MANIFEST).exists(),
            BuildDestination::Store(_) => false,
        };
        if self.force && !is_new {
            return Err(Error::option(
                "force",
                format!(
                    "`force` makes all shards again, but the source fits on this machine only in \
                     {of} parts: give a `fetch_limit` with room for all of it, or remove the cache"
                ),
            ));
        }
        let shares = (0..of).map(|number| BuildPart::Share { number, of });
        let (mut report, mut ready) = (BuildReport::default(), Some(ready));
        for part in shares.chain([BuildPart::Finish]) {
            let build = CacheBuild {
                part,
                share: match part {
                    BuildPart::Share { number, of } => Some((number, of)),
                    _ => None,
                },
                force: false,
                ..*self
            };
            let crew = match ready.take() {
                Some(ready) => ready,
                None => crew.clone().launch(KINDS)?,
            };
            let made = build.build_part(destination, crew, watch)?;
            report = match part {
                BuildPart::Finish => report.finished_by(made),
                _ => report.and(made),
            };
            if !report.complete {
                break;
            }
        }
        Ok(report)
    }

    fn build_part(
        &self,
        destination: BuildDestination<'_>,
        crew: LaunchedWorkers,
        watch: BuildWatch<'_>,
    ) -> Result<BuildReport> {
        match destination {
            BuildDestination::Folder(path) => {
                self.build_in_folder(&CacheFolder::open(path, self.part)?, crew, watch)
            }
            BuildDestination::Store(target) => self.build_into_store(target, crew, watch),
        }
    }

    /// Builds the shards that the store lacks in a stage, and uploads them.
    fn build_into_store(
        &self,
        target: &StoreTarget,
        crew: LaunchedWorkers,
        watch: BuildWatch<'_>,
    ) -> Result<BuildReport> {
        let path = target.stage(self.part);
        let mut stage = CacheFolder::open(&path, self.part)?;
        let manifest = self.new_manifest()?;
        let (address, helper) = (target.address.clone(), target.helper.clone());
        let opened = CacheUpload::open(address, helper, &path, self.force)
            .and_then(|mut upload| Ok((upload.existing_manifest(&manifest, self.part)?, upload)));
        let (existing, mut upload) = match opened {
            Err(e) if stage.has_no_shards()? => {
                stage::remove(stage)?;
                return Err(e);
            }
            opened => opened?,
        };
        if let Some(complete) = existing.as_ref().filter(|existing| existing.complete) {
            stage::remove(stage)?;
            target.remove_stages();
            return Ok(self.stored_report(complete));
        }
        stage::prepare(&stage, existing.as_ref(), &manifest, self.force)?;
        if existing.is_some() {
            let in_turn = self.independent_shards().is_none();
            let checking = self.progress(BuildPhase::Checking, 0, self.index.len());
            let looked =
                upload.find_stored(self.shard_numbers(), in_turn, &mut || watch(&checking))?;
            if looked.is_break() {
                return Ok(BuildReport {
                    sent: Some(upload.report()),
                    ..BuildReport::default()
                });
            }
        }
        stage.set_upload(upload);
        let built = self.build_in_folder(&stage, crew, watch);
        let built = built.and_then(|report| self.upload_remaining(&stage, report, watch));
        match &built {
            Ok(report) if !report.complete => {}
            // A failed `Finish` leaves nothing that is worth keeping.
            Err(_) if self.part != BuildPart::Finish && !stage.has_no_shards()? => tracing::warn!(
                "shards that are not yet in {} are kept in {}: run the same command to continue",
                target.address,
                path.display()
            ),
            _ => {
                stage::remove(stage)?;
                if built.is_ok() && !self.is_share() {
                    target.remove_stages();
                }
            }
        }
        built
    }

    /// Waits until the store has all shards of the stage. Then uploads index and manifest, unless
    /// the part is a share.
    fn upload_remaining(
        &self,
        stage: &CacheFolder,
        mut report: BuildReport,
        watch: BuildWatch<'_>,
    ) -> Result<BuildReport> {
        let Some(mut upload) = stage.upload() else {
            return Ok(report);
        };
        while report.complete && !upload.is_done() {
            upload.receive_replies(LOOK)?;
            let progress = BuildProgress {
                shards: report.shards,
                bytes: report.bytes,
                needed_bytes: report.needed_bytes,
                shards_up: upload.report().shards_up,
                ..self.progress(BuildPhase::Sending, report.samples, report.samples)
            };
            report.complete = watch(&progress).is_continue();
        }
        if report.complete && !self.is_share() {
            upload.finish(report.shards)?;
        }
        report.sent = Some(upload.report());
        Ok(report)
    }

    /// The report of a part of a cache that is already complete in the store.
    fn stored_report(&self, there: &CacheManifest) -> BuildReport {
        let numbers = self.part.shards(there.shards.len() as u64);
        let shards = &there.shards[numbers.start as usize..numbers.end as usize];
        let samples: u64 = shards.iter().map(|shard| shard.samples).sum();
        let skipped = match self.independent_shards() {
            Some(all) if self.is_share() => all.samples_of(numbers) - samples,
            _ => there.skipped,
        };
        let shards_up = shards.len() as u64;
        BuildReport {
            complete: true,
            samples,
            skipped,
            shards: shards_up,
            bytes: shards.iter().map(|shard| shard.bytes).sum(),
            kept_samples: samples,
            kept_shards: shards_up,
            sent: Some(SendReport {
                shards_up,
                ..SendReport::default()
            }),
            ..BuildReport::default()
        }
    }

    pub(super) fn is_share(&self) -> bool {
        matches!(self.part, BuildPart::Share { .. })
    }

    /// The samples of each shard; none if they depend on the shards before it.
    pub(super) fn independent_shards(&self) -> Option<IndependentShards> {
        IndependentShards::of(self.options, self.index.len())
    }

    /// The numbers of this part's shards. If their number is not known yet, the most that are
    /// possible.
    pub(super) fn shard_numbers(&self) -> Range<u64> {
        match self.independent_shards() {
            Some(shards) => self.part.shards(shards.len()),
            None => 0..self.index.len(),
        }
    }

    /// The progress of a phase over `samples`, before any shard is written.
    pub(super) fn progress(&self, phase: BuildPhase, done: u64, samples: u64) -> BuildProgress<'_> {
        BuildProgress {
            phase,
            samples,
            done,
            shards: 0,
            bytes: 0,
            needed_bytes: 0,
            shards_up: 0,
            share: self.share,
            scan: self.scan,
        }
    }
}

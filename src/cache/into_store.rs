//! A cache that is built into an object store: by way of a stage, a folder of this machine, whose
//! shards go there as they are complete. Index and manifest go last, so a reader never sees a
//! manifest whose shards are not there.
//!
//! In the consumer. What the store holds is compared before anything is built: a build goes on
//! behind the shards that are there, and one of other options is refused.

use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::cache::asked::{Build, Watch};
use crate::cache::changes;
use crate::cache::folder::Folder;
use crate::cache::layout::LOCK;
use crate::cache::options::BuildPart;
use crate::cache::report::{BuildPhase, BuildProgress, BuildReport, SendReport};
use crate::cache::upload::{LOOK, Upload};
use crate::data::index::Index;
use crate::data::shard::manifest::{CacheManifest, Hash128};
use crate::error::{Error, Result};
use crate::fetch::Address;
use crate::pool::crew::Ready;

/// Where a cache is built to, and by way of what.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) address: Address,
    /// The folder that the stage is made in.
    pub(super) stages: PathBuf,
    /// The executable of the sender, where it is named.
    pub(super) helper: Option<PathBuf>,
}

/// Where stages are, unless another folder is named.
///
/// # Errors
/// When nobody says where the user keeps such.
pub(super) fn default_stages() -> Result<PathBuf> {
    let cache = Index::user_cache().ok_or_else(|| {
        Error::option(
            "stage_dir",
            "neither XDG_CACHE_HOME nor HOME is set: give `stage_dir`, the folder that shards are \
             built in before they go to the store",
        )
    })?;
    Ok(cache.join("building"))
}

/// What of the cache is in the store.
enum There {
    /// All of it.
    All(CacheManifest),
    /// Shards may be, of this build. With what it began.
    Begun(CacheManifest),
    /// Nothing that stays. What is replaced, where something is.
    Nothing(Option<CacheManifest>),
}

impl Target {
    /// The stage of a part of the cache: shares have one each.
    fn stage(&self, part: BuildPart) -> PathBuf {
        let name = self.name();
        self.stages.join(match part {
            BuildPart::Share { number, of } => format!("{name}-{number}-of-{of}"),
            BuildPart::All | BuildPart::Finish => name,
        })
    }

    /// How the stages of all its parts begin.
    fn name(&self) -> String {
        Hash128::of(self.address.as_str().as_bytes()).to_string()
    }

    /// Removes the stages that killed processes left, once the cache is whole in the store. Those
    /// that a process holds stay: it removes them itself.
    fn remove_stages(&self) {
        let name = self.name();
        let is_stage = |entry: &fs::DirEntry| {
            let other = entry.file_name();
            let part = other.to_str().and_then(|other| other.strip_prefix(&name));
            part.is_some_and(is_part)
        };
        let entries = fs::read_dir(&self.stages).into_iter().flatten().flatten();
        for path in entries.filter(is_stage).map(|entry| entry.path()) {
            let free = Folder::claim_free(&path);
            let removed = free.and_then(|folder| folder.as_ref().map_or(Ok(()), remove_held));
            if let Err(e) = removed {
                tracing::warn!("{e}. It is a rest of another build: remove it");
            }
        }
    }
}

/// Whether this follows the name of a stage: nothing, or `-K-of-N`.
fn is_part(text: &str) -> bool {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let share = text
        .strip_prefix('-')
        .and_then(|rest| rest.split_once("-of-"));
    text.is_empty() || share.is_some_and(|(k, n)| is_number(k) && is_number(n))
}

impl Build<'_> {
    /// Builds what the store lacks, and sends it there.
    pub(super) fn run_into(
        &self,
        target: Target,
        crew: Ready,
        watch: Watch<'_>,
    ) -> Result<BuildReport> {
        let path = target.stage(self.part);
        let mut folder = claimed(&path, self.part)?;
        let wanted = self.manifest()?;
        let opened = Upload::open(
            target.address.clone(),
            target.helper.clone(),
            &path,
            self.force,
        );
        let asked = opened.and_then(|mut upload| {
            let there = self.there_in_store(&mut upload, &wanted)?;
            Ok((upload, there))
        });
        let (mut upload, there) = match asked {
            Err(e) if folder.is_bare()? => {
                remove(folder)?;
                return Err(e);
            }
            asked => asked?,
        };
        if let There::All(there) = &there {
            let report = self.all_there(there);
            remove(folder)?;
            target.remove_stages();
            return Ok(report);
        }
        self.prepare(&folder, &there, &wanted)?;
        if let There::Begun(_) = there {
            let (numbers, in_turn) = self.numbers();
            let mut look = || watch(&self.progress(BuildPhase::Checking, 0));
            if upload.look(numbers, in_turn, &mut look)?.is_break() {
                return Ok(BuildReport {
                    sent: Some(upload.report()),
                    ..BuildReport::default()
                });
            }
        }
        let address = upload.address().clone();
        folder.sends(upload);
        let mut before = None;
        if let There::Nothing(Some(there)) = there {
            before = Some(there.shards.len() as u64);
        }
        let result = self.run_and_send(&folder, crew, watch, before);
        match result {
            Ok(report) if report.complete => {
                remove(folder)?;
                if !matches!(self.part, BuildPart::Share { .. }) {
                    target.remove_stages();
                }
                Ok(report)
            }
            Ok(report) => Ok(report),
            // It makes nothing.
            Err(e) if self.part == BuildPart::Finish || folder.is_bare()? => {
                remove(folder)?;
                Err(e)
            }
            Err(e) => {
                tracing::warn!(
                    "what is built and not yet in {address} is kept in {}: the same command goes \
                     on with it",
                    path.display()
                );
                Err(e)
            }
        }
    }

    fn run_and_send(
        &self,
        folder: &Folder,
        crew: Ready,
        watch: Watch<'_>,
        before: Option<u64>,
    ) -> Result<BuildReport> {
        let mut report = self.run(folder, crew, watch)?;
        let waiting = || folder.upload().is_some_and(|upload| !upload.is_done());
        while report.complete && waiting() {
            let up = match folder.upload() {
                Some(mut upload) => {
                    upload.hear(LOOK)?;
                    upload.report().shards_up
                }
                None => 0,
            };
            let progress = BuildProgress {
                samples: report.samples,
                shards: report.shards,
                bytes: report.bytes,
                needed_bytes: report.needed_bytes,
                shards_up: up,
                ..self.progress(BuildPhase::Sending, report.samples)
            };
            if watch(&progress).is_break() {
                report.complete = false;
            }
        }
        let Some(mut upload) = folder.upload() else {
            return Ok(report);
        };
        if report.complete && !matches!(self.part, BuildPart::Share { .. }) {
            upload.end()?;
            // Of a cache that was replaced, and had more.
            if let Some(before) = before {
                upload.remove_behind(report.shards, before)?;
            }
        }
        report.seconds = self.began.elapsed().as_secs_f64();
        report.sent = Some(upload.report());
        Ok(report)
    }

    /// What the store holds of this cache.
    ///
    /// # Errors
    /// A cache of other options or another source, unless it is to be replaced; files of a cache
    /// that is none.
    fn there_in_store(&self, upload: &mut Upload, wanted: &CacheManifest) -> Result<There> {
        let address = upload.address().clone();
        let mut found = upload.manifest()?;
        if found.is_none() {
            let Some(name) = upload.first_file()? else {
                return Ok(There::Nothing(None));
            };
            // Another share may have sent both since: its manifest goes first.
            found = upload.manifest()?;
            if found.is_none() {
                return Err(Error::dataset(
                    address.as_str(),
                    format!(
                        "holds {name} and no manifest.json, so it may not be a cache: name \
                         another address"
                    ),
                ));
            }
        }
        let Some((there, hash)) = found else {
            return Ok(There::Nothing(None));
        };
        let changed = changes::between(&there, wanted);
        if changed.is_empty() && !self.force {
            upload.goes_on(hash);
            return Ok(match there.complete {
                true => There::All(there),
                false => There::Begun(there),
            });
        }
        // As in a folder: where no shard is complete, nothing is lost.
        let alone = self.part == BuildPart::All;
        if self.force || (alone && !there.complete && !upload.has_a_shard()?) {
            upload.takes_the_place_of(hash);
            return Ok(There::Nothing(Some(there)));
        }
        Err(Error::dataset(
            address.as_str(),
            format!(
                "holds a cache with other settings: {}. Name another address, or use `force` to \
                 replace this one",
                changed.join("; ")
            ),
        ))
    }

    /// Has the stage hold nothing but this build, as the store knows it.
    fn prepare(&self, folder: &Folder, there: &There, wanted: &CacheManifest) -> Result<()> {
        let here = folder.manifest();
        let is_ours = matches!(&here, Ok(Some(here)) if changes::between(here, wanted).is_empty());
        if self.force || !is_ours {
            // A stage has no other files than those of builds that were broken off.
            folder.remove_from(0)?;
            folder.remove_manifest()?;
        }
        match there {
            There::Begun(begun) if !is_ours => folder.write_manifest(begun).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The shards of this part; whether they are known by going through them alone.
    fn numbers(&self) -> (Range<u64>, bool) {
        match self.options.shard_samples {
            Some(each) => (self.part.shards(self.index.len().div_ceil(each)), false),
            None => (0..self.index.len(), true),
        }
    }

    /// The report of a cache that is there as a whole.
    fn all_there(&self, there: &CacheManifest) -> BuildReport {
        let all = there.shards.len() as u64;
        let numbers = self.part.shards(all);
        let mut report = BuildReport {
            complete: true,
            skipped: there.skipped,
            shards: numbers.end - numbers.start,
            ..BuildReport::default()
        };
        for shard in &there.shards[numbers.start as usize..numbers.end as usize] {
            report.samples += shard.samples;
            report.bytes += shard.bytes;
        }
        if let (BuildPart::Share { .. }, Some(each)) = (self.part, self.options.shard_samples) {
            let place = |number: u64| number.saturating_mul(each).min(self.index.len());
            report.skipped = place(numbers.end) - place(numbers.start) - report.samples;
        }
        report.kept_samples = report.samples;
        report.kept_shards = report.shards;
        report.seconds = self.began.elapsed().as_secs_f64();
        report.sent = Some(SendReport {
            shards_up: report.shards,
            ..SendReport::default()
        });
        report
    }
}

/// Makes and holds a stage.
fn claimed(path: &Path, part: BuildPart) -> Result<Folder> {
    match part {
        BuildPart::Share { .. } => Folder::share(path),
        BuildPart::All | BuildPart::Finish => Folder::claim(path),
    }
}

/// Removes a stage whose cache is in the store. Others that make the same share stay in it, and
/// the last of them removes it.
fn remove(folder: Folder) -> Result<()> {
    let path = folder.path().to_owned();
    drop(folder);
    match Folder::claim(&path) {
        Ok(folder) => remove_held(&folder),
        Err(_) => Ok(()),
    }
}

/// The same of one that is held alone.
fn remove_held(folder: &Folder) -> Result<()> {
    let path = folder.path();
    folder.remove_from(0)?;
    folder.remove_manifest()?;
    let lock = path.join(LOCK);
    let removed = fs::remove_file(&lock).and_then(|()| fs::remove_dir(path));
    match removed {
        // Something else lies there, which stays.
        Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed.map_err(|e| Error::io_at("remove", path, e)),
    }
}

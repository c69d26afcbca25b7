//! A cache whose source has no room here as a whole: its shares are made one after the other, by
//! one call, and then it is ended. Each share's shards of the source come once.
//!
//! In the consumer.

use std::path::Path;

use crate::cache::asked::{Build, Watch};
use crate::cache::folder::Folder;
use crate::cache::into_store::Target;
use crate::cache::options::BuildPart;
use crate::cache::report::{BuildReport, SendReport};
use crate::cache::so_far::NAMED;
use crate::data::shard::manifest::CACHE_MANIFEST;
use crate::error::{Error, Result};
use crate::jobs::kinds::KINDS;
use crate::pool::crew::{Crew, Ready};

impl Build<'_> {
    /// Makes this part of the cache: in one go where its source has room here.
    ///
    /// # Errors
    /// Those of a build.
    pub(super) fn run_in_rounds(
        &self,
        (folder, target): (&Path, Option<Target>),
        (crew, ready): (&Crew, Ready),
        watch: Watch<'_>,
    ) -> Result<BuildReport> {
        let shares = match self.part {
            BuildPart::All => self.shares_that_fit(),
            BuildPart::Share { .. } | BuildPart::Finish => None,
        };
        let Some(of) = shares else {
            return self.run_at((folder, target), ready, watch);
        };
        let is_new = target.is_none() && !folder.join(CACHE_MANIFEST).exists();
        if self.force && !is_new {
            return Err(Error::option(
                "force",
                format!(
                    "`force` makes all shards again, and the source has room here in {of} parts \
                     alone: give a `fetch_limit` with room for all of it, or remove the cache"
                ),
            ));
        }
        let mut all = BuildReport::default();
        let mut ready = Some(ready);
        for number in 0..of {
            let share = Build {
                part: BuildPart::Share { number, of },
                round: Some((number, of)),
                force: false,
                ..*self
            };
            let crew = match ready.take() {
                Some(ready) => ready,
                None => crew.clone().launch(KINDS)?,
            };
            let made = share.run_at((folder, target.clone()), crew, watch)?;
            let complete = made.complete;
            all = and(all, made);
            if !complete {
                all.complete = false;
                return Ok(all);
            }
        }
        let end = Build {
            part: BuildPart::Finish,
            force: false,
            ..*self
        };
        let ended = end.run_at((folder, target), crew.clone().launch(KINDS)?, watch)?;
        // The end has looked for all shards, and sent none.
        let shards_up = ended.sent.map_or(0, |sent| sent.shards_up);
        Ok(BuildReport {
            kept_samples: all.kept_samples,
            kept_shards: all.kept_shards,
            needed_bytes: all.needed_bytes,
            source_bytes: all.source_bytes,
            worker_deaths: all.worker_deaths,
            stderr_lost: all.stderr_lost,
            sent: sent(all.sent, ended.sent).map(|sent| SendReport { shards_up, ..sent }),
            ..ended
        })
    }

    fn run_at(
        &self,
        (folder, target): (&Path, Option<Target>),
        crew: Ready,
        watch: Watch<'_>,
    ) -> Result<BuildReport> {
        match (target, self.part) {
            (Some(target), _) => self.run_into(target, crew, watch),
            (None, BuildPart::Share { .. }) => self.run(&Folder::share(folder)?, crew, watch),
            (None, BuildPart::All | BuildPart::Finish) => {
                self.run(&Folder::claim(folder)?, crew, watch)
            }
        }
    }
}

/// What two shares are together.
fn and(one: BuildReport, two: BuildReport) -> BuildReport {
    let mut examples = one.skipped_examples;
    examples.extend(two.skipped_examples);
    examples.truncate(NAMED);
    BuildReport {
        samples: one.samples + two.samples,
        skipped: one.skipped + two.skipped,
        shards: one.shards + two.shards,
        bytes: one.bytes + two.bytes,
        kept_samples: one.kept_samples + two.kept_samples,
        kept_shards: one.kept_shards + two.kept_shards,
        needed_bytes: one.needed_bytes + two.needed_bytes,
        source_bytes: one.source_bytes + two.source_bytes,
        worker_deaths: one.worker_deaths + two.worker_deaths,
        stderr_lost: one.stderr_lost + two.stderr_lost,
        sent: sent(one.sent, two.sent),
        skipped_examples: examples,
        // Since the call began.
        ..two
    }
}

/// What two calls sent. Each knows the shards of its own part.
fn sent(one: Option<SendReport>, two: Option<SendReport>) -> Option<SendReport> {
    let (Some(one), Some(two)) = (one, two) else {
        return one.or(two);
    };
    Some(SendReport {
        shards_up: one.shards_up + two.shards_up,
        objects: one.objects + two.objects,
        bytes: one.bytes + two.bytes,
        retries: one.retries + two.retries,
        deaths: one.deaths + two.deaths,
    })
}

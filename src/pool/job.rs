//! The one seam between the pool and what it works on.
//!
//! Used in every process. The consumer orders a job by the name of its kind, with a
//! description as bytes and descriptors ([`JobRequest`]). The coordinator looks the
//! name up among the kinds that its executable was given and builds the job once
//! ([`JobKind`]). Workers have it by fork and know it as a [`Job`]. Never in here: any
//! kind of work, or a list of them.

use std::fmt;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, SampleFault};
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::StageMeter;

/// Work whose results are rows.
pub trait Job: Send {
    /// Where row `row` of ticket `ticket` lies: bytes of the slot's data. The
    /// same in every process; rows of a ticket share no byte.
    fn row_range(&mut self, ticket: &Ticket, row: u32) -> Range<usize>;

    /// Fills row `row` of ticket `ticket`: at attempt 0 with its own sample, at
    /// attempt n with the n-th that may take its place. The same bytes whenever
    /// and wherever it is called; a failed row may leave anything in `out`.
    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault>;

    /// Whether [`Job::prefers`] has anything to say.
    fn has_preferences(&self) -> bool {
        false
    }

    /// Whether this worker has at hand what the row is made from. Asked for a few
    /// rows in front of each, so it must be quick. A ticket's numbers may be wrong:
    /// any answer will do then.
    fn prefers(&self, _ticket: &Ticket, _row: u32) -> bool {
        true
    }

    /// Private memory that a worker may take at most, bytes.
    fn memory_limit(&self) -> u64;

    /// Opens what a worker needs and could not open later: then only files of rows can be
    /// opened. Called in each worker, once.
    ///
    /// # Errors
    /// A system that refuses.
    fn enter_worker(&mut self) -> Result<()> {
        Ok(())
    }

    /// Descriptors that rows are made with, which a worker may write and lock. It closes all
    /// others, so what else a job was built from must be mapped by then.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// What the row is made from at that attempt, for messages: a path, as a rule.
    fn describe(&self, ticket: &Ticket, row: u32, attempt: u32) -> String;
}

/// Something that knows which files rows are made from.
pub trait ReadableFiles {
    /// Folders and files: whatever rows are made from lies there or below, links followed.
    /// Asked once, in the consumer, when workers are to be kept to them.
    fn readable_paths(&self) -> Vec<PathBuf>;
}

/// A kind of job: its name, and how one is built.
#[derive(Debug, Clone, Copy)]
pub struct JobKind {
    pub name: &'static str,
    pub build: fn(JobParts) -> Result<Box<dyn Job>>,
}

/// Which process a job works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobProcess {
    /// A worker, which a broken file may end.
    Worker,
    /// The consumer itself, which nothing may end.
    Consumer,
}

/// What a job is built from.
#[derive(Debug)]
pub struct JobParts {
    spec: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
    pub runs_in: JobProcess,
}

impl JobParts {
    /// The description, as [`JobRequest::new`] was given it.
    ///
    /// # Errors
    /// When the bytes are no description of this type.
    pub fn spec<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.spec)
            .map_err(|e| Error::protocol(format!("read the description of a job: {e}")))
    }
}

/// A job as it is ordered: what travels by message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JobSpec {
    kind: String,
    spec: Vec<u8>,
    /// Samples that are tried in the place of one that gives no row.
    pub(crate) tries: u32,
}

impl JobSpec {
    /// Builds it by the kind of its name.
    ///
    /// # Errors
    /// A name that none of `kinds` has; what the kind says.
    pub(crate) fn build(
        &self,
        kinds: &[JobKind],
        descriptors: Vec<OwnedFd>,
        runs_in: JobProcess,
    ) -> Result<Box<dyn Job>> {
        let Some(kind) = kinds.iter().find(|kind| kind.name == self.kind) else {
            let known: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
            return Err(Error::protocol(format!(
                "a job of the kind '{}' was ordered, and this executable knows [{}]: name a \
                 helper that knows it (FEATHERLOAD_HELPER)",
                self.kind,
                known.join(", ")
            )));
        };
        (kind.build)(JobParts {
            spec: self.spec.clone(),
            descriptors,
            runs_in,
        })
    }
}

/// A job that a consumer orders, with the shared memory that it reads.
#[derive(Clone)]
pub struct JobRequest<'a> {
    pub(crate) job: JobSpec,
    pub(crate) descriptors: Vec<BorrowedFd<'a>>,
    pub(crate) reads: Option<&'a dyn ReadableFiles>,
}

impl<'a> JobRequest<'a> {
    /// A job of the kind `kind`. `tries` samples may stand in for one that gives no
    /// row; the descriptors come to the job in this order.
    ///
    /// # Errors
    /// A description that has no form as text.
    pub fn new(
        kind: &str,
        spec: &impl Serialize,
        tries: u32,
        descriptors: Vec<BorrowedFd<'a>>,
    ) -> Result<Self> {
        let spec = serde_json::to_vec(spec)
            .map_err(|e| Error::protocol(format!("write the description of a {kind} job: {e}")))?;
        let kind = kind.to_owned();
        let job = JobSpec { kind, spec, tries };
        Ok(Self {
            job,
            descriptors,
            reads: None,
        })
    }

    /// Its rows are made from these files. Of a job that does not say so, no worker can open
    /// any.
    #[must_use]
    pub fn reading(mut self, files: &'a dyn ReadableFiles) -> Self {
        self.reads = Some(files);
        self
    }

    /// Builds the job in this process, over descriptors of its own.
    ///
    /// # Errors
    /// As [`JobSpec::build`]; a system that refuses descriptors.
    pub(crate) fn build_here(&self, kinds: &[JobKind]) -> Result<Box<dyn Job>> {
        let own = self.descriptors.iter().map(|fd| fd.try_clone_to_owned());
        let own = own.collect::<std::io::Result<_>>();
        let own = own.map_err(|e| Error::io("duplicate the descriptors of a job", e))?;
        self.job.build(kinds, own, JobProcess::Consumer)
    }
}

impl fmt::Debug for JobRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobOrder({})", self.job.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_nobody_knows_is_named() {
        let order = JobRequest::new("rays", &7u32, 0, Vec::new()).unwrap();
        let known = JobKind {
            name: "images",
            build: |_| unreachable!("another kind was ordered"),
        };
        let e = order.build_here(&[known]).err().unwrap().to_string();
        assert!(e.contains("'rays'") && e.contains("[images]"), "{e}");
    }

    #[test]
    fn a_description_comes_as_it_was_given() {
        let build = |parts: JobParts| {
            assert_eq!(parts.spec::<(u64, f64)>()?, (u64::MAX, 0.1));
            assert_eq!(parts.runs_in, JobProcess::Consumer);
            Err(parts.spec::<String>().unwrap_err())
        };
        let kind = JobKind { name: "t", build };
        let order = JobRequest::new("t", &(u64::MAX, 0.1), 0, Vec::new()).unwrap();
        let e = order.build_here(&[kind]).err().unwrap().to_string();
        assert!(e.contains("description of a job"), "{e}");
    }
}

//! The interface between the pool and its work.
//!
//! Used in every process. The consumer requests a job by the name of its kind, a description as
//! bytes, and descriptors ([`JobRequest`]). The coordinator finds the kind by its name and builds
//! the job once ([`JobKind`]). Workers inherit it by fork and use it as a [`Job`]. Never in here:
//! any kind of work, or a list of kinds.

use std::fmt;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, SampleFault};
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::StageMeter;

/// Work that produces rows.
pub trait Job: Send {
    /// Byte range of a row in the data of its slot. It is the same in every process. Rows of a
    /// ticket never overlap.
    fn row_range(&mut self, ticket: &Ticket, row: u32) -> Range<usize>;

    /// Further ranges of the row, in ascending order. They lie after the first one, and belong to no
    /// other row.
    fn further_ranges(&mut self, _ticket: &Ticket, _row: u32) -> Vec<Range<usize>> {
        Vec::new()
    }

    /// Fills a row into `out`. Attempt 0 uses its own sample, attempt n its n-th substitute. The
    /// bytes depend on the arguments only. A failed attempt may leave anything in `out`.
    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault>;

    /// Like [`Job::fill`], for a row that may have further ranges.
    fn fill_parts(
        &mut self,
        ticket: &Ticket,
        row: u32,
        attempt: u32,
        out: &mut RowParts<'_>,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        self.fill(ticket, row, attempt, out.first, meter)
    }

    /// Whether [`Job::prefers`] may return true.
    fn has_preferences(&self) -> bool {
        false
    }

    /// Whether this worker already has the input of the row in memory. Called for several rows
    /// before each claim, so it must be fast. The ticket may be stale; then any answer is fine.
    fn prefers(&self, _ticket: &Ticket, _row: u32) -> bool {
        true
    }

    /// Most bytes of private memory that a worker may allocate.
    fn memory_limit(&self) -> u64;

    /// Opens the files that a worker needs besides those of its rows: later it cannot open them.
    /// Called once in each worker. A lane has one worker at a time.
    ///
    /// # Errors
    /// A system call that fails.
    fn enter_worker(&mut self, _lane: u32) -> Result<()> {
        Ok(())
    }

    /// Descriptors that a worker may write and lock. It closes all others, so everything else that
    /// the job was built from must be mapped before.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// The input of an attempt for messages, usually a path.
    fn describe(&self, ticket: &Ticket, row: u32, attempt: u32) -> String;
}

/// The bytes of a row: one range of its slot, or several.
#[derive(Debug)]
pub struct RowParts<'a> {
    pub first: &'a mut [u8],
    /// In the order of [`Job::further_ranges`].
    pub further: Vec<&'a mut [u8]>,
}

impl<'a> RowParts<'a> {
    /// A row of one range.
    pub fn whole(first: &'a mut [u8]) -> Self {
        Self {
            first,
            further: Vec::new(),
        }
    }

    /// The parts of `memory` at these ranges, or none if one lies outside, or they do not ascend.
    pub(crate) fn of(
        memory: &'a mut [u8],
        first: Range<usize>,
        further: &[Range<usize>],
    ) -> Option<Self> {
        let mut rest = memory;
        let mut begin = 0;
        let mut take = |range: &Range<usize>| {
            let part = std::mem::take(&mut rest);
            let skipped = range.start.checked_sub(begin)?;
            let (_, part) = part.split_at_mut_checked(skipped)?;
            let (part, after) = part.split_at_mut_checked(range.len())?;
            (rest, begin) = (after, range.end);
            Some(part)
        };
        let first = take(&first)?;
        let further = further.iter().map(take).collect::<Option<Vec<_>>>()?;
        Some(Self { first, further })
    }
}

/// Lists the files that rows are made from.
pub trait ReadableFiles {
    /// Folders and files that contain all input, after following links. Called once in the
    /// consumer, if workers are to be limited to these files.
    fn readable_paths(&self) -> Vec<PathBuf>;
}

/// A kind of job: its name and its constructor.
#[derive(Debug, Clone, Copy)]
pub struct JobKind {
    pub name: &'static str,
    pub build: fn(JobParts) -> Result<Box<dyn Job>>,
}

/// The process that a job runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobProcess {
    /// A worker. A damaged file may crash it.
    Worker,
    /// The consumer. It must survive any file.
    Consumer,
}

/// The parts that a job is built from.
#[derive(Debug)]
pub struct JobParts {
    spec: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
    pub runs_in: JobProcess,
}

impl JobParts {
    /// Parses the description that was given to [`JobRequest::new`].
    ///
    /// # Errors
    /// The bytes are no description of this type.
    pub fn spec<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.spec)
            .map_err(|e| Error::protocol(format!("read the description of a job: {e}")))
    }
}

/// A job as it is sent to the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JobSpec {
    kind: String,
    spec: Vec<u8>,
    /// Number of substitutes that are tried after a sample has failed.
    pub(crate) tries: u32,
}

impl JobSpec {
    /// Builds the job by its kind.
    ///
    /// # Errors
    /// `kinds` has no kind of this name; the constructor fails.
    pub(crate) fn build(
        &self,
        kinds: &[JobKind],
        descriptors: Vec<OwnedFd>,
        runs_in: JobProcess,
    ) -> Result<Box<dyn Job>> {
        let Some(kind) = kinds.iter().find(|kind| kind.name == self.kind) else {
            let known: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
            return Err(Error::protocol(format!(
                "the job '{}' is unknown to this executable, which knows [{}]: name a \
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

/// A job that the consumer requests, with the descriptors of its shared memory.
#[derive(Clone)]
pub struct JobRequest<'a> {
    pub(crate) job: JobSpec,
    pub(crate) descriptors: Vec<BorrowedFd<'a>>,
    pub(crate) reads: Vec<&'a dyn ReadableFiles>,
}

impl<'a> JobRequest<'a> {
    /// A job of the kind `kind`. `tries` is the number of substitutes for a failed sample. The job
    /// gets the descriptors in the same order.
    ///
    /// # Errors
    /// A description that cannot be written as JSON.
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
            reads: Vec::new(),
        })
    }

    /// Adds files that rows are made from. Without this call, workers cannot open any file.
    #[must_use]
    pub fn reading(mut self, files: &'a dyn ReadableFiles) -> Self {
        self.reads.push(files);
        self
    }

    /// Builds the job in this process, with duplicated descriptors.
    ///
    /// # Errors
    /// Like [`JobSpec::build`]; descriptors cannot be duplicated.
    pub(crate) fn build_here(&self, kinds: &[JobKind]) -> Result<Box<dyn Job>> {
        let own = self.descriptors.iter().map(|fd| fd.try_clone_to_owned());
        let own = own.collect::<std::io::Result<_>>();
        let own = own.map_err(|e| Error::io("duplicate the descriptors of a job", e))?;
        self.job.build(kinds, own, JobProcess::Consumer)
    }
}

impl fmt::Debug for JobRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobRequest({})", self.job.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_row_are_apart() {
        let mut memory: Vec<u8> = (0..20).collect();
        let parts = RowParts::of(&mut memory, 2..4, &[4..5, 9..9, 19..20]).unwrap();
        assert_eq!(parts.first, [2, 3]);
        assert_eq!(parts.further, [&[4][..], &[], &[19]]);
        for further in [
            vec![(3, 5)],
            vec![(8, 9), (5, 6)],
            vec![(19, 21)],
            vec![(25, 26)],
        ] {
            let further: Vec<_> = further.iter().map(|(start, end)| *start..*end).collect();
            assert!(RowParts::of(&mut memory, 2..4, &further).is_none());
        }
    }

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

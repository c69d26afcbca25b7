//! The thread that feeds the engines, so that who takes batches never waits for a decode.
//!
//! In the consumer; made after the coordinator, which must be alone when it is forked. It
//! opens the engines itself, beside index and workers' start. Batches come in one order and
//! are reported in it. What is queued goes into one submission, across batches: small
//! batches do not wait for themselves.
//!
//! A decode cannot be taken back. So the thread holds what it works on, and a thread whose
//! engines hang is left alone with it.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::context::{Context, Stream};
use super::engines::{Coded, EngineShape, Engines, decode_all};
use super::memory::DeviceBuffer;
use crate::device::frames::{Bytes, Culprits, EngineInfo, Picture};
use crate::error::{Error, Result};
use crate::sys::clock::RunningClock;

/// With so many pictures at hand no more are waited for, nor looked for.
const ENOUGH: usize = 32;
/// How long a sleep is between two looks at the time.
const LOOK: Duration = Duration::from_millis(50);
/// How long the end of a thread at work is waited for.
const END: Duration = Duration::from_secs(1);

struct Job {
    bytes: Bytes,
    pictures: Vec<Picture>,
}

/// The end of a batch: its bytes, which nothing reads any more, and what failed.
type Done = Result<(Bytes, Culprits)>;

/// The engines of a device, and who waits for them.
#[derive(Debug)]
pub(crate) struct EngineThread {
    /// Always there, but in a forked copy that drops it.
    ends: Option<Ends>,
    context: Arc<Context>,
    shape: EngineShape,
    /// Time that was waited for the oldest batch that is not done.
    waited: Option<RunningClock>,
    limit: Duration,
    failed: Option<String>,
}

/// Of the channels to and from the thread.
#[derive(Debug)]
struct Ends {
    jobs: Sender<Job>,
    opened: Receiver<Result<EngineInfo>>,
    done: Receiver<Done>,
    thread: JoinHandle<()>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pictures", self.pictures.len())
    }
}

impl EngineThread {
    /// Starts the thread, which opens the engines and then decodes into `arena`. `limit`: how
    /// long a batch may take.
    ///
    /// # Errors
    /// No further thread, or stream.
    pub(super) fn start(
        context: &Arc<Context>,
        shape: EngineShape,
        arena: Arc<DeviceBuffer>,
        limit: Duration,
    ) -> Result<Self> {
        let (jobs, to_do) = mpsc::channel();
        let (say, opened) = mpsc::channel();
        let (report, done) = mpsc::channel();
        let stream = Stream::new(context)?;
        let (ours, context) = (context.clone(), context.clone());
        // A submission has the pictures of a batch, and of smaller ones before it.
        let opens = EngineShape {
            pictures: shape.pictures + ENOUGH - 1,
            ..shape
        };
        let work = move || {
            let engines = match Engines::open(&context, opens) {
                Ok(engines) => engines,
                Err(why) => {
                    let _ = say.send(Err(why));
                    return;
                }
            };
            let opened = EngineInfo {
                library: engines.found().to_string(),
                engines: engines.count(),
            };
            if say.send(Ok(opened)).is_ok() {
                feed(engines, &arena, &stream, &to_do, &report);
            }
        };
        let thread = thread::Builder::new()
            .name("engines".into())
            .spawn(work)
            .map_err(|e| Error::io("start the thread of the engines", e))?;
        Ok(Self {
            ends: Some(Ends {
                jobs,
                opened,
                done,
                thread,
            }),
            context: ours,
            shape,
            waited: None,
            limit,
            failed: None,
        })
    }

    /// Waits until the engines are open. Asked for once.
    ///
    /// # Errors
    /// Why there are none, or that they take longer than the limit.
    pub(crate) fn opened(&mut self) -> Result<EngineInfo> {
        let mut waited = RunningClock::start();
        loop {
            match self.ends()?.opened.recv_timeout(LOOK) {
                Ok(opened) => return opened.map_err(|why| self.fail(why)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if waited.read(LOOK) < self.limit => {}
                Err(RecvTimeoutError::Timeout) => {
                    let limit = self.limit;
                    return Err(self.fail(Error::Device {
                        what: format!(
                            "the JPEG engines did not open within {limit:?}: decode on cpu, and \
                             see dmesg for Xid errors"
                        ),
                    }));
                }
            }
        }
    }

    /// Hands a batch over. Its frames are the engines' until it is reported: what else used
    /// these parts of the arena would have wrong pixels.
    ///
    /// # Errors
    /// What makes no batch, before anything is done; or the error of an earlier one.
    pub(crate) fn submit(&mut self, bytes: Bytes, pictures: Vec<Picture>) -> Result<()> {
        self.check()?;
        let len = (*bytes).as_ref().len();
        let lies = |p: &Picture| p.len > 0 && p.bytes().end <= len;
        if pictures.len() > self.shape.pictures || !pictures.iter().all(lies) {
            return Err(Error::Device {
                what: format!(
                    "{} pictures for engines of {}, or outside of their slot of {len} bytes",
                    pictures.len(),
                    self.shape.pictures
                ),
            });
        }
        match self.ends()?.jobs.send(Job { bytes, pictures }) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.gone()),
        }
    }

    /// Waits at most `most` for the oldest batch that was handed over and is not reported: the
    /// pictures that are none, of which the frames hold anything. None when it is not done.
    ///
    /// # Errors
    /// The engines fail, or have hung for the limit. So does every later call.
    pub(crate) fn next_done(&mut self, most: Duration) -> Result<Option<Culprits>> {
        self.check()?;
        let mut left = most;
        loop {
            let look = LOOK.min(left);
            match self.ends()?.done.recv_timeout(look) {
                Ok(done) => {
                    self.waited = None;
                    // The bytes go first: who handed them over may have them alone again.
                    let culprits = done.map(|(_, culprits)| Some(culprits));
                    return culprits.map_err(|why| self.fail(why));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let waited = self
                .waited
                .get_or_insert_with(RunningClock::start)
                .read(look);
            if waited >= self.limit {
                let limit = self.limit;
                return Err(self.fail(Error::Device {
                    what: format!(
                        "the JPEG engines have not decoded a batch within {limit:?}: decode on \
                         cpu, and see dmesg for Xid errors"
                    ),
                }));
            }
            left = left.saturating_sub(look);
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// In this process alone: of a forked copy the thread is not there, and what it held of
    /// the channels is held for ever.
    fn ends(&self) -> Result<&Ends> {
        match &self.ends {
            Some(ends) if self.context.is_ours() => Ok(ends),
            _ => Err(Error::Device {
                what: "the JPEG engines were opened by another process, and this is a forked copy \
                       of it"
                    .into(),
            }),
        }
    }

    fn check(&self) -> Result<()> {
        match &self.failed {
            Some(what) => Err(Error::Device { what: what.clone() }),
            None => Ok(()),
        }
    }

    /// Keeps an error: no batch follows it.
    fn fail(&mut self, why: Error) -> Error {
        let what = match why {
            Error::Device { what } => what,
            other => other.to_string(),
        };
        self.failed = Some(what.clone());
        Error::Device { what }
    }

    /// The thread ended and gave no reason.
    fn gone(&mut self) -> Error {
        self.fail(Error::Device {
            what: "the thread of the JPEG engines has ended: please report what stands above, \
                   and decode on cpu meanwhile"
                .into(),
        })
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take() else {
            return;
        };
        if !self.context.is_ours() {
            std::mem::forget(ends);
            return;
        }
        let Ends {
            jobs, done, thread, ..
        } = ends;
        // The thread ends behind what it works on: the channel of its reports closes then.
        drop(jobs);
        let mut waited = RunningClock::start();
        loop {
            match done.recv_timeout(LOOK) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                // It keeps what its engines may write, for as long as this process lives.
                Err(RecvTimeoutError::Timeout) if waited.read(LOOK) >= END => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        // A panic was reported by its hook.
        let _ = thread.join();
    }
}

/// What the thread does: until who hands batches over is gone, or the engines fail.
fn feed(
    mut engines: Engines,
    arena: &DeviceBuffer,
    stream: &Stream,
    to_do: &Receiver<Job>,
    report: &Sender<Done>,
) {
    while let Ok(first) = to_do.recv() {
        let mut jobs = vec![first];
        let mut count = jobs.iter().map(|job| job.pictures.len()).sum::<usize>();
        while count < ENOUGH
            && let Ok(job) = to_do.try_recv()
        {
            count += job.pictures.len();
            jobs.push(job);
        }
        let pictures: Vec<Coded<'_>> = (jobs.iter())
            .flat_map(|job| {
                let bytes = (*job.bytes).as_ref();
                job.pictures.iter().map(|p| Coded {
                    // Inside by `submit`.
                    bytes: &bytes[p.bytes()],
                    size: p.size,
                    frame: p.frame,
                })
            })
            .collect();
        let found = decode_all(&pictures, &mut |part| {
            // SAFETY: bytes stay as they are while `jobs` has them, and frames are the engines'
            // until the batch is reported: `submit` leaves both to its callers.
            unsafe { engines.decode(part, arena, stream) }
        });
        drop(pictures);
        let failed = match found {
            Ok(culprits) => !reported(jobs, culprits, report),
            // Of all batches of the submission none can be used.
            Err(why) => {
                let _ = report.send(Err(why));
                true
            }
        };
        if failed {
            return;
        }
    }
}

/// Reports each batch with its own culprits. False when nobody listens.
fn reported(jobs: Vec<Job>, culprits: Culprits, report: &Sender<Done>) -> bool {
    let mut culprits = culprits.into_iter().peekable();
    let mut begin = 0;
    for job in jobs {
        let end = begin + job.pictures.len();
        let mut own = Vec::new();
        while let Some((at, why)) = culprits.next_if(|(at, _)| *at < end) {
            own.push((at - begin, why));
        }
        if report.send(Ok((job.bytes, own))).is_err() {
            return false;
        }
        begin = end;
    }
    true
}

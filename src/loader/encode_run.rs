//! Payloads of a cache in order: the pool of a loader with another job.
//!
//! In the consumer. A ticket is some places of the cache's order, as many as
//! fit a slot; its number of a batch is its first place. What the rows of a slot
//! say of themselves comes out of shared memory and is checked here. Never in
//! here: files of the cache.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use super::pool::{Place, Pool, PoolOptions};
use super::report::LoaderReport;
use crate::coordinator::handle::CoordinatorHandle;
use crate::coordinator::launch::{Launch, launch};
use crate::coordinator::messages::StartRequest;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::index::Index;
use crate::packing::Sizes;
use crate::packing::payload::PayloadHead;
use crate::packing::rooms::Rooms;
use crate::ring::slots::HeldSlot;
use crate::ring::{Layout, Ring, Shape};
use crate::sys::clock::monotonic_ns;
use crate::sys::memory;
use crate::worker::spec::{EncodeSpec, JobInput};

/// Bytes of a slot that holds many small payloads.
const SLOT: u64 = 16 << 20;

/// Most rows of a ticket.
const ROWS: u32 = 256;

/// Who makes the payloads.
#[derive(Debug, Clone)]
pub(crate) struct Crew {
    /// 0 = this process.
    pub(crate) workers: u32,
    pub(crate) launch: Launch,
    pub(crate) helper: Option<PathBuf>,
    /// Most time that one sample may take.
    pub(crate) row_limit: Duration,
    pub(crate) kill_every: Option<Duration>,
}

/// A coordinator that waits for its job; none with zero workers. Made before
/// any data exists and before anything is locked.
#[derive(Debug)]
pub(crate) struct Ready {
    crew: Crew,
    coordinator: Option<CoordinatorHandle>,
}

impl Crew {
    /// # Errors
    /// A helper that is missing or of another version, a system that refuses.
    pub(crate) fn launch(self) -> Result<Ready> {
        let coordinator = match self.workers {
            0 => None,
            _ => Some(launch(self.launch, self.helper.as_deref())?),
        };
        Ok(Ready {
            crew: self,
            coordinator,
        })
    }
}

/// A run over the places of a cache.
#[derive(Debug)]
pub(crate) struct EncodeRun {
    engine: Engine,
    rooms: Rooms,
    slot_bytes: u64,
    /// The first place of the next ticket that is handed over.
    at: u64,
}

#[derive(Debug)]
enum Engine {
    Pool(Box<Pool>),
    #[cfg(feature = "codecs")]
    InProcess(Box<in_process::InProcess>),
}

impl Ready {
    /// Starts the run at place `first`, which must be one.
    ///
    /// # Errors
    /// Too little memory, a system that refuses.
    pub(crate) fn start(
        self,
        spec: EncodeSpec,
        index: &Index,
        sizes: &Sizes,
        rooms: &Rooms,
        first: u64,
    ) -> Result<EncodeRun> {
        let rooms = rooms.try_clone()?;
        let slot_bytes = rooms.largest().max(SLOT);
        let engine = match self.coordinator {
            None => in_process(spec, index, sizes, &rooms)?,
            Some(coordinator) => {
                let lanes = self.crew.workers;
                let shape = Shape {
                    slots: slots(lanes, slot_bytes, &rooms),
                    rows: ROWS,
                    slot_bytes,
                    lanes,
                };
                check_fits(shape)?;
                let job = JobInput::Encode(spec, index, sizes, &rooms);
                let request = StartRequest {
                    shape,
                    job: job.spec(),
                    row_limit_ms: self.crew.row_limit.as_millis().max(1) as u64,
                    kill_every_ms: self.crew.kill_every.map(|d| d.as_millis() as u64),
                    first_serial: 1,
                };
                let options = PoolOptions {
                    // The consumer holds one slot at a time, of at least two.
                    hold_timeout: self.crew.row_limit,
                    first_sequence: 1,
                    began_ns: monotonic_ns(),
                };
                let place = place(&rooms, slot_bytes, first)
                    .ok_or_else(|| Error::protocol(format!("there is no place {first}")))?;
                let ring = Ring::create(shape)?;
                let pool = Pool::start(coordinator, ring, &job, request, options, place)?;
                Engine::Pool(Box::new(pool))
            }
        };
        Ok(EncodeRun {
            engine,
            rooms,
            slot_bytes,
            at: first,
        })
    }
}

/// Slots enough that workers have work while one is written: more where a slot
/// has room for one or two payloads only.
fn slots(workers: u32, slot_bytes: u64, rooms: &Rooms) -> u32 {
    let usual = rooms.bytes_from(0) / rooms.len().max(1);
    match usual * 2 > slot_bytes {
        true => workers + 2,
        false => workers / 2 + 2,
    }
}

/// The ring is allocated as a whole: one that is larger than what is free would
/// call the out-of-memory killer, not fail.
fn check_fits(shape: Shape) -> Result<()> {
    let needed = Layout::new(shape)?.total_bytes() as u64;
    match memory::available_bytes() {
        Some(free) if needed > free => Err(Error::config(format!(
            "the workers' shared memory needs {needed} bytes ({} slots of {} bytes, as many as \
             the largest sample takes), and {free} are available: take fewer workers, give a \
             resize, or lower max_pixels",
            shape.slots, shape.slot_bytes
        ))),
        _ => Ok(()),
    }
}

/// The ticket that begins at place `at`; none behind the last place.
fn place(rooms: &Rooms, slot_bytes: u64, at: u64) -> Option<Place> {
    let rows = rooms.ticket(at, slot_bytes, ROWS);
    (rows > 0).then_some(Place {
        epoch: 0,
        batch: at,
        filled: rows,
        rows,
    })
}

impl EncodeRun {
    /// The next payloads, in order; none behind the last place. Let go of those
    /// before first.
    ///
    /// # Errors
    /// What ends the pool.
    pub(crate) fn next(&mut self) -> Result<Option<Payloads>> {
        let Some(next) = place(&self.rooms, self.slot_bytes, self.at) else {
            return Ok(None);
        };
        let (rooms, slot_bytes) = (&self.rooms, self.slot_bytes);
        let places = (0..next.filled)
            .map(|row| rooms.place(next.batch, next.batch + u64::from(row)))
            .map(Option::unwrap_or_default)
            .collect();
        let storage = match &mut self.engine {
            Engine::Pool(pool) => {
                let coming = |n: usize| {
                    (0..n).try_fold(next, |p, _| {
                        place(rooms, slot_bytes, p.batch + u64::from(p.filled))
                    })
                };
                Storage::Slot(pool.next(&coming)?.1)
            }
            #[cfg(feature = "codecs")]
            Engine::InProcess(process) => {
                let (bytes, faults) = process.fill(&next);
                Storage::Own(bytes, faults)
            }
        };
        self.at = next.batch + u64::from(next.filled);
        Ok(Some(Payloads {
            first: next.batch,
            places,
            storage,
        }))
    }

    /// What happened so far.
    pub(crate) fn report(&self) -> Result<LoaderReport> {
        match &self.engine {
            Engine::Pool(pool) => pool.report(),
            #[cfg(feature = "codecs")]
            Engine::InProcess(process) => Ok(process.report()),
        }
    }
}

impl Drop for EncodeRun {
    /// Nothing that is under way will be asked for.
    fn drop(&mut self) {
        match &mut self.engine {
            Engine::Pool(pool) => pool.cancel(),
            #[cfg(feature = "codecs")]
            Engine::InProcess(_) => {}
        }
    }
}

/// The payloads of a ticket. A slot is free again when this is dropped.
pub(crate) struct Payloads {
    /// The place of the first row.
    pub(crate) first: u64,
    places: Vec<Range<usize>>,
    storage: Storage,
}

enum Storage {
    Slot(HeldSlot),
    /// With the faults of the rows that have one.
    #[cfg_attr(not(feature = "codecs"), allow(dead_code, reason = "of this process"))]
    Own(Vec<u8>, Vec<Option<SampleFault>>),
}

impl fmt::Debug for Payloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payloads({} from {})", self.places.len(), self.first)
    }
}

impl Payloads {
    pub(crate) fn rows(&self) -> usize {
        self.places.len()
    }

    /// What a row says of itself, and its payload.
    ///
    /// # Errors
    /// Why its sample gave none.
    pub(crate) fn row(&self, row: usize) -> Result<(PayloadHead, &[u8]), SampleFault> {
        let bytes = match &self.storage {
            Storage::Slot(held) => {
                let number = row as u32;
                // At attempt 0 or failed: there is no other.
                if held.failed(number) {
                    return Err(held.fault(number));
                }
                held.bytes()
            }
            Storage::Own(bytes, faults) => {
                if let Some(Some(fault)) = faults.get(row) {
                    return Err(fault.clone());
                }
                bytes
            }
        };
        self.places
            .get(row)
            .and_then(|place| bytes.get(place.clone()))
            .and_then(PayloadHead::split)
            .ok_or_else(|| {
                SampleFault::new(
                    FaultKind::Unknown,
                    "what it became was destroyed in shared memory, by a decoder gone wrong",
                )
            })
    }
}

#[cfg(feature = "codecs")]
fn in_process(spec: EncodeSpec, index: &Index, sizes: &Sizes, rooms: &Rooms) -> Result<Engine> {
    let process = in_process::InProcess::new(spec, index, sizes, rooms)?;
    Ok(Engine::InProcess(Box::new(process)))
}

#[cfg(not(feature = "codecs"))]
fn in_process(_spec: EncodeSpec, _index: &Index, _sizes: &Sizes, _rooms: &Rooms) -> Result<Engine> {
    Err(Error::config(
        "zero workers decode in this process, and this library was built without the feature \
         'codecs'; use at least 1 worker",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_was_destroyed_is_a_fault_and_nobodys_payload() {
        let head = PayloadHead {
            bytes: 4,
            height: 1,
            width: 1,
        };
        let mut good = vec![0; PayloadHead::BYTES + 4];
        head.write(&mut good);
        good[PayloadHead::BYTES..].copy_from_slice(b"abcd");
        // More bytes than the row has room for.
        let mut scribbled = good.clone();
        scribbled[..8].fill(0xff);
        let row = good.len();
        let payloads = Payloads {
            first: 0,
            // The last lies behind the slot.
            places: vec![0..row, row..2 * row, 2 * row..3 * row],
            storage: Storage::Own([good, scribbled].concat(), Vec::new()),
        };
        assert_eq!(payloads.row(0).unwrap().1, b"abcd");
        for destroyed in [1, 2, 3] {
            let fault = payloads.row(destroyed).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Unknown, "{destroyed}");
            assert!(fault.reason.contains("destroyed"), "{fault}");
        }
    }
}

/// Payloads by a plain loop in this process.
#[cfg(feature = "codecs")]
mod in_process {
    use std::fmt;
    use std::os::fd::AsFd;

    use crate::coordinator::messages::PoolTimes;
    use crate::error::{Error, Result, SampleFault};
    use crate::index::Index;
    use crate::loader::pool::Place;
    use crate::loader::report::{LoaderReport, StageTimes};
    use crate::packing::Sizes;
    use crate::packing::rooms::Rooms;
    use crate::ring::consumer_side::Ticket;
    use crate::ring::region::told_of;
    use crate::sys::cpu;
    use crate::worker::encode::EncodeJob;
    use crate::worker::input::InputMode;
    use crate::worker::job::Job;
    use crate::worker::meter::Meter;
    use crate::worker::spec::EncodeSpec;

    pub(super) struct InProcess {
        job: EncodeJob,
        meter: Meter,
    }

    impl fmt::Debug for InProcess {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("InProcess")
        }
    }

    impl InProcess {
        pub(super) fn new(
            spec: EncodeSpec,
            index: &Index,
            sizes: &Sizes,
            rooms: &Rooms,
        ) -> Result<Self> {
            cpu::prepare_decoder()?;
            let fd = index
                .as_fd()
                .try_clone_to_owned()
                .map_err(|e| Error::io("duplicate the index's descriptor", e))?;
            let index = Index::from_fd(fd)?;
            let (sizes, rooms) = (sizes.try_clone()?, rooms.try_clone()?);
            Ok(Self {
                job: EncodeJob::new(&spec, index, sizes, rooms, InputMode::Read)?,
                meter: Meter::default(),
            })
        }

        /// The rows of a ticket where they would lie in a slot, and their faults.
        pub(super) fn fill(&mut self, place: &Place) -> (Vec<u8>, Vec<Option<SampleFault>>) {
            let ticket = Ticket {
                sequence: 1,
                epoch: place.epoch,
                batch: place.batch,
                rows: place.filled,
            };
            let last = place.filled.saturating_sub(1);
            let mut bytes = vec![0; self.job.place(&ticket, last).end];
            self.meter.start();
            let faults = (0..place.filled)
                .map(|row| {
                    let out = self.job.place(&ticket, row);
                    let filled = self
                        .job
                        .fill(&ticket, row, 0, &mut bytes[out], &mut self.meter);
                    self.meter.rows += 1;
                    // As out of a ring.
                    let told = |f: SampleFault| SampleFault::new(f.kind, told_of(&f.reason));
                    filled.err().map(told)
                })
                .collect();
            (bytes, faults)
        }

        pub(super) fn report(&self) -> LoaderReport {
            LoaderReport {
                rows_by_worker: vec![self.meter.rows],
                times: StageTimes::from_pool(&PoolTimes {
                    rows: self.meter.rows,
                    input_bytes: self.meter.bytes,
                    resized: self.meter.resized,
                    stage_ns: self.meter.ns,
                    first_commit_ns: 0,
                }),
                ..LoaderReport::default()
            }
        }
    }
}

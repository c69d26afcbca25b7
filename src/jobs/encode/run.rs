//! Payloads of a cache in order. Uses the same pool as a loader, with another job.
//!
//! In the consumer. A ticket is a run of places of the cache's order, as many as fit a slot. Its
//! number is its first place. The headers of rows come from shared memory and are checked here.
//! Never in here: files of the cache.

use std::ops::Range;

use crate::data::index::Index;
use crate::data::sample_sizes::SampleSizes;
use crate::error::{self, Error, FaultKind, Result, SampleFault};
use crate::jobs::encode::payload::{SamplePayload, payload_of};
use crate::jobs::encode::payload_spaces::PayloadSpaces;
use crate::jobs::encode::spec::EncodeSpec;
use crate::pool::batch_request::BatchRequest;
use crate::pool::filled_batch::FilledBatch;
use crate::pool::ring::RingShape;
use crate::pool::row_filler::RowFiller;
use crate::pool::worker_options::LaunchedWorkers;

/// Bytes of a slot for many small payloads.
const SLOT: u64 = 16 << 20;

/// Most rows of a ticket.
const ROWS: u32 = 256;

/// A run over places of a cache.
#[derive(Debug)]
pub(crate) struct EncodeRun {
    pub(crate) filler: RowFiller,
    rooms: PayloadSpaces,
    /// Disjoint ranges of places, in ascending order.
    parts: Vec<Range<u64>>,
    slot_bytes: u64,
    /// The first place of the next ticket to return.
    at: u64,
}

/// Enough slots that workers have work while one slot is written to the cache. More if a slot only
/// has room for one or two payloads.
fn slots(workers: u32, slot_bytes: u64, rooms: &PayloadSpaces, parts: &[Range<u64>]) -> u32 {
    let bytes = |part: &Range<u64>| rooms.bytes_from(part.start) - rooms.bytes_from(part.end);
    let places: u64 = parts.iter().map(|part| part.end - part.start).sum();
    let usual = parts.iter().map(bytes).sum::<u64>() / places.max(1);
    match usual * 2 > slot_bytes {
        true => workers + 2,
        false => workers / 2 + 2,
    }
}

/// The ticket that begins at place `at`, or at the first place of the next range. It ends with its
/// range. None after the last place.
fn place(
    rooms: &PayloadSpaces,
    slot_bytes: u64,
    parts: &[Range<u64>],
    at: u64,
) -> Option<BatchRequest> {
    let part = parts.get(parts.partition_point(|part| part.end <= at))?;
    let at = at.max(part.start);
    let most = (part.end - at).min(u64::from(ROWS)) as u32;
    let rows = rooms.ticket(at, slot_bytes, most);
    (rows > 0).then_some(BatchRequest::numbered(at, rows))
}

impl EncodeRun {
    /// Starts at the first place of `parts`, which must be disjoint and ascending.
    ///
    /// # Errors
    /// Too little memory; a system call that fails.
    pub(crate) fn start(
        launched: LaunchedWorkers,
        spec: &EncodeSpec,
        index: &Index,
        rasters: &[&Index],
        sizes: &SampleSizes,
        rooms: &PayloadSpaces,
        parts: Vec<Range<u64>>,
    ) -> Result<Self> {
        let rooms = rooms.try_clone()?;
        let slot_bytes = rooms.largest().max(SLOT);
        let workers = launched.workers();
        let shape = RingShape {
            slots: slots(workers, slot_bytes, &rooms, &parts),
            rows: ROWS,
            slot_bytes,
            lanes: workers.max(1),
        };
        let at = place(&rooms, slot_bytes, &parts, 0).ok_or_else(|| {
            Error::protocol(format!(
                "no slot of {slot_bytes} bytes has room for the first of {} parts",
                parts.len()
            ))
        })?;
        let order = spec.order(index, sizes, &rooms, rasters)?;
        let filler = launched.start(&order, shape, at, |needed, free| {
            format!(
                "the workers' shared memory needs {} ({} slots of {}, as large as the largest \
                 sample), and {} are available: use fewer workers, a resize, or a lower max_pixels",
                error::size_rounded_up(needed),
                shape.slots,
                error::size(shape.slot_bytes),
                error::size_rounded_down(free)
            )
        })?;
        Ok(Self {
            filler,
            rooms,
            parts,
            slot_bytes,
            at: 0,
        })
    }

    /// The next payloads, in order. None after the last place. Drop the previous ones first.
    ///
    /// # Errors
    /// Errors that end the pool.
    pub(crate) fn next(&mut self) -> Result<Option<PayloadBatch>> {
        let (rooms, slot_bytes, parts) = (&self.rooms, self.slot_bytes, &self.parts);
        let Some(next) = place(rooms, slot_bytes, parts, self.at) else {
            return Ok(None);
        };
        let places = (0..next.rows_to_fill)
            .map(|row| rooms.place(next.number, next.number + u64::from(row)))
            .map(Option::unwrap_or_default)
            .collect();
        let upcoming = |n: usize| {
            (0..n).try_fold(next, |p, _| {
                place(
                    rooms,
                    slot_bytes,
                    parts,
                    p.number + u64::from(p.rows_to_fill),
                )
            })
        };
        let filled = self.filler.next(&upcoming)?;
        self.at = next.number + u64::from(next.rows_to_fill);
        Ok(Some(PayloadBatch { places, filled }))
    }
}

impl Drop for EncodeRun {
    /// Cancels the work under way.
    fn drop(&mut self) {
        self.filler.cancel();
    }
}

/// The payloads of a ticket. Dropping this frees the slot.
#[derive(Debug)]
pub(crate) struct PayloadBatch {
    places: Vec<Range<usize>>,
    filled: FilledBatch,
}

impl PayloadBatch {
    pub(crate) fn rows(&self) -> usize {
        self.places.len()
    }

    /// The place of the first row in the cache's order.
    pub(crate) fn first(&self) -> u64 {
        self.filled.place.number
    }

    /// The payload of a row.
    ///
    /// # Errors
    /// Why its sample failed.
    pub(crate) fn row(&self, row: usize) -> Result<SamplePayload<'_>, SampleFault> {
        // The cache has no substitutes: a bad row has failed.
        if let Some(bad) = self.filled.bad.iter().find(|bad| bad.row as usize == row) {
            return Err(bad.fault.clone());
        }
        let bytes = self.filled.rows.bytes();
        self.places
            .get(row)
            .and_then(|place| bytes.get(place.clone()))
            .and_then(payload_of)
            .ok_or_else(|| {
                SampleFault::new(
                    FaultKind::Unknown,
                    "its payload was destroyed in shared memory, by a faulty decoder",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::encode::payload::{HEAD, write_lengths};
    use crate::pool::buffers::BufferPool;
    use crate::pool::filled_batch::RowMemory;

    #[test]
    fn tickets_have_each_place_of_the_parts_once() {
        let rooms = PayloadSpaces::seal((0..1000).map(|n| n * 37 % 900)).unwrap();
        let parts = [5..9, 9..300, 640..641, 900..1000];
        let mut next = place(&rooms, 20_000, &parts, 0);
        let mut had = Vec::new();
        while let Some(ticket) = next {
            let end = ticket.number + u64::from(ticket.rows_to_fill);
            assert!(
                parts
                    .iter()
                    .any(|p| p.start <= ticket.number && end <= p.end)
            );
            had.extend(ticket.number..end);
            next = place(&rooms, 20_000, &parts, end);
        }
        assert_eq!(had, parts.iter().cloned().flatten().collect::<Vec<_>>());
        assert_eq!(place(&rooms, 20_000, &[], 0), None);
    }

    #[test]
    fn a_row_that_was_destroyed_is_a_fault_and_nobodys_payload() {
        let mut good = vec![0; HEAD + 4];
        write_lengths(&[4, 0, 0, 0, 0, 0, 0, 0], &mut good);
        good[HEAD..].copy_from_slice(b"abcd");
        // More bytes than the row has room for.
        let mut damaged = good.clone();
        damaged[..8].fill(0xff);
        let row = good.len();
        let mut buffer = BufferPool::default().take(2 * row);
        buffer.bytes_mut()[..2 * row].copy_from_slice(&[good, damaged].concat());
        let payloads = PayloadBatch {
            // The last is after the end of the slot.
            places: vec![0..row, row..2 * row, 2 * row..3 * row],
            filled: FilledBatch {
                place: BatchRequest::numbered(0, 3),
                rows: RowMemory::Own(buffer),
                bad: Vec::new(),
            },
        };
        assert_eq!(payloads.row(0).unwrap().image, b"abcd");
        for destroyed in [1, 2, 3] {
            let fault = payloads.row(destroyed).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Unknown, "{destroyed}");
            assert!(fault.reason.contains("destroyed"), "{fault}");
        }
    }
}

//! A batch that the device's decoder shares with the workers. States: open (workers still fill it),
//! closed (all rows are final), done (the device has decoded its rows).
//!
//! In the consumer. If the CPU decoder rejects an image too, its row has failed or contains a
//! substitute.

use std::ops::Range;
use std::time::Duration;

use crate::decode_plan::crop_row::{CROP_HEADER, CropHeader, RowContents};
use crate::device::coded_rows::{CpuVerdict, DecodedBatch};
use crate::device::crop_launch::{ELSEWHERE, KernelRow, MASKED};
use crate::device::cuda::JpegThread;
use crate::error::{Error, Result};
use crate::jobs::images::objects::BatchObjects;
use crate::pool::batch_request::BatchRequest;
use crate::pool::filled_batch::{BadRow, FilledBatch};
use crate::recipe::{CropRowBytes, CropRule};

/// A closed batch: all rows are final, and the device decodes.
#[derive(Debug)]
pub(crate) struct ClosedBatch {
    pub(crate) place: BatchRequest,
    pub(crate) bad: Vec<BadRow>,
    /// The coded rows.
    pub(crate) rows: Vec<u32>,
    /// The objects of all rows that workers made.
    pub(crate) objects: Option<BatchObjects>,
}

/// Whether the device has decoded a batch.
#[derive(Debug)]
pub(crate) enum DecodeOutcome {
    Done(DecodedRows),
    Pending(ClosedBatch),
}

/// A batch whose rows the device has decoded.
#[derive(Debug)]
pub(crate) struct DecodedRows {
    pub(crate) place: BatchRequest,
    /// The rows whose own samples failed.
    pub(crate) bad: Vec<BadRow>,
    /// The objects of all rows that workers made.
    pub(crate) objects: Option<BatchObjects>,
    /// The rows that the CPU could not decode again, and that no substitute fills.
    pub(crate) lost: Vec<u32>,
}

/// The rows of a batch by the kernel that makes them.
#[derive(Debug, Default)]
pub(crate) struct RowSplit {
    /// All rows, for the kernel that reads slots.
    pub(crate) rows: Vec<KernelRow>,
    /// The coded rows.
    pub(crate) coded: Vec<u32>,
}

/// The content of a row.
#[derive(Debug)]
pub(crate) enum RowContent {
    Pixels(KernelRow),
    /// The range of the coded crop in the row, and the kernel's row, still without the address of
    /// its pixels.
    Coded(Range<usize>, KernelRow),
}

/// Waits at most `most` for the oldest closed batch.
///
/// # Errors
/// The device fails or hangs; the decoded rows are not those that were coded when the batch was
/// closed.
pub(crate) fn finish_batch(
    thread: &mut JpegThread,
    batch: ClosedBatch,
    most: Duration,
) -> Result<DecodeOutcome> {
    let Some(DecodedBatch { rows, verdicts }) = thread.next_done(most)? else {
        return Ok(DecodeOutcome::Pending(batch));
    };
    let ClosedBatch {
        place,
        mut bad,
        rows: coded_rows,
        objects,
    } = batch;
    if rows != coded_rows {
        let other = |row: &&u32| !rows.contains(row) || !coded_rows.contains(row);
        let row = rows.iter().chain(&coded_rows).find(other).copied();
        let why = "its coded crop is malformed, or was changed";
        // No batch follows: work on this one may still be under way.
        return Err(thread.fail(destroyed_row(row.unwrap_or(0), why)));
    }
    let lost = verdicts.iter().filter(|verdict| verdict.attempt.is_none());
    let lost = lost.map(|verdict| verdict.row).collect();
    add_verdicts(&mut bad, verdicts);
    Ok(DecodeOutcome::Done(DecodedRows {
        place,
        bad,
        objects,
        lost,
    }))
}

/// Finds the coded rows of a batch. `size`: height and width of its rows.
///
/// # Errors
/// A malformed row.
pub(crate) fn split_rows(
    filled: &FilledBatch,
    rule: CropRule,
    size: (u32, u32),
) -> Result<RowSplit> {
    let mut split = RowSplit::default();
    let row_bytes = rule.row_bytes(size).row_bytes();
    for row in 0..filled.place.rows {
        let failed = |bad: &BadRow| bad.row == row && bad.attempt.is_none();
        if row >= filled.place.rows_to_fill || filled.bad.iter().any(failed) {
            split.rows.push(row_with_flags(MASKED));
            continue;
        }
        let begin = row as usize * row_bytes;
        let read = read_row(|to| filled.rows.copy(begin, to), begin, rule, size);
        match read.map_err(|why| destroyed_row(row, &why))? {
            RowContent::Pixels(kernel) => split.rows.push(kernel),
            RowContent::Coded(..) => {
                split.rows.push(row_with_flags(ELSEWHERE));
                split.coded.push(row);
            }
        }
    }
    Ok(split)
}

/// Reads and checks a row that begins at byte `begin` of its slot. `copy` copies the row's first
/// bytes, as in [`header_of`].
///
/// # Errors
/// A malformed row.
pub(crate) fn read_row(
    copy: impl FnOnce(&mut [u8]) -> bool,
    begin: usize,
    rule: CropRule,
    size: (u32, u32),
) -> std::result::Result<RowContent, String> {
    let room = rule.row_bytes(size);
    let header = header_of(copy, room, size, RowContents::Coded)?;
    let kernel = kernel_row(&header, begin, room, rule)?;
    Ok(match header.coded as usize {
        0 => RowContent::Pixels(kernel),
        coded => RowContent::Coded(room.pixels_at()..room.pixels_at() + coded, kernel),
    })
}

/// Copies and checks the header of a row. `copy` copies the row's first bytes, and returns false if
/// there are too few.
///
/// # Errors
/// A malformed row.
pub(crate) fn header_of(
    copy: impl FnOnce(&mut [u8]) -> bool,
    room: CropRowBytes,
    size: (u32, u32),
    contents: RowContents,
) -> std::result::Result<CropHeader, String> {
    let mut header = [0; CROP_HEADER];
    match copy(&mut header) {
        true => CropHeader::read(&header, room, size, contents),
        false => Err("it is outside of its slot".into()),
    }
}

fn row_with_flags(flags: u32) -> KernelRow {
    KernelRow {
        flags,
        ..KernelRow::default()
    }
}

/// The kernel's row for a checked header.
///
/// # Errors
/// A step that the recipe does not have.
pub(crate) fn kernel_row(
    header: &CropHeader,
    begin: usize,
    room: CropRowBytes,
    rule: CropRule,
) -> std::result::Result<KernelRow, String> {
    let row = KernelRow::of(header, begin, room);
    if row.takes_mean() && !rule.reads_twice() {
        return Err("it changes its contrast, and the recipe has no such step".into());
    }
    Ok(row)
}

/// The error for a malformed row.
pub(crate) fn destroyed_row(row: u32, why: &str) -> Error {
    Error::protocol(format!(
        "row {row} was destroyed in shared memory, by a faulty decoder: {why}; build a new \
         loader from the last state"
    ))
}

/// Adds the CPU's verdicts to the bad rows.
fn add_verdicts(bad: &mut Vec<BadRow>, verdicts: Vec<CpuVerdict>) {
    for verdict in verdicts {
        let CpuVerdict {
            row,
            fault,
            attempt,
        } = verdict;
        match bad.iter_mut().find(|bad| bad.row == row) {
            // A row with a substitute keeps the fault of its own sample.
            Some(substituted) => substituted.attempt = attempt,
            None => bad.push(BadRow {
                row,
                fault,
                attempt,
            }),
        }
    }
    bad.sort_by_key(|bad| bad.row);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{FaultKind, SampleFault};

    #[test]
    fn verdicts_become_bad_rows_in_order() {
        let fault = |why: &str| SampleFault::new(FaultKind::Truncated, why);
        let of = |row, attempt| BadRow {
            row,
            fault: fault("its own reason"),
            attempt,
        };
        let verdict = |row, attempt| CpuVerdict {
            row,
            fault: fault("found later"),
            attempt,
        };
        let mut bad = vec![of(1, None), of(4, Some(2)), of(9, Some(1))];
        add_verdicts(&mut bad, vec![verdict(2, Some(1)), verdict(4, None)]);
        let seen: Vec<_> = bad
            .iter()
            .map(|b| (b.row, b.attempt, b.fault.reason.as_str()))
            .collect();
        let own = "its own reason";
        assert_eq!(
            seen,
            [
                (1, None, own),
                (2, Some(1), "found later"),
                (4, None, own),
                (9, Some(1), own)
            ]
        );
    }
}

//! Batches of which engines make some rows: opened before workers have filled them, closed
//! when they have, done when the engines have made theirs.
//!
//! In the consumer. A picture that engines refuse is a failed row of its batch.

use std::time::Duration;

use crate::cut::crop::{CropHeader, Takes};
use crate::device::cuda::{EngineThread, Target};
use crate::device::frames::{Culprits, Made, Picture};
use crate::device::launch::{ELSEWHERE, KernelRow, MASKED};
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::pool::filled::{BadRow, Filled};
use crate::pool::place::Place;
use crate::recipe::{CropRoom, CropRule};

/// The engines.
#[derive(Debug)]
pub(crate) struct InEngines {
    pub(crate) thread: EngineThread,
    /// Width and height of the largest picture.
    pub(crate) most: (u32, u32),
}

/// A batch whose files engines decode as they come.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) place: Place,
    pub(crate) target: Target,
}

/// A batch that is filled, and that engines are at.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) place: Place,
    pub(crate) bad: Vec<BadRow>,
    /// Those of the files.
    pub(crate) rows: Vec<u32>,
}

/// Whether engines have done a batch.
#[derive(Debug)]
pub(crate) enum End {
    /// Where it stands, and the rows that gave nothing.
    Done(Place, Vec<BadRow>),
    NotYet(Begun),
}

/// What is made of a batch, and by whom.
#[derive(Debug, Default)]
pub(crate) struct Split {
    /// All rows, for the kernel that reads slots.
    pub(crate) rows: Vec<KernelRow>,
    /// Those that engines make.
    pub(crate) files: Vec<u32>,
}

/// What stands in a row.
#[derive(Debug)]
pub(crate) enum InRow {
    Pixels(KernelRow),
    File(Picture),
}

impl InEngines {
    /// Waits at most `most` for the oldest batch that was closed.
    ///
    /// # Errors
    /// Engines that fail, or hang; other rows than who closed the batch has found.
    pub(crate) fn end(&mut self, batch: Begun, most: Duration) -> Result<End> {
        let Some(Made { rows, culprits }) = self.thread.next_done(most)? else {
            return Ok(End::NotYet(batch));
        };
        let Begun {
            place,
            mut bad,
            rows: due,
        } = batch;
        if rows != due {
            let other = |row: &&u32| !rows.contains(row) || !due.contains(row);
            let row = rows.iter().chain(&due).find(other).copied();
            let why = "engines and the kernel have seen different files there";
            // No batch follows it: what was begun of this one is still there.
            return Err(self.thread.fail(destroyed(row.unwrap_or(0), why)));
        }
        add(&mut bad, culprits);
        Ok(End::Done(place, bad))
    }
}

/// Which rows of a batch are the engines'. `size`: height and width of its rows.
///
/// # Errors
/// A row that no worker in its senses writes.
pub(crate) fn split(filled: &Filled, rule: CropRule, size: (u32, u32)) -> Result<Split> {
    let mut split = Split::default();
    let row_bytes = rule.room(size).row_bytes();
    let bytes = filled.rows.bytes();
    for row in 0..filled.place.rows {
        let failed = |bad: &BadRow| bad.row == row && bad.attempt.is_none();
        if row >= filled.place.filled || filled.bad.iter().any(failed) {
            split.rows.push(flagged(MASKED));
            continue;
        }
        let begin = row as usize * row_bytes;
        let own = bytes.get(begin..begin + row_bytes).unwrap_or(&[]);
        let read = read_row(own, (row, begin), rule, size);
        match read.map_err(|why| destroyed(row, &why))? {
            InRow::Pixels(kernel) => split.rows.push(kernel),
            InRow::File(_) => {
                split.rows.push(flagged(ELSEWHERE));
                split.files.push(row);
            }
        }
    }
    Ok(split)
}

/// What stands in a row, which begins there in its slot; its header is checked.
///
/// # Errors
/// What no worker in its senses writes.
pub(crate) fn read_row(
    own: &[u8],
    (row, begin): (u32, usize),
    rule: CropRule,
    size: (u32, u32),
) -> std::result::Result<InRow, String> {
    let room = rule.room(size);
    let header = CropHeader::read(own, room, size, Takes::Files)?;
    let kernel = kernel_row(&header, begin, room, rule)?;
    Ok(match header.coded {
        0 => InRow::Pixels(kernel),
        coded => InRow::File(Picture {
            row,
            at: begin + room.pixels_at(),
            len: coded as usize,
            size: header.picture.into(),
            corner: header.corner,
            kernel,
        }),
    })
}

fn flagged(flags: u32) -> KernelRow {
    KernelRow {
        flags,
        ..KernelRow::default()
    }
}

/// What the kernel is told of a row whose header was checked.
///
/// # Errors
/// A step that the recipe does not have.
pub(crate) fn kernel_row(
    header: &CropHeader,
    begin: usize,
    room: CropRoom,
    rule: CropRule,
) -> std::result::Result<KernelRow, String> {
    let row = KernelRow::of(header, begin, room);
    if row.takes_mean() && !rule.reads_twice() {
        return Err("it changes its contrast, and the recipe has no such step".into());
    }
    Ok(row)
}

/// A row that no worker in its senses writes.
pub(crate) fn destroyed(row: u32, why: &str) -> Error {
    Error::protocol(format!(
        "row {row} was destroyed in shared memory, by a decoder gone wrong: {why}; build a new \
         loader from the last state"
    ))
}

/// Puts the rows whose pictures no engine decodes among the bad ones.
fn add(bad: &mut Vec<BadRow>, culprits: Culprits) {
    for (row, why) in culprits {
        match bad.iter_mut().find(|bad| bad.row == row) {
            // A substitute: the row fails with its own sample's reason.
            Some(substituted) => substituted.attempt = None,
            None => bad.push(BadRow {
                row,
                fault: SampleFault::new(
                    FaultKind::Corrupt,
                    format!("the JPEG engines of the device refuse it: {why}"),
                ),
                attempt: None,
            }),
        }
    }
    bad.sort_by_key(|bad| bad.row);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn culprits_become_bad_rows_in_order() {
        let of = |row, attempt| BadRow {
            row,
            fault: SampleFault::new(FaultKind::Truncated, "its own reason"),
            attempt,
        };
        let mut bad = vec![of(1, None), of(4, Some(2)), of(9, Some(1))];
        let why = || Error::Device {
            what: "BAD_JPEG".into(),
        };
        add(&mut bad, vec![(2, why()), (4, why())]);
        let seen: Vec<_> = bad.iter().map(|b| (b.row, b.attempt)).collect();
        assert_eq!(seen, [(1, None), (2, None), (4, None), (9, Some(1))]);
        assert!(
            bad[1].fault.reason.contains("refuse it"),
            "{}",
            bad[1].fault
        );
        assert_eq!(bad[2].fault.reason, "its own reason");
    }
}

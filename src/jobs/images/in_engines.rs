//! Batches of which engines make some rows: from files in a slot to rows on the device.
//!
//! In the consumer. What workers wrote of a file is checked before engines see it. A picture
//! that they refuse is a failed row of its batch.

use std::time::Duration;

use crate::cut::crop::{CropHeader, Takes};
use crate::device::cuda::EngineThread;
use crate::device::frames::{Culprits, Picture};
use crate::device::launch::{ELSEWHERE, KernelRow, MASKED};
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::picture::jpeg::plain;
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

/// A batch that engines are at.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) place: Place,
    pub(crate) bad: Vec<BadRow>,
    /// Of the pictures.
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
    /// What engines make of it.
    pub(crate) pictures: Vec<Picture>,
}

impl InEngines {
    /// Which rows of a batch are the engines'. `size`: height and width of its rows.
    ///
    /// # Errors
    /// A row that no worker in its senses writes.
    pub(crate) fn split(&self, filled: &Filled, rule: CropRule, size: (u32, u32)) -> Result<Split> {
        let mut split = Split::default();
        let room = rule.room(size);
        let bytes = filled.rows.bytes();
        for row in 0..filled.place.rows {
            let n = row as usize;
            let failed = |bad: &BadRow| bad.row == row && bad.attempt.is_none();
            if row >= filled.place.filled || filled.bad.iter().any(failed) {
                split.rows.push(flagged(MASKED));
                continue;
            }
            let begin = n * room.row_bytes();
            let own = bytes.get(begin..begin + room.row_bytes()).unwrap_or(&[]);
            let read = CropHeader::read(own, room, size, Takes::Files);
            let header = read.map_err(|why| destroyed(n, &why))?;
            let kernel = kernel_row(&header, begin, room, rule).map_err(|e| destroyed(n, &e))?;
            if header.coded == 0 {
                split.rows.push(kernel);
                continue;
            }
            let len = header.coded as usize;
            // Its length was checked with the header.
            let file = own
                .get(room.pixels_at()..room.pixels_at() + len)
                .unwrap_or(&[]);
            let [width, height] = header.picture;
            if plain::check(file, self.most) != Ok((width, height)) {
                let why = format!("its file is no plain JPEG of {width} x {height} pixels");
                return Err(destroyed(n, &why));
            }
            split.rows.push(flagged(ELSEWHERE));
            split.pictures.push(Picture {
                row: n,
                at: begin + room.pixels_at(),
                len,
                size: (width, height),
                corner: header.corner,
                kernel,
            });
        }
        Ok(split)
    }

    /// Waits at most `most` for the oldest batch that was begun.
    ///
    /// # Errors
    /// Engines that fail, or hang.
    pub(crate) fn end(&mut self, batch: Begun, most: Duration) -> Result<End> {
        let Some(culprits) = self.thread.next_done(most)? else {
            return Ok(End::NotYet(batch));
        };
        let Begun {
            place,
            mut bad,
            rows,
        } = batch;
        add(&mut bad, &rows, culprits);
        Ok(End::Done(place, bad))
    }
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
pub(crate) fn destroyed(row: usize, why: &str) -> Error {
    Error::protocol(format!(
        "row {row} was destroyed in shared memory, by a decoder gone wrong: {why}; build a new \
         loader from the last state"
    ))
}

/// Puts the pictures that no engine decodes among the bad rows. `rows`: those of the
/// pictures.
fn add(bad: &mut Vec<BadRow>, rows: &[u32], culprits: Culprits) {
    for (at, why) in culprits {
        let Some(&row) = rows.get(at) else {
            continue;
        };
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
        add(
            &mut bad,
            &[0, 2, 4, 7],
            vec![(1, why()), (2, why()), (9, why())],
        );
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

//! Batches whose rows engines decode: from files in a slot to frames on the device.
//!
//! In the consumer. What workers wrote of a file is checked before engines see it. A picture
//! that they refuse is a failed row of its batch.

use std::sync::Arc;
use std::time::Duration;

use crate::cut::crop::{CropHeader, Takes};
use crate::device::cuda::EngineThread;
use crate::device::frames::{Arena, Culprits, Frame, Picture};
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::picture::jpeg::plain;
use crate::pool::filled::{BadRow, Filled, Rows};
use crate::pool::place::Place;
use crate::pool::ring::slots::HeldSlot;
use crate::recipe::CropRule;

/// The engines, and the frames that they decode to.
#[derive(Debug)]
pub(crate) struct InEngines {
    pub(crate) thread: EngineThread,
    arena: Arena,
    rule: CropRule,
    /// Width and height of the largest picture.
    most: (u32, u32),
    /// Batches that were begun and are not put on the device.
    begun: usize,
}

/// A batch that engines are at.
#[derive(Debug)]
pub(crate) struct Begun {
    place: Place,
    slot: Arc<HeldSlot>,
    bad: Vec<BadRow>,
    /// Of the pictures.
    rows: Vec<u32>,
    frames: Vec<Option<Frame>>,
}

/// Whether engines have begun on a batch.
#[derive(Debug)]
pub(crate) enum Begin {
    Begun(Begun),
    /// The kernel still reads the frames of earlier batches.
    NoRoom(Filled),
}

/// Whether engines have done a batch.
#[derive(Debug)]
pub(crate) enum End {
    /// The batch, and the frames of its rows.
    Done(Filled, Vec<Option<Frame>>),
    NotYet(Begun),
}

impl InEngines {
    /// Engines that take pictures up to `most` wide and high, into an arena of so many bytes.
    pub(crate) fn new(
        thread: EngineThread,
        rule: CropRule,
        most: (u32, u32),
        arena: usize,
    ) -> Self {
        Self {
            thread,
            arena: Arena::new(arena),
            rule,
            most,
            begun: 0,
        }
    }

    /// Hands the files of a batch to the engines. `size`: height and width of its rows.
    ///
    /// # Errors
    /// Engines that fail; a row that no worker in its senses writes.
    pub(crate) fn begin(&mut self, filled: Filled, size: (u32, u32)) -> Result<Begin> {
        let (rows, mut pictures) = self.pictures(&filled, size)?;
        let sizes: Vec<_> = pictures.iter().map(|p| p.size).collect();
        let Some(given) = self.arena.take(&sizes) else {
            return Ok(Begin::NoRoom(filled));
        };
        let Filled {
            place,
            rows: held,
            bad,
        } = filled;
        let Rows::Slot(slot) = held else {
            return Err(Error::Device {
                what: "a batch that lies in no slot of the ring".into(),
            });
        };
        let slot = Arc::new(slot);
        let mut frames = vec![None; place.rows as usize];
        for ((picture, row), frame) in pictures.iter_mut().zip(&rows).zip(given) {
            picture.frame = frame;
            if let Some(to) = frames.get_mut(*row as usize) {
                *to = Some(frame);
            }
        }
        self.begun += 1;
        self.thread.submit(slot.clone(), pictures)?;
        Ok(Begin::Begun(Begun {
            place,
            slot,
            bad,
            rows,
            frames,
        }))
    }

    /// The files of a batch, and their rows.
    fn pictures(&self, filled: &Filled, size: (u32, u32)) -> Result<(Vec<u32>, Vec<Picture>)> {
        let (mut rows, mut pictures) = (Vec::new(), Vec::new());
        let room = self.rule.room(size);
        let bytes = filled.rows.bytes();
        for row in 0..filled.place.filled {
            if filled
                .bad
                .iter()
                .any(|bad| bad.row == row && bad.attempt.is_none())
            {
                continue;
            }
            let n = row as usize;
            let begin = n * room.row_bytes();
            let own = bytes.get(begin..begin + room.row_bytes()).unwrap_or(&[]);
            let header = CropHeader::read(own, room, size, Takes::Files);
            let header = header.map_err(|why| destroyed(n, &why))?;
            if header.coded == 0 {
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
            rows.push(row);
            pictures.push(Picture {
                at: begin + room.pixels_at(),
                len,
                size: (width, height),
                frame: Frame::default(),
            });
        }
        Ok((rows, pictures))
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
            slot,
            mut bad,
            rows,
            frames,
        } = batch;
        add(&mut bad, &rows, culprits);
        let slot = Arc::try_unwrap(slot).map_err(|_| Error::Device {
            what: "the engines still have a batch that they have reported".into(),
        })?;
        let rows = Rows::Slot(slot);
        Ok(End::Done(Filled { place, rows, bad }, frames))
    }

    /// The batch that was done last is on the device.
    pub(crate) fn put(&mut self) {
        self.begun = self.begun.saturating_sub(1);
    }

    /// Gives back all frames but those that the kernel may read, of so many batches, and
    /// those of batches that were begun.
    pub(crate) fn keep(&mut self, under_way: usize) {
        while self.arena.batches() > under_way + self.begun {
            self.arena.give_back();
        }
    }

    /// Waits for batches that nobody wants, all that were begun, and lets them go.
    pub(crate) fn cancel(&mut self, batches: impl Iterator<Item = Begun>) {
        for batch in batches {
            // Of engines that fail nothing is used any more.
            let _ = self.thread.next_done(Duration::MAX);
            drop(batch);
        }
        for _ in 0..std::mem::take(&mut self.begun) {
            self.arena.give_back_newest();
        }
    }
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

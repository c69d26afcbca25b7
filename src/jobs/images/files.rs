//! A batch that workers are filling, for engines: its files, row by row.
//!
//! In the consumer, in the engines' thread. What workers wrote of a file is checked before
//! engines see it. A row that no worker in its senses writes is none of theirs: who takes the
//! batch finds it too, and ends the run.

use std::ops::Range;

use crate::device::frames::{Files, Look, Picture};
use crate::jobs::images::in_engines::{InRow, read_row};
use crate::picture::jpeg::plain;
use crate::pool::place::Place;
use crate::pool::ring::slots::WatchedSlot;
use crate::recipe::CropRule;

/// See the module.
#[derive(Debug)]
pub(crate) struct BatchFiles {
    pub(crate) slot: WatchedSlot,
    pub(crate) place: Place,
    /// Attempts behind a row's first.
    pub(crate) tries: u32,
    pub(crate) rule: CropRule,
    /// Height and width of its rows.
    pub(crate) size: (u32, u32),
    /// Width and height of the largest picture.
    pub(crate) most: (u32, u32),
}

impl BatchFiles {
    /// Where a row lies: as [`crate::jobs::images::packing`] places rows of crops.
    fn bytes_of(&self, row: u32) -> Range<usize> {
        let bytes = self.rule.room(self.size).row_bytes();
        row as usize * bytes..(row as usize + 1) * bytes
    }

    fn picture(&self, row: u32, own: &[u8]) -> Option<Picture> {
        let begin = self.bytes_of(row).start;
        let InRow::File(picture) = read_row(own, (row, begin), self.rule, self.size).ok()? else {
            return None;
        };
        let at = picture.at - begin;
        let file = own.get(at..at + picture.len)?;
        (plain::check(file, self.most) == Ok(picture.size)).then_some(picture)
    }
}

impl Files for BatchFiles {
    fn rows(&self) -> u32 {
        self.place.rows
    }

    fn look(&self, row: u32) -> Look {
        if row >= self.place.filled {
            return Look::NoPicture;
        }
        if !self.slot.is_final(row) {
            return Look::NotYet;
        }
        // Failed, or destroyed.
        let Some(Some(_)) = self.slot.end(row, self.tries) else {
            return Look::NoPicture;
        };
        // SAFETY: `is_final` has shown that the row is, and these bytes are its own.
        let own = unsafe { self.slot.row(self.bytes_of(row)) };
        let picture = own.and_then(|own| self.picture(row, own));
        picture.map_or(Look::NoPicture, Look::Picture)
    }

    fn file(&self, picture: &Picture) -> &[u8] {
        let own = self.bytes_of(picture.row);
        let file = picture.bytes();
        if !self.slot.is_final(picture.row) || file.start < own.start || file.end > own.end {
            return &[];
        }
        // SAFETY: `is_final` has shown that the row is, and these bytes are of it.
        unsafe { self.slot.row(file) }.unwrap_or(&[])
    }

    fn memory(&self) -> (*const u8, usize) {
        self.slot.memory()
    }
}

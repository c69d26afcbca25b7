//! The bytes of a file, and the markers in them, as libjpeg-turbo reads them: nothing that it
//! can step over is an error (`jdatasrc-tj.c`, and the readers of markers in `jdmarker.c`).
//!
//! After the last byte come end-of-image markers without end, each with a warning.

/// What a warning is about, as far as it decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeWarning {
    /// "Premature end of JPEG file".
    EndOfFile,
    /// All others: damage that libjpeg-turbo decodes on after.
    Damage,
}

/// A place in a file.
#[derive(Debug)]
pub(super) struct ByteSource<'a> {
    bytes: &'a [u8],
    /// May lie behind the end.
    pub(super) at: usize,
    /// The marker that was met and is not dealt with yet; 0 = none. Coded data end there.
    pub(super) marker: u8,
    /// The number of the restart marker that is due, 0 to 7.
    pub(super) next_restart: u8,
    /// Whether bytes were dropped since the last marker.
    pub(super) dropped: bool,
    /// libjpeg-turbo reports the first one alone.
    pub(super) first_warning: Option<DecodeWarning>,
    /// Where the first odd stuffing after the last search begins; behind the file if there is none.
    odd_stuffing: Option<usize>,
}

const END: u8 = 0xD9;

impl<'a> ByteSource<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            marker: 0,
            next_restart: 0,
            dropped: false,
            first_warning: None,
            odd_stuffing: None,
        }
    }

    #[cold]
    pub(super) fn warn(&mut self, warning: DecodeWarning) {
        self.first_warning.get_or_insert(warning);
    }

    /// Bytes up to the end of the file.
    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> u8 {
        let byte = match self.bytes.get(self.at) {
            Some(&byte) => byte,
            None if (self.at - self.bytes.len()).is_multiple_of(2) => {
                self.warn(DecodeWarning::EndOfFile);
                0xFF
            }
            None => END,
        };
        self.at += 1;
        byte
    }

    /// A number of two bytes.
    pub(super) fn word(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    /// The next eight bytes as a number, the first on top, when none of them is 0xff.
    #[inline(always)]
    pub(super) fn clean(&self) -> Option<u64> {
        const LOW: u64 = 0x0101_0101_0101_0101;
        let bytes = self.bytes.get(self.at..)?.first_chunk::<8>()?;
        let number = u64::from_be_bytes(*bytes);
        // A byte of 0xff is zero in the complement, and borrows from above.
        let zeros = (!number).wrapping_sub(LOW) & number & (LOW << 7);
        (zeros == 0).then_some(number)
    }

    /// The next byte of coded data; none at a marker, which is then `marker`.
    pub(super) fn coded_byte(&mut self) -> Option<u8> {
        let byte = self.byte();
        if byte != 0xFF {
            return Some(byte);
        }
        let mut next = self.byte();
        while next == 0xFF {
            next = self.byte();
        }
        if next == 0 {
            return Some(byte);
        }
        self.marker = next;
        None
    }

    /// Whether several 0xff with a 0 behind stand somewhere in the rest of the file. All calls
    /// together search the file once: a file may have many scans.
    pub(super) fn has_odd_stuffing(&mut self) -> bool {
        let end = self.bytes.len();
        let place = match self.odd_stuffing {
            Some(place) if place >= self.at => place,
            _ => {
                let mut triples = self.bytes.get(self.at..).unwrap_or_default().windows(3);
                let found = triples.position(|triple| triple == [0xFF, 0xFF, 0]);
                found.map_or(end, |ahead| self.at + ahead)
            }
        };
        self.odd_stuffing = Some(place);
        place < end
    }

    /// A byte ahead, without taking it, inside of the file.
    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// Steps over so many bytes.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        if self.at > self.bytes.len() {
            self.warn(DecodeWarning::EndOfFile);
        }
    }

    /// Finds the next marker, which is then `marker`. What stands in front is dropped.
    pub(super) fn next_marker(&mut self) {
        loop {
            while self.byte() != 0xFF {
                self.dropped = true;
            }
            let mut byte = self.byte();
            while byte == 0xFF {
                byte = self.byte();
            }
            if byte != 0 {
                self.marker = byte;
                break;
            }
            self.dropped = true;
        }
        if std::mem::take(&mut self.dropped) {
            self.warn(DecodeWarning::Damage);
        }
    }

    /// Steps over the restart marker that is due, or goes on as well as can be
    /// (`read_restart_marker`, `jpeg_resync_to_restart`). Where `marker` is set afterwards, the
    /// data up to the next restart are lost.
    pub(super) fn restart(&mut self) {
        if self.marker == 0 {
            self.next_marker();
        }
        let due = self.next_restart;
        self.next_restart = (due + 1) & 7;
        if self.marker == 0xD0 | due {
            self.marker = 0;
            return;
        }
        self.warn(DecodeWarning::Damage);
        loop {
            let ahead = self.marker.wrapping_sub(0xD0).wrapping_sub(due) & 7;
            match (self.marker, ahead) {
                // No marker that there is, or a restart marker that was passed: further on.
                (..0xC0, _) | (0xD0..=0xD7, 6 | 7) => self.next_marker(),
                // The one that is due, or one far from it: as if it were not there.
                (0xD0..=0xD7, 0 | 3..=5) => {
                    self.marker = 0;
                    return;
                }
                // One of the next two, or the end of the scan: what is between is lost.
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_stuffing_is_found_from_each_place() {
        let bytes = b"\xff\0a\xff\xff\0\xff\xff\xff\0b\xff\xff";
        let mut source = ByteSource::new(bytes);
        for at in 0..=bytes.len() + 1 {
            source.at = at;
            // The last one begins at 7.
            assert_eq!(source.has_odd_stuffing(), at <= 7, "{at}");
        }
    }
}

//! The bytes of a file and the markers in it, as libjpeg-turbo reads them. Bytes that it can skip
//! are no error (`jdatasrc-tj.c`, and the readers of markers in `jdmarker.c`).
//!
//! After the last byte, end-of-image markers follow without end, each with a warning.

/// The kind of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeWarning {
    /// "Premature end of JPEG file".
    EndOfFile,
    /// All others: damage after which libjpeg-turbo continues.
    Damage,
}

/// A position in a file.
#[derive(Debug)]
pub(super) struct ByteSource<'a> {
    bytes: &'a [u8],
    /// May exceed the length of the file.
    pub(super) at: usize,
    /// The marker that was found and is not handled yet; 0 = none. Coded data end there.
    pub(super) marker: u8,
    /// Number of the restart marker that is due, 0 to 7.
    pub(super) next_restart: u8,
    /// Whether bytes were skipped since the last marker.
    pub(super) dropped: bool,
    /// libjpeg-turbo reports only the first warning.
    pub(super) first_warning: Option<DecodeWarning>,
    /// Start of the first odd stuffing that the last search found; the file's length if none.
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

    /// Bytes until the end of the file.
    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

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

    /// A big-endian number of two bytes.
    pub(super) fn word(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    /// The next eight bytes as a big-endian number, if none of them is 0xff.
    #[inline(always)]
    pub(super) fn clean(&self) -> Option<u64> {
        const LOW: u64 = 0x0101_0101_0101_0101;
        let bytes = self.bytes.get(self.at..)?.first_chunk::<8>()?;
        let number = u64::from_be_bytes(*bytes);
        // A 0xff byte is zero in the complement, so the subtraction sets its top bit.
        let zeros = (!number).wrapping_sub(LOW) & number & (LOW << 7);
        (zeros == 0).then_some(number)
    }

    /// The next byte of coded data. `None` at a marker, which `marker` then holds.
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

    /// Whether several 0xff before a 0 occur in the rest of the file. All calls together search the
    /// file once, because a file may have many scans.
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

    /// The byte `ahead` bytes further on, if the file has it. The position stays.
    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// Skips bytes.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        if self.at > self.bytes.len() {
            self.warn(DecodeWarning::EndOfFile);
        }
    }

    /// Finds the next marker, and stores it in `marker`. Skips the bytes before it.
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

    /// Skips the restart marker that is due, or resynchronises (`read_restart_marker`,
    /// `jpeg_resync_to_restart`). If `marker` is set afterwards, the data up to the next restart
    /// are lost.
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
                // Not a valid marker, or a restart marker of the past: search further.
                (..0xC0, _) | (0xD0..=0xD7, 6 | 7) => self.next_marker(),
                // The one that is due, or one far from it: discard it and continue.
                (0xD0..=0xD7, 0 | 3..=5) => {
                    self.marker = 0;
                    return;
                }
                // One of the next two, or the end of the scan: the data before it are lost.
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
            // The last odd stuffing begins at 7.
            assert_eq!(source.has_odd_stuffing(), at <= 7, "{at}");
        }
    }
}

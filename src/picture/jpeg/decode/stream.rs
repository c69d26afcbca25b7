//! The coded data without stuffed bytes and markers. One chunk at a time is copied to the buffer
//! from which bits are read (ITU-T T.81, B.1.1.5 and F.2.2.5).

use super::bits::{BitPosition, DATA, SLACK, UnstuffedData};
use super::kernels::DecodeKernels;
use super::request::DecodeRefusal;

/// Bytes that are unstuffed at a time.
const CHUNK: usize = 4 << 10;

/// More bytes than any MCU takes: 10 blocks of 64 symbols of 31 bits.
const MOST_OF_MCU: usize = 3 << 10;

/// The coded data of a file, and their unstuffed part.
pub(super) struct CodedStream<'a> {
    bytes: &'a [u8],
    /// The next byte to unstuff.
    at: usize,
    pub(super) data: &'a mut UnstuffedData,
    /// End of the unstuffed data.
    end: usize,
    /// The marker that ends the data, or 0 for the end of the file; `None` while there is more.
    marker: Option<u8>,
    /// A position past this needs [`Self::more`].
    pub(super) limit: usize,
    /// Number of restart markers so far.
    restarts: u8,
}

impl<'a> CodedStream<'a> {
    /// The stream of the coded data at `at`, and its first position.
    pub(super) fn new(
        kernels: impl DecodeKernels,
        bytes: &'a [u8],
        at: usize,
        data: &'a mut UnstuffedData,
    ) -> (Self, BitPosition) {
        let mut stream = Self {
            bytes,
            at,
            data,
            end: 0,
            marker: None,
            limit: 0,
            restarts: 0,
        };
        stream.unstuff(kernels);
        let bits = BitPosition::new(stream.data);
        (stream, bits)
    }

    /// Unstuffs another chunk after the remaining data.
    ///
    /// # Errors
    /// `Damaged` if bits were read past the end of the data.
    #[cold]
    #[inline(never)]
    pub(super) fn more(
        &mut self,
        kernels: impl DecodeKernels,
        mut bits: BitPosition,
    ) -> Result<BitPosition, DecodeRefusal> {
        if self.marker.is_some() {
            self.check(bits)?;
            return Ok(bits);
        }
        // The counted bits are in up to eight bytes before the position.
        let from = bits.at.saturating_sub(8).min(self.end);
        self.data.copy_within(from..self.end, 0);
        self.end -= from;
        bits.at -= from;
        self.unstuff(kernels);
        Ok(bits)
    }

    /// Checks that all bits up to here were data.
    pub(super) fn check(&self, bits: BitPosition) -> Result<(), DecodeRefusal> {
        match self.marker.is_none() || bits.position() <= 8 * self.end {
            true => Ok(()),
            false => Err(DecodeRefusal::Damaged),
        }
    }

    /// Skips the restart marker, which must be due exactly here.
    pub(super) fn restart(
        &mut self,
        kernels: impl DecodeKernels,
        bits: BitPosition,
    ) -> Result<BitPosition, DecodeRefusal> {
        let left = (8 * self.end).checked_sub(bits.position());
        let due = 0xD0 | self.restarts & 7;
        if self.marker != Some(due) || left.is_none_or(|left| left >= 8) {
            return Err(DecodeRefusal::Damaged);
        }
        self.restarts = self.restarts.wrapping_add(1);
        self.marker = None;
        self.end = 0;
        self.unstuff(kernels);
        Ok(BitPosition::new(self.data))
    }

    fn unstuff(&mut self, kernels: impl DecodeKernels) {
        let stop = (self.end + CHUNK).min(DATA - 64);
        while self.end < stop && self.marker.is_none() {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let to = self.data.get_mut(self.end..stop + 32).unwrap_or_default();
            let mut clean = kernels.copy_clean(rest, to);
            if clean == 0 {
                // Near the end of the file, or at a byte of 0xff.
                let bytes = rest.iter().zip(to).take_while(|(byte, _)| **byte != 0xFF);
                clean = bytes.map(|(from, to)| *to = *from).count();
            }
            let next = rest.get(clean).copied();
            self.at += clean;
            self.end += clean;
            if next.is_none_or(|next| next == 0xFF) {
                self.escape();
            }
        }
        self.limit = match self.marker {
            Some(_) => self.end,
            None => self.end - MOST_OF_MCU,
        };
        if self.marker.is_some() {
            self.data[self.end..self.end + SLACK].fill(0);
        }
    }

    /// Handles a stuffed byte or a marker at a byte of 0xff, or the end of the file.
    fn escape(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
        self.at += fill;
        match rest.get(fill) {
            // With more than one 0xff, libjpeg-turbo first takes it for a marker, then decodes
            // again and mixes both results. Here the data end.
            Some(0) if fill > 1 => self.marker = Some(0),
            Some(0) => {
                self.data[self.end] = 0xFF;
                self.end += 1;
                self.at += 1;
            }
            Some(&marker) => {
                self.at += 1;
                self.marker = Some(marker);
            }
            None => self.marker = Some(0),
        }
    }
}

//! Bytes of an Arrow file: read where they lie, or parts of buffers that are unpacked.
//!
//! Runs in the consumer, on untrusted bytes. Memory: a few pieces of the file, and the buffers that
//! were unpacked last ([`KeptBuffers`]).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::data::arrow::ipc_file::ArrowFile;
use crate::data::columns::kept_buffers::KeptBuffers;
use crate::data::packed_page::{PackedPage, read_page};
use crate::error::SampleFault;

/// Bytes per read, where values are read one after the other.
const WINDOW: u64 = 64 << 10;
/// Windows that are kept: a column has a few buffers.
const WINDOWS: usize = 8;
/// The same for columns with others inside of them.
const ROW_WINDOWS: usize = 48;
/// Most bytes of one value.
const MOST_VALUE: u64 = 1 << 30;
/// Most bytes of a buffer that is unpacked here, packed and unpacked.
const MOST_BUFFER: u64 = 64 << 20;

/// Where a value begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValuePlace {
    /// The buffer that it is a part of, if that is packed.
    pub(crate) page: Option<PackedPage>,
    /// An offset in the file, or in the unpacked buffer.
    pub(crate) at: u64,
}

impl ValuePlace {
    /// The byte of the file that an error names.
    pub(super) fn byte(self) -> u64 {
        self.page.map_or(self.at, |page| page.at)
    }

    pub(super) fn damaged(self) -> String {
        damaged(self.byte())
    }

    /// The place some bytes later. The caller knows that they are in the buffer.
    pub(super) fn after(self, bytes: u64) -> Self {
        Self {
            at: self.at + bytes,
            ..self
        }
    }
}

pub(super) fn damaged(at: u64) -> String {
    format!("is damaged: a value at byte {at} lies outside of its buffer: write it again")
}

/// Unpacked buffers of Arrow files.
pub(crate) type ArrowBuffers = KeptBuffers<Arc<Vec<u8>>>;

/// The buffer of a page, by the number of its file.
fn unpacked(
    kept: &ArrowBuffers,
    number: usize,
    file: &File,
    page: &PackedPage,
) -> Result<Arc<Vec<u8>>, String> {
    if !can_unpack(page) {
        return Err(format!(
            "has a compressed buffer of more than 64 MiB at byte {}: write it with smaller record \
             batches (pyarrow.feather.write_feather has chunksize), or without compression",
            page.at
        ));
    }
    kept.get((number, page.at), page.unpacked, || {
        let packed = read_page(file, page)
            .map_err(|e| format!("cannot be read at byte {}: {e}", page.at))?;
        let mut bytes = Vec::new();
        let unpacked = page.unpack(&packed, &mut bytes);
        let fault = |fault: SampleFault| format!("at byte {}: {}", page.at, fault.reason);
        Ok(unpacked.map(|()| Arc::new(bytes)).map_err(fault))
    })
}

/// Whether a buffer is within the limit of those that are unpacked here.
pub(super) fn can_unpack(page: &PackedPage) -> bool {
    page.packed.max(page.unpacked) <= MOST_BUFFER
}

/// Bytes of a file: for reading one after the other (in large pieces), or here and there.
pub(crate) struct ArrowBytes {
    file: Arc<File>,
    len: u64,
    piece: u64,
    most_windows: usize,
    /// The offset of each piece, and its bytes. The last one used is the last.
    windows: Vec<(u64, Vec<u8>)>,
    /// Unpacked buffers, and the number of this file there.
    kept: (Arc<ArrowBuffers>, usize),
    /// The unpacked buffer that was read last.
    buffer: Option<Arc<Vec<u8>>>,
}

impl ArrowBytes {
    /// For values that are read in their order.
    pub(crate) fn in_order(file: &ArrowFile) -> Self {
        Self {
            piece: WINDOW,
            ..Self::at_random(&file.file, file.len)
        }
    }

    /// For rows of several columns, which are read in their order.
    pub(crate) fn of_rows(file: &ArrowFile) -> Self {
        Self {
            most_windows: ROW_WINDOWS,
            ..Self::in_order(file)
        }
    }

    /// For values here and there. `end`: where the bytes of the Arrow file end.
    pub(crate) fn at_random(file: &Arc<File>, end: u64) -> Self {
        Self {
            file: file.clone(),
            len: end,
            piece: 0,
            most_windows: WINDOWS,
            windows: Vec::new(),
            kept: Default::default(),
            buffer: None,
        }
    }

    /// The same, with unpacked buffers that outlive it. `number`: that of the file among theirs.
    pub(crate) fn with_kept(mut self, kept: &Arc<ArrowBuffers>, number: usize) -> Self {
        self.kept = (kept.clone(), number);
        self
    }

    pub(super) fn read(&mut self, place: ValuePlace, bytes: u64) -> Result<&[u8], String> {
        let at = place.at;
        if let Some(page) = place.page {
            let ends = page.at.checked_add(page.packed);
            ends.filter(|end| *end <= self.len)
                .ok_or_else(|| place.damaged())?;
            if bytes == 0 {
                return Ok(&[]);
            }
            let (kept, number) = &self.kept;
            // If it is no longer kept, it makes room for the other one.
            self.buffer = None;
            let buffer = unpacked(kept, *number, &self.file, &page)?;
            let buffer = self.buffer.insert(buffer);
            let range = usize::try_from(at).ok().zip(usize::try_from(bytes).ok());
            let range = range.and_then(|(at, bytes)| Some(at..at.checked_add(bytes)?));
            let found = range.and_then(|range| buffer.get(range));
            return found.ok_or_else(|| place.damaged());
        }
        let end = at.checked_add(bytes).filter(|end| *end <= self.len);
        let end = end.ok_or_else(|| damaged(at))?;
        // A sparse file can claim any length without taking disk space.
        if bytes > MOST_VALUE {
            return Err(format!("has a value of more than 1 GiB at byte {at}"));
        }
        let holds =
            |window: &(u64, Vec<u8>)| window.0 <= at && end <= window.0 + window.1.len() as u64;
        match self.windows.iter().position(holds) {
            Some(found) => self.windows[found..].rotate_left(1),
            None => {
                let most = self.piece.max(bytes).min(self.len - at);
                let mut piece = match self.windows.len() < self.most_windows {
                    true => Vec::new(),
                    false => self.windows.remove(0).1,
                };
                piece.resize(usize::try_from(most).map_err(|_| damaged(at))?, 0);
                let read = self.file.read_exact_at(&mut piece, at);
                read.map_err(|e| format!("cannot be read at byte {at}: {e}"))?;
                self.windows.push((at, piece));
            }
        }
        let (from, window) = &self.windows[self.windows.len() - 1];
        let start = (at - from) as usize;
        Ok(&window[start..start + bytes as usize])
    }

    pub(super) fn word<const N: usize>(&mut self, at: ValuePlace) -> Result<[u8; N], String> {
        let mut word = [0; N];
        word.copy_from_slice(self.read(at, N as u64)?);
        Ok(word)
    }
}

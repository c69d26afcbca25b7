//! The source of a decoder's bytes: memory or a file.
//!
//! Decoders are generic over their input, and each further type would compile all of them again. So
//! there is only this type.
//!
//! A header may make a decoder read without end: lines without an end, chunks of any length. So a
//! reader returns at most as many bytes as its [`ReadBudget`] allows, and then ends as a file does.
//! The limit is removed once the header is read. After an error of the system a reader also ends,
//! and stays at its end, because some decoders repeat a failed read forever.

use std::cell::Cell;
use std::io::{self, BufRead, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::rc::Rc;

use super::file_format::FileFormat;
use crate::error::{FaultKind, SampleFault};

/// A file that is read through a buffer.
pub(crate) trait PictureFile: BufRead + Seek {}

impl<F: BufRead + Seek> PictureFile for F {}

/// The number of bytes that a reader may still return. A clone shares the same budget: the code
/// that made the reader keeps one while a decoder owns the reader.
#[derive(Debug, Clone)]
pub(super) struct ReadBudget(Rc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    left: Cell<u64>,
    /// Why it ended before the file did.
    ended: Cell<Option<EarlyEnd>>,
}

#[derive(Debug, Clone, Copy)]
enum EarlyEnd {
    /// The decoder read more than the budget.
    Over,
    /// The system refused to read.
    Refused(ErrorKind, Option<i32>),
}

/// The remaining bytes of a budget without a limit.
const NO_LIMIT: u64 = u64::MAX;

impl ReadBudget {
    /// A budget of `bytes` bytes.
    pub(super) fn of(bytes: u64) -> Self {
        Self(Rc::new(BudgetState {
            left: Cell::new(bytes),
            ended: Cell::new(None),
        }))
    }

    /// The budget for the header of a file of this format.
    pub(super) fn for_header(format: FileFormat) -> Self {
        Self::of(format.info().max_header)
    }

    /// Removes the limit once the header has been read.
    pub(super) fn remove_limit(&self) {
        self.0.left.set(NO_LIMIT);
    }

    /// Returns the header's result, unless the reader ended before the file did. Then the decoder's
    /// result is meaningless, and the error is that early end.
    pub(super) fn check<T>(
        &self,
        format: FileFormat,
        found: Result<T, SampleFault>,
    ) -> Result<T, SampleFault> {
        match self.0.ended.get() {
            None => found,
            Some(EarlyEnd::Over) => Err(FaultKind::TooLarge.fault(format!(
                "{format}: its header is longer than {} bytes, the limit of this format: \
                     write it without metadata",
                format.info().max_header
            ))),
            Some(EarlyEnd::Refused(kind, code)) => Err(unreadable(
                code.map_or_else(|| kind.into(), io::Error::from_raw_os_error),
            )),
        }
    }

    fn has_ended(&self) -> bool {
        self.0.ended.get().is_some()
    }

    fn take(&self, bytes: usize) {
        let left = self.0.left.get();
        if left != NO_LIMIT {
            self.0.left.set(left.saturating_sub(bytes as u64));
        }
    }

    /// Records an error of the system. An interrupted call is not an error, and neither is the end
    /// of the file.
    fn note<T>(&self, done: io::Result<T>) -> io::Result<T> {
        if let Err(e) = &done
            && !matches!(
                e.kind(),
                ErrorKind::Interrupted | ErrorKind::UnexpectedEof | ErrorKind::InvalidInput
            )
        {
            let ended = EarlyEnd::Refused(e.kind(), e.raw_os_error());
            self.0.ended.set(Some(ended));
        }
        done
    }
}

pub(super) struct PictureReader<'a> {
    from: ReaderSource<'a>,
    window: ReadBudget,
    /// Bytes that replace the first bytes of the file.
    head: Vec<u8>,
}

enum ReaderSource<'a> {
    Memory(Cursor<&'a [u8]>),
    File(&'a mut dyn PictureFile),
}

impl<'a> PictureReader<'a> {
    pub(super) fn of(bytes: &'a [u8], window: &ReadBudget) -> Self {
        Self {
            from: ReaderSource::Memory(Cursor::new(bytes)),
            window: window.clone(),
            head: Vec::new(),
        }
    }

    pub(super) fn of_file(file: &'a mut dyn PictureFile, window: &ReadBudget) -> Self {
        Self {
            from: ReaderSource::File(file),
            window: window.clone(),
            head: Vec::new(),
        }
    }

    /// Replaces the first bytes of the file.
    pub(super) fn replace_head(&mut self, head: Vec<u8>) {
        self.head = head;
    }

    /// The reader's position in the replaced bytes; `None` after them.
    fn in_head(&mut self) -> io::Result<Option<usize>> {
        if self.head.is_empty() {
            return Ok(None);
        }
        let at = self.stream_position()?;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        Ok((at < self.head.len()).then_some(at))
    }

    /// How many of `wanted` bytes the budget allows; 0 at the end.
    fn allowed(&mut self, wanted: usize) -> io::Result<usize> {
        if self.window.has_ended() {
            return Ok(0);
        }
        let left = self.window.0.left.get();
        if left > 0 || wanted == 0 {
            return Ok(wanted.min(usize::try_from(left).unwrap_or(usize::MAX)));
        }
        // A file that ends exactly with its budget does not exceed it.
        let rest = match &mut self.from {
            ReaderSource::Memory(bytes) => bytes.fill_buf(),
            ReaderSource::File(file) => file.fill_buf(),
        };
        if !self.window.note(rest)?.is_empty() {
            self.window.0.ended.set(Some(EarlyEnd::Over));
        }
        Ok(0)
    }
}

impl Read for PictureReader<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let allowed = self.allowed(to.len())?;
        if allowed == 0 {
            return Ok(0);
        }
        let to = &mut to[..allowed];
        if let Some(at) = self.in_head()? {
            let read = to.len().min(self.head.len() - at);
            to[..read].copy_from_slice(&self.head[at..at + read]);
            self.consume(read);
            return Ok(read);
        }
        let read = match &mut self.from {
            ReaderSource::Memory(bytes) => bytes.read(to),
            ReaderSource::File(file) => file.read(to),
        };
        let read = self.window.note(read)?;
        self.window.take(read);
        Ok(read)
    }

    fn read_exact(&mut self, mut to: &mut [u8]) -> io::Result<()> {
        if self.in_head()?.is_none() && self.allowed(to.len())? == to.len() {
            let read = match &mut self.from {
                ReaderSource::Memory(bytes) => bytes.read_exact(to),
                ReaderSource::File(file) => file.read_exact(to),
            };
            self.window.note(read)?;
            self.window.take(to.len());
            return Ok(());
        }
        // The file may end before the budget does.
        while !to.is_empty() {
            match self.read(to) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => to = &mut to[read..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl BufRead for PictureReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let allowed = self.allowed(usize::MAX)?;
        if allowed == 0 {
            return Ok(&[]);
        }
        if let Some(at) = self.in_head()? {
            let head = &self.head[at..];
            return Ok(&head[..head.len().min(allowed)]);
        }
        let buffered = match &mut self.from {
            ReaderSource::Memory(bytes) => bytes.fill_buf(),
            ReaderSource::File(file) => file.fill_buf(),
        };
        let buffered = self.window.note(buffered)?;
        Ok(&buffered[..buffered.len().min(allowed)])
    }

    fn consume(&mut self, count: usize) {
        self.window.take(count);
        // The reader's own buffer need not hold them.
        if let Ok(Some(_)) = self.in_head() {
            let _ = self.seek_relative(count as i64);
            return;
        }
        match &mut self.from {
            ReaderSource::Memory(bytes) => bytes.consume(count),
            ReaderSource::File(file) => file.consume(count),
        }
    }
}

impl Seek for PictureReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match &mut self.from {
            ReaderSource::Memory(bytes) => bytes.seek(to),
            ReaderSource::File(file) => seek_within_buffer(*file, to),
        };
        self.window.note(at)
    }

    fn seek_relative(&mut self, by: i64) -> io::Result<()> {
        let done = match &mut self.from {
            ReaderSource::Memory(bytes) => bytes.seek_relative(by),
            ReaderSource::File(file) => file.seek_relative(by),
        };
        self.window.note(done)
    }
}

/// Seeks without losing the buffer. Every seek except a relative one discards it, and the next read
/// fills it again: 4 KiB for a chunk's 8.
fn seek_within_buffer(file: &mut dyn PictureFile, to: SeekFrom) -> io::Result<u64> {
    let by = match to {
        SeekFrom::Current(by) => by,
        SeekFrom::End(_) => return file.seek(to),
        SeekFrom::Start(to) => {
            let from = file.stream_position()?;
            match i64::try_from(i128::from(to) - i128::from(from)) {
                Ok(by) => by,
                Err(_) => return file.seek(SeekFrom::Start(to)),
            }
        }
    };
    file.seek_relative(by)?;
    file.stream_position()
}

/// The fault for a file that cannot be read to its end.
pub(super) fn unreadable(e: std::io::Error) -> SampleFault {
    let kind = match e.kind() {
        ErrorKind::UnexpectedEof => FaultKind::Truncated,
        _ => FaultKind::Unreadable,
    };
    SampleFault::new(kind, format!("cannot be read: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(window: &ReadBudget) -> bool {
        let found = window.check(FileFormat::Gif, Ok(()));
        found.is_err_and(|fault| fault.kind == FaultKind::TooLarge)
    }

    /// With both kinds of source, every way of reading ends.
    #[test]
    fn a_spent_window_is_an_end() {
        let bytes = [7; 10];
        for from_file in [false, true] {
            let window = ReadBudget::of(4);
            let mut file = io::BufReader::with_capacity(3, Cursor::new(bytes));
            let mut reader = if from_file {
                PictureReader::of_file(&mut file, &window)
            } else {
                PictureReader::of(&bytes, &window)
            };
            let mut to = [0; 3];
            reader.read_exact(&mut to).unwrap();
            assert_eq!(reader.fill_buf().unwrap().len().min(1), 1);
            assert!(!over(&window));
            let e = reader.read_exact(&mut to).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::UnexpectedEof);
            assert!(over(&window));
            assert_eq!(reader.read(&mut to).unwrap(), 0);
            assert_eq!(reader.fill_buf().unwrap(), b"");
            reader.rewind().unwrap();
            assert_eq!(reader.read(&mut to).unwrap(), 0, "it stays ended");
            let fault = window.check(FileFormat::Gif, Ok(())).unwrap_err();
            assert!(fault.reason.contains("GIF"), "{fault}");
            let most = FileFormat::Gif.info().max_header.to_string();
            assert!(fault.reason.contains(&most), "{fault}");
        }
    }

    #[test]
    fn a_head_is_read_in_the_place_of_the_first_bytes() {
        let bytes: Vec<u8> = (0..10).collect();
        for from_file in [false, true] {
            let window = ReadBudget::of(100);
            let mut file = io::BufReader::with_capacity(3, Cursor::new(&bytes));
            let mut reader = match from_file {
                true => PictureReader::of_file(&mut file, &window),
                false => PictureReader::of(&bytes, &window),
            };
            reader.replace_head(vec![20, 21, 22, 23]);
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            assert_eq!(all, [20, 21, 22, 23, 4, 5, 6, 7, 8, 9]);
            reader.seek(SeekFrom::Start(2)).unwrap();
            let mut four = [0; 4];
            reader.read_exact(&mut four).unwrap();
            assert_eq!(four, [22, 23, 4, 5]);
            reader.seek_relative(-3).unwrap();
            assert_eq!(reader.fill_buf().unwrap(), [23]);
            reader.consume(1);
            assert_eq!(reader.fill_buf().unwrap()[0], 4);
        }
    }

    #[test]
    fn a_file_that_ends_with_its_window_is_whole() {
        let window = ReadBudget::of(10);
        let mut all = Vec::new();
        PictureReader::of(&[7; 10], &window)
            .read_to_end(&mut all)
            .unwrap();
        assert_eq!(all.len(), 10);
        assert!(!over(&window));
        let window = ReadBudget::of(10);
        let cut = PictureReader::of(&[7; 9], &window).read_exact(&mut [0; 11]);
        assert_eq!(cut.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert!(!over(&window), "the file ends before its window");
    }

    #[test]
    fn an_opened_window_has_no_limit() {
        let window = ReadBudget::of(2);
        let bytes = [7; 10];
        let mut reader = PictureReader::of(&bytes, &window);
        reader.read_exact(&mut [0; 2]).unwrap();
        window.remove_limit();
        assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 8);
        assert!(!over(&window));
    }

    /// A decoder that skips errors within a comment of a PNM would read forever.
    #[test]
    fn a_file_that_cannot_be_read_ends_and_says_so() {
        struct Bad;
        impl Read for Bad {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(libc::EIO))
            }
        }
        impl Seek for Bad {
            fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
                Ok(0)
            }
        }
        let window = ReadBudget::of(10);
        let mut file = io::BufReader::new(Bad);
        let mut reader = PictureReader::of_file(&mut file, &window);
        assert!(reader.read(&mut [0; 2]).is_err());
        assert_eq!(reader.read(&mut [0; 2]).unwrap(), 0);
        let fault = window.check(FileFormat::Gif, Ok(())).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreadable);
        assert!(fault.reason.contains("os error 5"), "{fault}");
    }

    #[test]
    fn seeking_keeps_what_is_buffered() {
        struct Counted(Cursor<Vec<u8>>, Rc<Cell<u64>>);
        impl Read for Counted {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                self.1.set(self.1.get() + 1);
                self.0.read(to)
            }
        }
        impl Seek for Counted {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                self.0.seek(to)
            }
        }
        let reads = Rc::new(Cell::new(0));
        let inner = Counted(Cursor::new((0..200).collect()), reads.clone());
        let mut file = io::BufReader::with_capacity(100, inner);
        let window = ReadBudget::of(NO_LIMIT);
        let mut reader = PictureReader::of_file(&mut file, &window);
        for at in 0..20u8 {
            let to = match at % 3 {
                0 => SeekFrom::Start(u64::from(at) * 4),
                _ => SeekFrom::Current(3),
            };
            assert_eq!(reader.seek(to).unwrap(), u64::from(at) * 4);
            let mut byte = [0];
            reader.read_exact(&mut byte).unwrap();
            assert_eq!(byte[0], at * 4);
        }
        assert_eq!(reads.get(), 1);
        assert_eq!(reader.seek(SeekFrom::End(-1)).unwrap(), 199);
    }
}

//! The bytes of one sample: a file, a part of a shard, or a part of a packed page of a Parquet
//! file.
//!
//! Workers map at most one file and the last few shards. The consumer, with zero workers or for
//! images that a device flags, reads into a reused buffer, since the library installs no SIGBUS
//! handler there. Files are opened without blocking, and only regular files, so a FIFO or a device
//! file in a data set cannot block a worker.
//!
//! A sample in memory is read there. Raw pixels of an array are copied after a header of NumPy, so
//! decoders see a file.
//!
//! A packed page is unpacked for its first sample, and kept until a sample of another page is
//! opened. At most one page is kept. Of a broken page its fault is kept.

use std::ffi::CStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use memmap2::{Mmap, MmapOptions};

use crate::data::index::Index;
use crate::data::packed_page::{LastPage, PackedPage, read_page, slice_page};
use crate::error::{self, FaultKind, SampleFault};
use crate::jobs::open_shards::{AccessPattern, MappedShard, OpenShards};
use crate::jobs::sample::KEEP;
use crate::jobs::stages;
use crate::pool::job::JobProcess;
use crate::pool::worker::meter::StageMeter;
use crate::pool::worker::sigbus;
use crate::sys::regular_file::open_regular;

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputMode {
    Map,
    Read,
}

impl InputMode {
    /// Workers map: a file that shrinks may end one of them.
    pub(crate) fn of(runs_in: JobProcess) -> Self {
        match runs_in {
            JobProcess::Worker => Self::Map,
            JobProcess::Consumer => Self::Read,
        }
    }
}

/// Opens samples one after the other.
#[derive(Debug)]
pub(crate) struct SampleInput {
    mode: InputMode,
    /// Most bytes of a sample.
    max_bytes: u64,
    buffer: Vec<u8>,
    path: Vec<u8>,
    pattern: AccessPattern,
    /// Whether shards stay open.
    keeps_shards_open: bool,
    mapped: OpenShards<MappedShard>,
    read: OpenShards<File>,
    page: LastPage,
    /// The last image of raw pixels, as a file of NumPy.
    pixels: Vec<u8>,
}

/// The bytes of the open sample.
pub(crate) enum InputBytes<'a> {
    /// Of a file. Dropping this unmaps it.
    File(LiveMap<Mmap>),
    /// Of a shard, which stays mapped.
    Part(LiveMap<&'a [u8]>),
    Read(&'a [u8]),
}

/// A mapping, or a part of one, that the SIGBUS handler knows until this is dropped.
pub(crate) struct LiveMap<T>(T);

impl<T> Drop for LiveMap<T> {
    fn drop(&mut self) {
        sigbus::clear_live_map();
    }
}

impl std::ops::Deref for InputBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::File(map) => &map.0,
            Self::Part(part) => part.0,
            Self::Read(bytes) => bytes,
        }
    }
}

impl SampleInput {
    /// `pattern`: the order in which parts of shards will be read.
    pub(crate) fn new(mode: InputMode, max_bytes: u64, pattern: AccessPattern) -> Self {
        Self {
            keeps_shards_open: true,
            mode,
            max_bytes,
            buffer: Vec::new(),
            path: Vec::new(),
            pattern,
            mapped: OpenShards::new(),
            read: OpenShards::new(),
            page: LastPage::default(),
            pixels: Vec::new(),
        }
    }

    /// The same, but closes each shard after its sample: a deleted shard occupies space while a
    /// process has it open.
    pub(crate) fn without_open_shards(self) -> Self {
        Self {
            keeps_shards_open: false,
            ..self
        }
    }

    /// Opens sample `id`.
    pub(crate) fn open<'a>(
        &'a mut self,
        index: &'a Index,
        id: u64,
    ) -> Result<InputBytes<'a>, SampleFault> {
        self.open_metered(index, id, None)
    }

    /// The same. `meter` counts the time of unpacking apart from that of reading.
    pub(crate) fn open_metered<'a>(
        &'a mut self,
        index: &'a Index,
        id: u64,
        meter: Option<&mut StageMeter>,
    ) -> Result<InputBytes<'a>, SampleFault> {
        let shape = index.part(id).and_then(|part| index.pixels(part.shard));
        let Some(shape) = shape else {
            return self.open_stored(index, id, meter);
        };
        // `open_stored` borrows the other buffers.
        let mut file = std::mem::take(&mut self.pixels);
        let written = match self.open_stored(index, id, meter) {
            Ok(pixels) => shape.write_file(&pixels, cleared(&mut file)),
            Err(fault) => Err(fault),
        };
        self.pixels = file;
        written.map(|()| InputBytes::Read(&self.pixels))
    }

    /// Opens the bytes of sample `id` as they are stored.
    fn open_stored<'a>(
        &'a mut self,
        index: &'a Index,
        id: u64,
        meter: Option<&mut StageMeter>,
    ) -> Result<InputBytes<'a>, SampleFault> {
        if let Some(bytes) = index.bytes_in_memory(id) {
            check_length(|| "the image", bytes.len() as u64, self.max_bytes)?;
            return Ok(InputBytes::Read(bytes));
        }
        let (path, part) = index.locate(id, &mut self.path)?;
        let Some(range) = part else {
            return open_file(path, self.mode, self.max_bytes, &mut self.buffer);
        };
        // A table has no bytes for a null.
        let what = || match index.has_tars() {
            true => "the member",
            false => "the image",
        };
        check_length(what, range.end - range.start, self.max_bytes)?;
        let number = index.part(id).map_or(0, |part| part.shard);
        if let Some(page) = index.page(number) {
            let mode = self.mode;
            let unpacked = self.page.get(number, |out| {
                let packed = page.at..page.at + page.packed;
                let (file, len) = index.open_shard(number, path)?;
                if packed.end > len as u64 {
                    return Err(truncated_fault(&packed, len as u64));
                }
                let Some(meter) = meter else {
                    return unpack(mode, &file, &page, out);
                };
                meter.lap(stages::OPEN);
                let unpacked = unpack(mode, &file, &page, out);
                meter.lap(stages::UNPACK);
                unpacked
            })?;
            return slice_page(unpacked, &range).map(InputBytes::Read);
        }
        match self.mode {
            InputMode::Map if !self.keeps_shards_open => {
                let (file, len) = index.open_shard(number, path)?;
                if range.end > len as u64 {
                    return Err(truncated_fault(&range, len as u64));
                }
                live_map(&file, &range).map(InputBytes::File)
            }
            InputMode::Map => {
                let pattern = self.pattern;
                let shard = self.mapped.get(number, || {
                    let (file, len) = index.open_shard(number, path)?;
                    Ok(MappedShard::new(map(&file, &(0..len as u64))?, pattern))
                })?;
                let len = shard.map().len() as u64;
                let part = usize::try_from(range.start)
                    .ok()
                    .zip(usize::try_from(range.end).ok())
                    .map(|(start, end)| start..end)
                    .filter(|_| range.end <= len)
                    .ok_or_else(|| truncated_fault(&range, len))?;
                shard.will_need(&part);
                let map = shard.map();
                let bytes = &map[part];
                sigbus::set_live_map(map);
                Ok(InputBytes::Part(LiveMap(bytes)))
            }
            InputMode::Read => {
                let passing;
                let file: &File = match self.keeps_shards_open {
                    true => self
                        .read
                        .get(number, || Ok(index.open_shard(number, path)?.0))?,
                    false => {
                        passing = index.open_shard(number, path)?.0;
                        &passing
                    }
                };
                let buffer = cleared(&mut self.buffer);
                buffer.resize((range.end - range.start) as usize, 0);
                file.read_exact_at(buffer, range.start).map_err(|e| {
                    match (e.kind(), file.metadata()) {
                        (ErrorKind::UnexpectedEof, Ok(now)) => truncated_fault(&range, now.len()),
                        _ => unreadable(e),
                    }
                })?;
                Ok(InputBytes::Read(buffer))
            }
        }
    }
}

fn unpack(
    mode: InputMode,
    file: &File,
    page: &PackedPage,
    out: &mut Vec<u8>,
) -> Result<(), SampleFault> {
    let range = page.at..page.at + page.packed;
    match mode {
        InputMode::Map if page.packed > 0 => {
            let packed = live_map(file, &range)?;
            page.unpack(&packed.0, out)
        }
        InputMode::Map | InputMode::Read => {
            let packed = read_page(file, page).map_err(unreadable)?;
            page.unpack(&packed, out)
        }
    }
}

fn open_file<'a>(
    path: &CStr,
    mode: InputMode,
    max_bytes: u64,
    buffer: &'a mut Vec<u8>,
) -> Result<InputBytes<'a>, SampleFault> {
    let (fd, len) = open_regular(path)?;
    check_length(|| "the file", len as u64, max_bytes)?;
    let file = File::from(fd);
    match mode {
        InputMode::Map => live_map(&file, &(0..len as u64)).map(InputBytes::File),
        InputMode::Read => {
            let buffer = cleared(buffer);
            // `read_to_end` alone would double the buffer.
            buffer
                .try_reserve_exact(len)
                .map_err(|_| unreadable(ErrorKind::OutOfMemory.into()))?;
            // Only the length at opening, since the file may be growing.
            file.take(len as u64)
                .read_to_end(buffer)
                .map_err(unreadable)?;
            Ok(InputBytes::Read(buffer))
        }
    }
}

/// Empties a buffer, and frees it if it is large.
fn cleared(buffer: &mut Vec<u8>) -> &mut Vec<u8> {
    if buffer.capacity() > KEEP {
        *buffer = Vec::new();
    }
    buffer.clear();
    buffer
}

fn live_map(file: &File, range: &Range<u64>) -> Result<LiveMap<Mmap>, SampleFault> {
    let map = map(file, range)?;
    sigbus::set_live_map(&map);
    Ok(LiveMap(map))
}

fn map(file: &File, range: &Range<u64>) -> Result<Mmap, SampleFault> {
    let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    let mut options = MmapOptions::new();
    options.offset(range.start).len(len);
    // SAFETY: other processes may change the file while it is mapped. Changed bytes reach only the
    // decoders, which accept untrusted bytes. A truncated file raises SIGBUS, which `sigbus` turns
    // into a failed sample: `SampleInput::open` announces each mapping before it returns bytes of
    // it. No reference outlives the sample.
    unsafe { options.map(file) }.map_err(unreadable)
}

/// `what`: the name of the bytes in the text of a fault.
fn check_length(
    what: impl FnOnce() -> &'static str,
    len: u64,
    most: u64,
) -> Result<(), SampleFault> {
    if len == 0 {
        return Err(SampleFault::new(
            FaultKind::Truncated,
            format!("{} is empty", what()),
        ));
    }
    if len > most {
        return Err(SampleFault::new(
            FaultKind::TooLarge,
            format!(
                "{} has {}, over max_scratch of {}: raise max_scratch",
                what(),
                error::size_rounded_up(len),
                error::size_rounded_down(most)
            ),
        ));
    }
    Ok(())
}

fn truncated_fault(range: &Range<u64>, len: u64) -> SampleFault {
    SampleFault::new(
        FaultKind::Truncated,
        format!(
            "its shard has {len} bytes, and the member ends at {}",
            range.end
        ),
    )
}

fn unreadable(e: std::io::Error) -> SampleFault {
    SampleFault::new(FaultKind::Unreadable, format!("cannot be read: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::{
        ArrowFiles, Index, ItemLabel, ListLabels, ListOptions, MemoryItems, ParquetOptions,
    };
    use crate::picture::npy;
    use nix::sys::stat::Mode;

    #[test]
    fn both_modes_give_the_same_bytes_and_the_same_faults() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), b"hello").unwrap();
        std::fs::write(at("empty"), b"").unwrap();
        std::fs::write(at("large"), b"6 byte").unwrap();
        nix::unistd::mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let list = at("list");
        std::fs::write(&list, "a\nempty\nlarge\nfifo\nfolder\nabsent\n").unwrap();
        let options = ListOptions {
            labels: ListLabels::None,
            ..ListOptions::default()
        };
        let (index, _) = Index::list(&list, &options).unwrap();
        for mode in [InputMode::Map, InputMode::Read] {
            let mut input = SampleInput::new(mode, 5, AccessPattern::Shuffled);
            assert_eq!(&*input.open(&index, 0).unwrap(), b"hello");
            for (id, kind) in [
                (1, FaultKind::Truncated),
                (2, FaultKind::TooLarge),
                (3, FaultKind::NotRegular),
                (4, FaultKind::NotRegular),
                (5, FaultKind::Unreadable),
            ] {
                let fault = input.open(&index, id).err().unwrap();
                assert_eq!(fault.kind, kind, "{mode:?} {}", fault.reason);
            }
        }
    }

    #[test]
    fn samples_in_memory_are_read_there() {
        let mut items = MemoryItems::new().unwrap();
        items.push(b"hello", ItemLabel::None).unwrap();
        items.push(b"", ItemLabel::None).unwrap();
        items.push(b"6 byte", ItemLabel::None).unwrap();
        let index = Index::memory_items(items).unwrap();
        for mode in [InputMode::Map, InputMode::Read] {
            let mut input = SampleInput::new(mode, 5, AccessPattern::Shuffled);
            assert_eq!(&*input.open(&index, 0).unwrap(), b"hello");
            for (id, kind) in [(1, FaultKind::Truncated), (2, FaultKind::TooLarge)] {
                let fault = input.open(&index, id).err().unwrap();
                assert_eq!(fault.kind, kind, "{mode:?} {}", fault.reason);
            }
        }
    }

    #[test]
    fn raw_pixels_are_files_of_numpy_wherever_they_lie() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("two.npy");
        // One image of 2 x 2 x 3 bytes as a file of two images of 2 x 3.
        let mut bytes = npy::header((2, 2), 3).to_vec();
        let at = bytes.windows(9).position(|w| w == b"(2, 2, 3)").unwrap();
        bytes.extend(1..=12);
        std::fs::write(&file, &bytes).unwrap();
        // As N x H x W it looks like one image, so the array has an axis more.
        let e = Index::array_file(&file).unwrap_err().to_string();
        assert!(e.contains("looks like one image"), "{e}");
        bytes[at - 9..at + 15].copy_from_slice(b"'shape': (2, 1, 2, 3), }");
        std::fs::write(&file, &bytes).unwrap();
        let of_file = Index::array_file(&file).unwrap().0;
        let mut items = MemoryItems::new().unwrap();
        let pixels: Vec<u8> = (1..=12).collect();
        let labels = [ItemLabel::None, ItemLabel::None];
        items.push_pixels(&[2, 1, 2, 3], &pixels, labels).unwrap();
        let in_memory = Index::memory_items(items).unwrap();
        for index in [&of_file, &in_memory] {
            for mode in [InputMode::Map, InputMode::Read] {
                let mut input = SampleInput::new(mode, 1000, AccessPattern::Shuffled);
                for id in [1, 0, 1] {
                    let opened = input.open(index, id).unwrap();
                    let want: Vec<u8> = (1..=6).map(|n| n + 6 * id as u8).collect();
                    assert_eq!(npy::pixels(&opened).unwrap(), want);
                }
            }
        }
    }

    /// An Arrow file with compressed images, from the seeds of the fuzzer.
    fn compressed(dir: &std::path::Path) -> (std::path::PathBuf, Vec<u8>) {
        let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/arrow/lz4");
        let bytes = std::fs::read(seed).unwrap().split_off(1);
        (dir.join("a.arrow"), bytes)
    }

    #[test]
    #[cfg(feature = "parquet")]
    fn time_of_unpacking_is_no_time_of_reading() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes) = compressed(dir.path());
        std::fs::write(&path, bytes).unwrap();
        let files = ArrowFiles {
            data: vec![path],
            ..ArrowFiles::default()
        };
        let (index, _) = Index::arrow(&files, &ParquetOptions::default()).unwrap();
        let mut input = SampleInput::new(InputMode::Map, 1000, AccessPattern::Shuffled);
        let mut meter = StageMeter::default();
        let mut seconds = 0.0;
        // Rows 0 to 2 are of one buffer.
        for (id, is_unpacked) in [(0, true), (2, false), (4, true), (0, true)] {
            meter.start();
            input.open_metered(&index, id, Some(&mut meter)).unwrap();
            let now = stages::UNPACK.seconds(&meter.ns);
            assert_eq!(now > seconds, is_unpacked, "{id}");
            seconds = now;
        }
    }

    #[test]
    #[cfg(feature = "parquet")]
    fn the_fault_of_a_broken_page_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (path, mut bytes) = compressed(dir.path());
        let open = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let files = ArrowFiles {
                data: vec![path.clone()],
                ..ArrowFiles::default()
            };
            Index::arrow(&files, &ParquetOptions::default()).unwrap().0
        };
        let index = open(&bytes);
        let page = index.page(index.part(0).unwrap().shard).unwrap();
        // The index reads lengths only.
        bytes[page.at as usize] ^= 0xff;
        for mode in [InputMode::Map, InputMode::Read] {
            let index = open(&bytes);
            let mut input = SampleInput::new(mode, 1000, AccessPattern::Shuffled);
            let first = input.open(&index, 0).err().unwrap();
            assert_eq!(first.kind, FaultKind::Corrupt, "{first}");
            // A second try to unpack it would find no file.
            std::fs::remove_file(&path).unwrap();
            for id in [2, 0] {
                assert_eq!(input.open(&index, id).err().unwrap(), first);
            }
        }
    }

    #[test]
    fn parts_of_shards_are_the_same_in_both_modes_and_both_orders() {
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..9).map(|n| format!("{n}.tar")).collect();
        let shards: Vec<_> = names
            .iter()
            .map(|name| {
                let bytes: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
                std::fs::write(dir.path().join(name), &bytes).unwrap();
                // Within a page, over pages, the last byte, one behind it, nothing.
                let parts = [(3, 5), (4000, 9000), (19_999, 1), (19_999, 2), (7, 0)];
                (name.as_str(), parts.to_vec())
            })
            .chain([("absent.tar", vec![(0, 1)])])
            .collect();
        let index = Index::of_parts(dir.path(), &shards);
        for mode in [InputMode::Map, InputMode::Read] {
            for (pattern, keeps) in [
                (AccessPattern::Shuffled, true),
                (AccessPattern::InOrder, true),
                (AccessPattern::InOrder, false),
            ] {
                let input = SampleInput::new(mode, 9000, pattern);
                let mut input = match keeps {
                    true => input,
                    false => input.without_open_shards(),
                };
                // More shards than stay open, twice.
                for id in (0..45).chain(0..45) {
                    let opened = input.open(&index, id);
                    match id % 5 {
                        0 => assert_eq!(&*opened.unwrap(), [3, 4, 5, 6, 7]),
                        1 => {
                            let bytes = opened.unwrap();
                            assert_eq!(bytes.len(), 9000);
                            assert_eq!(bytes[8999], (12_999 % 251) as u8);
                        }
                        2 => assert_eq!(&*opened.unwrap(), [(19_999 % 251) as u8]),
                        3 => {
                            let fault = opened.err().unwrap();
                            assert_eq!(fault.kind, FaultKind::Truncated);
                            assert!(fault.reason.contains("has 20000 bytes"), "{fault}");
                            assert!(fault.reason.contains("ends at 20001"), "{fault}");
                        }
                        _ => {
                            let fault = opened.err().unwrap();
                            assert_eq!(fault.kind, FaultKind::Truncated);
                        }
                    }
                }
                let fault = input.open(&index, 45).err().unwrap();
                assert_eq!(fault.kind, FaultKind::Unreadable);
                assert!(fault.reason.starts_with("its shard cannot be opened"));
            }
        }
    }
}

//! Which images are present, and which process decodes the others.
//!
//! One word per image states whether it is present. A process that needs an absent image takes its
//! turn ([`ByteLocks`]), checks again, decodes it and sets the word. If that process dies, the
//! kernel releases the turn and the next process decodes the image again: the same bytes. If it is
//! stopped, it keeps the turn; after a timeout another process decodes the image without it. An
//! image that cannot be decoded stays absent, and each process that needs it gets the error.
//!
//! ```text
//! control   magic, hash of the layout, key | one word an image: 0 absent, 1 present
//! content   image | image | ...
//! ```

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use twox_hash::XxHash3_64;

use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::scene::image_store::content::{StoreBacking, StoreContent};
use crate::scene::image_store::layout::StoreLayout;
use crate::sys::byte_locks::ByteLocks;
use crate::sys::shared_memory::SharedMemory;

const MAGIC: u64 = u64::from_le_bytes(*b"fthrstr1");

/// Words of the header, before the words of the images.
const HEAD: usize = 8;

const THERE: u64 = 1;

/// How long another process may take for an image before this process decodes it too.
const PATIENCE: Duration = match cfg!(test) {
    true => Duration::from_millis(50),
    false => Duration::from_secs(10),
};

/// Decoded images in shared memory, which lives as long as any process holds it.
#[derive(Debug)]
pub(crate) struct ImageStore {
    places: StoreLayout,
    control: SharedMemory,
    content: StoreContent,
    decode_locks: ByteLocks,
    buffer: Vec<u8>,
}

/// Whether to wait for an image that another process decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitMode {
    Wait,
    /// Do not wait: the caller has other work.
    Skip,
}

impl ImageStore {
    /// Creates an empty store.
    ///
    /// # Errors
    /// A system call that fails.
    pub(crate) fn create(
        places: StoreLayout,
        holding: StoreBacking,
        folder: &Path,
        key: u128,
    ) -> Result<Self> {
        let control = SharedMemory::create("featherload-store-control", control_bytes(&places))?;
        control.allocate(0..control.len(), "the words of an image store")?;
        let content = StoreContent::create(holding, places.bytes(), folder)?;
        for (word, value) in control_header(&places, key).into_iter().enumerate().rev() {
            control.word(word).store(value, Ordering::Release);
        }
        Self::of(places, control, content)
    }

    /// Opens a store that another process created for the same images. `key` distinguishes it from
    /// stores with the same layout.
    ///
    /// # Errors
    /// Memory of other images.
    pub(crate) fn open(
        places: StoreLayout,
        holding: StoreBacking,
        control: OwnedFd,
        content: OwnedFd,
        key: u128,
    ) -> Result<Self> {
        let control = SharedMemory::open(control, control_bytes(&places))?;
        let control_words = [0, 1, 2, 3].map(|word| control.word(word).load(Ordering::Acquire));
        if control_words != control_header(&places, key) {
            return Err(Error::protocol(
                "the received image store holds other images",
            ));
        }
        let content = StoreContent::open(holding, content, places.bytes())?;
        Self::of(places, control, content)
    }

    fn of(places: StoreLayout, control: SharedMemory, content: StoreContent) -> Result<Self> {
        Ok(Self {
            places,
            control,
            content,
            decode_locks: ByteLocks::default(),
            buffer: Vec::new(),
        })
    }

    /// Descriptors with which another process opens the store: [`ImageStore::open`].
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.control.as_fd(), self.content.as_fd()]
    }

    /// Opens files that this process, a worker, cannot open later.
    ///
    /// # Errors
    /// A system call that fails.
    pub(crate) fn enter_worker(&mut self) -> crate::error::Result<()> {
        self.decode_locks.open_file(self.control.as_fd())
    }

    /// Files of the store that this process, a worker, has open.
    pub(crate) fn open_files(&self) -> Vec<RawFd> {
        let shared = self.descriptors().map(|fd| fd.as_raw_fd());
        shared
            .into_iter()
            .chain(self.decode_locks.descriptor())
            .collect()
    }

    pub(crate) fn backing(&self) -> StoreBacking {
        self.content.backing()
    }

    pub(crate) fn layout(&self) -> &StoreLayout {
        &self.places
    }

    /// Whether image `number` is present. False if there is no such image.
    #[inline]
    pub(crate) fn is_present(&self, number: usize) -> bool {
        number < self.places.len()
            && self.control.word(HEAD + number).load(Ordering::Acquire) == THERE
    }

    /// Number of these images that are present.
    pub(crate) fn count_present(&self, numbers: &[u32]) -> usize {
        let there = numbers.iter().filter(|n| self.is_present(**n as usize));
        there.count()
    }

    /// Calls `make` for image `number` if it is absent. Returns false if another process decodes it
    /// and `patience` does not allow waiting.
    ///
    /// # Errors
    /// The errors of `make`; no space; a number without an image.
    pub(crate) fn ensure_image(
        &mut self,
        number: usize,
        patience: WaitMode,
        make: impl FnOnce(&mut [u8]) -> Result<(), SampleFault>,
    ) -> Result<bool, SampleFault> {
        if self.is_present(number) {
            return Ok(true);
        }
        let range = self.places.of(number).ok_or_else(|| {
            let text = format!("there is no image {number} in the image store");
            SampleFault::new(FaultKind::Unknown, text)
        })?;
        let at = (HEAD + number) as u64;
        let began = Instant::now();
        let mut pause = Duration::from_micros(250);
        let _turn = loop {
            let control = self.control.as_fd();
            let turn = self.decode_locks.take(control, at);
            match turn.map_err(|e| SampleFault::new(FaultKind::Unknown, e.to_string()))? {
                Some(turn) => break Some(turn),
                None if patience == WaitMode::Skip => return Ok(false),
                // The process that holds the turn is stopped. Any process writes the same bytes.
                None if began.elapsed() > PATIENCE => break None,
                None => {}
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(8));
            if self.control.word(HEAD + number).load(Ordering::Acquire) == THERE {
                return Ok(true);
            }
        };
        let word = self.control.word(HEAD + number);
        if word.load(Ordering::Acquire) != THERE {
            self.content.write(range, &mut self.buffer, make)?;
            // Pairs with Acquire in `is_present`: a process that sees the word sees the pixels.
            word.store(THERE, Ordering::Release);
        }
        Ok(true)
    }

    /// Reads two, three or four bytes from each place. Places count from the start of the first
    /// image, as in [`StoreLayout::of`].
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn gather<const N: usize>(
        &self,
        at: &[u64],
        out: &mut [[u8; N]],
    ) -> Result<(), SampleFault> {
        match at
            .iter()
            .all(|at| at.saturating_add(N as u64) <= self.places.bytes())
        {
            true => self.content.gather(at, out).map_err(unreadable),
            false => Err(outside_fault()),
        }
    }

    /// Reads bytes of an image that is present, from byte `first` on.
    ///
    /// # Errors
    /// Like [`ImageStore::gather`]; bytes beyond the image's end.
    pub(crate) fn read_part(
        &self,
        number: usize,
        first: usize,
        out: &mut [u8],
    ) -> Result<(), SampleFault> {
        let range = self.places.of(number).ok_or_else(outside_fault)?;
        let begin = range.start.saturating_add(first as u64);
        let end = begin.saturating_add(out.len() as u64);
        match end <= range.end {
            true => self.content.read(begin..end, out).map_err(unreadable),
            false => Err(outside_fault()),
        }
    }

    /// Maps the memory of the images again; `None` if they are in a file.
    ///
    /// # Errors
    /// A system call that fails.
    pub(crate) fn map_copy(&self) -> crate::error::Result<Option<SharedMemory>> {
        self.content.map_copy(self.places.bytes())
    }

    /// Reads all bytes of an image that is present.
    ///
    /// # Errors
    /// Like [`ImageStore::gather`]; another number of bytes.
    #[cfg(test)]
    pub(crate) fn read(&self, number: usize, out: &mut [u8]) -> Result<(), SampleFault> {
        match self.places.of(number) {
            Some(range) if out.len() as u64 == range.end - range.start => {
                self.content.read(range, out).map_err(unreadable)
            }
            _ => Err(outside_fault()),
        }
    }
}

fn control_bytes(places: &StoreLayout) -> usize {
    8 * (HEAD + places.len())
}

/// Header of the control words.
fn control_header(places: &StoreLayout, key: u128) -> [u64; 4] {
    [MAGIC, hash_of(places), key as u64, (key >> 64) as u64]
}

fn hash_of(places: &StoreLayout) -> u64 {
    let ends = (0..places.len()).filter_map(|n| places.of(n));
    let bytes: Vec<u8> = ends.flat_map(|range| range.end.to_le_bytes()).collect();
    XxHash3_64::oneshot(&bytes)
}

#[cold]
fn outside_fault() -> SampleFault {
    SampleFault::new(FaultKind::Unknown, "a pixel is outside its image")
}

#[cold]
fn unreadable(e: std::io::Error) -> SampleFault {
    let text = format!("the store file cannot be read: {e}");
    SampleFault::new(FaultKind::Unreadable, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    const BYTES: [u64; 4] = [5, 0, 300, 17];

    const KEY: u128 = 1 << 100 | 5;

    fn places() -> StoreLayout {
        StoreLayout::new(BYTES).unwrap()
    }

    fn store(holding: StoreBacking) -> ImageStore {
        ImageStore::create(places(), holding, &std::env::temp_dir(), KEY).unwrap()
    }

    /// The same store, as another process has it.
    fn another(of: &ImageStore, holding: StoreBacking) -> ImageStore {
        let fds = of.descriptors().map(|fd| fd.try_clone_to_owned().unwrap());
        let [control, content] = fds;
        ImageStore::open(places(), holding, control, content, KEY).unwrap()
    }

    fn pixels(number: usize) -> Vec<u8> {
        (0..BYTES[number])
            .map(|i| (i * 7 + number as u64) as u8)
            .collect()
    }

    fn fill(store: &mut ImageStore, number: usize) {
        let made = store.ensure_image(number, WaitMode::Wait, |out| {
            out.copy_from_slice(&pixels(number));
            Ok(())
        });
        assert!(made.unwrap());
    }

    #[test]
    fn what_one_makes_all_read() {
        for holding in [StoreBacking::Memory, StoreBacking::File] {
            let mut one = store(holding);
            let other = another(&one, holding);
            assert_eq!(other.count_present(&[0, 1, 2, 3, 4]), 0);
            for number in [2, 0, 3, 1] {
                assert!(!other.is_present(number));
                fill(&mut one, number);
                assert!(other.is_present(number));
                let wanted = pixels(number);
                let mut read = vec![0; wanted.len()];
                other.read(number, &mut read).unwrap();
                assert_eq!(read, wanted);
                let begin = places().of(number).unwrap().start;
                let at: Vec<u64> = (0..wanted.len() as u64 / 3)
                    .map(|i| begin + 3 * i)
                    .collect();
                let mut three = vec![[0; 3]; at.len()];
                other.gather(&at, &mut three).unwrap();
                assert_eq!(three, wanted.as_chunks().0);
                // Wherever in a word they begin.
                let at: Vec<u64> = (0..(wanted.len() as u64).saturating_sub(3)).collect();
                let moved: Vec<u64> = at.iter().map(|at| begin + at).collect();
                let (mut four, mut two) = (vec![[0; 4]; at.len()], vec![[0; 2]; at.len()]);
                other.gather(&moved, &mut four).unwrap();
                other.gather(&moved, &mut two).unwrap();
                for (at, (four, two)) in at.iter().zip(four.iter().zip(two)) {
                    let at = *at as usize;
                    assert_eq!(
                        (&four[..], &two[..]),
                        (&wanted[at..at + 4], &wanted[at..at + 2])
                    );
                }
            }
            assert_eq!(other.count_present(&[0, 1, 2, 3, 4]), 4);
            assert!(!other.is_present(4) && other.read(4, &mut []).is_err());
            let last = places().bytes() - 3;
            assert!(other.gather(&[0, last], &mut [[0; 3]; 2]).is_ok());
            for behind in [last + 1, u64::MAX] {
                assert!(other.gather(&[0, behind], &mut [[0; 3]; 2]).is_err());
            }
            assert!(one.ensure_image(4, WaitMode::Wait, |_| Ok(())).is_err());
            let mut part = [0; 9];
            other.read_part(2, 7, &mut part).unwrap();
            assert_eq!(part, pixels(2)[7..16]);
            assert!(other.read_part(2, 292, &mut part).is_err());
            assert!(other.read_part(2, usize::MAX, &mut part).is_err());
        }
    }

    #[test]
    fn a_picture_is_made_once_however_many_want_it() {
        for holding in [StoreBacking::Memory, StoreBacking::File] {
            let first = store(holding);
            let made = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    let mut mine = another(&first, holding);
                    let made = &made;
                    scope.spawn(move || {
                        for number in [2, 3] {
                            mine.ensure_image(number, WaitMode::Wait, |out| {
                                made.fetch_add(1, Ordering::SeqCst);
                                std::thread::sleep(std::time::Duration::from_millis(5));
                                out.copy_from_slice(&pixels(number));
                                Ok(())
                            })
                            .unwrap();
                            let mut read = vec![0; BYTES[number] as usize];
                            mine.read(number, &mut read).unwrap();
                            assert_eq!(read, pixels(number));
                        }
                    });
                }
            });
            assert_eq!(made.load(Ordering::SeqCst), 2);
        }
    }

    #[test]
    fn what_another_makes_can_be_left_for_later() {
        let mut one = store(StoreBacking::Memory);
        let mut other = another(&one, StoreBacking::Memory);
        let made = one.ensure_image(0, WaitMode::Wait, |out| {
            let left = other.ensure_image(0, WaitMode::Skip, |_| unreachable!("it is being made"));
            assert!(!left.unwrap());
            out.fill(9);
            Ok(())
        });
        assert!(made.unwrap());
        assert!(
            other
                .ensure_image(0, WaitMode::Skip, |_| unreachable!("it is there"))
                .unwrap()
        );
    }

    #[test]
    fn a_picture_is_made_twice_when_its_maker_was_stopped() {
        let mut one = store(StoreBacking::Memory);
        let mut other = another(&one, StoreBacking::Memory);
        let stopped = other
            .decode_locks
            .take(other.control.as_fd(), (HEAD + 2) as u64)
            .unwrap();
        assert!(stopped.is_some());
        let began = Instant::now();
        fill(&mut one, 2);
        assert!(began.elapsed() >= PATIENCE && one.is_present(2));
    }

    #[test]
    fn a_picture_that_fails_stays_absent_and_is_tried_again() {
        let mut store = store(StoreBacking::File);
        let bad = SampleFault::new(FaultKind::Corrupt, "bad");
        let failed = store.ensure_image(2, WaitMode::Wait, |_| Err(bad.clone()));
        assert_eq!(failed.unwrap_err(), bad);
        assert!(!store.is_present(2));
        fill(&mut store, 2);
        assert!(store.is_present(2));
    }

    #[test]
    fn a_store_of_other_pictures_is_refused() {
        let one = store(StoreBacking::Memory);
        let [control, content] = one.descriptors().map(|fd| fd.try_clone_to_owned().unwrap());
        // Equal numbers of images and bytes, with other ranges.
        let others = StoreLayout::new([6, 0, 300, 17]).unwrap();
        assert_eq!(others.bytes(), places().bytes());
        let again = || [&control, &content].map(|fd: &OwnedFd| fd.try_clone().unwrap());
        for (places, key) in [
            (others, KEY),
            (places(), KEY ^ 1),
            (places(), KEY ^ 1 << 127),
        ] {
            let [control, content] = again();
            let e =
                ImageStore::open(places, StoreBacking::Memory, control, content, key).unwrap_err();
            assert!(e.to_string().contains("other images"), "{e}");
        }
    }

    #[test]
    fn a_disk_without_room_is_a_fault_that_says_what_to_do() {
        let mut store = store(StoreBacking::File);
        // As short as a file whose device is full leaves it.
        let read_only = std::fs::File::open("/dev/null").unwrap();
        store.content = StoreContent::File(read_only);
        let fault = store.ensure_image(0, WaitMode::Wait, |out| {
            out.fill(1);
            Ok(())
        });
        let fault = fault.unwrap_err();
        assert_eq!(fault.kind, FaultKind::NoMemory);
        assert!(fault.reason.contains("store_folder"), "{fault}");
    }
}

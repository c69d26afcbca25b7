//! Samples whose bytes the caller gives while the run goes on, such as a data set in LMDB or HDF5.
//!
//! In the consumer. The loader requests the samples of the next batches in the order of the epoch.
//! A thread of the caller answers each request with bytes and a label ([`ItemFeed::next`],
//! [`ItemFeed::put`]). The bytes go to a bounded shared memory ([`HandedItems`]), from which workers
//! read them. A batch is posted to workers after all its samples are there. Its memory is free again
//! after the batch was returned.
//!
//! The bytes of batches lie one after the other in a ring. Positions in it only grow; a position
//! modulo the size of the memory is an offset.

use std::collections::VecDeque;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::data::index::{Index, ItemLabel, Label, shown};
use crate::error::{Error, Result, size};
use crate::jobs::handed_items::{HandedItems, HandedShape};
use crate::jobs::images::batch::BatchLabels;
use crate::order::EpochMark;

/// Gives the samples of one loader. Clones are handles of the same feed.
///
/// A loader gets one by [`LoaderBuilder::feed`](crate::LoaderBuilder::feed). One thread of the
/// caller then answers all requests:
///
/// ```no_run
/// # use featherload::index::ItemLabel;
/// # fn train(
/// #     index: featherload::Index,
/// #     bytes_of: fn(u64) -> (Vec<u8>, ItemLabel),
/// # ) -> featherload::Result<()> {
/// use featherload::ItemFeed;
///
/// let feed = ItemFeed::new(64 << 20)?;
/// let loader = featherload::Loader::builder(index).feed(&feed).build()?;
/// std::thread::spawn(move || {
///     while feed.wait() {
///         while let Some(request) = feed.next() {
///             let (bytes, label) = bytes_of(request.id());
///             while !feed.put(&request, &bytes, &label).unwrap() && feed.wait() {}
///         }
///     }
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ItemFeed(Arc<FeedState>);

#[derive(Debug)]
struct FeedState {
    /// Most bytes of samples in memory at one time.
    bytes: u64,
    queue: Mutex<FeedQueue>,
    /// A batch became complete, the feed failed or was closed.
    changed: Condvar,
    /// Wakes the thread that answers.
    waker: PipeWriter,
    woken: PipeReader,
}

/// A sample whose bytes are requested.
#[derive(Debug, Clone)]
pub struct ItemRequest {
    generation: u64,
    batch: u64,
    row: usize,
    id: u64,
}

impl ItemRequest {
    /// The number of the sample.
    pub fn id(&self) -> u64 {
        self.id
    }
}

#[derive(Debug, Default)]
struct FeedQueue {
    items: Option<HandedItems>,
    kind: LabelKind,
    /// Grows when all requests are cancelled.
    generation: u64,
    /// The batches that were requested and not returned, in their order.
    batches: VecDeque<FedBatch>,
    /// Number of the first batch of `batches`, counted over the whole run.
    first: u64,
    /// Positions of the first used byte and after the last one.
    used: (u64, u64),
    failure: Option<String>,
    is_closed: bool,
    /// A wake-up that the thread has not taken yet.
    is_woken: bool,
}

/// The labels that samples have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LabelKind {
    #[default]
    None,
    Class,
    Vector(usize),
}

#[derive(Debug)]
struct FedBatch {
    at: EpochMark,
    ids: Vec<u64>,
    /// Of the samples that are there.
    labels: Vec<ItemLabel>,
    /// Position of its first byte. None before there is one.
    start: Option<u64>,
}

impl FedBatch {
    fn is_complete(&self) -> bool {
        self.labels.len() == self.ids.len()
    }
}

impl ItemFeed {
    /// A feed that holds at most `bytes` bytes of samples at one time. The samples of one batch must
    /// fit.
    ///
    /// # Errors
    /// The process has no free file descriptor; no bytes.
    pub fn new(bytes: u64) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::option(
                "feed_limit",
                "`feed_limit` is 0, and the samples of a batch must fit: give bytes",
            ));
        }
        let (woken, waker) = pipe().map_err(|e| Error::io("make a pipe", e))?;
        // A thread that is always busy leaves wake-ups in the pipe.
        fcntl(&waker, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
            .map_err(|e| Error::io("set up a pipe", e))?;
        Ok(Self(Arc::new(FeedState {
            bytes,
            queue: Mutex::default(),
            changed: Condvar::new(),
            waker,
            woken,
        })))
    }

    /// Most bytes of samples at one time.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Waits until there may be something to do. False after the loader was dropped. It returns
    /// early if the call is interrupted.
    pub fn wait(&self) -> bool {
        let _ = (&self.0.woken).read(&mut [0; 16]);
        !self.is_closed()
    }

    /// The pipe that [`ItemFeed::wait`] reads, for a caller that waits otherwise.
    pub fn wake_pipe(&self) -> BorrowedFd<'_> {
        self.0.woken.as_fd()
    }

    /// Whether the loader was dropped.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The next sample that is requested, in the order of the epoch. None if there is none at the
    /// moment: [`ItemFeed::wait`] tells when to look again.
    pub fn next(&self) -> Option<ItemRequest> {
        let mut queue = self.lock();
        queue.is_woken = false;
        if queue.is_closed || queue.failure.is_some() {
            return None;
        }
        let generation = queue.generation;
        let numbered = (queue.first..).zip(&queue.batches);
        let mut open = numbered.filter(|(_, batch)| !batch.is_complete());
        open.next().map(|(number, batch)| ItemRequest {
            generation,
            batch: number,
            row: batch.labels.len(),
            id: batch.ids[batch.labels.len()],
        })
    }

    /// Gives bytes and label of a requested sample. False if there is no room at the moment: call
    /// again after [`ItemFeed::wait`]. A request that was cancelled meanwhile is ignored.
    ///
    /// # Errors
    /// A label of another kind than those of the index; a batch that exceeds all memory of the feed;
    /// no memory.
    pub fn put(&self, request: &ItemRequest, bytes: &[u8], label: &ItemLabel) -> Result<bool> {
        let mut queue = self.lock();
        let queue = &mut *queue;
        queue.is_woken = false;
        let number = request.batch.checked_sub(queue.first);
        let batch = number.and_then(|number| queue.batches.get_mut(number as usize));
        let (Some(batch), Some(items)) = (batch, &queue.items) else {
            return Ok(true);
        };
        if request.generation != queue.generation || batch.labels.len() != request.row {
            return Ok(true);
        }
        queue.kind.check(label, request.id)?;
        let most = items.shape().bytes;
        if queue.used.0 == queue.used.1 {
            // Nothing is in use: from the start of the memory, so that no end breaks the batch.
            queue.used = [queue.used.1.next_multiple_of(most); 2].into();
        }
        let Some(start) = room(queue.used, bytes.len() as u64, most) else {
            let is_alone = number == Some(0) && batch.start.unwrap_or(queue.used.1) == queue.used.0;
            if is_alone {
                return Err(too_small(batch, request, bytes.len(), most));
            }
            return Ok(false);
        };
        let place = (request.batch % u64::from(items.shape().places)) as usize;
        items.write(place, request.row, start % most, bytes)?;
        queue.used.1 = start + bytes.len() as u64;
        batch.start.get_or_insert(start);
        batch.labels.push(label.clone());
        if batch.is_complete() {
            items.publish(place, batch.at);
            self.0.changed.notify_all();
        }
        Ok(true)
    }

    /// Ends the run with an error: the next call for a batch returns it. `what`: why the sample has
    /// no bytes. False if the request was cancelled meanwhile: then nothing happens.
    pub fn fail(&self, request: &ItemRequest, what: impl Into<String>) -> bool {
        let mut queue = self.lock();
        let is_current = request.generation == queue.generation && queue.failure.is_none();
        if is_current {
            queue.failure = Some(what.into());
            self.0.changed.notify_all();
        }
        is_current
    }

    /// Makes the memory, for samples of this index. Returns its size and descriptor for workers.
    ///
    /// # Errors
    /// Another loader has this feed. The system gives no memory.
    pub(crate) fn start(
        &self,
        index: &Index,
        places: u32,
        rows: u32,
    ) -> Result<(HandedShape, OwnedFd)> {
        let shape = HandedShape {
            places,
            rows,
            bytes: self.0.bytes,
        };
        let mut queue = self.lock();
        if queue.items.is_some() {
            return Err(Error::config(
                "this feed has a loader: make a feed for each loader",
            ));
        }
        let items = HandedItems::create(shape)?;
        let fd = items.as_fd().try_clone_to_owned();
        let fd = fd.map_err(|e| Error::io("duplicate the descriptor of a feed", e))?;
        queue.items = Some(items);
        queue.kind = LabelKind::of(index);
        Ok((shape, fd))
    }

    /// Requests the samples of the next batches, of which the first is the current one. Waits up to
    /// `limit` for it. Returns how many of them are complete, from the first on. None: not even the
    /// first.
    ///
    /// # Errors
    /// The caller failed to give a sample. The requests are then cancelled.
    pub(crate) fn ready(
        &self,
        wanted: &[EpochMark],
        ids: &dyn Fn(EpochMark) -> Vec<u64>,
        limit: Duration,
    ) -> Result<Option<usize>> {
        let until = Instant::now().checked_add(limit);
        let mut queue = self.lock();
        let known = queue.batches.iter().map(|batch| batch.at);
        if !known.zip(wanted).all(|(at, wanted)| at == *wanted) {
            queue.cancel();
        }
        let places = queue
            .items
            .as_ref()
            .map_or(0, |items| items.shape().places as usize);
        let mut is_new = false;
        for at in wanted.iter().take(places).skip(queue.batches.len()) {
            is_new = true;
            queue.batches.push_back(FedBatch {
                at: *at,
                ids: ids(*at),
                labels: Vec::new(),
                start: None,
            });
        }
        if is_new {
            self.wake(&mut queue);
        }
        loop {
            let complete = queue.batches.iter().take_while(|batch| batch.is_complete());
            match complete.count() {
                0 => {}
                count => return Ok(Some(count)),
            }
            // Batches before the failed sample come first, however far ahead it was asked.
            if let Some(what) = queue.failure.take() {
                queue.cancel();
                return Err(Error::config(what));
            }
            let left = until.map_or(Duration::MAX, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(None);
            }
            // The longest wait that a condition variable takes everywhere.
            let left = left.min(Duration::from_secs(3600));
            let waited = self.0.changed.wait_timeout(queue, left);
            queue = waited.map_or_else(|e| e.into_inner().0, |(queue, _)| queue);
        }
    }

    /// The labels of a batch, one for each sample, in the form of a batch. `rows`: all rows, of which
    /// those without a sample come last; whether each one is masked. None for another batch than the
    /// current one.
    pub(crate) fn labels(&self, at: EpochMark, is_masked: &[bool]) -> Option<BatchLabels> {
        let queue = self.lock();
        let batch = queue.batches.front().filter(|batch| batch.at == at)?;
        let rows = is_masked.iter().enumerate();
        let label = |row: usize, masked: bool| batch.labels.get(row).filter(|_| !masked);
        Some(match queue.kind {
            LabelKind::None => BatchLabels::None,
            LabelKind::Class => BatchLabels::Classes(
                rows.map(|(row, masked)| match label(row, *masked) {
                    Some(ItemLabel::Class(class)) => *class,
                    _ => -1,
                })
                .collect(),
            ),
            LabelKind::Vector(width) => {
                let mut values = Vec::with_capacity(width * is_masked.len());
                for (row, masked) in rows {
                    match label(row, *masked) {
                        Some(ItemLabel::Vector(vector)) => values.extend(vector),
                        Some(ItemLabel::Class(class)) => values.push(*class as f32),
                        _ => values.resize(values.len() + width, 0.0),
                    }
                }
                BatchLabels::Vectors { width, values }
            }
        })
    }

    /// Frees the memory of the first batch, which was returned.
    pub(crate) fn release(&self) {
        let mut queue = self.lock();
        if queue.batches.pop_front().is_none() {
            return;
        }
        let place = (queue.first % u64::from(queue.places())) as usize;
        if let Some(items) = &queue.items {
            items.clear(place);
        }
        queue.first += 1;
        let start = queue.batches.iter().find_map(|batch| batch.start);
        queue.used.0 = start.unwrap_or(queue.used.1);
        self.wake(&mut queue);
    }

    /// Forgets all requests.
    pub(crate) fn cancel(&self) {
        let mut queue = self.lock();
        queue.cancel();
        self.wake(&mut queue);
    }

    /// Ends the feed, when its loader is dropped.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.is_closed = true;
        queue.cancel();
        queue.items = None;
        self.wake(&mut queue);
        self.0.changed.notify_all();
    }

    fn wake(&self, queue: &mut FeedQueue) {
        if !std::mem::replace(&mut queue.is_woken, true) {
            // If it is full, the thread finds an earlier wake-up.
            let _ = (&self.0.waker).write(&[1]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, FeedQueue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedQueue {
    fn places(&self) -> u32 {
        self.items.as_ref().map_or(1, |items| items.shape().places)
    }

    fn cancel(&mut self) {
        let places = self.places() as usize;
        if let Some(items) = &self.items {
            (0..places).for_each(|place| items.clear(place));
        }
        self.generation += 1;
        self.batches.clear();
        self.used.0 = self.used.1;
        self.failure = None;
    }
}

impl LabelKind {
    fn of(index: &Index) -> Self {
        match index.label(0) {
            Label::None => Self::None,
            Label::Class(_) => Self::Class,
            Label::Vector(_) => Self::Vector(index.label_width()),
        }
    }

    fn check(self, label: &ItemLabel, id: u64) -> Result<()> {
        let fits = match (self, label) {
            (Self::None, ItemLabel::None) | (Self::Class, ItemLabel::Class(_)) => true,
            (Self::Vector(width), ItemLabel::Vector(vector)) => vector.len() == width,
            (Self::Vector(width), ItemLabel::Class(_)) => width == 1,
            _ => false,
        };
        let kind = match self {
            Self::None => "no label".to_owned(),
            Self::Class => "a whole number".to_owned(),
            Self::Vector(width) => format!("{width} numbers"),
        };
        match fits {
            true => Ok(()),
            false => Err(Error::config(format!(
                "the label of sample {id} is {}, and the first sample has {kind}: give all \
                 samples the same kind of label",
                text(label)
            ))),
        }
    }
}

/// A label for an error text.
fn text(label: &ItemLabel) -> String {
    match label {
        ItemLabel::None => "missing".to_owned(),
        ItemLabel::Class(number) => number.to_string(),
        ItemLabel::Name(name) => format!("the name '{}'", shown(name.as_bytes())),
        ItemLabel::Vector(values) => match values.as_slice() {
            [value] => value.to_string(),
            values => format!("{} numbers", values.len()),
        },
    }
}

/// Where `bytes` bytes begin after the used ones, without a break at the end of the memory. None if
/// they do not fit.
fn room((first, end): (u64, u64), bytes: u64, most: u64) -> Option<u64> {
    let start = match end % most + bytes {
        last if last <= most => end,
        _ => end.next_multiple_of(most),
    };
    (bytes <= most && start + bytes - first <= most).then_some(start)
}

fn too_small(batch: &FedBatch, request: &ItemRequest, bytes: usize, most: u64) -> Error {
    Error::option(
        "feed_limit",
        format!(
            "a batch of {} samples exceeds the {} for bytes in memory: sample {}, number {} of the \
             batch, has {}. Raise `feed_limit` to twice the bytes of a batch or more, or lower \
             `batch_size`",
            batch.ids.len(),
            size(most),
            request.id,
            request.row,
            size(bytes as u64),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::MemoryItems;

    fn index(label: ItemLabel) -> Index {
        let mut items = MemoryItems::new().unwrap();
        items.push(b"", label).unwrap();
        Index::memory_items(items).unwrap()
    }

    fn feed(bytes: u64, rows: u32) -> ItemFeed {
        let feed = ItemFeed::new(bytes).unwrap();
        feed.start(&index(ItemLabel::Class(0)), 3, rows).unwrap();
        feed
    }

    fn marks(batches: std::ops::Range<u64>) -> Vec<EpochMark> {
        batches.map(|batch| EpochMark::new(0, 2 * batch)).collect()
    }

    fn ids(at: EpochMark) -> Vec<u64> {
        vec![at.samples, at.samples + 1]
    }

    fn ready(feed: &ItemFeed, batches: std::ops::Range<u64>) -> Result<Option<usize>> {
        feed.ready(&marks(batches), &ids, Duration::ZERO)
    }

    /// Answers requests with `bytes` bytes until there are none, or no room. Returns the ids.
    fn answer(feed: &ItemFeed, bytes: usize) -> Vec<u64> {
        let mut answered = Vec::new();
        while let Some(request) = feed.next() {
            let data = vec![request.id() as u8; bytes];
            let label = ItemLabel::Class(request.id() as i64 * 10);
            if !feed.put(&request, &data, &label).unwrap() {
                break;
            }
            answered.push(request.id());
        }
        answered
    }

    fn read(feed: &ItemFeed, batch: u64, row: u32) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let at = EpochMark::new(0, 2 * batch);
        let queue = feed.lock();
        let read = queue.items.as_ref().unwrap().read(at, row, 100, &mut out);
        read.ok().map(|()| out)
    }

    #[test]
    fn batches_are_asked_in_order_and_stay_until_they_are_returned() {
        let feed = feed(20, 2);
        assert_eq!(ready(&feed, 0..3).unwrap(), None);
        // 6 samples of 4 bytes do not fit in 20.
        assert_eq!(answer(&feed, 4), [0, 1, 2, 3, 4]);
        assert_eq!(ready(&feed, 0..3).unwrap(), Some(2));
        assert_eq!(read(&feed, 0, 1), Some(vec![1; 4]));
        let labels = feed.labels(EpochMark::new(0, 0), &[false, true]).unwrap();
        assert!(matches!(labels, BatchLabels::Classes(all) if all == [0, -1]));
        assert!(feed.labels(EpochMark::new(0, 2), &[false]).is_none());
        feed.release();
        assert_eq!(read(&feed, 0, 1), None);
        assert_eq!(ready(&feed, 1..4).unwrap(), Some(1));
        assert_eq!(answer(&feed, 4), [5, 6]);
        // The ring went round, and nothing that is needed was overwritten.
        assert_eq!(read(&feed, 1, 0), Some(vec![2; 4]));
        assert_eq!(read(&feed, 2, 1), Some(vec![5; 4]));
        for batch in 1..50 {
            assert!(ready(&feed, batch..batch + 3).unwrap() >= Some(1));
            assert_eq!(read(&feed, batch, 1), Some(vec![2 * batch as u8 + 1; 4]));
            feed.release();
            ready(&feed, batch + 1..batch + 4).unwrap();
            answer(&feed, 4);
        }
    }

    #[test]
    fn a_batch_that_can_never_fit_is_an_error() {
        let feed = feed(7, 2);
        ready(&feed, 0..1).unwrap();
        assert_eq!(answer(&feed, 3), [0, 1]);
        ready(&feed, 0..2).unwrap();
        let request = feed.next().unwrap();
        // The first batch will be returned.
        let label = ItemLabel::Class(0);
        assert!(!feed.put(&request, &[0; 5], &label).unwrap());
        feed.release();
        assert!(feed.put(&request, &[0; 5], &label).unwrap());
        let request = feed.next().unwrap();
        let e = feed.put(&request, &[0; 5], &label).unwrap_err().to_string();
        assert!(e.contains("sample 3, number 1 of the batch"), "{e}");
        assert!(e.contains("feed_limit"), "{e}");
    }

    #[test]
    fn cancelled_requests_are_ignored() {
        let feed = feed(100, 2);
        ready(&feed, 0..2).unwrap();
        let request = feed.next().unwrap();
        feed.cancel();
        assert!(feed.next().is_none());
        assert!(feed.put(&request, b"x", &ItemLabel::Class(0)).unwrap());
        assert!(!feed.fail(&request, "gone"));
        // Another position begins from the start.
        ready(&feed, 5..6).unwrap();
        assert_eq!(feed.next().unwrap().id(), 10);
        ready(&feed, 0..1).unwrap();
        assert_eq!(answer(&feed, 1), [0, 1]);
        assert_eq!(ready(&feed, 0..1).unwrap(), Some(1));
    }

    #[test]
    fn a_failure_ends_the_wait_and_may_be_tried_again() {
        let feed = feed(100, 2);
        ready(&feed, 0..2).unwrap();
        let request = feed.next().unwrap();
        let other = feed.clone();
        let thread = std::thread::spawn(move || assert!(other.fail(&request, "no such key")));
        let e = feed.ready(&marks(0..2), &ids, Duration::MAX).unwrap_err();
        assert!(e.to_string().contains("no such key"), "{e}");
        thread.join().unwrap();
        assert_eq!(ready(&feed, 0..2).unwrap(), None);
        assert_eq!(answer(&feed, 1).len(), 4);
    }

    #[test]
    fn labels_have_the_kind_of_the_index() {
        for (first, good, bad) in [
            (ItemLabel::None, ItemLabel::None, ItemLabel::Class(1)),
            (
                ItemLabel::Class(1),
                ItemLabel::Class(7),
                ItemLabel::Name("a".into()),
            ),
            (
                ItemLabel::Vector(vec![1.0, 2.0]),
                ItemLabel::Vector(vec![3.0, 4.0]),
                ItemLabel::Vector(vec![3.0]),
            ),
        ] {
            let feed = ItemFeed::new(100).unwrap();
            feed.start(&index(first), 3, 2).unwrap();
            ready(&feed, 0..1).unwrap();
            let request = feed.next().unwrap();
            let e = feed.put(&request, b"x", &bad).unwrap_err().to_string();
            assert!(e.contains("the label of sample 0"), "{e}");
            assert!(feed.put(&request, b"x", &good).unwrap());
        }
        let one = feed(100, 2);
        assert!(one.start(&index(ItemLabel::None), 3, 2).is_err());
    }

    #[test]
    fn the_thread_is_woken_and_ends() {
        let feed = feed(100, 2);
        let other = feed.clone();
        let thread = std::thread::spawn(move || {
            let mut ids = Vec::new();
            while other.wait() {
                ids.extend(answer(&other, 1));
            }
            ids
        });
        let complete = feed.ready(&marks(0..2), &ids, Duration::MAX).unwrap();
        assert!(complete >= Some(1));
        while ready(&feed, 0..2).unwrap() != Some(2) {}
        feed.close();
        assert_eq!(thread.join().unwrap(), [0, 1, 2, 3]);
        assert!(feed.is_closed() && feed.next().is_none());
    }
}

//! The JPEG engines of a device: nvJPEG's hardware backend, which decodes batches of whole
//! pictures into frames.
//!
//! In the consumer, in one thread at a time. A lane is what one submission has: while its
//! pictures are decoded another can be put together. All memory that the backend takes is
//! taken by [`Engines::open`]: it ignores allocators of callers, and would grow with what it meets.
//!
//! Engines report no damage: of coded data that are scrambled, or end early, the status is
//! 0. Bytes that are no JPEG fail the whole batch. So what goes in has been checked, and
//! [`decode_all`] finds the pictures that made a batch fail.

use std::ffi::{c_int, c_uint};
use std::ptr;
use std::sync::Arc;

use super::context::{Context, Stream};
use super::memory::DeviceBuffer;
use super::nvjpeg::{
    BACKEND_HARDWARE, CSS_444, FLAGS, Library, OUTPUT_RGBI, RawHandle, RawImage, RawState, done,
};
use crate::device::found::EngineInfo;
use crate::device::frames::Frame;
use crate::device::shape::SUBMISSION;
use crate::error::{Error, Result};

/// See [`crate::device::engines`].
pub(crate) fn engines(ordinal: u32) -> Result<EngineInfo> {
    let context = Context::open(ordinal)?;
    Engines::open(&context, 0, (0, 0)).map(|engines| engines.info())
}

/// A picture to decode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coded<'a> {
    pub(super) bytes: &'a [u8],
    /// Width and height, as its header has them.
    pub(super) size: (u32, u32),
    pub(super) frame: Frame,
}

/// Why a submission failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// One of its pictures may be at fault.
    Pictures(Error),
    /// No submission will do better.
    Engines(Error),
}

/// Statuses that no picture causes: not initialized, no memory, no engines.
const OF_ENGINES: [c_int; 3] = [1, 5, 7];

/// Pictures that fail alone, with none between them that is decoded. With more of them it is the
/// engines that fail.
const MOST_CULPRITS: usize = 4;

/// The engines of a device.
#[derive(Debug)]
pub(super) struct Engines {
    context: Arc<Context>,
    library: Library,
    handle: RawHandle,
    lanes: Vec<State>,
    /// Width and height of the largest picture.
    largest: (u32, u32),
    engines: u32,
    // What a submission lists; kept from one to the next.
    data: Vec<*const u8>,
    lengths: Vec<usize>,
    images: Vec<RawImage>,
}

/// What a lane has of the library.
#[derive(Debug, Clone, Copy)]
struct State {
    raw: RawState,
    /// Pictures of the submissions that it is set for.
    set_for: usize,
}

impl State {
    /// The context is current.
    fn make(
        &mut self,
        library: &Library,
        handle: RawHandle,
        (width, height): (u32, u32),
    ) -> Result<()> {
        // SAFETY: the handle is ours; the state is given back once, in `drop`, before it.
        let status = unsafe { (library.state_create)(handle, &mut self.raw) };
        done("nvjpegJpegStateCreate", status)?;
        self.set_for(library, handle, SUBMISSION)?;
        // SAFETY: both were made above, and are ours.
        let status = unsafe {
            (library.pre_allocate)(
                handle,
                self.raw,
                number(SUBMISSION)?,
                number(width as usize)?,
                number(height as usize)?,
                CSS_444,
                OUTPUT_RGBI,
            )
        };
        done("nvjpegDecodeBatchedPreAllocate", status)
    }

    /// Makes the state one for submissions of so many pictures. The context is current.
    fn set_for(&mut self, library: &Library, handle: RawHandle, pictures: usize) -> Result<()> {
        if self.set_for == pictures {
            return Ok(());
        }
        let count = number(pictures)?;
        // Unknown behind a failure.
        self.set_for = 0;
        // SAFETY: handle and state were made in `make`, and are ours; nothing that the state
        // was given before is under way, by the contract of `decode`.
        let status = unsafe { (library.initialize)(handle, self.raw, count, 1, OUTPUT_RGBI) };
        done("nvjpegDecodeBatchedInitialize", status)?;
        self.set_for = pictures;
        Ok(())
    }
}

// SAFETY: nvJPEG's handle and states belong to the process and may be used by any thread,
// one at a time, which `&mut` sees to; the lists are empty between calls.
unsafe impl Send for Engines {}

impl Engines {
    /// Looks for the library and for engines, and takes all the memory that the library needs for
    /// so many lanes of pictures up to `largest`: 0.7 s on an H100. Without a lane they only say
    /// what they are.
    ///
    /// # Errors
    /// No library, no engines; not enough memory.
    pub(super) fn open(context: &Arc<Context>, lanes: usize, largest: (u32, u32)) -> Result<Self> {
        let library = Library::open(context.driver_major()?)?;
        Self::open_in(context, library, lanes, largest)
    }

    /// As [`Engines::open`], in a library that was found.
    ///
    /// # Errors
    /// No engines; not enough memory.
    pub(super) fn open_in(
        context: &Arc<Context>,
        library: Library,
        lanes: usize,
        largest: (u32, u32),
    ) -> Result<Self> {
        let state = State {
            raw: ptr::null_mut(),
            set_for: 0,
        };
        let mut engines = Self {
            context: context.clone(),
            library,
            handle: ptr::null_mut(),
            lanes: vec![state; lanes],
            largest,
            engines: 0,
            data: Vec::with_capacity(SUBMISSION),
            lengths: Vec::with_capacity(SUBMISSION),
            images: Vec::with_capacity(SUBMISSION),
        };
        let made = engines.make();
        made.map_err(|e| engines.named(&e))?;
        Ok(engines)
    }

    fn named(&self, why: &Error) -> Error {
        let (ordinal, library) = (self.context.ordinal(), &self.library.found);
        Error::Device {
            what: format!("cuda:{ordinal}: {library}: {why}"),
        }
    }

    fn make(&mut self) -> Result<()> {
        let context = self.context.clone();
        context.check()?;
        let _current = context.enter()?;
        let library = &self.library;
        // SAFETY: no allocators: null is allowed for both; the last pointer is to a live
        // handle, which `drop` gives back once.
        let status = unsafe {
            (library.create)(
                BACKEND_HARDWARE,
                ptr::null(),
                ptr::null(),
                FLAGS,
                &mut self.handle,
            )
        };
        done("nvjpegCreateEx", status)?;
        for state in &mut self.lanes {
            state.make(library, self.handle, self.largest)?;
        }
        // Asked for before the first state was made, it takes 0.26 s on an H100.
        let (mut engines, mut cores): (c_uint, c_uint) = (0, 0);
        // SAFETY: the handle was made above; both pointers are to live integers.
        let status = unsafe { (library.decoder_info)(self.handle, &mut engines, &mut cores) };
        done("nvjpegGetHardwareDecoderInfo", status)?;
        if engines == 0 {
            return Err(Error::Device {
                what: "nvjpegGetHardwareDecoderInfo: this device has no JPEG engines: decode on \
                       cpu"
                .into(),
            });
        }
        // What a run's share followed from, before the device was asked.
        let expected = self.context.device().expected_engines();
        if let Some(expected) = expected.filter(|expected| *expected != engines) {
            tracing::warn!(
                "this device has {engines} JPEG engines, and others of its kind have {expected}, \
                 from which the usual engine_share follows: find a better one by `bench \
                 --calibrate`"
            );
        }
        self.engines = expected.unwrap_or(engines);
        Ok(())
    }

    /// Which library it is, and how many engines the device has.
    pub(super) fn info(&self) -> EngineInfo {
        self.library.with_engines(self.engines)
    }

    /// Puts pictures into the stream, to be decoded into their frames. Behind a failure the
    /// stream may still have some of it, and frames of the batch hold anything.
    ///
    /// # Errors
    /// What is over the shape, or does not lie in the memory of frames, before anything is
    /// done.
    ///
    /// # Safety
    /// What the lane was given before must be over. Nothing else may use these frames of
    /// `memory`, nor write the pictures' bytes, and all must stay, until what the stream has
    /// now is over. (A worker that was taken over may write them: then the library may do
    /// anything.)
    pub(super) unsafe fn decode(
        &mut self,
        lane: usize,
        pictures: &[Coded<'_>],
        memory: &DeviceBuffer,
        stream: &Stream,
    ) -> std::result::Result<(), Failure> {
        if pictures.is_empty() {
            return Ok(());
        }
        let began = self.check(pictures, memory);
        let began = began.and_then(|()| self.context.check());
        began.map_err(Failure::Engines)?;
        let context = self.context.clone();
        let current = context.enter().map_err(Failure::Engines)?;
        let (library, handle) = (&self.library, self.handle);
        let set = self.lanes[lane].set_for(library, handle, pictures.len());
        set.map_err(Failure::Engines)?;
        self.data.extend(pictures.iter().map(|p| p.bytes.as_ptr()));
        self.lengths.extend(pictures.iter().map(|p| p.bytes.len()));
        self.images.extend(pictures.iter().map(|p| {
            let address = memory.address() + p.frame.at as u64;
            RawImage::rgb(address, p.frame.pitch)
        }));
        // SAFETY: the lists have as many entries as the state is set for, and the library reads
        // them in the call; each picture's bytes stay, and its frame lies in the memory
        // (`check`), which nothing else uses there, by this function's contract; the stream is
        // ours and alive.
        let status = unsafe {
            (self.library.decode)(
                self.handle,
                self.lanes[lane].raw,
                self.data.as_ptr(),
                self.lengths.as_ptr(),
                self.images.as_mut_ptr(),
                stream.raw(),
            )
        };
        drop(current);
        self.data.clear();
        self.lengths.clear();
        self.images.clear();
        done("nvjpegDecodeBatched", status).map_err(|why| match OF_ENGINES.contains(&status) {
            true => Failure::Engines(why),
            false => Failure::Pictures(why),
        })
    }

    fn check(&self, pictures: &[Coded<'_>], memory: &DeviceBuffer) -> Result<()> {
        let refuse = |what| Err(Error::Device { what });
        if pictures.len() > SUBMISSION {
            return refuse(format!(
                "{} pictures for engines that were opened for {SUBMISSION}",
                pictures.len(),
            ));
        }
        let (most_width, most_height) = self.largest;
        for (i, picture) in pictures.iter().enumerate() {
            let ((width, height), frame) = (picture.size, picture.frame);
            let end = (height as usize)
                .checked_mul(frame.pitch)
                .and_then(|bytes| bytes.checked_add(frame.at));
            let fits = frame.stride() >= width && end.is_some_and(|end| end <= memory.len());
            if width > most_width || height > most_height || picture.bytes.is_empty() || !fits {
                return refuse(format!(
                    "picture {i}, of {width} x {height} in {} bytes, is none for engines of \
                     {most_width} x {most_height}, or does not lie in its frame",
                    picture.bytes.len()
                ));
            }
        }
        Ok(())
    }
}

fn number(n: usize) -> Result<c_int> {
    c_int::try_from(n).map_err(|_| Error::config(format!("{n} is no number for engines")))
}

impl Drop for Engines {
    fn drop(&mut self) {
        if !self.context.is_ours() || self.context.check().is_err() {
            return;
        }
        let Ok(_current) = self.context.enter() else {
            return;
        };
        let give_back = |name, made: bool, call: &dyn Fn() -> c_int| {
            if made && let Err(e) = done(name, call()) {
                tracing::warn!("{e}");
            }
        };
        let (library, handle) = (&self.library, self.handle);
        for state in &self.lanes {
            // SAFETY: made in `State::make`, given back here only; nothing is under way, by the
            // contract of `decode`.
            give_back("nvjpegJpegStateDestroy", !state.raw.is_null(), &|| unsafe {
                (library.state_destroy)(state.raw)
            });
        }
        // SAFETY: made in `make`, given back here only, behind its states.
        give_back("nvjpegDestroy", !handle.is_null(), &|| unsafe {
            (library.destroy)(handle)
        });
    }
}

/// Decodes a batch by submissions, and finds those of it that fail alone too: which, and
/// why. `decode` is given a part of the batch. `in_a_row`: pictures that have failed since one
/// was decoded. It goes on from one batch to the next, so that the verdict does not depend on how
/// pictures are cut into batches.
///
/// # Errors
/// When it is the engines that fail: they say so, or so many pictures in a row do.
pub(super) fn decode_all<T>(
    batch: &[T],
    in_a_row: &mut usize,
    decode: &mut dyn FnMut(&[T]) -> std::result::Result<(), Failure>,
) -> Result<Vec<(usize, Error)>> {
    let mut culprits = Vec::new();
    // The next part is last.
    let mut parts: Vec<_> = std::iter::once(0..batch.len()).collect();
    while let Some(part) = parts.pop() {
        let why = match decode(&batch[part.clone()]) {
            Ok(()) => {
                if !part.is_empty() {
                    *in_a_row = 0;
                }
                continue;
            }
            Err(Failure::Engines(why)) => return Err(why),
            Err(Failure::Pictures(why)) => why,
        };
        if part.len() > 1 {
            let middle = part.start + part.len() / 2;
            parts.push(middle..part.end);
            parts.push(part.start..middle);
            continue;
        }
        if *in_a_row == MOST_CULPRITS {
            return Err(why);
        }
        *in_a_row += 1;
        culprits.push((part.start, why));
    }
    Ok(culprits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which are found, none when it is the engines, and how many submissions that took.
    fn failing(bad: &[usize], batch: usize) -> (Option<Vec<usize>>, usize) {
        failing_behind(&mut 0, bad, 0..batch)
    }

    fn failing_behind(
        in_a_row: &mut usize,
        bad: &[usize],
        batch: std::ops::Range<usize>,
    ) -> (Option<Vec<usize>>, usize) {
        let numbers: Vec<usize> = batch.collect();
        let mut calls = 0;
        let found = decode_all(&numbers, in_a_row, &mut |part| {
            calls += 1;
            match part.iter().find(|n| bad.contains(n)) {
                Some(n) => Err(Failure::Pictures(Error::config(n.to_string()))),
                None => Ok(()),
            }
        });
        let found = found.ok().map(|all| {
            let one = |(at, why): (usize, Error)| {
                let number = numbers[at].to_string();
                assert_eq!(why.to_string(), Error::config(number).to_string());
                at
            };
            all.into_iter().map(one).collect()
        });
        (found, calls)
    }

    #[test]
    fn who_makes_a_batch_fail_is_found() {
        assert_eq!(failing(&[], 64), (Some(vec![]), 1));
        assert_eq!(failing(&[], 0).0, Some(vec![]));
        let spread = vec![1, 9, 17, 25, 33, 41, 49];
        for bad in [vec![0], vec![63], vec![10, 11], vec![5, 20, 21, 40], spread] {
            let (found, calls) = failing(&bad, 64);
            assert_eq!(found.as_ref(), Some(&bad));
            assert!(calls <= 1 + 12 * bad.len(), "{calls} calls for {bad:?}");
        }
        assert_eq!(failing(&[0], 1), (Some(vec![0]), 1));
        assert_eq!(failing(&[1], 2).0, Some(vec![1]));
    }

    #[test]
    fn engines_that_fail_are_not_the_pictures_fault() {
        for batch in [5, 64] {
            let all: Vec<usize> = (0..batch).collect();
            let (found, calls) = failing(&all, batch);
            assert_eq!(found, None, "{batch}");
            assert!(calls < 24, "{calls}");
        }
        let mut calls = 0;
        let of_engines = decode_all(&[1, 2, 3], &mut 0, &mut |_| {
            calls += 1;
            Err(Failure::Engines(Error::config("gone")))
        });
        assert!(of_engines.is_err() && calls == 1);
    }

    #[test]
    fn the_verdict_does_not_depend_on_how_pictures_are_cut() {
        for (bad, all_fail) in [(vec![3, 4, 5, 6], false), (vec![3, 4, 5, 6, 7], true)] {
            for cut in [1, 2, 3, 5, 16] {
                let (mut in_a_row, mut found) = (0, Some(Vec::new()));
                for begin in (0..16).step_by(cut) {
                    let batch = begin..(begin + cut).min(16);
                    let here: Vec<usize> = (bad.iter().copied())
                        .filter(|n| batch.contains(n))
                        .collect();
                    let (culprits, _) = failing_behind(&mut in_a_row, &here, batch);
                    found = found.zip(culprits).map(|(mut found, culprits)| {
                        found.extend(culprits.iter().map(|at| begin + at));
                        found
                    });
                    if found.is_none() {
                        break;
                    }
                }
                assert_eq!(found.is_none(), all_fail, "{bad:?} by {cut}");
                assert!(
                    all_fail || found.as_ref() == Some(&bad),
                    "{found:?} by {cut}"
                );
            }
        }
    }
}

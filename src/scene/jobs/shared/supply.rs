//! Images that a job needs are in the store: those that are not yet are decoded by whoever
//! needs them first.
//!
//! Runs in workers, and in the consumer with zero workers. Never in here: which images are
//! needed, and for what.

use std::os::fd::{OwnedFd, RawFd};

use crate::data::index::Index;
use crate::device::jpeg_part::PartLimits;
use crate::error::{Error, Result, SampleFault};
use crate::jobs::input::InputMode;
use crate::jobs::sample;
use crate::pool::worker::meter::Meter;
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::pixels::PixelMaker;
use crate::scene::jobs::shared::spec::{DESCRIPTORS, StoreSpec, name_image};
use crate::scene::store::{Holding, Patience, Pictures};

/// A store, and how its images are decoded.
pub(crate) struct Supply {
    pub(crate) frames: StoredFrames,
    pub(crate) pictures: Pictures,
    index: Index,
    maker: PixelMaker,
    spec: StoreSpec,
    left: Vec<u32>,
    one: Vec<u32>,
    /// Every image is known to be there.
    complete: bool,
}

impl Supply {
    /// Out of the descriptors of [`StoreMemory`](crate::scene::jobs::shared::spec::StoreMemory).
    ///
    /// # Errors
    /// Descriptors of something else.
    pub(crate) fn open(
        spec: &StoreSpec,
        mode: InputMode,
        descriptors: [OwnedFd; DESCRIPTORS],
    ) -> Result<Self> {
        let [index, frames, control, content] = descriptors;
        let index = Index::from_fd(index)?;
        let frames = StoredFrames::from_fd(frames)?;
        let places = frames.places.clone();
        let pictures = Pictures::open(places, spec.holding, control, content, spec.key)?;
        if index.len() != frames.files() {
            return Err(Error::protocol(
                "a job came with another number of files than of frames",
            ));
        }
        Ok(Self {
            frames,
            pictures,
            index,
            maker: PixelMaker::new(spec, mode)?,
            spec: *spec,
            left: Vec::new(),
            one: Vec::new(),
            complete: false,
        })
    }

    /// Sees to it that `images` are in the store. Their order changes.
    ///
    /// # Errors
    /// An image that cannot be decoded, named by [`name_image`].
    pub(crate) fn see_to(
        &mut self,
        images: &mut Vec<u32>,
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        // First what nobody is at, then what others should have made by now.
        for patience in [Patience::Skip, Patience::Wait] {
            let Self {
                index,
                frames,
                pictures,
                maker,
                left,
                ..
            } = self;
            left.clear();
            for &image in images.iter() {
                let number = image as usize;
                // The file that a fault is of: the image, or its depths.
                let mut at_fault = u64::from(image);
                let make =
                    |out: &mut [u8]| maker.make(index, frames, number, out, &mut at_fault, meter);
                let made = pictures.make(number, patience, make);
                if !made.map_err(|fault| name_image(u64::from(image), at_fault, &fault))? {
                    left.push(image);
                }
            }
            std::mem::swap(images, left);
        }
        Ok(())
    }

    /// Sees to it that one image is in the store. Once all are it gives back what decoding
    /// took.
    ///
    /// # Errors
    /// As [`Supply::see_to`].
    pub(crate) fn fetch(
        &mut self,
        image: u32,
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        if self.complete {
            return Ok(());
        }
        let mut wanted = std::mem::take(&mut self.one);
        wanted.clear();
        wanted.push(image);
        let done = self.see_to(&mut wanted, meter);
        self.one = wanted;
        done?;
        let images = self.frames.frames.len();
        self.complete = (0..images).all(|image| self.pictures.is_there(image));
        if self.complete {
            self.rest();
        }
        Ok(())
    }

    /// Writes the coded picture of an image that is not in the store, for a device that decodes
    /// within `limits`: how many bytes. None where the image is to be fetched.
    pub(crate) fn write_coded(
        &mut self,
        image: u32,
        limits: &PartLimits,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Option<usize> {
        let image = image as usize;
        if self.pictures.is_there(image) || !self.frames.is_as_in_file(image) {
            return None;
        }
        let of = (&self.index, &self.frames);
        self.maker.write_coded(of, image, limits, out, meter)
    }

    /// Every image is there: gives back what decoding took.
    pub(crate) fn rest(&mut self) {
        self.maker.rest();
    }

    /// The most that decoding takes beside the store, bytes.
    pub(crate) fn memory_limit(&self) -> u64 {
        let buffer = match self.spec.holding {
            Holding::Memory => 0,
            Holding::File => self.frames.places.largest(),
        };
        // Colours and alpha are decoded one after the other.
        let buffer = match self.frames.alpha {
            true => buffer.saturating_add(2 * self.frames.places.largest()),
            false => buffer,
        };
        self.spec
            .limits
            .max_scratch
            .saturating_add(sample::KEEP as u64)
            .saturating_add(sample::BESIDE_SCRATCH)
            .saturating_add(buffer)
    }

    /// Opens for this process, a worker, what it cannot open later.
    ///
    /// # Errors
    /// A system that refuses.
    pub(crate) fn settle_in(&mut self) -> Result<()> {
        self.pictures.settle_in()
    }

    /// Of the store: they stay open in workers.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.pictures.open_files()
    }
}

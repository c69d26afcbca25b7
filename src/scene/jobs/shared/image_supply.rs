//! Images that a job needs are in the store: those that are not yet are decoded by whoever
//! needs them first.
//!
//! Runs in workers, and in the consumer with zero workers. Never in here: which images are
//! needed, and for what.

use std::os::fd::{OwnedFd, RawFd};

use crate::data::index::Index;
use crate::device::jpeg_part::PartLimits;
use crate::error::{Error, Result, SampleFault};
use crate::jobs::sample;
use crate::jobs::sample_input::InputMode;
use crate::pool::worker::meter::StageMeter;
use crate::scene::image_store::{ImageStore, StoreBacking, WaitMode};
use crate::scene::jobs::shared::decode_image::SceneDecoder;
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::spec::{DESCRIPTORS, StoreSpec, tag_fault};

/// A store, and how its images are decoded.
pub(crate) struct ImageSupply {
    pub(crate) frames: StoredFrames,
    pub(crate) store: ImageStore,
    index: Index,
    maker: SceneDecoder,
    spec: StoreSpec,
    left: Vec<u32>,
    one: Vec<u32>,
    /// Every image is known to be there.
    complete: bool,
}

impl ImageSupply {
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
        let pictures = ImageStore::open(places, spec.holding, control, content, spec.key)?;
        if index.len() != frames.files() {
            return Err(Error::protocol(
                "a job came with another number of files than of frames",
            ));
        }
        Ok(Self {
            frames,
            store: pictures,
            index,
            maker: SceneDecoder::new(spec, mode)?,
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
    pub(crate) fn ensure_images(
        &mut self,
        images: &mut Vec<u32>,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        // First what nobody is at, then what others should have made by now.
        for patience in [WaitMode::Skip, WaitMode::Wait] {
            let Self {
                index,
                frames,
                store: pictures,
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
                    |out: &mut [u8]| maker.decode(index, frames, number, out, &mut at_fault, meter);
                let made = pictures.ensure_image(number, patience, make);
                if !made.map_err(|fault| tag_fault(u64::from(image), at_fault, &fault))? {
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
    /// As [`ImageSupply::see_to`].
    pub(crate) fn ensure_image(
        &mut self,
        image: u32,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        if self.complete {
            return Ok(());
        }
        let mut wanted = std::mem::take(&mut self.one);
        wanted.clear();
        wanted.push(image);
        let done = self.ensure_images(&mut wanted, meter);
        self.one = wanted;
        done?;
        let images = self.frames.frames.len();
        self.complete = (0..images).all(|image| self.store.is_present(image));
        if self.complete {
            self.release_decoders();
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
        meter: &mut StageMeter,
    ) -> Option<usize> {
        let image = image as usize;
        if self.store.is_present(image) || !self.frames.is_as_in_file(image) {
            return None;
        }
        let of = (&self.index, &self.frames);
        self.maker.write_coded(of, image, limits, out, meter)
    }

    /// Every image is there: gives back what decoding took.
    pub(crate) fn release_decoders(&mut self) {
        self.maker.release_decoders();
    }

    /// The most that decoding takes beside the store, bytes.
    pub(crate) fn memory_limit(&self) -> u64 {
        let buffer = match self.spec.holding {
            StoreBacking::Memory => 0,
            StoreBacking::File => self.frames.places.largest(),
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
    pub(crate) fn enter_worker(&mut self) -> Result<()> {
        self.store.enter_worker()
    }

    /// Of the store: they stay open in workers.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.store.open_files()
    }
}

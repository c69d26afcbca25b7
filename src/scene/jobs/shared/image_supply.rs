//! Ensures that the images of a job are in the image store. The first process that needs an image
//! decodes it.
//!
//! Runs in workers, and in the consumer with zero workers. Not here: which images a job needs.

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

/// An image store, and how its images are decoded.
pub(crate) struct ImageSupply {
    pub(crate) frames: StoredFrames,
    pub(crate) store: ImageStore,
    index: Index,
    maker: SceneDecoder,
    spec: StoreSpec,
    left: Vec<u32>,
    one: Vec<u32>,
    /// Whether every image is known to be in the store.
    complete: bool,
}

impl ImageSupply {
    /// Opens the descriptors of [`StoreMemory`](crate::scene::jobs::shared::spec::StoreMemory).
    ///
    /// # Errors
    /// Other descriptors.
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
                "the index of a job has a different number of files than its frames",
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

    /// Ensures that `images` are in the image store. Changes their order.
    ///
    /// # Errors
    /// An image that cannot be decoded, named by [`tag_fault`].
    pub(crate) fn ensure_images(
        &mut self,
        images: &mut Vec<u32>,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        // First the images that no process decodes, then those that others should have decoded by
        // now.
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
                // The file that a fault is about: the image, or its depths.
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

    /// Ensures that one image is in the image store. Frees the decoders when all images are.
    ///
    /// # Errors
    /// Like [`ImageSupply::ensure_images`].
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

    /// Writes the coded image for a device that decodes within `limits`, if the image is not in the
    /// store. Returns the number of bytes, or `None` if the image must be decoded here.
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

    /// Frees the decoders. Every image must be in the store.
    pub(crate) fn release_decoders(&mut self) {
        self.maker.release_decoders();
    }

    /// Maximum memory of decoding without the image store, in bytes.
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

    /// Opens files that this process, a worker, cannot open later.
    ///
    /// # Errors
    /// A system call that fails.
    pub(crate) fn enter_worker(&mut self) -> Result<()> {
        self.store.enter_worker()
    }

    /// Descriptors of the store. They stay open in workers.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.store.open_files()
    }
}

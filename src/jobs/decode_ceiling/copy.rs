//! The copy alone, as an upper bound for a loader of raw images. It copies images in the order of a
//! run, from files that stay mapped, into memory of a ring's size.
//!
//! Only runs in the processes of the ceiling.

use memmap2::{Advice, MmapMut};

use crate::data::index::Index;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::decode_ceiling::file_maps::FileMaps;
use crate::picture::FileFormat;
use crate::picture::npy;

pub(crate) struct CopyWork {
    maps: FileMaps,
    /// The destination of the next image. The buffer is circular, so it is no nearer to the
    /// processor's caches than a slot.
    to: MmapMut,
    at: usize,
}

impl CopyWork {
    /// `room`: bytes of the ring.
    ///
    /// # Errors
    /// An image that is not raw, or larger than `room`; boxes, since whole images are copied.
    pub(crate) fn new(index: &Index, room: u64) -> Result<Self> {
        if index.has_boxes() {
            return Err(Error::config(
                "the ceiling `copy` takes whole images, and this data set has `boxes`: measure \
                 another ceiling, or remove them",
            ));
        }
        let maps = FileMaps::of(index, FileFormat::Npy)?;
        let too_large = || Error::config(format!("the ceiling `copy` cannot map {room} bytes"));
        let len = usize::try_from(room).map_err(|_| too_large())?;
        let mut to = MmapMut::map_anon(len.max(1))
            .map_err(|e| Error::io("map memory for the ceiling", e))?;
        // The same page size as the ring.
        let _ = to.advise(Advice::NoHugePage);
        to.fill(1);
        Ok(Self { maps, to, at: 0 })
    }

    pub(crate) fn copy(&mut self, id: u64) -> Result<(), SampleFault> {
        let file = self.maps.bytes(id);
        let pixels = npy::pixels(file)?;
        if self.at + pixels.len() > self.to.len() {
            self.at = 0;
        }
        let to = self.to.get_mut(self.at..self.at + pixels.len());
        let to = to.ok_or_else(|| {
            SampleFault::new(FaultKind::TooLarge, "the image is larger than the ring")
        })?;
        to.copy_from_slice(pixels);
        self.at += pixels.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::ListOptions;

    #[test]
    fn boxes_are_refused_since_whole_pictures_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("list.txt");
        std::fs::write(&file, "a.npy 0\n").unwrap();
        let boxes = dir.path().join("boxes");
        std::fs::create_dir(&boxes).unwrap();
        std::fs::write(boxes.join("a.txt"), "1\n0 0 2 2\n").unwrap();
        let options = ListOptions {
            boxes: Some(boxes),
            ..ListOptions::default()
        };
        let (index, _) = Index::list(&file, &options).unwrap();
        match CopyWork::new(&index, 1 << 20) {
            Ok(_) => panic!("it is not refused"),
            Err(e) => assert!(e.is_usage() && e.to_string().contains("`boxes`"), "{e}"),
        }
    }
}

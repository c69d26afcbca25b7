//! Images that a process holds before it forks: what a loader costs that
//! decodes first and makes its workers later.
//!
//! In a process made for this comparison, which has one thread. Nothing of the
//! loader itself holds whole images.

use std::io::IoSlice;

use nix::sys::uio::{RemoteIoVec, process_vm_writev};
use nix::unistd::Pid;

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::jobs::bare::WholeImages;

const PAGE: usize = 4096;

/// Pages written by one call; the kernel takes 1,024 at most.
const PAGES_A_CALL: usize = 512;

/// Every image of a data set as RGB8, in private memory of this process.
#[derive(Debug)]
pub struct LoadedImages {
    images: Vec<Vec<u8>>,
    failed: u64,
}

impl LoadedImages {
    /// Decodes all images of `index`; those that cannot be read or do not decode
    /// are left out. `room` bounds the bytes of all together.
    ///
    /// # Errors
    /// When the images take more than `room` bytes, before they do.
    pub fn decode(index: &Index, room: u64) -> Result<Self> {
        let mut decoder = WholeImages::new()?;
        let mut this = Self {
            images: Vec::new(),
            failed: 0,
        };
        let mut left = room;
        for id in 0..index.len() {
            match decoder.decode(index, id, left) {
                Ok(image) => {
                    left -= image.len() as u64;
                    this.images.push(image);
                }
                Err(e) if e.is_sample() => this.failed += 1,
                Err(e) => return Err(e),
            }
        }
        Ok(this)
    }

    /// Width x height x 3, summed.
    pub fn bytes(&self) -> u64 {
        self.images.iter().map(|i| i.len() as u64).sum()
    }

    /// Images that were decoded.
    pub fn count(&self) -> u64 {
        self.images.len() as u64
    }

    /// Images that could not be read or did not decode.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Writes one byte of each page of the images in process `pid`, a forked
    /// copy of this one, as if it had done so itself: the byte that is there
    /// already. The kernel then gives it pages of its own, as it does to a
    /// Python worker that counts references to what it inherited.
    ///
    /// # Errors
    /// When the process is gone, or this one may not trace it.
    pub fn write_in_copy(&self, pid: i32) -> Result<()> {
        for image in &self.images {
            let mut starts = page_starts(image.as_ptr() as usize, image.len()).peekable();
            while starts.peek().is_some() {
                let chunk: Vec<usize> = starts.by_ref().take(PAGES_A_CALL).collect();
                let own = chunk.iter().map(|&at| IoSlice::new(&image[at..=at]));
                let own: Vec<_> = own.collect();
                let remote = chunk.iter().map(|&at| RemoteIoVec {
                    base: image.as_ptr() as usize + at,
                    len: 1,
                });
                let remote: Vec<_> = remote.collect();
                let written = process_vm_writev(Pid::from_raw(pid), &own, &remote)
                    .map_err(|e| Error::io(format!("write into pages of worker {pid}"), e))?;
                if written != chunk.len() {
                    return Err(Error::worker(format!(
                        "worker {pid} has no copy of the images: {written} of {} pages were written",
                        chunk.len()
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Offset of the first byte in each page that `len` bytes at `address` lie on.
fn page_starts(address: usize, len: usize) -> impl Iterator<Item = usize> {
    let first_boundary = address.next_multiple_of(PAGE) - address;
    let inner = (first_boundary..len).step_by(PAGE);
    (0..len.min(first_boundary).min(1)).chain(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_written_once() {
        let starts = |address, len| page_starts(address, len).collect::<Vec<_>>();
        assert_eq!(starts(0, 2 * PAGE), [0, PAGE]);
        assert_eq!(starts(0, 2 * PAGE + 1), [0, PAGE, 2 * PAGE]);
        assert_eq!(starts(PAGE - 1, 2), [0, 1]);
        assert_eq!(starts(PAGE - 1, 1), [0]);
        assert_eq!(starts(16, PAGE), [0, PAGE - 16]);
        assert_eq!(starts(16, 0), [0usize; 0]);
    }
}

//! Where the bytes of samples are: in their own files, or in shards. Also whether a shard is
//! unchanged since its index was made.
//!
//! Workers locate samples. The consumer locates samples too, if it reads headers or has zero
//! workers.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::data::index::binary_form::StoredForm;
use crate::data::index::{Index, SampleLocation};
use crate::data::packed_page::{PackedPage, PageCodec};
use crate::data::pixel_shape::PixelShape;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::sys::regular_file::{FileStamp, keeps_inodes, keeps_inodes_of, open_stamped};

impl Index {
    /// Whether samples are members of tars.
    pub(crate) fn has_tars(&self) -> bool {
        self.shards() > 0
            && !self.is_in_memory()
            && self.page(0).is_none()
            && self.pixels(0).is_none()
            && self.shard_path(0).extension().is_some_and(|e| e == "tar")
    }

    /// The number of shards that hold the samples. 0 if samples are files.
    pub fn shards(&self) -> u64 {
        self.layout.shards()
    }

    /// The number of files that hold the shards. It is lower than the number of shards if each
    /// shard is an image of a CIFAR batch. 0 if samples are files.
    pub fn shard_files(&self) -> u64 {
        let is_picture =
            |page: PackedPage| matches!(page.codec, PageCodec::Planar | PageCodec::PlanarText);
        if !self.page(0).is_some_and(is_picture) {
            return self.shards();
        }
        let names = (0..self.shards()).map(|n| self.layout.shard_path(self.sealed.bytes(), n));
        names.collect::<HashSet<_>>().len() as u64
    }

    /// The number of samples of every shard, if all have the same number and the last one may have
    /// fewer. Otherwise their mean, rounded up. `None` if samples are files.
    pub(crate) fn samples_per_shard(&self) -> Option<u64> {
        let (samples, shards) = (self.len(), self.shards());
        if shards == 0 {
            return None;
        }
        let shard = |id| self.part(id).map_or(u64::MAX, |part| part.shard);
        // Shards are consecutive. Finds the number of samples in the first one.
        let (mut first, mut behind) = (0, samples);
        while first < behind {
            let middle = first + (behind - first) / 2;
            match shard(middle) {
                0 => first = middle + 1,
                _ => behind = middle,
            }
        }
        let is_begin = |number: u64| {
            let id = number.saturating_mul(first);
            id < samples && shard(id) == number && shard(id - 1) == number - 1
        };
        let all_begin = first > 0 && (1..shards).all(is_begin);
        let last = samples.saturating_sub((shards - 1).saturating_mul(first));
        Some(match all_begin && last <= first {
            true => first,
            false => samples.div_ceil(shards).max(1),
        })
    }

    /// The full path of a shard.
    pub fn shard_path(&self, number: u64) -> PathBuf {
        let path = self.layout.shard_path(self.sealed.bytes(), number);
        self.root().join(OsStr::from_bytes(path))
    }

    /// The full path of the file that holds the bytes of a sample: its own file, or its shard.
    pub fn file(&self, id: u64) -> PathBuf {
        match self.part(id) {
            Some(part) => self.shard_path(part.shard),
            None => self.path(id),
        }
    }

    /// The shard of a sample and its byte range there. `None` if samples are files, or if `id` is
    /// not less than [`Index::len`].
    pub(crate) fn part(&self, id: u64) -> Option<SampleLocation> {
        self.layout.part(self.sealed.bytes(), id)
    }

    /// The packed page that a shard is. Its samples are parts of the unpacked page. `None` if the
    /// shard is a file.
    pub(crate) fn page(&self, number: u64) -> Option<PackedPage> {
        match self.form(number)? {
            StoredForm::Page(page) => Some(page),
            StoredForm::Pixels(_) => None,
        }
    }

    /// The shape of a shard's samples, if they are raw pixels.
    pub(crate) fn pixels(&self, number: u64) -> Option<PixelShape> {
        match self.form(number)? {
            StoredForm::Pixels(shape) => Some(shape),
            StoredForm::Page(_) => None,
        }
    }

    fn form(&self, number: u64) -> Option<StoredForm> {
        self.layout.form(self.sealed.bytes(), number)
    }

    /// The bytes of a sample in memory. `None` if samples are in files.
    pub(crate) fn bytes_in_memory(&self, id: u64) -> Option<&[u8]> {
        let range = self.part(id)?.range();
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        self.memory()?.bytes().get(range)
    }

    /// Most bytes that unpacking a page takes, or those of the largest picture of raw pixels. 0 if
    /// there are neither.
    ///
    /// The scan that made this index has read what decoders need. Another process, or a saved index,
    /// knows the lengths of pages only: there this is the most that such pages may take.
    pub(crate) fn largest_page(&self) -> u64 {
        if let Some(bytes) = self.page_bytes {
            return bytes;
        }
        let forms = (0..self.shards()).filter_map(|number| self.form(number));
        forms.map(|form| form.most_bytes()).max().unwrap_or(0)
    }

    /// Packed bytes of the largest page. 0 if there are no packed pages.
    pub(crate) fn largest_packed(&self) -> u64 {
        let pages = (0..self.shards()).filter_map(|number| self.page(number));
        pages.map(|page| page.packed).max().unwrap_or(0)
    }

    /// The full path, as `open` expects it, of the file that holds the bytes of a sample, and their
    /// range in it. `None` means the whole file. The path is written to `buf`, which allocates only
    /// to grow to the longest path.
    ///
    /// # Errors
    /// The path contains a zero byte. A sealed index has no such path.
    pub(crate) fn locate<'a>(
        &self,
        id: u64,
        buf: &'a mut Vec<u8>,
    ) -> Result<(&'a CStr, Option<Range<u64>>), SampleFault> {
        let bytes = self.sealed.bytes();
        let part = self.part(id);
        let path = match part {
            Some(part) => self.layout.shard_path(bytes, part.shard),
            None => self.layout.path(bytes, id),
        };
        buf.clear();
        if !path.starts_with(b"/") {
            let root = self.layout.root(bytes);
            buf.extend_from_slice(root);
            if !root.ends_with(b"/") {
                buf.push(b'/');
            }
        }
        buf.extend_from_slice(path);
        buf.push(0);
        let path = CStr::from_bytes_with_nul(buf)
            .map_err(|_| FaultKind::Unreadable.fault("has a zero byte in its path"))?;
        Ok((path, part.map(SampleLocation::range)))
    }

    /// Opens a shard. `path` is its path, as [`Index::locate`] writes it.
    ///
    /// # Errors
    /// The shard cannot be opened, or it has changed. A changed file would have other samples under
    /// these ids.
    pub(crate) fn open_shard(
        &self,
        number: u64,
        path: &CStr,
    ) -> Result<(File, usize), SampleFault> {
        let (fd, found) = open_stamped(path).map_err(|fault| SampleFault {
            reason: format!("its shard {}", fault.reason),
            ..fault
        })?;
        if let Some(known) = self.layout.stamp(self.sealed.bytes(), number)
            && let Some(how) = known.difference(&found, || keeps_inodes_of(&fd))
        {
            return Err(FaultKind::Unreadable.fault(format!(
                "its shard changed since its index was made ({how}): start the run again"
            )));
        }
        let len = usize::try_from(found.bytes).unwrap_or(usize::MAX);
        Ok((File::from(fd), len))
    }

    /// The recorded bytes of all shards, and of the largest one. A shard without a fingerprint
    /// counts as 0. `None` if samples are files.
    pub(crate) fn shard_bytes(&self) -> Option<(u64, u64)> {
        let stamp = |number| self.layout.stamp(self.sealed.bytes(), number);
        // A page is mapped only while it is unpacked, so it counts with its packed size.
        let bytes = (0..self.shards()).map(|number| match self.page(number) {
            Some(page) => page.packed,
            None => stamp(number).map_or(0, |s| s.bytes),
        });
        let largest = bytes.clone().max()?;
        Some((bytes.fold(0, u64::saturating_add), largest))
    }

    /// Checks that the shards are files on this machine. `what` states why they must be.
    ///
    /// # Errors
    /// The shards are in an object store.
    pub(crate) fn check_local(&self, what: &str) -> Result<()> {
        match self.is_remote() {
            false => Ok(()),
            true => Err(Error::dataset(
                self.root(),
                format!(
                    "its shards are in an object store, and {what}: use a copy of them on \
                     this machine"
                ),
            )),
        }
    }

    /// Whether the shards are in an object store. A run downloads them, so nothing is recorded
    /// about their files.
    pub fn is_remote(&self) -> bool {
        self.shards() > 0
            && !self.is_in_memory()
            && (0..self.shards()).all(|n| self.layout.stamp(self.sealed.bytes(), n).is_none())
    }

    /// The current fingerprint of each shard.
    fn stamps(&self) -> Result<Vec<FileStamp>> {
        (0..self.shards())
            .map(|number| {
                let path = self.shard_path(number);
                FileStamp::of(&path).map_err(|e| match e.kind() {
                    ErrorKind::NotFound => Error::dataset(&path, "no such shard"),
                    _ => Error::io_at("look at", &path, e),
                })
            })
            .collect()
    }

    /// Checks that the shards of a saved index are unchanged.
    ///
    /// # Errors
    /// A shard is missing, has changed, or is too short for its samples.
    pub(crate) fn check_shards(&self) -> Result<()> {
        let stamps = self.stamps()?;
        for (number, now) in (0..).zip(&stamps) {
            let path = self.shard_path(number);
            let how = match self.layout.stamp(self.sealed.bytes(), number) {
                Some(known) => known.difference(now, || keeps_inodes(&path)),
                None => Some("its state was not recorded".to_owned()),
            };
            if let Some(how) = how {
                return Err(Error::dataset(
                    path,
                    format!(
                        "this shard changed since the index was saved ({how}): make the index again"
                    ),
                ));
            }
        }
        let lengths = stamps.iter().map(|stamp| stamp.bytes);
        self.check_ends(lengths).map_err(|what| {
            let what = format!("the saved index {what}: make the index again");
            Error::dataset(self.root(), what)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_shard_has_as_many_samples_as_all_but_the_last() {
        let of = |lengths: &[u64]| {
            let parts = |n: u64| (0..n).map(|i| (512 + i * 1024, 10)).collect::<Vec<_>>();
            let names: Vec<String> = (0..lengths.len()).map(|n| format!("{n}.tar")).collect();
            let shards = names.iter().zip(lengths);
            let shards: Vec<_> = shards.map(|(name, &n)| (name.as_str(), parts(n))).collect();
            Index::of_parts(Path::new("/cache"), &shards).samples_per_shard()
        };
        // The mean would be 9, and only the first shard would begin at a multiple of it.
        assert_eq!(of(&[10, 10, 10, 10, 1]), Some(10));
        assert_eq!(of(&[10, 10]), Some(10));
        assert_eq!(of(&[3]), Some(3));
        // Shards of different lengths: the mean, rounded up.
        assert_eq!(of(&[10, 9, 10]), Some(10));
        assert_eq!(of(&[4, 4, 9]), Some(6));
        assert_eq!(of(&[1, 2, 4, 4]), Some(3));
        assert_eq!(of(&[5, 0, 5]), Some(4));
    }

    #[test]
    fn samples_end_within_their_shards() {
        let parts = [
            ("a.tar", vec![(512, 100), (1536, 7)]),
            ("b.tar", vec![(512, 9)]),
        ];
        let index = Index::of_parts(Path::new("/data"), &parts);
        assert_eq!(index.check_ends([1543, 521].into_iter()), Ok(()));
        for lengths in [[1542, 521], [1543, 520]] {
            let what = index.check_ends(lengths.into_iter()).unwrap_err();
            assert!(what.contains("which has"), "{what}");
        }
    }
}

//! All images of an index, mapped and in the page cache.
//!
//! Only runs in the processes of the ceiling: no worker maps so much.

use std::ffi::CStr;
use std::fs::File;
use std::ops::Range;

use memmap2::Mmap;

use crate::data::index::Index;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::picture::FileFormat;
use crate::sys::regular_file::open_regular;

/// The bytes of each sample.
pub(crate) struct FileMaps {
    maps: Vec<Mmap>,
    /// Index of the map, and the range in it.
    places: Vec<(usize, Range<usize>)>,
}

impl FileMaps {
    /// Maps every file of the index, shards once, and reads it into the page cache, so that the
    /// ceiling does not measure the storage.
    ///
    /// # Errors
    /// A file that cannot be read; an image of another format.
    pub(crate) fn of(index: &Index, format: FileFormat) -> Result<Self> {
        let mut all = Self {
            maps: Vec::new(),
            places: Vec::new(),
        };
        let mut path = Vec::new();
        let mut shard = None;
        for id in 0..index.len() {
            let pushed = all.push(index, id, format, &mut path, &mut shard);
            pushed.map_err(|fault| {
                Error::config(format!(
                    "this ceiling only takes {format} files, and {} (sample {id}) {}: give a \
                     data set of readable {format} files",
                    index.path(id).display(),
                    fault.reason
                ))
            })?;
        }
        Ok(all)
    }

    pub(crate) fn bytes(&self, id: u64) -> &[u8] {
        let (map, range) = &self.places[id as usize];
        &self.maps[*map][range.clone()]
    }

    /// Samples of a shard follow each other. `shard`: that of the previous sample.
    fn push(
        &mut self,
        index: &Index,
        id: u64,
        format: FileFormat,
        path: &mut Vec<u8>,
        shard: &mut Option<u64>,
    ) -> Result<(), SampleFault> {
        let (path, located) = index.locate(id, path)?;
        let of = index.part(id).map(|part| part.shard);
        if of.is_some_and(|shard| index.page(shard).is_some()) {
            return Err(SampleFault::new(
                FaultKind::Unsupported,
                "lies in a compressed page of a Parquet file (`featherload cache build` makes \
                 shards of it)",
            ));
        }
        if of.is_some_and(|shard| index.pixels(shard).is_some()) {
            return Err(SampleFault::new(
                FaultKind::Unsupported,
                "is raw pixels of an array, which need no decoder",
            ));
        }
        if of.is_none() || *shard != of {
            self.maps.push(map_warm(index, of, path)?);
            *shard = of;
        }
        let map = self.maps.len() - 1;
        let range = match located {
            Some(range) => range.start as usize..range.end as usize,
            None => 0..self.maps[map].len(),
        };
        let bytes = self.maps[map].get(range.clone());
        let bytes = bytes
            .ok_or_else(|| SampleFault::new(FaultKind::Truncated, "is truncated in its shard"))?;
        if !FileFormat::of(bytes).is_ok_and(|found| found == format) {
            return Err(SampleFault::new(
                FaultKind::Unsupported,
                format!("is no {format}"),
            ));
        }
        self.places.push((map, range));
        Ok(())
    }
}

fn map_warm(index: &Index, shard: Option<u64>, path: &CStr) -> Result<Mmap, SampleFault> {
    let (file, len) = match shard {
        Some(number) => index.open_shard(number, path)?,
        None => open_regular(path).map(|(fd, len)| (File::from(fd), len))?,
    };
    if len == 0 {
        return Err(SampleFault::new(FaultKind::Truncated, "is empty"));
    }
    // SAFETY: in a separate process, which only decodes these bytes with decoders for untrusted
    // bytes. If a file is truncated now, SIGBUS ends that process, and with it the measurement.
    let map = unsafe { Mmap::map(&file) }
        .map_err(|e| SampleFault::new(FaultKind::Unreadable, format!("cannot be mapped: {e}")))?;
    let mut sum = 0u8;
    for page in map.chunks(4096) {
        sum ^= page[0];
    }
    std::hint::black_box(sum);
    Ok(map)
}

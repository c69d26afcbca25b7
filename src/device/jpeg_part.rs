//! A part of JPEGs for the kernels of `kernels/jpeg.cu`: where the arrays of each image are in
//! memory of fixed size, and the grids of the launches.
//!
//! In the consumer. Pure: no device.

#[cfg(test)]
mod tests;

use std::mem::size_of;

use serde::{Deserialize, Serialize};

use crate::picture::jpeg::gpu_rows::{
    CHAIN_UNITS, CodedPicture, KernelPicture, KernelResize, KernelSegment, MANY, MAX_ENTRIES,
    UNIT_BITS,
};

/// The kernels' names in their PTX, in launch order.
pub(crate) const KERNELS: [&str; 11] = [
    "jpeg_rows",
    "jpeg_tables",
    "jpeg_chains",
    "jpeg_scan",
    "jpeg_coefficients",
    "jpeg_dc",
    "jpeg_rgb",
    "jpeg_planes",
    "jpeg_colour",
    "jpeg_first_pass",
    "jpeg_second_pass",
];

/// Threads per block, as in `kernels/jpeg/types.cuh`.
pub(crate) const THREADS: u32 = 128;
pub(crate) const WIDE_THREADS: u32 = 512;
pub(crate) const COLOUR_THREADS: u32 = 256;

/// Blocks that copy an image's coded data, or the tables of a resize, as in
/// `kernels/jpeg/rows.cuh`.
pub(crate) const ROW_BLOCKS: u32 = 4;

/// Blocks per resized window, and threads per block, as in `kernels/jpeg/resize.cuh`.
pub(crate) const RESIZE_BLOCKS: u32 = 64;
pub(crate) const RESIZE_THREADS: u32 = 256;

/// Arrays begin at multiples of this.
const ALIGNMENT: usize = 256;

/// Bytes of coded data that a thread copies at once.
const ROW: usize = 16;

/// Bytes per unit of coded data: its state, four memos, and the destination of its blocks.
const STATE: usize = 8 + 4 * 8;
const UNIT: usize = STATE + 4 + 3 * 4;

/// Bytes per pixel of the window, in tenths: coefficients, infos, samples or none, RGB. Of usual
/// samplings 4:4:4 needs the most, 9.4. An unusual one may need more, and then fewer images fit.
const PIXEL_TENTHS: usize = 95;

/// Additional bytes per image, for its lookups.
const PICTURE: usize = 64 << 10;

/// Pixels around a window whose blocks are decoded, too.
const EDGE: usize = 16;

/// The limits of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartLimits {
    pub(crate) pictures: usize,
    /// Bytes of rows in total.
    pub(crate) rows: usize,
    /// Pixels of windows in total, counted by [`window_pixels`].
    pub(crate) pixels: usize,
}

/// The pixels that a window counts for: at full size, with the blocks at its edges. `block`: side
/// of a luma block at the window's scale.
pub(crate) fn window_pixels((width, height): (usize, usize), block: usize) -> usize {
    let side = |pixels: usize| pixels * 8 / block + 2 * EDGE;
    side(width) * side(height)
}

/// The memory of a part in bytes. All of it is on the device. `descriptors` and `errors` also exist
/// twice in pinned memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartMemory {
    pub(crate) rows: usize,
    pub(crate) descriptors: usize,
    pub(crate) work: usize,
    pub(crate) errors: usize,
}

impl PartLimits {
    /// Whether an image fits a part, on any device.
    pub(crate) fn hold(&self, coded: &CodedPicture) -> bool {
        JpegPart::new(*self, THREADS / 2).places(coded, 0).is_some()
    }

    /// The memory of a part within these limits.
    pub(crate) fn memory(&self) -> PartMemory {
        let segments = self.rows / 64 + self.pictures;
        // A block of the finest launch makes 1,024 pixels. Each image adds a few blocks.
        let blocks = self.pixels / 512 + 8 * self.pictures + self.rows / (UNIT_BITS as usize / 8);
        let units = 2 * self.rows / (UNIT_BITS as usize / 8) + self.pictures;
        let work = self.pixels * PIXEL_TENTHS / 10 + self.pictures * PICTURE + units * UNIT;
        PartMemory {
            rows: self.rows.next_multiple_of(ALIGNMENT),
            descriptors: self.pictures * size_of::<KernelPicture>()
                + segments * size_of::<KernelSegment>()
                + (2 * blocks).next_multiple_of(ALIGNMENT),
            work: work.next_multiple_of(ALIGNMENT),
            errors: 4 * self.pictures,
        }
    }
}

/// Dynamic shared memory of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSharedMemory {
    /// Bytes of lookups. Words begin after them.
    pub(crate) words_at: u32,
    pub(crate) bytes: u32,
}

/// Bytes of the words of coded data. One word is left out after every `1 << spread`.
fn spread(words: u32, spread: u32) -> u32 {
    4 * (words + (words >> spread) + 2).next_multiple_of(4)
}

impl BlockSharedMemory {
    /// For `jpeg_chains`, with `threads` threads per block and these entries.
    pub(crate) fn of_chains(threads: u32, entries: usize) -> Self {
        let words_at = 2 * entries as u32;
        let words = threads * CHAIN_UNITS * UNIT_BITS / 32 + 8;
        Self {
            words_at,
            bytes: words_at + spread(words, 6),
        }
    }

    /// For `jpeg_coefficients`.
    pub(crate) fn of_coefficients(entries: usize) -> Self {
        let words_at = 2 * entries as u32;
        Self {
            words_at,
            bytes: words_at + spread(THREADS * UNIT_BITS / 32 + 76, 4),
        }
    }

    /// Most shared memory of a block of chains, including what the kernel declares itself.
    pub(crate) fn most_of_chains(threads: u32) -> u32 {
        Self::of_chains(threads, MAX_ENTRIES + 4 * MANY).bytes + 256
    }
}

/// A launch whose blocks find their images in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MappedLaunch {
    /// Index of the first map entry.
    pub(crate) map: u32,
    pub(crate) blocks: u32,
}

/// The launches of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartLaunches {
    pub(crate) pictures: u32,
    /// Number of resized windows.
    pub(crate) resizes: u32,
    pub(crate) chains: MappedLaunch,
    pub(crate) coefficients: MappedLaunch,
    pub(crate) rgb: MappedLaunch,
    pub(crate) planes: MappedLaunch,
    pub(crate) colour: MappedLaunch,
    pub(crate) chain_shared: BlockSharedMemory,
    pub(crate) coefficient_shared: BlockSharedMemory,
    /// Bytes of states and memos, which are set to ones, then of sums and firsts.
    pub(crate) states: usize,
    pub(crate) sums: usize,
    pub(crate) firsts: usize,
    /// Offsets of segments, resizes and maps in the descriptors, and their end.
    pub(crate) segments_at: usize,
    pub(crate) resizes_at: usize,
    pub(crate) maps_at: usize,
    pub(crate) descriptors: usize,
}

/// The places of an image that fits a part.
#[derive(Debug)]
struct PicturePlaces {
    /// Offsets of tables, coefficients, infos, planes and RGB.
    arrays: [u64; 5],
    /// Blocks per launch.
    blocks: [u32; 5],
    /// Units and bytes of all images, this one included.
    units: usize,
    data: usize,
}

/// A part that is being filled.
#[derive(Debug)]
pub(crate) struct JpegPart {
    limits: PartLimits,
    memory: PartMemory,
    chain_threads: u32,
    pictures: Vec<KernelPicture>,
    segments: Vec<KernelSegment>,
    /// For some of the images, in order.
    resizes: Vec<KernelResize>,
    /// Maps of chains, coefficients, rgb, planes, colour.
    maps: [Vec<u16>; 5],
    units: usize,
    /// Bytes of the images' arrays.
    data: usize,
    entries: (usize, usize),
}

impl JpegPart {
    /// An empty part. `chain_threads`: threads per block of chains.
    pub(crate) fn new(limits: PartLimits, chain_threads: u32) -> Self {
        Self {
            limits,
            memory: limits.memory(),
            chain_threads,
            pictures: Vec::new(),
            segments: Vec::new(),
            resizes: Vec::new(),
            maps: Default::default(),
            units: 0,
            data: 0,
            entries: (0, 0),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.pictures.clear();
        self.segments.clear();
        self.resizes.clear();
        for map in &mut self.maps {
            map.clear();
        }
        (self.units, self.data, self.entries) = (0, 0, (0, 0));
    }

    pub(crate) fn pictures(&self) -> &[KernelPicture] {
        &self.pictures
    }

    /// Offset of each image's pixels from [`JpegPart::data_at`], in bytes, and bytes from row to
    /// row: of its window, or of the resized one.
    pub(crate) fn pixels(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut resizes = self.resizes.iter().peekable();
        (0..).zip(&self.pictures).map(move |(number, picture)| {
            match resizes.next_if(|resize| resize.picture == number) {
                Some(resize) => (resize.images[2] as usize, resize.pitch()),
                None => {
                    let (first, pitch) = picture.window();
                    (picture.rgb as usize + first, pitch)
                }
            }
        })
    }

    /// Adds an image. Its coded data are copied from `source`, a device address, to byte `at` of
    /// the part's. Both are multiples of 16. False if it does not fit. If the part is empty, it
    /// fits no part.
    pub(crate) fn add(&mut self, coded: &CodedPicture, source: u64, at: usize) -> bool {
        let is_aligned = source.is_multiple_of(ROW as u64) && at.is_multiple_of(ROW);
        let Some(places) = self.places(coded, at).filter(|_| is_aligned) else {
            return false;
        };
        let mut picture = coded.picture;
        (picture.source, picture.coded) = (source, at as u64);
        [
            picture.tables,
            picture.coefficients,
            picture.infos,
            picture.planes,
            picture.rgb,
        ] = places.arrays;
        if let Some(mut resize) = coded.resize {
            let tables = coded.coded_bytes() as u64;
            (resize.source, resize.tables) = (source + tables, at as u64 + tables);
            // When a resize runs, the coefficients are not read any more.
            let between = picture.coefficients;
            let result = between + resize.memory().0 as u64;
            resize.images = [picture.rgb, between, result];
            resize.picture = self.pictures.len() as u32;
            self.resizes.push(resize);
        }
        picture.first_unit = self.units as u32;
        picture.segment = self.segments.len() as u32;
        let firsts = [
            &mut picture.chain_block,
            &mut picture.piece_block,
            &mut picture.rgb_block,
            &mut picture.plane_block,
            &mut picture.colour_block,
        ];
        let number = self.pictures.len() as u16;
        for ((map, first), blocks) in self.maps.iter_mut().zip(firsts).zip(places.blocks) {
            *first = map.len() as u32;
            map.extend(std::iter::repeat_n(number, blocks as usize));
        }
        (self.units, self.data) = (places.units, places.data);
        let (chains, values) = picture.entries();
        self.entries = (self.entries.0.max(chains), self.entries.1.max(values));
        self.segments.extend_from_slice(&coded.segments);
        self.pictures.push(picture);
        true
    }

    /// The places of an image whose coded data begin at byte `at` of the part's. None if it does
    /// not fit.
    fn places(&self, coded: &CodedPicture, at: usize) -> Option<PicturePlaces> {
        let picture = &coded.picture;
        let needs = picture.memory();
        // The images of a resize use the memory of the coefficients.
        let resize = coded.resize.map_or(0, |resize| resize.memory().1);
        let lengths = [
            needs.tables,
            needs.coefficients.max(resize),
            needs.infos,
            needs.planes,
            needs.rgb,
        ];
        let mut data = self.data;
        let arrays = lengths.map(|length| {
            let place = data;
            data = (data + length).next_multiple_of(ALIGNMENT);
            place as u64
        });
        let units = self.units + picture.units as usize;
        let blocks = Self::blocks(picture, self.chain_threads);
        let before: usize = self.maps.iter().map(Vec::len).sum();
        let more: usize = blocks.iter().map(|&blocks| blocks as usize).sum();
        let descriptors = Self::descriptors(
            self.pictures.len() + 1,
            self.segments.len() + coded.segments.len(),
            self.resizes.len() + usize::from(coded.resize.is_some()),
            before + more,
        );
        let is_full = self.pictures.len() >= self.limits.pictures.min(usize::from(u16::MAX))
            || data + Self::unit_bytes(units) > self.memory.work
            || descriptors.3 > self.memory.descriptors
            || at + coded.data.len() > self.memory.rows;
        (!is_full).then_some(PicturePlaces {
            arrays,
            blocks,
            units,
            data,
        })
    }

    /// Blocks per launch.
    fn blocks(picture: &KernelPicture, chain_threads: u32) -> [u32; 5] {
        let kept = picture.kept().map(|blocks| blocks.div_ceil(THREADS));
        let [rgb, planes, colour] = match picture.is_whole() {
            true => [kept.take(1).sum(), 0, 0],
            false => [0, kept.sum(), picture.fours().div_ceil(COLOUR_THREADS)],
        };
        [
            picture.chains.div_ceil(chain_threads),
            picture.units.div_ceil(THREADS),
            rgb,
            planes,
            colour,
        ]
    }

    /// Bytes of the arrays of units.
    fn unit_bytes(units: usize) -> usize {
        (units * UNIT).next_multiple_of(ALIGNMENT)
    }

    /// Offsets of segments, resizes and maps, and the end of all.
    fn descriptors(
        pictures: usize,
        segments: usize,
        resizes: usize,
        blocks: usize,
    ) -> (usize, usize, usize, usize) {
        let segments_at = pictures * size_of::<KernelPicture>();
        let resizes_at = segments_at + segments * size_of::<KernelSegment>();
        let maps_at = resizes_at + resizes * size_of::<KernelResize>();
        (segments_at, resizes_at, maps_at, maps_at + 2 * blocks)
    }

    /// Writes the descriptors to the start of `to`.
    pub(crate) fn write(&self, to: &mut [u8]) -> Option<PartLaunches> {
        let blocks = self.maps.iter().map(Vec::len).sum();
        let (segments_at, resizes_at, maps_at, end) = Self::descriptors(
            self.pictures.len(),
            self.segments.len(),
            self.resizes.len(),
            blocks,
        );
        let to = to.get_mut(..end)?;
        to[..segments_at].copy_from_slice(bytemuck::cast_slice(&self.pictures));
        to[segments_at..resizes_at].copy_from_slice(bytemuck::cast_slice(&self.segments));
        to[resizes_at..maps_at].copy_from_slice(bytemuck::cast_slice(&self.resizes));
        let mut at = maps_at;
        let mut map = 0;
        let mapped = self.maps.each_ref().map(|blocks| {
            let next = at + 2 * blocks.len();
            to[at..next].copy_from_slice(bytemuck::cast_slice(blocks));
            let mapped = MappedLaunch {
                map,
                blocks: blocks.len() as u32,
            };
            at = next;
            map += mapped.blocks;
            mapped
        });
        let [chains, coefficients, rgb, planes, colour] = mapped;
        Some(PartLaunches {
            pictures: self.pictures.len() as u32,
            resizes: self.resizes.len() as u32,
            chains,
            coefficients,
            rgb,
            planes,
            colour,
            chain_shared: BlockSharedMemory::of_chains(self.chain_threads, self.entries.0),
            coefficient_shared: BlockSharedMemory::of_coefficients(self.entries.1),
            states: STATE * self.units,
            sums: 12 * self.units,
            firsts: 4 * self.units,
            segments_at,
            resizes_at,
            maps_at,
            descriptors: end,
        })
    }

    /// Offset of the DC sums in the work memory.
    #[cfg(test)]
    pub(crate) fn sums_at(&self) -> usize {
        STATE * self.units
    }

    /// Offset of the images' arrays in the work memory.
    pub(crate) fn data_at(&self) -> usize {
        Self::unit_bytes(self.units)
    }
}

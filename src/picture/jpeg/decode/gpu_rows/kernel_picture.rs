//! A picture in the layout of the kernels, byte for byte as in `kernels/jpeg/types.cuh`, and its
//! memory on the device.

use bytemuck::{Pod, Zeroable};

use super::super::frame::FrameHeader;
use super::super::geometry::{SamplePlane, UpsampleFilter, WindowGeometry};
use super::super::request::{DecodeRefusal, JpegWindow};
use super::codes::{KernelCodes, KernelTable};
use super::limits::MAX_ENTRIES;
use super::row_header::{CodedRowHeader, RowComponent, mcus};

/// Bits of a unit, and units of a chain.
pub(crate) const UNIT_BITS: u32 = 512;
pub(crate) const CHAIN_UNITS: u32 = 4;

/// Entries of a lookup that decodes several symbols at once.
pub(crate) const MANY: usize = 2048;

/// `Segment` of the kernels.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelSegment {
    start: u32,
    end: u32,
    unit: u32,
    chain: u32,
}

impl KernelSegment {
    /// A segment of the bytes from `start` to `end`, at least one.
    pub(super) fn new(start: u32, end: u32, unit: u32, chain: u32) -> Self {
        Self {
            start: 8 * start,
            end: 8 * end,
            unit,
            chain,
        }
    }

    /// The unit and the chain after this segment.
    pub(super) fn after(&self) -> (u32, u32) {
        let units = (self.end - self.start).div_ceil(UNIT_BITS);
        (self.unit + units, self.chain + units.div_ceil(CHAIN_UNITS))
    }
}

/// `Component` of the kernels.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelComponent {
    pub(crate) blocks: u32,
    left: u32,
    pub(crate) columns: u32,
    top: u32,
    pub(crate) rows: u32,
    h: u32,
    v: u32,
    pub(crate) side: u32,
    across: u32,
    down: u32,
    filter: u32,
    width: u32,
    height: u32,
    pub(crate) plane: u32,
    pub(crate) pitch: u32,
    dc: u32,
    ac: u32,
    pair: u32,
    factors: [i16; 64],
}

impl KernelComponent {
    fn new(plane: &SamplePlane) -> Self {
        let number = |n: usize| n as u32;
        Self {
            left: number(plane.columns.0),
            columns: number(plane.columns.1 - plane.columns.0 + 1),
            top: number(plane.rows.0),
            rows: number(plane.rows.1 - plane.rows.0 + 1),
            h: number(plane.h),
            v: number(plane.v),
            side: number(plane.side),
            across: number(plane.across),
            down: number(plane.down),
            filter: match plane.filter {
                UpsampleFilter::Repeat => 0,
                UpsampleFilter::Across => 1,
                UpsampleFilter::Down => 2,
                UpsampleFilter::Both => 3,
            },
            width: number(plane.width),
            height: number(plane.height),
            ..Self::zeroed()
        }
    }

    fn kept(&self) -> u32 {
        self.columns * self.rows
    }

    fn is_whole(&self) -> bool {
        (self.side, self.across, self.down) == (8, 1, 1)
    }
}

/// `Picture` of the kernels. Addresses are zero until the picture gets its place in a batch's
/// memory.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KernelPicture {
    pub(crate) source: u64,
    pub(crate) coded: u64,
    pub(crate) tables: u64,
    pub(crate) coefficients: u64,
    pub(crate) infos: u64,
    pub(crate) planes: u64,
    pub(crate) rgb: u64,
    coded_bytes: u32,
    pub(crate) first_unit: u32,
    pub(crate) units: u32,
    pub(crate) chains: u32,
    pub(crate) segment: u32,
    segments: u32,
    interval: u32,
    blocks: u32,
    last: u32,
    mcus: u32,
    count: u32,
    of_mcu: u32,
    order: u32,
    colour: u32,
    left: u32,
    x: u32,
    y: u32,
    width: u32,
    height: u32,
    pitch: u32,
    singles: u32,
    pairs: u32,
    pub(crate) chain_block: u32,
    pub(crate) piece_block: u32,
    pub(crate) rgb_block: u32,
    pub(crate) plane_block: u32,
    pub(crate) colour_block: u32,
    phases: u32,
    places: [u16; 12],
    table: [KernelTable; 4],
    component: [KernelComponent; 3],
}

/// Bytes of a picture's arrays on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureMemory {
    pub(crate) tables: usize,
    pub(crate) coefficients: usize,
    pub(crate) infos: usize,
    pub(crate) planes: usize,
    pub(crate) rgb: usize,
}

impl KernelPicture {
    pub(super) fn new(
        header: &CodedRowHeader,
        frame: &FrameHeader,
        plan: &WindowGeometry,
        window: JpegWindow,
        (units, chains): (u32, u32),
    ) -> Result<Self, DecodeRefusal> {
        let mut picture = Self::zeroed();
        let (across, down) = mcus(frame);
        let of_mcu = plan.blocks().len();
        picture.mcus = across as u32;
        picture.count = plan.planes().len() as u32;
        picture.of_mcu = of_mcu as u32;
        picture.blocks = (across * down * of_mcu) as u32;
        picture.interval = match frame.restart_interval {
            0 => picture.blocks,
            mcus => mcus.saturating_mul(of_mcu as u32).min(picture.blocks),
        };
        let rows = plan.mcu_rows.1;
        picture.last = ((rows * across + plan.last_mcus) * of_mcu) as u32;
        for (number, block) in plan.blocks().iter().enumerate() {
            picture.order |= (block.component as u32 & 3) << (2 * number);
            picture.places[number] = block.x as u16 | (block.y as u16) << 8;
        }
        (picture.units, picture.chains) = (units, chains);
        picture.colour = header.colour;
        picture.left = window.x as u32 & !7;
        (picture.x, picture.y) = (window.x as u32, window.y as u32);
        (picture.width, picture.height) = (window.w as u32, window.h as u32);
        picture.pitch = 3 * (picture.x + picture.width - picture.left).next_multiple_of(8);
        picture.set_tables(header)?;
        picture.set_components(header, plan)?;
        Ok(picture)
    }

    pub(super) fn with_coded(mut self, bytes: usize, segments: usize) -> Self {
        (self.coded_bytes, self.segments) = (bytes as u32, segments as u32);
        self
    }

    fn set_tables(&mut self, header: &CodedRowHeader) -> Result<(), DecodeRefusal> {
        let mut entries = 0;
        for number in 0..4 {
            let (is_dc, nth) = (number < 2, number & 1);
            if !header.uses(is_dc, nth) {
                continue;
            }
            let codes = if is_dc {
                header.dc[nth]
            } else {
                header.ac[nth]
            };
            let table = KernelTable::new(codes, is_dc, entries).ok_or(DecodeRefusal::Damaged)?;
            entries += table.entries();
            self.table[number] = table;
        }
        if entries > MAX_ENTRIES {
            return Err(DecodeRefusal::Unsupported);
        }
        self.singles = entries as u32;
        Ok(())
    }

    fn set_components(
        &mut self,
        header: &CodedRowHeader,
        plan: &WindowGeometry,
    ) -> Result<(), DecodeRefusal> {
        // Tables with different numbers and equal codes count as one.
        let codes = |row: &RowComponent| {
            let tables = (usize::from(row.dc) & 1, usize::from(row.ac) & 1);
            (&header.dc[tables.0], &header.ac[tables.1])
        };
        let mut pairs: Vec<(&KernelCodes, &KernelCodes)> = Vec::new();
        let mut phases = 1;
        let mut plane_bytes = 0usize;
        for (number, plane) in plan.planes().iter().enumerate() {
            let row = &header.components[number];
            let mut component = KernelComponent::new(plane);
            (component.dc, component.ac) = (u32::from(row.dc), 2 + u32::from(row.ac));
            component.factors = row.factors;
            let pair = codes(row);
            if pair != codes(&header.components[0]) {
                phases = self.of_mcu;
            }
            let known = pairs.iter().position(|known| *known == pair);
            component.pair = known.unwrap_or(pairs.len()) as u32;
            if known.is_none() && pairs.len() < 2 {
                pairs.push(pair);
            }
            let pitch = (component.columns * component.side).next_multiple_of(8);
            component.pitch = pitch;
            component.plane = u32::try_from(plane_bytes).map_err(|_| DecodeRefusal::Unsupported)?;
            plane_bytes += (pitch as usize * component.rows as usize * component.side as usize)
                .next_multiple_of(16);
            self.component[number] = component;
        }
        self.pairs = pairs.len() as u32;
        self.phases = phases;
        // Components that need coefficients come first, so that the others use no memory for them.
        let mut blocks = 0u32;
        for is_first in [true, false] {
            for component in &mut self.component[..self.count as usize] {
                if (component.side > 1) == is_first {
                    component.blocks = blocks;
                    blocks += component.kept();
                }
            }
        }
        Ok(())
    }

    /// Width and height of the window.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    pub(crate) fn components(&self) -> &[KernelComponent] {
        &self.component[..self.count.min(3) as usize]
    }

    /// Whether samples become RGB at once, without planes.
    pub(crate) fn is_whole(&self) -> bool {
        self.count == 3 && self.components().iter().all(KernelComponent::is_whole)
    }

    /// The number of blocks kept of each component.
    pub(crate) fn kept(&self) -> impl Iterator<Item = u32> {
        self.components().iter().map(KernelComponent::kept)
    }

    /// The number of groups of four pixels.
    pub(crate) fn fours(&self) -> u32 {
        (self.x + self.width - self.left).div_ceil(4) * self.height
    }

    /// Lookup entries that chains stage, and those that coefficients stage.
    pub(crate) fn entries(&self) -> (usize, usize) {
        let singles = self.singles as usize;
        (singles + 2 * self.pairs as usize * MANY, singles)
    }

    pub(crate) fn memory(&self) -> PictureMemory {
        let (chains, values) = self.entries();
        let blocks: u32 = self.kept().sum();
        let with_coefficients = self.components().iter().filter(|c| c.side > 1);
        let with_coefficients: u32 = with_coefficients.map(KernelComponent::kept).sum();
        let last = self.components().last();
        let planes = last.filter(|_| !self.is_whole()).map_or(0, |c| {
            (c.plane as usize + c.pitch as usize * (c.rows * c.side) as usize).next_multiple_of(16)
        });
        PictureMemory {
            tables: 2 * (chains + values),
            coefficients: 128 * with_coefficients as usize,
            infos: 8 * blocks as usize,
            planes,
            // One more row: kernels may read past the end of the window.
            rgb: self.pitch as usize * (self.height as usize + 1),
        }
    }

    /// Bytes from the start of `rgb` to the window's first pixel, and from row to row.
    pub(crate) fn window(&self) -> (usize, usize) {
        (3 * (self.x - self.left) as usize, self.pitch as usize)
    }
}

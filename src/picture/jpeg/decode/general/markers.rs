//! The markers before and between scans (`jdmarker.c`, `jdinput.c`): the frame, its components,
//! tables, and the headers of scans.

use super::super::super::standard_tables::{HUFFMAN_TABLES, ZIGZAG};
use super::super::frame::{ADOBE_BYTES, JFIF_BYTES, JpegColors, MAX_BLOCKS, MAX_SIDE};
use super::super::huffman::HuffmanSpec;
use super::entropy::{MarkerTables, ScanComponent, ScanHeader};
use super::fatal::FatalFault;
use super::source::{ByteSource, DecodeWarning};

/// A component of the frame header.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MarkerComponent {
    pub(super) id: u8,
    /// Sampling factors: 1 to 4 once the header has been checked.
    pub(super) h: usize,
    pub(super) v: usize,
    /// The number of its quantization table.
    quantization: usize,
}

/// The state of all markers read so far.
#[derive(Debug, Default)]
pub(super) struct MarkerState {
    has_start: bool,
    has_frame: bool,
    has_jfif: bool,
    /// The color transform in Adobe's marker.
    adobe: Option<u8>,
    precision: u8,
    pub(super) width: usize,
    pub(super) height: usize,
    components: [MarkerComponent; 4],
    /// Number of components in the frame.
    count: usize,
    progressive: bool,
    pub(super) arithmetic: bool,
    pub(super) tables: MarkerTables,
    pub(super) scan: ScanHeader,
    /// Number of scan headers read so far.
    pub(super) scans: u32,
}

/// Where a read of markers stopped: at a scan, or at the end of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerEnd {
    Scan,
    End,
}

impl MarkerState {
    pub(super) fn components(&self) -> &[MarkerComponent] {
        &self.components[..self.count.min(4)]
    }

    /// The largest sampling factors of the frame, across and down.
    pub(super) fn max_factors(&self) -> (usize, usize) {
        let components = self.components().iter();
        components.fold((1, 1), |(h, v), c| (h.max(c.h), v.max(c.v)))
    }

    pub(super) fn colour(&self) -> JpegColors {
        let ids = self.components.map(|component| component.id);
        JpegColors::of(&ids[..self.components().len()], self.has_jfif, self.adobe)
    }

    /// Whether the file has several scans. Their coefficients are kept until all scans are read.
    pub(super) fn has_several_scans(&self) -> bool {
        self.progressive || self.scan.count < self.count
    }

    /// Reads the markers up to the first scan, and checks the frame.
    pub(super) fn read_header(&mut self, source: &mut ByteSource<'_>) -> Result<(), FatalFault> {
        if self.read(source)? == MarkerEnd::End {
            return Err(match self.has_frame {
                true => FatalFault::NO_SCAN,
                false => FatalFault::NO_PICTURE,
            });
        }
        if self.width > MAX_SIDE || self.height > MAX_SIDE {
            let words = format!("Maximum supported image dimension is {MAX_SIDE} pixels");
            return Err(words.into());
        }
        if self.precision != 8 {
            let words = format!("Unsupported JPEG data precision {}", self.precision);
            return Err(words.into());
        }
        if !matches!(self.count, 1 | 3 | 4) {
            return Err("Unsupported color conversion request".to_owned().into());
        }
        let factors = 1..=4;
        let is_good = |c: &MarkerComponent| factors.contains(&c.h) && factors.contains(&c.v);
        if !self.components().iter().all(is_good) {
            return Err(FatalFault::BAD_FACTORS);
        }
        let is_unknown = match (self.count, self.adobe) {
            (3, Some(transform)) => !self.has_jfif && transform > 1,
            (4, Some(transform)) => !matches!(transform, 0 | 2),
            _ => false,
        };
        if is_unknown {
            source.warn(DecodeWarning::Damage);
        }
        Ok(())
    }

    /// Reads markers up to the next scan or to the end.
    pub(super) fn read(&mut self, source: &mut ByteSource<'_>) -> Result<MarkerEnd, FatalFault> {
        loop {
            if source.marker == 0 {
                if self.has_start {
                    source.next_marker();
                } else {
                    let first = (source.byte(), source.byte());
                    if first != (0xFF, 0xD8) {
                        let (a, b) = first;
                        let words = format!("Not a JPEG file: starts with 0x{a:02x} 0x{b:02x}");
                        return Err(words.into());
                    }
                    source.marker = 0xD8;
                }
            }
            match source.marker {
                0xD8 if self.has_start => return Err(FatalFault::TWO_STARTS),
                0xD8 => self.has_start = true,
                marker @ (0xC0..=0xC2 | 0xC9 | 0xCA) => self.frame(marker, source)?,
                // Lossless frames.
                0xC3 | 0xCB if self.has_frame => return Err(FatalFault::TWO_FRAMES),
                marker @ (0xC3 | 0xC5..=0xC8 | 0xCB | 0xCD..=0xCF) => {
                    let words = format!("Unsupported JPEG process: SOF type 0x{marker:02x}");
                    return Err(words.into());
                }
                0xDA => {
                    self.scan(source)?;
                    source.marker = 0;
                    return Ok(MarkerEnd::Scan);
                }
                0xD9 => {
                    source.marker = 0;
                    return Ok(MarkerEnd::End);
                }
                0xCC => self.condition(source)?,
                0xC4 => self.huffman(source)?,
                0xDB => self.quantize(source)?,
                0xDD => {
                    if source.word() != 4 {
                        return Err(FatalFault::BAD_LENGTH);
                    }
                    self.tables.restart_interval = source.word() as u32;
                }
                0xE0 => {
                    let content: [u8; JFIF_BYTES] = front(source, JFIF_BYTES);
                    if content.starts_with(b"JFIF\0") {
                        self.has_jfif = true;
                        if content[5] != 1 {
                            source.warn(DecodeWarning::Damage);
                        }
                    }
                }
                0xEE => {
                    let content: [u8; JFIF_BYTES] = front(source, ADOBE_BYTES);
                    if content.starts_with(b"Adobe") {
                        self.adobe = Some(content[ADOBE_BYTES - 1]);
                    }
                }
                0xE1..=0xED | 0xEF | 0xFE | 0xDC => {
                    front::<0>(source, 0);
                }
                0x01 | 0xD0..=0xD7 => {}
                marker => {
                    return Err(format!("Unsupported marker type 0x{marker:02x}").into());
                }
            }
            source.marker = 0;
        }
    }

    /// SOF (`get_sof`).
    fn frame(&mut self, marker: u8, source: &mut ByteSource<'_>) -> Result<(), FatalFault> {
        if self.has_frame {
            return Err(FatalFault::TWO_FRAMES);
        }
        self.progressive = matches!(marker, 0xC2 | 0xCA);
        self.arithmetic = marker >= 0xC9;
        let length = source.word();
        self.precision = source.byte();
        self.height = source.word();
        self.width = source.word();
        self.count = usize::from(source.byte());
        if self.width == 0 || self.height == 0 || self.count == 0 {
            return Err(FatalFault::EMPTY);
        }
        if length != 8 + 3 * self.count {
            return Err(FatalFault::BAD_LENGTH);
        }
        for number in 0..self.count {
            let (id, factors, quantization) = (source.byte(), source.byte(), source.byte());
            if let Some(component) = self.components.get_mut(number) {
                *component = MarkerComponent {
                    id,
                    h: usize::from(factors >> 4),
                    v: usize::from(factors & 15),
                    quantization: usize::from(quantization),
                };
            }
        }
        self.has_frame = true;
        Ok(())
    }

    /// SOS (`get_sos`).
    fn scan(&mut self, source: &mut ByteSource<'_>) -> Result<(), FatalFault> {
        if !self.has_frame {
            return Err(FatalFault::NO_FRAME);
        }
        let length = source.word();
        let count = usize::from(source.byte());
        if length != 2 * count + 6 || !(1..=4).contains(&count) {
            return Err(FatalFault::BAD_LENGTH);
        }
        let mut scan = ScanHeader {
            progressive: self.progressive,
            count,
            ..ScanHeader::default()
        };
        for number in 0..count {
            let (id, tables) = (source.byte(), source.byte());
            // As in libjpeg-turbo, a component's index in the frame is at least its index in the
            // scan.
            let mut candidates = self.components().iter().enumerate();
            let found = candidates.find(|&(at, c)| c.id == id && at >= number);
            let taken = |at| scan.components[..number].iter().any(|c| c.component == at);
            let Some((component, _)) = found.filter(|&(at, _)| !taken(at)) else {
                return Err(format!("Invalid component ID {id} in SOS").into());
            };
            scan.components[number] = ScanComponent {
                component,
                dc: usize::from(tables >> 4),
                ac: usize::from(tables & 15),
            };
        }
        scan.first = usize::from(source.byte());
        scan.last = usize::from(source.byte());
        let bits = source.byte();
        (scan.high, scan.low) = (u32::from(bits >> 4), u32::from(bits & 15));
        source.next_restart = 0;
        self.scans += 1;
        self.scan = scan;
        Ok(())
    }

    /// Computes the blocks in an MCU of the scan (`per_scan_setup`).
    pub(super) fn set_mcu(&mut self) -> Result<(), FatalFault> {
        self.scan.restart_interval = self.tables.restart_interval;
        if self.scan.count == 1 {
            (self.scan.blocks, self.scan.members) = (1, [0; MAX_BLOCKS]);
            return Ok(());
        }
        self.scan.blocks = 0;
        for (member, of) in self
            .scan
            .components
            .iter()
            .take(self.scan.count)
            .enumerate()
        {
            let component = self.components[of.component & 3];
            let blocks = self.scan.blocks..self.scan.blocks + component.h * component.v;
            self.scan.blocks = blocks.end;
            let members = self.scan.members.get_mut(blocks);
            members.ok_or(FatalFault::LARGE_MCU)?.fill(member);
        }
        Ok(())
    }

    /// The quantization table in force for a component.
    pub(super) fn quantization(&self, component: usize) -> Result<[i16; 64], FatalFault> {
        let number = self.components[component & 3].quantization;
        let table = self.tables.quantization.get(number).copied().flatten();
        table.ok_or_else(|| format!("Quantization table 0x{number:02x} was not defined").into())
    }

    /// DAC (`get_dac`).
    fn condition(&mut self, source: &mut ByteSource<'_>) -> Result<(), FatalFault> {
        let mut left = source.word() as i32 - 2;
        let tables = &mut self.tables.conditioning;
        while left > 0 {
            let (number, value) = (usize::from(source.byte()), source.byte());
            left -= 2;
            match number {
                0..16 => {
                    tables.dc_lower[number] = value & 15;
                    tables.dc_upper[number] = value >> 4;
                    if value & 15 > value >> 4 {
                        return Err(format!("Bogus DAC value 0x{value:x}").into());
                    }
                }
                16..32 => tables.ac[number - 16] = value,
                _ => return Err(format!("Bogus DAC index {number}").into()),
            }
        }
        ended(left)
    }

    /// DHT (`get_dht`).
    fn huffman(&mut self, source: &mut ByteSource<'_>) -> Result<(), FatalFault> {
        let mut left = source.word() as i32 - 2;
        while left > 16 {
            let head = source.byte();
            let mut counts = [0; 16];
            counts.fill_with(|| source.byte());
            let codes: usize = counts.iter().map(|&n| usize::from(n)).sum();
            left -= 17;
            let mut symbols = [0; 256];
            let symbols = symbols.get_mut(..codes).ok_or(FatalFault::BAD_HUFFMAN)?;
            if codes as i32 > left {
                return Err(FatalFault::BAD_HUFFMAN);
            }
            symbols.fill_with(|| source.byte());
            left -= codes as i32;
            let (specs, number) = match head & 0x10 {
                0 => (&mut self.tables.dc, head),
                _ => (&mut self.tables.ac, head - 0x10),
            };
            let Some(table) = specs.get_mut(usize::from(number)) else {
                return Err(format!("Bogus DHT index {number}").into());
            };
            let spec = table.get_or_insert_default();
            spec.read(&counts, symbols).ok_or(FatalFault::BAD_HUFFMAN)?;
        }
        ended(left)
    }

    /// DQT (`get_dqt`).
    fn quantize(&mut self, source: &mut ByteSource<'_>) -> Result<(), FatalFault> {
        let mut left = source.word() as i32 - 2;
        while left > 0 {
            let head = source.byte();
            let (is_wide, number) = (head >> 4 > 0, head & 15);
            let Some(table) = self.tables.quantization.get_mut(usize::from(number)) else {
                return Err(format!("Bogus DQT index {number}").into());
            };
            let table = table.get_or_insert([0; 64]);
            for &place in &ZIGZAG {
                table[usize::from(place)] = match is_wide {
                    true => source.word() as u16 as i16,
                    false => i16::from(source.byte()),
                };
            }
            left -= if is_wide { 129 } else { 65 };
        }
        ended(left)
    }

    /// Sets the standard's Huffman tables where the file has defined none (Motion JPEG).
    pub(super) fn set_standard_tables(&mut self) {
        for (number, table) in HUFFMAN_TABLES.iter().enumerate() {
            let specs = match number {
                0 | 1 => &mut self.tables.dc,
                _ => &mut self.tables.ac,
            };
            specs[number & 1].get_or_insert_with(|| {
                let mut spec = HuffmanSpec::default();
                // The standard's tables are valid.
                let _ = spec.read(&table.counts, table.symbols);
                spec
            });
        }
    }
}

/// Checks that a segment's content had exactly the stated length.
fn ended(left: i32) -> Result<(), FatalFault> {
    match left {
        0 => Ok(()),
        _ => Err(FatalFault::BAD_LENGTH),
    }
}

/// Skips a segment. Returns the first bytes of its content, or zeros if it has fewer than `least`.
fn front<const N: usize>(source: &mut ByteSource<'_>, least: usize) -> [u8; N] {
    let length = source.word().saturating_sub(2);
    let mut front = [0; N];
    let read = length.min(N);
    front[..read].fill_with(|| source.byte());
    source.skip(length - read);
    match read < least {
        true => [0; N],
        false => front,
    }
}

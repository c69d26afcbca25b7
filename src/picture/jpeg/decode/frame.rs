//! The header of a baseline JPEG: the markers before its only scan (ITU-T T.81, B.2).
//!
//! Strict on purpose: anything that a usual writer does not write is `Unsupported`. Then another
//! decoder judges the file.

use super::super::standard_tables::ZIGZAG;
use super::huffman::HuffmanSpec;
use super::request::DecodeRefusal;

/// How components become RGB (`default_decompress_parms` of libjpeg).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JpegColors {
    Grey,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
}

impl JpegColors {
    /// The colours of a frame. `ids` are the components' ids, and `adobe` is the transform of
    /// Adobe's marker.
    pub(super) fn of(ids: &[u8], has_jfif: bool, adobe: Option<u8>) -> Self {
        match (ids.len(), adobe) {
            (1, _) => Self::Grey,
            (3, _) if has_jfif => Self::YCbCr,
            (3, Some(0)) => Self::Rgb,
            (3, None) if *ids == *b"RGB" => Self::Rgb,
            (3, _) => Self::YCbCr,
            (_, Some(0) | None) => Self::Cmyk,
            _ => Self::Ycck,
        }
    }

    /// Bytes of a decoded pixel.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Grey | Self::YCbCr | Self::Rgb => 3,
            Self::Cmyk | Self::Ycck => 4,
        }
    }
}

/// A component, from frame header and scan header.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrameComponent {
    pub(super) id: u8,
    /// Sampling factors, 1 to 4.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Numbers of its tables: quantization 0 to 3, Huffman 0 or 1.
    pub(super) quantization: usize,
    pub(super) dc: usize,
    pub(super) ac: usize,
}

/// Factors in natural order, as 16 bits that wrap (`ISLOW_MULT_TYPE`).
pub(in crate::picture::jpeg) type QuantizationTable = [i16; 64];

/// The content of the header.
#[derive(Debug)]
pub(super) struct FrameHeader {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) components: [FrameComponent; 4],
    pub(super) count: usize,
    pub(super) colour: JpegColors,
    /// MCUs between two restart markers; 0 = no markers.
    pub(super) restart_interval: u32,
    /// Offset of the first byte of coded data.
    pub(super) scan: usize,
    pub(super) quantization: [QuantizationTable; 4],
    pub(super) dc: [HuffmanSpec; 2],
    pub(super) ac: [HuffmanSpec; 2],
}

/// Maximum blocks of an MCU with several components (T.81, B.2.3).
pub(super) const MAX_BLOCKS: usize = 10;

/// The longest side in pixels that libjpeg accepts (`JPEG_MAX_DIMENSION`).
pub(super) const MAX_SIDE: usize = 65500;

/// Minimum content bytes of JFIF and Adobe segments. libjpeg ignores shorter ones.
pub(super) const JFIF_BYTES: usize = 14;
pub(super) const ADOBE_BYTES: usize = 12;

impl Default for FrameHeader {
    fn default() -> Self {
        Self {
            width: 0,
            height: 0,
            components: [FrameComponent::default(); 4],
            count: 0,
            colour: JpegColors::Grey,
            restart_interval: 0,
            scan: 0,
            quantization: [[0; 64]; 4],
            dc: [HuffmanSpec::default(), HuffmanSpec::default()],
            ac: [HuffmanSpec::default(), HuffmanSpec::default()],
        }
    }
}

/// The markers read so far.
#[derive(Default)]
struct FoundMarkers {
    jfif: bool,
    /// The transform of Adobe's marker.
    adobe: Option<u8>,
    frame: bool,
    quantization: [bool; 4],
    dc: [bool; 2],
    ac: [bool; 2],
}

impl FrameHeader {
    pub(super) fn components(&self) -> &[FrameComponent] {
        &self.components[..self.count.min(4)]
    }

    /// A frame whose components another process has read: sampling factors and Huffman table
    /// numbers of each. It has no tables and no colours. `None` if [`Self::read`] would reject it.
    pub(super) fn of(
        (width, height): (usize, usize),
        restart_interval: u32,
        specs: impl Iterator<Item = [usize; 4]>,
    ) -> Option<Self> {
        let mut frame = Self {
            width,
            height,
            restart_interval,
            ..Self::default()
        };
        for [h, v, dc, ac] in specs {
            let component = frame.components.get_mut(frame.count)?;
            *component = FrameComponent {
                h,
                v,
                dc,
                ac,
                ..FrameComponent::default()
            };
            frame.count += 1;
            let factors = 1..=4;
            if !factors.contains(&h) || !factors.contains(&v) || dc > 1 || ac > 1 {
                return None;
            }
        }
        let blocks: usize = frame.components().iter().map(|c| c.h * c.v).sum();
        let sides = 1..=MAX_SIDE;
        let is_right = sides.contains(&width)
            && sides.contains(&height)
            && (1..=MAX_BLOCKS).contains(&blocks)
            && (frame.count > 1 || blocks == 1);
        is_right.then_some(frame)
    }

    /// Reads the markers up to the first scan. It overwrites the values of an earlier picture, and
    /// uses none of them.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), DecodeRefusal> {
        if !bytes.starts_with(&[0xFF, 0xD8]) {
            return Err(DecodeRefusal::Unsupported);
        }
        let mut met = FoundMarkers::default();
        self.restart_interval = 0;
        self.count = 0;
        let mut at = 2;
        loop {
            let (marker, content, next) = segment(bytes, at).ok_or(DecodeRefusal::Unsupported)?;
            at = next;
            match marker {
                0xE0 => met.jfif |= content.len() >= JFIF_BYTES && content.starts_with(b"JFIF\0"),
                0xEE if content.len() >= ADOBE_BYTES && content.starts_with(b"Adobe") => {
                    met.adobe = content.get(ADOBE_BYTES - 1).copied();
                }
                0xE1..=0xEF | 0xFE => {}
                0xDB => self.quantize(content, &mut met)?,
                0xC4 => self.huffman(content, &mut met)?,
                0xC0 | 0xC1 if !met.frame => {
                    met.frame = true;
                    self.frame(content)?;
                }
                0xDD => match *content {
                    [high, low] => {
                        self.restart_interval = u32::from(u16::from_be_bytes([high, low]));
                    }
                    _ => return Err(DecodeRefusal::Unsupported),
                },
                0xDA if met.frame => {
                    self.scan(content, &met)?;
                    self.scan = at;
                    return Ok(());
                }
                _ => return Err(DecodeRefusal::Unsupported),
            }
        }
    }

    /// DQT (T.81, B.2.4.1).
    fn quantize(
        &mut self,
        mut content: &[u8],
        met: &mut FoundMarkers,
    ) -> Result<(), DecodeRefusal> {
        while let Some((&head, rest)) = content.split_first() {
            let (wide, number) = (head >> 4, usize::from(head & 15));
            let bytes = if wide == 0 { 64 } else { 128 };
            let table = self.quantization.get_mut(number);
            let (Some(table), 0 | 1, Some((factors, behind))) =
                (table, wide, rest.split_at_checked(bytes))
            else {
                return Err(DecodeRefusal::Unsupported);
            };
            for (i, &place) in ZIGZAG.iter().enumerate() {
                let factor = match wide {
                    0 => u16::from(factors[i]),
                    _ => u16::from_be_bytes([factors[2 * i], factors[2 * i + 1]]),
                };
                table[usize::from(place)] = factor as i16;
            }
            met.quantization[number] = true;
            content = behind;
        }
        Ok(())
    }

    /// DHT (T.81, B.2.4.2).
    fn huffman(&mut self, mut content: &[u8], met: &mut FoundMarkers) -> Result<(), DecodeRefusal> {
        while !content.is_empty() {
            let (head, rest) = content
                .split_at_checked(17)
                .ok_or(DecodeRefusal::Unsupported)?;
            let number = usize::from(head[0] & 15);
            let (specs, met) = match head[0] >> 4 {
                0 => (&mut self.dc, &mut met.dc),
                1 => (&mut self.ac, &mut met.ac),
                _ => return Err(DecodeRefusal::Unsupported),
            };
            let spec = specs.get_mut(number).ok_or(DecodeRefusal::Unsupported)?;
            content = spec
                .read(&head[1..], rest)
                .ok_or(DecodeRefusal::Unsupported)?;
            met[number] = true;
        }
        Ok(())
    }

    /// SOF0 and SOF1 (T.81, B.2.2).
    fn frame(&mut self, content: &[u8]) -> Result<(), DecodeRefusal> {
        let &[8, h1, h0, w1, w0, count @ (1 | 3 | 4), ref specs @ ..] = content else {
            return Err(DecodeRefusal::Unsupported);
        };
        self.width = usize::from(u16::from_be_bytes([w1, w0]));
        self.height = usize::from(u16::from_be_bytes([h1, h0]));
        self.count = usize::from(count);
        let sides = 1..=MAX_SIDE;
        if !sides.contains(&self.width)
            || !sides.contains(&self.height)
            || specs.len() != 3 * self.count
        {
            return Err(DecodeRefusal::Unsupported);
        }
        for (component, spec) in self.components.iter_mut().zip(specs.chunks_exact(3)) {
            *component = FrameComponent {
                id: spec[0],
                h: usize::from(spec[1] >> 4),
                v: usize::from(spec[1] & 15),
                quantization: usize::from(spec[2]),
                dc: 0,
                ac: 0,
            };
            let factors = 1..=4;
            if !factors.contains(&component.h) || !factors.contains(&component.v) {
                return Err(DecodeRefusal::Unsupported);
            }
        }
        Ok(())
    }

    /// SOS (T.81, B.2.3): one scan of all components, in the order of the frame.
    fn scan(&mut self, content: &[u8], met: &FoundMarkers) -> Result<(), DecodeRefusal> {
        let count = self.count;
        if content.len() != 4 + 2 * count || usize::from(content[0]) != count {
            return Err(DecodeRefusal::Unsupported);
        }
        let (specs, rest) = content[1..].split_at(2 * count);
        if *rest != [0, 63, 0] {
            return Err(DecodeRefusal::Unsupported);
        }
        let components = &mut self.components[..count];
        for (component, spec) in components.iter_mut().zip(specs.chunks_exact(2)) {
            component.dc = usize::from(spec[1] >> 4);
            component.ac = usize::from(spec[1] & 15);
            let is_there = |met: &[bool], number: usize| met.get(number) == Some(&true);
            if spec[0] != component.id
                || !is_there(&met.dc, component.dc)
                || !is_there(&met.ac, component.ac)
                || !is_there(&met.quantization, component.quantization)
            {
                return Err(DecodeRefusal::Unsupported);
            }
        }
        let ids = [0, 1, 2, 3].map(|i| self.components[i].id);
        let ids = &ids[..count];
        if (1..count).any(|i| ids[..i].contains(&ids[i])) {
            return Err(DecodeRefusal::Unsupported);
        }
        if let [only] = &mut self.components[..count] {
            // A scan of one component has one block per MCU, whatever its factors (T.81, A.2.2).
            (only.h, only.v) = (1, 1);
        }
        let blocks: usize = self.components().iter().map(|c| c.h * c.v).sum();
        if blocks > MAX_BLOCKS {
            return Err(DecodeRefusal::Unsupported);
        }
        self.colour = JpegColors::of(ids, met.jfif, met.adobe);
        Ok(())
    }
}

/// The segment at `at`: its marker, its content, and the offset of the next one.
fn segment(bytes: &[u8], mut at: usize) -> Option<(u8, &[u8], usize)> {
    if *bytes.get(at)? != 0xFF {
        return None;
    }
    while *bytes.get(at)? == 0xFF {
        at += 1;
    }
    let &[marker, high, low] = bytes.get(at..at + 3)? else {
        return None;
    };
    // Markers without a length, and markers that no header has.
    if marker < 0xC0 || matches!(marker, 0xD0..=0xD9) {
        return None;
    }
    let end = at + 1 + usize::from(u16::from_be_bytes([high, low]));
    Some((marker, bytes.get(at + 3..end)?, end))
}

//! A JPEG in the plain form that the engines of a device take: baseline, one scan,
//! three components of YCbCr, no segment that decoding does not need.
//!
//! ```text
//! SOI | DQT, SOF0, DHT, DRI, as they stand in the file | SOS | coded data | EOI
//! ```
//!
//! Components are called 1, 2 and 3 in it, whatever the file calls them.
//!
//! Engines report no damage: of coded data that end early or are scrambled they say
//! that all is well. So [`write`] takes only files in which everything that can be seen
//! without decoding is in order. What it does not take is decoded by a worker, which
//! gives such files the verdict that they always had. It reads the whole file, at memory
//! speed, and allocates nothing.
//!
//! [`check`] reads the form again where it is handed to a device's library: a worker may
//! write anything. Pure.

use super::header::find_ff;

/// Why a file is not for engines. A worker decodes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotPlain {
    /// Progressive, arithmetic, extended, lossless, or not of 8 bits.
    Process,
    /// Not of three components, or not of YCbCr.
    Colours,
    /// Chroma at another size than 1, 1/2 across, 1/2 down, or both.
    Sampling,
    /// More pixels on a side than was planned, or fewer than engines take.
    Size,
    /// A table is missing, or is none.
    Tables,
    /// Something else of the header is unusual, or wrong.
    Header,
    /// The scan does not hold the whole picture.
    Scan,
    /// Restart markers are missing, too many, or out of order.
    Restarts,
    /// The coded data hold a marker that does not belong there.
    Markers,
    /// The coded data are shorter than the fewest bits that its blocks take.
    Short,
    /// There is no end-of-image marker.
    NoEnd,
    /// It does not fit the room that it was given.
    NoRoom,
}

/// Fewest pixels on a side.
pub(crate) const LEAST_SIDE: u32 = 64;
/// Most bytes of a plain file in front of its coded data. Tables of three components take
/// less than 1,500.
const MOST_FRONT: usize = 4096;

const SOF0: u8 = 0xC0;
const DHT: u8 = 0xC4;
const RST0: u8 = 0xD0;
const SOI: u8 = 0xD8;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const DQT: u8 = 0xDB;
const DRI: u8 = 0xDD;

type Plain<T> = std::result::Result<T, NotPlain>;

/// Writes the plain form of a file to the beginning of `to`, and gives its length.
/// `most`: width and height of the largest picture that engines take.
///
/// # Errors
/// Why the file is not for engines. Then `to` may hold anything.
pub(crate) fn write(bytes: &[u8], most: (u32, u32), to: &mut [u8]) -> Plain<usize> {
    let mut out = Out { to, len: 0 };
    out.put(&[0xFF, SOI])?;
    let front = Front::read(bytes, Others::StepOver, &mut |segment| {
        let begin = out.len;
        out.put(segment)?;
        let (first, step) = match segment[1] {
            SOF0 => (10, 3),
            SOS => (5, 2),
            _ => return Ok(()),
        };
        // Inside of the segment: it has three components.
        for (i, name) in (1..=3).enumerate() {
            out.to[begin + first + step * i] = name;
        }
        Ok(())
    })?;
    front.check_size(most)?;
    let data = bytes.get(front.data..).unwrap_or_default();
    let len = front.coded(data)?;
    out.put(&data[..len])?;
    out.put(&[0xFF, EOI])?;
    Ok(out.len)
}

/// Width and height of the picture whose plain form `bytes` is, to the last byte of it. The
/// coded data are not looked at: whoever may have changed them since they were written may
/// do so again.
///
/// # Errors
/// What [`write`] does not write.
pub(crate) fn check(bytes: &[u8], most: (u32, u32)) -> Plain<(u32, u32)> {
    let front = Front::read(bytes, Others::Refuse, &mut |_| Ok(()))?;
    front.check_size(most)?;
    let data = bytes.get(front.data..).unwrap_or_default();
    match data.len() > 2 && data.ends_with(&[0xFF, EOI]) {
        true => Ok(front.size),
        false => Err(NotPlain::NoEnd),
    }
}

struct Out<'a> {
    to: &'a mut [u8],
    len: usize,
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) -> Plain<()> {
        let end = self.len + bytes.len();
        let to = self.to.get_mut(self.len..end).ok_or(NotPlain::NoRoom)?;
        to.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }
}

/// Segments that decoding does not need: comments, profiles, EXIF.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    StepOver,
    Refuse,
}

/// What stands in front of the coded data.
struct Front {
    /// Width and height.
    size: (u32, u32),
    /// Sampling factors of luma; those of chroma are 1.
    factors: (u32, u32),
    /// MCUs between two restart markers; 0 = there are none.
    interval: u32,
    /// Where the coded data begin.
    data: usize,
}

/// Which tables are there, one bit each.
#[derive(Default)]
struct Tables {
    quantization: u8,
    dc: u8,
    ac: u8,
}

impl Front {
    /// Reads all segments up to the coded data, and gives those that decoding needs to
    /// `keep`, with their markers.
    fn read(bytes: &[u8], others: Others, keep: &mut dyn FnMut(&[u8]) -> Plain<()>) -> Plain<Self> {
        if !bytes.starts_with(&[0xFF, SOI]) {
            return Err(NotPlain::Header);
        }
        let (mut at, mut kept) = (2, 2);
        let mut tables = Tables::default();
        let (mut frame, mut interval) = (None, 0);
        loop {
            let &[0xFF, marker, high, low] = bytes.get(at..at + 4).ok_or(NotPlain::Header)? else {
                return Err(NotPlain::Header);
            };
            let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
            let content = bytes.get(at + 4..end).ok_or(NotPlain::Header)?;
            match marker {
                DQT => tables.quantize(content)?,
                DHT => tables.huffman(content)?,
                SOF0 if frame.is_none() => frame = Some(Frame::read(content, others)?),
                DRI => match *content {
                    [high, low] => interval = u32::from(u16::from_be_bytes([high, low])),
                    _ => return Err(NotPlain::Header),
                },
                SOS => {
                    let frame = frame.as_ref().ok_or(NotPlain::Header)?;
                    tables.serve(frame, content)?;
                }
                0xC1..=0xCF => return Err(NotPlain::Process),
                // Adobe's own word on what the components are.
                0xEE if content.starts_with(b"Adobe") && content.get(11) != Some(&1) => {
                    return Err(NotPlain::Colours);
                }
                0xE0..=0xEF | 0xFE if others == Others::StepOver => {
                    at = end;
                    continue;
                }
                _ => return Err(NotPlain::Header),
            }
            kept += end - at;
            if kept > MOST_FRONT {
                return Err(NotPlain::Header);
            }
            keep(&bytes[at..end])?;
            at = end;
            if let (SOS, Some(Frame { size, factors, .. })) = (marker, &frame) {
                let (size, factors) = (*size, *factors);
                return Ok(Self {
                    size,
                    factors,
                    interval,
                    data: at,
                });
            }
        }
    }

    fn check_size(&self, most: (u32, u32)) -> Plain<()> {
        let (width, height) = self.size;
        let takes = |side, most| (LEAST_SIDE..=most).contains(&side);
        match takes(width, most.0) && takes(height, most.1) {
            true => Ok(()),
            false => Err(NotPlain::Size),
        }
    }

    /// Bytes of the coded data, up to the end-of-image marker.
    fn coded(&self, data: &[u8]) -> Plain<usize> {
        let (across, down) = self.factors;
        let mcus = |size: u32, factor: u32| u64::from(size.div_ceil(8 * factor));
        let mcus = mcus(self.size.0, across) * mcus(self.size.1, down);
        let (mut at, mut restarts) = (0, 0u64);
        loop {
            let found = data.get(at..).and_then(find_ff).ok_or(NotPlain::NoEnd)?;
            at += found + 2;
            match *data.get(at - 1).ok_or(NotPlain::NoEnd)? {
                0 => {}
                EOI => break,
                marker @ RST0..=0xD7 => {
                    let due = RST0 + (restarts % 8) as u8;
                    restarts += 1;
                    if self.interval == 0 || marker != due {
                        return Err(NotPlain::Restarts);
                    }
                }
                _ => return Err(NotPlain::Markers),
            }
        }
        if self.interval > 0 && restarts != (mcus - 1) / u64::from(self.interval) {
            return Err(NotPlain::Restarts);
        }
        // A block has a symbol of a bit for its DC, and one for the end of its AC.
        let blocks = mcus * u64::from(across * down + 2);
        let len = at - 2;
        match (len as u64).saturating_sub(2 * restarts) < (2 * blocks).div_ceil(8) {
            true => Err(NotPlain::Short),
            false => Ok(len),
        }
    }
}

/// The frame header.
struct Frame {
    size: (u32, u32),
    factors: (u32, u32),
    /// Which quantization tables it names, one bit each.
    quantization: u8,
    /// Of the components.
    names: [u8; 3],
}

impl Frame {
    fn read(content: &[u8], others: Others) -> Plain<Self> {
        let &[precision, h1, h0, w1, w0, components, ref specs @ ..] = content else {
            return Err(NotPlain::Header);
        };
        if precision != 8 {
            return Err(NotPlain::Process);
        }
        if components != 3 {
            return Err(NotPlain::Colours);
        }
        let &[a, luma, q1, b, second, q2, c, third, q3] = specs else {
            return Err(NotPlain::Header);
        };
        // Without a word of Adobe's, names alone say that components are red, green and blue.
        let names = [a, b, c];
        let are_plain = others == Others::StepOver || names == [1, 2, 3];
        if names == *b"RGB" || !are_plain || a == b || b == c || a == c {
            return Err(NotPlain::Colours);
        }
        if (second, third) != (0x11, 0x11) {
            return Err(NotPlain::Sampling);
        }
        if !matches!(luma, 0x11 | 0x12 | 0x21 | 0x22) {
            return Err(NotPlain::Sampling);
        }
        if q1.max(q2).max(q3) > 3 {
            return Err(NotPlain::Tables);
        }
        let size = |high, low| u32::from(u16::from_be_bytes([high, low]));
        Ok(Self {
            size: (size(w1, w0), size(h1, h0)),
            factors: (u32::from(luma >> 4), u32::from(luma & 15)),
            quantization: 1 << q1 | 1 << q2 | 1 << q3,
            names,
        })
    }
}

impl Tables {
    fn quantize(&mut self, content: &[u8]) -> Plain<()> {
        if content.is_empty() || !content.len().is_multiple_of(65) {
            return Err(NotPlain::Tables);
        }
        for table in content.chunks_exact(65) {
            // Of 8 bits, and no step is 0.
            if table[0] > 3 || table[1..].contains(&0) {
                return Err(NotPlain::Tables);
            }
            self.quantization |= 1 << table[0];
        }
        Ok(())
    }

    fn huffman(&mut self, content: &[u8]) -> Plain<()> {
        let mut rest = content;
        if rest.is_empty() {
            return Err(NotPlain::Tables);
        }
        while !rest.is_empty() {
            let (head, symbols) = rest.split_at_checked(17).ok_or(NotPlain::Tables)?;
            // How many codes of each length: all must have room among those of 16 bits, and
            // the one of only ones is none.
            let (mut codes, mut room) = (0, 0u32);
            for (length, &n) in (1..).zip(&head[1..]) {
                codes += usize::from(n);
                room += u32::from(n) << (16 - length);
            }
            let (symbols, behind) = symbols.split_at_checked(codes).ok_or(NotPlain::Tables)?;
            let is_ac = head[0] >> 4 == 1;
            // Bits of a coefficient: of baseline at most 11 and 10. Without bits there are
            // the end of a block and 16 zeros alone.
            let is_known = |symbol: &u8| match (is_ac, symbol & 15) {
                (true, 0) => matches!(symbol, 0 | 0xF0),
                (true, bits) => bits <= 10,
                (false, _) => *symbol <= 11,
            };
            let named = head[0] & 0xEE == 0 && (1..=256).contains(&codes);
            if !named || room >= 1 << 16 || !symbols.iter().all(is_known) {
                return Err(NotPlain::Tables);
            }
            *if is_ac { &mut self.ac } else { &mut self.dc } |= 1 << (head[0] & 15);
            rest = behind;
        }
        Ok(())
    }

    /// Whether the scan of this header holds the whole frame, and has its tables.
    fn serve(&self, frame: &Frame, scan: &[u8]) -> Plain<()> {
        let &[3, a, t1, b, t2, c, t3, 0, 63, 0] = scan else {
            return Err(NotPlain::Scan);
        };
        if [a, b, c] != frame.names {
            return Err(NotPlain::Scan);
        }
        let is_there = |t: u8| {
            let (dc, ac) = (t >> 4, t & 15);
            dc < 2 && ac < 2 && self.dc >> dc & 1 == 1 && self.ac >> ac & 1 == 1
        };
        let quantized = self.quantization & frame.quantization == frame.quantization;
        match quantized && [t1, t2, t3].into_iter().all(is_there) {
            true => Ok(()),
            false => Err(NotPlain::Tables),
        }
    }
}

#[cfg(all(test, feature = "codecs"))]
mod tests;

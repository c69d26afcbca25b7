//! Raw pixels: arrays as NumPy writes them, `.npy`.
//!
//! Pure. Used wherever pictures are read, and where a cache is built. It reads and writes only
//! headers. Pixels are returned in place. Only `u8` arrays in C order are pictures. Shapes (H, W)
//! and (H, W, 1) are grey, and (H, W, 3) is RGB. Any other header is a fault that names type and
//! shape. No number from a file sets the size of an allocation. Bytes after the last pixel are
//! ignored.
//!
//! ```text
//! \x93NUMPY  major minor  length (u16, or u32 from 2.0)  {'descr': '|u1', ...}  pixels
//! ```

use std::ops::Range;

use crate::error::{FaultKind, SampleFault};

/// The first bytes of a file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// Maximum bytes of the dictionary, as in NumPy itself, which writes 118 for a picture.
const MOST_TEXT: u64 = 10_000;

/// Maximum bytes at the start of a file that [`NpyHeader::read`] needs.
pub(crate) const HEAD: u64 = 12 + MOST_TEXT;

/// Bytes of a header that [`header`] writes. It is a block of a tar, so pixels begin at a multiple
/// of 512 bytes if the file does.
pub(crate) const HEADER_BYTES: usize = 512;

/// The longest side in pixels: some code counts pixels with signed numbers.
pub(crate) const LONGEST: u64 = i32::MAX as u64;

/// The size and the place of the pixels, from a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) height: u32,
    pub(crate) width: u32,
    /// 1 or 3.
    pub(crate) channels: u32,
    /// Offset of the pixels in the file, in bytes.
    pub(crate) data_at: u64,
}

impl NpyHeader {
    /// Reads the header of a file of `len` bytes from its first bytes: at least [`HEAD`] of them,
    /// or all.
    ///
    /// # Errors
    /// An invalid header, an array that is not a picture, or a file that is too short for its
    /// shape.
    pub(crate) fn read(head: &[u8], len: u64) -> Result<Self, SampleFault> {
        let (array, data_at) = array(head)?;
        let header = array.picture(data_at)?;
        let end = header.data_at + header.data_bytes();
        if len < end {
            let what = format!(
                "of shape {} needs {end} bytes, and the file has {len}",
                shown(array.shape)
            );
            return Err(fault(FaultKind::Truncated, what));
        }
        Ok(header)
    }

    /// Bytes of the pixels.
    pub(crate) fn data_bytes(&self) -> u64 {
        // Sides of 31 bits and 3 channels fit in 64 bits.
        u64::from(self.height) * u64::from(self.width) * u64::from(self.channels)
    }

    /// Range of the pixels in a file that is completely in memory, and as long as when the header
    /// was read.
    pub(super) fn data(&self) -> Range<usize> {
        self.data_at as usize..(self.data_at + self.data_bytes()) as usize
    }
}

/// The dictionary of a file, and the offset of its data.
fn array(head: &[u8]) -> Result<(NpyDictionary<'_>, u64), SampleFault> {
    let cut = || fault(FaultKind::Truncated, "ends within its header");
    let rest = head
        .strip_prefix(MAGIC)
        .ok_or_else(|| fault(FaultKind::Corrupt, "does not begin like a NumPy file"))?;
    let (length, text_at, rest) = match *rest {
        [1, 0, a, b, ref rest @ ..] => (u64::from(u16::from_le_bytes([a, b])), 10, rest),
        [2 | 3, 0, a, b, c, d, ref rest @ ..] => {
            (u64::from(u32::from_le_bytes([a, b, c, d])), 12, rest)
        }
        [1..=3, 0, ..] | [] | [_] => return Err(cut()),
        [major, minor, ..] => {
            let what = format!("of version {major}.{minor}: 1.0, 2.0 and 3.0 are read");
            return Err(fault(FaultKind::Unsupported, what));
        }
    };
    if length > MOST_TEXT {
        let what = format!("has a header of {length} bytes, over {MOST_TEXT}");
        return Err(fault(FaultKind::Corrupt, what));
    }
    let text = rest.get(..length as usize).ok_or_else(cut)?;
    let array = DictionaryParser(text)
        .array()
        .ok_or_else(|| fault(FaultKind::Corrupt, "has a header that cannot be read"))?;
    Ok((array, text_at + length))
}

/// An array with one number for each pixel: (H, W) or (H, W, 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NpyDepth {
    /// NumPy's letter: `f`, `u`, `i`, `b`.
    pub(super) kind: u8,
    /// Bytes of a number.
    pub(super) bytes: u32,
    pub(super) is_big_endian: bool,
    /// Columns are stored one after the other, not rows.
    pub(super) fortran_order: bool,
    /// Width and height.
    pub(super) size: (u32, u32),
    pub(super) data_at: u64,
}

impl NpyDepth {
    /// Reads a header from the first bytes of a file: at least [`HEAD`] of them, or all.
    pub(super) fn read(head: &[u8]) -> Result<Self, SampleFault> {
        Self::read_of(head, 1)
    }

    /// The same for an array with this many numbers for each pixel: 1, or 2 for a flow.
    pub(super) fn read_of(head: &[u8], channels: u64) -> Result<Self, SampleFault> {
        let (array, data_at) = array(head)?;
        let refused = || {
            let wanted = match channels {
                1 => "a depth image: use numbers of shape (H, W) or (H, W, 1)".to_owned(),
                _ => format!("a flow: use numbers of shape (H, W, {channels})"),
            };
            let what = format!(
                "dtype {} and shape {} is not {wanted}",
                shown(array.dtype),
                shown(array.shape)
            );
            fault(FaultKind::Unsupported, what)
        };
        let (width, height) = match (array.sides, array.first) {
            (2, [height, width, ..]) if channels == 1 => (width, height),
            (3, [height, width, last, _]) if last == channels => (width, height),
            _ => return Err(refused()),
        };
        if height == 0 || width == 0 || height.max(width) > LONGEST {
            return Err(refused());
        }
        let name = array
            .dtype
            .get(1..array.dtype.len() - 1)
            .unwrap_or_default();
        let (is_big_endian, name) = match name {
            [b'>', rest @ ..] => (true, rest),
            [b'<' | b'|' | b'=', rest @ ..] => (false, rest),
            _ => (false, name),
        };
        let (kind, bytes) = match *name {
            [
                kind @ (b'f' | b'u' | b'i' | b'b'),
                bytes @ (b'1' | b'2' | b'4' | b'8'),
            ] => (kind, u32::from(bytes - b'0')),
            _ => return Err(refused()),
        };
        Ok(Self {
            kind,
            bytes,
            is_big_endian,
            fortran_order: array.fortran_order,
            size: (width as u32, height as u32),
            data_at,
        })
    }
}

/// The sides of an array of many pictures, and the offset of its data, from the first bytes of a
/// file: at least [`HEAD`] of them, or all.
///
/// # Errors
/// An invalid header; numbers other than `u8`; an order other than C; more than four sides.
pub(crate) fn read_stack(head: &[u8]) -> Result<(Vec<u64>, u64), SampleFault> {
    let (array, data_at) = array(head)?;
    if !array.is_u8() || array.fortran_order {
        let what = format!(
            "has dtype {} in {} order: save it as uint8 in C order, such as \
             numpy.save(file, numpy.ascontiguousarray(array, numpy.uint8))",
            shown(array.dtype),
            if array.fortran_order { "Fortran" } else { "C" }
        );
        return Err(fault(FaultKind::Unsupported, what));
    }
    match array.first.get(..array.sides) {
        Some(sides) => Ok((sides.to_vec(), data_at)),
        None => {
            let what = format!(
                "has shape {}: give N x H x W or N x H x W x C",
                shown(array.shape)
            );
            Err(fault(FaultKind::Unsupported, what))
        }
    }
}

/// The pixels of a file that is completely in memory.
pub(crate) fn pixels(file: &[u8]) -> Result<&[u8], SampleFault> {
    NpyHeader::read(file, file.len() as u64).map(|header| &file[header.data()])
}

/// The header of a `u8` picture of this height, width and channels, in a form that NumPy reads:
/// version 1.0, padded with blanks.
pub(crate) fn header((height, width): (u32, u32), channels: u32) -> [u8; HEADER_BYTES] {
    header_of("|u1", &format!("{height}, {width}, {channels}"))
}

/// The same for one `f32` of each pixel, lowest byte first.
pub(crate) fn number_header((height, width): (u32, u32)) -> [u8; HEADER_BYTES] {
    header_of("<f4", &format!("{height}, {width}"))
}

fn header_of(descr: &str, shape: &str) -> [u8; HEADER_BYTES] {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let mut header = [b' '; HEADER_BYTES];
    header[..6].copy_from_slice(MAGIC);
    header[6..8].copy_from_slice(&[1, 0]);
    header[8..10].copy_from_slice(&(HEADER_BYTES as u16 - 10).to_le_bytes());
    // Three numbers of at most 32 bits: far from the end.
    header[10..10 + text.len()].copy_from_slice(text.as_bytes());
    header[HEADER_BYTES - 1] = b'\n';
    header
}

fn fault(kind: FaultKind, what: impl AsRef<str>) -> SampleFault {
    SampleFault::new(kind, format!("NumPy: {}", what.as_ref()))
}

/// Longest part of a file's text that a message quotes. A message with two quotes fits a fault's
/// text.
const SHOWN: usize = 34;

/// Text from a file, for a message; ASCII.
fn shown(text: &[u8]) -> String {
    // Each byte becomes one character or more.
    let most = &text[..text.len().min(SHOWN + 1)];
    let mut shown = most.escape_ascii().to_string().replace("\\'", "'");
    if shown.len() > SHOWN {
        shown.truncate(SHOWN - 3);
        shown.push_str("...");
    }
    shown
}

/// The values of a dictionary, as written in the file.
struct NpyDictionary<'a> {
    dtype: &'a [u8],
    fortran_order: bool,
    shape: &'a [u8],
    /// Number of sides, and the first four of them.
    sides: usize,
    first: [u64; 4],
}

impl NpyDictionary<'_> {
    fn is_u8(&self) -> bool {
        [&b"'|u1'"[..], b"'u1'", b"'<u1'", b"'>u1'", b"'=u1'"].contains(&self.dtype)
    }

    fn picture(&self, data_at: u64) -> Result<NpyHeader, SampleFault> {
        let channels = match (self.sides, self.first) {
            (2, _) => 1,
            (3, [_, _, channels @ (1 | 3), _]) => channels as u32,
            _ => 0,
        };
        if !self.is_u8() || channels == 0 || self.fortran_order {
            let what = format!(
                "dtype {}, shape {} and {} order is not a picture: use uint8 ('|u1'), (H, W), \
                 (H, W, 1) or (H, W, 3), C order; rename others in shards, such as KEY.depth.npy",
                shown(self.dtype),
                shown(self.shape),
                if self.fortran_order { "Fortran" } else { "C" }
            );
            return Err(fault(FaultKind::Unsupported, what));
        }
        let [height, width, ..] = self.first;
        if height == 0 || width == 0 {
            let what = format!("a picture of {width} x {height} pixels");
            return Err(fault(FaultKind::Corrupt, what));
        }
        if height.max(width) > LONGEST {
            let what = format!("{width} x {height}: a side has at most {LONGEST} pixels");
            return Err(fault(FaultKind::TooLarge, what));
        }
        Ok(NpyHeader {
            height: height as u32,
            width: width as u32,
            channels,
            data_at,
        })
    }
}

/// The rest of a dictionary in Python's notation.
struct DictionaryParser<'a>(&'a [u8]);

impl<'a> DictionaryParser<'a> {
    /// The whole dictionary: three keys, each once, in any order.
    fn array(mut self) -> Option<NpyDictionary<'a>> {
        let (mut dtype, mut order, mut shape) = (None, None, None);
        self.take(b'{').then_some(())?;
        while !self.take(b'}') {
            let key = self.quoted()?;
            self.take(b':').then_some(())?;
            let is_new = match &key[1..key.len() - 1] {
                b"descr" => dtype.replace(self.dtype()?).is_none(),
                b"fortran_order" => order.replace(self.truth()?).is_none(),
                b"shape" => shape.replace(self.shape()?).is_none(),
                _ => false,
            };
            if !is_new || (!self.take(b',') && self.peek() != Some(b'}')) {
                return None;
            }
        }
        let (shape, sides, first) = shape?;
        let array = NpyDictionary {
            dtype: dtype?,
            fortran_order: order?,
            shape,
            sides,
            first,
        };
        self.peek().is_none().then_some(array)
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        self.0 = self.0.trim_ascii_start();
        self.0.first().copied()
    }

    /// Takes `byte` if it is next. Returns whether it was.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.0 = &self.0[1..];
        }
        is_next
    }

    fn split(&mut self, at: usize) -> Option<&'a [u8]> {
        let (text, rest) = self.0.split_at_checked(at)?;
        self.0 = rest;
        Some(text)
    }

    /// A text in quotes, including the quotes. Texts with escapes are not supported.
    fn quoted(&mut self) -> Option<&'a [u8]> {
        let quote = self.peek().filter(|b| matches!(b, b'\'' | b'"'))?;
        let length = self.0[1..].iter().position(|&b| b == quote)?;
        let text = self.split(length + 2)?;
        (!text.contains(&b'\\')).then_some(text)
    }

    /// A type: a text, or a list of fields with types.
    fn dtype(&mut self) -> Option<&'a [u8]> {
        match self.peek()? {
            b'[' => {
                let mut depth = 0usize;
                let mut within = 0u8;
                let end = self.0.iter().position(|&b| {
                    match b {
                        b'\'' | b'"' if within == 0 => within = b,
                        _ if within == b => within = 0,
                        b'[' if within == 0 => depth += 1,
                        b']' if within == 0 => depth -= 1,
                        _ => {}
                    }
                    depth == 0
                })?;
                self.split(end + 1)
            }
            _ => self.quoted(),
        }
    }

    fn truth(&mut self) -> Option<bool> {
        self.peek()?;
        for (text, value) in [(&b"False"[..], false), (b"True", true)] {
            if self.0.starts_with(text) {
                self.split(text.len())?;
                return Some(value);
            }
        }
        None
    }

    /// A tuple of numbers: its text, its length, and the first four.
    fn shape(&mut self) -> Option<(&'a [u8], usize, [u64; 4])> {
        self.peek()?;
        let from = self.0;
        let (mut sides, mut first) = (0, [0; 4]);
        self.take(b'(').then_some(())?;
        while !self.take(b')') {
            let side = self.number()?;
            if let Some(to) = first.get_mut(sides) {
                *to = side;
            }
            sides += 1;
            let is_last = self.peek() == Some(b')');
            // One number in brackets is a number, not a tuple.
            if !(self.take(b',') || is_last && sides > 1) {
                return None;
            }
        }
        Some((&from[..from.len() - self.0.len()], sides, first))
    }

    fn number(&mut self) -> Option<u64> {
        self.peek()?;
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let text = self.split(digits)?;
        // Like Python, rejects 007.
        if text.len() > 1 && text.starts_with(b"0") {
            return None;
        }
        std::str::from_utf8(text).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file as NumPy would write it, with this dictionary.
    fn file(version: u8, dictionary: &str, data: usize) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        let front = if version == 1 { 10 } else { 12 };
        let padded = (front + dictionary.len() + 1).next_multiple_of(64) - front;
        match version {
            1 => bytes.extend((padded as u16).to_le_bytes()),
            _ => bytes.extend((padded as u32).to_le_bytes()),
        }
        bytes.extend(dictionary.as_bytes());
        bytes.resize(front + padded - 1, b' ');
        bytes.push(b'\n');
        bytes.resize(bytes.len() + data, 7);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<NpyHeader, SampleFault> {
        NpyHeader::read(bytes, bytes.len() as u64)
    }

    fn dictionary(descr: &str, order: &str, shape: &str) -> String {
        format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
    }

    /// The bytes that `numpy.save` writes for `np.arange(18, dtype=np.uint8).reshape(2, 3, 3)`.
    #[test]
    fn what_numpy_writes_is_read() {
        let golden = [
            &b"\x93NUMPY\x01\x00\x76\x00"[..],
            b"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 3), }",
            &[b' '; 55],
            b"\n\x00\x01\x02\x03\x04\x05\x06\x07\x08",
            b"\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11",
        ]
        .concat();
        assert_eq!(golden.len(), 128 + 18);
        let header = NpyHeader {
            height: 2,
            width: 3,
            channels: 3,
            data_at: 128,
        };
        assert_eq!(read(&golden).unwrap(), header);
        assert_eq!(golden[header.data()][17], 17);
        for version in 1..=3 {
            for (shape, channels) in [("(2, 3, 3)", 3), ("(2, 3, 1)", 1), ("(2, 3)", 1)] {
                let file = file(version, &dictionary("'|u1'", "False", shape), 18);
                let got = read(&file).unwrap();
                assert_eq!((got.height, got.width, got.channels), (2, 3, channels));
                assert_eq!(got.data_at, 128);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_and_begins_at_a_block() {
        for (height, width) in [(1, 1), (224, 224), (i32::MAX as u32, i32::MAX as u32)] {
            for channels in [1, 3] {
                let written = header((height, width), channels);
                assert_eq!(written[..8], *b"\x93NUMPY\x01\0");
                assert_eq!(written[HEADER_BYTES - 1], b'\n');
                let got = NpyHeader::read(&written, u64::MAX).unwrap();
                let want = NpyHeader {
                    height,
                    width,
                    channels,
                    data_at: 512,
                };
                assert_eq!(got, want);
            }
        }
    }

    #[test]
    fn keys_come_in_any_order_and_quotes() {
        for text in [
            r#"{"shape":(2,3),"fortran_order":False,"descr":"u1"}"#,
            "{ 'shape' : ( 2 , 3 , ) , 'descr' : '<u1' , 'fortran_order' : False , } ",
        ] {
            let text = text.replace('"', "'");
            assert_eq!(read(&file(1, &text, 6)).unwrap().width, 3, "{text}");
        }
    }

    #[test]
    fn arrays_that_are_no_pictures_are_named() {
        let plain = |descr: &str, shape: &str| dictionary(descr, "False", shape);
        for (text, words) in [
            (plain("'<f4'", "(2, 3, 3)"), ["'<f4'", "(2, 3, 3)"]),
            (plain("'|i1'", "(2, 3)"), ["'|i1'", "(2, 3)"]),
            (plain("'|u1'", "(3, 2, 5)"), ["'|u1'", "(3, 2, 5)"]),
            (plain("'|u1'", "(2, 3, 4)"), ["'|u1'", "(2, 3, 4)"]),
            (plain("'|u1'", "(1, 2, 3, 3)"), ["uint8", "(1, 2, 3, 3)"]),
            (plain("'|u1'", "(18,)"), ["'|u1'", "(18,)"]),
            (plain("'|u1'", "()"), ["'|u1'", "()"]),
            (
                plain("[('r', '|u1'), ('g', '|u1', (2,))]", "(2, 3)"),
                ["[('r', '|u1'), ('g', '|u1', (2,))]", "(2, 3)"],
            ),
            (dictionary("'|u1'", "True", "(2, 3)"), ["Fortran", "(2, 3)"]),
        ] {
            let fault = read(&file(1, &text, 99)).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Unsupported, "{text}: {fault}");
            assert!(words.iter().all(|w| fault.reason.contains(w)), "{fault}");
            assert!(fault.reason.contains("such as KEY.depth.npy"), "{fault}");
        }
        // Fits a record of the ring, whatever the file contains.
        let long = plain(
            &format!("'{}'", "\u{ff}".repeat(90)),
            &format!("({})", "9, ".repeat(300)),
        );
        let fault = read(&file(1, &long, 99)).unwrap_err();
        assert!(fault.reason.ends_with("KEY.depth.npy"), "{fault}");
        assert!(
            fault.reason.contains("9, ...") && fault.reason.len() <= 240,
            "{fault}"
        );
        let mut later = file(1, &plain("'|u1'", "(2, 3)"), 6);
        later[6] = 4;
        let fault = read(&later).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unsupported);
        assert!(fault.reason.contains("version 4.0"), "{fault}");
    }

    #[test]
    fn headers_that_are_none_are_refused() {
        let plain = |shape| dictionary("'|u1'", "False", shape);
        for text in [
            "{}".into(),
            plain("(2, 3"),
            plain("(2 3)"),
            plain("2, 3"),
            plain("(6)"),
            plain("(02, 3)"),
            plain("(-2, 3)"),
            plain("(2.0, 3)"),
            plain("(2, 99999999999999999999999)"),
            plain("(0, 3)"),
            dictionary("|u1", "False", "(2, 3)"),
            dictionary("'\\x7cu1'", "False", "(2, 3)"),
            dictionary("'|u1'", "0", "(2, 3)"),
            format!("{} 1", plain("(2, 3)")),
            plain("(2, 3)").replace("'shape'", "'descr'"),
            plain("(2, 3)").replace(", }", ", 'more': 1}"),
            plain("(2, 3), 'shape': (2, 3)"),
        ] {
            let fault = read(&file(1, &text, 99)).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Corrupt, "{text}: {fault}");
        }
        let fault = read(&file(1, &plain("(2147483648, 3)"), 9)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::TooLarge, "{fault}");
        let long = file(2, &plain(&format!("({}2, 3)", " ".repeat(10_000))), 6);
        let fault = read(&long).unwrap_err();
        assert!(fault.reason.contains("over 10000"), "{fault}");
    }

    #[test]
    fn a_file_that_is_too_short_is_truncated_wherever_it_ends() {
        for version in [1, 2] {
            let whole = file(version, &dictionary("'|u1'", "False", "(2, 3, 3)"), 18);
            assert!(read(&[&whole[..], b"more"].concat()).is_ok());
            for len in MAGIC.len()..whole.len() {
                let fault = read(&whole[..len]).unwrap_err();
                assert_eq!(fault.kind, FaultKind::Truncated, "{len}: {fault}");
            }
            let fault = read(&whole[..whole.len() - 1]).unwrap_err();
            assert!(
                fault.reason.contains("(2, 3, 3) needs 146 bytes"),
                "{fault}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// Damage never causes a panic, and pixels always lie in the file.
        #[test]
        fn damage_is_a_fault_or_a_smaller_picture(
            version in 1u8..=3,
            shape in prop::sample::select(vec!["(2, 3, 3)", "(2, 3)", "(9, 1, 1)"]),
            damage in prop::collection::vec((0usize..146, any::<u8>()), 1..4),
            text in prop::option::of("[{}()\\[\\]',:0-9a-z |]{0,60}"),
            cut in 0usize..200,
        ) {
            let mut bytes = match text {
                Some(text) => file(version, &text, 18),
                None => file(version, &dictionary("'|u1'", "False", shape), 18),
            };
            for (at, to) in damage {
                let len = bytes.len();
                bytes[at % len] = to;
            }
            bytes.truncate(cut.max(6));
            if let Ok(header) = read(&bytes) {
                prop_assert!(header.data_at + header.data_bytes() <= bytes.len() as u64);
                prop_assert!(bytes.get(header.data()).is_some());
                prop_assert!(header.height > 0 && header.width > 0);
            }
        }
    }
}

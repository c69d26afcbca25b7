//! Detects UTF-16 and UTF-32, which lists, tables and class files must not use.
//!
//! Runs in the consumer. Looks at the start of a file. Recognizes these encodings by a byte order
//! mark. Without a mark, most units must be ASCII characters, and all must decode as text.

use std::path::Path;

/// Bytes that are checked.
pub(crate) const HEAD: usize = 1 << 10;

/// A text encoding that is not supported, by its name in iconv.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextEncoding {
    name: &'static str,
    /// Bytes per unit.
    width: usize,
    is_big_endian: bool,
}

const UTF_32: [TextEncoding; 2] = [
    encoding("UTF-32LE", 4, false),
    encoding("UTF-32BE", 4, true),
];
const UTF_16: [TextEncoding; 2] = [
    encoding("UTF-16LE", 2, false),
    encoding("UTF-16BE", 2, true),
];

const fn encoding(name: &'static str, width: usize, is_big_endian: bool) -> TextEncoding {
    TextEncoding {
        name,
        width,
        is_big_endian,
    }
}

impl TextEncoding {
    /// The encoding of a file that begins with `head`. `None` for UTF-8, for other text, and for
    /// bytes that are not text.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let head = &head[..head.len().min(HEAD)];
        // UTF-32 comes first, because the mark of UTF-32LE begins with that of UTF-16LE.
        let mut known = UTF_32.into_iter().chain(UTF_16);
        known.find(|encoding| encoding.fits(head))
    }

    /// The error for such a file, and how to convert it: a fragment that begins with `is`.
    pub(crate) fn text(self, path: &Path) -> String {
        let (name, path) = (self.name, path.display());
        format!(
            "is {name} text: save it as UTF-8 (iconv -f {name} -t UTF-8 '{path}' > NEW), and use \
             that file"
        )
    }

    fn fits(self, head: &[u8]) -> bool {
        let mut units = head.chunks_exact(self.width).map(|unit| self.unit(unit));
        let Some(first) = units.next() else {
            return false;
        };
        let has_mark = first == 0xfeff;
        let rest = units.clone();
        let all: Vec<u32> = match has_mark {
            true => rest.collect(),
            false => std::iter::once(first).chain(rest).collect(),
        };
        if all.is_empty() {
            return false;
        }
        let is_low = |unit: &&u32| (0x20..0x7f).contains(*unit) || is_blank(**unit);
        // Without a mark, only mostly Latin text can be told from other bytes.
        let is_latin = all.iter().filter(is_low).count() * 2 > all.len() && all.len() > 1;
        (has_mark || is_latin) && self.is_text(&all)
    }

    fn unit(self, bytes: &[u8]) -> u32 {
        let add = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
        match self.is_big_endian {
            true => bytes.iter().fold(0, add),
            false => bytes.iter().rev().fold(0, add),
        }
    }

    /// Whether all units are characters of text. The last one may be cut.
    fn is_text(self, units: &[u32]) -> bool {
        let is_char = |c: char| !c.is_control() || is_blank(c as u32);
        if self.width == 4 {
            return units
                .iter()
                .all(|unit| char::from_u32(*unit).is_some_and(is_char));
        }
        let narrow = units.iter().map(|unit| *unit as u16);
        let decoded: Vec<_> = char::decode_utf16(narrow).collect();
        let (last, others) = match decoded.split_last() {
            Some(split) => split,
            None => return false,
        };
        let is_whole = |c: &Result<char, _>| matches!(c, Ok(c) if is_char(*c));
        others.iter().all(is_whole) && last.as_ref().map_or(true, |c| is_char(*c))
    }
}

fn is_blank(unit: u32) -> bool {
    matches!(unit, 0x09 | 0x0a | 0x0d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
        let units = text.encode_utf16();
        let mark = mark.then_some(0xfeff);
        let bytes = |unit: u16| match big {
            true => unit.to_be_bytes(),
            false => unit.to_le_bytes(),
        };
        mark.into_iter().chain(units).flat_map(bytes).collect()
    }

    #[test]
    fn wide_text_is_known_with_a_mark_and_without_one() {
        let text = "a/1.jpg 0\r\nb/2.jpg 1\r\n";
        for mark in [true, false] {
            for (big, name) in [(false, "UTF-16LE"), (true, "UTF-16BE")] {
                let found = TextEncoding::of(&utf16(text, mark, big)).unwrap();
                assert_eq!(found.name, name, "{mark}");
            }
        }
        let wide = |c: char| u32::from(c).to_le_bytes();
        let bytes: Vec<u8> = "\u{feff}a.jpg 0\n".chars().flat_map(wide).collect();
        assert_eq!(TextEncoding::of(&bytes).unwrap().name, "UTF-32LE");
        let bytes: Vec<u8> = "a.jpg 0\n".chars().flat_map(wide).collect();
        assert_eq!(TextEncoding::of(&bytes).unwrap().name, "UTF-32LE");
        // Letters that are not Latin, with a mark.
        let found = TextEncoding::of(&utf16("猫/一.jpg 0\n", true, false)).unwrap();
        let said = found.text(Path::new("l.txt"));
        assert!(
            said.contains("is UTF-16LE text")
                && said.contains("iconv -f UTF-16LE -t UTF-8 'l.txt'"),
            "{said}"
        );
        // A text longer than the checked bytes.
        let long = "a.jpg 0\n".repeat(1000);
        assert!(TextEncoding::of(&utf16(&long, false, true)).is_some());
    }

    #[test]
    fn other_text_and_other_bytes_are_not_wide() {
        for bytes in [
            &b""[..],
            b"a",
            b"ab",
            b"a.jpg 0\n",
            b"\xef\xbb\xbfa.jpg 0\n",
            b"\xff\xfe\x01\x02\x00\x00\x04",
            b"\xff\xd8\xff\xe0\0\x10JFIF\0",
            b"\0\0\0\x20ftypisom\0\0\x02\0",
            b"BM\x36\0\0\0\0\0\0\0",
            b"\xe7\x8c\xab/1.jpg 0\n",
        ] {
            assert_eq!(TextEncoding::of(bytes), None, "{bytes:?}");
        }
    }
}

//! Makes untrusted text safe for a terminal: paths, keys of stores, names in archives, messages of
//! libraries.
//!
//! The text of every [`Error`](super::Error) passes through [`printable`], and so does each line of
//! the command line. Applying it twice changes nothing.

use std::borrow::Cow;

/// Most bytes of a text. The longest path of the system (4,096 bytes) stays whole.
const LONGEST: usize = 8 << 10;

/// Bytes of a shortened text that its middle mark takes.
const WORDS: usize = 48;

/// `text` as one line that cannot control a terminal.
///
/// Escapes control characters, line breaks, marks that change the direction of writing, and
/// invisible characters: `\u{1b}`, `\n`, `\u{202e}`. Invalid UTF-8 becomes `\xff`. Texts over 8 KiB
/// lose their middle, and the number of removed bytes is inserted.
///
/// ```
/// use featherload::error::printable;
///
/// assert_eq!(printable("a\u{1b}[2J\u{202e}.jpg"), "a\\u{1b}[2J\\u{202e}.jpg");
/// assert_eq!(printable(b"caf\xe9/\xc3\xa9"), "caf\\xe9/é");
/// let long = printable("x".repeat(60_000_000));
/// assert!(long.len() <= 8192 && long.contains("bytes left out"));
/// ```
pub fn printable(text: impl AsRef<[u8]>) -> String {
    printable_within(text, LONGEST)
}

/// Like [`printable`], with another maximum length in bytes.
pub fn printable_within(text: impl AsRef<[u8]>, most: usize) -> String {
    let text = text.as_ref();
    if text.len() <= most {
        let whole: String = pieces(text).map(|(_, piece)| piece).collect();
        if whole.len() <= most {
            return whole;
        }
    }
    let half = most.saturating_sub(WORDS) / 2;
    let (before, head) = fitting(pieces(text), half);
    let mut from = text.len().saturating_sub(half).max(before);
    // Not inside a character.
    while from > before && from < text.len() && text[from] & 0xc0 == 0x80 {
        from -= 1;
    }
    let mut last: Vec<_> = pieces(&text[from..]).collect();
    last.reverse();
    let (after, mut tail) = fitting(last.into_iter(), half);
    tail.reverse();
    let left_out = text.len() - before - after;
    format!(
        "{}[{left_out} bytes left out]{}",
        head.concat(),
        tail.concat()
    )
}

/// The first pieces that fit into `most` bytes, and the number of bytes of the text that they stand
/// for.
fn fitting<'a>(
    pieces: impl Iterator<Item = (usize, Cow<'a, str>)>,
    most: usize,
) -> (usize, Vec<Cow<'a, str>>) {
    let (mut bytes, mut length) = (0, 0);
    let mut fitting = Vec::new();
    for (of_text, piece) in pieces {
        length += piece.len();
        if length > most {
            break;
        }
        bytes += of_text;
        fitting.push(piece);
    }
    (bytes, fitting)
}

/// The escaped text in pieces that can be removed one by one, each with its number of bytes in the
/// text.
pub(crate) fn pieces(text: &[u8]) -> impl Iterator<Item = (usize, Cow<'_, str>)> {
    text.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid();
        let of_text = valid.char_indices().map(move |(at, c)| {
            let piece = &valid[at..at + c.len_utf8()];
            match is_harmless(c) {
                true => (piece.len(), Cow::Borrowed(piece)),
                false => (piece.len(), Cow::Owned(c.escape_default().to_string())),
            }
        });
        let others = chunk.invalid().iter();
        of_text.chain(others.map(|byte| (1, Cow::Owned(format!("\\x{byte:02x}")))))
    })
}

/// Whether a terminal shows the character in place and does nothing else.
pub fn is_harmless(c: char) -> bool {
    match c {
        ' '..='~' => true,
        // Marks of direction, and invisible characters.
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        // Line separators, too.
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => false,
        // C0, DEL and C1.
        c => !c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_moves_a_cursor_or_turns_a_text() {
        let hostile = (0..0x20)
            .chain(0x7f..0xa0)
            .chain([0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff, 0xe0041])
            .chain(0x202a..=0x202e)
            .chain(0x2066..=0x2069);
        for c in hostile.filter_map(char::from_u32) {
            let shown = printable(format!("a{c}b"));
            assert!(shown.bytes().all(|b| (b' '..=b'~').contains(&b)), "{shown}");
            assert!(shown.starts_with("a\\") && shown.ends_with('b'), "{shown}");
        }
        for kept in ["äöü 日本 \u{1f600} עברית", "a\\b 'c' \"d\"", ""] {
            assert_eq!(printable(kept), kept);
        }
        assert_eq!(printable(b"\xff\x9b\xc2"), "\\xff\\x9b\\xc2");
    }

    #[test]
    fn a_text_that_has_passed_once_stays_as_it_is() {
        for text in [
            "\u{1b}[31m\n".repeat(20_000),
            "é\u{202e}".repeat(3_000),
            "x".repeat(LONGEST + 1),
            "日".repeat(LONGEST),
            "x".repeat(LONGEST),
        ] {
            let once = printable(&text);
            assert!(once.len() <= LONGEST, "{}", once.len());
            assert_eq!(printable(&once), once);
        }
    }

    #[test]
    fn a_long_text_loses_its_middle_and_says_how_much() {
        let text = format!("open {}: File name too long", "é".repeat(30_000_000));
        let shown = printable(&text);
        assert!(shown.starts_with("open éé"), "{shown}");
        assert!(shown.ends_with("éé: File name too long"), "{shown}");
        let (head, rest) = shown.split_once('[').unwrap();
        let (words, tail) = rest.split_once(']').unwrap();
        let left_out: usize = words
            .strip_suffix(" bytes left out")
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(head.len() + left_out + tail.len(), text.len());
        // The longest path of the system stays whole.
        let path = "p".repeat(4096);
        assert!(printable(format!("{path}: no such file")).starts_with(&path));
    }
}

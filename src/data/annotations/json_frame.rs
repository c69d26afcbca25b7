//! Finds the end of a JSON value, piece by piece.
//!
//! Only brackets and texts are looked at. What is inside a value is checked by its reader.

/// Brackets that may be open at once. Annotations have five.
const MOST_OPEN: u32 = 128;

/// Why a value has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameFault {
    /// A closing bracket of the other kind.
    WrongBracket,
    TooDeep,
}

impl FrameFault {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::WrongBracket => "a closing bracket that fits no opening one",
            Self::TooDeep => "more than 128 brackets are open",
        }
    }
}

/// Where in a value the bytes so far have led.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueFrame {
    open: u32,
    /// A bit for each open bracket, the innermost lowest: 1 for an object.
    objects: u128,
    in_text: bool,
    escaped: bool,
}

/// A bracket or the quote of a text.
fn is_mark(byte: u8) -> bool {
    // In ASCII, square brackets and braces differ by this bit.
    let brace = byte | 0x20;
    (brace == b'{') | (brace == b'}') | (byte == b'"')
}

/// The first byte that is a mark.
fn find_mark(bytes: &[u8]) -> Option<usize> {
    // Most of a file is numbers. Pieces without a mark are found by vector instructions.
    let (pieces, _) = bytes.as_chunks::<32>();
    let has_mark = |piece: &[u8; 32]| piece.iter().fold(false, |found, b| found | is_mark(*b));
    let before = pieces.iter().take_while(|piece| !has_mark(piece)).count() * 32;
    let found = bytes[before..].iter().position(|b| is_mark(*b));
    found.map(|at| before + at)
}

impl ValueFrame {
    /// Goes on over `bytes`. Returns how many of them belong to the value, if it ends there.
    ///
    /// The value is a text, a list or an object.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Result<Option<usize>, FrameFault> {
        let mut at = 0;
        while at < bytes.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            let rest = &bytes[at..];
            let found = match self.in_text {
                true => rest.iter().position(|b| matches!(b, b'"' | b'\\')),
                false => find_mark(rest),
            };
            let Some(found) = found else {
                return Ok(None);
            };
            let byte = rest[found];
            at += found + 1;
            match byte {
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_text = !self.in_text;
                    if !self.in_text && self.open == 0 {
                        return Ok(Some(at));
                    }
                }
                b'{' | b'[' => {
                    if self.open == MOST_OPEN {
                        return Err(FrameFault::TooDeep);
                    }
                    self.open += 1;
                    self.objects = self.objects << 1 | u128::from(byte == b'{');
                }
                _ => {
                    if self.open == 0 || (self.objects & 1 == 1) != (byte == b'}') {
                        return Err(FrameFault::WrongBracket);
                    }
                    self.open -= 1;
                    self.objects >>= 1;
                    if self.open == 0 {
                        return Ok(Some(at));
                    }
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_at_the_same_byte_in_any_pieces() {
        let deep = ["[".repeat(128), "]".repeat(128)].concat();
        for value in [
            r#""a\"b\\""#,
            r#"{"a]": [1, {"b": "}"}], "\\": "\u005d"}"#,
            "[]",
            deep.as_str(),
        ] {
            let text = format!("{value}]}},1");
            for piece in 1..text.len() {
                let mut frame = ValueFrame::default();
                let mut end = None;
                for (n, bytes) in text.as_bytes().chunks(piece).enumerate() {
                    if let Some(at) = frame.pass(bytes).unwrap() {
                        end = Some(n * piece + at);
                        break;
                    }
                }
                assert_eq!(end, Some(value.len()), "{value} {piece}");
            }
        }
    }

    #[test]
    fn marks_are_brackets_and_quotes() {
        for byte in 0..=255u8 {
            assert_eq!(is_mark(byte), b"\"{}[]".contains(&byte), "{byte}");
        }
        for at in 0..100 {
            let mut bytes = vec![b'1'; 100];
            assert_eq!(find_mark(&bytes), None);
            bytes[at..].fill(b']');
            assert_eq!(find_mark(&bytes), Some(at));
        }
    }

    #[test]
    fn wrong_and_deep_brackets_are_faults() {
        let of = |text: &str| ValueFrame::default().pass(text.as_bytes());
        assert_eq!(of("[}"), Err(FrameFault::WrongBracket));
        assert_eq!(of("{\"a\": 1]"), Err(FrameFault::WrongBracket));
        assert_eq!(of(&"[".repeat(129)), Err(FrameFault::TooDeep));
        assert_eq!(of("[1, \"]"), Ok(None));
    }
}

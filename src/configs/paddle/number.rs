//! Numbers that a config writes as text, such as `1.0/255.0`.
//!
//! Supports `+ - * /`, signs and parentheses with decimal numbers. No names, no calls, no powers.
//! PaddleClas passes such texts to Python's `eval`. Here a text either is a number or is rejected.

/// The maximum length of a text, in bytes.
const LONGEST: usize = 128;
/// The maximum nesting of parentheses.
const DEEPEST: usize = 16;

/// The value of an arithmetic text.
///
/// # Errors
/// If the text is not arithmetic, is too long or nested too deeply, or is not finite. The message
/// is a part of a sentence.
pub(crate) fn arithmetic(text: &str) -> Result<f64, String> {
    if text.len() > LONGEST {
        return Err(format!(
            "{} bytes of arithmetic: use at most {LONGEST}",
            text.len()
        ));
    }
    let mut rest = ArithmeticParser {
        text: text.as_bytes(),
        at: 0,
    };
    let value = rest.sum(0)?;
    match rest.peek() {
        None if value.is_finite() => Ok(value),
        None => Err(format!("'{text}' is not a finite number")),
        Some(_) => Err(rest.unexpected()),
    }
}

struct ArithmeticParser<'a> {
    text: &'a [u8],
    at: usize,
}

impl ArithmeticParser<'_> {
    /// The next byte that is not a blank.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn unexpected(&mut self) -> String {
        let what = match self.peek() {
            None => "its end".to_owned(),
            Some(_) => {
                let rest = String::from_utf8_lossy(self.text.get(self.at..).unwrap_or_default());
                format!("'{rest}'")
            }
        };
        format!(
            "'{}': expected a number or ( before {what}. Use numbers, + - * / and parentheses, \
             no names",
            String::from_utf8_lossy(self.text)
        )
    }

    fn sum(&mut self, depth: usize) -> Result<f64, String> {
        let mut value = self.product(depth)?;
        loop {
            if self.take(b'+') {
                value += self.product(depth)?;
            } else if self.take(b'-') {
                value -= self.product(depth)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Result<f64, String> {
        let mut value = self.signed(depth)?;
        loop {
            if self.take(b'*') {
                value *= self.signed(depth)?;
            } else if self.take(b'/') {
                let by = self.signed(depth)?;
                if by == 0.0 {
                    let text = String::from_utf8_lossy(self.text);
                    return Err(format!("'{text}' divides by 0"));
                }
                value /= by;
            } else {
                return Ok(value);
            }
        }
    }

    fn signed(&mut self, depth: usize) -> Result<f64, String> {
        let mut negative = false;
        loop {
            if self.take(b'-') {
                negative = !negative;
            } else if !self.take(b'+') {
                break;
            }
        }
        let value = self.atom(depth)?;
        Ok(if negative { -value } else { value })
    }

    fn atom(&mut self, depth: usize) -> Result<f64, String> {
        if self.take(b'(') {
            if depth == DEEPEST {
                return Err(format!("more than {DEEPEST} nested parentheses"));
            }
            let value = self.sum(depth + 1)?;
            return match self.take(b')') {
                true => Ok(value),
                false => Err(format!(
                    "'{}' lacks a )",
                    String::from_utf8_lossy(self.text)
                )),
            };
        }
        let Some(b'0'..=b'9' | b'.') = self.peek() else {
            return Err(self.unexpected());
        };
        let start = self.at;
        self.digits();
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits();
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        let value: Option<f64> = std::str::from_utf8(word).ok().and_then(|w| w.parse().ok());
        value.filter(|v| v.is_finite()).ok_or_else(|| {
            let word = String::from_utf8_lossy(word);
            format!("'{word}' is not a finite number")
        })
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::arithmetic;

    #[test]
    fn what_configs_write() {
        for (text, value) in [
            ("1.0/255.0", 1.0 / 255.0),
            ("1.0/3.0", 1.0 / 3.0),
            ("1./255", 1.0 / 255.0),
            (".5", 0.5),
            ("0.00392157", 0.003_921_57),
            ("1e-3", 1e-3),
            ("2.5E+2", 250.0),
            (" 1 + 2 * 3 ", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 / 2 / 2", 2.0),
            ("1 - 2 - 3", -4.0),
            ("-3 * -(2)", 6.0),
            ("--2", 2.0),
            ("+-2", -2.0),
        ] {
            assert_eq!(arithmetic(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn nothing_else_is_a_number() {
        for (text, word) in [
            ("", "its end"),
            ("None", "'None'"),
            ("nan", "'nan'"),
            ("inf", "'inf'"),
            ("e5", "'e5'"),
            ("__import__('os').system('true')", "names"),
            ("1.0/255.0; x", "'; x'"),
            ("len(x)", "'len(x)'"),
            ("2**8", "'*8'"),
            ("7//2", "'/2'"),
            ("7 % 2", "'% 2'"),
            ("1_000", "'_000'"),
            ("0x10", "'x10'"),
            ("1,5", "',5'"),
            ("1 2", "'2'"),
            ("1.2.3", "'.3'"),
            (".", "finite"),
            ("1e", "finite"),
            ("(1", "lacks"),
            ("1)", "')'"),
            ("()", "')'"),
            ("1/", "its end"),
            ("1/0", "divides by 0"),
            ("1/(2-2)", "divides by 0"),
            ("1/-0", "divides by 0"),
            ("1e999", "finite"),
            ("1e99999999999999999999", "finite"),
            ("1e308*10", "finite"),
            ("1e308*10-1e308*10", "finite"),
            ("\u{0661}", "number"),
            ("1\t+1", "number"),
        ] {
            let e = arithmetic(text).unwrap_err();
            assert!(e.contains(word), "{text}: {e}");
        }
    }

    #[test]
    fn depth_and_length_have_ends() {
        let nested = |n: usize| format!("{}1{}", "(".repeat(n), ")".repeat(n));
        assert_eq!(arithmetic(&nested(16)), Ok(1.0));
        assert!(arithmetic(&nested(17)).unwrap_err().contains("16"));
        assert!(arithmetic(&nested(100_000)).unwrap_err().contains("128"));
        assert_eq!(arithmetic(&format!("{}1", "-".repeat(126))), Ok(1.0));
        assert!(arithmetic(&"1+".repeat(1000)).unwrap_err().contains("2000"));
    }
}

//! The colour that a transparent picture is shown on.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::Error;

/// The colour that shows through where a picture is transparent, 0 to 255 for
/// red, green and blue. In text `white`, `black` or `rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BackgroundColor(pub [u8; 3]);

impl BackgroundColor {
    pub const WHITE: Self = Self([255; 3]);
    pub const BLACK: Self = Self([0; 3]);
}

/// What becomes of alpha where a pixel becomes red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlphaPolicy {
    /// Composited on a background.
    Composite(BackgroundColor),
    /// Left out: the colours as they are stored.
    Ignore,
    /// Alpha takes the place of each colour; 255 where there is none.
    AlphaOnly,
}

/// White, as browsers and nerfstudio show such pictures.
impl Default for BackgroundColor {
    fn default() -> Self {
        Self::WHITE
    }
}

impl fmt::Display for BackgroundColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "{r:02x}{g:02x}{b:02x}")
    }
}

impl FromStr for BackgroundColor {
    type Err = Error;

    /// `white`, `black`, or six hexadecimal digits as in `ff8000`.
    fn from_str(s: &str) -> Result<Self, Error> {
        let digits = match s {
            "white" => return Ok(Self::WHITE),
            "black" => return Ok(Self::BLACK),
            _ => s.strip_prefix('#').unwrap_or(s),
        };
        u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| digits.len() == 6 && !digits.starts_with('+'))
            .map(|rgb| Self([(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8]))
            .ok_or_else(|| {
                Error::config(format!(
                    "background '{s}' is unknown: use white, black or six hexadecimal digits \
                     such as ff8000"
                ))
            })
    }
}

impl Serialize for BackgroundColor {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // With the mark: six digits alone could be read as a number.
        s.collect_str(&format_args!("#{self}"))
    }
}

impl<'de> Deserialize<'de> for BackgroundColor {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<str>::deserialize(d)?;
        word.parse().map_err(|_: Error| {
            D::Error::custom(format_args!(
                "expected white, black or six hexadecimal digits such as ff8000, found the text \
                 '{word}'"
            ))
        })
    }
}

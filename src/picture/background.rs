//! The background of transparent images.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::Error;

/// The background of transparent pixels: red, green and blue, 0 to 255 each. In text `white`,
/// `black` or `rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BackgroundColor(pub [u8; 3]);

impl BackgroundColor {
    pub const WHITE: Self = Self([255; 3]);
    pub const BLACK: Self = Self([0; 3]);
}

/// How alpha is handled when a pixel becomes red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlphaPolicy {
    /// Composites the pixel on a background.
    Composite(BackgroundColor),
    /// Drops alpha and keeps the stored colours.
    Ignore,
    /// Replaces each colour by alpha; 255 for pixels without alpha.
    AlphaOnly,
}

/// White, as in browsers and nerfstudio.
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

    /// Parses `white`, `black`, or six hexadecimal digits such as `ff8000`.
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
        // With `#`, because six digits alone could be read as a number.
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

//! The numeric profile: everything except index, recipe and seed that determines the bytes of a
//! batch.
//!
//! It is chosen once, before the run, and never by timing. `State` stores it, and every digest
//! prints it. A run cannot resume under another profile.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::program::SampleProgram;

/// Two streams can be bit-identical only if these values are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumericProfile {
    /// Version of this crate.
    pub featherload: String,
    /// Decoder and its version.
    pub decoder: String,
    /// `full` or `scaled`.
    pub decode: String,
    /// Device and arithmetic of the resampler.
    pub resampler: String,
    /// What workers hand over.
    pub hand_over: String,
    pub dtype: String,
}

/// The libraries whose pixels define the results for JPEG and lossy WebP. The JPEG decoder is our
/// own. Tests compare it with this version. `Cargo.toml` pins both.
const DECODER: &str = "libjpeg-turbo 3.1.0, image-webp 0.2.4";

impl NumericProfile {
    /// The profile of a program.
    pub(crate) fn of(program: &SampleProgram) -> Self {
        Self {
            featherload: env!("CARGO_PKG_VERSION").to_owned(),
            decoder: DECODER.to_owned(),
            decode: program.decode.name().to_owned(),
            resampler: match program.crops {
                Some(_) => "f32 CUDA, u8 CPU beyond a row's room".to_owned(),
                None => "u8 CPU".to_owned(),
            },
            hand_over: match program.crops {
                Some(_) => "crops".to_owned(),
                None => "finished rows".to_owned(),
            },
            dtype: program.output_format.dtype.name().to_owned(),
        }
    }

    /// The first field in which two profiles differ: name, our value, their value.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let fields = |p: &Self| {
            [
                ("featherload", p.featherload.clone()),
                ("decoder", p.decoder.clone()),
                ("decode", p.decode.clone()),
                ("resampler", p.resampler.clone()),
                ("hand_over", p.hand_over.clone()),
                ("dtype", p.dtype.clone()),
            ]
        };
        fields(self)
            .into_iter()
            .zip(fields(other))
            .find(|(a, b)| a.1 != b.1)
            .map(|(a, b)| (a.0, a.1, b.1))
    }
}

impl fmt::Display for NumericProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "featherload {}, {}, decode {}, {}, {}, {}",
            self.featherload, self.decoder, self.decode, self.resampler, self.hand_over, self.dtype
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decoders_are_those_that_are_pinned() {
        let pins = include_str!("../../Cargo.toml");
        let webp = DECODER.rsplit_once(' ').unwrap().1;
        assert!(pins.contains(&format!("image-webp = \"={webp}\"")));
        assert!(pins.contains("turbojpeg-sys = \"=1.2.0\""));
        assert!(DECODER.starts_with("libjpeg-turbo 3.1.0,"));
    }

    #[test]
    fn a_difference_is_named() {
        let a = NumericProfile {
            featherload: "0.1.0".into(),
            decoder: "libjpeg-turbo 3.1.0".into(),
            decode: "full".into(),
            resampler: "u8 CPU".into(),
            hand_over: "finished rows".into(),
            dtype: "f16".into(),
        };
        assert_eq!(a.difference(&a.clone()), None);
        let mut b = a.clone();
        b.decode = "scaled".into();
        let (then, now) = ("full".to_owned(), "scaled".to_owned());
        assert_eq!(a.difference(&b), Some(("decode", then, now)));
    }
}

//! The notation of timm's policies, such as `rand-m9-mstd0.5-inc1` and `augmix-m5-w4-d2`.

use super::timm::{LevelLaw, LevelRules, LevelSpread, PosterizeBits, WEIGHTS};
use super::timm_tables::{ORIGINAL, TableEntry, V0};
use crate::recipe::values::ChainDepth;

/// The meaning of a policy text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TimmPolicy {
    /// Some operations, one after the other.
    Rand(RandLayers),
    /// Several chains of operations, mixed with the image.
    AugMix(MixedChains),
    /// One pair of a table.
    Auto(PolicyTable),
}

/// `rand`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RandLayers {
    pub(crate) levels: LevelLaw,
    /// The number of operations.
    pub(crate) layers: u32,
    /// Operations are drawn by `WEIGHTS`, without replacement.
    pub(crate) weighted: bool,
}

/// `augmix`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MixedChains {
    pub(crate) levels: LevelLaw,
    /// The number of chains.
    pub(crate) width: u32,
    /// Operations per chain.
    pub(crate) depth: ChainDepth,
    /// The parameter of the Dirichlet and beta distributions of the weights.
    pub(crate) alpha: f64,
    /// Each chain is mixed into the image after the one before.
    pub(crate) blended: bool,
}

/// `original`, `originalr`, `v0`, `v0r`. The table has the magnitudes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PolicyTable {
    pub(crate) pairs: &'static [[TableEntry; 2]],
    pub(crate) spread: LevelSpread,
    pub(crate) rules: LevelRules,
}

/// The maximum number of operations in a row, and of chains.
pub(crate) const MOST: u32 = 16;

/// The supported notations, for errors.
const RAND: &str =
    "a rand policy such as rand-m9-mstd0.5-inc1, with the parts m, n, mstd, inc1 and w0";
const AUGMIX: &str =
    "an augmix policy such as augmix-m5-w4-d2, with the parts m, w, d, a, b and mstd";
const AUTO: &str = "original, originalr, v0 or v0r, with the part mstd";

impl TimmPolicy {
    /// # Errors
    /// Names the text, and what is supported.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (kind, parts) = text
            .split_once('-')
            .map_or((text, None), |(kind, parts)| (kind, Some(parts)));
        match kind {
            "rand" => rand(parts).map(Self::Rand),
            "augmix" => augmix(parts).map(Self::AugMix),
            "original" => auto(&ORIGINAL, PosterizeBits::Original, parts).map(Self::Auto),
            "originalr" => auto(&ORIGINAL, PosterizeBits::Falling, parts).map(Self::Auto),
            "v0" => auto(&V0, PosterizeBits::Rising, parts).map(Self::Auto),
            "v0r" => auto(&V0, PosterizeBits::Falling, parts).map(Self::Auto),
            _ => Err(format!("use {RAND}; {AUGMIX}; or {AUTO}")),
        }
        .map_err(|why| format!("config is '{text}': {why}"))
    }
}

fn rand(parts: Option<&str>) -> Result<RandLayers, String> {
    let mut policy = RandLayers {
        levels: LevelLaw {
            magnitude: 10.0,
            spread: LevelSpread::Normal(0.0),
            rules: LevelRules::PLAIN,
        },
        layers: 2,
        weighted: false,
    };
    each_part(parts, |part| {
        match part.key {
            "m" => policy.levels.magnitude = part.magnitude()?,
            "n" => policy.layers = part.whole_from(1)?,
            "mstd" => policy.levels.spread = part.deviation()?,
            "inc" => match part.whole() {
                Some(1) => policy.levels.rules = LevelRules::INCREASING,
                Some(_) => {
                    return Err(format!(
                        "'{part}' is unclear, and timm reads any number as 1: write inc1"
                    ));
                }
                None => {
                    return Err(format!(
                        "'{part}' has no number, and timm skips it then: use inc1, or remove it"
                    ));
                }
            },
            "w" => match part.whole() {
                Some(0) => policy.weighted = true,
                _ => return Err(format!("'{part}' is unknown: timm has one table, w0")),
            },
            _ => return Err(format!("'{part}' is unknown: use {RAND}")),
        }
        Ok(())
    })?;
    let different = WEIGHTS.iter().filter(|w| **w > 0.0).count() as u32;
    if policy.weighted && policy.layers > different {
        return Err(format!(
            "n is {}, and w0 has {different} operations, each once: use n1 to n{different}",
            policy.layers
        ));
    }
    Ok(policy)
}

fn augmix(parts: Option<&str>) -> Result<MixedChains, String> {
    let mut policy = MixedChains {
        levels: LevelLaw {
            magnitude: 3.0,
            spread: LevelSpread::Uniform,
            rules: LevelRules::CHAINS,
        },
        width: 3,
        depth: ChainDepth::Random,
        alpha: 1.0,
        blended: false,
    };
    each_part(parts, |part| {
        match part.key {
            "m" => policy.levels.magnitude = part.magnitude()?,
            "mstd" => policy.levels.spread = part.deviation()?,
            "w" => policy.width = part.whole_from(1)?,
            "d" => {
                policy.depth = match part.whole_from(0)? {
                    0 => ChainDepth::Random,
                    depth => ChainDepth::Fixed(depth),
                }
            }
            "a" => match part.value.parse::<f64>() {
                Ok(alpha) if (0.01..=100.0).contains(&alpha) => policy.alpha = alpha,
                _ => {
                    return Err(format!(
                        "'{part}' is out of range: use a with a number from 0.01 to 100, such as \
                         a1"
                    ));
                }
            },
            "b" => match part.whole() {
                Some(whole @ (0 | 1)) => policy.blended = whole == 1,
                _ => return Err(format!("'{part}' is unclear: use b0 or b1")),
            },
            _ => return Err(format!("'{part}' is unknown: use {AUGMIX}")),
        }
        Ok(())
    })?;
    Ok(policy)
}

fn auto(
    pairs: &'static [[TableEntry; 2]],
    posterize: PosterizeBits,
    parts: Option<&str>,
) -> Result<PolicyTable, String> {
    let mut policy = PolicyTable {
        pairs,
        spread: LevelSpread::Normal(0.0),
        rules: LevelRules {
            posterize,
            ..LevelRules::PLAIN
        },
    };
    each_part(parts, |part| {
        match part.key {
            "mstd" => policy.spread = part.deviation()?,
            _ => return Err(format!("'{part}' is unknown: use {AUTO}")),
        }
        Ok(())
    })?;
    Ok(policy)
}

/// A part of a text: letters, and what follows from the first digit on.
#[derive(Debug, Clone, Copy)]
struct TextPart<'a> {
    text: &'a str,
    key: &'a str,
    value: &'a str,
}

impl std::fmt::Display for TextPart<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)
    }
}

/// Reads all parts. Each key comes once.
fn each_part<'a>(
    parts: Option<&'a str>,
    mut read: impl FnMut(TextPart<'a>) -> Result<(), String>,
) -> Result<(), String> {
    let Some(parts) = parts else { return Ok(()) };
    let split = |text: &'a str| {
        let digit = text.find(|c: char| c.is_ascii_digit());
        text.split_at(digit.unwrap_or(text.len()))
    };
    for (at, text) in parts.split('-').enumerate() {
        let (key, value) = split(text);
        read(TextPart { text, key, value })?;
        if parts
            .split('-')
            .take(at)
            .any(|before| split(before).0 == key)
        {
            return Err(format!("'{key}' is written twice: remove one"));
        }
    }
    Ok(())
}

impl TextPart<'_> {
    fn whole(&self) -> Option<u32> {
        self.value.parse().ok()
    }

    fn magnitude(&self) -> Result<f64, String> {
        match self.whole() {
            Some(m) => Ok(f64::from(m)),
            None => Err(format!("'{self}' has no whole number: use one, as in m9")),
        }
    }

    fn whole_from(&self, least: u32) -> Result<u32, String> {
        match self.whole() {
            Some(n) if (least..=MOST).contains(&n) => Ok(n),
            _ => Err(format!(
                "'{self}' is out of range: use {0}{least} to {0}{MOST}",
                self.key
            )),
        }
    }

    fn deviation(&self) -> Result<LevelSpread, String> {
        match self.value.parse::<f64>() {
            Ok(d) if d <= 100.0 => Ok(LevelSpread::Normal(d)),
            _ => Err(format!(
                "'{self}' is out of range: use mstd with a number from 0 to 100, such as mstd0.5"
            )),
        }
    }
}

//! RandAugment in timm's notation, such as `rand-m9-mstd0.5-inc1`. Parsed and drawn as in
//! PaddleClas' `timm_autoaugment.py` (after `timm.data.auto_augment`).

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::{gauss, sign};
use crate::recipe::augment::policy_op::{
    PolicyOp, WarpOptions, draw_chance, draw_policy_op, push_largest_warps,
};
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{pillow_filter, probability, whole_levels};
use crate::recipe::values::{InterpolationMode, PerChannel};

described! {
    example: "timm_augment: {config: rand-m9-mstd0.5-inc1}";

    /// A policy in timm's notation, such as `rand-m9-mstd0.5-inc1`. Supported: `rand` with the
    /// parts m, n (1 to 16), mstd, inc1 and w0, in any order. A strength is drawn around m and then
    /// clipped to 0 to 10, so m15 is nearly always 10.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TimmAugment {
        /// The policy in timm's notation.
        pub config: String,
        /// The probability, 0 to 1.
        #[serde(default = "TimmAugment::always")]
        pub p: f64,
        /// One filter, or several from which each operation draws one.
        #[serde(default = "TimmAugment::bicubic")]
        pub interpolation: Vec<InterpolationMode>,
        /// The colour outside the image, levels 0 to 255.
        #[serde(default = "TimmAugment::imagenet_mean")]
        pub fill: PerChannel,
    }
}

impl TimmAugment {
    fn always() -> f64 {
        1.0
    }

    fn bicubic() -> Vec<InterpolationMode> {
        vec![InterpolationMode::Bicubic]
    }

    fn imagenet_mean() -> PerChannel {
        PerChannel([124.0, 116.0, 104.0])
    }

    /// Bicubic, with corners of ImageNet's mean colour.
    pub fn new(config: impl Into<String>) -> Self {
        Self {
            config: config.into(),
            p: Self::always(),
            interpolation: Self::bicubic(),
            fill: Self::imagenet_mean(),
        }
    }
}

impl Operation for TimmAugment {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        TimmPolicy::parse(&self.config)?;
        probability(self.p)?;
        if !(1..=MOST_FILTERS).contains(&self.interpolation.len()) {
            return Err(format!(
                "interpolation has {} values: use 1 to {MOST_FILTERS}, such as [bicubic] or \
                 [bilinear, bicubic]",
                self.interpolation.len()
            ));
        }
        self.interpolation
            .iter()
            .try_for_each(|i| pillow_filter(*i))?;
        whole_levels("fill", self.fill)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        // Checked before by `check`.
        let Ok(policy) = TimmPolicy::parse(&self.config) else {
            return Ok(on.size);
        };
        if !draw_chance(self.p, on.random) {
            return Ok(on.size);
        }
        let mut taken = [false; 15];
        for _ in 0..policy.layers {
            let kind = match policy.weighted {
                true => weighted(&mut taken, on.random),
                false => draw_policy_op(&KINDS, on.random),
            };
            let done = draw_chance(0.5, on.random);
            let level = (policy.magnitude + policy.deviation * gauss(on.random)).clamp(0.0, 10.0);
            let sign = sign(on.random);
            let last = self.interpolation.len().saturating_sub(1) as u32;
            let filter = self.interpolation.get(on.random.next_up_to(last) as usize);
            if done {
                let look = WarpOptions::new(filter.copied().unwrap_or_default(), self.fill);
                let amount = amount(kind, level, policy.increasing, sign, on.size);
                on.steps.augment(kind.step(amount, look));
            }
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        if self.p > 0.0 {
            most.optionally(|most| push_largest_warps(2, most));
        }
        size
    }
}

/// The meaning of a policy text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimmPolicy {
    /// The mean and the deviation of the strength. A drawn strength is clipped to 0 to 10.
    pub(crate) magnitude: f64,
    pub(crate) deviation: f64,
    /// The number of operations.
    pub(crate) layers: u32,
    /// All operations become stronger with the strength.
    pub(crate) increasing: bool,
    /// Operations are drawn by `WEIGHTS`, without replacement.
    pub(crate) weighted: bool,
}

/// The maximum number of operations.
const MOST_LAYERS: u32 = 16;

/// The operations, also with `inc1`, where a level means something else for some.
pub(crate) const KINDS: [PolicyOp; 15] = [
    PolicyOp::AutoContrast,
    PolicyOp::Equalize,
    PolicyOp::Invert,
    PolicyOp::Rotate,
    PolicyOp::Posterize,
    PolicyOp::Solarize,
    PolicyOp::SolarizeAdd,
    PolicyOp::Color,
    PolicyOp::Contrast,
    PolicyOp::Brightness,
    PolicyOp::Sharpness,
    PolicyOp::ShearX,
    PolicyOp::ShearY,
    PolicyOp::TranslateX,
    PolicyOp::TranslateY,
];

/// The weights of `KINDS`, with `w0`.
pub(crate) const WEIGHTS: [f64; 15] = [
    0.025, 0.005, 0.0, 0.3, 0.0, 0.005, 0.005, 0.025, 0.005, 0.005, 0.025, 0.2, 0.2, 0.1, 0.1,
];

/// The supported notation, for errors.
const SUPPORTED: &str =
    "a rand policy such as rand-m9-mstd0.5-inc1, with the parts m, n, mstd, inc1 and w0";

impl TimmPolicy {
    /// # Errors
    /// Names the text, and what is supported.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fault = |why: String| Err(format!("config is '{text}': {why}"));
        let mut parts = text.split('-');
        match parts.next() {
            Some("rand") => {}
            Some("augmix") => {
                return fault(format!(
                    "timm's augmix is not supported: use aug_mix, or {SUPPORTED}"
                ));
            }
            Some("original" | "originalr" | "v0" | "v0r") => {
                return fault(format!(
                    "timm's tables of AutoAugment are not supported: use auto_augment, or {SUPPORTED}"
                ));
            }
            _ => return fault(format!("use {SUPPORTED}")),
        }
        let mut policy = Self {
            magnitude: 10.0,
            deviation: 0.0,
            layers: 2,
            increasing: false,
            weighted: false,
        };
        let mut seen = [false; 5];
        for part in parts {
            let digit = part.find(|c: char| c.is_ascii_digit());
            let (key, value) = part.split_at(digit.unwrap_or(part.len()));
            let whole = value.parse::<u32>().ok();
            let which = match key {
                "m" => match whole {
                    Some(m) => {
                        policy.magnitude = f64::from(m);
                        0
                    }
                    None => {
                        return fault(format!("'{part}' has no whole number: use one, as in m9"));
                    }
                },
                "n" => match whole {
                    Some(n @ 1..=MOST_LAYERS) => {
                        policy.layers = n;
                        1
                    }
                    _ => {
                        return fault(format!(
                            "'{part}' is out of range: use n1 to n{MOST_LAYERS}"
                        ));
                    }
                },
                "mstd" => match value.parse::<f64>() {
                    Ok(d) if d <= 100.0 => {
                        policy.deviation = d;
                        2
                    }
                    _ => {
                        return fault(format!(
                            "'{part}' is out of range: use mstd with a number from 0 to 100, \
                             such as mstd0.5"
                        ));
                    }
                },
                "inc" => match whole {
                    Some(1) => {
                        policy.increasing = true;
                        3
                    }
                    Some(_) => {
                        return fault(format!(
                            "'{part}' is unclear, and timm reads any number as 1: write inc1"
                        ));
                    }
                    None => {
                        return fault(format!(
                            "'{part}' has no number, and timm skips it then: use inc1, or remove it"
                        ));
                    }
                },
                "w" => match whole {
                    Some(0) => {
                        policy.weighted = true;
                        4
                    }
                    _ => {
                        return fault(format!("'{part}' is unknown: timm has one table, w0"));
                    }
                },
                _ => return fault(format!("'{part}' is unknown: use {SUPPORTED}")),
            };
            if std::mem::replace(&mut seen[which], true) {
                return fault(format!("'{key}' is written twice: remove one"));
            }
        }
        let different = WEIGHTS.iter().filter(|w| **w > 0.0).count() as u32;
        if policy.weighted && policy.layers > different {
            return fault(format!(
                "n is {}, and w0 has {different} operations, each once: use n1 to n{different}",
                policy.layers
            ));
        }
        Ok(policy)
    }
}

/// The amount for a level of 0 to 10. Equals timm's `LEVEL_TO_ARG` bit by bit.
pub(crate) fn amount(
    kind: PolicyOp,
    level: f64,
    increasing: bool,
    sign: f64,
    size: (u32, u32),
) -> f64 {
    let part = level / 10.0;
    match kind {
        PolicyOp::Rotate => part * 30.0 * sign,
        PolicyOp::Posterize if increasing => 4.0 - (part * 4.0).trunc(),
        PolicyOp::Posterize => (part * 4.0).trunc(),
        PolicyOp::Solarize if increasing => 256.0 - (part * 256.0).trunc(),
        PolicyOp::Solarize => (part * 256.0).trunc(),
        PolicyOp::SolarizeAdd => (part * 110.0).trunc(),
        PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Brightness | PolicyOp::Sharpness => {
            match increasing {
                true => 1.0 + part * 0.9 * sign,
                false => part * 1.8 + 0.1,
            }
        }
        PolicyOp::ShearX | PolicyOp::ShearY => part * 0.3 * sign,
        PolicyOp::TranslateX | PolicyOp::TranslateY => part * 0.45 * sign * kind.side(size),
        _ => 0.0,
    }
}

/// Draws one operation by `WEIGHTS` that was not drawn yet, like successive draws of numpy's
/// `choice` without replacement.
fn weighted(taken: &mut [bool; 15], random: &mut impl UniformSource) -> PolicyOp {
    let weight = |i: usize, taken: &[bool; 15]| if taken[i] { 0.0 } else { WEIGHTS[i] };
    let total: f64 = (0..15).map(|i| weight(i, taken)).sum();
    let mut left = random.next_f64() * total;
    let mut chosen = 0;
    for i in 0..15 {
        let w = weight(i, taken);
        if w > 0.0 {
            // The last one, if rounding leaves none.
            chosen = i;
            if left < w {
                break;
            }
        }
        left -= w;
    }
    taken[chosen] = true;
    KINDS[chosen]
}

/// The maximum number of filters.
const MOST_FILTERS: usize = 16;

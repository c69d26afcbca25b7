//! Policies in timm's notation, such as `rand-m9-mstd0.5-inc1`: RandAugment, AugMix and AutoAugment
//! of `timm.data.auto_augment`. RandAugment is also that of PaddleClas' `timm_autoaugment.py`.
//!
//! Rotations, shears and shifts move coordinates by the inverse of their matrix, as `random_affine`.
//! AugMix leaves coordinates: it mixes moved copies with the image.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::{beta, dirichlet, sign};
use crate::recipe::augment::policy_op::{
    PolicyOp, WarpOptions, draw_chance, draw_policy_op, push_largest_warps,
};
use crate::recipe::augment::timm::{CHAIN_KINDS, KINDS, LevelLaw, WEIGHTS, blended_parts};
use crate::recipe::augment::timm_text::{MOST, MixedChains, PolicyTable, RandLayers, TimmPolicy};
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{pillow_filter, probability, whole_levels};
use crate::recipe::step::AugmentStep;
use crate::recipe::steps::StepSink;
use crate::recipe::values::{ChainDepth, InterpolationMode, PerChannel};

described! {
    example: "timm_augment: {config: rand-m9-mstd0.5-inc1}";

    /// A policy in timm's notation, such as `rand-m9-mstd0.5-inc1`. `rand` runs some operations, with
    /// the parts m, n (1 to 16), mstd, inc1 and w0. `augmix` mixes chains of operations with the
    /// image, with m, w (1 to 16), d (up to 16), a, b and mstd. `original`, `originalr`, `v0` and
    /// `v0r` run a pair from a table of AutoAugment, with mstd. Parts come in any order. A strength
    /// is drawn around m, or the strength of the table, and then clipped to 0 to 10. So m15 with
    /// mstd0.5 is nearly always 10. In `augmix` without mstd it is uniform from 0 to m. There,
    /// translations move up to 0.3 of a side, as in timm's `create_transform`.
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
        let size = on.size;
        match policy {
            TimmPolicy::Rand(policy) => self.draw_layers(policy, on),
            TimmPolicy::AugMix(policy) => self.draw_chains(policy, on),
            TimmPolicy::Auto(policy) => self.draw_pair(policy, on),
        }
        Ok(size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let Ok(policy) = TimmPolicy::parse(&self.config) else {
            return size;
        };
        if self.p > 0.0 {
            most.optionally(|most| match policy {
                TimmPolicy::Rand(_) | TimmPolicy::Auto(_) => push_largest_warps(2, most),
                TimmPolicy::AugMix(policy) => push_largest_chains(policy, most),
            });
        }
        size
    }
}

impl TimmAugment {
    fn draw_layers(&self, policy: RandLayers, mut on: DrawContext<'_>) {
        let mut taken = [false; 15];
        for _ in 0..policy.layers {
            let kind = match policy.weighted {
                true => weighted(&mut taken, on.random),
                false => draw_policy_op(&KINDS, on.random),
            };
            let done = draw_chance(0.5, on.random);
            self.draw_step(kind, done, policy.levels, &mut on);
        }
    }

    fn draw_chains(&self, policy: MixedChains, mut on: DrawContext<'_>) {
        let weights =
            dirichlet::<{ MOST as usize }>(policy.alpha, policy.width as usize, on.random)
                .map(|weight| weight as f32);
        let by = beta(policy.alpha, on.random) as f32;
        let parts = blended_parts(weights, by);
        let push = |on: &mut DrawContext<'_>, step| on.steps.push(Step::Augment(step));
        push(&mut on, AugmentStep::Keep);
        if policy.blended {
            // Chains are mixed into the image itself.
            push(&mut on, AugmentStep::AddSingle { weight: 1.0 });
        }
        for (weight, part) in weights.into_iter().zip(parts).take(policy.width as usize) {
            let depth = match policy.depth {
                ChainDepth::Fixed(depth) => depth,
                ChainDepth::Random => 1 + on.random.next_up_to(DRAWN - 1),
            };
            for _ in 0..depth {
                let kind = draw_policy_op(&CHAIN_KINDS, on.random);
                self.draw_step(kind, true, policy.levels, &mut on);
            }
            push(
                &mut on,
                match policy.blended {
                    true => AugmentStep::MixIn { by: part },
                    false => AugmentStep::AddSingle { weight },
                },
            );
        }
        push(
            &mut on,
            match policy.blended {
                true => AugmentStep::Total,
                false => AugmentStep::BlendTotal { by },
            },
        );
    }

    fn draw_pair(&self, policy: PolicyTable, mut on: DrawContext<'_>) {
        let last = policy.pairs.len().saturating_sub(1) as u32;
        let at = on.random.next_up_to(last) as usize;
        for (kind, p, magnitude) in policy.pairs.get(at).into_iter().flatten() {
            let done = draw_chance(*p, on.random);
            let levels = LevelLaw {
                magnitude: f64::from(*magnitude),
                spread: policy.spread,
                rules: policy.rules,
            };
            self.draw_step(*kind, done, levels, &mut on);
        }
    }

    /// Draws level, sign and filter. Pushes the step if it is `done`.
    fn draw_step(&self, kind: PolicyOp, done: bool, levels: LevelLaw, on: &mut DrawContext<'_>) {
        let level = levels.spread.draw(levels.magnitude, on.random);
        let sign = sign(on.random);
        let last = self.interpolation.len().saturating_sub(1) as u32;
        let filter = self.interpolation.get(on.random.next_up_to(last) as usize);
        if done {
            let look = WarpOptions::new(filter.copied().unwrap_or_default(), self.fill);
            let amount = levels.rules.amount(kind, level, sign, on.size);
            on.steps.augment(kind.step(amount, look));
        }
    }
}

/// The maximum number of operations in a chain of random depth.
const DRAWN: u32 = 3;

/// Pushes the steps of two chains that need the most memory.
fn push_largest_chains(policy: MixedChains, most: &mut dyn StepSink) {
    let depth = match policy.depth {
        ChainDepth::Fixed(depth) => depth,
        ChainDepth::Random => DRAWN,
    };
    most.push(Step::Augment(AugmentStep::Keep));
    for _ in 0..policy.width.min(2) {
        push_largest_warps(depth, most);
        most.push(Step::Augment(AugmentStep::AddSingle { weight: 1.0 }));
    }
    most.push(Step::Augment(AugmentStep::BlendTotal { by: 1.0 }));
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

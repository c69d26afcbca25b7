//! The checks of operations on batches: every number is in its range, and the rows can be mixed.

use super::super::ranges::{count, number, probability};
use super::super::row_extent::RowExtent;
use super::super::tensor::DataType;
use super::{MixChoice, MixOp, Mixing};

/// The maximum number of classes: `f32` has no larger whole numbers without gaps.
const MAX_CLASSES: u32 = 1 << 24;

/// With a larger alpha, beta(alpha, alpha) is one half, up to a difference that no image shows.
const MAX_ALPHA: f64 = 1e6;

/// The tolerance for a sum of probabilities, since decimal fractions are not exact.
const SUM_SLACK: f64 = 1e-9;

/// A mistake: the index of the operation (None: outside the operations), and the message.
type MixingFault = (Option<usize>, String);

impl Mixing {
    /// Checks the numbers, and that batches of this size and type can be mixed. `labels`: the
    /// operation that sets labels, and the number of label values.
    pub(in crate::recipe) fn check(
        &self,
        extent: RowExtent,
        dtype: DataType,
        labels: Option<(&str, u32)>,
    ) -> Result<(), MixingFault> {
        let whole = |message: String| (None, format!("mixing: {message}"));
        count("num_classes", self.num_classes, MAX_CLASSES).map_err(whole)?;
        if let Some((op, classes)) = labels.filter(|(_, classes)| self.num_classes < *classes) {
            return Err(whole(format!(
                "num_classes is {}, and {op} gives {classes} labels: use {classes}",
                self.num_classes
            )));
        }
        let (mut mixer, mut smoother) = (None, None);
        for (i, op) in self.ops.iter().enumerate() {
            let fault = |message: String| (Some(i), format!("{}: {message}", op.name()));
            op.check().map_err(fault)?;
            if op.mixes()
                && let Some(first) = mixer.replace(op.name())
            {
                return Err(fault(format!(
                    "comes after {first}, and only one operation may mix a batch: remove one, or \
                     put both into a one_of"
                )));
            }
            if op.smooths()
                && let Some(first) = smoother.replace(op.name())
            {
                return Err(fault(format!(
                    "smooths labels that {first} has smoothed already: remove one, or set \
                     label_smoothing of mixup_cutmix to 0"
                )));
            }
        }
        let Some(mixer) = mixer else {
            return Ok(());
        };
        if extent.is_of_data() {
            return Err(whole(format!(
                "{mixer} needs rows of one size, and each picture has its own here: \
                 remove patches, and add a resize to [height, width] or a crop"
            )));
        }
        if dtype == DataType::U8 {
            return Err(whole(format!(
                "{mixer} makes fractions, and batches are u8: cast to one of {}",
                DataType::floats()
            )));
        }
        Ok(())
    }
}

impl MixOp {
    fn smooths(&self) -> bool {
        match self {
            Self::LabelSmoothing { .. } => true,
            Self::MixupCutmix {
                label_smoothing, ..
            } => *label_smoothing > 0.0,
            _ => false,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Mixup { alpha: a } | Self::Cutmix { alpha: a } => alpha("alpha", *a),
            Self::Fmix {
                alpha: a,
                decay_power,
                max_soft,
            } => {
                alpha("alpha", *a)?;
                if !(*decay_power > 0.0 && *decay_power <= 100.0) {
                    return Err(format!(
                        "decay_power is {decay_power}: use more than 0, at most 100"
                    ));
                }
                number("max_soft", *max_soft, 0.0, 0.5)
            }
            Self::OneOf(choices) => one_of(choices),
            Self::MixupCutmix {
                mixup_alpha,
                cutmix_alpha,
                p,
                switch_p,
                label_smoothing,
            } => {
                if *mixup_alpha == 0.0 && *cutmix_alpha == 0.0 {
                    return Err(
                        "mixup_alpha and cutmix_alpha are both 0: set one of them, or remove \
                         mixup_cutmix"
                            .into(),
                    );
                }
                for (what, a) in [
                    ("mixup_alpha", *mixup_alpha),
                    ("cutmix_alpha", *cutmix_alpha),
                ] {
                    if a != 0.0 {
                        alpha(what, a)?;
                    }
                }
                probability(*p)?;
                number("switch_p", *switch_p, 0.0, 1.0)?;
                number("label_smoothing", *label_smoothing, 0.0, 1.0)
            }
            Self::LabelSmoothing { epsilon } => number("epsilon", *epsilon, 0.0, 1.0),
        }
    }
}

fn one_of(choices: &[MixChoice]) -> Result<(), String> {
    if choices.is_empty() {
        return Err("is an empty list: add operations, or remove it".into());
    }
    for (n, MixChoice { p, op }) in (1..).zip(choices) {
        let fault = |message: String| format!("choice {n}: {message}");
        if !matches!(
            op,
            MixOp::Mixup { .. } | MixOp::Cutmix { .. } | MixOp::Fmix { .. }
        ) {
            return Err(fault(format!(
                "{} cannot be chosen: use mixup, cutmix or fmix",
                op.name()
            )));
        }
        probability(*p).map_err(fault)?;
        op.check()
            .map_err(|message| fault(format!("{}: {message}", op.name())))?;
    }
    let sum: f64 = choices.iter().map(|c| c.p).sum();
    if sum > 1.0 + SUM_SLACK {
        return Err(format!("the probabilities sum to {sum}: use at most 1"));
    }
    Ok(())
}

fn alpha(what: &str, a: f64) -> Result<(), String> {
    if a > 0.0 && a <= MAX_ALPHA {
        return Ok(());
    }
    Err(format!(
        "{what} is {a}: use more than 0, at most {MAX_ALPHA}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: RowExtent = RowExtent::Fixed {
        height: 8,
        width: 8,
    };

    fn says(ops: Vec<MixOp>) -> String {
        let mixing = Mixing {
            num_classes: 10,
            ops,
        };
        mixing.check(FIXED, DataType::F32, None).unwrap_err().1
    }

    fn choice(p: f64, op: MixOp) -> MixChoice {
        MixChoice { p, op }
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        use MixOp::{Cutmix, Fmix, LabelSmoothing, Mixup, MixupCutmix, OneOf};
        let fmix = |decay_power, max_soft| Fmix {
            alpha: 1.0,
            decay_power,
            max_soft,
        };
        let both = |mixup_alpha, cutmix_alpha, p| MixupCutmix {
            mixup_alpha,
            cutmix_alpha,
            p,
            switch_p: 0.5,
            label_smoothing: 0.1,
        };
        let mixup = Mixup { alpha: 1.0 };
        for (op, text) in [
            (Mixup { alpha: 0.0 }, "mixup: alpha is 0: use more than 0"),
            (Cutmix { alpha: -1.0 }, "cutmix: alpha is -1"),
            (Cutmix { alpha: f64::NAN }, "cutmix: alpha is NaN"),
            (
                Mixup {
                    alpha: f64::INFINITY,
                },
                "mixup: alpha is inf",
            ),
            (fmix(0.0, 0.0), "fmix: decay_power is 0"),
            (fmix(3.0, 0.6), "fmix: max_soft is 0.6"),
            (fmix(3.0, -0.1), "fmix: max_soft is -0.1"),
            (
                LabelSmoothing { epsilon: 1.5 },
                "label_smoothing: epsilon is 1.5: use 0 to 1",
            ),
            (
                both(0.0, 0.0, 1.0),
                "mixup_cutmix: mixup_alpha and cutmix_alpha are both 0",
            ),
            (both(1.0, 0.0, 1.5), "mixup_cutmix: p is 1.5"),
            (both(-1.0, 0.0, 1.0), "mixup_cutmix: mixup_alpha is -1"),
            (OneOf(vec![]), "one_of: is an empty list"),
            (
                OneOf(vec![choice(0.5, mixup.clone()), choice(0.6, mixup.clone())]),
                "one_of: the probabilities sum to 1.1",
            ),
            (
                OneOf(vec![choice(0.5, Mixup { alpha: 0.0 })]),
                "one_of: choice 1: mixup: alpha is 0",
            ),
            (
                OneOf(vec![
                    choice(0.5, mixup.clone()),
                    choice(0.5, OneOf(vec![choice(0.5, mixup.clone())])),
                ]),
                "one_of: choice 2: one_of cannot be chosen",
            ),
        ] {
            let said = says(vec![op]);
            assert!(said.starts_with(text), "{said}");
        }
        let said = says(vec![mixup.clone(), Cutmix { alpha: 1.0 }]);
        assert!(said.starts_with("cutmix: comes after mixup"), "{said}");
        let said = says(vec![both(1.0, 1.0, 1.0), LabelSmoothing { epsilon: 0.1 }]);
        assert!(said.contains("mixup_cutmix has smoothed"), "{said}");
        for n in [0, (1 << 24) + 1] {
            let said = Mixing::new(n)
                .check(FIXED, DataType::F32, None)
                .unwrap_err();
            assert_eq!(said.0, None);
            assert!(said.1.starts_with("mixing: num_classes is "), "{}", said.1);
        }
    }

    #[test]
    fn what_may_be_is_let_through() {
        let tenth = || choice(0.1, MixOp::Cutmix { alpha: 0.2 });
        let many = MixOp::OneOf((0..10).map(|_| tenth()).collect());
        let mixing = Mixing::new(1 << 24)
            .then(MixOp::LabelSmoothing { epsilon: 0.0 })
            .then(many);
        assert_eq!(mixing.check(FIXED, DataType::F16, None), Ok(()));
        let timm = Mixing::new(2).then(MixOp::MixupCutmix {
            mixup_alpha: 0.8,
            cutmix_alpha: 0.0,
            p: 1.0,
            switch_p: 0.5,
            label_smoothing: 0.1,
        });
        assert_eq!(timm.check(FIXED, DataType::F32, None), Ok(()));
        // Labels alone, whatever the rows.
        let labels = Mixing::new(5).then(MixOp::LabelSmoothing { epsilon: 0.1 });
        assert_eq!(labels.check(RowExtent::Own, DataType::U8, None), Ok(()));
    }

    #[test]
    fn rows_that_cannot_be_mixed_are_refused() {
        let mixing = Mixing::new(10).then(MixOp::Mixup { alpha: 1.0 });
        let said = mixing.check(FIXED, DataType::U8, None).unwrap_err().1;
        assert!(said.contains("cast to one of f16, bf16, f32"), "{said}");
        let said = mixing
            .check(RowExtent::Own, DataType::F32, None)
            .unwrap_err()
            .1;
        assert!(said.contains("add a resize"), "{said}");
    }
}

//! Distributions, and policy texts of timm.

use super::super::distribution::{beta, dirichlet, gauss, sign};
use super::*;
use crate::recipe::ChainDepth;
use crate::recipe::augment::timm::{LevelLaw, LevelRules, LevelSpread, PosterizeBits};
use crate::recipe::augment::timm_tables::{ORIGINAL, V0};
use crate::recipe::augment::timm_text::{MixedChains, PolicyTable, RandLayers, TimmPolicy};
use crate::recipe::geometry::UniformSource;

fn many<T>(mut one: impl FnMut(&mut PositionRandom) -> T) -> Vec<T> {
    (0..POSITIONS)
        .map(|p| one(&mut PositionRandom::new(3, 1, p)))
        .collect()
}

#[test]
fn signs_are_fair() {
    let up = many(sign).into_iter().filter(|s| *s == 1.0).count();
    assert_share(up, POSITIONS as usize, 0.5, "+");
}

#[test]
fn gauss_is_normal() {
    let normal = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    assert_law(many(gauss), normal, "gauss");
}

#[test]
fn beta_of_one_is_uniform_and_of_a_half_is_the_arcsine_law() {
    assert_law(many(|r| beta(1.0, r)), uniform(0.0, 1.0), "beta 1");
    let arcsine = |x: f64| 2.0 / std::f64::consts::PI * x.sqrt().asin();
    assert_law(many(|r| beta(0.5, r)), arcsine, "beta 0.5");
    // 3 x^2 - 2 x^3.
    assert_law(
        many(|r| beta(2.0, r)),
        |x| x * x * (3.0 - 2.0 * x),
        "beta 2",
    );
}

#[test]
fn beta_has_its_mean_and_variance_at_both_ends_of_what_is_accepted() {
    for alpha in [0.01, 0.1, 0.2, 0.8, 3.0, 100.0] {
        let all = many(|r| beta(alpha, r));
        assert!(all.iter().all(|x| (0.0..=1.0).contains(x)), "{alpha}");
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let variance = 1.0 / (4.0 * (2.0 * alpha + 1.0));
        assert!(
            (mean - 0.5).abs() < 3.3 * (variance / n).sqrt(),
            "{alpha}: mean {mean}"
        );
        let squares: Vec<f64> = all.iter().map(|x| (x - 0.5) * (x - 0.5)).collect();
        let made = squares.iter().sum::<f64>() / n;
        let spread = squares.iter().map(|s| (s - made).powi(2)).sum::<f64>() / n;
        assert!(
            (made - variance).abs() < 3.3 * (spread / n).sqrt() + 1e-12,
            "{alpha}: variance {made}, not {variance}"
        );
    }
}

#[test]
fn dirichlet_numbers_sum_to_one_and_have_their_moments() {
    for (alpha, k) in [(0.01, 8), (0.1, 3), (1.0, 4), (100.0, 2), (0.1, 1)] {
        let all = many(|r| dirichlet::<8>(alpha, k, r));
        let n = all.len() as f64;
        let kf = k as f64;
        let variance = (kf - 1.0) / (kf * kf * (kf * alpha + 1.0));
        for v in &all {
            assert!((v.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{v:?}");
            assert!(v.iter().all(|x| *x >= 0.0), "{v:?}");
            assert!(v[k..].iter().all(|x| *x == 0.0), "{v:?}");
        }
        for i in 0..k {
            let mean = all.iter().map(|v| v[i]).sum::<f64>() / n;
            let bound = 3.6 * (variance / n).sqrt() + 1e-12;
            assert!((mean - 1.0 / kf).abs() < bound, "{alpha} {k}: {mean}");
            let squares: Vec<f64> = all.iter().map(|v| (v[i] - 1.0 / kf).powi(2)).collect();
            let made = squares.iter().sum::<f64>() / n;
            let spread = squares.iter().map(|s| (s - made).powi(2)).sum::<f64>() / n;
            let bound = 3.6 * (spread / n).sqrt() + 1e-12;
            assert!(
                (made - variance).abs() < bound,
                "{alpha} {k}: {made}, {variance}"
            );
        }
    }
}

/// It must also end with a source that always returns the same number.
#[test]
fn a_source_that_never_changes_ends() {
    struct Same(f64);
    impl UniformSource for Same {
        fn next_f64(&mut self) -> f64 {
            self.0
        }
    }
    for u in [0.0, 0.25, 0.5, 1.0 - f64::EPSILON] {
        for alpha in [0.01, 1.0, 100.0] {
            let v = dirichlet::<8>(alpha, 8, &mut Same(u));
            assert!(
                (v.iter().sum::<f64>() - 1.0).abs() < 1e-9,
                "{u} {alpha}: {v:?}"
            );
        }
    }
}

#[test]
fn texts_of_timm_are_read() {
    let of = |magnitude, deviation, layers, increasing, weighted| {
        TimmPolicy::Rand(RandLayers {
            levels: LevelLaw {
                magnitude,
                spread: LevelSpread::Normal(deviation),
                rules: match increasing {
                    true => LevelRules::INCREASING,
                    false => LevelRules::PLAIN,
                },
            },
            layers,
            weighted,
        })
    };
    for (text, wanted) in [
        // All texts in PaddleClas' own files.
        ("rand-m1-mstd0.5-inc1", of(1.0, 0.5, 2, true, false)),
        ("rand-m3-mstd0.5-inc1", of(3.0, 0.5, 2, true, false)),
        ("rand-m5-mstd0.5-inc1", of(5.0, 0.5, 2, true, false)),
        ("rand-m7-mstd0.5-inc1", of(7.0, 0.5, 2, true, false)),
        ("rand-m9-mstd0.5-inc1", of(9.0, 0.5, 2, true, false)),
        ("rand-m8-inc1-mstd1.0", of(8.0, 1.0, 2, true, false)),
        ("rand-m9-inc1-mstd1.0", of(9.0, 1.0, 2, true, false)),
        // Texts from timm's documentation.
        ("rand-m9-n3-mstd0.5", of(9.0, 0.5, 3, false, false)),
        ("rand-mstd1-w0", of(10.0, 1.0, 2, false, true)),
        ("rand", of(10.0, 0.0, 2, false, false)),
        ("rand-m0-n13-w0-mstd0", of(0.0, 0.0, 13, false, true)),
    ] {
        assert_eq!(TimmPolicy::parse(text), Ok(wanted), "{text}");
    }
}

#[test]
fn texts_of_aug_mix_and_auto_augment_are_read() {
    let uniform = LevelSpread::Uniform;
    let of = |magnitude, spread, width, depth, alpha, blended| {
        TimmPolicy::AugMix(MixedChains {
            levels: LevelLaw {
                magnitude,
                spread,
                rules: LevelRules::CHAINS,
            },
            width,
            depth,
            alpha,
            blended,
        })
    };
    let drawn = ChainDepth::Random;
    for (text, wanted) in [
        // timm's defaults, and the text in its documentation.
        ("augmix", of(3.0, uniform, 3, drawn, 1.0, false)),
        ("augmix-m5-w4-d2", of(5.0, uniform, 4, 2.into(), 1.0, false)),
        ("augmix-b1-d0", of(3.0, uniform, 3, drawn, 1.0, true)),
        (
            "augmix-a0.25-mstd0.5-m16-d16-w16-b0",
            of(16.0, LevelSpread::Normal(0.5), 16, 16.into(), 0.25, false),
        ),
        (
            "augmix-mstd0",
            of(3.0, LevelSpread::Normal(0.0), 3, drawn, 1.0, false),
        ),
    ] {
        assert_eq!(TimmPolicy::parse(text), Ok(wanted), "{text}");
    }
    for (text, pairs, posterize, deviation) in [
        ("original", &ORIGINAL, PosterizeBits::Original, 0.0),
        ("originalr-mstd0.5", &ORIGINAL, PosterizeBits::Falling, 0.5),
        ("v0", &V0, PosterizeBits::Rising, 0.0),
        ("v0r-mstd1", &V0, PosterizeBits::Falling, 1.0),
    ] {
        let wanted = TimmPolicy::Auto(PolicyTable {
            pairs,
            spread: LevelSpread::Normal(deviation),
            rules: LevelRules {
                posterize,
                ..LevelRules::PLAIN
            },
        });
        assert_eq!(TimmPolicy::parse(text), Ok(wanted), "{text}");
    }
}

#[test]
fn other_texts_are_refused_and_what_is_served_is_said() {
    for (text, said) in [
        ("", "use a rand policy"),
        ("Rand-m9", "use a rand policy"),
        (" rand-m9", "use a rand policy"),
        ("auto-m9", "use a rand policy"),
        ("randm9", "use a rand policy"),
        ("best", "an augmix policy such as augmix-m5-w4-d2"),
        (
            "best",
            "or original, originalr, v0 or v0r, with the part mstd",
        ),
        ("augmix-", "'' is unknown: use an augmix"),
        ("augmix-m5.5", "'m5.5' has no whole number"),
        ("augmix-w0", "'w0' is out of range: use w1 to w16"),
        ("augmix-w17", "'w17' is out of range: use w1 to w16"),
        ("augmix-d17", "'d17' is out of range: use d0 to d16"),
        // timm reads '1' as a part of its own.
        ("augmix-d-1", "'d' is out of range: use d0 to d16"),
        (
            "augmix-a0",
            "'a0' is out of range: use a with a number from 0.01",
        ),
        ("augmix-a0.005", "'a0.005' is out of range"),
        ("augmix-a101", "'a101' is out of range"),
        ("augmix-b2", "'b2' is unclear: use b0 or b1"),
        ("augmix-b", "'b' is unclear: use b0 or b1"),
        ("augmix-n2", "'n2' is unknown: use an augmix"),
        ("augmix-m5-m5", "'m' is written twice"),
        ("augmix-mstd101", "use mstd with a number"),
        ("original-m9", "'m9' is unknown: use original"),
        ("originalR", "use a rand policy"),
        ("v0r-mstd", "'mstd' is out of range"),
        ("v0-mstd1-mstd2", "'mstd' is written twice"),
        ("v1", "use a rand policy"),
        ("rand-m9.5", "'m9.5' has no whole number: use one, as in m9"),
        ("rand-m", "'m' has no whole number: use one, as in m9"),
        ("rand-m-1", "'m' has no whole number: use one, as in m9"),
        ("rand-n0", "'n0' is out of range: use n1 to n16"),
        ("rand-n99999999999", "use n1 to n16"),
        ("rand-mstdinf", "'mstdinf' is unknown"),
        ("rand-mstd1e999", "use mstd with a number"),
        (
            "rand-mstd",
            "'mstd' is out of range: use mstd with a number",
        ),
        (
            "rand-inc0",
            "'inc0' is unclear, and timm reads any number as 1: write inc1",
        ),
        (
            "rand-inc",
            "'inc' has no number, and timm skips it then: use inc1",
        ),
        ("rand-w1", "'w1' is unknown: timm has one table, w0"),
        ("rand-w0-n14", "n is 14, and w0 has 13 operations"),
        ("rand-p0.5", "'p0.5' is unknown: use a rand"),
        ("rand--m9", "'' is unknown"),
        ("rand-M9", "'M9' is unknown"),
        ("rand-m9-m8", "'m' is written twice"),
        ("rand-é9", "'é9' is unknown"),
    ] {
        let error = TimmPolicy::parse(text).unwrap_err();
        assert!(
            error.starts_with(&format!("config is '{text}': ")),
            "{error}"
        );
        assert!(error.contains(said), "{text:?} says {error}, not {said}");
    }
}

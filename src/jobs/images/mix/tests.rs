//! Mixed batches against what their labels say of them, in f64; and what is drawn
//! against what it should be on average.
//!
//! The label of each row is its own number, so behind the mixing it says who the
//! partner was and how much of each there is.

use crate::jobs::images::mix::draw;
use crate::jobs::images::mix::draw::{MixOperation, RowPartners, beta};
use crate::jobs::images::mix::mask;
use crate::jobs::images::mix::mask::MixMask;
use crate::jobs::images::mix::{BatchMixer, RowShape, check_vectors, mixing_bytes, one_hot};
use crate::order::{EpochPlan, OrderOptions, PositionRandom};
use crate::pixels::rounding::{elements, numbers, step};
use crate::recipe::geometry::UniformSource;
use crate::recipe::{DataType, MemoryLayout, MixChoice, MixOp, Mixing};

fn random(n: u64) -> PositionRandom {
    PositionRandom::new(3, 1, n)
}

const MIXUP: MixOp = MixOp::Mixup { alpha: 0.8 };
const CUTMIX: MixOp = MixOp::Cutmix { alpha: 1.0 };
const FMIX: MixOp = MixOp::Fmix {
    alpha: 1.0,
    decay_power: 3.0,
    max_soft: 0.0,
};
const TIMM: MixOp = MixOp::MixupCutmix {
    mixup_alpha: 0.8,
    cutmix_alpha: 1.0,
    p: 0.9,
    switch_p: 0.5,
    label_smoothing: 0.0,
};

fn ops() -> Vec<MixOp> {
    let choice = |op| MixChoice { p: 0.4, op };
    vec![
        MIXUP,
        CUTMIX,
        FMIX,
        TIMM,
        MixOp::OneOf(vec![choice(MIXUP), choice(CUTMIX)]),
    ]
}

/// A batch before and after its mixing, as f64.
struct Case {
    shape: RowShape,
    rows: usize,
    before: Vec<f64>,
    after: Vec<f64>,
    labels: Vec<f32>,
}

impl Case {
    /// Rows of noise; those in `masked` are zero.
    fn new(op: &MixOp, shape: RowShape, rows: usize, masked: &[usize], at: u64) -> Self {
        let mut noise = random(1 << 40 | at);
        let n = shape.elements();
        let masks = |row: usize| masked.contains(&row);
        let levels: Vec<f32> = (0..rows * n)
            .map(|i| match masks(i / n) {
                true => 0.0,
                false => (noise.next_f64() * 6.0 - 3.0) as f32,
            })
            .collect();
        let mut words = vec![0u64; (rows * n * shape.dtype.size()).div_ceil(8)];
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..rows * shape.bytes()];
        bytes.copy_from_slice(&elements(levels, shape.dtype));
        let before = numbers(bytes, shape.dtype);
        let classes = (0..rows).map(|row| (!masks(row)).then_some(row as i64));
        let mut labels = one_hot(classes, rows as u32, 0.0).unwrap();
        let sampled: Vec<usize> = (0..rows).filter(|row| !masks(*row)).collect();
        let mut mixer = BatchMixer::new(Mixing::new(rows as u32).then(op.clone()));
        // Buffers of another batch say nothing in this one.
        let mut scratch = bytes.to_vec();
        let mut words = vec![0u64; scratch.len().div_ceil(8)];
        let other = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..scratch.len()];
        other.copy_from_slice(&scratch);
        scratch.clear();
        mixer
            .mix(random(at + 7), shape, other, &sampled, &mut labels.clone())
            .unwrap();
        mixer
            .mix(random(at), shape, bytes, &sampled, &mut labels)
            .unwrap();
        Self {
            shape,
            rows,
            before,
            after: numbers(bytes, shape.dtype),
            labels,
        }
    }

    /// A row's partner and the weight of its own.
    fn partner(&self, row: usize) -> (usize, f64) {
        let label = &self.labels[row * self.rows..(row + 1) * self.rows];
        let other = (0..self.rows).find(|r| *r != row && label[*r] > 0.0);
        (other.unwrap_or(row), f64::from(label[row]))
    }

    /// Channel, line and column of an element.
    fn element(&self, row: usize, [c, y, x]: [usize; 3]) -> usize {
        let s = self.shape;
        let at = match s.layout {
            MemoryLayout::Nchw => (c * s.height + y) * s.width + x,
            MemoryLayout::Nhwc => (y * s.width + x) * s.channels + c,
        };
        row * s.elements() + at
    }

    fn places(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let s = self.shape;
        (0..s.channels).flat_map(move |c| {
            (0..s.height).flat_map(move |y| (0..s.width).map(move |x| [c, y, x]))
        })
    }

    /// Half a step between two values.
    fn rounding(&self, v: f64) -> f64 {
        match self.shape.dtype {
            // Three roundings of products and a sum.
            DataType::F32 => v.abs().max(3.0) * 3e-7,
            // One, and those of f32 before it.
            half => step(v, half) / 2.0 + 1e-6,
        }
    }
}

fn shapes() -> Vec<RowShape> {
    let mut shapes = Vec::new();
    for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
        for layout in [MemoryLayout::Nchw, MemoryLayout::Nhwc] {
            for (channels, height, width) in [(3, 13, 22), (1, 8, 8), (3, 1, 300)] {
                shapes.push(RowShape {
                    channels,
                    height,
                    width,
                    dtype,
                    layout,
                });
            }
        }
    }
    shapes
}

#[test]
fn pixels_are_what_the_labels_say() {
    let mut mixed = 0;
    for (k, op) in ops().iter().enumerate() {
        for (i, shape) in shapes().into_iter().enumerate() {
            for (rows, masked) in [(8, vec![]), (7, vec![0, 4]), (1, vec![]), (3, vec![1, 2])] {
                for n in 0..4 {
                    let at = (k * 1000 + i * 10 + n) as u64;
                    let case = Case::new(op, shape, rows, &masked, at);
                    mixed += usize::from(case.before != case.after);
                    looks_right(op, &case, &masked);
                }
            }
        }
    }
    assert!(mixed > 300, "{mixed}");
}

fn looks_right(op: &MixOp, case: &Case, masked: &[usize]) {
    let what = format!("{op}, {:?}", case.shape);
    let sampled: Vec<usize> = (0..case.rows).filter(|r| !masked.contains(r)).collect();
    // In how many places the first mixed row has its partner's pixels, and in how many
    // more it may have them, as both have the same.
    let mut region: Option<(usize, usize)> = None;
    let mut partners = Vec::new();
    for &row in masked {
        let n = case.shape.elements();
        assert!(
            case.after[row * n..(row + 1) * n].iter().all(|v| *v == 0.0),
            "{what}"
        );
        let label = &case.labels[row * case.rows..(row + 1) * case.rows];
        assert!(label.iter().all(|v| *v == 0.0), "{what}");
    }
    for &row in &sampled {
        let label = &case.labels[row * case.rows..(row + 1) * case.rows];
        let sum: f64 = label.iter().map(|v| f64::from(*v)).sum();
        assert!((sum - 1.0).abs() < 2e-7, "{what}: {sum}");
        assert!(masked.iter().all(|r| label[*r] == 0.0), "{what}");
        let (partner, keep) = case.partner(row);
        partners.push(partner);
        let (mut own, mut other, mut blended, mut alike) = (0, 0, 0, 0);
        for place in case.places() {
            let [a, b, got] = [
                case.before[case.element(row, place)],
                case.before[case.element(partner, place)],
                case.after[case.element(row, place)],
            ];
            let want = a * keep + b * (1.0 - keep);
            own += usize::from(got == a);
            other += usize::from(got == b && got != a);
            alike += usize::from(a == b);
            blended += usize::from((got - want).abs() <= case.rounding(want) + 1e-6);
        }
        let all = case.shape.elements();
        if partner == row {
            assert_eq!(own, all, "{what}: alone");
            continue;
        }
        let pixels = (case.shape.height * case.shape.width) as f64;
        let pasted = own + other == all;
        match op {
            MixOp::Mixup { .. } => assert_eq!(blended, all, "{what}"),
            MixOp::Cutmix { .. } | MixOp::Fmix { .. } => assert!(pasted, "{what}"),
            _ => assert!(blended == all || pasted, "{what}"),
        }
        if pasted && blended < all {
            let area = other as f64 / case.shape.channels as f64;
            let slack = match op {
                MixOp::Fmix { .. } => 1.0,
                _ => 1e-3,
            };
            let unseen = alike as f64 / case.shape.channels as f64;
            assert!(
                area <= (1.0 - keep) * pixels + slack + 1e-3
                    && area >= (1.0 - keep) * pixels - slack - 1e-3 - unseen,
                "{what}: {area} of {pixels}, {keep}"
            );
            let (first, more) = *region.get_or_insert((other, alike));
            let differ = other.abs_diff(first);
            assert!(differ <= alike.max(more), "{what}: one region for all rows");
        }
    }
    // Each is the partner of one, unless nothing was mixed in.
    partners.sort_unstable();
    if partners != sampled {
        let keeps: Vec<f64> = sampled.iter().map(|r| case.partner(*r).1).collect();
        assert!(keeps.contains(&1.0), "{what}: {partners:?}, {keeps:?}");
    }
}

#[test]
fn a_box_is_a_box_cut_off_at_the_edges() {
    let (mut cut_off, mut whole) = (0, 0);
    for n in 0..2000 {
        let mut r = random(n);
        let mut partners = RowPartners::default();
        let MixOperation::Paste(at) =
            draw::draw(&CUTMIX, &[0, 1, 2], (40, 60), &mut r, &mut partners)
        else {
            panic!("no box");
        };
        assert!(at.rows.end <= 40 && at.columns.end <= 60);
        let area = (at.rows.len() * at.columns.len()) as f64;
        assert_eq!(at.keep, 1.0 - area / 2400.0);
        // Drawn again in the order that is promised: partners, weight, middle.
        let mut r = random(n);
        for k in [3, 2] {
            r.below(k);
        }
        let cut = (1.0 - beta(1.0, &mut r)).sqrt();
        let (y, x) = (r.below(40) as i64, r.below(60) as i64);
        let (h, w) = ((40.0 * cut) as i64, (60.0 * cut) as i64);
        let rows = (y - h / 2).clamp(0, 40)..(y + h / 2).clamp(0, 40);
        let columns = (x - w / 2).clamp(0, 60)..(x + w / 2).clamp(0, 60);
        assert_eq!(rows, at.rows.start as i64..at.rows.end as i64);
        assert_eq!(columns, at.columns.start as i64..at.columns.end as i64);
        let inside = at.rows.len() as i64 == h / 2 * 2 && at.columns.len() as i64 == w / 2 * 2;
        cut_off += usize::from(!inside);
        whole += usize::from(inside);
    }
    assert!(cut_off > 500 && whole > 200, "{cut_off}, {whole}");
}

#[test]
fn beta_has_its_moments() {
    for a in [0.05, 0.2, 0.8, 1.0, 1.5, 4.0, 1000.0] {
        let n = 200_000;
        let (mut sums, mut low) = ([0f64; 3], 0);
        let mut r = random((a * 100.0) as u64);
        for _ in 0..n {
            let x = beta(a, &mut r);
            assert!((0.0..=1.0).contains(&x), "{x}");
            let d = x - 0.5;
            sums[0] += d;
            sums[1] += d * d;
            sums[2] += d.powi(4);
            low += usize::from(x < 0.01);
        }
        let [mean, second, fourth] = sums.map(|s| s / f64::from(n));
        let variance = 1.0 / (4.0 * (2.0 * a + 1.0));
        let of_fourth = 3.0 / (16.0 * (2.0 * a + 1.0) * (2.0 * a + 3.0));
        let n = f64::from(n);
        let deviation = (variance / n).sqrt();
        assert!(
            mean.abs() < 5.0 * deviation,
            "beta({a}): mean {}",
            mean + 0.5
        );
        let deviation = ((of_fourth - variance * variance) / n).sqrt();
        assert!(
            (second - variance).abs() < 5.0 * deviation,
            "beta({a}): {second} is not {variance}"
        );
        assert!(
            (fourth / of_fourth - 1.0).abs() < 0.02,
            "beta({a}): {fourth} is not {of_fourth}"
        );
        // The part below 0.01, by the first terms of the integral's series.
        if a <= 1.0 {
            let gamma = |x: f64| libm::tgamma(x);
            let whole = gamma(a) * gamma(a) / gamma(2.0 * a);
            let part = libm::pow(0.01, a) * (1.0 / a + (1.0 - a) * 0.01 / (a + 1.0)) / whole;
            let got = low as f64 / n;
            let deviation = (part * (1.0 - part) / n).sqrt();
            assert!((got - part).abs() < 5.0 * deviation + 1e-4, "{got}, {part}");
        }
    }
    // What no float's power holds is still all or nothing.
    for a in [1e-3, 1e-300, f64::MIN_POSITIVE] {
        let n = 4000;
        let mut r = random(9);
        let ones = (0..n).filter(|_| beta(a, &mut r) > 0.5).count();
        assert!((1800..2200).contains(&ones), "beta({a}): {ones}");
    }
}

#[test]
fn permutations_are_equally_likely() {
    let n = 48_000;
    let mut count = std::collections::HashMap::new();
    let mut partners = RowPartners::default();
    for at in 0..n {
        draw::draw(
            &MIXUP,
            &[0, 2, 3, 5],
            (8, 8),
            &mut random(at),
            &mut partners,
        );
        *count.entry(partners.partner_of.clone()).or_insert(0f64) += 1.0;
        assert_eq!(partners.rows, [0, 2, 3, 5]);
    }
    assert_eq!(count.len(), 24);
    let expected = n as f64 / 24.0;
    let chi: f64 = count
        .values()
        .map(|c| (c - expected).powi(2) / expected)
        .sum();
    assert!(chi < 23.0 + 6.0 * 46f64.sqrt(), "chi-square {chi}");
}

#[test]
fn one_of_several_comes_as_often_as_it_says() {
    let op = MixOp::OneOf(vec![
        MixChoice { p: 0.5, op: MIXUP },
        MixChoice { p: 0.2, op: CUTMIX },
        MixChoice { p: 0.1, op: FMIX },
    ]);
    let n = 40_000;
    let mut count = [0f64; 4];
    for at in 0..n {
        let how = draw::draw(
            &op,
            &[0, 1],
            (8, 8),
            &mut random(at),
            &mut RowPartners::default(),
        );
        count[match how {
            MixOperation::Blend { .. } => 0,
            MixOperation::Paste(_) => 1,
            MixOperation::Mask { .. } => 2,
            MixOperation::Nothing => 3,
        }] += 1.0;
    }
    for (got, p) in count.iter().zip([0.5, 0.2, 0.1, 0.2]) {
        let deviation = (p * (1.0 - p) * n as f64).sqrt();
        assert!((got - p * n as f64).abs() < 5.0 * deviation, "{count:?}");
    }
}

#[test]
fn timms_kinds_and_partners() {
    let n = 20_000;
    let count = |op: &MixOp| {
        let mut count = [0f64; 3];
        for at in 0..n {
            let mut partners = RowPartners::default();
            let rows = [0, 1, 3, 4, 6];
            let how = draw::draw(op, &rows, (8, 8), &mut random(at), &mut partners);
            if how != MixOperation::Nothing {
                assert_eq!(partners.partner_of, [4, 3, 2, 1, 0]);
            }
            count[match how {
                MixOperation::Blend { .. } => 0,
                MixOperation::Paste(_) => 1,
                _ => 2,
            }] += 1.0;
        }
        count.map(|c| c / n as f64)
    };
    let op = |mixup_alpha, cutmix_alpha, p, switch_p| MixOp::MixupCutmix {
        mixup_alpha,
        cutmix_alpha,
        p,
        switch_p,
        label_smoothing: 0.1,
    };
    for (op, want) in [
        (op(0.8, 1.0, 1.0, 0.5), [0.5, 0.5, 0.0]),
        (op(0.8, 1.0, 0.6, 0.25), [0.45, 0.15, 0.4]),
        (op(0.8, 0.0, 0.5, 1.0), [0.5, 0.0, 0.5]),
        (op(0.0, 1.0, 1.0, 0.0), [0.0, 1.0, 0.0]),
    ] {
        let got = count(&op);
        for (g, w) in got.iter().zip(want) {
            assert!(
                (g - w).abs() < 0.02 && (*g == w || w % 1.0 != 0.0),
                "{got:?}, {want:?}"
            );
        }
    }
}

#[test]
fn labels_are_smoothed() {
    let labels = one_hot([Some(1), None, Some(0)].into_iter(), 4, 0.2).unwrap();
    let want = [
        0.05, 0.85, 0.05, 0.05, 0.0, 0.0, 0.0, 0.0, 0.85, 0.05, 0.05, 0.05,
    ];
    assert_eq!(labels.len(), want.len());
    assert!(labels.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-7));
    let sharp = one_hot([Some(2)].into_iter(), 3, 0.0).unwrap();
    assert_eq!(sharp, [0.0, 0.0, 1.0]);
    for bad in [-1, 3, i64::MAX] {
        let message = one_hot([Some(bad)].into_iter(), 3, 0.0).unwrap_err();
        assert!(message.to_string().contains(&format!("label {bad} ")));
    }
    let many = one_hot((0..5i32).map(|c| Some(i64::from(c))), 1000, 0.1).unwrap();
    for row in many.chunks(1000) {
        let sum: f64 = row.iter().map(|v| f64::from(*v)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }
}

fn mask_shape(height: usize, width: usize, layout: MemoryLayout) -> RowShape {
    RowShape {
        channels: 3,
        height,
        width,
        dtype: DataType::F32,
        layout,
    }
}

#[test]
fn a_mask_has_its_mean_and_is_binary_or_soft() {
    let mut ups = 0;
    for n in 0..300u64 {
        let keep = random(n).next_f64();
        let (height, width) = (20 + n as usize % 13, 31);
        let pixels = (height * width) as f64;
        for max_soft in [0.0, 0.1, 0.5] {
            let mut planes = MixMask::default();
            let shape = mask_shape(height, width, MemoryLayout::Nchw);
            planes.draw(keep, 3.0, max_soft, shape, &mut random(n));
            let values = planes.values();
            assert_eq!(values.len(), height * width);
            let sum: f64 = values.iter().map(|v| f64::from(*v)).sum();
            assert!((sum - keep * pixels).abs() <= 1.0 + 1e-3, "{sum}, {keep}");
            ups += usize::from(sum > keep * pixels);
            let soft = values.iter().filter(|v| **v > 0.0 && **v < 1.0).count() as f64;
            if max_soft == 0.0 {
                assert_eq!(soft, 0.0);
            } else {
                // The two ends of the slope are 1 and 0.
                let want = 2.0 * (pixels * max_soft.min(keep).min(1.0 - keep)).floor() - 2.0;
                assert_eq!(soft, want.max(0.0), "{keep}, {max_soft}");
            }
            // Each element of a pixel has the pixel's weight.
            let mut pixel = MixMask::default();
            let shape = mask_shape(height, width, MemoryLayout::Nhwc);
            pixel.draw(keep, 3.0, max_soft, shape, &mut random(n));
            let repeated: Vec<f32> = values.iter().flat_map(|v| [*v; 3]).collect();
            assert_eq!(pixel.values(), repeated);
        }
    }
    assert!((350..550).contains(&ups), "{ups}");
}

#[test]
fn the_ends_of_weights_are_whole_masks() {
    for (keep, want) in [(0.0, 0.0), (1.0, 1.0)] {
        for max_soft in [0.0, 0.5] {
            let mut mask = MixMask::default();
            let shape = mask_shape(9, 5, MemoryLayout::Nchw);
            mask.draw(keep, 3.0, max_soft, shape, &mut random(4));
            assert!(mask.values().iter().all(|v| *v == want));
        }
    }
}

/// The field as a plain sum over all frequencies, in f64, of the numbers drawn in
/// the order that `mask` draws them.
fn plain_noise(h: usize, w: usize, decay: f64, random: &mut PositionRandom) -> Vec<f64> {
    let mut field = vec![0f64; h * w];
    let lowest = 1.0 / h.max(w) as f64;
    for kx in 0..=w / 2 {
        let first = if kx == 0 { 1 } else { -(h as i64 / 2) };
        for ky in first..=h as i64 / 2 {
            let (fx, fy) = (kx as f64 / w as f64, ky as f64 / h as f64);
            let f = (fx * fx + fy * fy).sqrt();
            if f / lowest > 1e4f64.powf(1.0 / decay) {
                continue;
            }
            let size = (f.max(lowest) / lowest).powf(-decay);
            let (a, b) = draw::normals(random);
            for (i, v) in field.iter_mut().enumerate() {
                let angle = std::f64::consts::TAU * (fx * (i % w) as f64 + fy * (i / w) as f64);
                *v += size * (a * angle.cos() + b * angle.sin());
            }
        }
    }
    field
}

#[test]
fn noise_is_the_sum_over_its_frequencies() {
    for (h, w, decay) in [
        (12, 10, 3.0),
        (10, 13, 3.0),
        (9, 16, 0.7),
        (64, 48, 5.0),
        (1, 7, 3.0),
        (1, 1, 3.0),
    ] {
        let mut got = Vec::new();
        let mut ours = random(77);
        mask::noise(h, w, decay, &mut ours, &mut got);
        let mut theirs = random(77);
        let want = plain_noise(h, w, decay, &mut theirs);
        assert_eq!(ours.next_f64(), theirs.next_f64(), "as many numbers");
        let most = want.iter().fold(0f64, |m, v| m.max(v.abs()));
        for (g, v) in got.iter().zip(&want) {
            assert!(
                (f64::from(*g) - v).abs() <= most * 2e-6,
                "{h}x{w}: {g}, {v}"
            );
        }
    }
}

/// Neither axis is preferred, and neighbours are alike.
#[test]
fn noise_is_smooth_and_the_same_on_both_axes() {
    let n = 64;
    let (mut along, mut across, mut power) = (0f64, 0f64, 0f64);
    for at in 0..400 {
        let mut field = Vec::new();
        mask::noise(n, n, 3.0, &mut random(at), &mut field);
        for y in 0..n - 1 {
            for x in 0..n - 1 {
                let v = |y: usize, x: usize| f64::from(field[y * n + x]);
                along += (v(y, x + 1) - v(y, x)).powi(2);
                across += (v(y + 1, x) - v(y, x)).powi(2);
                power += v(y, x).powi(2);
            }
        }
    }
    assert!((along / across - 1.0).abs() < 0.15, "{}", along / across);
    assert!(along < 0.03 * power, "{along}, {power}");
}

#[test]
fn the_bytes_count_row_label_and_mask() {
    let mixing = |op: MixOp| Mixing::new(1000).then(op);
    let smooth = MixOp::LabelSmoothing { epsilon: 0.1 };
    assert_eq!(mixing_bytes(&mixing(smooth), 600, 100), (0, 4000));
    assert_eq!(mixing_bytes(&mixing(MIXUP), 600, 100), (4600, 4000));
    let fmix = MixOp::OneOf(vec![MixChoice { p: 1.0, op: FMIX }]);
    assert_eq!(mixing_bytes(&mixing(fmix), 600, 100), (4600 + 2000, 4000));
    assert_eq!(mixing_bytes(&mixing(FMIX), u64::MAX, u64::MAX).0, u64::MAX);
}

#[test]
fn vectors_have_a_number_for_each_class() {
    let mixing = Mixing::new(5).then(MIXUP);
    assert!(check_vectors(&mixing, 5).is_ok());
    let message = check_vectors(&mixing, 6).unwrap_err().to_string();
    assert!(message.contains("use num_classes 6"), "{message}");
    let smooth = mixing.then(MixOp::LabelSmoothing { epsilon: 0.1 });
    let message = check_vectors(&smooth, 5).unwrap_err().to_string();
    assert!(
        message.contains("label_smoothing smooths class labels"),
        "{message}"
    );
}

/// What is drawn for a batch is part of every run that is to be resumed: computed
/// apart from this code, by what the modules say of it.
#[test]
fn what_is_drawn_stays_what_it_is() {
    let options = OrderOptions {
        batch: 7,
        seed: 11,
        rank: 1,
        world: 4,
        ..OrderOptions::default()
    };
    let plan = EpochPlan::new(1000, options).unwrap();
    let of_batch = || plan.batch_random(plan.mark(2, 3));
    let rows: Vec<usize> = (0..7).collect();
    let drawn = |op: &MixOp| {
        let mut partners = RowPartners::default();
        let how = draw::draw(op, &rows, (40, 60), &mut of_batch(), &mut partners);
        assert_eq!(partners.partner_of, [5, 1, 0, 4, 2, 6, 3]);
        how
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a}, {b}");
    near(
        drawn(&MixOp::Mixup { alpha: 0.2 }).keep(),
        0.033_081_254_266_514_88,
    );
    let MixOperation::Paste(at) = drawn(&CUTMIX) else {
        panic!("no box");
    };
    assert_eq!((at.rows, at.columns), (0..18, 6..54));
    let mut r = of_batch();
    near(beta(4.0, &mut r), 0.515_931_414_884_491_9);
    near(r.next_f64(), 0.440_147_214_333_659_8);
}

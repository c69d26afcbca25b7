//! Decoding into the row of a slot: any bytes, under several recipes and limits.
//!
//! The first byte selects the recipe. The second selects the position in the epoch, and so crop and
//! flip. The rest is the file. The row has guards on both sides, which must stay unchanged. The
//! result must not depend on earlier inputs. A new decoder and one that has decoded all inputs
//! since the process began must agree on the result and on every byte.

use featherload::recipe::{
    AlphaMode, AugMix, AutoAugment, BackgroundColor, BoundedResizedCrop, CenterCrop, ColorJitter,
    ColorSpace, ConvertColor, CropWithPadding, Cutout, DataType, Decode, DecodeMode, GaussianBlur,
    MemoryLayout, Normalize, OrientationMode, Pad, PadTo, RandomErasing, RandomHorizontalFlip,
    RandomResizedCrop, RandomRotate90, RandomRotation, Recipe, Resize, Span, TimmAugment,
    TrivialAugment,
};
use featherload::tests_support::RowDecoder;

use super::Target;

const GUARD: usize = 64;
const CANARY: u8 = 0xa5;
pub const RECIPES: usize = 12;
/// The row of images of their own size.
const OWN_ROW: usize = 4096;

/// Recipe `number`, with its limits in pixels and bytes.
fn recipe(number: usize) -> (Recipe, u64, u64) {
    let (small, large) = ((1 << 14, 1 << 20), (1 << 20, 16 << 20));
    let (full, scaled) = (DecodeMode::Full, DecodeMode::Scaled);
    let (nhwc, nchw) = (MemoryLayout::Nhwc, MemoryLayout::Nchw);
    let base = || Recipe::new("fuzz");
    let crop = |size: (u32, u32)| RandomResizedCrop::new(size);
    let flip = RandomHorizontalFlip::default;
    let shape = 37.0 / 29.0;
    let (recipe, mode, level, dtype, layout, (pixels, scratch)) = match number {
        // The identity, for the project's own images.
        0 => {
            let whole = RandomResizedCrop {
                scale: Span(1.0, 1.0),
                ratio: Span(shape, shape),
                ..crop((29, 37))
            };
            (base().then(whole), full, 255, DataType::U8, nhwc, large)
        }
        1 => {
            let ops = base().then(crop((12, 20))).then(flip());
            let ops = ops.then(Normalize::imagenet());
            (ops, scaled, 255, DataType::F16, nchw, large)
        }
        2 => {
            let ops = base().then(crop((7, 5))).then(flip());
            (ops, scaled, 0, DataType::U8, nchw, large)
        }
        3 => {
            let ops = base().then(Resize::shorter(64)).then(CenterCrop::new(64));
            let ops = ops.then(Normalize::imagenet());
            (ops, full, 128, DataType::F32, nchw, large)
        }
        4 => {
            let ops = base()
                .then(Resize::shorter(9))
                .then(CenterCrop::new((8, 9)));
            (ops, scaled, 255, DataType::U8, nhwc, large)
        }
        5 => {
            let ops = base().then(crop((33, 1))).then(Normalize::imagenet());
            (ops, full, 1, DataType::F32, nhwc, small)
        }
        6 => {
            let ops = base().then(Resize::shorter(2)).then(CenterCrop::new(1));
            (ops, full, 255, DataType::U8, nhwc, small)
        }
        // Rows of the images' own size.
        7 => (base(), full, 200, DataType::U8, nhwc, large),
        // Every kind of step on pixels, in bytes and in floats.
        8 => {
            let jitter = ColorJitter {
                brightness: Span(0.5, 1.5),
                contrast: Span(0.5, 1.5),
                saturation: Span(0.5, 1.5),
                hue: Span(-0.2, 0.2),
                ..ColorJitter::default()
            };
            let ops = base()
                .then(jitter)
                .then(GaussianBlur::new((5, 3)))
                .then(Pad::new(3))
                .then(RandomRotation::new(Span(-90.0, 90.0)))
                .then(RandomRotate90::default())
                .then(crop((9, 14)))
                .then(RandomErasing::default());
            (ops, full, 9, DataType::U8, nhwc, large)
        }
        9 => {
            let ops = base()
                .then(ConvertColor::new(ColorSpace::Lab))
                .then(Resize::exact(11, 6))
                .then(RandomErasing::default());
            (ops, full, 80, DataType::F32, nchw, large)
        }
        // Policies, on images of any size; orientation and alpha as stored.
        10 => {
            let mix = AugMix {
                p: 1.0,
                depth: 2.into(),
                ..AugMix::default()
            };
            let decode = Decode {
                orientation: OrientationMode::Stored,
                alpha: AlphaMode::Drop,
                ..Decode::default()
            };
            let ops = base()
                .then(decode)
                .then(TimmAugment::new("rand-m9-n3-mstd0.5-inc1"))
                .then(AutoAugment::default())
                .then(mix)
                .then(TrivialAugment::default())
                .then(Cutout::default())
                .then(PadTo::multiple_of((16, 5)))
                .then(CropWithPadding::default())
                .then(CenterCrop::at_ratio(0.9))
                .then(BoundedResizedCrop::new((8, 11)));
            (ops, full, 9, DataType::U8, nhwc, large)
        }
        _ => {
            let ops = base().then(crop((3, 40))).then(flip());
            let ops = ops.then(Normalize::imagenet());
            (ops, scaled, 77, DataType::Bf16, nhwc, small)
        }
    };
    let recipe = recipe
        .with_decode(mode)
        .with_background(BackgroundColor([level; 3]))
        .with_dtype(dtype)
        .with_layout(layout);
    (recipe, pixels, scratch)
}

fn decoder(number: usize) -> RowDecoder {
    let (recipe, pixels, scratch) = recipe(number);
    RowDecoder::new(&recipe, pixels, scratch).expect("a recipe")
}

pub fn target() -> Target {
    let mut used: Vec<RowDecoder> = (0..RECIPES).map(decoder).collect();
    Box::new(move |data| run(&mut used, data))
}

fn run(used: &mut [RowDecoder], data: &[u8]) {
    let Some((&[number, position], bytes)) = data.split_first_chunk::<2>() else {
        return;
    };
    let number = usize::from(number) % RECIPES;
    let position = u64::from(position);
    let mut fresh = decoder(number);
    let first = fill(&mut fresh, bytes, position);
    let again = fill(&mut fresh, bytes, position);
    assert!(
        first == again,
        "the second time {} gives another result",
        outcome_text(&again)
    );
    let used = fill(&mut used[number], bytes, position);
    assert!(
        first == used,
        "{} with a fresh decoder, {} with a used one",
        outcome_text(&first),
        outcome_text(&used)
    );
}

type Outcome = Result<Vec<u8>, (u8, String)>;

fn fill(decoder: &mut RowDecoder, bytes: &[u8], position: u64) -> Outcome {
    let len = decoder.row_bytes().unwrap_or(OWN_ROW);
    // 64 bytes of guard keep the alignment that rows have.
    let mut row = vec![CANARY; len + 2 * GUARD];
    let result = decoder.fill(bytes, position, &mut row[GUARD..GUARD + len]);
    let guards = row[..GUARD].iter().chain(&row[GUARD + len..]);
    assert!(guards.copied().all(|b| b == CANARY), "wrote beside the row");
    match result {
        Ok(()) => Ok(row[GUARD..GUARD + len].to_vec()),
        Err(fault) => Err((fault.kind as u8, fault.reason)),
    }
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Ok(pixels) => format!("{} bytes of pixels", pixels.len()),
        Err((_, reason)) => format!("'{reason}'"),
    }
}

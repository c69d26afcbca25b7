//! Depths, flows, masks and paired images: any bytes, under several rules.
//!
//! The first byte selects the rule, the second the position in the epoch. The rest is the file. The
//! result must not depend on earlier inputs: a new decoder and one that has made all rasters since
//! the process began must agree on the result and on every byte.

use featherload::tests_support::RasterDecoder;
use featherload::{
    FlowRule, MaskRule, NumberRule, PairRule, RasterFilter, RasterFloat, RasterNumber, RasterRule,
};

use super::Target;

const PIXELS: u64 = 1 << 14;
const SCRATCH: u64 = 1 << 20;
pub const RULES: usize = 7;

fn rule(number: usize) -> RasterRule {
    let depth = NumberRule::depth();
    match number {
        0 => RasterRule::Numbers(depth),
        1 => RasterRule::Numbers(NumberRule {
            filter: RasterFilter::Bilinear,
            missing: Some(RasterNumber(0.0)),
            divide: 256.0,
            dtype: RasterFloat::Float16,
            ..depth
        }),
        2 => RasterRule::Flow(FlowRule::default()),
        3 => RasterRule::Flow(FlowRule {
            valid: true,
            ..FlowRule::default()
        }),
        4 => RasterRule::Mask(MaskRule::default()),
        5 => RasterRule::Image(PairRule::default()),
        _ => RasterRule::Image(PairRule {
            scale: 2,
            ..PairRule::default()
        }),
    }
}

pub fn target() -> Target {
    let make = |number| RasterDecoder::new(&rule(number), PIXELS, SCRATCH).expect("a decoder");
    let mut used: Vec<RasterDecoder> = (0..RULES).map(make).collect();
    Box::new(move |data| {
        let [choice, position, file @ ..] = data else {
            return;
        };
        let number = usize::from(*choice) % RULES;
        let position = u64::from(*position);
        let again = make(number).make(file, position);
        assert_eq!(used[number].make(file, position), again);
    })
}

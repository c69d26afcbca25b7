use serde_json::{Map, Value, json};

use super::*;

fn fields(fields: Value) -> Map<String, Value> {
    fields.as_object().cloned().unwrap()
}

#[test]
fn fields_change_the_usual_rule_of_a_kind() {
    let rule = RasterRule::read("depth", fields(json!({"divide": 256, "fill": "nan"}))).unwrap();
    let RasterRule::Numbers(rule) = rule else {
        panic!("{rule:?}");
    };
    assert_eq!(rule.divide, 256.0);
    assert_eq!(rule.missing, Some(RasterNumber(0.0)));
    assert!(rule.fill.0.is_nan());
    let all = RasterRule::read("depth", fields(json!({"missing": null}))).unwrap();
    assert!(matches!(all, RasterRule::Numbers(rule) if rule.missing.is_none()));
    for kind in RASTER_KINDS {
        let usual = RasterRule::of_kind(kind).unwrap();
        assert_eq!(RasterRule::read(kind, Map::new()), Ok(usual), "{kind}");
    }
}

#[test]
fn unknown_words_and_fields_are_errors() {
    for (kind, given, what) in [
        (
            "normals",
            json!({}),
            "kinds are depth, alpha, flow, image, mask",
        ),
        ("depth", json!({"scale": 2}), "depth: unknown field `scale`"),
        ("depth", json!({"fill": "none"}), "'none' is no number"),
        ("depth", json!({"divide": "many"}), "depth: invalid type"),
        (
            "flow",
            json!({"divide": 64}),
            "flow: unknown field `divide`",
        ),
        (
            "image",
            json!({"colors": "all"}),
            "image: unknown variant `all`",
        ),
    ] {
        let e = RasterRule::read(kind, fields(given)).unwrap_err();
        assert!(e.contains(what), "{e}");
    }
}

#[test]
fn numbers_out_of_range_are_named() {
    for (kind, given, what) in [
        ("depth", json!({"divide": 0}), "`divide` is 0"),
        (
            "depth",
            json!({"fill": 1e6, "dtype": "float16"}),
            "float16 does not hold",
        ),
        (
            "flow",
            json!({"fill": 1e6, "dtype": "float16"}),
            "float16 does not hold",
        ),
        ("image", json!({"scale": 0}), "`scale` is 0: use 1 to 16"),
        ("image", json!({"scale": 17}), "`scale` is 17: use 1 to 16"),
        (
            "image",
            json!({"swap": true, "scale": 2}),
            "both must be made alike",
        ),
    ] {
        let rule = RasterRule::read(kind, fields(given)).unwrap();
        let e = rule.check().unwrap_err();
        assert!(e.contains(what), "{e}");
    }
    for kind in RASTER_KINDS {
        assert_eq!(RasterRule::of_kind(kind).unwrap().check(), Ok(()), "{kind}");
    }
    let infinite = RasterRule::Numbers(NumberRule {
        fill: RasterNumber(f32::INFINITY),
        ..NumberRule::depth()
    });
    assert!(infinite.check().unwrap_err().contains("`fill` is infinite"));
}

#[test]
fn rows_without_a_sample_have_the_fill() {
    let fill = |rule: RasterRule, len: usize| {
        let mut bytes = vec![1; len * size_of::<f32>()];
        rule.fill_empty(&mut bytes);
        let numbers = bytes.as_chunks().0.iter();
        numbers.map(|n| f32::from_ne_bytes(*n)).collect::<Vec<_>>()
    };
    let depth = NumberRule {
        fill: RasterNumber(-1.0),
        ..NumberRule::depth()
    };
    assert_eq!(fill(RasterRule::Numbers(depth), 4), [-1.0; 4]);
    let valid = FlowRule {
        valid: true,
        fill: Some(RasterNumber(5.0)),
        ..FlowRule::default()
    };
    assert_eq!(
        fill(RasterRule::Flow(valid), 6),
        [5.0, 5.0, 5.0, 5.0, 0.0, 0.0]
    );
    let flow = fill(RasterRule::Flow(FlowRule::default()), 4);
    assert!(flow.iter().all(|n| n.is_nan()));
    assert_eq!(fill(RasterRule::Image(PairRule::default()), 4), [0.0; 4]);
}

#[test]
fn names_are_words_and_used_once() {
    let check = |names: &[&'static str]| {
        let checked = check_raster_names(names.iter().copied());
        checked.map_err(|e| e.to_string())
    };
    assert_eq!(check(&["depth", "depth_2", "right"]), Ok(()));
    for (names, what) in [
        (&["a b"][..], "letters, digits and _ only"),
        (&[""], "letters, digits and _ only"),
        (&["masks"], "belongs to the option `masks`"),
        (&["flow", "flow"], "two rasters have this name"),
    ] {
        let e = check(names).unwrap_err();
        assert!(e.contains(what), "{e}");
    }
}

#[test]
fn a_description_is_read_as_the_same_rule() {
    let kinds = RASTER_KINDS.map(|kind| RasterRule::of_kind(kind).unwrap());
    let others = [
        RasterRule::Numbers(NumberRule {
            divide: 0.1,
            missing: None,
            fill: RasterNumber(7.5),
            dtype: RasterFloat::Float16,
            ..NumberRule::depth()
        }),
        RasterRule::Numbers(NumberRule {
            missing: Some(RasterNumber(65535.0)),
            ..NumberRule::alpha()
        }),
        RasterRule::Flow(FlowRule {
            valid: true,
            filter: RasterFilter::Bilinear,
            ..FlowRule::default()
        }),
        RasterRule::Image(PairRule {
            scale: 4,
            colors: PairColors::None,
            ..PairRule::default()
        }),
    ];
    for rule in kinds.into_iter().chain(others) {
        let text = serde_json::to_string(&rule.described()).unwrap();
        let described = serde_json::from_str(&text).unwrap();
        let read = RasterRule::of_description(&described, &Map::new()).unwrap();
        assert_eq!(read, rule, "{text}");
    }
    let depth = RasterRule::Numbers(NumberRule::depth()).described();
    assert_eq!(depth, Map::from_iter([("kind".to_owned(), "depth".into())]));
    let given = Map::from_iter([("divide".to_owned(), 256.into())]);
    let RasterRule::Numbers(rule) = RasterRule::of_description(&depth, &given).unwrap() else {
        panic!("{depth:?}");
    };
    assert_eq!(
        rule,
        NumberRule {
            divide: 256.0,
            ..NumberRule::depth()
        }
    );
}

//! Each step, against what `sd-scripts` does; frequencies; which draws depend on what.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn random(position: u64) -> PositionRandom {
    PositionRandom::of_stream(7, 3, position, 12)
}

fn rule(json: &str) -> CaptionRule {
    let rule: CaptionRule = serde_json::from_str(json).unwrap();
    rule.check().unwrap();
    rule
}

/// The captions of a text at many positions, and how often each came.
fn captions(rule: &CaptionRule, texts: &[&str]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for position in 0..4000 {
        let caption = rule.caption(texts, random(position));
        *counts.entry(caption).or_default() += 1;
    }
    counts
}

fn all(rule: &CaptionRule, texts: &[&str]) -> Vec<String> {
    captions(rule, texts).into_keys().collect()
}

/// Within six standard deviations of 4000 draws.
fn check_frequency(count: u32, p: f64) {
    let (mean, deviation) = (4000.0 * p, (4000.0 * p * (1.0 - p)).sqrt());
    let off = f64::from(count) - mean;
    assert!(off.abs() <= 6.0 * deviation, "{count} of 4000 at {p}");
}

#[test]
fn the_default_rule_keeps_the_first_text() {
    let keeps = CaptionRule::default();
    assert_eq!(
        all(&keeps, &["  a {b|c},  d,\nsecond \n", "other"]),
        ["a {b|c},  d,\nsecond"]
    );
    assert_eq!(all(&keeps, &[]), [""]);
    assert_eq!(all(&keeps, &[" \n"]), [""]);
}

#[test]
fn one_of_several_is_chosen_and_lines_count_where_the_rule_says_so() {
    let texts = ["a\nb", " c "];
    let counts = captions(&rule(r#"{"choose": "random"}"#), &texts);
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["a\nb", "c"]);
    check_frequency(counts["c"], 0.5);
    let lines = rule(r#"{"choose": "random", "lines": true}"#);
    let counts = captions(&lines, &["a\r\n\n b \n", "\n", "c"]);
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    for count in counts.values() {
        check_frequency(*count, 1.0 / 3.0);
    }
    let first = rule(r#"{"lines": true}"#);
    assert_eq!(all(&first, &["\n a\nb"]), ["a"]);
    assert_eq!(all(&first, &[" \n\n"]), [""]);
}

#[test]
fn a_dropped_caption_is_empty_whatever_is_added() {
    let drops = rule(r#"{"drop": 0.25, "prefix": "p", "suffix": "s", "shuffle": true}"#);
    let counts = captions(&drops, &["a"]);
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["", "p a s"]);
    check_frequency(counts[""], 0.25);
    assert_eq!(all(&rule(r#"{"drop": 1}"#), &["a"]), [""]);
    assert_eq!(all(&rule(r#"{"prefix": "p"}"#), &[]), ["p "]);
}

/// Other fields change neither what is dropped nor which text is chosen.
#[test]
fn draws_do_not_depend_on_other_fields() {
    let texts = ["a, b, c", "d, e, f", "g, h, i"];
    let plain = rule(r#"{"choose": "random"}"#);
    let drops = rule(r#"{"choose": "random", "drop": 0.5}"#);
    let moves = rule(r#"{"choose": "random", "drop": 0.5, "shuffle": true, "prefix": "x"}"#);
    let sorted = |text: &str| -> BTreeSet<char> { text.chars().collect() };
    let mut dropped = 0;
    for position in 0..500 {
        let [plain, drops, moves] =
            [&plain, &drops, &moves].map(|rule| rule.caption(&texts, random(position)));
        if drops.is_empty() {
            assert_eq!(moves, "");
            dropped += 1;
            continue;
        }
        assert_eq!(drops, plain);
        assert_eq!(sorted(&moves.replace("x ", "")), sorted(&plain));
    }
    assert!((200..300).contains(&dropped), "{dropped}");
}

#[test]
fn first_tags_stay_and_every_order_of_the_others_is_equally_likely() {
    let shuffles = rule(r#"{"shuffle": true, "keep": 1}"#);
    let counts = captions(&shuffles, &["k, a,b ,  c"]);
    let orders = [
        "a, b, c", "a, c, b", "b, a, c", "b, c, a", "c, a, b", "c, b, a",
    ];
    let want = orders.map(|order| format!("k, {order}"));
    assert_eq!(counts.keys().cloned().collect::<Vec<_>>(), want);
    for count in counts.values() {
        check_frequency(*count, 1.0 / 6.0);
    }
    // More are kept than there are.
    let keeps = rule(r#"{"shuffle": true, "keep": 9}"#);
    assert_eq!(all(&keeps, &["b,a"]), ["b, a"]);
    // The prefix is a part of the first tag.
    let prefixed = rule(r#"{"shuffle": true, "keep": 1, "prefix": "p", "suffix": "s"}"#);
    assert_eq!(all(&prefixed, &["k, a, b"]), ["p k, a, b s", "p k, b s, a"]);
}

#[test]
fn each_tag_after_the_kept_ones_is_dropped_by_itself() {
    let drops = rule(r#"{"tag_drop": 0.25, "keep": 1}"#);
    let counts = captions(&drops, &["k, a, b"]);
    let want = ["k", "k, a", "k, a, b", "k, b"];
    assert_eq!(counts.keys().collect::<Vec<_>>(), want);
    for (caption, p) in want.iter().zip([1.0, 3.0, 9.0, 3.0]) {
        check_frequency(counts[*caption], p / 16.0);
    }
    assert_eq!(all(&rule(r#"{"tag_drop": 1}"#), &["a, b"]), [""]);
}

#[test]
fn separators_divide_tags_and_kept_parts() {
    let of =
        |fields: &str, text: &str| all(&rule(&format!("{{\"shuffle\": true, {fields}}}")), &[text]);
    assert_eq!(of(r#""separator": ";""#, "a, b; c"), ["a, b, c", "c, a, b"]);
    // Empty tags count without a keep separator, as in sd-scripts.
    assert_eq!(of(r#""keep": 1"#, "a,,"), ["a, , "]);
    let keep = r#""keep": 7, "keep_separator": "|||""#;
    assert_eq!(of(keep, "k, ,l ||| b, a"), ["k, l, a, b", "k, l, b, a"]);
    assert_eq!(
        of(keep, "k|||b,a|||z, y|||x"),
        ["k, a, b, z, y|||x", "k, b, a, z, y|||x"]
    );
    assert_eq!(of(keep, "|||a"), ["a"]);
    assert_eq!(of(keep, "b, a"), ["b, a"]);
    let secondary = r#""secondary_separator": ";;""#;
    assert_eq!(of(secondary, "a;;b, c"), ["a,b, c", "c, a,b"]);
    let unmoved = rule(r#"{"secondary_separator": ";;"}"#);
    assert_eq!(all(&unmoved, &["a;;b,c"]), ["a,b,c"]);
}

/// What the same lines of sd-scripts give in 2000 calls for each text.
#[test]
fn wildcards_become_one_of_their_parts() {
    let wild = rule(r#"{"wildcards": true}"#);
    for (text, want) in [
        ("a {b|c|} d", &["a  d", "a b d", "a c d"][..]),
        ("{a}{b|c}", &["ab", "ac"]),
        ("{} {a", &["{} {a"]),
        ("a} {b|c}", &["a} b", "a} c"]),
        ("{{a|b}} {c|d}", &["{a|b} c", "{a|b} d"]),
        ("{{{a|b}}}", &["{a", "{b}"]),
        ("{a{b|c}", &["a{b", "c"]),
        ("{é|{{日}", &["é", "{日"]),
        ("x|y", &["x|y"]),
        ("", &[""]),
    ] {
        let counts = captions(&wild, &[text]);
        let mut want = want.to_vec();
        want.sort_unstable();
        assert_eq!(counts.keys().collect::<Vec<_>>(), want, "{text}");
        for count in counts.values() {
            check_frequency(*count, 1.0 / want.len() as f64);
        }
    }
    // A wildcard of the prefix counts, and one of several tags.
    let tags = rule(r#"{"wildcards": true, "shuffle": true, "prefix": "{p|q}", "keep": 1}"#);
    assert_eq!(
        all(&tags, &["a, {b, c|d}"]),
        [
            "p a, b, c",
            "p a, c, b",
            "p a, d",
            "q a, b, c",
            "q a, c, b",
            "q a, d"
        ]
    );
    // Time grows with the text alone.
    let open = "{".repeat(1 << 20);
    assert_eq!(wild.caption(&[&open], random(0)).len(), 1 << 19);
}

/// Each caption is made of the tags of its text, and of all of them if none is dropped.
#[test]
fn captions_have_only_tags_of_their_text() {
    for position in 0..2000u64 {
        let mut draws = PositionRandom::of_stream(1, 1, position, 1);
        let count = draws.below(9) as usize;
        let tags: Vec<String> = (0..count)
            .map(|n| format!("t{n} {}", draws.below(100)))
            .collect();
        let keep = draws.below(4) as usize;
        let text = tags.join(",");
        let moves = CaptionRule {
            shuffle: draws.below(2) == 0,
            tag_drop: [0.0, 0.5, 1.0][draws.below(3) as usize],
            keep: keep as u32,
            ..CaptionRule::default()
        };
        let caption = moves.caption(&[&text], random(position));
        let found: Vec<&str> = caption.split(',').map(str::trim).collect();
        let found: Vec<&str> = found.into_iter().filter(|tag| !tag.is_empty()).collect();
        let kept = keep.min(tags.len());
        if moves.has_tags() {
            assert!(found.len() >= kept, "{caption}");
            assert_eq!(found[..kept], tags[..kept]);
        }
        let unique: BTreeSet<&str> = found.iter().copied().collect();
        assert_eq!(unique.len(), found.len());
        assert!(unique.iter().all(|tag| tags.iter().any(|of| of == tag)));
        match moves.tag_drop {
            0.0 => assert_eq!(found.len(), tags.len()),
            1.0 => assert_eq!(found.len(), kept),
            _ => {}
        }
    }
}

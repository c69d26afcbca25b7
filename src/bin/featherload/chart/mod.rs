//! The shared frame of all charts: a card of one width, in the style of `style.css`, light or dark
//! like the page.
//!
//! The viewer lays SVG text out: widths here are estimates with some slack. Never in here: the
//! contents of a chart.

use featherload::error::printable;
use svg::node::element::{Definitions, Element, Line, Pattern, Rectangle, Style, Text, Title};
use svg::{Document, Node};

use crate::output::fields::wrapped;

/// Width of every chart in pixels, so that letters match the page's.
pub const WIDTH: f64 = 880.0;
/// Margin at the sides.
pub const MARGIN: f64 = 24.0;

/// Which end of a text its position refers to.
#[derive(Clone, Copy)]
pub enum TextAnchor {
    Start,
    Middle,
    End,
}

/// The CSS class of a colour, and its meaning.
pub type LegendKey = (&'static str, String);

pub struct ChartSheet {
    title: String,
    nodes: Vec<Element>,
    /// Vertical position of the next element.
    pub y: f64,
}

impl ChartSheet {
    /// A chart with this title and lines of small text under it.
    pub fn new(title: &str, under: &[String]) -> Self {
        let mut sheet = Self {
            title: printable(title),
            nodes: Vec::new(),
            y: 34.0,
        };
        sheet.text(
            "title",
            TextAnchor::Start,
            (MARGIN, 34.0),
            &fitted(&printable(title), 84),
        );
        for line in under.iter().flat_map(|words| wrapped(words, 124)) {
            sheet.y += 20.0;
            let at = (MARGIN, sheet.y);
            sheet.text("soft", TextAnchor::Start, at, &line);
        }
        sheet.y += 12.0;
        sheet
    }

    /// Adds a heading, with a number at the right.
    pub fn heading(&mut self, words: &str, number: &str) {
        self.y += 26.0;
        let y = self.y;
        self.text("head", TextAnchor::Start, (MARGIN, y), words);
        self.text("head", TextAnchor::End, (WIDTH - MARGIN, y), number);
        self.y += 10.0;
    }

    /// Adds lines of small text.
    pub fn note(&mut self, words: &str) {
        for line in wrapped(words, 124) {
            self.y += 19.0;
            let at = (MARGIN, self.y);
            self.text("soft", TextAnchor::Start, at, &line);
        }
    }

    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let shape = Rectangle::new()
            .set("class", class)
            .set("x", rounded(x))
            .set("y", rounded(y))
            .set("width", rounded(width.max(0.0)))
            .set("height", rounded(height.max(0.0)));
        self.add(shape);
    }

    /// A box with lines: `hatch` or `stalled`.
    pub fn hatched(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        self.rect("edge", at, size);
        if let Some(last) = self.nodes.last_mut() {
            last.assign("style", format!("fill:url(#{class}-lines)"));
        }
    }

    pub fn text(&mut self, class: &str, anchor: TextAnchor, (x, y): (f64, f64), words: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        };
        // XML does not allow control characters.
        let text = Text::new(printable(words))
            .set("class", class)
            .set("text-anchor", anchor)
            .set("x", rounded(x))
            .set("y", rounded(y));
        self.add(text);
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let line = Line::new()
            .set("class", class)
            .set("x1", rounded(from.0))
            .set("y1", rounded(from.1))
            .set("x2", rounded(to.0))
            .set("y2", rounded(to.1));
        self.add(line);
    }

    /// Adds a legend of colours, in as many lines as needed.
    pub fn keys(&mut self, keys: &[LegendKey]) {
        let mut x = MARGIN;
        self.y += 12.0;
        for (class, words) in keys {
            let width = 22.0 + 7.2 * words.chars().count() as f64;
            if x + width > WIDTH - MARGIN {
                x = MARGIN;
                self.y += 21.0;
            }
            let y = self.y;
            self.swatch(class, (x, y));
            self.text("", TextAnchor::Start, (x + 20.0, y + 11.0), words);
            x += width + 14.0;
        }
        self.y += 20.0;
    }

    /// A small box of a colour.
    pub fn swatch(&mut self, class: &'static str, at: (f64, f64)) {
        match class {
            "hatch" | "stalled" => self.hatched(class, at, (13.0, 13.0)),
            _ => self.rect(class, at, (13.0, 13.0)),
        }
    }

    /// Grid lines at round numbers, with labels at the left. `y` maps a number to its position.
    pub fn scale(
        &mut self,
        (left, right): (f64, f64),
        (top, bottom): (f64, f64),
        most: f64,
    ) -> impl Fn(f64) -> f64 + use<> {
        let most = most.max(f64::MIN_POSITIVE);
        let y = move |value: f64| bottom - (bottom - top) * value / most;
        for tick in ticks(most, 5) {
            self.line("grid", (left, y(tick)), (right, y(tick)));
            let words = if most < 5.0 {
                format!("{tick:.1}")
            } else {
                grouped(tick)
            };
            self.text("soft", TextAnchor::End, (left - 8.0, y(tick) + 4.0), &words);
        }
        y
    }

    /// The finished chart.
    pub fn finish(self) -> String {
        let height = self.y + 24.0;
        let lines = |class: &str| {
            Pattern::new()
                .set("id", format!("{class}-lines"))
                .set("width", 7)
                .set("height", 7)
                .set("patternUnits", "userSpaceOnUse")
                .set("patternTransform", "rotate(45)")
                .add(
                    Line::new()
                        .set("class", class)
                        .set("x1", 0)
                        .set("y1", 0)
                        .set("x2", 0)
                        .set("y2", 7),
                )
        };
        let mut document = Document::new()
            .set("viewBox", (0, 0, WIDTH as u32, height as u32))
            .set("width", WIDTH as u32)
            .set("height", height as u32)
            // Text for screen readers.
            .set("role", "img")
            .add(Title::new(self.title))
            .add(Style::new(include_str!("style.css")))
            .add(Definitions::new().add(lines("hatch")).add(lines("stalled")))
            .add(
                Rectangle::new()
                    .set("class", "card")
                    .set("x", 0.5)
                    .set("y", 0.5)
                    .set("width", WIDTH - 1.0)
                    .set("height", height.floor() - 1.0)
                    .set("rx", 6),
            );
        for node in self.nodes {
            document = document.add(node);
        }
        format!("{document}\n")
    }

    fn add(&mut self, node: impl Into<Element>) {
        self.nodes.push(node.into());
    }
}

/// One decimal of a pixel is enough.
fn rounded(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

/// Whole numbers with thousands separators.
fn grouped(value: f64) -> String {
    crate::output::grouped(value.round() as u64)
}

/// Round numbers from 0 to `most`: `wanted` of them, or a few more.
pub fn ticks(most: f64, wanted: u32) -> Vec<f64> {
    let rough = most / f64::from(wanted);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|step| *step >= rough * 0.7)
        .unwrap_or(10.0 * power);
    let count = (most / step * 1.0001).floor() as u32;
    (0..=count).map(|i| f64::from(i) * step).collect()
}

/// The text, cut to this number of characters.
pub fn fitted(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.to_owned();
    }
    let kept: String = words.chars().take(most.saturating_sub(1)).collect();
    format!("{}\u{2026}", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(71.6, 5), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(ticks(105.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(1.0, 5).len(), 6);
        for most in [0.3, 7.0, 12.0, 99.0, 4321.0] {
            assert!((3..=8).contains(&ticks(most, 5).len()), "{most}");
        }
    }

    #[test]
    fn words_of_a_chart_are_escaped() {
        let mut sheet = ChartSheet::new("a < b & c\u{1b}", &[]);
        sheet.hatched("hatch", (0.0, 0.0), (1.0, 1.0));
        let svg = sheet.finish();
        assert!(svg.contains("a &lt; b &amp; c\\u{1b}"), "{svg}");
        assert!(!svg.contains('\u{1b}'), "{svg}");
        assert!(svg.contains("fill:url(#hatch-lines)") && svg.contains("id=\"hatch-lines\""));
    }

    #[test]
    fn long_words_are_cut_and_long_lines_wrapped() {
        assert_eq!(fitted("abcdef", 4), "abc\u{2026}");
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    }
}

//! From the texts of a row to its caption, step by step.
//!
//! In the consumer. Pure: the random numbers come from the caller. The steps and their order are
//! those of kohya's `sd-scripts` (`process_caption`), which its texts and settings are made for. Two
//! of them differ: `prefix` and `suffix` are added to the chosen line, not to the first and the last
//! one, and lines count only where the rule says so.

use crate::jobs::caption_rule::{CaptionChoice, CaptionRule};
use crate::order::PositionRandom;
use crate::recipe::geometry::UniformSource;

/// What joins the tags of a caption, whatever separated them before.
const JOINED: &str = ", ";

impl CaptionRule {
    /// The caption of a row that has these texts. Without any it is made of an empty one.
    ///
    /// Whether a caption is dropped, and which text is chosen, does not depend on other fields.
    pub(crate) fn caption(&self, texts: &[&str], mut random: PositionRandom) -> String {
        let is_dropped = random.next_f64() < self.drop;
        let mut chosen = self.choose(texts, &mut random).to_owned();
        if is_dropped {
            return String::new();
        }
        if !self.prefix.is_empty() {
            chosen = format!("{} {chosen}", self.prefix);
        }
        if !self.suffix.is_empty() {
            chosen = format!("{chosen} {}", self.suffix);
        }
        if self.wildcards {
            chosen = with_wildcards(&chosen, &mut random);
        }
        if self.has_tags() {
            chosen = self.with_moved_tags(&chosen, &mut random);
        }
        match &self.secondary_separator {
            Some(secondary) => chosen.replace(secondary, &self.separator),
            None => chosen,
        }
    }

    fn choose<'a>(&self, texts: &[&'a str], random: &mut PositionRandom) -> &'a str {
        let lines: Vec<&str> = match self.lines {
            true => (texts.iter().flat_map(|text| text.lines()))
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect(),
            false => texts.iter().map(|text| text.trim()).collect(),
        };
        let drawn = random.below(lines.len() as u64) as usize;
        let chosen = match self.choose {
            CaptionChoice::First => lines.first(),
            CaptionChoice::Random => lines.get(drawn),
        };
        chosen.copied().unwrap_or_default()
    }

    /// The caption with its tags shuffled and dropped.
    fn with_moved_tags(&self, caption: &str, random: &mut PositionRandom) -> String {
        let mut tags = self.tags(caption);
        if self.shuffle {
            shuffle(&mut tags.moving, random);
        }
        if self.tag_drop > 0.0 {
            tags.moving.retain(|_| random.next_f64() >= self.tag_drop);
        }
        let all = [tags.first, tags.moving, tags.last].concat();
        all.join(JOINED)
    }

    fn tags<'a>(&self, caption: &'a str) -> CaptionTags<'a> {
        let split = |text: &'a str| text.split(&self.separator).map(str::trim);
        let filled = |text| -> Vec<&str> { split(text).filter(|tag| !tag.is_empty()).collect() };
        let keep = self.keep_separator.as_deref();
        if let Some((keep, (first, rest))) = keep.and_then(|k| Some((k, caption.split_once(k)?))) {
            let (moving, last) = rest.split_once(keep).unwrap_or((rest, ""));
            return CaptionTags {
                first: filled(first),
                moving: filled(moving),
                last: filled(last),
            };
        }
        // Empty tags count here, as they do in sd-scripts.
        let mut first: Vec<&str> = split(caption.trim()).collect();
        let moving = first.split_off(first.len().min(self.keep as usize));
        CaptionTags {
            first,
            moving,
            last: Vec::new(),
        }
    }
}

/// The tags of a caption: some that keep their places at both ends, the others between them.
struct CaptionTags<'a> {
    first: Vec<&'a str>,
    moving: Vec<&'a str>,
    last: Vec<&'a str>,
}

/// Every order is equally likely (Fisher and Yates).
fn shuffle(tags: &mut [&str], random: &mut PositionRandom) {
    for last in (1..tags.len()).rev() {
        tags.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// A character of a text, and whether it is an escaped brace.
type Character = (char, bool);

/// The text with one part of each `{a|b}`. `{{` and `}}` are braces, in the order in which
/// `sd-scripts` replaces them: all of the former, then the latter.
fn with_wildcards(text: &str, random: &mut PositionRandom) -> String {
    let characters: Vec<Character> = text.chars().map(|c| (c, false)).collect();
    let text = escaped(&escaped(&characters, '{'), '}');
    let mut chosen: Vec<Character> = Vec::with_capacity(text.len());
    let mut at = 0;
    // The first closing brace after `at`.
    let mut close = 0;
    while at < text.len() {
        let inside = at + 1;
        while close < text.len() && (close < inside || text[close] != ('}', false)) {
            close += 1;
        }
        let is_open = text[at] == ('{', false);
        match (inside + 1..text.len())
            .contains(&close)
            .then_some(close)
            .filter(|_| is_open)
        {
            Some(end) => {
                let parts: Vec<&[Character]> = text[inside..end]
                    .split(|character| *character == ('|', false))
                    .collect();
                let drawn = random.below(parts.len() as u64) as usize;
                chosen.extend_from_slice(parts[drawn]);
                at = end + 1;
            }
            None => {
                chosen.push(text[at]);
                at = inside;
            }
        }
    }
    chosen.into_iter().map(|(c, _)| c).collect()
}

/// The text with one escaped brace in place of two braces.
fn escaped(text: &[Character], brace: char) -> Vec<Character> {
    let mut pairs = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let is_pair = *first == (brace, false) && after.first() == Some(first);
        // Braces of the other kind stay escaped.
        pairs.push((first.0, first.1 || is_pair));
        rest = if is_pair { &after[1..] } else { after };
    }
    pairs
}

#[cfg(test)]
mod tests;

//! The typed parameters of one name. Null counts as absent. A parameter that was never read is a
//! mistake: the message has its line and suggests the nearest name.

use crate::configs::paddle::number::arithmetic;
use crate::recipe::file::{MapKey, NodeValue, TextMistake, TextPosition, TreeNode, no_parameter};
use crate::recipe::{PerChannel, Size, Span};

pub(crate) type ConfigResult<T> = Result<T, TextMistake>;

/// The largest side of a size. Recipes check a smaller limit.
const MOST: f64 = u32::MAX as f64;

pub(crate) struct ConfigParams<'a> {
    /// The name that the parameters belong to.
    pub(crate) name: &'a str,
    /// The position of that name.
    pub(crate) at: TextPosition,
    entries: &'a [(MapKey, TreeNode)],
    read_names: Vec<&'a str>,
}

impl<'a> ConfigParams<'a> {
    /// `node` must be a map or null.
    pub(crate) fn of(name: &'a str, at: TextPosition, node: &'a TreeNode) -> ConfigResult<Self> {
        let entries: &[(MapKey, TreeNode)] = match &node.value {
            NodeValue::Map(entries) => entries,
            NodeValue::Null => &[],
            _ => {
                let expected = format!("parameters of {name} (name: value)");
                return Err(TextMistake::expected(node.at, &expected, &node.describe()));
            }
        };
        Ok(Self {
            name,
            at,
            entries,
            read_names: Vec::new(),
        })
    }

    /// The value of a parameter. None if it is absent or null.
    pub(crate) fn node(&mut self, name: &'static str) -> Option<&'a TreeNode> {
        self.read_names.push(name);
        let (_, node) = self.entries.iter().find(|(key, _)| key.name == name)?;
        (node.value != NodeValue::Null).then_some(node)
    }

    /// Marks parameters as read that have no meaning here.
    pub(crate) fn ignore(&mut self, names: &[&'static str]) {
        self.read_names.extend(names);
    }

    /// Marks all unread parameters as read, and returns their names.
    pub(crate) fn ignore_unread(&mut self) -> Vec<&'a str> {
        let names: Vec<&str> = self.unread_keys().map(|key| key.name.as_str()).collect();
        self.read_names.extend(&names);
        names
    }

    /// A mistake at a parameter.
    pub(crate) fn mistake_at(&self, name: &str, text: impl std::fmt::Display) -> TextMistake {
        self.position_of(name)
            .mistake(format!("{}: {text}", self.name))
    }

    /// A mistake about the place of an operation. `text` follows its name.
    pub(crate) fn misplaced(&self, text: impl std::fmt::Display) -> TextMistake {
        self.at.mistake(format!("{} {text}", self.name))
    }

    /// The mistake that a required parameter is absent.
    pub(crate) fn missing(&self, name: &str) -> TextMistake {
        self.mistake_at(
            name,
            format_args!("'{name}' is missing, and it has no default: write it"),
        )
    }

    /// The position of a parameter, or of the operation if it is absent.
    pub(crate) fn position_of(&self, name: &str) -> TextPosition {
        let written = self.entries.iter().find(|(key, _)| key.name == name);
        written.map_or(self.at, |(key, _)| key.at)
    }

    pub(crate) fn number(&mut self, name: &'static str) -> ConfigResult<Option<f64>> {
        let node = self.node(name);
        node.map(|node| self.number_of(name, node)).transpose()
    }

    pub(crate) fn number_or(&mut self, name: &'static str, default: f64) -> ConfigResult<f64> {
        Ok(self.number(name)?.unwrap_or(default))
    }

    /// A probability. Values above 1 become 1, since drawn numbers are below 1.
    pub(crate) fn probability(&mut self, name: &'static str, default: f64) -> ConfigResult<f64> {
        let p = self.number_or(name, default)?;
        if p < 0.0 {
            return Err(self.mistake_at(name, format_args!("{name} is {p}: use at least 0")));
        }
        Ok(p.min(1.0))
    }

    pub(crate) fn whole(&mut self, name: &'static str) -> ConfigResult<Option<u32>> {
        let Some(v) = self.number(name)? else {
            return Ok(None);
        };
        match pixels(v) {
            Some(v) => Ok(Some(v)),
            None => Err(self.mistake_at(
                name,
                format_args!("{name} is {v}: use a whole number of 0 or more"),
            )),
        }
    }

    /// None if it is 0 or less.
    pub(crate) fn whole_above_zero(&mut self, name: &'static str) -> ConfigResult<Option<u32>> {
        match self.number(name)? {
            Some(v) if v > 0.0 => self.whole(name),
            _ => Ok(None),
        }
    }

    pub(crate) fn whole_or(&mut self, name: &'static str, default: u32) -> ConfigResult<u32> {
        Ok(self.whole(name)?.unwrap_or(default))
    }

    pub(crate) fn flag(&mut self, name: &'static str, default: bool) -> ConfigResult<bool> {
        match self.node(name).map(|node| (&node.value, node)) {
            None => Ok(default),
            Some((NodeValue::Bool(v), _)) => Ok(*v),
            Some((_, node)) => Err(self.expected(name, "true or false", node)),
        }
    }

    pub(crate) fn text(&mut self, name: &'static str) -> ConfigResult<Option<&'a str>> {
        match self.node(name).map(|node| (&node.value, node)) {
            None => Ok(None),
            Some((NodeValue::Str(v), _)) => Ok(Some(v)),
            Some((_, node)) => Err(self.expected(name, "text", node)),
        }
    }

    /// One of several words, translated to its value.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> ConfigResult<Option<T>> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*meaning));
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let supported = match words.as_slice() {
            [words @ .., last] if !words.is_empty() => format!("{} or {last}", words.join(", ")),
            words => words.concat(),
        };
        Err(self.mistake_at(name, format_args!("{name} is '{text}': use {supported}")))
    }

    /// Whether one of these is present, even as null.
    pub(crate) fn given(&self, names: &[&str]) -> bool {
        let mut keys = self.entries.iter().map(|(key, _)| key.name.as_str());
        keys.any(|key| names.contains(&key))
    }

    /// Whether the value is a list.
    pub(crate) fn is_list(&self, name: &str) -> bool {
        let mut of_name = self.entries.iter().filter(|(key, _)| key.name == name);
        of_name.any(|(_, node)| matches!(node.value, NodeValue::List(_)))
    }

    /// Whether the value is Python's `None`, which YAML reads as text. If so, it counts as read.
    pub(crate) fn is_python_none(&mut self, name: &'static str) -> bool {
        let mut of_name = self.entries.iter().filter(|(key, _)| key.name == name);
        let is_none =
            of_name.any(|(_, node)| matches!(&node.value, NodeValue::Str(text) if text == "None"));
        if is_none {
            self.ignore(&[name]);
        }
        is_none
    }

    /// A list of numbers. A single number is a list of one.
    pub(crate) fn numbers(&mut self, name: &'static str) -> ConfigResult<Option<Vec<f64>>> {
        let Some(node) = self.node(name) else {
            return Ok(None);
        };
        match &node.value {
            NodeValue::List(items) => {
                let all = items.iter().map(|item| self.number_of(name, item));
                all.collect::<ConfigResult<_>>().map(Some)
            }
            _ => Ok(Some(vec![self.number_of(name, node)?])),
        }
    }

    /// One number for all channels, or three numbers.
    pub(crate) fn colour(&mut self, name: &'static str) -> ConfigResult<Option<[f64; 3]>> {
        Ok(match self.numbers(name)?.as_deref() {
            None => None,
            Some(&[v]) => Some([v; 3]),
            Some(&[a, b, c]) => Some([a, b, c]),
            Some(other) => {
                let n = other.len();
                return Err(
                    self.mistake_at(name, format_args!("{name} has {n} numbers: use 1 or 3"))
                );
            }
        })
    }

    /// `[lowest, highest]`.
    pub(crate) fn span(&mut self, name: &'static str) -> ConfigResult<Option<Span>> {
        Ok(match self.numbers(name)?.as_deref() {
            None => None,
            Some(&[low, high]) => Some(Span(low, high)),
            Some(_) => {
                return Err(self.mistake_at(name, format_args!("{name} must be [lowest, highest]")));
            }
        })
    }

    /// One side, or `[width, height]`.
    pub(crate) fn width_first(&mut self, name: &'static str) -> ConfigResult<Option<Size>> {
        let pair = self.pair(name)?;
        Ok(pair.map(|(width, height)| Size { height, width }))
    }

    /// One side, or `[height, width]`.
    pub(crate) fn height_first(&mut self, name: &'static str) -> ConfigResult<Option<Size>> {
        let pair = self.pair(name)?;
        Ok(pair.map(|(height, width)| Size { height, width }))
    }

    fn pair(&mut self, name: &'static str) -> ConfigResult<Option<(u32, u32)>> {
        let Some(values) = self.numbers(name)? else {
            return Ok(None);
        };
        let whole: Option<Vec<u32>> = values.iter().copied().map(pixels).collect();
        match whole.as_deref() {
            Some(&[side]) if !self.is_list(name) => Ok(Some((side, side))),
            Some(&[side]) => Err(self.mistake_at(
                name,
                format_args!(
                    "{name} is [{side}], and a list has two sides: write {side} without []"
                ),
            )),
            Some(&[first, second]) => Ok(Some((first, second))),
            _ => Err(self.mistake_at(
                name,
                format_args!("{name} must be a whole number of pixels or two of them"),
            )),
        }
    }

    /// Rejects parameters that were not read.
    pub(crate) fn reject_unread(self) -> ConfigResult<()> {
        let left = |key: &&(MapKey, TreeNode)| !self.read_names.contains(&key.0.name.as_str());
        let Some((key, _)) = self.entries.iter().find(left) else {
            return Ok(());
        };
        let (name, of) = (&key.name, self.name);
        Err(key.at.mistake(no_parameter(of, name, &self.read_names)))
    }

    /// The keys that were not read.
    pub(crate) fn unread_keys(&self) -> impl Iterator<Item = &'a MapKey> {
        let keys = self.entries.iter().map(|(key, _)| key);
        keys.filter(|key| !self.read_names.contains(&key.name.as_str()))
    }

    fn number_of(&self, name: &str, node: &TreeNode) -> ConfigResult<f64> {
        let finite = |v: f64| match v.is_finite() {
            true => Ok(v),
            false => Err(self.at_value(node, format_args!("{name} is {v}: use a finite number"))),
        };
        match &node.value {
            NodeValue::Int(v) => Ok(*v as f64),
            NodeValue::Float(v) => finite(*v),
            NodeValue::Str(text) => {
                arithmetic(text).map_err(|e| self.at_value(node, format_args!("{name}: {e}")))
            }
            _ => Err(self.expected(name, "a number", node)),
        }
    }

    fn expected(&self, name: &str, expected: &str, node: &TreeNode) -> TextMistake {
        let found = node.describe();
        self.at_value(
            node,
            format_args!("{name}: expected {expected}, found {found}"),
        )
    }

    fn at_value(&self, node: &TreeNode, text: std::fmt::Arguments<'_>) -> TextMistake {
        node.at.mistake(format!("{}: {text}", self.name))
    }
}

fn pixels(v: f64) -> Option<u32> {
    (v.fract() == 0.0 && (0.0..=MOST).contains(&v)).then_some(v as u32)
}

/// Converts a colour to a recipe's type.
pub(crate) fn channels(v: [f64; 3]) -> PerChannel {
    PerChannel(v.map(|v| v as f32))
}

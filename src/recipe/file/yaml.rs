//! From YAML 1.2 to the tree, and JSON, which is YAML.
//!
//! The parser gives events with places; here they become values. Aliases and
//! merges (`<<`) are resolved, within limits: a text of a few lines can otherwise
//! name more values than any memory holds.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use super::mistake::TextMistake;
use super::node::{MAX_DEPTH, MAX_NODES, MapKey, NodeValue, TreeNode, refuse_duplicates};
use super::position::TextPosition;
use super::scalar::{check_tag, scalar};

/// Reads the one document of a text.
pub(crate) fn read(text: &str) -> Result<TreeNode, TextMistake> {
    let options = granit_parser::options! { emit_comments: false };
    let mut builder = TreeBuilder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|e| {
            let at = position(e.marker());
            let info = e.info();
            let fix = match info.starts_with("tab") {
                true => ": indent with blanks",
                false => "",
            };
            at.mistake(format!("not YAML: {info} (column {}){fix}", at.column))
        })?;
        builder.take(event, position(&span.start))?;
    }
    Ok(builder.root.unwrap_or(TreeNode {
        at: TextPosition::START,
        value: NodeValue::Null,
    }))
}

/// Reads JSON: what is no JSON is refused, although it may be YAML.
pub(crate) fn read_json(text: &str) -> Result<TreeNode, TextMistake> {
    if let Err(e) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let at = TextPosition {
            line: e.line().max(1),
            column: e.column().max(1),
        };
        let said = e.to_string();
        let what = said.split(" at line ").next().unwrap_or(&said);
        return Err(at.mistake(format!("not JSON: {what} (column {})", at.column)));
    }
    read(text)
}

fn position(marker: &Marker) -> TextPosition {
    TextPosition {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}

/// A list or map that has not ended yet.
struct OpenContainer {
    at: TextPosition,
    /// 0: none.
    anchor: usize,
    /// Levels of the deepest element.
    depth: usize,
    /// Values so far, itself too.
    nodes: usize,
    content: ContainerContent,
}

enum ContainerContent {
    List(Vec<TreeNode>),
    Map {
        entries: Vec<(MapKey, TreeNode)>,
        /// The maps behind `<<`.
        merged: Vec<(MapKey, TreeNode)>,
        has_merge: bool,
        next: NextValue,
    },
}

/// What the next value of a map is.
enum NextValue {
    Key,
    Of(MapKey),
    Merge,
}

/// A finished value with its size.
struct SizedNode {
    node: TreeNode,
    depth: usize,
    nodes: usize,
}

#[derive(Default)]
struct TreeBuilder {
    open: Vec<OpenContainer>,
    anchors: HashMap<usize, SizedNode>,
    root: Option<TreeNode>,
    documents: usize,
    /// Values in all, with those in aliases.
    nodes: usize,
}

impl TreeBuilder {
    fn take(&mut self, event: Event<'_>, at: TextPosition) -> Result<(), TextMistake> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(at.mistake(
                        "a second document begins here: keep one document in a file, and remove \
                         '---'",
                    ));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_merge = style == ScalarStyle::Plain && tag.is_none() && text == "<<";
                if is_merge && self.begin_merge(at)? {
                    return Ok(());
                }
                let empty = text.is_empty() && style == ScalarStyle::Plain;
                if self.take_key(&text, at)? {
                    return Ok(());
                }
                let node = TreeNode {
                    // A value that is not there has no place: that of its key.
                    at: if empty { self.key_position(at) } else { at },
                    value: scalar(&text, style, tag.as_deref(), at)?,
                };
                let nodes = 1 + weight(&text);
                make_room(&mut self.nodes, 0, nodes, at)?;
                self.finish(node, 0, nodes, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "seq", at)?;
                self.begin(ContainerContent::List(Vec::new()), anchor, at)
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "map", at)?;
                let content = ContainerContent::Map {
                    entries: Vec::new(),
                    merged: Vec::new(),
                    has_merge: false,
                    next: NextValue::Key,
                };
                self.begin(content, anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                self.refuse_as_key(at)?;
                let Some(measured) = self.anchors.get(&anchor) else {
                    return Err(
                        at.mistake("the alias is used inside its own value: write the value out")
                    );
                };
                let (depth, nodes) = (measured.depth, measured.nodes);
                // Before it is copied.
                make_room(&mut self.nodes, self.open.len() + depth, nodes, at)?;
                let node = measured.node.clone();
                self.finish(node, depth, nodes, 0)
            }
            Event::UnresolvedAlias(name) => Err(at.mistake(format!(
                "the alias '*{name}' has no anchor: write '&{name}' before it"
            ))),
            _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        content: ContainerContent,
        anchor: usize,
        at: TextPosition,
    ) -> Result<(), TextMistake> {
        self.refuse_as_key(at)?;
        make_room(&mut self.nodes, self.open.len() + 1, 1, at)?;
        self.open.push(OpenContainer {
            at,
            anchor,
            depth: 0,
            nodes: 1,
            content,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), TextMistake> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.content {
            ContainerContent::List(items) => NodeValue::List(items),
            ContainerContent::Map {
                mut entries,
                merged,
                ..
            } => {
                refuse_duplicates(&entries)?;
                if !merged.is_empty() {
                    // What is written wins, then the map that is named first.
                    let mut names: HashSet<String> =
                        entries.iter().map(|(k, _)| k.name.clone()).collect();
                    entries.extend(
                        merged
                            .into_iter()
                            .filter(|(k, _)| names.insert(k.name.clone())),
                    );
                }
                NodeValue::Map(entries)
            }
        };
        let node = TreeNode { at: open.at, value };
        self.finish(node, open.depth + 1, open.nodes, open.anchor)
    }

    /// Puts a finished value where it belongs.
    fn finish(
        &mut self,
        node: TreeNode,
        depth: usize,
        nodes: usize,
        anchor: usize,
    ) -> Result<(), TextMistake> {
        if anchor != 0 {
            // The copy is counted as well.
            make_room(&mut self.nodes, 0, nodes, node.at)?;
            let node = node.clone();
            self.anchors
                .insert(anchor, SizedNode { node, depth, nodes });
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.depth = open.depth.max(depth);
        open.nodes += nodes;
        match &mut open.content {
            ContainerContent::List(items) => items.push(node),
            ContainerContent::Map {
                entries,
                merged,
                next,
                ..
            } => match std::mem::replace(next, NextValue::Key) {
                NextValue::Of(key) => entries.push((key, node)),
                NextValue::Merge => merge(node, merged)?,
                // Keys never come here.
                NextValue::Key => {}
            },
        }
        Ok(())
    }

    /// Takes `<<` in the place of a key. False in any other place.
    fn begin_merge(&mut self, at: TextPosition) -> Result<bool, TextMistake> {
        if let Some(OpenContainer {
            content:
                ContainerContent::Map {
                    next: next @ NextValue::Key,
                    has_merge,
                    ..
                },
            ..
        }) = self.open.last_mut()
        {
            if *has_merge {
                return Err(at.mistake("'<<' is written twice: write one list, '<<: [*a, *b]'"));
            }
            *has_merge = true;
            *next = NextValue::Merge;
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes a scalar in the place of a key. False in any other place.
    fn take_key(&mut self, text: &str, at: TextPosition) -> Result<bool, TextMistake> {
        if let Some(OpenContainer {
            content:
                ContainerContent::Map {
                    next: next @ NextValue::Key,
                    ..
                },
            nodes,
            ..
        }) = self.open.last_mut()
        {
            let name = text.to_owned();
            *next = NextValue::Of(MapKey { at, name });
            *nodes += weight(text);
            make_room(&mut self.nodes, 0, weight(text), at)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn refuse_as_key(&self, at: TextPosition) -> Result<(), TextMistake> {
        match self.open.last() {
            Some(OpenContainer {
                content:
                    ContainerContent::Map {
                        next: NextValue::Key,
                        ..
                    },
                ..
            }) => Err(at.mistake("a name must be text, not a list, a map or an alias")),
            _ => Ok(()),
        }
    }

    fn key_position(&self, otherwise: TextPosition) -> TextPosition {
        match self.open.last() {
            Some(OpenContainer {
                content:
                    ContainerContent::Map {
                        next: NextValue::Of(key),
                        ..
                    },
                ..
            }) => key.at,
            _ => otherwise,
        }
    }
}

/// Long text counts as several values: aliases repeat it as well.
fn weight(text: &str) -> usize {
    text.len() / 64
}

/// Counts `nodes` more values that reach down to level `depth`, or refuses them.
fn make_room(
    counted: &mut usize,
    depth: usize,
    nodes: usize,
    at: TextPosition,
) -> Result<(), TextMistake> {
    *counted += nodes;
    if depth > MAX_DEPTH {
        let text = format!("nested deeper than {MAX_DEPTH} levels: use fewer");
        return Err(at.mistake(text));
    }
    if *counted > MAX_NODES {
        let text = format!("more than {MAX_NODES} values, with those that aliases repeat");
        return Err(at.mistake(text));
    }
    Ok(())
}

/// Adds the entries of the map, or of the list of maps, behind `<<`.
fn merge(node: TreeNode, merged: &mut Vec<(MapKey, TreeNode)>) -> Result<(), TextMistake> {
    let wrong = |node: &TreeNode| {
        let found = node.describe();
        TextMistake::expected(node.at, "a map, or a list of maps, behind '<<'", &found)
    };
    match node.value {
        NodeValue::Map(entries) => merged.extend(entries),
        NodeValue::List(items) => {
            for item in items {
                match item.value {
                    NodeValue::Map(entries) => merged.extend(entries),
                    _ => return Err(wrong(&item)),
                }
            }
        }
        _ => return Err(wrong(&node)),
    }
    Ok(())
}

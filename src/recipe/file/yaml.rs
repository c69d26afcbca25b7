//! Parses YAML 1.2 and JSON (a subset of YAML) to the tree.
//!
//! The parser emits events with positions. This code builds values from them. It resolves aliases
//! and merges (`<<`) within limits: otherwise a text of a few lines could expand to more values
//! than fit in memory.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use super::mistake::TextMistake;
use super::node::{MAX_DEPTH, MAX_NODES, MapKey, NodeValue, TreeNode, refuse_duplicates};
use super::position::TextPosition;
use super::scalar::{check_tag, scalar};

/// Reads a text that holds one document.
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

/// Reads JSON. Rejects YAML that is not JSON.
pub(crate) fn read_json(text: &str) -> Result<TreeNode, TextMistake> {
    if let Err(e) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let at = TextPosition {
            line: e.line().max(1),
            column: e.column().max(1),
        };
        let message = e.to_string();
        let what = message.split(" at line ").next().unwrap_or(&message);
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

/// A list or map that is still being parsed.
struct OpenContainer {
    at: TextPosition,
    /// 0: no anchor.
    anchor: usize,
    /// Depth of the deepest element.
    depth: usize,
    /// Number of values so far, including itself.
    nodes: usize,
    content: ContainerContent,
}

enum ContainerContent {
    List(Vec<TreeNode>),
    Map {
        entries: Vec<(MapKey, TreeNode)>,
        /// The maps merged with `<<`.
        merged: Vec<(MapKey, TreeNode)>,
        has_merge: bool,
        next: NextValue,
    },
}

/// The role of the next value of a map.
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
    /// Number of all values, including those in aliases.
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
                    // An absent value has no position: use that of its key.
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
                // Before the copy is made.
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
                    // Written keys win, then the map that is named first.
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

    /// Adds a finished value to its parent.
    fn finish(
        &mut self,
        node: TreeNode,
        depth: usize,
        nodes: usize,
        anchor: usize,
    ) -> Result<(), TextMistake> {
        if anchor != 0 {
            // The copy counts as well.
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
                // Keys never reach this.
                NextValue::Key => {}
            },
        }
        Ok(())
    }

    /// Starts a merge if `<<` is a key here. Returns false otherwise.
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

    /// Reads a scalar as a key if a key is expected. Returns false otherwise.
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

/// The weight of a text. Long texts count as several values, since aliases repeat them.
fn weight(text: &str) -> usize {
    text.len() / 64
}

/// Counts `nodes` more values down to level `depth`, or rejects them.
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

/// Adds the entries of a map, or of a list of maps, that follows `<<`.
fn merge(node: TreeNode, merged: &mut Vec<(MapKey, TreeNode)>) -> Result<(), TextMistake> {
    let wrong = |node: &TreeNode| {
        let found = node.describe();
        TextMistake::expected(node.at, "a map, or a list of maps, after '<<'", &found)
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

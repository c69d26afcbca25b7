//! From YAML 1.2 to the tree, and JSON, which is YAML.
//!
//! The parser gives events with places; here they become values. Aliases and
//! merges (`<<`) are resolved, within limits: a text of a few lines can otherwise
//! name more values than any memory holds.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use super::mistake::Mistake;
use super::node::{Key, MAX_DEPTH, MAX_NODES, Node, Value, refuse_duplicates};
use super::position::Position;
use super::scalar::{check_tag, scalar};

/// Reads the one document of a text.
pub(crate) fn read(text: &str) -> Result<Node, Mistake> {
    let options = granit_parser::options! { emit_comments: false };
    let mut builder = Builder::default();
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
    Ok(builder.root.unwrap_or(Node {
        at: Position::START,
        value: Value::Null,
    }))
}

/// Reads JSON: what is no JSON is refused, although it may be YAML.
pub(crate) fn read_json(text: &str) -> Result<Node, Mistake> {
    if let Err(e) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let at = Position {
            line: e.line().max(1),
            column: e.column().max(1),
        };
        let said = e.to_string();
        let what = said.split(" at line ").next().unwrap_or(&said);
        return Err(at.mistake(format!("not JSON: {what} (column {})", at.column)));
    }
    read(text)
}

fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}

/// A list or map that has not ended yet.
struct Open {
    at: Position,
    /// 0: none.
    anchor: usize,
    /// Levels of the deepest element.
    depth: usize,
    /// Values so far, itself too.
    nodes: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        /// The maps behind `<<`.
        merged: Vec<(Key, Node)>,
        has_merge: bool,
        next: Next,
    },
}

/// What the next value of a map is.
enum Next {
    Key,
    Of(Key),
    Merge,
}

/// A finished value with its size.
struct Measured {
    node: Node,
    depth: usize,
    nodes: usize,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Measured>,
    root: Option<Node>,
    documents: usize,
    /// Values in all, with those in aliases.
    nodes: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), Mistake> {
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
                let node = Node {
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
                self.begin(Content::List(Vec::new()), anchor, at)
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "map", at)?;
                let content = Content::Map {
                    entries: Vec::new(),
                    merged: Vec::new(),
                    has_merge: false,
                    next: Next::Key,
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

    fn begin(&mut self, content: Content, anchor: usize, at: Position) -> Result<(), Mistake> {
        self.refuse_as_key(at)?;
        make_room(&mut self.nodes, self.open.len() + 1, 1, at)?;
        self.open.push(Open {
            at,
            anchor,
            depth: 0,
            nodes: 1,
            content,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Mistake> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.content {
            Content::List(items) => Value::List(items),
            Content::Map {
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
                Value::Map(entries)
            }
        };
        let node = Node { at: open.at, value };
        self.finish(node, open.depth + 1, open.nodes, open.anchor)
    }

    /// Puts a finished value where it belongs.
    fn finish(
        &mut self,
        node: Node,
        depth: usize,
        nodes: usize,
        anchor: usize,
    ) -> Result<(), Mistake> {
        if anchor != 0 {
            // The copy is counted as well.
            make_room(&mut self.nodes, 0, nodes, node.at)?;
            let node = node.clone();
            self.anchors.insert(anchor, Measured { node, depth, nodes });
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.depth = open.depth.max(depth);
        open.nodes += nodes;
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map {
                entries,
                merged,
                next,
                ..
            } => match std::mem::replace(next, Next::Key) {
                Next::Of(key) => entries.push((key, node)),
                Next::Merge => merge(node, merged)?,
                // Keys never come here.
                Next::Key => {}
            },
        }
        Ok(())
    }

    /// Takes `<<` in the place of a key. False in any other place.
    fn begin_merge(&mut self, at: Position) -> Result<bool, Mistake> {
        if let Some(Open {
            content:
                Content::Map {
                    next: next @ Next::Key,
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
            *next = Next::Merge;
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes a scalar in the place of a key. False in any other place.
    fn take_key(&mut self, text: &str, at: Position) -> Result<bool, Mistake> {
        if let Some(Open {
            content:
                Content::Map {
                    next: next @ Next::Key,
                    ..
                },
            nodes,
            ..
        }) = self.open.last_mut()
        {
            let name = text.to_owned();
            *next = Next::Of(Key { at, name });
            *nodes += weight(text);
            make_room(&mut self.nodes, 0, weight(text), at)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn refuse_as_key(&self, at: Position) -> Result<(), Mistake> {
        match self.open.last() {
            Some(Open {
                content: Content::Map {
                    next: Next::Key, ..
                },
                ..
            }) => Err(at.mistake("a name must be text, not a list, a map or an alias")),
            _ => Ok(()),
        }
    }

    fn key_position(&self, otherwise: Position) -> Position {
        match self.open.last() {
            Some(Open {
                content:
                    Content::Map {
                        next: Next::Of(key),
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
fn make_room(counted: &mut usize, depth: usize, nodes: usize, at: Position) -> Result<(), Mistake> {
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
fn merge(node: Node, merged: &mut Vec<(Key, Node)>) -> Result<(), Mistake> {
    let wrong = |node: &Node| {
        let found = node.described();
        Mistake::expected(node.at, "a map, or a list of maps, behind '<<'", &found)
    };
    match node.value {
        Value::Map(entries) => merged.extend(entries),
        Value::List(items) => {
            for item in items {
                match item.value {
                    Value::Map(entries) => merged.extend(entries),
                    _ => return Err(wrong(&item)),
                }
            }
        }
        _ => return Err(wrong(&node)),
    }
    Ok(())
}

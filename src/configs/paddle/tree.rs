//! Finds a tree of a config. A config has `DataLoader`. Below it are the trees `Train` and `Eval`,
//! or `Query` and `Gallery` in `Eval`.

use crate::configs::paddle::params::ConfigResult;
use crate::recipe::file::{NodeValue, TextMistake, TreeNode};

/// Whether a text is a PaddleClas config rather than a recipe.
pub(crate) fn is_config(root: &TreeNode) -> bool {
    root.get("DataLoader").is_some() && root.get("featherload").is_none()
}

/// The tree named by `mode`, such as `train` or `eval.query` (case-insensitive).
pub(crate) fn find<'a>(root: &'a TreeNode, mode: &str) -> ConfigResult<&'a TreeNode> {
    let Some(loader) = root.get("DataLoader") else {
        return Err(root.at.mistake("'DataLoader' is missing"));
    };
    let mut node = loader;
    for word in mode.split('.') {
        let found = children(node).find(|(name, _)| name.eq_ignore_ascii_case(word));
        match found {
            Some((_, child)) => node = child,
            None => return Err(absent(loader, mode)),
        }
    }
    if node.get("dataset").is_none() {
        return Err(absent(loader, mode));
    }
    Ok(node)
}

/// The children of a map that are maps.
fn children(node: &TreeNode) -> impl Iterator<Item = (&str, &TreeNode)> {
    let entries: &[_] = match &node.value {
        NodeValue::Map(entries) => entries,
        _ => &[],
    };
    let maps = entries
        .iter()
        .filter(|(_, child)| matches!(child.value, NodeValue::Map(_)));
    maps.map(|(key, child)| (key.name.as_str(), child))
}

fn absent(loader: &TreeNode, mode: &str) -> TextMistake {
    let mut there = Vec::new();
    for (name, child) in children(loader) {
        if child.get("dataset").is_some() {
            there.push(name.to_lowercase());
            continue;
        }
        for (inner, tree) in children(child) {
            if tree.get("dataset").is_some() {
                there.push(format!("{}.{}", name.to_lowercase(), inner.to_lowercase()));
            }
        }
    }
    let text = match there.as_slice() {
        [] => "DataLoader has no tree with a dataset".to_owned(),
        there => format!(
            "DataLoader has no tree '{mode}' with a dataset: use `mode: {}`",
            there.join(" or ")
        ),
    };
    loader.at.mistake(text)
}

//! Files that belong to samples, found by a pattern of paths such as `../masks/{stem}.png`.
//!
//! Runs in the consumer. Pure, except that a few of the files are looked for.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::items::{ItemLabel, ItemList};
use crate::data::index::names::shown;
use crate::data::index::samples::Index;
use crate::error::{Error, Result};

/// A pattern of paths with the names of a sample in it.
///
/// | placeholder | for the sample `/set/train/cat/1.jpg` of the data set `/set/train` |
/// |---|---|
/// | `{stem}` | `1`: the file's name without its extension |
/// | `{stem-_left}` | the same without `_left` at its end: `1` of `1_left.jpg` |
/// | `{name}` | `1.jpg`: the file's name |
/// | `{dir}` | `cat`: its folder below the data set |
/// | `{parent}` | `/set/train/cat`: its folder |
///
/// A relative path starts from the data set's folder, and may begin with `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    parts: Vec<PatternPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPart {
    Text(Vec<u8>),
    /// The stem without this ending, if it has it.
    StemWithout(Vec<u8>),
    Stem,
    Name,
    Dir,
    Parent,
}

/// Placeholders and their parts.
const PLACEHOLDERS: [(&str, PatternPart); 4] = [
    ("stem", PatternPart::Stem),
    ("name", PatternPart::Name),
    ("dir", PatternPart::Dir),
    ("parent", PatternPart::Parent),
];

/// Files that are looked for before a run.
const PROBES: u64 = 64;

impl PathPattern {
    /// Whether a text has a placeholder. A text without one names a column.
    pub(crate) fn is_pattern(text: &str) -> bool {
        text.contains('{')
    }

    /// Reads a pattern.
    ///
    /// # Errors
    /// An unknown placeholder; a brace without its partner; no placeholder that names the sample.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |what: String| {
            let known: Vec<String> = PLACEHOLDERS
                .iter()
                .map(|(name, _)| format!("{{{name}}}"))
                .collect();
            let known = known.join(", ");
            Error::config(format!("pattern '{text}' {what}: placeholders are {known}"))
        };
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            if before.contains('}') {
                return Err(bad("has a } without its {".into()));
            }
            if !before.is_empty() {
                parts.push(PatternPart::Text(before.as_bytes().to_vec()));
            }
            let Some((name, end)) = after.split_once('}') else {
                return Err(bad("has a { without its }".into()));
            };
            if let Some(ending) = name
                .strip_prefix("stem-")
                .filter(|ending| !ending.is_empty())
            {
                parts.push(PatternPart::StemWithout(ending.as_bytes().to_vec()));
                rest = end;
                continue;
            }
            match PLACEHOLDERS.iter().find(|(known, _)| *known == name) {
                Some((_, part)) => parts.push(part.clone()),
                None => return Err(bad(format!("has {{{name}}}"))),
            }
            rest = end;
        }
        if rest.contains('}') {
            return Err(bad("has a } without its {".into()));
        }
        if !rest.is_empty() {
            parts.push(PatternPart::Text(rest.as_bytes().to_vec()));
        }
        let names_sample = |part: &PatternPart| {
            use PatternPart::{Name, Stem, StemWithout};
            matches!(part, Stem | StemWithout(_) | Name)
        };
        if !parts.iter().any(names_sample) {
            return Err(bad("is the same for all samples of a folder".into()));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// The pattern as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The path for the sample `relative` of a data set in `root`.
    fn path(&self, root: &Path, relative: &Path) -> PathBuf {
        let name = relative.file_name().unwrap_or_default();
        let stem = relative.file_stem().unwrap_or_default();
        let dir = relative.parent().unwrap_or(Path::new(""));
        let mut path = Vec::new();
        for part in &self.parts {
            match part {
                PatternPart::Text(text) => {
                    let after_nothing = path.is_empty() && self.parts[0] == PatternPart::Dir;
                    let text = match text.strip_prefix(b"/") {
                        // An empty folder, and the slash after it.
                        Some(rest) if after_nothing => rest,
                        _ => text,
                    };
                    path.extend_from_slice(text);
                }
                PatternPart::Stem => path.extend_from_slice(stem.as_bytes()),
                PatternPart::StemWithout(ending) => {
                    let stem = stem.as_bytes();
                    path.extend_from_slice(stem.strip_suffix(&**ending).unwrap_or(stem));
                }
                PatternPart::Name => path.extend_from_slice(name.as_bytes()),
                PatternPart::Dir => path.extend_from_slice(dir.as_os_str().as_bytes()),
                PatternPart::Parent => {
                    path.extend_from_slice(root.join(dir).as_os_str().as_bytes());
                }
            }
        }
        without_parents(&root.join(OsStr::from_bytes(&path)))
    }
}

/// The same path without `..`, as text. Links are not followed.
fn without_parents(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

impl Index {
    /// The files that belong to the samples, one for each, in their order. `what`: their name in
    /// texts, such as "masks".
    ///
    /// # Errors
    /// Samples that are not files of their own; none of the first, last and some other files
    /// exists.
    pub(crate) fn files_beside(&self, pattern: &PathPattern, what: &'static str) -> Result<Self> {
        self.check_has_paths(&pattern.text, what)?;
        let mut list = ItemList::new();
        for id in 0..self.len() {
            list.push(self.path_beside(pattern, id), ItemLabel::None)?;
        }
        let files = Self::items(list)?;
        files.check_some_exist(self, what)?;
        self.check_without(&files, what)?;
        Ok(files)
    }

    /// The path of the file that belongs to a sample.
    pub(crate) fn path_beside(&self, pattern: &PathPattern, id: u64) -> PathBuf {
        pattern.path(self.root(), self.relative_path(id))
    }

    /// Checks that each sample is a file of its own, so that `pattern` has a path for it.
    ///
    /// # Errors
    /// Samples in memory, in shards or at addresses.
    pub(crate) fn check_has_paths(&self, pattern: &str, what: &'static str) -> Result<()> {
        if !self.is_in_memory() && self.shards() == 0 && !self.is_of_addresses() {
            return Ok(());
        }
        Err(Error::option(
            what,
            format!(
                "{what}: pattern '{pattern}' is made of the path of each image, and these images \
                 are not files of their own: name a column of a table, or use image files"
            ),
        ))
    }

    /// Checks that the files beside the samples are no samples themselves.
    ///
    /// # Errors
    /// One of the files that are looked for is a sample.
    fn check_without(&self, files: &Self, what: &'static str) -> Result<()> {
        let looked: HashMap<PathBuf, u64> =
            (files.probes()).map(|id| (files.path(id), id)).collect();
        let found = (0..self.len()).find_map(|id| {
            let path = self.path(id);
            looked.get(&path).map(|of| (path, *of))
        });
        let Some((path, of)) = found else {
            return Ok(());
        };
        Err(Error::option(
            what,
            format!(
                "{what}: {} belongs to the image {}, and is an image of the data set as well: \
                 give the folder of the images alone, such as images/ beside {what}/",
                shown(path.as_os_str().as_bytes()),
                shown(self.path(of).as_os_str().as_bytes()),
            ),
        ))
    }

    /// The samples whose files are looked for before a run: the first, the last, and some between.
    pub(super) fn probes(&self) -> impl Iterator<Item = u64> {
        let step = (self.len() / PROBES).max(1);
        let last = self.len() - 1;
        (0..self.len()).step_by(step as usize).chain([last])
    }

    /// Checks that at least one of some files exists. `images`: the samples that they belong to.
    ///
    /// # Errors
    /// None of them exists.
    fn check_some_exist(&self, images: &Self, what: &'static str) -> Result<()> {
        if self.probes().any(|id| self.path(id).exists()) {
            return Ok(());
        }
        Err(Error::option(
            what,
            format!(
                "{what}: {} does not exist, nor does any other file that was looked for. It \
                 belongs to the image {}",
                shown(self.path(0).as_os_str().as_bytes()),
                shown(images.path(0).as_os_str().as_bytes()),
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_parts_of_the_path() {
        let of = |pattern: &str, relative: &str| {
            let pattern = PathPattern::parse(pattern).unwrap();
            let path = pattern.path(Path::new("/set/train"), Path::new(relative));
            path.to_str().unwrap().to_owned()
        };
        for (pattern, relative, want) in [
            ("masks/{stem}.png", "cat/1.jpg", "/set/train/masks/1.png"),
            (
                "../labels/{dir}/{name}.png",
                "cat/1.b.jpg",
                "/set/labels/cat/1.b.jpg.png",
            ),
            (
                "{dir}/{stem}_mask.png",
                "cat/1.jpg",
                "/set/train/cat/1_mask.png",
            ),
            ("{dir}/{stem}_mask.png", "1.jpg", "/set/train/1_mask.png"),
            (
                "{parent}/../m/{stem}.png",
                "a/b/1.jpg",
                "/set/train/a/m/1.png",
            ),
            ("/other/{stem}.png", "cat/1.jpg", "/other/1.png"),
            ("{stem}", "no_extension", "/set/train/no_extension"),
            ("{stem-_x}.png", "cat/1_x.jpg", "/set/train/1.png"),
            ("{stem-_x}.png", "cat/1_x_y.jpg", "/set/train/1_x_y.png"),
            ("../../../../{stem}.png", "1.jpg", "/1.png"),
        ] {
            assert_eq!(of(pattern, relative), want, "{pattern} {relative}");
        }
    }

    #[test]
    fn bad_patterns_are_named_with_the_placeholders() {
        for (pattern, what) in [
            (
                "masks/{id}.png",
                "has {id}: placeholders are {stem}, {name}, {dir}, {parent}",
            ),
            ("masks/{stem.png", "has a { without its }"),
            ("masks/{stem-}.png", "has {stem-}"),
            ("masks/stem}.png", "has a } without its {"),
            ("a}{stem}", "has a } without its {"),
            ("{dir}/mask.png", "is the same for all samples of a folder"),
        ] {
            let e = PathPattern::parse(pattern).unwrap_err().to_string();
            assert!(e.contains(what), "{e}");
        }
        assert!(PathPattern::is_pattern("masks/{stem}.png"));
        assert!(!PathPattern::is_pattern("mask"));
    }

    #[test]
    fn one_file_that_exists_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        let mut images = ItemList::new();
        for n in 0..300 {
            let image = dir.path().join(format!("{n}.jpg"));
            images.push(image, ItemLabel::Class(n)).unwrap();
        }
        let images = Index::items(images).unwrap();
        let pattern = PathPattern::parse("../masks/{stem}.png").unwrap();
        let masks = dir.path().with_file_name("masks");
        let e = images
            .files_beside(&pattern, "masks")
            .unwrap_err()
            .to_string();
        assert!(e.contains("/masks/0.png does not exist"), "{e}");
        assert!(e.contains("/0.jpg"), "{e}");
        let pattern = PathPattern::parse("{stem}.png").unwrap();
        std::fs::write(dir.path().join("299.png"), "").unwrap();
        let files = images.files_beside(&pattern, "masks").unwrap();
        assert_eq!(files.len(), 300);
        assert_eq!(files.path(7), dir.path().join("7.png"));
        assert!(!masks.exists());
        let mut both = ItemList::in_folder(dir.path()).unwrap();
        for path in ["a.png", "b.png", "m/a.png", "m/b.png"] {
            both.push(path, ItemLabel::None).unwrap();
        }
        let both = Index::items(both).unwrap();
        std::fs::create_dir(dir.path().join("m")).unwrap();
        std::fs::write(dir.path().join("m/b.png"), "").unwrap();
        let pattern = PathPattern::parse("m/{stem}.png").unwrap();
        let e = both
            .files_beside(&pattern, "masks")
            .unwrap_err()
            .to_string();
        assert!(e.contains("is an image of the data set as well"), "{e}");
    }
}

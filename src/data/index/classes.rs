//! Class names and their numbers, and the text file that holds them. The file has one name per
//! line, and the first line is class 0.
//!
//! Used in the consumer. Names are bytes, like folder names. Not in this file: samples.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::data::index::lines::{BOM, TextLines};
use crate::data::index::names::shown;
use crate::error::{Error, Result};
use crate::sys::atomic_file::replace_by;

/// Distinct class names in a fixed order. The number of a class is its position, from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassList {
    names: Vec<OsString>,
    /// Positions in `names`, sorted by the bytes of the name.
    by_name: Vec<u32>,
}

/// Two positions with the same name, the smaller one first.
#[derive(Debug)]
pub(crate) struct DuplicateName {
    pub(crate) first: usize,
    pub(crate) second: usize,
}

impl ClassList {
    /// Classes in the order of `names`.
    ///
    /// # Errors
    /// A name appears twice.
    pub fn new(names: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self> {
        let names: Vec<OsString> = names.into_iter().map(Into::into).collect();
        Self::distinct(names).map_err(|(names, twice)| {
            let name = names.get(twice.second).map(|n| shown(n.as_bytes()));
            Error::config(format!(
                "class '{}' has two numbers, {} and {}",
                name.unwrap_or_default(),
                twice.first,
                twice.second
            ))
        })
    }

    /// Approximate memory of the names and their order, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        /// A string, the overhead of its allocation, and its entry in the order.
        const EACH: usize = size_of::<OsString>() + 16 + size_of::<u32>();
        let bytes = self.names.iter().map(|name| name.len() + EACH);
        bytes.sum::<usize>() as u64
    }

    /// Like [`ClassList::new`], but returns the names on an error.
    pub(crate) fn distinct(names: Vec<OsString>) -> Result<Self, (Vec<OsString>, DuplicateName)> {
        let bytes = |at: u32| names[at as usize].as_bytes();
        let mut by_name: Vec<u32> = (0..).take(names.len()).collect();
        by_name.sort_unstable_by(|&a, &b| bytes(a).cmp(bytes(b)).then(a.cmp(&b)));
        let twice = by_name
            .windows(2)
            .filter(|pair| bytes(pair[0]) == bytes(pair[1]))
            .map(|pair| DuplicateName {
                first: pair[0] as usize,
                second: pair[1] as usize,
            })
            .min_by_key(|twice| twice.second);
        match twice {
            Some(twice) => Err((names, twice)),
            None => Ok(Self { names, by_name }),
        }
    }

    /// Reads a file of one name per line. All bytes of a line count, including blanks.
    ///
    /// # Errors
    /// The file cannot be read, has no names, has a blank line, or has a name twice.
    pub fn read(file: &Path) -> Result<Self> {
        let mut names = Vec::new();
        let mut lines = TextLines::open(file)?;
        while let Some((number, line)) = lines.next_line()? {
            if line.trim_ascii().is_empty() {
                return Err(Error::dataset_line(
                    file,
                    number,
                    "a blank line instead of a class name: remove it",
                ));
            }
            names.push(OsString::from_vec(line.to_vec()));
        }
        if names.is_empty() {
            return Err(Error::dataset(file, "no class names: write one per line"));
        }
        Self::distinct(names).map_err(|(names, twice)| {
            let name = names.get(twice.second).map(|n| shown(n.as_bytes()));
            Error::dataset_line(
                file,
                twice.second as u64 + 1,
                format!(
                    "class '{}' is in line {} already: remove one",
                    name.unwrap_or_default(),
                    twice.first + 1
                ),
            )
        })
    }

    /// Writes the file that [`ClassList::read`] reads. The file is written completely or not at
    /// all.
    ///
    /// # Errors
    /// A name cannot be a line of text, or the file cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let mut text = Vec::new();
        for name in &self.names {
            let bytes = name.as_bytes();
            if bytes.trim_ascii().is_empty()
                || bytes.iter().any(|b| matches!(b, b'\n' | b'\r'))
                || bytes.starts_with(BOM)
            {
                return Err(Error::dataset(
                    file,
                    format!("class name {name:?} does not fit in a line: rename its folder"),
                ));
            }
            text.extend_from_slice(bytes);
            text.push(b'\n');
        }
        replace_by(file, &text)
    }

    /// The number of classes.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The number of a class.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<i64> {
        let name = name.as_ref().as_bytes();
        self.by_name
            .binary_search_by(|&at| self.names[at as usize].as_bytes().cmp(name))
            .ok()
            .map(|found| i64::from(self.by_name[found]))
    }

    /// The name of a class.
    pub fn name(&self, number: i64) -> Option<&OsStr> {
        let at = usize::try_from(number).ok()?;
        self.names.get(at).map(OsString::as_os_str)
    }

    /// The names, in the order of the class numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &OsStr> {
        self.names.iter().map(OsString::as_os_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<ClassList> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("classes.txt");
        std::fs::write(&path, text).unwrap();
        ClassList::read(&path)
    }

    #[test]
    fn numbers_are_positions() {
        let classes = ClassList::new(["zebra", "ant", "cat"]).unwrap();
        assert_eq!(classes.len(), 3);
        assert_eq!(classes.get("zebra"), Some(0));
        assert_eq!(classes.get("ant"), Some(1));
        assert_eq!(classes.get("cat"), Some(2));
        assert_eq!(classes.get("dog"), None);
        assert_eq!(classes.name(2), Some(OsStr::new("cat")));
        assert_eq!(classes.name(3), None);
        assert_eq!(classes.name(-1), None);
        assert_eq!(classes.iter().collect::<Vec<_>>(), ["zebra", "ant", "cat"]);
    }

    #[test]
    fn the_same_name_twice_is_refused() {
        let e = ClassList::new(["a", "b", "c", "b", "a"]).unwrap_err();
        assert_eq!(e.to_string(), "class 'b' has two numbers, 1 and 3");
    }

    #[test]
    fn a_file_round_trips() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("classes.txt");
        let odd = OsString::from_vec(b" \xff b ".to_vec());
        let classes = ClassList::new([OsString::from("n2"), odd, "n1".into()]).unwrap();
        classes.write(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"n2\n \xff b \nn1\n");
        assert_eq!(ClassList::read(&path).unwrap(), classes);
    }

    #[test]
    fn a_file_from_elsewhere_is_read() {
        let classes = read(b"\xef\xbb\xbfa\r\nb c\r\nd").unwrap();
        assert_eq!(classes, ClassList::new(["a", "b c", "d"]).unwrap());
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, want) in [
            (&b"a\n\nb\n"[..], ":2: a blank line"),
            (b"a\nb\n \t\r\n", ":3: a blank line"),
            (b"a\nb\na\nb\n", ":3: class 'a' is in line 1 already"),
            (b"", "no class names"),
        ] {
            let e = read(text).unwrap_err();
            assert!(e.is_usage() && e.to_string().contains(want), "{e}");
        }
    }

    #[test]
    fn a_name_that_is_no_line_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("classes.txt");
        for name in ["a\nb", "a\r", "a\rb", " ", "\u{feff}a"] {
            let e = ClassList::new([name]).unwrap().write(&path).unwrap_err();
            assert!(e.to_string().contains("rename its folder"), "{e}");
            assert!(!path.exists());
        }
    }
}

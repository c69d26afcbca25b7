//! Text files beside images, such as `1.txt` beside `1.jpg`, as columns.
//!
//! In the consumer. A column is named by the extension with its dot. The path of a file follows from
//! that of its image, so a sample takes no memory, and a batch opens only the files of its rows.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::data::columns::column_set::{ColumnReader, NamedReaders};
use crate::data::columns::values::{ColumnBuilder, ColumnKind};
use crate::data::index::column_names::quoted;
use crate::data::index::names::{ARRAY_EXTENSION, has_image_extension, shown};
use crate::data::index::samples::Index;
use crate::error::{self, Error, Result};
use crate::sys::regular_file;
use crate::sys::text_file::{self, TextReadError};

/// Most bytes of a file.
const MOST_TEXT: u64 = 64 << 10;
/// The mark of UTF-8, which some editors write.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Whether a column of this name is text files beside the images.
pub(crate) fn names_text_files(name: &str) -> bool {
    name.starts_with('.')
}

#[derive(Debug)]
struct TextFiles {
    /// Without its dot.
    extension: String,
}

impl TextFiles {
    fn new(name: &str) -> Result<Self> {
        let refused = |what: String| Err(Error::option("columns", what));
        let extension = name.strip_prefix('.').unwrap_or(name);
        let is_name = !extension.is_empty() && !extension.starts_with('.');
        if !is_name || extension.contains(['/', '\0']) {
            return refused(format!(
                "column {} is no extension: give a dot and an extension, such as '.txt'",
                quoted(name)
            ));
        }
        let last = format!("a.{}", extension.to_ascii_lowercase());
        if has_image_extension(last.as_bytes()) || last.ends_with(&format!(".{ARRAY_EXTENSION}")) {
            return refused(format!(
                "column {} is the extension of images: give one of text files, such as '.txt'",
                quoted(name)
            ));
        }
        Ok(Self {
            extension: extension.to_owned(),
        })
    }

    fn path(&self, index: &Index, id: u64) -> PathBuf {
        index.file(id).with_extension(&self.extension)
    }
}

impl ColumnReader for TextFiles {
    fn kind(&self) -> ColumnKind {
        ColumnKind::Text
    }

    fn read(&self, index: &Index, id: u64, into: &mut ColumnBuilder) -> Result<()> {
        let path = self.path(index, id);
        match text(&path)? {
            Some(text) => into.push_text(text),
            None => into.push_null().map_err(Error::config)?,
        }
        Ok(())
    }

    fn own_file(&self, index: &Index, id: u64) -> Option<PathBuf> {
        Some(self.path(index, id))
    }
}

/// The text of a file, without a line break at its end. `None` if there is no such file.
fn text(path: &Path) -> Result<Option<String>> {
    let file = match regular_file::open(path) {
        Ok((file, _)) => file,
        // No file can have a name that is too long.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => {
            return Ok(None);
        }
        Err(e) => return Err(Error::io_at("open", path, e)),
    };
    let refused = |what| Error::dataset(path, what);
    let bytes = text_file::read(file, MOST_TEXT).map_err(|e| match e {
        TextReadError::Read(e) => Error::io_at("read", path, e),
        TextReadError::TooLong(most) => refused(format!(
            "is longer than {}, the most of a text file beside an image: shorten it, or keep its \
             text in a table",
            error::size(most)
        )),
        e @ TextReadError::Zero(_) => refused(format!("{e}: save it as UTF-8")),
    })?;
    let unmarked = bytes.strip_prefix(MARK).unwrap_or(&bytes);
    let text = str::from_utf8(unmarked);
    let text = text.map_err(|_| refused("is not UTF-8: save it as UTF-8".to_owned()))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(Some(text.strip_suffix('\r').unwrap_or(text).to_owned()))
}

/// The columns `names`, each an extension with its dot.
///
/// # Errors
/// No extension, or one of images; samples that are not files of their own; none of the files that
/// are checked exists.
pub(crate) fn open_columns(index: &Index, names: &[String]) -> Result<NamedReaders> {
    let open = |name: &String| -> Result<(String, Box<dyn ColumnReader>)> {
        let files = TextFiles::new(name)?;
        index.check_own_files(name)?;
        let is_file = |id| files.path(index, id).is_file();
        if !index.probes().any(is_file) {
            return Err(Error::option(
                "columns",
                format!(
                    "column {}: {} does not exist, nor do the files of other samples that were \
                     checked. It belongs to the image {}: write such files, or name the extension \
                     that they have",
                    quoted(name),
                    shown(files.path(index, 0).as_os_str().as_encoded_bytes()),
                    shown(index.path(0).as_os_str().as_encoded_bytes()),
                ),
            ));
        }
        Ok((name.clone(), Box::new(files)))
    };
    names.iter().map(open).collect()
}

impl Index {
    /// Checks that each sample is a file of its own on this machine.
    ///
    /// # Errors
    /// Samples in memory, in shards or at addresses.
    fn check_own_files(&self, name: &str) -> Result<()> {
        let fix = if self.is_of_addresses() || self.is_remote() {
            "these images are in an object store: use a copy of images and texts on this machine, or \
             a cache of it that was built with `cache build --columns`"
        } else if self.is_in_memory() || self.shards() > 0 {
            "these images are not files of their own: give the texts with a table, or as a column \
             of the same files"
        } else {
            return Ok(());
        };
        Err(Error::option(
            "columns",
            format!(
                "column {} is text files beside images, and {fix}",
                quoted(name)
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_text_without_mark_and_last_line_break() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let full = "é".repeat(MOST_TEXT as usize / 2);
        for (bytes, want) in [
            (&b""[..], ""),
            (b"a cat\n", "a cat"),
            (b"a\r\nb\r\n", "a\r\nb"),
            (b"a\n\n", "a\n"),
            (b" a ", " a "),
            (b"\xEF\xBB\xBFa", "a"),
            (b"\n", ""),
            (full.as_bytes(), &full),
        ] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(text(&path).unwrap().as_deref(), Some(want));
        }
        assert_eq!(text(&dir.path().join("b.txt")).unwrap(), None);
        let long = "n".repeat(256);
        assert_eq!(text(&dir.path().join(long)).unwrap(), None);
        let failed = |path: &Path| {
            let e = text(path).unwrap_err().to_string();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(e.contains(name), "{e}");
            e
        };
        fs::write(&path, format!("{full}a")).unwrap();
        let e = failed(&path);
        assert!(e.contains("longer than 64 KiB"), "{e}");
        fs::write(&path, b"caf\xE9").unwrap();
        assert!(failed(&path).contains("save it as UTF-8"));
        fs::write(&path, b"\xFF\xFEa\0").unwrap();
        assert!(failed(&path).contains("zero byte"));
        let folder = dir.path().join("c.txt");
        fs::create_dir(&folder).unwrap();
        assert!(failed(&folder).contains("not a regular file"));
        // Opening it to read would wait for a writer.
        let pipe = dir.path().join("d.txt");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(failed(&pipe).contains("not a regular file"));
    }

    #[test]
    fn names_are_extensions_of_no_image() {
        for name in [".txt", ".caption", ".tags.txt", ".日", ".jpg.txt"] {
            TextFiles::new(name).unwrap();
        }
        for name in [".", "..", "..txt", "./a", ".a/b", ".a\0"] {
            let e = TextFiles::new(name).unwrap_err().to_string();
            assert!(e.contains("is no extension"), "{e}");
        }
        for name in [".jpg", ".PNG", ".tags.webp", ".npy"] {
            let e = TextFiles::new(name).unwrap_err().to_string();
            assert!(e.contains("extension of images"), "{e}");
        }
    }

    #[test]
    fn one_file_that_exists_is_enough_and_images_must_be_files() {
        let dir = tempfile::tempdir().unwrap();
        let images: Vec<PathBuf> = ["a.b.jpg", "c", "d.png"].map(|n| dir.path().join(n)).into();
        let index = Index::of_files(&images).unwrap();
        let open = |name: &str| open_columns(&index, &[name.to_owned()]);
        let e = open(".txt").unwrap_err().to_string();
        assert!(e.contains("a.b.txt") && e.contains("a.b.jpg"), "{e}");
        for file in ["a.b.txt", "c.txt"] {
            fs::write(dir.path().join(file), file).unwrap();
        }
        let readers = open(".txt").unwrap();
        let mut texts = ColumnBuilder::new(readers[0].1.kind());
        for id in 0..3 {
            readers[0].1.read(&index, id, &mut texts).unwrap();
        }
        let want = [Some("a.b.txt"), Some("c.txt"), None].map(|text| text.map(str::to_owned));
        let crate::data::columns::values::ColumnValues::Text(texts) = texts.finish() else {
            panic!("no texts");
        };
        assert_eq!(texts, want);
        assert!(open(".caption").is_err());
        // Shards without a file are those of a store.
        let parts = Index::of_parts(dir.path(), &[("s.bin", vec![(0, 10)])]);
        let e = open_columns(&parts, &[".txt".to_owned()]).unwrap_err();
        assert!(e.to_string().contains("in an object store"), "{e}");
    }
}

//! Expands lists of shards with braces and globs into paths.
//!
//! Runs in the consumer. Braces work like those of a shell: `{a,b}`, `{000..123}`, `{0..9..3}`,
//! also nested. If either end of a range has leading zeros, so have all its numbers. Results keep
//! the order in which they are written.
//!
//! Globs (`*`, `?`, `[a-z]`, `**`) search the file system. Results are sorted by the bytes of the
//! path. A name that begins with a dot is found only if the pattern spells out the dot.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::data::linked_folders;
use crate::error::{Error, Result};

/// The most shards of one pattern. More are taken for a mistake in a range.
pub(crate) const MOST_SHARDS: usize = 1 << 20;

/// Whether the text has a brace or a glob.
pub(crate) fn is_pattern(text: &OsStr) -> bool {
    has_glob(text.as_bytes()) || text.as_bytes().contains(&b'{')
}

/// The error text for a name that other loaders accept, but that is not a file. `None` for any
/// other name, and if a file of this name exists.
fn is_no_file(path: &Path) -> Option<String> {
    let text = path.as_os_str().as_bytes();
    let join = text.windows(2).position(|pair| pair == b"::");
    let first = &text[..join.unwrap_or(text.len())];
    let scheme = first.split(|&b| b == b':').next().unwrap_or_default();
    let is_scheme = scheme.len() < first.len()
        && scheme.first().is_some_and(u8::is_ascii_lowercase)
        && scheme
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+.-".contains(b));
    // Without slashes it may be a misspelt file name.
    let is_address =
        is_scheme && (scheme == b"pipe" || first[scheme.len() + 1..].starts_with(b"//"));
    let how = match scheme {
        b"s3" => " (aws s3 sync)",
        b"gs" => " (gcloud storage rsync)",
        b"http" | b"https" => " (curl, wget)",
        b"hf" => " (hf download)",
        _ => "",
    };
    let what = match (is_scheme, join) {
        (true, _) if scheme == b"pipe" => {
            "is a command, and featherload reads local files: write its output to tar files".into()
        }
        (true, _) if is_address => format!(
            "is an address, and tar shards are read from local files: download them{how}, mount \
             the storage, or give as the data set an address alone that begins with s3://, gs://, \
             az://, https:// or file://"
        ),
        (true, _) => {
            "no such file: check the path. An address begins as s3://BUCKET/PREFIX does".into()
        }
        (false, Some(_)) => {
            "no such file: name several shards by braces or a glob, such as '{a,b}.tar'".into()
        }
        (false, None) => return None,
    };
    (!path.exists()).then_some(what)
}

/// Whether the text is an address (`s3://`, `pipe:`) or several names joined by `::`, and no file
/// has this name.
pub(crate) fn is_elsewhere(text: &OsStr) -> bool {
    is_no_file(Path::new(text)).is_some()
}

/// # Errors
/// When `path` is an address, or several names.
pub(crate) fn check_is_file(path: &Path) -> Result<()> {
    is_no_file(path).map_or(Ok(()), |what| Err(Error::dataset(path, what)))
}

/// The paths that `pattern` names, in order. A path may occur twice. An existing path is used as it
/// is, even if it has braces or globs. A path without a glob need not exist.
///
/// # Errors
/// A glob that matches nothing, more than [`MOST_SHARDS`] paths, or an address.
pub(crate) fn expand(pattern: &OsStr) -> Result<Vec<PathBuf>> {
    if Path::new(pattern).exists() {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    if !is_pattern(pattern) {
        check_is_file(Path::new(pattern))?;
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let mut texts = Vec::new();
    braces(pattern.as_bytes(), Vec::new(), 0, &mut texts).map_err(|TooMany| too_many(pattern))?;
    let mut paths = Vec::with_capacity(texts.len());
    for text in texts {
        let path = PathBuf::from(OsString::from_vec(text));
        if has_glob(path.as_os_str().as_bytes()) && !path.exists() {
            globbed(&path, &mut paths)?;
        } else {
            check_is_file(&path)?;
            paths.push(path);
        }
        if paths.len() > MOST_SHARDS {
            return Err(too_many(pattern));
        }
    }
    Ok(paths)
}

/// The paths of several patterns, in their order.
///
/// # Errors
/// Like [`expand`]; also a path that is named twice, or no path at all.
pub(crate) fn expand_all(patterns: &[impl AsRef<OsStr>]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for pattern in patterns {
        paths.append(&mut expand(pattern.as_ref())?);
    }
    if paths.is_empty() {
        return Err(Error::config("no shard is named: give a path or a pattern"));
    }
    let mut sorted: Vec<&PathBuf> = paths.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::dataset(
            pair[0],
            "this shard is named twice, so its samples would be loaded twice: name it once",
        )),
        None => Ok(paths),
    }
}

/// The addresses in an object store that `pattern` names with its braces, in order.
///
/// # Errors
/// A glob, because a store cannot be searched; an address that is named twice.
pub(crate) fn addresses(pattern: &str) -> Result<Vec<String>> {
    let wrong = |what: String| Error::dataset(pattern, what);
    if has_glob(pattern.as_bytes()) {
        return Err(wrong(
            "has * or [ in it, and a store is not searched: name shards by braces \
             (train-{000..146}.tar), or give the prefix of their addresses"
                .to_owned(),
        ));
    }
    let mut texts = Vec::new();
    braces(pattern.as_bytes(), Vec::new(), 0, &mut texts)
        .map_err(|TooMany| too_many(OsStr::new(pattern)))?;
    // The text was split at ASCII characters, so each piece is still UTF-8.
    let texts = texts.into_iter().map(String::from_utf8);
    let texts: Vec<String> = texts
        .collect::<Result<_, _>>()
        .map_err(|e| wrong(e.to_string()))?;
    let mut sorted: Vec<&String> = texts.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(wrong(format!("names {} twice: name it once", pair[0]))),
        None => Ok(texts),
    }
}

fn too_many(pattern: &OsStr) -> Error {
    Error::dataset(
        pattern,
        format!("this pattern names more than {MOST_SHARDS} shards: check its ranges"),
    )
}

fn has_glob(text: &[u8]) -> bool {
    text.iter().any(|b| b"*?[".contains(b))
}

fn globbed(pattern: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let text = pattern
        .to_str()
        .ok_or_else(|| Error::dataset(pattern, "a pattern must be UTF-8"))?;
    let bad =
        |e: glob::PatternError| Error::dataset(pattern, format!("is not a pattern: {}", e.msg));
    let before = paths.len();
    let spelled_out = hidden(pattern);
    refuse_endless_links(text).map_err(bad)??;
    for found in glob::glob(text).map_err(bad)? {
        let found = found.map_err(|e| {
            let at = e.path().to_owned();
            Error::io_at("list", at, io::Error::from(e))
        })?;
        // Shells skip hidden files too: copies under way leave such files. The crate's own option
        // finds none, even if the dot is spelled out.
        if hidden(&found) > spelled_out {
            continue;
        }
        paths.push(found);
        if paths.len() > MOST_SHARDS {
            return Err(too_many(pattern.as_os_str()));
        }
    }
    if paths.len() == before {
        check_is_file(pattern)?;
        return Err(Error::dataset(
            pattern,
            "no file matches this pattern: check the folder and the pattern",
        ));
    }
    paths[before..].sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    Ok(())
}

/// Rejects links that make the folders of `**` endless.
///
/// # Errors
/// The outer error: a malformed pattern. The inner one: an endless folder.
fn refuse_endless_links(text: &str) -> Result<Result<()>, glob::PatternError> {
    let Some(at) = text.split('/').position(|part| part == "**") else {
        return Ok(Ok(()));
    };
    let front: Vec<&str> = text.split('/').take(at).collect();
    let front = match front.as_slice() {
        [] => ".".to_owned(),
        [""] => "/".to_owned(),
        _ => front.join("/"),
    };
    if !has_glob(front.as_bytes()) {
        return Ok(linked_folders::check_endless(Path::new(&front)));
    }
    // Expanding the pattern reports a folder that cannot be listed.
    let mut folders = glob::glob(&front)?.flatten().filter(|path| path.is_dir());
    let refused = folders.try_for_each(|folder| linked_folders::check_endless(&folder));
    Ok(refused)
}

/// Number of path components that begin with a dot.
fn hidden(path: &Path) -> usize {
    let begins = |part: &Component| matches!(part, Component::Normal(name) if name.as_bytes().starts_with(b"."));
    path.components().filter(begins).count()
}

/// The pattern expands to more than [`MOST_SHARDS`] texts.
struct TooMany;

/// Braces that are nested deeper are kept as text.
const MAX_DEPTH: usize = 16;

/// Appends every expansion of `text` to `out`, each with `front` before it.
fn braces(
    text: &[u8],
    front: Vec<u8>,
    depth: usize,
    out: &mut Vec<Vec<u8>>,
) -> Result<(), TooMany> {
    // Finds the first valid group. Other braces are kept as text.
    let mut from = 0;
    while let Some(open) = text[from..].iter().position(|&b| b == b'{') {
        let open = from + open;
        if depth < MAX_DEPTH
            && let Some(close) = closing(&text[open..])
            && let Some(choices) = choices(&text[open + 1..open + close], depth)?
        {
            for choice in choices {
                let mut front = front.clone();
                front.extend_from_slice(&text[..open]);
                front.extend_from_slice(&choice);
                // This part is after the group, not within it, so the depth stays.
                braces(&text[open + close + 1..], front, depth, out)?;
            }
            return Ok(());
        }
        from = open + 1;
    }
    let mut whole = front;
    whole.extend_from_slice(text);
    out.push(whole);
    if out.len() > MOST_SHARDS {
        Err(TooMany)
    } else {
        Ok(())
    }
}

/// The offset of the brace that closes the first one of `text`.
fn closing(text: &[u8]) -> Option<usize> {
    let mut open = 0usize;
    text.iter().position(|b| {
        match b {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        open == 0
    })
}

/// The choices between two braces, in order. `None` if the text between them is neither a list nor
/// a range.
fn choices(inner: &[u8], depth: usize) -> Result<Option<Vec<Vec<u8>>>, TooMany> {
    let mut parts = Vec::new();
    let (mut start, mut open) = (0, 0usize);
    for (at, byte) in inner.iter().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            b',' if open == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if parts.is_empty() {
        return range(inner);
    }
    parts.push(&inner[start..]);
    let mut all = Vec::new();
    for part in parts {
        braces(part, Vec::new(), depth + 1, &mut all)?;
    }
    Ok(Some(all))
}

/// `first..last` or `first..last..step`, of whole numbers or of single letters.
fn range(inner: &[u8]) -> Result<Option<Vec<Vec<u8>>>, TooMany> {
    let Ok(text) = std::str::from_utf8(inner) else {
        return Ok(None);
    };
    let parts: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => match step.parse::<i64>() {
            Ok(step) => (first, last, step.unsigned_abs().max(1)),
            Err(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Ok(step) = usize::try_from(step) else {
        return Ok(None);
    };
    if let ([a], [b]) = (first.as_bytes(), last.as_bytes())
        && a.is_ascii_alphabetic()
        && b.is_ascii_alphabetic()
    {
        let steps = steps(i64::from(*a), i64::from(*b), step)?;
        return Ok(Some(steps.map(|n| vec![n as u8]).collect()));
    }
    let (Ok(a), Ok(b)) = (first.parse::<i64>(), last.parse::<i64>()) else {
        return Ok(None);
    };
    // Numbers are as wide as the wider end, if either end has leading zeros.
    let padded = |text: &str| {
        let digits = text.trim_start_matches(['-', '+']);
        digits.len() > 1 && digits.starts_with('0')
    };
    let width = if padded(first) || padded(last) {
        first.len().max(last.len())
    } else {
        0
    };
    let steps = steps(a, b, step)?;
    Ok(Some(
        steps.map(|n| format!("{n:0width$}").into_bytes()).collect(),
    ))
}

/// The numbers from `a` to `b`, up or down, both included.
fn steps(a: i64, b: i64, step: usize) -> Result<Box<dyn Iterator<Item = i64>>, TooMany> {
    if a.abs_diff(b) / step as u64 >= MOST_SHARDS as u64 {
        return Err(TooMany);
    }
    Ok(if a <= b {
        Box::new((a..=b).step_by(step))
    } else {
        Box::new((b..=a).rev().step_by(step))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn texts(pattern: &str) -> Vec<String> {
        let paths = expand(OsStr::new(pattern)).unwrap();
        paths.iter().map(|p| p.display().to_string()).collect()
    }

    #[test]
    fn braces_mean_what_a_shell_makes_of_them() {
        // Every line is bash's own output of `echo`.
        for (pattern, want) in [
            (
                "a-{000..003}.tar",
                "a-000.tar a-001.tar a-002.tar a-003.tar",
            ),
            ("{8..11}", "8 9 10 11"),
            ("{08..11}", "08 09 10 11"),
            ("{3..1}x", "3x 2x 1x"),
            ("{-1..1}", "-1 0 1"),
            ("{-01..1}", "-01 000 001"),
            ("{0..9..4}", "0 4 8"),
            ("{9..0..4}", "9 5 1"),
            ("{a..e..2}", "a c e"),
            ("{b,a}{1,2}", "b1 b2 a1 a2"),
            ("x{a,{b,c}d,}y", "xay xbdy xcdy xy"),
            ("{a,b{1..2}}", "a b1 b2"),
            ("{a}", "{a}"),
            ("{}", "{}"),
            ("{a", "{a"),
            ("a}", "a}"),
            ("{a,b}}", "a} b}"),
            ("{{a,b}", "{a {b"),
            ("{1..x}", "{1..x}"),
            ("{1..2..x}", "{1..2..x}"),
            ("{{1..2}}", "{1} {2}"),
            ("plain.tar", "plain.tar"),
        ] {
            assert_eq!(texts(pattern).join(" "), want, "{pattern}");
        }
    }

    #[test]
    fn a_range_that_is_too_long_is_refused_before_it_is_made() {
        for pattern in [
            "{0..99999999999}",
            "{0..9999999}",
            "{-9223372036854775808..9223372036854775807}",
            "{0..999}{0..999}{0..999}",
        ] {
            let e = expand(OsStr::new(pattern)).unwrap_err().to_string();
            assert!(e.contains(pattern) && e.contains("check its ranges"), "{e}");
        }
        let deep = "{".repeat(5000) + "a,b" + &"}".repeat(5000);
        assert!(expand(OsStr::new(&deep)).is_ok());
    }

    #[test]
    fn addresses_are_refused_with_what_to_do() {
        let told = |text: &str| {
            assert!(is_elsewhere(OsStr::new(text)), "{text}");
            let e = expand(OsStr::new(text)).unwrap_err();
            assert!(e.is_usage());
            e.to_string()
        };
        for (text, begins) in [
            ("http://x/a.tar", "http://x/a.tar"),
            ("s3://x/{0..3}.tar", "s3://x/0.tar"),
            ("gs://x/*.tar", "gs://x/*.tar"),
            ("pipe:curl -s http://x/a.tar", "pipe:curl -s http://x/a.tar"),
            (
                "http://x/a.tar::http://x/b.tar",
                "http://x/a.tar::http://x/b.tar",
            ),
        ] {
            let e = told(text);
            let is = match begins.starts_with("pipe:") {
                true => "is a command, and featherload reads local files: write its output",
                false => "is an address, and tar shards are read from local files: download them",
            };
            assert!(e.contains(&format!("{begins}: {is}")), "{e}");
        }
        for text in ["data:v2", "host:/x/a.tar"] {
            let e = told(text);
            assert!(
                e.contains(&format!("{text}: no such file: check the path")),
                "{e}"
            );
            assert!(
                e.contains("An address begins as s3://BUCKET/PREFIX does"),
                "{e}"
            );
        }
        assert!(!told("s3://x/a.tar").contains("check the path"));
        let e = told("a.tar::b.tar");
        assert!(e.contains("name several shards by braces or a glob"), "{e}");
        for text in [
            "a.tar",
            "/x:/a.tar",
            "./x:a.tar",
            "X:a.tar",
            "1:a.tar",
            ":a.tar",
        ] {
            assert!(!is_elsewhere(OsStr::new(text)), "{text}");
            assert_eq!(texts(text), [text]);
        }
    }

    #[test]
    fn globs_find_files_in_the_order_of_their_bytes() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "b-2.tar",
            "b-10.tar",
            "A.tar",
            "c.txt",
            "odd[1].tar",
            ".b-3.tar",
        ] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let within = |pattern: &str| {
            let pattern = dir.path().join(pattern);
            expand_all(&[&pattern]).map(|paths| {
                let name = |p: &PathBuf| p.file_name().unwrap().to_str().unwrap().to_owned();
                paths.iter().map(name).collect::<Vec<_>>()
            })
        };
        let all = ["A.tar", "b-10.tar", "b-2.tar", "odd[1].tar"];
        assert_eq!(within("*.tar").unwrap(), all);
        assert_eq!(within("{b-2,?}.tar").unwrap(), ["b-2.tar", "A.tar"]);
        assert_eq!(within("b-[0-9].tar").unwrap(), ["b-2.tar"]);
        assert_eq!(within("**/*.tar").unwrap(), all);
        assert_eq!(within(".b-*.tar").unwrap(), [".b-3.tar"]);
        assert_eq!(within("odd[1].tar").unwrap(), ["odd[1].tar"]);
        assert_eq!(within("gone-{1,2}").unwrap(), ["gone-1", "gone-2"]);

        let e = within("x-*.tar").unwrap_err();
        assert!(e.is_usage() && e.to_string().contains("x-*.tar"), "{e}");
        let e = within("{A,b-*,?}.tar").unwrap_err().to_string();
        assert!(e.contains("A.tar: this shard is named twice"), "{e}");
        let e = within("a[.tar").unwrap_err().to_string();
        assert!(e.contains("a[.tar: is not a pattern"), "{e}");
        let none: [&str; 0] = [];
        assert!(expand_all(&none).unwrap_err().is_usage());
    }
}

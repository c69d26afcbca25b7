//! Text files that are not lists: JSON, XML, YAML and text pickles.

use std::path::Path;

use super::file_kind::{EXPORT, ForeignKind, LIST, SCENE};

/// The kind of a text file that is not a list. `text` has no byte order mark.
pub(super) fn kind(path: &Path, text: &[u8]) -> Option<ForeignKind> {
    let text = text.trim_ascii_start();
    if text.starts_with(b"<") {
        return of_tags(text);
    }
    let inside = match text {
        [b'{', inside @ ..] => matches!(inside.trim_ascii_start().first(), Some(b'"' | b'}')),
        [b'[', inside @ ..] => {
            matches!(
                inside.trim_ascii_start().first(),
                Some(b'{' | b'[' | b'"' | b']')
            )
        }
        _ => return of_words(path, text),
    };
    inside.then(|| of_json(path, text))
}

fn of_tags(text: &[u8]) -> Option<ForeignKind> {
    const LABELS: &str = "write its label to a list with one `path label` per line, or give the \
                          folder of the images";
    let begin = &text[..text.len().min(4096)];
    let has = |tag: &str| has(begin, tag);
    if has("<annotation") {
        let what = "an annotation of one image in Pascal VOC's format";
        return Some(ForeignKind::new(what, LABELS));
    }
    if has("<svg") {
        let fix = "it is not decoded: convert it to PNG, and give the folder";
        return Some(ForeignKind::new("an SVG drawing", fix));
    }
    let known = ["<?xml", "<!DOCTYPE", "<html", "<HTML", "<!--"];
    let is_known = known.iter().any(|tag| text.starts_with(tag.as_bytes()));
    let is_closed = has("</") || has("/>");
    (is_known || is_closed).then(|| ForeignKind::new("an XML or HTML file", LIST))
}

fn of_json(path: &Path, text: &[u8]) -> ForeignKind {
    let has = |key: &str| has(text, &format!("\"{key}\""));
    let has_any = |keys: &[&str]| keys.iter().any(|key| has(key));
    let name = path.file_name().unwrap_or_default();
    if has("featherload-cache") {
        return ForeignKind::new("the manifest of a cache", "give the cache's folder");
    }
    if has_any(&["transform_matrix", "camera_angle_x", "camera_model"])
        || (has("frames") && has_any(&["fl_x", "w", "applied_transform"]))
    {
        return ForeignKind::new("the transforms file of a scene", SCENE);
    }
    if has("images") && has_any(&["annotations", "categories", "licenses", "file_name"]) {
        let fix = "boxes and masks are not read. For one label per image, write a CSV file with \
                   the header line `path,label`, or give the folder of the images";
        return ForeignKind::new("a COCO annotation file", fix);
    }
    if has("shards") && has("raw_data") {
        let fix = "write its images to a folder or to tar shards (Python's \
                   streaming.LocalDataset reads it), and give these";
        return ForeignKind::new("the index of a MosaicML Streaming (MDS) data set", fix);
    }
    if has("chunks") && has("chunk_bytes") {
        let fix = "write its images to a folder or to tar shards (Python's \
                   litdata.StreamingDataset reads it), and give these";
        return ForeignKind::new("the index of a LitData data set", fix);
    }
    if has("_data_files") || name == "dataset_dict.json" {
        return ForeignKind::new("a file of Hugging Face's save_to_disk", "give its folder");
    }
    if has("cells") && has("nbformat") {
        return ForeignKind::new("a notebook", LIST);
    }
    if is_of_lines(text) {
        let fix = "rename it so that its name ends in .jsonl";
        return ForeignKind::new("a file of JSON lines", fix);
    }
    ForeignKind::new(
        "a JSON file",
        "write it as JSON lines (one object per line, in a file that ends in .jsonl), or give the \
         folder of the images",
    )
}

/// Whether the file has JSON lines: the first line is an object, and the second begins one.
fn is_of_lines(text: &[u8]) -> bool {
    let mut lines = text.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let is_object = |line: &[u8]| line.starts_with(b"{") && line.ends_with(b"}");
    let first = lines
        .next()
        .is_some_and(|line| is_object(line) && line.len() > 2);
    // The second line may end beyond the bytes that were read.
    first && lines.next().is_some_and(|line| line.starts_with(b"{\""))
}

/// Recipes, YOLO descriptions and text pickles, by file extension and lines.
fn of_words(path: &Path, text: &[u8]) -> Option<ForeignKind> {
    let lines = || {
        let lines = text.split(|&b| b == b'\n');
        lines.map(<[u8]>::trim_ascii_end).take(200)
    };
    let has_line = |begin: &[u8]| lines().any(|line| line.starts_with(begin));
    let is_named = |end: &str| {
        path.extension()
            .is_some_and(|e| e.eq_ignore_ascii_case(end))
    };
    if is_named("yaml") || is_named("yml") {
        if has_line(b"featherload:") || has_line(b"DataLoader:") {
            let fix = "give it with `recipe`, in addition to a data set";
            return Some(ForeignKind::new("a recipe", fix));
        }
        if has_line(b"names:") && has_line(b"train:") {
            let fix = "boxes are not read: give the folder of the images";
            return Some(ForeignKind::new("the description of a YOLO data set", fix));
        }
        return has_line(b"ops:").then(|| {
            let fix = "begin it with the line `featherload: 1`, and give it with `recipe`";
            ForeignKind::new("a recipe without its first line", fix)
        });
    }
    let is_pickle = is_named("pkl") || is_named("pickle");
    let begins = |begin: &[u8]| text.starts_with(begin);
    if is_pickle && (begins(b"(") || begins(b"c") || begins(b"}") || begins(b"]")) {
        return Some(ForeignKind::new("a Python pickle", EXPORT));
    }
    None
}

fn has(text: &[u8], what: &str) -> bool {
    text.windows(what.len())
        .any(|window| window == what.as_bytes())
}

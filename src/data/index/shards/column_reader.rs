//! Columns of tar shards: other members of a sample, and values in its JSON.
//!
//! In the consumer. No place is kept: the members of a sample lie beside its image, so a batch
//! walks over the headers from the image before it. Memory: none for samples.

use std::ffi::CStr;
use std::fs::File;
use std::io;

use serde_json::Value as Json;

use crate::data::columns::column_set::{ColumnReader, NamedReaders};
use crate::data::columns::values::{ColumnBuilder, ColumnKind, NumberKind};
use crate::data::index::column_names::{listed, quoted};
use crate::data::index::json_column::{self, JsonKind};
use crate::data::index::shards::fields::is_json;
use crate::data::index::shards::options::JSON_EXTENSION;
use crate::data::index::{Index, lenient_json};
use crate::data::shard::member_name;
use crate::data::shard::walk::{HeaderWalk, ShardMember, block_after};
use crate::error::{self, Error, Result};

/// Most bytes of a member that is a column.
const MOST_VALUE: u64 = 256 << 20;
/// Samples that decide which columns there are, and the types of values in JSON.
pub(crate) const PROBED: u64 = 64;
/// Extensions that are text, as in webdataset.
const TEXTS: [&str; 5] = ["txt", "text", "transcript", "caption", "json"];
/// Extensions that are one whole number, as in webdataset.
const NUMBERS: [&str; 7] = ["cls", "cls2", "class", "count", "index", "inx", "id"];

/// Where a column's value is: in the member with an extension, perhaps inside of its JSON.
#[derive(Debug, Clone, PartialEq)]
struct MemberPlace {
    /// In lower case.
    extension: String,
    /// A JSON pointer into the member.
    pointer: Option<String>,
}

#[derive(Debug)]
struct ShardColumn {
    name: String,
    place: MemberPlace,
    kind: ColumnKind,
}

impl ColumnReader for ShardColumn {
    fn kind(&self) -> ColumnKind {
        self.kind
    }

    fn read(&self, index: &Index, id: u64, into: &mut ColumnBuilder) -> Result<()> {
        let value = member(index, id, &self.place.extension, MOST_VALUE)?;
        let pushed = match (value, &self.place.pointer) {
            (None, _) => into.push_null(),
            (Some(text), Some(pointer)) => {
                value_in(&text, pointer).and_then(|value| json_column::push(&value, into))
            }
            (Some(bytes), None) => push_bytes(bytes, into),
        };
        pushed.map_err(|what| {
            let name = quoted(&self.name);
            Error::dataset(index.path(id), format!("column {name} {what}"))
        })
    }
}

fn push_bytes(bytes: Vec<u8>, into: &mut ColumnBuilder) -> Result<(), String> {
    match into.kind() {
        ColumnKind::Bytes => into.push_bytes(bytes),
        ColumnKind::Text => {
            let text = String::from_utf8(bytes).map_err(|_| "has text that is not UTF-8")?;
            into.push_text(text);
        }
        _ => {
            let text = str::from_utf8(&bytes).unwrap_or_default().trim_ascii();
            let number: i64 = text.parse().map_err(|_| {
                let shown = crate::data::index::shown(&bytes);
                format!("has '{shown}', which is no whole number")
            })?;
            into.push_numbers(&number.to_le_bytes())?;
        }
    }
    Ok(())
}

/// The value at a pointer of a JSON text. `Null` if there is none.
fn value_in(text: &[u8], pointer: &str) -> Result<Json, String> {
    let found = lenient_json::find(text, pointer);
    let found = found.map_err(|fault| format!("has no JSON: {fault}"))?;
    let Some(found) = found else {
        return Ok(Json::Null);
    };
    let failed = || format!("has a value at {} that is not valid JSON", quoted(pointer));
    let text = str::from_utf8(found).map_err(|_| failed())?;
    if let Some(what) = json_column::beyond_whole(text) {
        return Err(what);
    }
    serde_json::from_str(text).map_err(|_| failed())
}

/// Calls `each` with the members of sample `id` and their extensions, until it returns false.
pub(super) fn walk_members(
    index: &Index,
    id: u64,
    mut each: impl FnMut(&File, &ShardMember, &str) -> Result<bool, io::Error>,
) -> Result<()> {
    let mut path = Vec::new();
    let fault = |fault: error::SampleFault| Error::Sample {
        id,
        path: index.path(id),
        fault,
    };
    let part = index.part(id);
    let part = part.ok_or_else(|| Error::config(format!("there is no sample {id}")))?;
    let (name, _): (&CStr, _) = index.locate(id, &mut path).map_err(fault)?;
    let (file, len) = index.open_shard(part.shard, name).map_err(fault)?;
    let before = id.checked_sub(1).and_then(|id| index.part(id));
    let start = match before {
        Some(before) if before.shard == part.shard && before.at < part.at => {
            block_after(before.at, before.bytes)
        }
        _ => 0,
    };
    let image = index.relative_path(id).as_os_str().as_encoded_bytes();
    let key = member_name::split(image).map(|(key, _)| key);
    let unread = |e| Error::io_at("read", index.file(id), e);
    let mut walk = HeaderWalk::new(&file, len as u64);
    walk.resume_at(start);
    while let Some(member) = walk.next().map_err(unread)? {
        let split = member_name::split(&member.name);
        let is_of_sample = split.map(|(key, _)| key) == key;
        if !is_of_sample && member.data_at > part.at {
            break;
        }
        if let Some((_, extension)) = split.filter(|_| is_of_sample) {
            let extension = String::from_utf8_lossy(extension).to_ascii_lowercase();
            if !each(&file, &member, &extension).map_err(unread)? {
                break;
            }
        }
    }
    Ok(())
}

/// The bytes of the member of a sample with this extension. `None` if the sample has none.
///
/// # Errors
/// A shard that cannot be read; a member of more than `most` bytes.
pub(super) fn member(
    index: &Index,
    id: u64,
    extension: &str,
    most: u64,
) -> Result<Option<Vec<u8>>> {
    use std::os::unix::fs::FileExt;
    let mut found = None;
    let mut too_large = None;
    walk_members(index, id, |file, member, this| {
        if this != extension {
            return Ok(true);
        }
        if member.size > most {
            too_large = Some(member.size);
            return Ok(false);
        }
        let mut bytes = vec![0; member.size as usize];
        file.read_exact_at(&mut bytes, member.data_at)?;
        found = Some(bytes);
        Ok(false)
    })?;
    match too_large {
        None => Ok(found),
        Some(bytes) => Err(Error::dataset(
            index.path(id),
            format!(
                "its member {extension} has {}, and a column has at most {}",
                error::size_rounded_up(bytes),
                error::size(most)
            ),
        )),
    }
}

/// The columns `names` of tar shards: extensions (`txt`), keys of the field `json` (`caption`), or
/// JSON pointers (`/a/b`, `meta.json:/a/b`).
///
/// # Errors
/// The first samples have no such member or value; values of several kinds; shards that are not on
/// this machine.
pub(crate) fn open_columns(index: &Index, names: &[String]) -> Result<NamedReaders> {
    let probed = 0..index.len().min(PROBED);
    let mut extensions: Vec<String> = Vec::new();
    for id in probed.clone() {
        walk_members(index, id, |_, _, extension| {
            if !extensions.iter().any(|known| known == extension) {
                extensions.push(extension.to_owned());
            }
            Ok(true)
        })?;
    }
    let open = |name: &String| -> Result<(String, Box<dyn ColumnReader>)> {
        let place = place_of(name, &extensions);
        let kind = match &place.pointer {
            None => kind_of(&place.extension),
            Some(pointer) => {
                json_kind(index, probed.clone(), (&place, pointer), name, &extensions)?
            }
        };
        if !extensions.contains(&place.extension) {
            return Err(missing(index, name, &extensions, ""));
        }
        let name = name.clone();
        Ok((name.clone(), Box::new(ShardColumn { name, place, kind })))
    };
    names.iter().map(open).collect()
}

fn kind_of(extension: &str) -> ColumnKind {
    let last = extension.rsplit('.').next().unwrap_or(extension);
    if TEXTS.contains(&last) {
        ColumnKind::Text
    } else if NUMBERS.contains(&last) {
        ColumnKind::Numbers(NumberKind::I64, None)
    } else {
        ColumnKind::Bytes
    }
}

fn place_of(name: &str, extensions: &[String]) -> MemberPlace {
    let in_json = |extension: &str, pointer: String| MemberPlace {
        extension: extension.to_ascii_lowercase(),
        pointer: Some(pointer),
    };
    if name.starts_with('/') {
        return in_json(JSON_EXTENSION, name.to_owned());
    }
    if let Some((extension, pointer)) = name.split_once(":/") {
        return in_json(extension, format!("/{pointer}"));
    }
    let extension = name.to_ascii_lowercase();
    let has_json = extensions.iter().any(|known| known == JSON_EXTENSION);
    if !extensions.contains(&extension) && has_json {
        let key = name.replace('~', "~0").replace('/', "~1");
        return in_json(JSON_EXTENSION, format!("/{key}"));
    }
    MemberPlace {
        extension,
        pointer: None,
    }
}

/// The kind of a value in JSON, by the first samples. Later samples may have fractions, so all
/// numbers are.
fn json_kind(
    index: &Index,
    probed: std::ops::Range<u64>,
    (place, pointer): (&MemberPlace, &str),
    name: &str,
    extensions: &[String],
) -> Result<ColumnKind> {
    let mut kind = JsonKind::None;
    let mut keys: Vec<String> = Vec::new();
    for id in probed {
        let Some(text) = member(index, id, &place.extension, MOST_VALUE)? else {
            continue;
        };
        let failed =
            |what| Error::dataset(index.path(id), format!("column {} {what}", quoted(name)));
        if keys.is_empty() {
            // A text without keys has no value either.
            drop(lenient_json::members(&text, |key, _| {
                keys.push(key.into_owned())
            }));
        }
        let value = value_in(&text, pointer).map_err(failed)?;
        if let Some(what) = json_column::inexact(&value, json_column::OF_SHARDS) {
            return Err(failed(what));
        }
        let both = JsonKind::of(&value).and_then(|this| kind.and(this));
        kind = both.ok_or_else(|| {
            failed(format!(
                "is not {}, as in samples before, nor another value of a column: numbers, text, or \
                 lists of them",
                kind.text()
            ))
        })?;
    }
    match kind {
        JsonKind::None => {
            let known = match keys.is_empty() {
                true => String::new(),
                false => format!("; the keys of its JSON are {}", listed(&keys)),
            };
            Err(missing(index, name, extensions, &known))
        }
        kind => Ok(kind.with_fractions().column(true)),
    }
}

fn missing(index: &Index, name: &str, extensions: &[String], keys: &str) -> Error {
    let has_json = extensions.iter().any(|extension| is_json(extension));
    let hint = match has_json && keys.is_empty() {
        true => "; a value in JSON is named by its place, such as /caption",
        false => "",
    };
    Error::dataset(
        index.root(),
        format!(
            "the first samples have no column {}: their members are {}{keys}{hint}",
            quoted(name),
            listed(extensions)
        ),
    )
}

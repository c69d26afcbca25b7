//! Columns of tables, read where they lie.
//!
//! In the consumer. The table is read once when it is opened, which finds the types of the columns
//! and the place of every 32nd record. A batch reads the records of its rows again. Memory: 8 bytes
//! for every 32 samples.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;

use crate::data::columns::column_set::{ColumnReader, NamedReaders};
use crate::data::columns::stamped_file::StampedFile;
use crate::data::columns::values::{ColumnBuilder, ColumnKind, NumberKind};
use crate::data::index::Index;
use crate::data::index::column_names::quoted;
use crate::data::index::json_column::{self, JsonKind};
use crate::data::index::lenient_json;
use crate::data::index::lines::TextLines;
use crate::data::index::record_keys;
use crate::data::index::table::columns;
use crate::data::index::table::csv::header;
use crate::data::index::table::records::CsvRecords;
use crate::data::index::table::table_format::TableFormat;
use crate::error::{Error, Result};

/// Records between two places that are kept.
const STEP: u64 = 32;

/// Reads records of a table one after the other, from any kept place.
enum RecordReader {
    Csv(CsvRecords<'static>),
    Json(TextLines<'static>),
}

/// A table that several columns read.
struct SharedTable {
    file: StampedFile,
    /// The byte where every [`STEP`]th record begins.
    places: Vec<u64>,
    reader: Mutex<TableCursor>,
}

/// The reader, and the number of its next record.
struct TableCursor {
    records: RecordReader,
    next: u64,
}

impl std::fmt::Debug for SharedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedTable")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// A column of a table.
#[derive(Debug)]
struct TableColumn {
    table: Arc<SharedTable>,
    name: String,
    kind: ColumnKind,
    /// The number of the column in a CSV.
    field: usize,
}

impl RecordReader {
    /// Goes to the next record. Returns its line, or `None` at the end.
    fn next(&mut self) -> Result<Option<u64>> {
        match self {
            Self::Csv(records) => records.next(),
            Self::Json(lines) => loop {
                match lines.next_line()? {
                    None => return Ok(None),
                    Some((_, line)) if line.trim_ascii().is_empty() => {}
                    Some((number, _)) => return Ok(Some(number)),
                }
            },
        }
    }

    fn file(&self) -> &File {
        match self {
            Self::Csv(records) => records.file(),
            Self::Json(lines) => lines.file(),
        }
    }

    fn position(&self) -> u64 {
        match self {
            Self::Csv(records) => records.position(),
            Self::Json(lines) => lines.position(),
        }
    }

    fn go_to(&mut self, position: u64) -> Result<()> {
        match self {
            Self::Csv(records) => records.go_to(position),
            Self::Json(lines) => lines.go_to(position),
        }
    }
}

impl SharedTable {
    /// Calls `take` with the record of row `row`.
    ///
    /// # Errors
    /// The file has changed, or `take` fails.
    fn with_record<T>(
        &self,
        row: u64,
        take: impl FnOnce(&RecordReader) -> Result<T, String>,
    ) -> Result<T> {
        let mut cursor = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.go_to(&mut cursor, row).and_then(|()| {
            let taken = take(&cursor.records);
            taken.map_err(|what| Error::dataset(self.file.path(), format!("record {row}: {what}")))
        });
        // Last: what was read is of the file as it was up to now. It explains other errors, too.
        self.file.check(cursor.records.file())?;
        taken
    }

    /// Reads the record of row `row`.
    fn go_to(&self, cursor: &mut TableCursor, row: u64) -> Result<()> {
        let step = row / STEP;
        let changed = || {
            Error::dataset(
                self.file.path(),
                format!("has no record {row} any more: do not change it during a run"),
            )
        };
        // The record may be a few after the last one that was read.
        let is_near = cursor.next <= row && row - cursor.next < STEP;
        if !is_near {
            let place = self.places.get(step as usize).ok_or_else(changed)?;
            cursor.records.go_to(*place)?;
            cursor.next = step * STEP;
        }
        while cursor.next <= row {
            let found = cursor.records.next();
            // After an error the next call starts again.
            cursor.next = match &found {
                Ok(Some(_)) => cursor.next + 1,
                _ => u64::MAX,
            };
            found?.ok_or_else(changed)?;
        }
        Ok(())
    }
}

impl ColumnReader for TableColumn {
    fn kind(&self) -> ColumnKind {
        self.kind
    }

    fn read(&self, _: &Index, id: u64, into: &mut ColumnBuilder) -> Result<()> {
        let name = || quoted(&self.name);
        self.table.with_record(id, |record| match record {
            RecordReader::Csv(records) => push_field(records.field(self.field), into)
                .map_err(|what| format!("column {} {what}", name())),
            RecordReader::Json(lines) => {
                let value = json_value(lines.line(), &self.name)?;
                json_column::push(&value, into)
                    .map_err(|what| format!("the value at {} {what}", name()))
            }
        })
    }
}

/// Adds the text of a field of a CSV.
fn push_field(field: &[u8], into: &mut ColumnBuilder) -> Result<(), String> {
    let text = str::from_utf8(field).map_err(|_| "is not UTF-8: save the file as UTF-8")?;
    let changed = || format!("has '{text}', which is no number: do not change it during a run");
    match into.kind() {
        ColumnKind::Numbers(NumberKind::I64, None) => {
            let number: i64 = text.trim_ascii().parse().map_err(|_| changed())?;
            into.push_numbers(&number.to_le_bytes())
        }
        ColumnKind::Numbers(_, None) if text.trim_ascii().is_empty() => into.push_null(),
        ColumnKind::Numbers(_, None) => {
            let number: f64 = text.trim_ascii().parse().map_err(|_| changed())?;
            into.push_numbers(&number.to_le_bytes())
        }
        _ => {
            into.push_text(text.to_owned());
            Ok(())
        }
    }
}

/// The value of a record at a key or a JSON pointer. `Null` if there is none.
fn json_value(line: &[u8], name: &str) -> Result<Json, String> {
    let pointer = match name.strip_prefix('/') {
        Some(_) => name.to_owned(),
        None => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
    };
    let found = lenient_json::find(line, &pointer).map_err(|fault| fault.to_string())?;
    let Some(found) = found else {
        return Ok(Json::Null);
    };
    let text = str::from_utf8(found)
        .map_err(|_| format!("has text at {} that is not UTF-8", quoted(name)))?;
    if let Some(what) = json_column::beyond_whole(text) {
        return Err(format!("the value at {} {what}", quoted(name)));
    }
    serde_json::from_str(text).map_err(|e| {
        let what = e.to_string();
        let what = what
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned();
        format!("the value at {} is not valid JSON ({what})", quoted(name))
    })
}

/// The whole number that a field is. `None` if a number is not all of it: more digits than `i64`
/// has, zeros before it, a plus. Such a field is an id.
fn whole_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let has_zeros = digits.len() > 1 && digits.starts_with('0');
    match has_zeros || text.starts_with('+') {
        true => None,
        false => text.parse().ok(),
    }
}

/// What the fields of a column of a CSV are, as far as they were seen.
#[derive(Debug, Clone, Copy, Default)]
struct FieldSurvey {
    has_whole: bool,
    has_fraction: bool,
    has_text: bool,
    has_empty: bool,
    /// A whole number that `f64` does not hold exactly.
    has_large: bool,
}

impl FieldSurvey {
    fn add(&mut self, field: &[u8]) -> Result<(), String> {
        let text = str::from_utf8(field).map_err(|_| "is not UTF-8: save the file as UTF-8")?;
        match text.trim_ascii() {
            "" => self.has_empty = true,
            text if text
                .trim_start_matches(['+', '-'])
                .bytes()
                .all(|b| b.is_ascii_digit()) =>
            {
                match whole_number(text) {
                    Some(number) => {
                        self.has_whole = true;
                        self.has_large |= !json_column::is_exact(number);
                    }
                    None => self.has_text = true,
                }
            }
            text if text.parse::<f64>().is_ok() => self.has_fraction = true,
            _ => self.has_text = true,
        }
        Ok(())
    }

    fn kind(self) -> ColumnKind {
        match self {
            Self { has_text: true, .. } => ColumnKind::Text,
            // As numbers, they would be float64.
            Self {
                has_large: true,
                has_fraction,
                has_empty,
                ..
            } if has_fraction || has_empty => ColumnKind::Text,
            Self {
                has_fraction: true, ..
            } => ColumnKind::Numbers(NumberKind::F64, None),
            Self {
                has_whole: true,
                has_empty: true,
                ..
            } => ColumnKind::Numbers(NumberKind::F64, None),
            Self {
                has_whole: true, ..
            } => ColumnKind::Numbers(NumberKind::I64, None),
            _ => ColumnKind::Text,
        }
    }
}

/// The columns `names` of a table. In JSON lines a name may be a JSON pointer.
///
/// # Errors
/// There is no such column; values of a column of several kinds; a table that cannot be read, or
/// that changed since it was stamped.
pub(crate) fn open_columns(file: &StampedFile, names: &[String]) -> Result<NamedReaders> {
    let path = file.path();
    let form = TableFormat::of(path);
    let form = form.ok_or_else(|| Error::dataset(path, "is not a table by its extension"))?;
    let (mut records, fields) = match form {
        TableFormat::Csv | TableFormat::Tsv => {
            let (records, header) = header(path.to_owned(), form)?;
            let fields = names
                .iter()
                .map(|name| columns::position(&header.names, name))
                .collect::<Result<Vec<_>, _>>();
            let failed = |what| Error::dataset_line(path, header.line, what);
            (RecordReader::Csv(records), fields.map_err(failed)?)
        }
        TableFormat::JsonLines => {
            let lines = TextLines::open(path.to_owned())?;
            (RecordReader::Json(lines), vec![0; names.len()])
        }
    };
    let mut places = Vec::new();
    let mut of_csv = vec![FieldSurvey::default(); names.len()];
    let mut of_json = vec![(JsonKind::None, false); names.len()];
    // In JSON the first whole number that is no exact fraction, with its line.
    let mut inexact: Vec<Option<(u64, String)>> = vec![None; names.len()];
    let mut count = 0;
    loop {
        let position = records.position();
        let Some(line) = records.next()? else {
            break;
        };
        if count % STEP == 0 {
            places.push(position);
        }
        let failed = |what| Error::dataset_line(path, line, what);
        for (number, name) in names.iter().enumerate() {
            match &records {
                RecordReader::Csv(records) => of_csv[number]
                    .add(records.field(fields[number]))
                    .map_err(|what| failed(format!("column {} {what}", quoted(name))))?,
                RecordReader::Json(lines) => {
                    let (kind, has_missing) = of_json[number];
                    let value = json_value(lines.line(), name).map_err(failed)?;
                    let unlike = || {
                        failed(match record_keys::list_inner_keys(&value, name) {
                            Some(inside) => format!("{} is an object: {inside}", quoted(name)),
                            None => format!(
                                "the value at {} is not {}, as in lines before, nor another \
                                 value of a column: numbers, text, or lists of them",
                                quoted(name),
                                kind.text()
                            ),
                        })
                    };
                    let this = JsonKind::of(&value).ok_or_else(unlike)?;
                    let both = kind.and(this).ok_or_else(unlike)?;
                    let has_missing = has_missing || value.is_null();
                    of_json[number] = (both, has_missing);
                    inexact[number] = inexact[number].take().or_else(|| {
                        let found = json_column::inexact(&value, json_column::OF_FRACTIONS)?;
                        Some((line, found))
                    });
                }
            }
        }
        count += 1;
    }
    file.check(records.file())?;
    let is_json = matches!(records, RecordReader::Json(_));
    if is_json && let Some(at) = of_json.iter().position(|(kind, _)| *kind == JsonKind::None) {
        return Err(missing_key(path, &names[at])?);
    }
    let table = Arc::new(SharedTable {
        file: file.clone(),
        places,
        reader: Mutex::new(TableCursor {
            records,
            next: u64::MAX,
        }),
    });
    let column = |number: usize| -> Result<Box<dyn ColumnReader>> {
        let name = &names[number];
        let kind = match is_json {
            false => of_csv[number].kind(),
            true => {
                let (kind, has_missing) = of_json[number];
                if has_missing && kind == JsonKind::Truth {
                    return Err(Error::dataset(
                        path,
                        format!(
                            "column {} has true or false in some records only: add it to all",
                            quoted(name)
                        ),
                    ));
                }
                let kind = kind.column(has_missing);
                if kind.is_of_fractions()
                    && let Some((line, what)) = &inexact[number]
                {
                    let what = format!("the value at {} {what}", quoted(name));
                    return Err(Error::dataset_line(path, *line, what));
                }
                kind
            }
        };
        Ok(Box::new(TableColumn {
            table: table.clone(),
            name: name.clone(),
            kind,
            field: fields[number],
        }))
    };
    (0..names.len())
        .map(|number| Ok((names[number].clone(), column(number)?)))
        .collect()
}

/// The error for a key that no record of JSON lines has. Lists the keys of the first record.
fn missing_key(path: &Path, name: &str) -> Result<Error> {
    let mut lines = TextLines::open(path)?;
    let mut keys = String::new();
    while let Some((_, line)) = lines.next_line()? {
        if !line.trim_ascii().is_empty() {
            keys = record_keys::list_keys(line, name);
            break;
        }
    }
    let keys = keys
        .strip_prefix("; it has ")
        .map(|keys| format!("; the first has {keys}"));
    Ok(Error::dataset(
        path,
        format!(
            "no record has a value at {}{}",
            quoted(name),
            keys.unwrap_or_default()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::columns::column_set::OpenColumns;
    use crate::data::columns::values::ColumnValues;

    fn open(
        name: &str,
        text: &str,
        names: &[&str],
    ) -> Result<(tempfile::TempDir, Arc<OpenColumns>)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let readers = open_columns(&StampedFile::of(path.clone())?, &names)?;
        let index = Index::of_files(&[path]).unwrap();
        Ok((
            dir,
            OpenColumns::new(readers, names.len(), Arc::new(index)).unwrap(),
        ))
    }

    fn text(values: ColumnValues) -> Vec<Option<String>> {
        match values {
            ColumnValues::Text(texts) => texts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn any_record_is_found_in_any_order() {
        for end in ["\n", "\r\n", "\r"] {
            let mut csv = format!("path,caption,n{end}");
            let mut json = String::new();
            let mut want = Vec::new();
            for i in 0..200 {
                let caption = format!("{} \"{i}\"{end}é", "x".repeat(i * 7 % 50));
                let quoted = caption.replace('"', "\"\"");
                csv += &format!("{i}.jpg,\"{quoted}\",{i}{end}");
                if i % 3 == 0 {
                    csv += end;
                }
                json += &serde_json::json!({"path": "a", "caption": caption, "n": i}).to_string();
                json += if end == "\r" { "\n" } else { end };
                want.push(Some(caption));
            }
            for (name, text_of_file) in [("a.csv", &csv), ("a.jsonl", &json)] {
                let (_dir, columns) = open(name, text_of_file, &["caption", "n"]).unwrap();
                let orders: [Vec<u64>; 4] = [
                    (0..200).collect(),
                    (0..200).rev().collect(),
                    (0..200).map(|i| i * 77 % 200).collect(),
                    vec![199, 199, 0, 31, 32, 33, 31],
                ];
                for order in orders {
                    let rows = || order.iter().copied().map(Some);
                    let found = text(columns.read("caption", rows()).unwrap());
                    let wanted: Vec<_> = order.iter().map(|i| want[*i as usize].clone()).collect();
                    assert_eq!(found, wanted, "{name} {end:?}");
                    let ColumnValues::Numbers {
                        values,
                        width: None,
                    } = columns.read("n", rows()).unwrap()
                    else {
                        panic!("no numbers");
                    };
                    let wanted: Vec<i64> = order.iter().map(|i| *i as i64).collect();
                    assert_eq!(values.to_i64().unwrap(), wanted);
                }
                assert_eq!(
                    text(
                        columns
                            .read("caption", [None, Some(1)].into_iter())
                            .unwrap()
                    )[0],
                    Some(String::new())
                );
            }
        }
    }

    #[test]
    fn types_follow_from_all_fields() {
        let csv = "a,b,c,d,e\n1,1,1,x,\n2,0.5,,2,\n";
        let (_dir, columns) = open("t.csv", csv, &["a", "b", "c", "d", "e"]).unwrap();
        let kinds: Vec<String> = columns.names().map(|(_, kind)| kind.to_string()).collect();
        assert_eq!(kinds, ["int64", "float64", "float64", "text", "text"]);
        let ColumnValues::Numbers { values, .. } =
            columns.read("c", [Some(0), Some(1)].into_iter()).unwrap()
        else {
            panic!("no numbers");
        };
        let values: Vec<f64> = values.to_f64().collect();
        assert!(values[0] == 1.0 && values[1].is_nan());
        let lines = "{\"a\": 1, \"o\": {\"b\": [[1, 2]]}}\n{\"a\": null, \"o\": {\"b\": []}}\n";
        let (_dir, columns) = open("t.jsonl", lines, &["a", "/o/b"]).unwrap();
        let kinds: Vec<String> = columns.names().map(|(_, kind)| kind.to_string()).collect();
        assert_eq!(kinds, ["float64", "lists of 2 x int64"]);
        let ColumnValues::Ragged {
            values, offsets, ..
        } = columns
            .read("/o/b", [Some(1), Some(0)].into_iter())
            .unwrap()
        else {
            panic!("no lists");
        };
        assert_eq!(
            (values.to_i64().unwrap(), offsets),
            (vec![1, 2], vec![0, 0, 1])
        );
    }

    #[test]
    fn no_digit_of_a_whole_number_is_lost() {
        let large = "9007199254740993";
        let ids = ["18446744073709551615", "99999999999999999999", "007", "+49"];
        for id in ids {
            for other in ["1", "-5", "0.5", ""] {
                let (_dir, columns) =
                    open("a.csv", &format!("x,y\n{id},\n{other},\n"), &["x"]).unwrap();
                let values = text(columns.read("x", [Some(0), Some(1)].into_iter()).unwrap());
                assert_eq!(values, [Some(id.to_owned()), Some(other.to_owned())]);
            }
        }
        let kind_of = |name: &str, text: &str| {
            let (_dir, columns) = open(name, text, &["x"])?;
            let (_, kind) = columns.names().next().unwrap();
            Ok::<_, Error>(kind.to_string())
        };
        for (fields, kind) in [
            ([large, "1"], "int64"),
            ([large, ""], "text"),
            ([large, "0.5"], "text"),
            (["-9223372036854775808", "9223372036854775807"], "int64"),
            (["9007199254740992", ""], "float64"),
            (["0", "-0"], "int64"),
            (["0.0", "00.5"], "float64"),
            (["+", "-"], "text"),
        ] {
            let text = format!("x,y\n{},\n{},\n", fields[0], fields[1]);
            assert_eq!(kind_of("a.csv", &text).unwrap(), kind, "{fields:?}");
        }
        // JSON has its own texts, so a number is never made one.
        for (values, kind) in [
            ([large, "1"], "int64"),
            (["9007199254740992", "null"], "float64"),
            (["1e300", "2"], "float64"),
            (["[9007199254740993]", "[]"], "lists of int64"),
        ] {
            let text = format!("{{\"x\": {}}}\n{{\"x\": {}}}\n", values[0], values[1]);
            assert_eq!(kind_of("a.jsonl", &text).unwrap(), kind, "{values:?}");
        }
        for values in [
            [large, "null"],
            [large, "0.5"],
            ["18446744073709551615", "1"],
            ["[9007199254740993]", "[0.5]"],
            ["[[18446744073709551615, 1]]", "[]"],
        ] {
            let text = format!("{{\"x\": {}}}\n{{\"x\": {}}}\n", values[0], values[1]);
            let e = kind_of("a.jsonl", &text).unwrap_err().to_string();
            assert!(
                e.contains(":1: the value at 'x'") && e.contains("write it as text"),
                "{e}"
            );
        }
    }

    #[test]
    fn errors_name_the_line_and_the_columns() {
        for (name, text, column, what) in [
            (
                "a.csv",
                "x,y\n1,2\n",
                "z",
                ":1: no column 'z': the columns are 'x', 'y'",
            ),
            (
                "a.jsonl",
                "{\"x\": 1}\n",
                "z",
                "no record has a value at 'z'; the first has 'x'",
            ),
            (
                "a.jsonl",
                "{\"x\": 1}\n{\"x\": \"a\"}\n",
                "x",
                ":2: the value at 'x' is not a number, as in lines before",
            ),
            (
                "a.jsonl",
                "{\"x\": {\"k\": 1}}\n",
                "x",
                ":1: 'x' is an object: name a place in it, one of '/x/k'",
            ),
            (
                "a.jsonl",
                "{\"x\": true}\n{}\n",
                "x",
                "column 'x' has true or false in some records only",
            ),
        ] {
            let e = open(name, text, &[column]).err().unwrap().to_string();
            assert!(e.contains(what), "{e}");
        }
        let (_dir, columns) = open("a.csv", "x\n1\n", &["x"]).unwrap();
        let e = columns
            .read("y", [Some(0)].into_iter())
            .unwrap_err()
            .to_string();
        assert!(
            e.contains("no column 'y': the columns of this run are 'x'"),
            "{e}"
        );
    }
}

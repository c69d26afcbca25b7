//! Columns of Parquet files, read where they lie.
//!
//! In the consumer, on untrusted bytes. A value has no place of its own: its page is unpacked, and
//! read up to the row. The pages that were used last are kept, for all columns together. Memory
//! beside them: about 100 bytes for each page of the column.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};

use crate::data::columns::AvailableColumn;
use crate::data::columns::column_set::{ColumnReader, NamedReaders};
use crate::data::columns::kept_buffers::{KeptBuffers, UnpackingMemory};
use crate::data::columns::stamped_file::StampedFile;
use crate::data::columns::values::{ColumnBuilder, ColumnKind, NumberKind, not_a_number};
use crate::data::index::Index;
use crate::data::index::column_names::{listed, quoted};
use crate::data::index::parquet::footer::ParquetFooter;
use crate::data::index::parquet::levels::{ColumnLevels, levels};
use crate::data::index::parquet::pages::{PageKind, PageLocation, PageReader};
use crate::data::index::parquet::values::{ColumnValue, PageValues, ValueDictionary, ValueForm};
use crate::error::{Error, Result};
use crate::sys::panics::catch_panic;

/// Most bytes of a page, packed and unpacked.
pub(super) const MOST_PAGE: u64 = 64 << 20;
/// Names of groups that only wrap the elements of a list.
const OF_LISTS: [&str; 5] = ["list", "element", "item", "bag", "array"];

/// A column over all files.
#[derive(Debug)]
struct ParquetReader {
    name: String,
    kind: ColumnKind,
    files: Vec<FileColumn>,
    /// The first row of each file.
    firsts: Vec<u64>,
    /// Of all columns of the run.
    kept: Arc<KeptBuffers<KeptPage>>,
    memory: UnpackingMemory,
}

/// A column of one file.
struct FileColumn {
    stamp: StampedFile,
    file: Arc<File>,
    form: ValueForm,
    levels: ColumnLevels,
    /// One for each row group.
    groups: Vec<PageReader>,
    pages: Vec<ColumnPage>,
    dictionaries: Vec<PageLocation>,
}

/// A data page of the column.
#[derive(Clone, Copy)]
struct ColumnPage {
    /// The first of its rows.
    first: u64,
    group: u32,
    dictionary: Option<u32>,
    page: PageLocation,
}

/// A page that is kept.
#[derive(Clone)]
enum KeptPage {
    Body(Arc<Vec<u8>>),
    Dictionary(Arc<ValueDictionary>),
}

impl std::fmt::Debug for FileColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} in {} pages",
            self.stamp.path().display(),
            self.pages.len()
        )
    }
}

/// Bytes of a page that is kept, unpacked. A dictionary of texts has a place for each of them.
fn kept_bytes(page: &PageLocation) -> u64 {
    let places = match page.kind {
        PageKind::Dictionary => 8 * u64::from(page.values),
        PageKind::Data { .. } | PageKind::DataV2 { .. } => 0,
    };
    page.unpacked.max(page.packed) + places
}

impl ColumnReader for ParquetReader {
    fn kind(&self) -> ColumnKind {
        self.kind
    }

    fn unpacking(&self) -> UnpackingMemory {
        self.memory
    }

    fn read(&self, _: &Index, id: u64, into: &mut ColumnBuilder) -> Result<()> {
        // The first file begins at row 0.
        let number = self
            .firsts
            .partition_point(|first| *first <= id)
            .saturating_sub(1);
        let file = &self.files[number];
        let row = id - self.firsts[number];
        let read = self.read_row(number, row, into);
        file.stamp.check(&file.file)?;
        read.map_err(|what| {
            let name = quoted(&self.name);
            Error::dataset(
                file.stamp.path(),
                format!("row {row}, column {name}: {what}"),
            )
        })
    }
}

impl ParquetReader {
    fn read_row(&self, number: usize, row: u64, into: &mut ColumnBuilder) -> Result<(), String> {
        let file = &self.files[number];
        let at = file.pages.partition_point(|page| page.first <= row);
        let at = at.checked_sub(1).ok_or("has no such row")?;
        let place = file.pages[at];
        let pages = &file.groups[place.group as usize];
        let _turn = self.kept.turn();
        // A dictionary serves all pages of its row group, so pages make room before it does.
        let body = self
            .kept
            .get((number, place.page.at), kept_bytes(&place.page), || {
                let body = pages.body_or_fault(&place.page)?;
                Ok(body.map(|body| KeptPage::Body(Arc::new(body))))
            })?;
        let dictionary = place.dictionary.map(|at| {
            let page = &file.dictionaries[at as usize];
            self.kept.get((number, page.at), kept_bytes(page), || {
                let known = pages.body_or_fault(page)?.and_then(|body| {
                    let known = ValueDictionary::new(body, file.form, page.values);
                    known.ok_or_else(|| pages.damaged())
                });
                Ok(known.map(|known| KeptPage::Dictionary(Arc::new(known))))
            })
        });
        let dictionary = match dictionary.transpose()? {
            Some(KeptPage::Dictionary(known)) => Some(known),
            _ => None,
        };
        let KeptPage::Body(body) = body else {
            return Err(pages.damaged());
        };
        let row = row - place.first;
        file.read_value(pages, &place.page, &body, dictionary.as_deref(), row, into)
    }
}

impl FileColumn {
    /// The memory for its pages.
    fn unpacking(&self) -> UnpackingMemory {
        let mut memory = UnpackingMemory::default();
        let pages = self.pages.iter().map(|place| (place.group, &place.page));
        // The codec is that of the column, so any of its row groups gives the memory.
        let dictionaries = self.dictionaries.iter().map(|page| (0, page));
        for (group, page) in pages.chain(dictionaries) {
            let once = self
                .groups
                .get(group as usize)
                .map(|group| group.body_bytes(page));
            memory.add(kept_bytes(page), once.unwrap_or(0) + kept_bytes(page));
        }
        memory
    }

    /// Adds the value of row `row` of a page.
    fn read_value(
        &self,
        pages: &PageReader,
        page: &PageLocation,
        body: &[u8],
        dictionary: Option<&ValueDictionary>,
        row: u64,
        into: &mut ColumnBuilder,
    ) -> Result<(), String> {
        let damaged = || pages.damaged();
        let (mut reps, mut defs, bytes) =
            levels(page, body, self.levels).map_err(|what| what.unwrap_or_else(damaged))?;
        let most = u64::from(page.values);
        let encoded = (self.form, page.encoding);
        let mut values = match PageValues::new(encoded, bytes, most, dictionary) {
            Ok(values) => Some(values),
            // A page of nothing but missing values has none.
            Err(None) => None,
            Err(Some(encoding)) => {
                return Err(format!(
                    "has the encoding {encoding}, which is not supported: write it with plain or \
                     dictionary encoding"
                ));
            }
        };
        let kind = into.kind();
        let is_list = self.levels.most_rep > 0;
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        let mut next = 0;
        let mut was_found = false;
        for _ in 0..page.values {
            let rep = match &mut reps {
                Some(reps) => reps.next().ok_or_else(damaged)?,
                None => 0,
            };
            let def = match &mut defs {
                Some(defs) => defs.next().ok_or_else(damaged)?,
                None => self.levels.most_def,
            };
            next += u64::from(rep == 0);
            if next > row + 1 {
                break;
            }
            let is_here = next == row + 1;
            was_found |= is_here;
            if def < self.levels.most_def {
                match (is_here, is_list) {
                    (true, false) => return into.push_null(),
                    (true, true) if def >= self.levels.entry => match kind {
                        ColumnKind::TextLists => texts.push(None),
                        ColumnKind::Ragged(kind, _) => {
                            let none = not_a_number(kind).ok_or_else(|| {
                                format!(
                                    "has a list with a missing value, which {} cannot express",
                                    kind.name()
                                )
                            })?;
                            numbers.extend(none);
                        }
                        _ => return Err(damaged()),
                    },
                    _ => {}
                }
                continue;
            }
            let value = values.as_mut().and_then(PageValues::next_value);
            let value = value.ok_or_else(damaged)?;
            if !is_here {
                continue;
            }
            match (kind, value) {
                (ColumnKind::Text | ColumnKind::TextLists, ColumnValue::Text(bytes)) => {
                    let text = str::from_utf8(bytes)
                        .map_err(|_| "has text that is not UTF-8: write it as bytes")?;
                    match is_list {
                        true => texts.push(Some(text.to_owned())),
                        false => into.push_text(text.to_owned()),
                    }
                }
                (ColumnKind::Bytes, ColumnValue::Text(bytes)) => into.push_bytes(bytes.to_vec()),
                (
                    ColumnKind::Numbers(kind, None) | ColumnKind::Ragged(kind, None),
                    ColumnValue::Bits(bits),
                ) => {
                    let bytes = &bits.to_le_bytes()[..kind.bytes()];
                    match is_list {
                        true => numbers.extend_from_slice(bytes),
                        false => into.push_numbers(bytes)?,
                    }
                }
                _ => return Err(damaged()),
            }
            if !is_list {
                return Ok(());
            }
        }
        match kind {
            _ if !was_found => Err(damaged()),
            ColumnKind::TextLists => {
                into.push_list(texts);
                Ok(())
            }
            _ => into.push_numbers(&numbers),
        }
    }
}

/// The columns `names` of Parquet files: names, or paths such as `/objects/category`.
///
/// # Errors
/// A file without such a column, a type that no batch has, types that differ between files, a
/// damaged file, or one that changed since it was stamped.
pub(super) fn open_columns(files: &[StampedFile], names: &[String]) -> Result<NamedReaders> {
    let mut footers = Vec::new();
    for stamp in files {
        let path = stamp.path();
        // The crate that decodes footers may panic on damaged bytes.
        let footer = catch_panic(|| ParquetFooter::read(path));
        let damaged = || Err(Error::dataset(path, "is damaged: it cannot be read"));
        footers.push((stamp, footer.unwrap_or_else(damaged)?));
    }
    let mut firsts = Vec::new();
    let mut rows: u64 = 0;
    for (_, footer) in &footers {
        firsts.push(rows);
        for group in footer.data.row_groups() {
            rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
        }
    }
    let kept = Arc::<KeptBuffers<KeptPage>>::default();
    let open = |name: &String| -> Result<(String, Box<dyn ColumnReader>)> {
        let mut kind = None;
        let mut memory = UnpackingMemory::default();
        let mut columns = Vec::new();
        for (stamp, footer) in &footers {
            let path = stamp.path();
            let found = catch_panic(|| file_column(stamp, footer, name));
            let found = found.unwrap_or_else(|| Err("is damaged: it cannot be read".into()));
            let (of_file, column) = found.map_err(|what| Error::dataset(path, what))?;
            stamp.check(&footer.file)?;
            if *kind.get_or_insert(of_file) != of_file {
                let what = format!(
                    "column {} has another type than in the first file",
                    quoted(name)
                );
                return Err(Error::dataset(path, what));
            }
            memory = memory.and(column.unpacking());
            columns.push(column);
        }
        let kind = kind.ok_or_else(|| Error::config("no Parquet files: give a path"))?;
        let reader = ParquetReader {
            name: name.clone(),
            kind,
            files: columns,
            firsts: firsts.clone(),
            kept: kept.clone(),
            memory,
        };
        Ok((name.clone(), Box::new(reader)))
    };
    names.iter().map(open).collect()
}

/// The columns that a file has.
pub(super) fn available(schema: &SchemaDescriptor) -> Vec<AvailableColumn> {
    let one = |top: &Arc<Type>| {
        let mut leaves = schema.columns().iter();
        let leaves: Vec<&ColumnDescPtr> = leaves
            .by_ref()
            .filter(|leaf| {
                leaf.path()
                    .parts()
                    .first()
                    .is_some_and(|part| part == top.name())
            })
            .collect();
        let kind = match leaves.as_slice() {
            [only] => kind_of(only).map_or_else(|_| String::new(), |kind| kind.to_string()),
            several => {
                let names: Vec<String> = several.iter().map(|leaf| leaf_name(leaf)).collect();
                format!("struct of {}", listed(&names))
            }
        };
        AvailableColumn::new(top.name(), kind)
    };
    schema.root_schema().get_fields().iter().map(one).collect()
}

/// The path of a leaf, without the groups that wrap elements of lists.
pub(super) fn leaf_name(leaf: &ColumnDescPtr) -> String {
    let parts = leaf.path().parts();
    let named = parts.iter().enumerate();
    let named = named.filter(|(at, part)| *at == 0 || !OF_LISTS.contains(&part.as_str()));
    let named: Vec<&str> = named.map(|(_, part)| part.as_str()).collect();
    match named.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("/{}", several.join("/")),
    }
}

fn file_column(
    stamp: &StampedFile,
    footer: &ParquetFooter,
    name: &str,
) -> Result<(ColumnKind, FileColumn), String> {
    let schema = footer.data.file_metadata().schema_descr();
    let number = schema
        .columns()
        .iter()
        .position(|leaf| leaf_name(leaf) == name);
    let number = number.ok_or_else(|| {
        let names: Vec<String> = schema.columns().iter().map(leaf_name).collect();
        format!(
            "has no column {} (its columns: {}): name another with `columns`",
            quoted(name),
            listed(&names)
        )
    })?;
    let leaf = schema.column(number);
    let kind = kind_of(&leaf).map_err(|kind| {
        format!(
            "column {} has the type {kind}, which no batch has: write it as numbers, text, bytes, \
             or lists of them",
            quoted(name)
        )
    })?;
    let level = |level: i16| u32::try_from(level).unwrap_or(0);
    let mut column = FileColumn {
        stamp: stamp.clone(),
        file: footer.file.clone(),
        form: ValueForm::of(leaf.physical_type()).ok_or("has values of an unknown form")?,
        levels: ColumnLevels {
            most_def: level(leaf.max_def_level()),
            most_rep: level(leaf.max_rep_level()),
            entry: entry_level(schema, leaf.path().parts()),
        },
        groups: Vec::new(),
        pages: Vec::new(),
        dictionaries: Vec::new(),
    };
    let mut rows = 0;
    for group in footer.data.row_groups() {
        let of_group = u64::try_from(group.num_rows()).unwrap_or(0);
        let chunk = group.columns().get(number);
        let chunk = chunk.ok_or("is damaged: a row group lacks a column")?;
        let reader = || PageReader::of(&footer.file, footer.len, chunk);
        let end = rows + of_group;
        let end_of_pages = column.add_pages(reader()?, rows)?;
        if end_of_pages != end {
            return Err(format!(
                "is damaged: column {} has {} rows, but the row group has {of_group}",
                quoted(name),
                end_of_pages.saturating_sub(rows)
            ));
        }
        column.groups.push(reader()?);
        rows = end;
    }
    Ok((kind, column))
}

impl FileColumn {
    /// Adds the pages of a row group that begins at row `rows`. Returns the row after it.
    fn add_pages(&mut self, mut pages: PageReader, mut rows: u64) -> Result<u64, String> {
        let group = self.groups.len() as u32;
        let mut dictionary = None;
        while let Some(page) = pages.next_page()? {
            if page.unpacked.max(page.packed) > MOST_PAGE {
                return Err("has a page of more than 64 MiB: write it with smaller pages".into());
            }
            if page.kind == PageKind::Dictionary {
                dictionary = Some(self.dictionaries.len() as u32);
                self.dictionaries.push(page);
                continue;
            }
            let count = match page.kind {
                PageKind::DataV2 { rows, .. } => u64::from(rows),
                _ if self.levels.most_rep == 0 => u64::from(page.values),
                // Only the levels tell where rows begin.
                _ => self.count_rows(&pages, &page)?,
            };
            self.pages.push(ColumnPage {
                first: rows,
                group,
                dictionary,
                page,
            });
            rows += count;
        }
        Ok(rows)
    }

    fn count_rows(&self, pages: &PageReader, page: &PageLocation) -> Result<u64, String> {
        let body = pages.body(page)?;
        let found = levels(page, &body, self.levels);
        let (reps, ..) = found.map_err(|what| what.unwrap_or_else(|| pages.damaged()))?;
        let (mut rows, mut count) = (0, 0);
        for rep in reps.into_iter().flatten().take(page.values as usize) {
            if count == 0 && rep != 0 {
                return Err(
                    "has lists that go on from page to page: write it with pages of version 2 \
                     (pyarrow: data_page_version='2.0')"
                        .into(),
                );
            }
            rows += u64::from(rep == 0);
            count += 1;
        }
        (count == page.values)
            .then_some(rows)
            .ok_or_else(|| pages.damaged())
    }
}

/// The kind of the numbers of a leaf column. None: texts or bytes.
///
/// # Errors
/// The name of its type, which has no values here.
pub(super) fn leaf_number_kind(leaf: &ColumnDescPtr) -> Result<Option<NumberKind>, String> {
    use NumberKind::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let converted = leaf.converted_type();
    let physical = leaf.physical_type();
    Ok(match (physical, converted) {
        (_, ConvertedType::DECIMAL) => return Err(format!("decimal ({physical})")),
        (Physical::BOOLEAN, _) => Some(Bool),
        (Physical::INT32, ConvertedType::INT_8) => Some(I8),
        (Physical::INT32, ConvertedType::INT_16) => Some(I16),
        (Physical::INT32, ConvertedType::UINT_8) => Some(U8),
        (Physical::INT32, ConvertedType::UINT_16) => Some(U16),
        (Physical::INT32, ConvertedType::UINT_32) => Some(U32),
        (Physical::INT32, _) => Some(I32),
        (Physical::INT64, ConvertedType::UINT_64) => Some(U64),
        (Physical::INT64, _) => Some(I64),
        (Physical::FLOAT, _) => Some(F32),
        (Physical::DOUBLE, _) => Some(F64),
        (Physical::BYTE_ARRAY, _) => None,
        _ => return Err(physical.to_string()),
    })
}

/// The kind of a leaf column.
///
/// # Errors
/// The name of its type, which no batch has.
fn kind_of(leaf: &ColumnDescPtr) -> Result<ColumnKind, String> {
    let number = leaf_number_kind(leaf)?;
    let converted = leaf.converted_type();
    let is_text = matches!(
        converted,
        ConvertedType::UTF8 | ConvertedType::JSON | ConvertedType::ENUM
    );
    match (leaf.max_rep_level(), number) {
        (0, Some(number)) => Ok(ColumnKind::Numbers(number, None)),
        (0, None) if is_text => Ok(ColumnKind::Text),
        (0, None) => Ok(ColumnKind::Bytes),
        (1, Some(number)) => Ok(ColumnKind::Ragged(number, None)),
        (1, None) if is_text => Ok(ColumnKind::TextLists),
        (1, None) => Err("list of bytes".into()),
        _ => Err("list of lists".into()),
    }
}

/// The definition level from which a list has an entry.
fn entry_level(schema: &SchemaDescriptor, parts: &[String]) -> u32 {
    let mut fields = schema.root_schema().get_fields();
    let (mut level, mut entry) = (0, 0);
    for part in parts {
        let Some(field) = fields.iter().find(|field| field.name() == part) else {
            break;
        };
        let info = field.get_basic_info();
        if info.has_repetition() && info.repetition() != Repetition::REQUIRED {
            level += 1;
            if info.repetition() == Repetition::REPEATED {
                entry = level;
            }
        }
        if field.is_group() {
            fields = field.get_fields();
        }
    }
    entry
}

//! The values of a leaf column, row by row, with the lists that they are in.
//!
//! In the consumer, on untrusted bytes. Memory: one page of at most 64 MiB, and 10 bytes for each of
//! its values.

use std::collections::HashMap;
use std::sync::Arc;

use parquet::basic::Repetition;
use parquet::schema::types::SchemaDescriptor;

use crate::data::columns::row_value::{MOST_VALUES, RowValue};
use crate::data::columns::values::NumberKind;
use crate::data::index::parquet::column_reader::{MOST_PAGE, leaf_number_kind};
use crate::data::index::parquet::footer::ParquetFooter;
use crate::data::index::parquet::levels::{ColumnLevels, levels};
use crate::data::index::parquet::pages::{PageKind, PageLocation, PageReader};
use crate::data::index::parquet::values::{ColumnValue, PageValues, ValueDictionary, ValueForm};

/// Most values of a page. A page of equal values can have any number in a few bytes.
const MOST_PAGE_VALUES: u32 = 1 << 22;
/// Most levels of lists around a value.
const MOST_LISTS: usize = 4;

/// A leaf column of a file.
pub(super) struct NestedLeaf {
    /// Its number among the leaf columns.
    number: usize,
    form: ValueForm,
    /// None: texts.
    kind: Option<NumberKind>,
    levels: ColumnLevels,
    /// For each list around the value, the definition level of its entries.
    entries: Vec<u32>,
    /// The row group whose pages are read, and the rows that it still has.
    group: usize,
    rows_left: u64,
    pages: Option<PageReader>,
    dictionary: Option<ValueDictionary>,
    page: LeafPage,
}

/// The values of a page.
#[derive(Default)]
struct LeafPage {
    /// Repetition and definition level of each value, also of missing ones.
    levels: Vec<(u8, u8)>,
    /// Bits of numbers, or places in `texts`. Missing values have none.
    bits: Vec<u64>,
    texts: Vec<Arc<str>>,
    next_level: usize,
    next_bits: usize,
}

impl NestedLeaf {
    /// # Errors
    /// A type without values here, or too many lists.
    pub(super) fn new(schema: &SchemaDescriptor, number: usize) -> Result<Self, String> {
        let leaf = schema.column(number);
        let kind = leaf_number_kind(&leaf).map_err(|kind| {
            format!("has the type {kind}: write it as numbers or text, or lists of them")
        })?;
        let form = ValueForm::of(leaf.physical_type()).ok_or("has values of an unknown form")?;
        let entries = entry_levels(schema, leaf.path().parts());
        let level = |level: i16| u32::try_from(level).unwrap_or(0);
        let levels = ColumnLevels {
            most_def: level(leaf.max_def_level()),
            most_rep: level(leaf.max_rep_level()),
            entry: entries.last().copied().unwrap_or(0),
        };
        if entries.len() > MOST_LISTS || entries.len() != levels.most_rep as usize {
            return Err(format!(
                "has more than {MOST_LISTS} lists inside of each other"
            ));
        }
        Ok(Self {
            number,
            form,
            kind,
            levels,
            entries,
            group: 0,
            rows_left: 0,
            pages: None,
            dictionary: None,
            page: LeafPage::default(),
        })
    }

    /// The value of the next row: lists for each repetition around it.
    ///
    /// # Errors
    /// A damaged page, or an encoding that is not supported; too many values in a row; no more rows.
    pub(super) fn next_row(&mut self, footer: &ParquetFooter) -> Result<RowValue, String> {
        while self.rows_left == 0 {
            self.open_group(footer)?;
        }
        self.rows_left -= 1;
        let ends = || "is damaged: a column ends early".to_owned();
        let (mut list, mut count, mut flat) = (Vec::new(), 0, RowValue::Null);
        loop {
            if self.page.next_level == self.page.levels.len() && !self.next_page()? {
                // The last row of a group ends with its pages.
                break;
            }
            let (rep, def) = self.page.levels[self.page.next_level];
            if rep == 0 && count > 0 {
                break;
            }
            if rep != 0 && count == 0 {
                return Err("is damaged: a row begins inside of a list".into());
            }
            self.page.next_level += 1;
            count += 1;
            if count > MOST_VALUES {
                return Err(format!("has more than {MOST_VALUES} values in a row"));
            }
            let value = match u32::from(def) == self.levels.most_def {
                true => self.value().ok_or_else(ends)?,
                false => RowValue::Null,
            };
            match self.entries.is_empty() {
                true => flat = value,
                false => push(&mut list, &self.entries, (rep, def), value).ok_or_else(ends)?,
            }
        }
        if count == 0 {
            return Err(ends());
        }
        let has_more = self.page.next_level < self.page.levels.len();
        if self.rows_left == 0 && (has_more || self.next_page()?) {
            return Err("is damaged: a column has more rows than its row group".into());
        }
        match self.entries.is_empty() {
            true => Ok(flat),
            false => Ok(RowValue::List(list)),
        }
    }

    fn open_group(&mut self, footer: &ParquetFooter) -> Result<(), String> {
        let group = footer.data.row_groups().get(self.group);
        let group = group.ok_or("is damaged: a column has too few rows")?;
        let column = group.columns().get(self.number);
        let column = column.ok_or("is damaged: a row group lacks a column")?;
        self.rows_left = u64::try_from(group.num_rows()).unwrap_or(0);
        self.pages = Some(PageReader::of(&footer.file, footer.len, column)?);
        (self.dictionary, self.page) = (None, LeafPage::default());
        self.group += 1;
        Ok(())
    }

    /// Reads the next page with values. False after the last one of the row group.
    fn next_page(&mut self) -> Result<bool, String> {
        let Some(pages) = &mut self.pages else {
            return Ok(false);
        };
        loop {
            let Some(page) = pages.next_page()? else {
                return Ok(false);
            };
            if page.unpacked.max(page.packed) > MOST_PAGE {
                return Err("has a page of more than 64 MiB: write it with smaller pages".into());
            }
            if page.values > MOST_PAGE_VALUES {
                return Err(format!(
                    "has a page of more than {MOST_PAGE_VALUES} values: write it with smaller row \
                     groups"
                ));
            }
            // The last page makes room for this one.
            self.page = LeafPage::default();
            let body = pages.body(&page)?;
            if page.kind == PageKind::Dictionary {
                let known = ValueDictionary::new(body, self.form, page.values);
                self.dictionary = Some(known.ok_or_else(|| pages.damaged())?);
                continue;
            }
            let of = (self.form, self.levels);
            self.page = LeafPage::read(pages, &page, &body, of, self.dictionary.as_ref())?;
            if !self.page.levels.is_empty() {
                return Ok(true);
            }
        }
    }

    /// The next value that is not missing.
    fn value(&mut self) -> Option<RowValue> {
        let bits = *self.page.bits.get(self.page.next_bits)?;
        self.page.next_bits += 1;
        Some(match self.kind {
            Some(kind) => RowValue::of_bytes(kind, &bits.to_le_bytes()),
            None => RowValue::Text(self.page.texts.get(bits as usize)?.to_string()),
        })
    }
}

impl LeafPage {
    fn read(
        pages: &PageReader,
        page: &PageLocation,
        body: &[u8],
        (form, of): (ValueForm, ColumnLevels),
        dictionary: Option<&ValueDictionary>,
    ) -> Result<Self, String> {
        let damaged = || pages.damaged();
        let (mut reps, mut defs, bytes) =
            levels(page, body, of).map_err(|what| what.unwrap_or_else(damaged))?;
        let most = u64::from(page.values);
        let mut values = match PageValues::new((form, page.encoding), bytes, most, dictionary) {
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
        let mut read = Self::default();
        let mut known: HashMap<Arc<str>, u64> = HashMap::new();
        let mut text_bytes = 0;
        for _ in 0..page.values {
            let rep = match &mut reps {
                Some(reps) => reps.next().ok_or_else(damaged)?,
                None => 0,
            };
            let def = match &mut defs {
                Some(defs) => defs.next().ok_or_else(damaged)?,
                None => of.most_def,
            };
            if rep > of.most_rep || def > of.most_def {
                return Err(damaged());
            }
            read.levels.push((rep as u8, def as u8));
            if def < of.most_def {
                continue;
            }
            let value = values.as_mut().and_then(PageValues::next_value);
            match value.ok_or_else(damaged)? {
                ColumnValue::Bits(bits) => read.bits.push(bits),
                ColumnValue::Text(bytes) => {
                    let text = str::from_utf8(bytes).map_err(|_| "has text that is not UTF-8")?;
                    let place = match known.get(text) {
                        Some(place) => *place,
                        None => {
                            // Texts that share their beginnings take few bytes in a page.
                            text_bytes += text.len() as u64;
                            if text_bytes > MOST_PAGE {
                                return Err(
                                    "has more than 64 MiB of texts in a page: write it with \
                                     smaller pages"
                                        .into(),
                                );
                            }
                            let text: Arc<str> = text.into();
                            let place = read.texts.len() as u64;
                            read.texts.push(text.clone());
                            known.insert(text, place);
                            place
                        }
                    };
                    read.bits.push(place);
                }
            }
        }
        Ok(read)
    }
}

/// The definition levels of the entries of all lists on the way to a leaf.
fn entry_levels(schema: &SchemaDescriptor, parts: &[String]) -> Vec<u32> {
    let mut fields = schema.root_schema().get_fields();
    let (mut level, mut entries) = (0, Vec::new());
    for part in parts {
        let Some(field) = fields.iter().find(|field| field.name() == part) else {
            break;
        };
        let info = field.get_basic_info();
        if info.has_repetition() && info.repetition() != Repetition::REQUIRED {
            level += 1;
            if info.repetition() == Repetition::REPEATED {
                entries.push(level);
            }
        }
        if field.is_group() {
            fields = field.get_fields();
        }
    }
    entries
}

/// Adds a value to the lists of its row. None if its levels do not fit.
fn push(
    list: &mut Vec<RowValue>,
    entries: &[u32],
    (rep, def): (u8, u8),
    value: RowValue,
) -> Option<()> {
    let (entry, inside) = entries.split_first()?;
    if u32::from(def) < *entry {
        // An empty or missing list.
        return Some(());
    }
    if inside.is_empty() {
        list.push(value);
        return Some(());
    }
    // At its repetition level a value begins an entry, and lists of their own inside of it.
    if rep <= 1 {
        list.push(RowValue::List(Vec::new()));
    }
    let RowValue::List(inner) = list.last_mut()? else {
        return None;
    };
    push(inner, inside, (rep.saturating_sub(1), def), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_make_lists_of_lists() {
        // Entries of the outer list have definition level 2, those of the inner one 4.
        let entries = [2, 4];
        let row = |levels: &[(u8, u8)]| {
            let (mut list, mut n) = (Vec::new(), 0);
            for level in levels {
                n += 1;
                push(&mut list, &entries, *level, RowValue::Whole(n)).unwrap();
            }
            list
        };
        let inner =
            |values: &[i64]| RowValue::List(values.iter().map(|n| RowValue::Whole(*n)).collect());
        assert_eq!(row(&[(0, 0)]), []);
        assert_eq!(row(&[(0, 1)]), []);
        assert_eq!(row(&[(0, 2)]), [inner(&[])]);
        assert_eq!(
            row(&[(0, 4), (2, 4), (1, 4), (1, 3), (1, 4)]),
            [inner(&[1, 2]), inner(&[3]), inner(&[]), inner(&[5])]
        );
        let mut flat = Vec::new();
        push(&mut flat, &[1], (0, 1), RowValue::Whole(1)).unwrap();
        push(&mut flat, &[1], (1, 1), RowValue::Null).unwrap();
        assert_eq!(flat, [RowValue::Whole(1), RowValue::Null]);
        assert_eq!(
            push(&mut Vec::new(), &entries, (2, 4), RowValue::Null),
            None
        );
    }
}

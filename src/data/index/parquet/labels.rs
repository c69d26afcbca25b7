//! Reads the labels of each Parquet file.
//!
//! Runs in the consumer. Holds one page.

use std::collections::HashMap;

use parquet::basic::{ConvertedType, Type as Physical};
use parquet::schema::types::ColumnDescPtr;

use crate::data::index::column_labels::{ClassNumbering, FileLabels};
use crate::data::index::names::shown;
use crate::data::index::parquet::pages::{PageKind, PageLocation, PageReader, encoding};
use crate::data::index::parquet::rle::RleDecoder;
use crate::data::index::parquet::values::{ColumnValue, PageValues, ValueDictionary, ValueForm};

/// Most bytes of a label page, unpacked.
const MOST_PAGE: u64 = 64 << 20;

/// Reads the labels of a file, a row group at a time.
pub(super) struct LabelReader<'a> {
    labels: FileLabels,
    names: &'a ClassNumbering,
    /// The names in this file, so that rows with known names take no lock.
    known: HashMap<Vec<u8>, u32>,
    form: ValueForm,
    /// Whether fractions have 8 bytes.
    is_double: bool,
    /// Whether whole numbers have a sign.
    is_signed: bool,
    /// Rows read so far.
    rows: u64,
}

impl<'a> LabelReader<'a> {
    pub(super) fn new(column: &ColumnDescPtr, names: &'a ClassNumbering) -> Result<Self, String> {
        let physical = column.physical_type();
        let form = match column.converted_type() {
            ConvertedType::DECIMAL => {
                return Err(no_label(column, &format!("decimals ({physical})")));
            }
            _ => ValueForm::of(physical).ok_or_else(|| no_label(column, &physical.to_string()))?,
        };
        let labels = match physical {
            Physical::FLOAT | Physical::DOUBLE => FileLabels::Fractions(Vec::new()),
            Physical::BYTE_ARRAY => FileLabels::Names(Vec::new()),
            _ => FileLabels::Numbers(Vec::new()),
        };
        let unsigned = [ConvertedType::UINT_32, ConvertedType::UINT_64];
        Ok(Self {
            labels,
            names,
            known: HashMap::new(),
            form,
            is_double: physical == Physical::DOUBLE,
            is_signed: !unsigned.contains(&column.converted_type()) && form != ValueForm::Truth,
            rows: 0,
        })
    }

    /// Adds the labels of one row group, which has `rows` rows.
    ///
    /// # Errors
    /// A row without a label or with an invalid one, a damaged page, or an unsupported encoding.
    pub(super) fn add(
        &mut self,
        column: &ColumnDescPtr,
        pages: PageReader,
        rows: u64,
    ) -> Result<(), String> {
        let of = (column, self.form, "labels");
        each_value(of, pages, rows, |value| {
            let row = self.rows;
            let value = value.ok_or_else(|| {
                format!(
                    "row {row}: no label in column '{}': add it, or use `labels: none`",
                    shown(column.name().as_bytes())
                )
            })?;
            self.take(value)
                .map_err(|what| format!("row {row}: {what}"))?;
            self.rows += 1;
            Ok(())
        })
    }

    fn take(&mut self, value: ColumnValue<'_>) -> Result<(), String> {
        let is_short = self.form == ValueForm::Number(4);
        match (&mut self.labels, value) {
            (FileLabels::Numbers(all), ColumnValue::Bits(bits)) => all.push(match is_short {
                true if self.is_signed => i64::from(bits as i32),
                true => i64::from(bits as u32),
                false if self.is_signed => bits as i64,
                false => {
                    i64::try_from(bits).map_err(|_| format!("the label {bits} is too large"))?
                }
            }),
            (FileLabels::Fractions(all), ColumnValue::Bits(bits)) => {
                let number = match self.is_double {
                    true => f64::from_bits(bits) as f32,
                    false => f32::from_bits(bits as u32),
                };
                if !number.is_finite() {
                    return Err("the label is not a finite number".into());
                }
                all.push(number);
            }
            (FileLabels::Names(numbers), ColumnValue::Text(name)) => {
                let number = match self.known.get(name) {
                    Some(number) => *number,
                    None => {
                        let number = self.names.number(name)?;
                        self.known.insert(name.to_vec(), number);
                        number
                    }
                };
                numbers.push(number);
            }
            // A column has values of one form.
            _ => return Err("the type of the label is not the type of its column".into()),
        }
        Ok(())
    }

    pub(super) fn finish(self) -> FileLabels {
        self.labels
    }
}

/// Calls `take` for the value of each row of one row group, which has `rows` rows: `None` for a row
/// without one. `of`: the column, the form of its values, and what they are.
///
/// # Errors
/// Those of `take`, a damaged page, or an unsupported encoding.
pub(super) fn each_value(
    (column, form, what): (&ColumnDescPtr, ValueForm, &str),
    mut pages: PageReader,
    rows: u64,
    mut take: impl FnMut(Option<ColumnValue<'_>>) -> Result<(), String>,
) -> Result<(), String> {
    let name = || shown(column.name().as_bytes());
    let most_level = u32::try_from(column.max_def_level()).unwrap_or(0);
    let (mut read, mut dictionary) = (0, None);
    while let Some(page) = pages.next_page()? {
        if page.unpacked > MOST_PAGE {
            let fix = match what {
                "labels" => ", or use `labels: none`",
                _ => "",
            };
            return Err(format!(
                "has a page of {what} of more than 64 MiB: write it with smaller pages{fix}"
            ));
        }
        let body = pages.body(&page)?;
        if page.kind == PageKind::Dictionary {
            let known = ValueDictionary::new(body, form, page.values);
            dictionary = Some(known.ok_or_else(|| pages.damaged())?);
            continue;
        }
        if u64::from(page.values) > rows - read {
            return Err(pages.damaged());
        }
        let (mut levels, bytes) = split(&page, &body, most_level)
            .map_err(|what| what.unwrap_or_else(|| pages.damaged()))?;
        let encoded = (form, page.encoding);
        let most = u64::from(page.values);
        let mut values = PageValues::new(encoded, bytes, most, dictionary.as_ref());
        for _ in 0..page.values {
            let level = levels.as_mut().map_or(Some(most_level), Iterator::next);
            if level.ok_or_else(|| pages.damaged())? != most_level {
                take(None)?;
                read += 1;
                continue;
            }
            let value = match &mut values {
                Ok(values) => values.next_value().ok_or_else(|| pages.damaged())?,
                Err(None) => return Err(pages.damaged()),
                Err(Some(encoding)) => {
                    return Err(format!(
                        "has {what} in the encoding {encoding} in column '{}', which is not \
                         supported: write it with plain or dictionary encoding",
                        name()
                    ));
                }
            };
            take(Some(value))?;
            read += 1;
        }
    }
    match read == rows {
        true => Ok(()),
        false => Err(format!("is damaged: column '{}' ends early", name())),
    }
}

/// The definition levels of a page, if it has any, and the bytes of its values.
///
/// # Errors
/// `None` for a damaged page, else the reason as text.
fn split<'a>(
    page: &PageLocation,
    body: &'a [u8],
    most_level: u32,
) -> Result<(Option<RleDecoder<'a>>, &'a [u8]), Option<String>> {
    let (before, levels) = match page.kind {
        PageKind::DataV2 {
            rep_bytes,
            def_bytes,
            ..
        } => (rep_bytes as usize, def_bytes as usize),
        _ if most_level == 0 => (0, 0),
        PageKind::Data { level_encoding } if level_encoding != encoding::RLE => {
            return Err(Some(
                "has levels in the old encoding BIT_PACKED: write it with a newer writer".into(),
            ));
        }
        _ => {
            let length = body.first_chunk::<4>().ok_or(None)?;
            (4, u32::from_le_bytes(*length) as usize)
        }
    };
    let behind = body.get(before..).ok_or(None)?;
    let (levels, values) = behind.split_at_checked(levels).ok_or(None)?;
    let width = RleDecoder::width_of(most_level);
    let levels = match most_level {
        0 => None,
        _ => Some(RleDecoder::new(levels, width).ok_or(None)?),
    };
    Ok((levels, values))
}

fn no_label(column: &ColumnDescPtr, kind: &str) -> String {
    format!(
        "has {kind} in column '{}', which cannot be a label: name another with `label_column`, or \
         use `labels: none`",
        shown(column.name().as_bytes())
    )
}

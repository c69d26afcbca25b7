//! Finds the image column and the label column of a Parquet file.

use parquet::basic::{ConvertedType, Type as Physical};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};

use crate::data::index::column_names::{self, listed};
use crate::data::index::features::{chosen_label, class_names, is_class_label, is_image};
use crate::data::index::names::shown;
use crate::data::index::parquet::footer::ParquetFooter;
use crate::data::index::parquet::options::{ParquetLabels, ParquetOptions};

/// The image and label columns of one file, by their numbers among the leaf columns of the schema.
pub(super) struct ParquetColumns {
    pub(super) picture: usize,
    pub(super) label: Option<usize>,
    pub(super) picture_name: String,
    pub(super) label_name: Option<String>,
    /// The class names in Hugging Face's metadata, if the labels are class numbers.
    pub(super) classes: Option<Vec<String>>,
    /// Whether the image column is a struct that also has a path.
    pub(super) has_paths: bool,
    /// Whether it has paths or addresses in place of images.
    pub(super) is_of_paths: bool,
}

/// Whether a top-level column can hold images.
enum PictureColumn {
    /// Bytes: the number of the leaf column, and whether it is in a struct that also has a path.
    Bytes(usize, bool),
    /// Texts, or a struct with a path and without bytes: the number of the leaf column.
    Paths(usize),
    Other,
}

impl ParquetColumns {
    pub(super) fn find(footer: &ParquetFooter, options: &ParquetOptions) -> Result<Self, String> {
        let schema = footer.data.file_metadata().schema_descr();
        let features = footer.features()?;
        let tops = schema.root_schema().get_fields();
        let is_image = |name: &str| features.get(name).is_some_and(is_image);
        let (picture_name, found) = match &options.image_column {
            Some(name) => {
                let top = top_of(tops, name).ok_or_else(|| missing(name, tops, "image_column"))?;
                (name.clone(), of_picture(schema, top))
            }
            None => chosen(schema, tops, &is_image)?,
        };
        let (picture, has_paths, is_of_paths) = match found {
            PictureColumn::Bytes(number, has_paths) => (number, has_paths, false),
            PictureColumn::Paths(number) => (number, true, true),
            PictureColumn::Other => {
                return Err(format!(
                    "has no images in column '{}', which has neither bytes nor paths, nor structs \
                     with a field `bytes` or `path`: name another with `image_column`",
                    shown(picture_name.as_bytes())
                ));
            }
        };
        let label_name = match &options.labels {
            ParquetLabels::None => None,
            ParquetLabels::Column(name) => Some(name.clone()),
            ParquetLabels::Auto => {
                let names = tops.iter().map(|top| top.name());
                let names: Vec<&str> = names.filter(|name| *name != picture_name).collect();
                chosen_label(&names, |name| {
                    features.get(name).is_some_and(is_class_label)
                })?
            }
        };
        let label = label_name.as_deref().map(|name| {
            top_of(tops, name).ok_or_else(|| missing(name, tops, "label_column"))?;
            let number = number_of(schema, &[name]);
            number.filter(|n| is_flat(&schema.column(*n))).ok_or_else(|| {
                format!(
                    "has a list or a struct in column '{}', which cannot be a label: name another \
                     with `label_column`, or use `labels: none`",
                    shown(name.as_bytes())
                )
            })
        });
        let label = label.transpose()?;
        let feature = label_name.as_ref().and_then(|name| features.get(name));
        let is_number = label.is_some_and(|n| {
            let physical = schema.column(n).physical_type();
            matches!(physical, Physical::INT32 | Physical::INT64)
        });
        let classes = feature.filter(|_| is_number).and_then(class_names);
        Ok(Self {
            picture,
            label,
            picture_name,
            label_name,
            classes,
            has_paths,
            is_of_paths,
        })
    }
}

/// The image column if the user names none.
fn chosen(
    schema: &SchemaDescriptor,
    tops: &[std::sync::Arc<Type>],
    is_image: &dyn Fn(&str) -> bool,
) -> Result<(String, PictureColumn), String> {
    let mut found = Vec::new();
    let mut texts = Vec::new();
    for top in tops {
        match of_picture(schema, top) {
            PictureColumn::Bytes(number, paths) => {
                found.push((top.name().to_owned(), number, paths))
            }
            PictureColumn::Paths(number) => texts.push((top.name(), number)),
            PictureColumn::Other => {}
        }
    }
    if found.len() > 1 {
        let only = |is: &dyn Fn(&str) -> bool| {
            let mut those = found.iter().filter(|(name, ..)| is(name));
            those.next().filter(|_| those.next().is_none()).cloned()
        };
        let one = only(is_image).or_else(|| only(&column_names::is_picture));
        return one
            .map(|(name, number, paths)| (name, PictureColumn::Bytes(number, paths)))
            .ok_or_else(|| {
                let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
                format!(
                    "has several columns that may be images ({}): name one with `image_column`",
                    listed(&names)
                )
            });
    }
    if let Some((name, number, paths)) = found.pop() {
        return Ok((name, PictureColumn::Bytes(number, paths)));
    }
    // Most texts are no paths, so a column of texts needs a name or a feature.
    let named = |is: &dyn Fn(&str) -> bool| texts.iter().find(|(name, _)| is(name));
    let one = named(is_image).or_else(|| named(&column_names::is_picture));
    let names: Vec<&str> = texts.iter().map(|(name, _)| *name).collect();
    let one = match one {
        Some(one) => Some(one),
        None => {
            let usual = column_names::path(&names)?;
            usual.and_then(|usual| texts.iter().find(|(name, _)| *name == usual))
        }
    };
    match one {
        Some((name, number)) => Ok(((*name).to_owned(), PictureColumn::Paths(*number))),
        None => Err(format!(
            "has no image column, which is bytes or a struct with a field `bytes` (its columns: \
             {}): write one, or name a column of paths or addresses with `path_column`",
            listed(&names_of(tops))
        )),
    }
}

fn of_picture(schema: &SchemaDescriptor, top: &Type) -> PictureColumn {
    let leaf = |path: &[&str]| {
        let number = number_of(schema, path)?;
        let column = schema.column(number);
        let is_bytes = column.physical_type() == Physical::BYTE_ARRAY && is_flat(&column);
        is_bytes.then_some((number, column))
    };
    let is_text = |column: &ColumnDescPtr| {
        column.converted_type() == ConvertedType::UTF8 || column.logical_type_ref().is_some()
    };
    if top.is_primitive() {
        return match leaf(&[top.name()]) {
            Some((number, column)) if is_text(&column) => PictureColumn::Paths(number),
            Some((number, _)) => PictureColumn::Bytes(number, false),
            None => PictureColumn::Other,
        };
    }
    let path = leaf(&[top.name(), "path"]);
    match (leaf(&[top.name(), "bytes"]), path) {
        (Some((number, column)), path) if !is_text(&column) => {
            PictureColumn::Bytes(number, path.is_some())
        }
        (_, Some((number, _))) => PictureColumn::Paths(number),
        _ => PictureColumn::Other,
    }
}

/// Whether a column has at most one value per row.
fn is_flat(column: &ColumnDescPtr) -> bool {
    column.max_rep_level() == 0
}

fn number_of(schema: &SchemaDescriptor, path: &[&str]) -> Option<usize> {
    let columns = schema.columns().iter();
    let mut paths = columns.map(|column| column.path().parts());
    paths.position(|parts| parts.iter().map(String::as_str).eq(path.iter().copied()))
}

fn top_of<'a>(tops: &'a [std::sync::Arc<Type>], name: &str) -> Option<&'a Type> {
    tops.iter()
        .map(AsRef::as_ref)
        .find(|top| top.name() == name)
}

fn names_of(tops: &[std::sync::Arc<Type>]) -> Vec<&str> {
    tops.iter().map(|top| top.name()).collect()
}

fn missing(name: &str, tops: &[std::sync::Arc<Type>], option: &str) -> String {
    format!(
        "has no column '{}' (its columns: {}): name one with `{option}`",
        shown(name.as_bytes()),
        listed(&names_of(tops))
    )
}

pub(super) fn paths_alone(name: &str) -> String {
    format!(
        "has paths in the structs of column '{}', but no images: write it with the bytes of the \
         images, or write the paths as a column of texts",
        shown(name.as_bytes())
    )
}

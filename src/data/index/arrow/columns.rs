//! Finds the image column and the label column of an Arrow file.
//!
//! Runs in the consumer. Reads the schema only.

use crate::data::arrow::{ArrowField, ArrowFile, ArrowType};
use crate::data::columns::AvailableColumn;
use crate::data::index::column_names::{self, listed};
use crate::data::index::features::{chosen_label, class_names, is_class_label, is_image};
use crate::data::index::names::shown;
use crate::data::index::parquet::{ParquetLabels, ParquetOptions};

/// The image and label columns of one file, as numbers of fields.
#[derive(Debug, Clone)]
pub(super) struct ArrowColumns {
    pub(super) picture: PictureFields,
    pub(super) picture_name: String,
    pub(super) label: Option<usize>,
    pub(super) label_name: Option<String>,
    /// The class names in Hugging Face's metadata, if the labels are class numbers.
    pub(super) classes: Option<Vec<String>>,
}

/// The fields of an image: bytes, a path, or both. Each is the number of a column, and perhaps of
/// a field inside of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PictureFields {
    pub(super) bytes: Option<Vec<usize>>,
    pub(super) path: Option<Vec<usize>>,
}

impl ArrowColumns {
    pub(super) fn find(file: &ArrowFile, options: &ParquetOptions) -> Result<Self, String> {
        let features = file.features();
        let fields = file.fields();
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let number = |name: &str, option: &str| {
            names
                .iter()
                .position(|known| *known == name)
                .ok_or_else(|| {
                    format!(
                        "has no column '{}' (its columns: {}): name one with `{option}`",
                        shown(name.as_bytes()),
                        listed(&names)
                    )
                })
        };
        let is_image = |name: &str| features.get(name).is_some_and(is_image);
        let (top, picture) = match &options.image_column {
            Some(name) => {
                let number = number(name, "image_column")?;
                let picture = picture_of(&fields[number], number).ok_or_else(|| {
                    format!(
                        "has no images in column '{}' ({}): name a column of bytes, of paths, or \
                         of structs with a field `bytes` or `path`, with `image_column`",
                        shown(name.as_bytes()),
                        fields[number].type_name()
                    )
                })?;
                (number, picture)
            }
            None => chosen(fields, &is_image)?,
        };
        let label_name = match &options.labels {
            ParquetLabels::None => None,
            ParquetLabels::Column(name) => Some(name.clone()),
            ParquetLabels::Auto => {
                let others = names.iter().copied().filter(|name| *name != names[top]);
                let others: Vec<&str> = others.collect();
                let has_classes = |name: &str| features.get(name).is_some_and(is_class_label);
                chosen_label(&others, has_classes)?
            }
        };
        let label = label_name
            .as_deref()
            .map(|name| number(name, "label_column"));
        let label = label.transpose()?;
        let is_whole = label.is_some_and(|number| match fields[number].kind {
            ArrowType::Number(kind) => !kind.is_float(),
            _ => false,
        });
        let feature = label_name.as_ref().and_then(|name| features.get(name));
        Ok(Self {
            picture,
            picture_name: names[top].to_owned(),
            label,
            classes: feature.filter(|_| is_whole).and_then(class_names),
            label_name,
        })
    }
}

/// The columns that a file has.
pub(super) fn available(fields: &[ArrowField]) -> Vec<AvailableColumn> {
    let one = |field: &ArrowField| {
        let kind = field.column_kind();
        let kind = kind.map_or_else(|| field.type_name(), |kind| kind.to_string());
        AvailableColumn::new(&field.name, kind)
    };
    fields.iter().map(one).collect()
}

/// The fields of an image in a column. `None` if the column cannot hold images.
fn picture_of(field: &ArrowField, number: usize) -> Option<PictureFields> {
    let is_bytes = |kind| {
        matches!(
            kind,
            ArrowType::Binary(_) | ArrowType::View(false) | ArrowType::FixedBinary(_)
        )
    };
    let is_text = |kind| matches!(kind, ArrowType::Text(_) | ArrowType::View(true));
    let found = match field.kind {
        kind if is_bytes(kind) => PictureFields {
            bytes: Some(vec![number]),
            path: None,
        },
        kind if is_text(kind) => PictureFields {
            bytes: None,
            path: Some(vec![number]),
        },
        ArrowType::Struct => {
            let inner = |name: &str, is_kind: &dyn Fn(ArrowType) -> bool| {
                let (child, field) = field.child(name)?;
                is_kind(field.kind).then(|| vec![number, child])
            };
            PictureFields {
                bytes: inner("bytes", &is_bytes),
                path: inner("path", &is_text),
            }
        }
        _ => return None,
    };
    (found != PictureFields::default()).then_some(found)
}

/// The image column if the user names none.
fn chosen(
    fields: &[ArrowField],
    is_image: &dyn Fn(&str) -> bool,
) -> Result<(usize, PictureFields), String> {
    let found: Vec<(usize, PictureFields)> = (0..fields.len())
        .filter_map(|number| Some((number, picture_of(&fields[number], number)?)))
        .collect();
    let name = |number: &usize| fields[*number].name.as_str();
    let only = |is: &dyn Fn(&(usize, PictureFields)) -> bool| {
        let mut those = found.iter().filter(|one| is(one));
        those.next().filter(|_| those.next().is_none()).cloned()
    };
    // Most texts are no paths, so a column of texts needs a name or a feature.
    let with_bytes = |one: &(usize, PictureFields)| one.1.bytes.is_some();
    if let Some(one) = only(&with_bytes) {
        return Ok(one);
    }
    if let Some(one) = only(&|one| is_image(name(&one.0))) {
        return Ok(one);
    }
    if let Some(one) = only(&|one| column_names::is_picture(name(&one.0))) {
        return Ok(one);
    }
    let is_text = |one: &&(usize, PictureFields)| one.1.bytes.is_none();
    let texts: Vec<&str> = found
        .iter()
        .filter(is_text)
        .map(|one| name(&one.0))
        .collect();
    if !found.iter().any(&with_bytes)
        && let Some(usual) = column_names::path(&texts)?
        && let Some(one) = only(&|one| name(&one.0) == usual)
    {
        return Ok(one);
    }
    let candidates: Vec<&str> = found
        .iter()
        .filter(|one| with_bytes(one))
        .map(|one| name(&one.0))
        .collect();
    if candidates.len() > 1 {
        return Err(format!(
            "has several columns that may be images ({}): name one with `image_column`",
            listed(&candidates)
        ));
    }
    let all: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    if all == ["indices"] {
        return Err(
            "has only a column 'indices', which is the order of another file: give the folder of \
             save_to_disk, or the file that has the images"
                .into(),
        );
    }
    Err(format!(
        "has no column of images (its columns: {}): name a column of bytes or paths with \
         `image_column`",
        listed(&all)
    ))
}

//! Where the rasters of a data set are, and what they are.
//!
//! In the consumer.

use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::jobs::raster_rule::{
    MASKS, NamedRaster, RASTER_KINDS, RasterRule, check_raster_names, raster_error,
};
use crate::loader::files_option::{FilesOption, parse_option};
use crate::loader::mask_source::{MaskOptions, MaskSource};
use crate::loader::source::Source;

/// A raster of each image: depths, a flow, another image, further masks.
///
/// ```
/// use featherload::{NumberRule, RasterOptions, RasterRule};
///
/// let depth = RasterOptions::new("../depth/{stem}.png", RasterRule::Numbers(NumberRule {
///     divide: 256.0,
///     ..NumberRule::depth()
/// }));
/// # let _ = depth;
/// ```
#[derive(Debug, Clone)]
pub struct RasterOptions {
    /// A list has a file for each image.
    files: FilesOption<Arc<Index>>,
    /// The extension of rasters beside images in tars.
    member: Option<String>,
    rule: RasterRule,
}

impl RasterOptions {
    /// Rasters in files that `files` names: a pattern of paths
    /// ([`PathPattern`](crate::data::index::PathPattern)), or a column of a table, of Parquet or of
    /// Arrow files.
    pub fn new(files: impl Into<String>, rule: RasterRule) -> Self {
        Self {
            files: FilesOption::Named(files.into()),
            member: None,
            rule,
        }
    }

    /// Rasters in tar shards, beside their images: members with this extension, such as
    /// `depth.png`.
    pub fn member(extension: impl Into<String>, rule: RasterRule) -> Self {
        Self {
            files: FilesOption::Unset,
            member: Some(extension.into()),
            rule,
        }
    }

    /// The same rule, with the files that a program lists: one for each image, in their order.
    #[must_use]
    pub fn listed(self, files: Index) -> Self {
        Self {
            files: FilesOption::Listed(Arc::new(files)),
            ..self
        }
    }
}

/// Rasters with their names.
#[derive(Debug, Clone, Default)]
pub struct RasterList(pub(crate) Vec<(String, RasterOptions)>);

impl RasterList {
    /// The number of rasters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a raster. Its name is checked when the loader is built.
    pub fn push(&mut self, name: impl Into<String>, raster: RasterOptions) {
        self.0.push((name.into(), raster));
    }

    /// The rasters of several lists.
    #[must_use]
    pub fn joined(lists: impl IntoIterator<Item = Self>) -> Self {
        Self(lists.into_iter().flat_map(|list| list.0).collect())
    }

    /// The same rasters, with the files that a program lists for some names.
    ///
    /// # Errors
    /// A name without a raster.
    pub fn with_listed(mut self, listed: Vec<(String, Index)>) -> Result<Self> {
        for (name, files) in listed {
            let Some((_, raster)) = self.0.iter_mut().find(|(of, _)| *of == name) else {
                return Err(raster_error(&name, "files are listed for no raster"));
            };
            *raster = raster.clone().listed(files);
        }
        Ok(self)
    }

    /// Checks names and rules.
    ///
    /// # Errors
    /// Names that are none or equal; numbers out of range; two rasters that a flip exchanges with
    /// the image.
    pub(super) fn check(&self) -> Result<()> {
        check_raster_names(self.0.iter().map(|(name, _)| &**name))?;
        let mut swapped = None;
        for (name, raster) in &self.0 {
            (raster.rule.check()).map_err(|what| raster_error(name, &what))?;
            if matches!(&raster.rule, RasterRule::Image(pair) if pair.swap)
                && let Some(other) = swapped.replace(name)
            {
                let what = format!("`swap` is set for {other} as well: a flip exchanges one pair");
                return Err(raster_error(name, &what));
            }
        }
        Ok(())
    }

    /// The rules, without files.
    pub(super) fn rules(&self) -> impl Iterator<Item = (&str, &RasterRule)> {
        let all = self.0.iter();
        all.map(|(name, raster)| (&**name, &raster.rule))
    }
}

/// Names and rasters of a JSON object. The kind of a raster is that of its name, if it has none.
impl<'de> Deserialize<'de> for RasterList {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        use serde::de::Error as _;
        let fields = Map::deserialize(from)?;
        let rasters = fields.into_iter().map(|(name, raster)| {
            let read = read_raster(&name, raster);
            read.map(|raster| (name, raster)).map_err(D::Error::custom)
        });
        rasters.collect::<std::result::Result<_, _>>().map(Self)
    }
}

fn read_raster(name: &str, raster: Value) -> std::result::Result<RasterOptions, String> {
    let said = |what: String| format!("{name}: {what}");
    let (files, mut fields) =
        FilesOption::deserialize(raster, "rasters").map_err(|e| said(e.to_string()))?;
    let member = match fields.remove("member") {
        None | Some(Value::Null) => None,
        Some(Value::String(extension)) => Some(extension),
        Some(other) => return Err(said(format!("member is {other}, and no text"))),
    };
    let kind = match fields.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(other) => return Err(said(format!("kind is {other}, and no text"))),
        None if RASTER_KINDS.contains(&name) => name.to_owned(),
        None => {
            let known = RASTER_KINDS.join(", ");
            return Err(said(format!(
                "it has no kind: set `kind` to one of {known}"
            )));
        }
    };
    let rule = RasterRule::read(&kind, fields).map_err(said)?;
    Ok(RasterOptions {
        files,
        member,
        rule,
    })
}

/// A name, `=`, and a pattern or a column alone, or a JSON object.
impl FromStr for RasterList {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((name, raster)) = text.split_once('=') else {
            return Err(Error::option(
                "rasters",
                format!(
                    "raster '{text}' has no name: give a name and its files, such as \
                     depth=../depth/{{stem}}.png"
                ),
            ));
        };
        let raster = parse_option(raster, "rasters", |files| Value::String(files.to_owned()))?;
        let raster = read_raster(name, raster);
        let raster = raster.map_err(|what| {
            let what = format!("rasters: {what}");
            Error::option("rasters", what)
        })?;
        Ok(Self(vec![(name.to_owned(), raster)]))
    }
}

/// A raster whose files are known: one for each sample.
#[derive(Debug)]
pub(super) struct OpenedRaster {
    pub(super) named: NamedRaster,
    pub(super) files: Index,
}

/// The rasters of a source that has not been read yet. Masks are the first.
#[derive(Debug)]
pub(super) struct RasterSources(Vec<(NamedRaster, MaskSource)>);

impl RasterSources {
    /// # Errors
    /// As [`MaskSource::of`].
    pub(super) fn of(
        masks: Option<&MaskOptions>,
        rasters: &RasterList,
        source: &Source,
    ) -> Result<Self> {
        let mut all = Vec::new();
        if let Some(masks) = masks {
            let named = NamedRaster {
                name: MASKS.to_owned(),
                rule: RasterRule::Mask(masks.rule.clone()),
            };
            all.push((named, MaskSource::of(masks, source)?));
        }
        for (name, raster) in &rasters.0 {
            let named = NamedRaster {
                name: name.clone(),
                rule: raster.rule.clone(),
            };
            if raster.files.is_of_cache() {
                let what = "caches have masks and objects, and no other rasters: name their files";
                return Err(raster_error(name, what));
            }
            let member = raster.member.as_deref();
            let files = MaskSource::of_files(&raster.files, member, "rasters", source)?;
            all.push((named, files));
        }
        Ok(Self(all))
    }

    /// The option of rasters that are members beside images in tars.
    pub(super) fn of_members(&self) -> Option<&'static str> {
        let mut all = self.0.iter();
        let (named, _) = all.find(|(_, source)| source.are_members())?;
        Some(match &*named.name {
            MASKS => MASKS,
            _ => "rasters",
        })
    }

    /// The files of all rasters of `images`.
    ///
    /// # Errors
    /// Files that cannot be found or read; another number of files than images; images in an object
    /// store.
    pub(super) fn open(self, images: &Index, is_remote: bool) -> Result<Vec<OpenedRaster>> {
        let open = |(mut named, source): (NamedRaster, MaskSource)| {
            let files = match &mut named.rule {
                RasterRule::Mask(rule) if named.name == MASKS => {
                    let (files, opened) = source.open(images, rule, is_remote)?;
                    *rule = opened;
                    files
                }
                _ => source.open_files(images, "rasters", is_remote)?,
            };
            Ok(OpenedRaster { named, files })
        };
        self.0.into_iter().map(open).collect()
    }
}

impl OpenedRaster {
    /// Fingerprint of files and rule, as hexadecimal digits.
    pub(super) fn fingerprint(&self) -> String {
        match &self.named.rule {
            RasterRule::Mask(rule) if self.named.name == MASKS => {
                rule.fingerprint(self.files.hash())
            }
            rule => {
                let rule = serde_json::to_string(rule).unwrap_or_default();
                let text = format!("{:032x} {rule}", self.files.hash());
                format!("{:032x}", twox_hash::XxHash3_128::oneshot(text.as_bytes()))
            }
        }
    }

    /// The fingerprint of masks, and those of other rasters with their names.
    pub(super) fn fingerprints(all: &[Self]) -> (Option<String>, Option<String>) {
        let (masks, others): (Vec<&Self>, _) =
            all.iter().partition(|raster| raster.named.name == MASKS);
        let others: Vec<String> = (others.iter())
            .map(|raster| format!("{} {}", raster.named.name, raster.fingerprint()))
            .collect();
        let masks = masks.first().map(|masks| masks.fingerprint());
        (masks, (!others.is_empty()).then(|| others.join(", ")))
    }
}

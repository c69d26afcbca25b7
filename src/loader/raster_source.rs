//! Where the rasters of a data set are, and what they are.
//!
//! In the consumer.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::data::index::{CachedRasters, Index, open_cache_rasters, read_raster_rule};
use crate::error::{Error, Result};
use crate::jobs::raster_rule::{
    MASKS, NamedRaster, RASTER_KINDS, RasterRule, check_raster_names, raster_error,
};
use crate::loader::files_option::{FilesOption, OF_CACHE, parse_option};
use crate::loader::mask_source::{MaskOptions, MaskSource};
use crate::loader::source::Source;
use crate::recipe::SampleProgram;

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
    rule: RuleOption,
}

/// What a raster is.
#[derive(Debug, Clone)]
enum RuleOption {
    Given(RasterRule),
    /// A cache knows it. The fields replace those of its rule.
    OfCache(Map<String, Value>),
}

impl RasterOptions {
    /// Rasters in files that `files` names: a pattern of paths
    /// ([`PathPattern`](crate::data::index::PathPattern)), or a column of a table, of Parquet or of
    /// Arrow files. `cache`: the rasters of this name in a cache, with this rule in place of the one
    /// that it was built with.
    pub fn new(files: impl Into<String>, rule: RasterRule) -> Self {
        Self {
            files: FilesOption::Named(files.into()),
            member: None,
            rule: RuleOption::Given(rule),
        }
    }

    /// The rasters of this name in a cache, with the rule that it was built with.
    #[must_use]
    pub fn of_cache() -> Self {
        Self {
            files: FilesOption::Named(OF_CACHE.into()),
            member: None,
            rule: RuleOption::OfCache(Map::new()),
        }
    }

    /// Rasters in tar shards, beside their images: members with this extension, such as
    /// `depth.png`.
    pub fn member(extension: impl Into<String>, rule: RasterRule) -> Self {
        Self {
            files: FilesOption::Unset,
            member: Some(extension.into()),
            rule: RuleOption::Given(rule),
        }
    }

    /// The extension of rasters beside images in tars.
    #[must_use]
    pub fn member_extension(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// The rule, unless only a cache knows it.
    fn rule(&self) -> Option<&RasterRule> {
        match &self.rule {
            RuleOption::Given(rule) => Some(rule),
            RuleOption::OfCache(_) => None,
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

    /// The extensions of rasters beside images in tars.
    pub fn member_extensions(&self) -> impl Iterator<Item = &str> {
        let all = self.0.iter();
        all.filter_map(|(_, raster)| raster.member_extension())
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
    pub(crate) fn check(&self) -> Result<()> {
        check_raster_names(self.0.iter().map(|(name, _)| &**name))?;
        check_rules(self.rules().filter_map(|(name, rule)| Some((name, rule?))))
    }

    /// The rules, without files. None: only a cache knows it.
    pub(super) fn rules(&self) -> impl Iterator<Item = (&str, Option<&RasterRule>)> {
        let all = self.0.iter();
        all.map(|(name, raster)| (&**name, raster.rule()))
    }

    /// Reads the rules that the cache in `folder` knows, so that they are known before the run.
    ///
    /// # Errors
    /// A manifest that cannot be read; a raster that the cache does not have.
    pub(super) fn with_rules_of(mut self, folder: &Path) -> Result<Self> {
        for (name, raster) in &mut self.0 {
            if let RuleOption::OfCache(given) = &raster.rule {
                let rule = rule_of_cache(name, read_raster_rule(folder, name)?, given)?;
                raster.rule = RuleOption::Given(rule);
            }
        }
        Ok(self)
    }
}

/// Checks rules with their names.
fn check_rules<'a>(rules: impl Iterator<Item = (&'a str, &'a RasterRule)>) -> Result<()> {
    let mut swapped = None;
    for (name, rule) in rules {
        (rule.check()).map_err(|what| raster_error(name, &what))?;
        if matches!(rule, RasterRule::Image(pair) if pair.swap)
            && let Some(other) = swapped.replace(name)
        {
            let what = format!("`swap` is set for {other} as well: a flip exchanges one pair");
            return Err(raster_error(name, &what));
        }
    }
    Ok(())
}

/// The rule that a cache has for a raster, with the fields that a run gives.
fn rule_of_cache(name: &str, stored: Value, given: &Map<String, Value>) -> Result<RasterRule> {
    let stored = match stored {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    RasterRule::of_description(&stored, given).map_err(|what| raster_error(name, &what))
}

/// Rejects a raster that the steps of its image do not move.
pub(super) fn check_moves(program: &SampleProgram, name: &str, rule: &RasterRule) -> Result<()> {
    let checked = match rule {
        RasterRule::Image(pair) => program.check_pair(pair.steps()),
        rule => program.for_places("rasters", rule.moves()).map(drop),
    };
    checked.map_err(|fault| raster_error(name, &fault.message))
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
        None if files.is_of_cache() && member.is_none() => {
            return Ok(RasterOptions {
                files,
                member,
                rule: RuleOption::OfCache(fields),
            });
        }
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
        rule: RuleOption::Given(rule),
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
pub(crate) struct OpenedRaster {
    pub(crate) named: NamedRaster,
    pub(crate) files: Index,
}

/// The rasters of a source that has not been read yet. Masks are the first.
#[derive(Debug)]
pub(crate) struct RasterSources(Vec<RasterSource>);

#[derive(Debug)]
struct RasterSource {
    name: String,
    rule: RuleOption,
    files: MaskSource,
}

impl RasterSources {
    /// # Errors
    /// As [`MaskSource::of`].
    pub(crate) fn of(
        masks: Option<&MaskOptions>,
        rasters: &RasterList,
        source: &Source,
    ) -> Result<Self> {
        let mut all = Vec::new();
        if let Some(masks) = masks {
            all.push(RasterSource {
                name: MASKS.to_owned(),
                rule: RuleOption::Given(RasterRule::Mask(masks.rule.clone())),
                files: MaskSource::of(masks, source)?,
            });
        }
        for (name, raster) in &rasters.0 {
            let member = raster.member.as_deref();
            let files = match raster.files.is_of_cache() && member.is_none() {
                true => MaskSource::Cached(Map::new()),
                false => MaskSource::of_files(&raster.files, member, "rasters", source)?,
            };
            all.push(RasterSource {
                name: name.clone(),
                rule: raster.rule.clone(),
                files,
            });
        }
        Ok(Self(all))
    }

    /// The option of rasters that are members beside images in tars.
    pub(crate) fn of_members(&self) -> Option<&'static str> {
        let mut all = self.0.iter();
        let raster = all.find(|raster| raster.files.are_members())?;
        Some(match &*raster.name {
            MASKS => MASKS,
            _ => "rasters",
        })
    }

    /// The files of all rasters of `images`.
    ///
    /// # Errors
    /// Files that cannot be found or read; another number of files than images; images in an object
    /// store; a cache without the raster.
    pub(crate) fn open(self, images: &Index, is_remote: bool) -> Result<Vec<OpenedRaster>> {
        let opened = self
            .0
            .into_iter()
            .map(|raster| raster.open(images, is_remote));
        let opened: Vec<OpenedRaster> = opened.collect::<Result<_>>()?;
        let others = opened.iter().filter(|raster| raster.named.name != MASKS);
        check_rules(others.map(|raster| (&*raster.named.name, &raster.named.rule)))?;
        Ok(opened)
    }
}

impl RasterSource {
    fn open(self, images: &Index, is_remote: bool) -> Result<OpenedRaster> {
        let Self { name, rule, files } = self;
        let (rule, files) = match (rule, files) {
            (RuleOption::Given(RasterRule::Mask(rule)), source) if name == MASKS => {
                let (files, rule) = source.open(images, &rule, is_remote)?;
                (RasterRule::Mask(rule), files)
            }
            (rule, MaskSource::Cached(_)) => {
                let CachedRasters {
                    index,
                    rule: stored,
                } = open_cache_rasters(images, &name)?;
                let rule = match rule {
                    RuleOption::Given(rule) => rule,
                    RuleOption::OfCache(given) => rule_of_cache(&name, stored, &given)?,
                };
                (rule, index)
            }
            (RuleOption::Given(rule), source) => {
                (rule, source.open_files(images, "rasters", is_remote)?)
            }
            (RuleOption::OfCache(_), _) => {
                return Err(raster_error(
                    &name,
                    "its files are listed, and it has no kind",
                ));
            }
        };
        let named = NamedRaster { name, rule };
        Ok(OpenedRaster { named, files })
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

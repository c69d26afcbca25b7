//! What the command line needs in addition to the options: help groups, values with names, SRC's
//! help.
//!
//! In the consumer.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

use crate::loader::Source;

pub const SOURCE: &str = "Source";
pub const RECIPE: &str = "Recipe";
pub const ORDER: &str = "Order";
pub const LIMITS: &str = "Processes and limits";
pub const DEVICE: &str = "Device";
pub const MEASURE: &str = "Measuring";
pub const OUTPUT: &str = "Output";

/// Parses one of the names of `T`, the same names as in its JSON.
pub fn one_of<T>(names: &[&'static str]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.to_vec())
        .try_map(|name| T::deserialize(StrDeserializer::<Error>::new(&name)))
}

/// The kinds of SRC, in one line.
pub fn source_help() -> String {
    format!("The data set: {}", Source::KINDS)
}

/// The kinds of SRC.
pub fn source_long_help() -> String {
    format!(
        "{}. A folder has class sub-folders or is flat. For shards, give \
         'train-{{000..123}}.tar' or 'DIR/*.tar', in quotes, or in a store \
         's3://BUCKET/train-{{000..123}}.tar' or the prefix. For Parquet or Arrow files, a \
         folder or 'DIR/train-*.parquet'; `save_to_disk` of Hugging Face writes such a folder. A \
         list has `path label` lines. A table is a .csv or .tsv with a header line, or a .jsonl. A \
         .npy is N x H x W or N x H x W x C, uint8. `featherload index --save` writes an index",
        source_help()
    )
}

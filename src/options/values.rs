//! Values of options that have a few names, as the command line reads them.
//!
//! In the consumer.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

/// One of the names of `T`, which are those of its JSON.
pub fn one_of<T>(names: &[&'static str]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let names: Vec<&'static str> = names.to_vec();
    PossibleValuesParser::new(names)
        .try_map(|name| T::deserialize(StrDeserializer::<Error>::new(&name)))
}

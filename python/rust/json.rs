//! Values of the library as JSON.

use featherload::{Error, Result};
use serde::Serialize;

pub fn json(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::io("write JSON", std::io::Error::other(e)))
}

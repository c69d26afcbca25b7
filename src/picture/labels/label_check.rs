//! A check of the labels of a file, by the code that uses them.

use crate::error::SampleFault;

/// Checks the labels of a row, of three bytes each.
pub(crate) type LabelCheck<'a> = &'a dyn Fn(&[u8]) -> Result<(), SampleFault>;

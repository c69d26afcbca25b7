//! The rank of a process, as two options.

use crate::error::{Error, Result};
use crate::order::Rank;

/// The rank that the options set. None if they set none.
///
/// # Errors
/// Only one of the two options is set.
pub(crate) fn read_rank(rank: Option<u32>, world_size: Option<u32>) -> Result<Option<Rank>> {
    let missing = match (rank, world_size) {
        (Some(rank), Some(world)) => return Ok(Some(Rank::new(rank, world))),
        (None, None) => return Ok(None),
        (Some(_), None) => "world_size",
        (None, Some(_)) => "rank",
    };
    Err(Error::option(
        missing,
        format!("rank and world_size go together: {missing} is missing"),
    ))
}

//! Collects the bits of all masks, in order.
//!
//! Runs in the consumer. The bits are copied out of shared memory. Any bits are a valid mask.

use crate::data::index::Index;
use crate::error::{self, Error, Result};
use crate::pool::worker_options::LaunchedWorkers;
use crate::scene::jobs::masks::spec::MasksSpec;

/// Returns the words of each mask.
///
/// # Errors
/// A mask that cannot be read, or whose shape differs from its image's; too little memory.
pub(crate) fn read_all(
    launched: LaunchedWorkers,
    spec: &MasksSpec,
    index: &Index,
) -> Result<Vec<Vec<u64>>> {
    let mut all = Vec::with_capacity(spec.masks.len());
    let Some(first) = spec.place(0) else {
        return Ok(all);
    };
    let shape = spec.shape(launched.workers());
    let mut filler = launched.start(&spec.order(index)?, shape, first, |needed, free| {
        format!(
            "reading the masks needs {}, but {} are available: use fewer workers or a larger \
             `downscale`",
            error::size_rounded_up(needed),
            error::size_rounded_down(free)
        )
    })?;
    let mut next = Some(first);
    while let Some(place) = next {
        let upcoming = |n: usize| {
            (0..n).try_fold(place, |p, _| {
                spec.place(p.number + u64::from(p.rows_to_fill))
            })
        };
        let filled = filler.next(&upcoming)?;
        if let Some(bad) = filled.bad.first() {
            let id = place.number + u64::from(bad.row);
            return Err(Error::Sample {
                id,
                path: index.path(id),
                fault: bad.fault.clone(),
            });
        }
        for row in 0..place.rows_to_fill {
            let mask = &spec.masks[place.number as usize + row as usize];
            let begin = spec.row(row).start;
            let bytes = filled
                .rows
                .bytes()
                .get(begin..begin + 8 * mask.words() as usize);
            let bytes = bytes.ok_or_else(|| Error::protocol("a mask is outside its slot"))?;
            all.push(bytemuck::pod_collect_to_vec(bytes));
        }
        next = upcoming(1);
    }
    Ok(all)
}

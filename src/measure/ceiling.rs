//! Measures the decoder's own rate on the same files, the maximum for any loader.
//!
//! `serve` is the main loop of a measuring process. The caller starts it, chooses the windows and
//! interprets the results.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::jobs::decode_ceiling::CeilingLoop;
pub use crate::jobs::decode_ceiling::CeilingPart;
use crate::loader::sampler_table;
use crate::order::OrderOptions;
use crate::recipe::{Recipe, SampleProgram};

/// One measuring process's share of the work.
#[derive(Debug, Clone)]
pub struct CeilingShare {
    pub part: CeilingPart,
    pub recipe: Recipe,
    pub plan: OrderOptions,
    /// Number of this process, and number of processes.
    pub share: (u64, u64),
}

/// Measures windows of time. First prints `ready`. For each input line with a number of
/// milliseconds, decodes for that time and prints `IMAGES NANOSECONDS`. Ends at the end of input.
///
/// # Errors
/// A file cannot be decoded; a broken pipe.
pub fn serve(
    saved_index: &Path,
    share: &CeilingShare,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<()> {
    let index = Index::load(saved_index)?;
    if let Some(setter) = share.plan.size_setter() {
        return Err(Error::config(format!(
            "the bare decoder has one size, and {setter} sets that of each batch: measure the \
             ceiling without it"
        )));
    }
    let plan = sampler_table::plan(&index, &share.plan)?;
    let program = SampleProgram::compile(&share.recipe)?;
    if program.is_crop_set() {
        return Err(Error::config(
            "the bare decoder decodes one crop of an image, and the recipe makes several: measure \
             the ceiling with a recipe of one crop",
        ));
    }
    if program.is_joined() {
        return Err(Error::config(
            "the bare decoder decodes one image of a row, and the recipe joins several: measure \
             the ceiling with a recipe without mosaic, mix_samples, cut_samples and copy_paste",
        ));
    }
    let mut bare = CeilingLoop::new(index, plan, program, share.part, share.share)?;
    let mut answer = |text: String| {
        writeln!(output, "{text}")
            .and_then(|()| output.flush())
            .map_err(|e| Error::io("answer the measuring process's parent", e))
    };
    answer("ready".into())?;
    for line in input.lines() {
        let line = line.map_err(|e| Error::io("read a window's length", e))?;
        let ms = line
            .trim()
            .parse()
            .map_err(|e| Error::protocol(format!("a window of '{line}' milliseconds: {e}")))?;
        let (images, took) = bare.run(Duration::from_millis(ms))?;
        answer(format!("{images} {}", took.as_nanos()))?;
    }
    Ok(())
}

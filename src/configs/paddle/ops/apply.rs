//! Operations that are done together or not at all.

use super::held::Held;
use super::pipe::Pipe;
use crate::configs::paddle::list::items;
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::RandomApply;

pub(crate) fn random_apply(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    let p = params.chance("p", 0.5)?;
    let Some(list) = params.node("transforms") else {
        return Err(params.wrong("transforms", "'transforms' is missing: the operations"));
    };
    let (first, held, before) = (pipe.ops.len(), pipe.held, pipe.known());
    let read = pipe.read;
    for item in items(list, "transforms")? {
        read(item, pipe)?;
    }
    if pipe.known() != before || (pipe.held == Held::Floats) != (held == Held::Floats) {
        return Err(params.wrong(
            "transforms",
            "an operation in transforms changes the meaning of values, which must not be random: \
             move it out",
        ));
    }
    let transforms = pipe.take_from(first);
    if transforms.is_empty() || p == 0.0 {
        pipe.held = held;
        pipe.note(params, "nothing in it ever happens, so it is left out");
        return Ok(());
    }
    // What is left alone stays what it was.
    if pipe.held != held && p < 1.0 {
        pipe.held = Held::Either;
    }
    pipe.push(RandomApply { transforms, p });
    Ok(())
}

//! Operations that run together or not at all.

use super::image_form::ImageForm;
use super::op_pipeline::OpPipeline;
use crate::configs::paddle::op_list::operations_of;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::RandomApply;

pub(crate) fn random_apply(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    let p = params.probability("p", 0.5)?;
    let Some(list) = params.node("transforms") else {
        return Err(params.mistake_at("transforms", "'transforms' is missing: the operations"));
    };
    let (first, form_before, before) = (pipe.ops.len(), pipe.form, pipe.fixed_state());
    let read = pipe.read;
    for item in operations_of(list, "transforms")? {
        read(item, pipe)?;
    }
    if pipe.fixed_state() != before
        || (pipe.form == ImageForm::Floats) != (form_before == ImageForm::Floats)
    {
        return Err(params.mistake_at(
            "transforms",
            "an operation in transforms changes the meaning of values, which must not be random: \
             move it out",
        ));
    }
    let transforms = pipe.split_off_ops(first);
    if transforms.is_empty() || p == 0.0 {
        pipe.form = form_before;
        pipe.note(params, "nothing in it ever happens, so it is left out");
        return Ok(());
    }
    // If it does not run, the form before it stays.
    if pipe.form != form_before && p < 1.0 {
        pipe.form = ImageForm::Either;
    }
    pipe.push(RandomApply { transforms, p });
    Ok(())
}

//! MultiScaleDataset: in front of each sample PaddleClas replaces the parameters of
//! every RandCropImage, ResizeImage and CropImage by the batch's size, so that they
//! are OpenCV's, bilinear. A loader sets the size of one operation, the last.

use super::pipe::{Pipe, Sizes};
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::Size;

impl Pipe<'_> {
    /// Replaces the parameters of an operation that makes the batch's size. Gives
    /// what stands for that size until a batch is drawn.
    pub(crate) fn makes_batch_size(&mut self, params: &mut Params<'_>) -> Read<Size> {
        self.needs_array(params)?;
        if self.sizes == Sizes::Made {
            return Err(params.at.mistake(format!(
                "{}: MultiScaleDataset gives the batch's size to each operation that sets \
                     one, and only one is served: remove the one before, or this one",
                params.name
            )));
        }
        let written = self.drops_parameters(params);
        self.sizes = Sizes::Made;
        Ok(written)
    }

    /// An operation that leaves pictures of the batch's size as they are.
    ///
    /// # Errors
    /// In front of what makes that size.
    pub(crate) fn keeps_batch_size(&mut self, params: &mut Params<'_>) -> Read<()> {
        self.needs_array(params)?;
        if self.sizes != Sizes::Made {
            return Err(params.at.mistake(format!(
                "{}: MultiScaleDataset cuts the batch's size out of pictures of other sizes, \
                     which is not served: put RandCropImage or ResizeImage before it",
                params.name
            )));
        }
        params.drop_rest();
        self.note(
            params,
            "MultiScaleDataset gives it the batch's size, which pictures have already, so it is \
             left out",
        );
        Ok(())
    }

    /// Refuses a size of an operation's own after the batch's.
    pub(crate) fn may_set_size(&self, params: &Params<'_>) -> Read<()> {
        self.keeps_stages(params)?;
        if self.sizes != Sizes::Made {
            return Ok(());
        }
        Err(params.misplaced(
            "changes the batch's size, which MultiScaleDataset draws: move it before the \
                 operation that sets the size, or remove it",
        ))
    }

    /// The size as written, if it is one.
    fn drops_parameters(&mut self, params: &mut Params<'_>) -> Size {
        let written = params.width_first("size").ok().flatten();
        let dropped = params.drop_rest();
        if !dropped.is_empty() {
            self.note(
                params,
                format_args!(
                    "MultiScaleDataset takes the size from the sampler and drops every other \
                     parameter ({}): bilinear by OpenCV, uniform aspect",
                    dropped.join(", ")
                ),
            );
        }
        written.unwrap_or(Size::from(224))
    }
}

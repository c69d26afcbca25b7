//! MultiScaleDataset: before each sample, PaddleClas replaces the parameters of every
//! RandCropImage, ResizeImage and CropImage with the size of the batch. The resize is then
//! OpenCV's, bilinear. A loader sets the size of one operation, the last one.

use super::op_pipeline::{OpPipeline, SizeSource};
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::Size;

impl OpPipeline<'_> {
    /// Replaces the parameters of an operation that sets the batch's size. Returns the size to use
    /// until a batch draws one.
    pub(crate) fn set_batch_size(&mut self, params: &mut ConfigParams<'_>) -> ConfigResult<Size> {
        self.needs_array(params)?;
        if self.sizes == SizeSource::BatchSet {
            return Err(params.at.mistake(format!(
                "{}: MultiScaleDataset gives the batch's size to each operation that sets a \
                     size, but only one such operation is supported: remove the earlier \
                     operation, or this one",
                params.name
            )));
        }
        let written = self.drops_parameters(params);
        self.sizes = SizeSource::BatchSet;
        Ok(written)
    }

    /// Skips an operation that keeps images of the batch's size unchanged.
    ///
    /// # Errors
    /// If no operation before it sets that size.
    pub(crate) fn skip_at_batch_size(&mut self, params: &mut ConfigParams<'_>) -> ConfigResult<()> {
        self.needs_array(params)?;
        if self.sizes != SizeSource::BatchSet {
            return Err(params.at.mistake(format!(
                "{}: MultiScaleDataset cuts the batch's size out of images of other sizes, \
                     which is not supported: put RandCropImage or ResizeImage before it",
                params.name
            )));
        }
        params.ignore_unread();
        self.note(
            params,
            "MultiScaleDataset gives it the batch's size, which images have already, so it is \
             left out",
        );
        Ok(())
    }

    /// Rejects an operation that sets another size after the batch's size.
    pub(crate) fn may_set_size(&self, params: &ConfigParams<'_>) -> ConfigResult<()> {
        self.keeps_stages(params)?;
        if self.sizes != SizeSource::BatchSet {
            return Ok(());
        }
        Err(params.misplaced(
            "changes the batch's size, which MultiScaleDataset draws: move it before the \
                 operation that sets the size, or remove it",
        ))
    }

    /// The written size, if it is valid.
    fn drops_parameters(&mut self, params: &mut ConfigParams<'_>) -> Size {
        let written = params.width_first("size").ok().flatten();
        let dropped = params.ignore_unread();
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

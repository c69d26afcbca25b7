//! Checks that an operation works on the form of the image at its place.

use super::image_form::ImageForm;
use super::op_pipeline::OpPipeline;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::file::TextMistake;
use crate::recipe::{Cast, DataType};

impl OpPipeline<'_> {
    /// Levels are floats from here on.
    pub(crate) fn becomes_floats(&mut self) {
        if self.form != ImageForm::Floats {
            self.form = ImageForm::Floats;
            self.push(Cast {
                dtype: DataType::F32,
            });
        }
    }

    /// Rejects operations that fail on Pillow images.
    pub(crate) fn needs_array(&self, params: &ConfigParams<'_>) -> ConfigResult<()> {
        match self.form {
            ImageForm::Array | ImageForm::Floats => Ok(()),
            ImageForm::Picture | ImageForm::Either => Err(self.unfit(
                params,
                "arrays",
                "make the operation before it give an array: DecodeImage with to_np: True, \
                 ResizeImage with return_numpy: True, ColorJitter with prob: 1, or the data set \
                 without backend: pil",
            )),
        }
    }

    /// Rejects operations that fail on arrays.
    pub(crate) fn needs_picture(&self, params: &ConfigParams<'_>, fix: &str) -> ConfigResult<()> {
        match self.form {
            ImageForm::Picture => Ok(()),
            _ => Err(self.unfit(params, "Pillow images", fix)),
        }
    }

    /// Rejects operations that fail on floats, or that round bytes only.
    pub(crate) fn needs_bytes(&self, params: &ConfigParams<'_>) -> ConfigResult<()> {
        match self.form {
            ImageForm::Floats => {
                Err(self.unfit(params, "bytes", "move it before Padv2 or PCALighting"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the form is a Pillow image. paddle.vision resizes those with Pillow, and arrays with
    /// OpenCV.
    pub(crate) fn holds_picture(&self, params: &ConfigParams<'_>) -> ConfigResult<bool> {
        self.needs_bytes(params)?;
        match self.form {
            ImageForm::Picture => Ok(true),
            ImageForm::Array | ImageForm::Floats => Ok(false),
            ImageForm::Either => Err(self.unfit(
                params,
                "both in two ways",
                "write prob: 1 in ColorJitter, or make DecodeImage give an array",
            )),
        }
    }

    /// Rejects a final form from which PaddleClas cannot make a batch.
    pub(crate) fn ends_in_numbers(&self, is_levels: bool) -> Result<(), String> {
        let what = match self.form {
            ImageForm::Picture | ImageForm::Either => "transposes",
            ImageForm::Floats if is_levels => "scales",
            _ => return Ok(()),
        };
        Err(format!(
            "transform_ops ends with {}, which nothing {what}: end with NormalizeImage",
            self.form.described()
        ))
    }

    fn unfit(&self, params: &ConfigParams<'_>, takes: &str, fix: &str) -> TextMistake {
        let here = self.form.described();
        params.misplaced(format_args!("works on {takes}, and gets {here}: {fix}"))
    }
}

//! PaddleClas' own sizes, crops and flips.
//!
//! Pairs are width first. OpenCV resizes without antialias, Pillow with it.

use super::backend::{PLAIN_FILTERS, ResizeBackend, backend, interpolation};
use super::image_form::ImageForm;
use super::labels::ROT90_KEYS;
use super::op_pipeline::{OpPipeline, SizeSource};
use super::stages;
use crate::configs::paddle::dataset_config::LabelKey;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{
    AspectDistribution, BoundedResizedCrop, Cast, CenterCrop, DataType, InterpolationMode,
    LengthRounding, Op, RandomCrop, RandomHorizontalFlip, RandomRotate90, RandomRotation,
    RandomVerticalFlip, Resize, ResizeTo, RotationStyle, Size, Span,
};

/// How a resize works: the parameters that all resizes share.
pub(super) struct ResizeMethod {
    backend: ResizeBackend,
    pub(super) interpolation: InterpolationMode,
    pub(super) antialias: bool,
}

impl ResizeMethod {
    const BATCH: Self = Self::of(ResizeBackend::Cv2, InterpolationMode::Bilinear);

    pub(super) const fn of(backend: ResizeBackend, interpolation: InterpolationMode) -> Self {
        Self {
            backend,
            interpolation,
            antialias: matches!(backend, ResizeBackend::Pil),
        }
    }
}

impl OpPipeline<'_> {
    /// The resize method, and the interpolation that replaces it for half of the samples.
    fn resize_method_or(
        &mut self,
        params: &mut ConfigParams<'_>,
    ) -> ConfigResult<(ResizeMethod, Option<InterpolationMode>)> {
        let is_random = matches!(
            params.text("interpolation"),
            Ok(Some(name)) if name.eq_ignore_ascii_case("random")
        );
        if !is_random {
            return Ok((self.resize_method(params)?, None));
        }
        let backend = backend(params)?;
        match backend {
            ResizeBackend::Cv2 => self.needs_array(params)?,
            ResizeBackend::Pil => self.needs_bytes(params)?,
        }
        let method = ResizeMethod::of(backend, InterpolationMode::Bilinear);
        Ok((method, Some(InterpolationMode::Bicubic)))
    }

    fn resize_method(&mut self, params: &mut ConfigParams<'_>) -> ConfigResult<ResizeMethod> {
        let backend = backend(params)?;
        let default = match backend {
            ResizeBackend::Cv2 => {
                self.needs_array(params)?;
                InterpolationMode::Bilinear
            }
            ResizeBackend::Pil => {
                self.needs_bytes(params)?;
                InterpolationMode::Bicubic
            }
        };
        let method = ResizeMethod::of(backend, interpolation(params, backend, default)?);
        if backend == ResizeBackend::Pil && params.node("interpolation").is_none() {
            self.note(
                params,
                "interpolation is not written: bicubic, as in PaddleClas 2.4. Later versions use \
                 bilinear",
            );
        }
        Ok(method)
    }

    /// Pushes a resize. A bicubic resize of OpenCV runs in floats: rounding to levels between its
    /// two passes would change results by up to 19 levels.
    pub(super) fn push_resize(&mut self, op: impl Into<Op>, method: &ResizeMethod) {
        let float = self.form != ImageForm::Floats
            && !method.antialias
            && method.interpolation == InterpolationMode::Bicubic;
        if float {
            self.push(Cast {
                dtype: DataType::F32,
            });
        }
        self.push(op);
        if float {
            self.push(Cast {
                dtype: DataType::U8,
            });
        }
    }
}

pub(crate) fn resize_image(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.keeps_stages(params)?;
    if pipe.sizes == SizeSource::BatchSet {
        return pipe.skip_at_batch_size(params);
    }
    let (size, method) = if pipe.sizes == SizeSource::BatchPending {
        let size = pipe.set_batch_size(params)?;
        pipe.form = ImageForm::Array;
        (ResizeTo::Exact(size), ResizeMethod::BATCH)
    } else {
        let size = params.width_first("size")?;
        let short = params.whole_above_zero("resize_short")?;
        let returns_array = params.flag("return_numpy", true)?;
        let method = pipe.resize_method(params)?;
        pipe.form = match (method.backend, returns_array) {
            (ResizeBackend::Pil, false) => ImageForm::Picture,
            (ResizeBackend::Pil, true) => ImageForm::Array,
            (ResizeBackend::Cv2, _) => pipe.form,
        };
        let size = match (short, size) {
            (Some(side), _) => ResizeTo::Shorter(side),
            (None, Some(size)) => ResizeTo::Exact(size),
            (None, None) => return Err(params.mistake_at("size", "needs size or resize_short")),
        };
        (size, method)
    };
    let op = Resize {
        size: Some(size),
        max_size: None,
        interpolation: method.interpolation,
        antialias: method.antialias,
        rounding: match size {
            ResizeTo::Shorter(_) => LengthRounding::Nearest,
            // Nothing is rounded.
            ResizeTo::Exact(_) => LengthRounding::Down,
        },
    };
    pipe.push_resize(op, &method);
    Ok(())
}

pub(crate) fn rand_crop_image(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.needs_array(params)?;
    pipe.keeps_stages(params)?;
    if pipe.sizes != SizeSource::Own {
        let size = pipe.set_batch_size(params)?;
        pipe.push(BoundedResizedCrop::new(size));
        return Ok(());
    }
    stages::progress_size(params, pipe)?;
    let size = params.width_first("size")?;
    let log = params.flag("use_log_aspect", false)?;
    let (method, other) = pipe.resize_method_or(params)?;
    let op = BoundedResizedCrop {
        size: required(params, size)?,
        scale: params.span("scale")?.unwrap_or(Span(0.08, 1.0)),
        ratio: params.span("ratio")?.unwrap_or(Span(3.0 / 4.0, 4.0 / 3.0)),
        aspect: if log {
            AspectDistribution::Log
        } else {
            AspectDistribution::Uniform
        },
        interpolation: method.interpolation,
        interpolation_or: other,
        antialias: method.antialias,
    };
    // Floats if one of both is bicubic. They do not harm the other.
    let widest = ResizeMethod::of(method.backend, other.unwrap_or(method.interpolation));
    pipe.push_resize(op, &widest);
    Ok(())
}

pub(crate) fn crop_image(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.keeps_stages(params)?;
    if pipe.sizes != SizeSource::Own {
        return pipe.skip_at_batch_size(params);
    }
    pipe.needs_array(params)?;
    let size = params.width_first("size")?;
    let size = required(params, size)?;
    pipe.push(CenterCrop {
        // For a smaller image, PaddleClas returns a part of another size.
        pad_if_needed: false,
        rounding: LengthRounding::Down,
        ..CenterCrop::new(size)
    });
    Ok(())
}

/// From a later PaddleClas than 2.4.0, the version that everything else follows.
pub(crate) fn crop_image_at_ratio(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.needs_array(params)?;
    pipe.may_set_size(params)?;
    let required = |params: &mut ConfigParams<'_>, name| {
        let value = params.whole(name)?;
        value.ok_or_else(|| params.missing(name))
    };
    let (size, pad) = (required(params, "size")?, required(params, "pad")?);
    let interpolation = interpolation(params, ResizeBackend::Cv2, InterpolationMode::Bilinear)?;
    if size == 0 {
        return Err(params.mistake_at("size", "size is 0: use at least 1"));
    }
    pipe.push(CenterCrop {
        rounding: LengthRounding::Down,
        ..CenterCrop::at_ratio(f64::from(size) / (f64::from(size) + f64::from(pad)))
    });
    let method = ResizeMethod::of(ResizeBackend::Cv2, interpolation);
    let op = Resize {
        interpolation: method.interpolation,
        antialias: method.antialias,
        ..Resize::exact(size, size)
    };
    pipe.push_resize(op, &method);
    Ok(())
}

pub(crate) fn rand_crop_image_v2(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.note(
        params,
        "PaddleClas may draw a place one row too low. Here all places lie inside",
    );
    place(params, pipe)
}

pub(crate) fn random_crop_image(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_array(params)?;
    place(params, pipe)
}

/// PaddleClas has no such operation. Its config for UReID uses it, with the size in the order of
/// PaddleClas' own operations.
pub(crate) fn random_crop(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.note(
        params,
        "PaddleClas does not have it and fails with a NameError. Read as RandomCropImage, whose \
         size is width, height",
    );
    if params.flag("pad_if_needed", false)? {
        return Err(params.mistake_at(
            "pad_if_needed",
            "pad_if_needed is true: use false, and a Pad before it",
        ));
    }
    random_crop_image(params, pipe)
}

fn place(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    let size = params.width_first("size")?;
    let size = required(params, size)?;
    pipe.push(RandomCrop::new(size));
    Ok(())
}

pub(crate) fn rand_flip_image(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    let code = params.number_or("flip_code", 1.0)?;
    if pipe.chw {
        pipe.needs_levels(params)?;
    }
    if code != 1.0 && matches!(pipe.form, ImageForm::Picture | ImageForm::Either) {
        // PaddleClas ignores the code for Pillow images.
        if !pipe.holds_picture(params)? || ![0.0, -1.0].contains(&code) {
            return Err(params.mistake_at("flip_code", format_args!("flip_code is {code}: use 1")));
        }
        pipe.note(
            params,
            "PaddleClas flips Pillow images left to right for every flip_code. So does \
             featherload",
        );
        pipe.push(RandomHorizontalFlip { p: 0.5 });
        return Ok(());
    }
    match code {
        1.0 => pipe.push(RandomHorizontalFlip { p: 0.5 }),
        0.0 => pipe.push(RandomVerticalFlip { p: 0.5 }),
        _ => {
            return Err(params.mistake_at(
                "flip_code",
                format_args!("flip_code is {code}: use 1 (left and right) or 0"),
            ));
        }
    }
    Ok(())
}

/// paddle.vision's rotation with a probability, by OpenCV on arrays.
pub(crate) fn random_rotation(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    params.ignore(&["keys"]);
    pipe.needs_array(params)?;
    pipe.needs_bytes(params)?;
    let p = params.probability("prob", 0.5)?;
    let degrees = match params.numbers("degrees")?.as_deref() {
        None => Span(-90.0, 90.0),
        Some(&[most]) if most >= 0.0 => Span(-most, most),
        Some(&[low, high]) => Span(low, high),
        _ => {
            return Err(
                params.mistake_at("degrees", "degrees must be 0 or more, or [lowest, highest]")
            );
        }
    };
    let interpolation = params.choice("interpolation", &PLAIN_FILTERS)?;
    if p == 0.0 {
        pipe.note(params, "prob is 0, so it is left out");
        return Ok(());
    }
    pipe.push(RandomRotation {
        interpolation: interpolation.unwrap_or(InterpolationMode::Bilinear),
        p,
        style: RotationStyle::Opencv,
        ..RandomRotation::new(degrees)
    });
    Ok(())
}

/// NumPy's `rot90` with 0 to 3 turns.
pub(crate) fn random_rot90(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    if pipe.chw {
        pipe.needs_levels(params)?;
    }
    let is_label = |key: LabelKey<'_>| ROT90_KEYS.contains(&key.name);
    let label = pipe.label_key.is_some_and(is_label);
    pipe.needs_array(params)?;
    // Stages have square sizes, which quarter turns keep.
    if pipe.stages.is_empty() {
        pipe.may_set_size(params)?;
    }
    pipe.push(RandomRotate90 { label });
    Ok(())
}

pub(crate) fn random_horizontal_flip(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    params.ignore(&["keys"]);
    let p = params.probability("prob", 0.5)?;
    if pipe.chw {
        pipe.needs_levels(params)?;
    }
    if p > 0.0 {
        pipe.push(RandomHorizontalFlip { p });
    }
    Ok(())
}

pub(crate) fn required(params: &ConfigParams<'_>, size: Option<Size>) -> ConfigResult<Size> {
    size.ok_or_else(|| params.missing("size"))
}

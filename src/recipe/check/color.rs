//! Operations on the values of pixels, and which of them those values allow.

use super::numbers::{finite, probability, range};
use super::{Known, Values};
use crate::recipe::ops::{
    ColorJitter, ColorSpace, ConvertColor, CropWithPadding, Erasing, GaussianBlur, Grayscale,
    JitterStyle, PcaLighting, RandomErasing, RandomGrayscale,
};

/// Most that a colour may be multiplied by.
const MAX_FACTOR: f64 = 1000.0;

/// Most boxes that erasing may draw.
const MAX_ATTEMPTS: u32 = 1000;

impl Known {
    pub(super) fn color_jitter(&mut self, o: &ColorJitter) -> Result<(), String> {
        self.is_levels_of_rgb("changes colours of rgb levels")?;
        if o.style == JitterStyle::Pillow {
            self.is_rgb8()
                .map_err(|why| format!("{why}, or leave out style: pillow"))?;
        }
        probability(o.p)?;
        range("brightness", o.brightness, 0.0, MAX_FACTOR)?;
        range("contrast", o.contrast, 0.0, MAX_FACTOR)?;
        range("saturation", o.saturation, 0.0, MAX_FACTOR)?;
        range("hue", o.hue, -0.5, 0.5)?;
        Ok(())
    }

    pub(super) fn grayscale(&mut self, o: &Grayscale) -> Result<(), String> {
        self.is_levels_of_rgb("is made from rgb levels")?;
        if !matches!(o.num_output_channels, 1 | 3) {
            return Err(format!(
                "num_output_channels is {}, it must be 1 or 3",
                o.num_output_channels
            ));
        }
        self.channels = o.num_output_channels;
        Ok(())
    }

    pub(super) fn random_grayscale(&mut self, o: &RandomGrayscale) -> Result<(), String> {
        self.is_levels_of_rgb("is made from rgb levels")?;
        probability(o.p)?;
        Ok(())
    }

    pub(super) fn convert_color(&mut self, o: &ConvertColor) -> Result<(), String> {
        self.is_levels_of_rgb("leads away from rgb levels")?;
        if self.channels == 1 {
            return Err("needs three channels, and the pictures are grey".into());
        }
        self.is_rgb = false;
        self.bgr = false;
        self.floats = true;
        if o.to != ColorSpace::Ycbcr {
            self.values = Values::Color(o.to);
        }
        Ok(())
    }

    /// Noise along the axes of red, green and blue can be added.
    pub(super) fn pca_lighting(&self, o: &PcaLighting) -> Result<(), String> {
        self.is_levels_of_rgb("adds to levels of red, green and blue")?;
        if self.channels == 1 {
            return Err("needs three channels, and the pictures are grey".into());
        }
        if !(0.0..=MAX_FACTOR).contains(&o.std) {
            return Err(format!(
                "std is {}, it must lie between 0 and {MAX_FACTOR}",
                o.std
            ));
        }
        if !(o.unit > 0.0 && o.unit <= MAX_FACTOR) {
            return Err(format!(
                "unit is {}, it must lie above 0, at most {MAX_FACTOR}: 255 for eigenvalues of \
                 colours from 0 to 1, 1 for those of levels",
                o.unit
            ));
        }
        let numbers = o
            .eigenvectors
            .iter()
            .flatten()
            .map(|v| ("eigenvectors", *v));
        let mut numbers = numbers.chain(o.eigenvalues.map(|v| ("eigenvalues", v)));
        match numbers.find(|(_, v)| v.is_nan() || v.abs() > MAX_FACTOR) {
            None => Ok(()),
            Some((what, v)) => Err(format!(
                "{what} hold {v}, they must lie between -{MAX_FACTOR} and {MAX_FACTOR}"
            )),
        }
    }

    pub(super) fn gaussian_blur(&mut self, o: &GaussianBlur) -> Result<(), String> {
        let k = o.kernel_size;
        for side in [k.height, k.width] {
            if side % 2 == 0 || side > 255 {
                return Err(format!(
                    "kernel_size is {k}, both must be odd and at most 255"
                ));
            }
        }
        range("sigma", o.sigma, 0.0, 1000.0)?;
        Ok(())
    }

    pub(super) fn random_erasing(&mut self, o: &RandomErasing) -> Result<(), String> {
        probability(o.p)?;
        range("scale", o.scale, 0.0, 1.0)?;
        range("ratio", o.ratio, 0.0, f64::MAX)?;
        if !(1..=MAX_ATTEMPTS).contains(&o.attempts) {
            return Err(format!(
                "attempts is {}, it must lie between 1 and {MAX_ATTEMPTS}",
                o.attempts
            ));
        }
        match (o.value, self.values) {
            (Erasing::Value(v), _) => self.color("value", v.0)?,
            (Erasing::Random, Values::Color(space)) => {
                return Err(format!(
                    "value 'random' is made for levels and for normalized pixels, not for \
                     {}: give a number, or put it behind normalize",
                    space.name()
                ));
            }
            (Erasing::Random, _) => {}
        }
        Ok(())
    }

    pub(super) fn crop_with_padding(&mut self, o: &CropWithPadding) -> Result<(), String> {
        probability(o.p)?;
        range("scale", o.scale, 0.0, 1.0)?;
        range("ratio", o.ratio, 0.0, f64::MAX)?;
        self.color("value", o.value.0)
    }

    /// A colour for these pictures: three values where they have three channels.
    pub(super) fn color(&self, what: &str, v: [f32; 3]) -> Result<(), String> {
        finite(what, &v)?;
        if self.channels == 1 && !(v[0] == v[1] && v[1] == v[2]) {
            return Err(format!(
                "{what} has three values, and the pictures are grey: give one"
            ));
        }
        Ok(())
    }

    /// Pillow's arithmetic works on bytes of red, green and blue.
    pub(super) fn is_rgb8(&self) -> Result<(), String> {
        let what = "works on 8-bit levels of red, green and blue";
        self.is_levels_of_rgb(what)?;
        let why = match (self.floats, self.channels, self.bgr) {
            (true, _, _) => "stands behind a cast to floats: move it in front of that",
            (_, 1, _) => {
                "the pictures are grey: decode them to rgb, and give grayscale \
                 num_output_channels: 3"
            }
            (_, _, true) => "blue is first: leave out color: bgr of decode",
            _ => return Ok(()),
        };
        Err(format!("{what}, and {why}"))
    }

    fn is_levels_of_rgb(&self, what: &str) -> Result<(), String> {
        match (self.values, self.is_rgb) {
            (Values::Levels, true) => Ok(()),
            (Values::Normalized, _) => Err(format!(
                "{what}, and stands behind normalize: move it in front of that"
            )),
            _ => Err(format!(
                "{what}, and stands behind convert_color: move it in front of that"
            )),
        }
    }
}

impl ColorSpace {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Hsv => "hsv",
            Self::Ycbcr => "ycbcr",
        }
    }
}

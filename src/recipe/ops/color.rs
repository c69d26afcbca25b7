//! Operations that change the values of pixels where they stand.

use serde::{Deserialize, Serialize};

use super::values::{Aspect, ColorSpace, Erasing, JitterStyle, PerChannel, Size, Span, WhitePoint};

/// With probability `p`: brightness, contrast, saturation and hue, each by a
/// factor uniform in its range, in random order (or in this one). A number b
/// is the range max(0, 1 - b) to 1 + b, for hue -b to b.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ColorJitter {
    #[serde(deserialize_with = "Span::around_one")]
    pub brightness: Span,
    #[serde(deserialize_with = "Span::around_one")]
    pub contrast: Span,
    #[serde(deserialize_with = "Span::around_one")]
    pub saturation: Span,
    /// As a part of the colour circle, -0.5 to 0.5.
    #[serde(deserialize_with = "Span::around_zero")]
    pub hue: Span,
    pub p: f64,
    pub random_order: bool,
    pub style: JitterStyle,
}

/// To grey: 0.2989 R + 0.587 G + 0.114 B, in one channel or three equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grayscale {
    pub num_output_channels: u8,
}

/// To grey with probability `p`; the number of channels stays.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomGrayscale {
    pub p: f64,
}

/// To another colour space, in `f32`. Ranges are those of [`ColorSpace`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvertColor {
    pub to: ColorSpace,
    /// Of `lab`.
    #[serde(default)]
    pub white_point: WhitePoint,
}

/// AlexNet's colour noise, the same on every pixel of a picture: to red, green and
/// blue is added `unit * eigenvectors * (eigenvalues * alpha)`, where three alphas
/// are drawn from the normal distribution of mean 0 and deviation `std`. In `u8`
/// levels stay whole and within 0 to 255; behind a cast to floats neither.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PcaLighting {
    pub std: f64,
    /// Deviation of the data set's colours along each axis, in `unit`s.
    pub eigenvalues: [f64; 3],
    /// Rows are red, green and blue; columns are the axes.
    pub eigenvectors: [[f64; 3]; 3],
    /// Levels in 1: 255 where colours are meant as parts of 1, as they usually are;
    /// 1 where levels are.
    pub unit: f64,
}

/// A Gaussian of `kernel_size` (odd; height, width) with a deviation uniform in
/// `sigma`, pixels; edges are reflected, as in torchvision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GaussianBlur {
    pub kernel_size: Size,
    #[serde(default = "GaussianBlur::default_sigma")]
    pub sigma: Span,
}

/// With probability `p` a box of random area (part of the image's) and aspect
/// ratio (height by width), at a random place, becomes `value`. Behind
/// `normalize` the value is one of the normalised pixels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomErasing {
    pub p: f64,
    pub scale: Span,
    pub ratio: Span,
    /// `log`, as torchvision, or `uniform`.
    pub aspect: Aspect,
    /// Boxes that are drawn until one fits; with none that does nothing is erased.
    pub attempts: u32,
    pub value: Erasing,
}

/// With probability `p` the pixels of a random box stay, and everything around it
/// becomes `value`; the size stays (PaddleClas' `CropWithPadding`). The box is
/// `random_resized_crop`'s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CropWithPadding {
    pub p: f64,
    /// Range of the box's area as a part of the image's.
    pub scale: Span,
    /// Range of the box's width divided by its height.
    pub ratio: Span,
    pub value: PerChannel,
}

/// Changes nothing.
impl Default for ColorJitter {
    fn default() -> Self {
        Self {
            brightness: Span(1.0, 1.0),
            contrast: Span(1.0, 1.0),
            saturation: Span(1.0, 1.0),
            hue: Span(0.0, 0.0),
            p: 1.0,
            random_order: true,
            style: JitterStyle::Tensor,
        }
    }
}

impl Default for PcaLighting {
    /// Those of ImageNet, in parts of 1; deviation 0.1.
    fn default() -> Self {
        Self {
            std: 0.1,
            eigenvalues: [0.2175, 0.0188, 0.0045],
            eigenvectors: [
                [-0.5675, 0.7192, 0.4009],
                [-0.5808, -0.0045, -0.8140],
                [-0.5836, -0.6948, 0.4203],
            ],
            unit: 255.0,
        }
    }
}

impl PcaLighting {
    /// What is added to red, green and blue.
    pub(crate) fn noise(&self, alpha: [f64; 3]) -> [f32; 3] {
        self.eigenvectors.map(|row| {
            let along = row.iter().zip(alpha).zip(self.eigenvalues);
            let sum: f64 = along
                .map(|((axis, alpha), value)| axis * alpha * value)
                .sum();
            (self.unit * sum) as f32
        })
    }
}

/// One channel.
impl Default for Grayscale {
    fn default() -> Self {
        Self {
            num_output_channels: 1,
        }
    }
}

impl Default for RandomGrayscale {
    fn default() -> Self {
        Self { p: 0.1 }
    }
}

impl ConvertColor {
    pub fn new(to: ColorSpace) -> Self {
        Self {
            to,
            white_point: WhitePoint::default(),
        }
    }
}

impl GaussianBlur {
    fn default_sigma() -> Span {
        Span(0.1, 2.0)
    }

    pub fn new(kernel_size: impl Into<Size>) -> Self {
        Self {
            kernel_size: kernel_size.into(),
            sigma: Self::default_sigma(),
        }
    }
}

impl Default for RandomErasing {
    fn default() -> Self {
        Self {
            p: 0.5,
            scale: Span(0.02, 0.33),
            ratio: Span(0.3, 3.3),
            aspect: Aspect::Log,
            attempts: 10,
            value: Erasing::default(),
        }
    }
}

/// Always, black; scale 0.08 to 1, ratio 3/4 to 4/3.
impl Default for CropWithPadding {
    fn default() -> Self {
        Self {
            p: 1.0,
            scale: Span(0.08, 1.0),
            ratio: Span(3.0 / 4.0, 4.0 / 3.0),
            value: PerChannel::default(),
        }
    }
}

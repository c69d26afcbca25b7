//! Formats of boxes, and conversions between them.

use crate::recipe::Size;

/// The four numbers of a box, in pixels. Coordinates are continuous: a box of the whole picture is
/// 0, 0, width, height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BoxFormat {
    /// Left, top, right, bottom: Pascal VOC, torchvision.
    #[default]
    Xyxy,
    /// Left, top, width, height: COCO.
    Xywh,
    /// Centre, width, height: YOLO and DETR, which store shares of the picture's sides.
    Cxcywh,
}

impl BoxFormat {
    /// Left, top, right and bottom of a box in this format.
    #[must_use]
    pub fn to_xyxy(self, [a, b, c, d]: [f64; 4]) -> [f64; 4] {
        match self {
            Self::Xyxy => [a, b, c, d],
            Self::Xywh => [a, b, a + c, b + d],
            Self::Cxcywh => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
        }
    }

    /// A box of left, top, right and bottom in this format.
    #[must_use]
    pub fn from_xyxy(self, [x0, y0, x1, y1]: [f64; 4]) -> [f64; 4] {
        let (width, height) = (x1 - x0, y1 - y0);
        match self {
            Self::Xyxy => [x0, y0, x1, y1],
            Self::Xywh => [x0, y0, width, height],
            Self::Cxcywh => [x0 + width / 2.0, y0 + height / 2.0, width, height],
        }
    }
}

/// The four numbers of a box as shares of a picture's sides, 0 to 1 inside it.
#[must_use]
pub fn normalized_box(values: [f64; 4], size: Size) -> [f64; 4] {
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let [a, b, c, d] = values;
    [a / width, b / height, c / width, d / height]
}

/// The four numbers of a box in pixels, from shares of a picture's sides.
#[must_use]
pub fn box_in_pixels(values: [f64; 4], size: Size) -> [f64; 4] {
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let [a, b, c, d] = values;
    [a * width, b * height, c * width, d * height]
}

//! Draws text, lines and images.

use std::convert::Infallible;

use embedded_graphics::Pixel;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle, iso_8859_1};
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{Line, PrimitiveStyle, Rectangle};
use embedded_graphics::text::Text;
use image::RgbImage;
use image::imageops;

/// A colour.
pub type InkColor = Rgb888;

/// Font sizes: main text, and small text.
pub const LARGE: MonoFont<'static> = iso_8859_1::FONT_8X13_BOLD;
pub const SMALL: MonoFont<'static> = iso_8859_1::FONT_6X13;

pub struct SheetCanvas(pub RgbImage);

impl SheetCanvas {
    pub fn new(width: u32, height: u32, paper: InkColor) -> Self {
        let paper = image::Rgb([paper.r(), paper.g(), paper.b()]);
        Self(RgbImage::from_pixel(width, height, paper))
    }

    /// Draws a line of text with its upper left corner there. Letters missing from the font are
    /// `?`.
    pub fn text(&mut self, font: &MonoFont<'_>, ink: InkColor, (x, y): (u32, u32), words: &str) {
        let style = MonoTextStyle::new(font, ink);
        let at = point((x, y + font.baseline));
        let _ = Text::new(words, at, style).draw(self);
    }

    /// Draws a closed line through these points, clipped to a part of the image.
    pub fn outline(&mut self, ink: InkColor, places: &[(f64, f64)], within: (u32, u32, u32, u32)) {
        let (x, y, width, height) = within;
        let part = Rectangle::new(point((x, y)), Size::new(width, height));
        let mut part = self.clipped(&part);
        let style = PrimitiveStyle::with_stroke(ink, 2);
        let rounded = |(x, y): (f64, f64)| Point::new(x.round() as i32, y.round() as i32);
        for (i, from) in places.iter().enumerate() {
            let to = places[(i + 1) % places.len()];
            let line = Line::new(rounded(*from), rounded(to));
            let _ = line.into_styled(style).draw(&mut part);
        }
    }

    pub fn fill(&mut self, ink: InkColor, (x, y, width, height): (u32, u32, u32, u32)) {
        let part = Rectangle::new(point((x, y)), Size::new(width, height));
        let _ = self.fill_solid(&part, ink);
    }

    pub fn picture(&mut self, (x, y): (u32, u32), picture: &RgbImage) {
        imageops::replace(&mut self.0, picture, i64::from(x), i64::from(y));
    }
}

fn point((x, y): (u32, u32)) -> Point {
    Point::new(x as i32, y as i32)
}

impl OriginDimensions for SheetCanvas {
    fn size(&self) -> Size {
        Size::new(self.0.width(), self.0.height())
    }
}

impl DrawTarget for SheetCanvas {
    type Color = InkColor;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<InkColor>>>(
        &mut self,
        all: I,
    ) -> Result<(), Infallible> {
        for Pixel(at, ink) in all {
            let (Ok(x), Ok(y)) = (u32::try_from(at.x), u32::try_from(at.y)) else {
                continue;
            };
            if let Some(pixel) = self.0.get_pixel_mut_checked(x, y) {
                *pixel = image::Rgb([ink.r(), ink.g(), ink.b()]);
            }
        }
        Ok(())
    }
}

//! Lays originals and draws out as one picture: one line for each sample, with text under it. Each
//! draw of several crops has a line of its own.

use std::ops::Range;

use embedded_graphics::mono_font::MonoFont;
use image::RgbImage;
use image::imageops::{FilterType, resize};
use serde::Serialize;

use super::canvas::{InkColor, LARGE, SMALL, SheetCanvas};
use super::samples::{PreviewSample, SampleDraw, SamplePreview};

use crate::chart::fitted;
use crate::output::fields::wrapped;

/// Most draws or crops in one line.
const MOST_IN_LINE: usize = 16;

const GAP: u32 = 14;
/// Frame around a draw, in the colour of its box.
const FRAME: u32 = 3;
/// Most lines of small text under an image.
const SAID: usize = 4;
const LINE: u32 = 15;

// Readable on white and on black pages.
const PAPER: InkColor = InkColor::new(0xf4, 0xf5, 0xf6);
const INK: InkColor = InkColor::new(0x1f, 0x23, 0x28);
const SOFT: InkColor = InkColor::new(0x59, 0x63, 0x6e);
const PLATE: InkColor = InkColor::new(0x3a, 0x42, 0x4c);
const ON_PLATE: InkColor = InkColor::new(0xff, 0xff, 0xff);
const BAD: InkColor = InkColor::new(0xd5, 0x5e, 0x00);

/// Okabe and Ito's colours, which colour-blind people can distinguish.
const DRAWS: [InkColor; 7] = [
    InkColor::new(0x00, 0x72, 0xb2),
    InkColor::new(0xe6, 0x9f, 0x00),
    InkColor::new(0x00, 0x9e, 0x73),
    InkColor::new(0xcc, 0x79, 0xa7),
    InkColor::new(0x56, 0xb4, 0xe9),
    InkColor::new(0xd5, 0x5e, 0x00),
    InkColor::new(0xf0, 0xe4, 0x42),
];

/// Position of an image: left, top, width, height.
type Place = (u32, u32, u32, u32);

/// Positions of a sample's images. Field names are part of the `--json` format.
#[derive(Serialize)]
pub struct PlacedImage {
    pub original_at: Place,
    /// Scale: pixels of the picture for one pixel of the original.
    pub scale: f64,
    pub draws_at: Vec<Place>,
}

/// An image at its displayed size.
struct Shown {
    picture: RgbImage,
    scale: f64,
}

impl Shown {
    /// Scaled down if a side is longer than `side`. Small images are scaled up by a whole factor.
    fn of(picture: &RgbImage, side: u32) -> Self {
        let (width, height) = picture.dimensions();
        let longer = width.max(height).max(1);
        let to = |scale: f64| {
            let [w, h] = [width, height].map(|s| (f64::from(s) * scale).round().max(1.0) as u32);
            (w, h)
        };
        match side / longer {
            0 => {
                let scale = f64::from(side) / f64::from(longer);
                let (w, h) = to(scale);
                Self {
                    picture: resize(picture, w, h, FilterType::Triangle),
                    scale,
                }
            }
            1 => Self {
                picture: picture.clone(),
                scale: 1.0,
            },
            times => {
                let (w, h) = to(f64::from(times));
                Self {
                    picture: resize(picture, w, h, FilterType::Nearest),
                    scale: f64::from(times),
                }
            }
        }
    }
}

/// The draws of each line. A draw of several crops begins a line.
fn lines_of(draws: &[SampleDraw]) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut begin = 0;
    for (i, draw) in draws.iter().enumerate().skip(1) {
        if draw.crop == Some(0) || i - begin == MOST_IN_LINE {
            lines.push(begin..i);
            begin = i;
        }
    }
    lines.push(begin..draws.len());
    lines
}

/// The picture, and the positions in it.
pub fn draw(preview: &SamplePreview, side: u32) -> (RgbImage, Vec<PlacedImage>) {
    let cell = side + 2 * FRAME;
    let lines: Vec<Line<'_>> = preview
        .samples
        .iter()
        .map(|sample| Line::new(sample, side))
        .collect();
    let rows = lines.iter().flat_map(|line| &line.rows);
    let columns = 1 + rows.map(|row| row.draws.len()).max().unwrap_or(0) as u32;
    let width = GAP + columns * (cell + GAP);
    let head = GAP + 2 * LINE + 8;
    let height = head + lines.iter().map(|line| line.height + GAP).sum::<u32>();
    let mut canvas = SheetCanvas::new(width, height, PAPER);
    let title = format!(
        "{} | {} | seed {}",
        preview.source, preview.recipe, preview.seed
    );
    let at = (GAP, GAP);
    canvas.text(
        &LARGE,
        INK,
        at,
        &fitted(&ascii(&title), letters(&LARGE, width - 2 * GAP)),
    );
    let what = "the original with the box of each draw, then the draws as the model gets them";
    let what = fitted(what, letters(&SMALL, width - 2 * GAP));
    canvas.text(&SMALL, SOFT, (GAP, GAP + LINE + 4), &ascii(&what));
    let mut top = head;
    let mut placed = Vec::new();
    for line in &lines {
        placed.push(line.draw(&mut canvas, top, side));
        top += line.height + GAP;
    }
    (canvas.0, placed)
}

/// The contents of the lines of one sample.
struct Line<'a> {
    sample: &'a PreviewSample,
    original: Option<Shown>,
    draws: Vec<Option<Shown>>,
    rows: Vec<DrawRow>,
    /// Height with the text.
    height: u32,
}

/// Draws beside each other. The first of a sample's also has its original.
struct DrawRow {
    draws: Range<usize>,
    /// Height of the images.
    tallest: u32,
    /// Height with the text.
    height: u32,
}

impl<'a> Line<'a> {
    fn new(sample: &'a PreviewSample, side: u32) -> Self {
        let shown = |picture: &Option<RgbImage>| picture.as_ref().map(|p| Shown::of(p, side));
        let original = shown(&sample.original);
        let draws: Vec<_> = sample.draws.iter().map(|d| shown(&d.picture)).collect();
        let rows: Vec<DrawRow> = lines_of(&sample.draws)
            .into_iter()
            .enumerate()
            .map(|(number, of)| {
                // The original has three lines of text.
                let first = (number == 0).then_some((&original, 3));
                let texts = sample.draws[of.clone()].iter();
                let texts = texts.map(|draw| draw_lines(draw, side).len());
                let images = || draws[of.clone()].iter();
                let heights = first.iter().map(|(shown, _)| *shown).chain(images());
                let heights =
                    heights.map(|shown| shown.as_ref().map_or(side / 2, |s| s.picture.height()));
                let tallest = heights.max().unwrap_or(0);
                let tall = |(shown, lines): (&Option<Shown>, usize)| {
                    let height = shown.as_ref().map_or(tallest, |s| s.picture.height());
                    height + 2 * FRAME + 4 + lines as u32 * LINE
                };
                let height = first.into_iter().chain(images().zip(texts)).map(tall);
                let height = height.max().unwrap_or(0);
                DrawRow {
                    draws: of,
                    tallest,
                    height,
                }
            })
            .collect();
        let gaps = GAP * (rows.len() as u32).saturating_sub(1);
        let height = gaps + rows.iter().map(|row| row.height).sum::<u32>();
        Self {
            sample,
            original,
            draws,
            rows,
            height,
        }
    }

    fn draw(&self, canvas: &mut SheetCanvas, top: u32, side: u32) -> PlacedImage {
        let cell = side + 2 * FRAME;
        // Text is placed directly under its own image.
        let below = |place: Place, line: usize| place.1 + place.3 + FRAME + 4 + line as u32 * LINE;
        let at = (GAP + FRAME, top + FRAME);
        let scale = self.original.as_ref().map_or(1.0, |shown| shown.scale);
        let original_at = match &self.original {
            Some(shown) => {
                canvas.picture(at, &shown.picture);
                let place = (at.0, at.1, shown.picture.width(), shown.picture.height());
                self.outlines(canvas, place, scale);
                place
            }
            None => {
                let tallest = self.rows.first().map_or(side / 2, |row| row.tallest);
                self.plate(canvas, (at.0, at.1, side, tallest), &self.sample.fault)
            }
        };
        for (i, (words, font)) in self.sample_lines(side).into_iter().enumerate() {
            let at = (GAP + FRAME, below(original_at, i));
            let ink = if i == 0 { INK } else { SOFT };
            canvas.text(font, ink, at, &words);
        }
        let mut draws_at = Vec::new();
        let mut top = top;
        for row in &self.rows {
            for (column, i) in row.draws.clone().enumerate() {
                let (draw, shown) = (&self.sample.draws[i], &self.draws[i]);
                let left = GAP + (column as u32 + 1) * (cell + GAP);
                let (x, y) = (left + FRAME, top + FRAME);
                let place = match shown {
                    Some(shown) => {
                        let (width, height) = shown.picture.dimensions();
                        let frame = (left, top, width + 2 * FRAME, height + 2 * FRAME);
                        canvas.fill(color(i), frame);
                        canvas.picture((x, y), &shown.picture);
                        (x, y, width, height)
                    }
                    None => self.plate(canvas, (x, y, side, row.tallest), &draw.fault),
                };
                draws_at.push(place);
                for (i, (words, ink)) in draw_lines(draw, side).into_iter().enumerate() {
                    canvas.text(&SMALL, ink, (x, below(place, i)), &words);
                }
            }
            top += row.height + GAP;
        }
        PlacedImage {
            original_at,
            scale,
            draws_at,
        }
    }

    /// Draws the crops of all draws on the original, each in its colour.
    fn outlines(&self, canvas: &mut SheetCanvas, place: Place, scale: f64) {
        let (left, top, width, height) = place;
        // Parts beyond the original are drawn at its edge.
        let within = (
            left - FRAME,
            top - FRAME,
            width + 2 * FRAME,
            height + 2 * FRAME,
        );
        for (i, draw) in self.sample.draws.iter().enumerate() {
            let Some(corners) = &draw.corners else {
                continue;
            };
            let places =
                corners.map(|[x, y]| (f64::from(left) + x * scale, f64::from(top) + y * scale));
            canvas.outline(color(i), &places, within);
        }
    }

    /// Replaces a missing image: shows the reason.
    fn plate(&self, canvas: &mut SheetCanvas, place: Place, why: &Option<String>) -> Place {
        let (x, y, width, height) = place;
        canvas.fill(PLATE, place);
        canvas.fill(BAD, (x, y, width, 4));
        let why = why.as_deref().unwrap_or("no pixels");
        let lines = wrapped(&ascii(why), letters(&SMALL, width - 16));
        let most = (height.saturating_sub(34) / LINE) as usize;
        canvas.text(&LARGE, ON_PLATE, (x + 8, y + 12), "failed");
        for (i, line) in lines.iter().take(most).enumerate() {
            let at = (x + 8, y + 30 + i as u32 * LINE);
            let line = fitted(line, letters(&SMALL, width - 16));
            canvas.text(&SMALL, ON_PLATE, at, &ascii(&line));
        }
        place
    }

    /// Id, label, size and path.
    fn sample_lines(&self, side: u32) -> Vec<(String, &'static MonoFont<'static>)> {
        let sample = self.sample;
        let label = sample.label.as_deref().unwrap_or("no label");
        let fit = |words: String, font| ascii(&fitted(&ascii(&words), letters(font, side)));
        let path = sample.path.to_string_lossy();
        // The end of a path is more useful than its start.
        let most = letters(&SMALL, side);
        let path = match path.chars().count().checked_sub(most) {
            None | Some(0) => path.into_owned(),
            Some(over) => format!("..{}", path.chars().skip(over + 2).collect::<String>()),
        };
        let mut lines = vec![(fit(format!("{}  {label}", sample.id), &LARGE), &LARGE)];
        if let Some((width, height)) = sample.size {
            lines.push((fit(format!("{width} x {height}"), &SMALL), &SMALL));
        }
        lines.push((ascii(&path), &SMALL));
        lines
    }
}

/// Text under a draw: the number of its crop, its label if it differs, and the drawn values.
fn draw_lines(draw: &SampleDraw, side: u32) -> Vec<(String, InkColor)> {
    let most = letters(&SMALL, side);
    let label = draw
        .label
        .iter()
        .flat_map(|label| wrapped(&ascii(label), most));
    let crop = draw.crop.map(|crop| format!("crop {crop}"));
    let words = crop.into_iter().chain(label);
    let mut lines: Vec<(String, InkColor)> = words.map(|words| (words, INK)).collect();
    let said = wrapped(&draw.said.join(", "), most);
    let more = said.len() > SAID;
    lines.extend(said.into_iter().take(SAID).map(|words| (words, SOFT)));
    if let Some((last, _)) = lines.last_mut().filter(|_| more) {
        last.push_str(" ...");
    }
    lines
        .into_iter()
        .map(|(words, ink)| (ascii(&fitted(&words, most)), ink))
        .collect()
}

fn color(draw: usize) -> InkColor {
    DRAWS[draw % DRAWS.len()]
}

/// Number of letters that fit this width in pixels.
fn letters(font: &MonoFont<'_>, width: u32) -> usize {
    (width / (font.character_size.width + font.character_spacing)) as usize
}

/// The font has Latin letters, so the ellipsis is three dots.
fn ascii(words: &str) -> String {
    words.replace('\u{2026}', "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(crops: impl Iterator<Item = Option<usize>>) -> Vec<SampleDraw> {
        let draw = |crop| SampleDraw {
            crop,
            said: vec!["flip".to_owned()],
            ..SampleDraw::default()
        };
        crops.map(draw).collect()
    }

    #[test]
    fn each_draw_of_crops_has_its_lines_and_each_crop_its_number() {
        let of_crops = draws((0..3).flat_map(|_| (0..10).map(Some)));
        assert_eq!(lines_of(&of_crops), [0..10, 10..20, 20..30]);
        let words: Vec<String> = draw_lines(&of_crops[12], 224)
            .into_iter()
            .map(|(words, _)| words)
            .collect();
        assert_eq!(words, ["crop 2", "flip"]);
        // Draws without crops follow each other, and many crops take several lines.
        let alone = lines_of(&draws((0..17).map(|_| None)));
        assert_eq!(alone, [0..16, 16..17]);
        assert_eq!(lines_of(&draws((0..40).map(Some))), [0..16, 16..32, 32..40]);
        assert_eq!(lines_of(&[]).len(), 1);
        assert_eq!(draw_lines(&draws([None].into_iter())[0], 224).len(), 1);
    }
}

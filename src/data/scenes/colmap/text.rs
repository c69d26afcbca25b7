//! COLMAP's text models: `cameras.txt`, `images.txt`, `points3D.txt`.
//!
//! In the consumer. Lines that are not needed, such as the 2D points of an image, are
//! stepped over without being held.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::str::FromStr;

use crate::data::scenes::colmap::image::{MOST_IMAGES, ModelImage};
use crate::data::scenes::colmap::models::{self, ModelCamera};
use crate::data::scenes::keys::unopened;
use crate::data::scenes::points::{MOST_POINTS, Points};
use crate::error::{Error, Result};
use crate::sys::regular;

/// Of a line that is needed, more is no text model. Tracks of points may be longer:
/// what is behind it is dropped.
const MOST_LINE: usize = 64 << 10;

/// The lines of a text file.
struct Lines<'a> {
    path: &'a Path,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let (file, _) = regular::open(path).map_err(|e| unopened(path, &e))?;
        Ok(Self {
            path,
            file: BufReader::with_capacity(1 << 16, file),
            line: Vec::new(),
            number: 0,
        })
    }

    /// Reads a line, of which it keeps at most `keep` bytes; false at the end.
    fn read(&mut self, keep: usize) -> Result<bool> {
        self.line.clear();
        let mut any = false;
        loop {
            let bytes = self
                .file
                .fill_buf()
                .map_err(|e| Error::io_at("read", self.path, e))?;
            if bytes.is_empty() {
                self.number += u64::from(any);
                return Ok(any);
            }
            any = true;
            let end = bytes.iter().position(|&b| b == b'\n');
            let line = &bytes[..end.unwrap_or(bytes.len())];
            let room = keep - self.line.len();
            self.line.extend_from_slice(&line[..line.len().min(room)]);
            let used = line.len() + usize::from(end.is_some());
            self.file.consume(used);
            if end.is_some() {
                self.number += 1;
                return Ok(true);
            }
        }
    }

    /// The next line that is no comment and not empty, and its number.
    fn next(&mut self) -> Result<Option<(&str, u64)>> {
        while self.read(MOST_LINE)? {
            let line = self.line.trim_ascii();
            if !line.is_empty() && line[0] != b'#' {
                // Borrowed again: the compiler does not see that the loop ends here.
                let number = self.number;
                let text = std::str::from_utf8(self.line.trim_ascii()).map_err(|_| {
                    Error::dataset_line(self.path, number, "not UTF-8: is this a text model?")
                })?;
                return Ok(Some((text, number)));
            }
        }
        Ok(None)
    }

    /// Steps over one line, whatever it holds.
    fn skip(&mut self) -> Result<bool> {
        self.read(0)
    }
}

/// The fields of a line.
struct Fields<'a> {
    path: &'a Path,
    number: u64,
    rest: &'a str,
}

impl<'a> Fields<'a> {
    fn error(&self, what: impl Into<String>) -> Error {
        Error::dataset_line(self.path, self.number, what)
    }

    fn word(&mut self, name: &str) -> Result<&'a str> {
        let rest = self.rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        match word.is_empty() {
            false => Ok(word),
            true => Err(self.error(format!("{name}: missing; the line is cut off"))),
        }
    }

    fn number<T: FromStr>(&mut self, name: &str) -> Result<T> {
        let word = self.word(name)?;
        word.parse()
            .map_err(|_| self.error(format!("{name}: {word:?} is not such a number")))
    }

    fn numbers<const N: usize>(&mut self, names: [&str; N]) -> Result<[f64; N]> {
        let mut numbers = [0.0; N];
        for (number, name) in numbers.iter_mut().zip(names) {
            *number = self.number(name)?;
        }
        Ok(numbers)
    }
}

/// Calls `with` with every line that is not empty and its number.
pub(super) fn each_line(path: &Path, with: &mut dyn FnMut(&str, u64) -> Result<()>) -> Result<()> {
    let mut lines = Lines::open(path)?;
    while let Some((line, number)) = lines.next()? {
        with(line, number)?;
    }
    Ok(())
}

pub(super) fn cameras(path: &Path) -> Result<HashMap<u32, ModelCamera>> {
    let mut cameras = HashMap::new();
    each_line(path, &mut |line, number| {
        let mut fields = Fields {
            path,
            number,
            rest: line,
        };
        let id = fields.number("CAMERA_ID")?;
        let model = fields.word("MODEL")?;
        let (model, count) = models::by_name(model).ok_or_else(|| {
            fields.error(format!(
                "MODEL: COLMAP camera model {model:?} is unknown: undistort the images (colmap \
                 image_undistorter)"
            ))
        })?;
        let width = fields.number("WIDTH")?;
        let height = fields.number("HEIGHT")?;
        let mut parameters = Vec::with_capacity(count);
        for _ in 0..count {
            parameters.push(fields.number("PARAMS[]")?);
        }
        let camera = ModelCamera {
            file: path.to_owned(),
            id,
            model,
            width,
            height,
            parameters,
        };
        match cameras.insert(id, camera) {
            None => Ok(()),
            Some(_) => Err(fields.error(format!("CAMERA_ID: a second camera {id}"))),
        }
    })?;
    Ok(cameras)
}

/// The images, and what is odd about their number.
pub(super) fn images(path: &Path) -> Result<(Vec<ModelImage>, Option<String>)> {
    let mut lines = Lines::open(path)?;
    let mut images = Vec::new();
    let said = said_images(path)?;
    while let Some((line, number)) = lines.next()? {
        let mut fields = Fields {
            path,
            number,
            rest: line,
        };
        let id: u32 = fields.number("IMAGE_ID")?;
        let quaternion = fields.numbers(["QW", "QX", "QY", "QZ"])?;
        let translation = fields.numbers(["TX", "TY", "TZ"])?;
        let camera = fields.number("CAMERA_ID")?;
        // Names may have blanks.
        let name = fields.rest.trim().to_owned();
        if name.is_empty() {
            return Err(fields.error("NAME: missing; the line is cut off"));
        }
        if images.len() as u64 == MOST_IMAGES {
            return Err(fields.error(format!("more than {MOST_IMAGES} images")));
        }
        images.push(ModelImage {
            id,
            quaternion,
            translation,
            camera,
            name,
            at: format!("line {number}"),
        });
        lines.skip()?;
    }
    let note = said
        .filter(|&said| said != images.len() as u64)
        .map(|said| {
            format!(
                "images.txt announces {said} images and has {}: it was cut off or edited",
                images.len()
            )
        });
    Ok((images, note))
}

/// How many images a comment in front of them speaks of.
fn said_images(path: &Path) -> Result<Option<u64>> {
    let mut lines = Lines::open(path)?;
    while lines.read(MOST_LINE)? && lines.line.starts_with(b"#") {
        let text = String::from_utf8_lossy(&lines.line);
        if let Some((_, count)) = text.split_once("Number of images:") {
            let count = count.split(',').next().unwrap_or_default();
            return Ok(count.trim().parse().ok());
        }
    }
    Ok(None)
}

pub(super) fn points(path: &Path) -> Result<Points> {
    let mut points = Points::default();
    each_line(path, &mut |line, number| {
        let mut fields = Fields {
            path,
            number,
            rest: line,
        };
        let _id: u64 = fields.number("POINT3D_ID")?;
        let place = fields.numbers(["X", "Y", "Z"])?;
        if place.iter().any(|value| !value.is_finite()) {
            return Err(fields.error("X, Y, Z: not numbers"));
        }
        let colour = [
            fields.number("R")?,
            fields.number("G")?,
            fields.number("B")?,
        ];
        if points.xyz.len() as u64 == MOST_POINTS {
            return Err(fields.error(format!("more than {MOST_POINTS} points")));
        }
        points.xyz.push(place.map(|value| value as f32));
        points.rgb.push(colour);
        Ok(())
    })?;
    Ok(points)
}

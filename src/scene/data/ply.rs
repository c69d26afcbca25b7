//! Point clouds of PLY files: ascii and `binary_little_endian`.
//!
//! Runs in the consumer. Reads x, y, z and red, green, blue of any scalar type, and skips other
//! properties. Checks counts against the file's length before it uses them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::{Error, Result};
use crate::scene::data::bounds::{self, quoted};
use crate::scene::data::point_cloud::{MOST_POINTS, PointCloud, check_memory};
use crate::scene::data::transforms_keys::open_error;
use crate::sys::regular_file;

/// Longest line of a header and of an ascii point, in bytes.
const MOST_LINE: u64 = 4096;

/// Most lines of a header.
const MOST_LINES: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
}

impl Scalar {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "char" | "int8" => Self::I8,
            "uchar" | "uint8" => Self::U8,
            "short" | "int16" => Self::I16,
            "ushort" | "uint16" => Self::U16,
            "int" | "int32" => Self::I32,
            "uint" | "uint32" => Self::U32,
            "float" | "float32" => Self::F32,
            "double" | "float64" => Self::F64,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Its value at the start of `bytes`, which must be long enough.
    fn value(self, bytes: &[u8]) -> f64 {
        fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
            let mut first = [0; N];
            first.copy_from_slice(&bytes[..N]);
            first
        }
        match self {
            Self::I8 => f64::from(bytes[0] as i8),
            Self::U8 => f64::from(bytes[0]),
            Self::I16 => f64::from(i16::from_le_bytes(first(bytes))),
            Self::U16 => f64::from(u16::from_le_bytes(first(bytes))),
            Self::I32 => f64::from(i32::from_le_bytes(first(bytes))),
            Self::U32 => f64::from(u32::from_le_bytes(first(bytes))),
            Self::F32 => f64::from(f32::from_le_bytes(first(bytes))),
            Self::F64 => f64::from_le_bytes(first(bytes)),
        }
    }

    /// Converts a colour to a byte: floats are 0 to 1; of 16 bits, the high byte counts.
    fn colour(self, value: f64) -> u8 {
        match self {
            Self::F32 | Self::F64 => (value * 255.0) as u8,
            Self::I16 | Self::U16 => (value / 256.0) as u8,
            _ => value as u8,
        }
    }
}

/// A property of a point: its type, and its offset in a binary point.
#[derive(Debug, Clone, Copy)]
struct Property {
    scalar: Scalar,
    at: usize,
    column: usize,
}

/// Content of the header.
#[derive(Debug)]
struct Header {
    is_ascii: bool,
    points: u64,
    xyz: [Property; 3],
    rgb: Option<[Property; 3]>,
    /// Bytes of a binary point.
    stride: usize,
    columns: usize,
}

pub(super) fn read(path: &Path) -> Result<PointCloud> {
    let (file, len) = regular_file::open(path).map_err(|e| open_error(path, &e))?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut used = 0;
    let header = header(path, &mut file, &mut used)?;
    let least = match header.is_ascii {
        // At least a digit and a separator per column. The last line may lack its end.
        true => 2 * header.columns as u64,
        false => header.stride as u64,
    };
    let most = (len - used.min(len) + u64::from(header.is_ascii)) / least;
    if header.points > most || header.points > MOST_POINTS {
        return Err(Error::dataset(
            path,
            format!(
                "element vertex {}, and the rest of the file holds at most {}: it is cut off",
                header.points,
                most.min(MOST_POINTS)
            ),
        ));
    }
    check_memory(path, header.points)?;
    let mut points = PointCloud::default();
    let mut point = vec![0; header.stride];
    let mut values = Vec::with_capacity(header.columns);
    let mut line = Vec::new();
    for number in 0..header.points {
        let take = |property: Property, values: &[f64], point: &[u8]| match header.is_ascii {
            true => values[property.column],
            false => property.scalar.value(&point[property.at..]),
        };
        if header.is_ascii {
            ascii(
                path,
                &mut file,
                &mut line,
                &mut values,
                header.columns,
                number,
            )?;
        } else {
            file.read_exact(&mut point)
                .map_err(|e| Error::io_at("read", path, e))?;
        }
        let place = header.xyz.map(|property| take(property, &values, &point));
        if !bounds::is_place(place) {
            let what = format!("point {number}: its coordinates {place:?} do not fit float32");
            return Err(Error::dataset(path, what));
        }
        let colour = |rgb: [Property; 3]| rgb.map(|p| p.scalar.colour(take(p, &values, &point)));
        points.push(header.points, place, header.rgb.map(colour));
    }
    Ok(points)
}

/// Reads the numbers of the next line that is not empty.
fn ascii(
    path: &Path,
    file: &mut BufReader<File>,
    line: &mut Vec<u8>,
    values: &mut Vec<f64>,
    columns: usize,
    number: u64,
) -> Result<()> {
    let error = |what: &str| Error::dataset(path, format!("point {number}: {what}"));
    loop {
        line.clear();
        let read = file
            .take(MOST_LINE)
            .read_until(b'\n', line)
            .map_err(|e| Error::io_at("read", path, e))?;
        if read == 0 {
            return Err(error("cut off before it"));
        }
        let text = std::str::from_utf8(line).map_err(|_| error("not text, in an ascii file"))?;
        values.clear();
        for word in text.split_ascii_whitespace() {
            let value = word.parse();
            values.push(value.map_err(|_| error(&format!("{} is not a number", quoted(word))))?);
        }
        match values.len() {
            0 => {}
            n if n >= columns => return Ok(()),
            n => return Err(error(&format!("{n} numbers, and {columns} are expected"))),
        }
    }
}

fn header(path: &Path, file: &mut BufReader<File>, used: &mut u64) -> Result<Header> {
    let error = |what: String| Error::dataset(path, what);
    let mut is_ascii = None;
    let mut points = None;
    let mut in_points = false;
    let mut named: Vec<(String, Property)> = Vec::new();
    let mut stride = 0;
    for number in 0..MOST_LINES {
        let mut line = Vec::new();
        let read = file
            .take(MOST_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|e| Error::io_at("read", path, e))?;
        *used += read as u64;
        if number == 0 && line.trim_ascii() != b"ply" {
            return Err(error(
                "not a PLY file: its first line is not \"ply\"".into(),
            ));
        }
        if !line.ends_with(b"\n") {
            return Err(error("cut off in the header: no end_header".into()));
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["format", "ascii", ..] => is_ascii = Some(true),
            ["format", "binary_little_endian", ..] => is_ascii = Some(false),
            ["format", other, ..] => {
                return Err(error(format!(
                    "format {other}: write it as binary_little_endian or ascii"
                )));
            }
            ["element", "vertex", count] => {
                let count: u64 = count
                    .parse()
                    .map_err(|_| error(format!("element vertex {count}: not a count")))?;
                points = Some(count);
                in_points = true;
            }
            ["element", other, ..] => {
                if points.is_none() {
                    return Err(error(format!(
                        "element {other} before the vertices: write the vertices first"
                    )));
                }
                in_points = false;
            }
            ["property", "list", ..] if in_points => {
                return Err(error("a list as a property of vertices".into()));
            }
            ["property", scalar, name] if in_points => {
                let scalar = Scalar::named(scalar)
                    .ok_or_else(|| error(format!("property {scalar} {name}: unknown type")))?;
                let property = Property {
                    scalar,
                    at: stride,
                    column: named.len(),
                };
                stride += scalar.bytes();
                named.push(((*name).to_owned(), property));
            }
            ["end_header"] => {
                let is_ascii = is_ascii.ok_or_else(|| error("no format".into()))?;
                let points = points.ok_or_else(|| error("no element vertex".into()))?;
                let find = |name: &str| {
                    let found = named.iter().find(|(known, _)| known == name);
                    found.map(|(_, property)| *property)
                };
                let place = |name: &str| {
                    find(name).ok_or_else(|| error(format!("vertices have no property {name}")))
                };
                let xyz = [place("x")?, place("y")?, place("z")?];
                let rgb = match ["red", "green", "blue"].map(find) {
                    [Some(r), Some(g), Some(b)] => Some([r, g, b]),
                    _ => None,
                };
                return Ok(Header {
                    is_ascii,
                    points,
                    xyz,
                    rgb,
                    stride,
                    columns: named.len(),
                });
            }
            _ => {}
        }
    }
    Err(error(format!("no end_header within {MOST_LINES} lines")))
}

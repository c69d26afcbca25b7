//! For tests of untrusted bytes: the parsers, without files, processes or rings, and the golden
//! files. Not part of the API. Needs the feature `internals`.
//!
//! Nothing is decided here: each function hands on to the one that workers run.

use std::io::Cursor;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{ffi, fs};

use crate::data::shard;
use crate::data::shard::walk::HeaderWalk;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::raster_rule::RasterRule;
use crate::jobs::sample::raster_maker::RasterMaker;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::order::PositionRandom;
use crate::picture::raster::RasterReader;
use crate::picture::{FileFormat, PictureLimits, jpeg, read_header};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::{
    Decode, RandomHorizontalFlip, RandomResizedCrop, Recipe, RowExtent, SampleProgram,
};

/// Width and height, as the file's pixels lie and as they are to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderSizes {
    pub stored: (u32, u32),
    pub upright: (u32, u32),
}

/// The format that the content shows.
pub fn format(bytes: &[u8]) -> Result<FileFormat, SampleFault> {
    FileFormat::of(bytes)
}

/// The header as a survey of a data set reads it: in pieces.
pub fn surveyed(bytes: &[u8]) -> Result<HeaderSizes, SampleFault> {
    let header =
        read_header::read_header_within(&mut Cursor::new(bytes), &PictureLimits::default())?;
    Ok(HeaderSizes {
        stored: header.stored_size,
        upright: header.upright_size(),
    })
}

/// The header as a worker reads it: from the whole file.
pub fn opened(bytes: &[u8], max_pixels: u64, max_scratch: u64) -> Result<HeaderSizes, SampleFault> {
    let limits = PictureLimits {
        max_pixels,
        max_scratch,
    };
    let (stored, orientation) = match FileFormat::of(bytes)? {
        FileFormat::Jpeg => {
            let header = jpeg::read_header(bytes)?;
            limits.check_pixels("JPEG", (header.width, header.height))?;
            ((header.width, header.height), header.orientation)
        }
        format => {
            let picture = RasterReader::open(format, bytes, &limits)?;
            (picture.size(), picture.orientation())
        }
    };
    Ok(HeaderSizes {
        stored,
        upright: orientation.apply_to_size(stored),
    })
}

/// Pixels of a window as RGB, or why there are none.
pub type WindowPixels = Result<Vec<u8>, SampleFault>;

/// The JPEG decoder in each form that this processor has.
#[derive(Debug)]
pub struct JpegForms {
    decoder: jpeg::JpegDecoder,
    forms: Vec<(&'static str, jpeg::JpegScratch)>,
}

impl JpegForms {
    pub fn new(max_pixels: u64, max_scratch: u64) -> Self {
        let limits = PictureLimits {
            max_pixels,
            max_scratch,
        };
        Self {
            decoder: jpeg::JpegDecoder::new(&limits),
            forms: jpeg::JpegScratch::of_each_form(),
        }
    }

    /// Width and height at 1/`denominator` (1, 2, 4 or 8).
    pub fn size(bytes: &[u8], denominator: u32) -> Result<(u32, u32), SampleFault> {
        let header = jpeg::read_header(bytes)?;
        let scale = jpeg::DecodeScale::of_denominator(denominator);
        Ok(scale.of_size((header.width, header.height)))
    }

    /// A window `[x, y, width, height]` of the picture at that scale, by each form.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        denominator: u32,
        [x, y, w, h]: [u32; 4],
    ) -> Vec<(&'static str, WindowPixels)> {
        let scale = jpeg::DecodeScale::of_denominator(denominator);
        let want = jpeg::PixelRegion { x, y, w, h };
        let decode = |(name, scratch): &mut (&'static str, jpeg::JpegScratch)| {
            let decoded = jpeg::read_header(bytes).and_then(|header| {
                let decoder = &self.decoder;
                decoder.decode_region(bytes, &header, scale, want, scratch)
            });
            let pixels = decoded.map(|decoded| {
                let rows = scratch.rgb.chunks(decoded.stride);
                let rows = rows.skip((y - decoded.y) as usize).take(h as usize);
                let start = 3 * (x - decoded.x) as usize;
                let mut pixels = Vec::with_capacity(3 * w as usize * h as usize);
                for row in rows {
                    pixels.extend_from_slice(&row[start..start + 3 * w as usize]);
                }
                pixels
            });
            (*name, pixels)
        };
        self.forms.iter_mut().map(decode).collect()
    }

    /// Seconds that each form takes for a window of the full size, without a copy of its pixels.
    pub fn seconds(&mut self, bytes: &[u8], [x, y, w, h]: [u32; 4]) -> Vec<(&'static str, f64)> {
        let want = jpeg::PixelRegion { x, y, w, h };
        let decode = |(name, scratch): &mut (&'static str, jpeg::JpegScratch)| {
            let start = std::time::Instant::now();
            let decoded = jpeg::read_header(bytes).and_then(|header| {
                let decoder = &self.decoder;
                decoder.decode_region(bytes, &header, jpeg::DecodeScale::Full, want, scratch)
            });
            let seconds = start.elapsed().as_secs_f64();
            (*name, if decoded.is_ok() { seconds } else { f64::MAX })
        };
        self.forms.iter_mut().map(decode).collect()
    }
}

/// A member of a shard: its name, where its data begin, and how many they are.
pub type ListedMember = (Vec<u8>, u64, u64);

/// The members of the shard at `path`, in its order, and the bytes that are lost.
pub fn members(path: &Path) -> Result<(Vec<ListedMember>, u64)> {
    let (file, len) = shard::open(path)?;
    let mut walk = HeaderWalk::new(&file, len);
    let mut members = Vec::new();
    while let Some(m) = walk.next().map_err(|e| Error::io_at("read", path, e))? {
        members.push((m.name, m.data_at, m.size));
    }
    Ok((members, walk.finish().lost))
}

/// The file `name` of a set of goldens: `tests/goldens/SET.tar`.
pub fn golden(set: &str, name: &str) -> Result<Vec<u8>> {
    let (path, tar) = golden_set(set)?;
    let (members, _) = members(&path)?;
    let member = members.into_iter().find(|(n, ..)| n == name.as_bytes());
    let (_, at, size) =
        member.ok_or_else(|| Error::dataset(&path, format!("there is no '{name}' in it")))?;
    Ok(tar[at as usize..][..size as usize].to_vec())
}

/// Writes the files of a set into the folder `to`.
pub fn unpack_goldens(set: &str, to: &Path) -> Result<()> {
    let (path, tar) = golden_set(set)?;
    for (name, at, size) in members(&path)?.0 {
        let file = to.join(ffi::OsStr::from_bytes(&name));
        let folder = file.parent().unwrap_or(to);
        fs::create_dir_all(folder).map_err(|e| Error::io_at("create", folder, e))?;
        fs::write(&file, &tar[at as usize..][..size as usize])
            .map_err(|e| Error::io_at("write", &file, e))?;
    }
    Ok(())
}

fn golden_set(set: &str) -> Result<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let path = folder.join(format!("{set}.tar"));
    let bytes = fs::read(&path).map_err(|e| Error::io_at("read", &path, e))?;
    Ok((path, bytes))
}

/// What a worker keeps from raster to raster, for images of one size and a recipe that crops and
/// flips them.
#[derive(Debug)]
pub struct RasterDecoder {
    maker: RasterMaker,
    rule: RasterRule,
    program: SampleProgram,
}

impl RasterDecoder {
    /// Height and width of images.
    pub const IMAGE: (u32, u32) = (6, 8);

    pub fn new(rule: &RasterRule, max_pixels: u64, max_scratch: u64) -> Result<Self> {
        let recipe = Recipe::new("rasters")
            .then(Decode::default())
            .then(RandomResizedCrop::new((5, 7)))
            .then(RandomHorizontalFlip::default());
        let program = SampleProgram::compile(&recipe)?;
        let limits = PictureLimits {
            max_pixels,
            max_scratch,
        };
        Ok(Self {
            maker: RasterMaker::new(&program, rule, &limits)?,
            rule: rule.clone(),
            program,
        })
    }

    /// The raster of position `position` of the first epoch, from the bytes of a file.
    pub fn make(&mut self, bytes: &[u8], position: u64) -> Result<Vec<u8>, SampleFault> {
        let request = RowRequest {
            random: &PositionRandom::new(0, 0, position),
            size: None,
            part: None,
            boxes: None,
            check_size: &|_| Ok(()),
        };
        let section = self.rule.section(&self.program);
        let mut raster = vec![0; section.bytes(self.program.extent.of((0, 0))) as usize];
        let meter = &mut StageMeter::default();
        self.maker
            .make(bytes, Self::IMAGE, &request, &mut raster, meter)?;
        Ok(raster)
    }
}

/// What a worker keeps from sample to sample.
#[derive(Debug)]
pub struct RowDecoder {
    inner: SampleDecoder,
    program: SampleProgram,
}

impl RowDecoder {
    pub fn new(recipe: &Recipe, max_pixels: u64, max_scratch: u64) -> Result<Self> {
        let program = SampleProgram::compile(recipe)?;
        let limits = PictureLimits {
            max_pixels,
            max_scratch,
        };
        Ok(Self {
            inner: SampleDecoder::new(&program, &limits)?,
            program,
        })
    }

    /// Bytes of a row of a slot; none when rows have sizes of their own.
    pub fn row_bytes(&self) -> Option<usize> {
        match self.program.extent {
            RowExtent::Fixed { height, width } => {
                Some(self.program.row_bytes((height, width)) as usize)
            }
            RowExtent::Own | RowExtent::Patches(_) => None,
        }
    }

    /// Fills `row` from the bytes of a file, with the parameters of position
    /// `position` of the first epoch. A picture that has no room is not admitted.
    pub fn fill(&mut self, bytes: &[u8], position: u64, row: &mut [u8]) -> Result<(), SampleFault> {
        let room = row.len() as u64;
        let program = &self.program;
        let admit = |size| {
            if program.extent.is_of_data() && program.picture_row_bytes(size) > room {
                return Err(SampleFault::new(FaultKind::TooLarge, "no room in the row"));
            }
            Ok(())
        };
        let request = RowRequest {
            random: &PositionRandom::new(0, 0, position),
            size: None,
            part: None,
            boxes: None,
            check_size: &admit,
        };
        self.inner
            .make_row(bytes, &request, row, &mut StageMeter::default())
    }
}

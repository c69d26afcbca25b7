//! Unpacks strips and tiles to the bytes of their samples.
//!
//! Pure. `decode` handles JPEG, because JPEG holds pixels.

use std::io::{Cursor, Read};

use flate2::read::ZlibDecoder;
use image_webp::WebPDecoder;
use ruzstd::decoding::StreamingDecoder;
use weezl::{BitOrder, LzwStatus};

use super::fault::{corrupt, truncated, unsupported};
use super::fax::{self, FaxCoding};
use crate::error::{FaultKind, SampleFault};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TiffCompression {
    None,
    Fax(FaxCoding),
    Lzw,
    Jpeg,
    Deflate,
    PackBits,
    Zstd,
    WebP,
}

impl TiffCompression {
    pub(super) fn of(code: u64) -> Result<Self, SampleFault> {
        let name = match code {
            1 => return Ok(Self::None),
            2 => return Ok(Self::Fax(FaxCoding::Runs)),
            3 => return Ok(Self::Fax(FaxCoding::Group3)),
            4 => return Ok(Self::Fax(FaxCoding::Group4)),
            5 => return Ok(Self::Lzw),
            7 => return Ok(Self::Jpeg),
            8 | 32946 => return Ok(Self::Deflate),
            32773 => return Ok(Self::PackBits),
            50000 => return Ok(Self::Zstd),
            50001 => return Ok(Self::WebP),
            6 => "JPEG of the old kind",
            32771 => "word-aligned fax rows",
            32809 => "ThunderScan",
            32909 => "PixarLog",
            34661 => "JBIG",
            34676 | 34677 => "SGILog",
            33003 | 33005 | 34712 => "JPEG 2000",
            34887 => "LERC",
            34925 => "LZMA",
            50002 | 52546 => "JPEG XL",
            code => return Err(unsupported(format!("compression {code}"))),
        };
        Err(unsupported(format!("{name} inside (compression {code})")))
    }

    /// Maximum bytes for unpacking a chunk, besides the chunk.
    pub(super) fn extra_bytes(self, chunk: u64, pixels: u64) -> u64 {
        const STATE: u64 = 1 << 20;
        match self {
            Self::None | Self::PackBits => 0,
            Self::Fax(_) | Self::Lzw | Self::Deflate => STATE,
            // Its window grows by doubling.
            Self::Zstd => 2 * chunk.max(LEAST_WINDOW) + 2 * STATE,
            // Its planes or second frame, and a frame of its own.
            Self::WebP => 14 * pixels + STATE,
            // RGB, and the four channels that it may come from.
            Self::Jpeg => 7 * pixels + STATE,
        }
    }
}

/// A window of this size is allowed even for small pictures.
const LEAST_WINDOW: u64 = 8 << 20;

/// The properties of a chunk that unpacking needs.
pub(super) struct ChunkShape {
    pub(super) width: u32,
    pub(super) rows: u32,
    pub(super) samples: u16,
    pub(super) fax_options: u64,
}

/// Fills `to` with the unpacked `data`.
pub(super) fn unpack(
    compression: TiffCompression,
    chunk: &ChunkShape,
    data: &[u8],
    to: &mut [u8],
) -> Result<(), SampleFault> {
    match compression {
        TiffCompression::None => copy(data, to),
        TiffCompression::PackBits => unpack_runs(data, to),
        TiffCompression::Lzw => unpack_lzw(data, to),
        TiffCompression::Deflate => fill(ZlibDecoder::new(data), to),
        TiffCompression::Fax(kind) => fax::unpack(kind, chunk.fax_options, chunk.width, data, to),
        TiffCompression::Zstd => {
            check_window(data, to.len() as u64)?;
            fill(StreamingDecoder::new(data).map_err(corrupt)?, to)
        }
        TiffCompression::WebP => unpack_webp(chunk, data, to),
        TiffCompression::Jpeg => Err(unsupported("JPEG inside")),
    }
}

fn short(found: usize, to: &[u8]) -> SampleFault {
    truncated(format!(
        "a strip or tile holds {found} bytes of {} when it is unpacked",
        to.len()
    ))
}

fn copy(data: &[u8], to: &mut [u8]) -> Result<(), SampleFault> {
    let Some(data) = data.get(..to.len()) else {
        return Err(short(data.len(), to));
    };
    to.copy_from_slice(data);
    Ok(())
}

fn fill(mut from: impl Read, to: &mut [u8]) -> Result<(), SampleFault> {
    let mut filled = 0;
    while filled < to.len() {
        match from.read(&mut to[filled..]) {
            Ok(0) => return Err(short(filled, to)),
            Ok(read) => filled += read,
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(short(filled, to));
            }
            Err(e) => return Err(corrupt(e)),
        }
    }
    Ok(())
}

fn unpack_runs(data: &[u8], to: &mut [u8]) -> Result<(), SampleFault> {
    let (mut at, mut filled) = (0, 0);
    while filled < to.len() {
        let Some(&count) = data.get(at) else {
            return Err(short(filled, to));
        };
        at += 1;
        match count as i8 {
            -128 => {}
            count @ 0.. => {
                let run = (count as usize + 1).min(to.len() - filled);
                let Some(bytes) = data.get(at..at + run) else {
                    return Err(short(filled, to));
                };
                to[filled..filled + run].copy_from_slice(bytes);
                at += count as usize + 1;
                filled += run;
            }
            count => {
                let run = (1 - isize::from(count)) as usize;
                let run = run.min(to.len() - filled);
                let Some(&byte) = data.get(at) else {
                    return Err(short(filled, to));
                };
                to[filled..filled + run].fill(byte);
                at += 1;
                filled += run;
            }
        }
    }
    Ok(())
}

fn unpack_lzw(mut data: &[u8], to: &mut [u8]) -> Result<(), SampleFault> {
    let mut unpacker = weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
    let mut filled = 0;
    while filled < to.len() {
        let done = unpacker.decode_bytes(data, &mut to[filled..]);
        data = &data[done.consumed_in..];
        filled += done.consumed_out;
        match done.status.map_err(corrupt)? {
            LzwStatus::Ok if done.consumed_in + done.consumed_out > 0 => {}
            _ if filled == to.len() => {}
            LzwStatus::Ok | LzwStatus::NoProgress | LzwStatus::Done => {
                return Err(short(filled, to));
            }
        }
    }
    Ok(())
}

/// A frame may request a window of any length, which is allocated before a byte is unpacked.
fn check_window(data: &[u8], chunk: u64) -> Result<(), SampleFault> {
    let number = |at: usize, bytes: usize| {
        let bytes = data.get(at..at + bytes).unwrap_or_default();
        bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
    };
    let flags = number(4, 1) as u8;
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let window = match flags & 0x20 {
        0 => {
            let field = number(5, 1);
            let base = 1u64 << (10 + (field >> 3));
            base + base / 8 * (field & 7)
        }
        _ => match flags >> 6 {
            0 => number(5 + dictionary, 1),
            1 => number(5 + dictionary, 2) + 256,
            2 => number(5 + dictionary, 4),
            _ => number(5 + dictionary, 8),
        },
    };
    let most = chunk.max(LEAST_WINDOW);
    if window <= most {
        return Ok(());
    }
    Err(FaultKind::TooLarge.fault(format!(
        "TIFF: Zstandard with a window of {window} bytes, over {most}: write it again"
    )))
}

fn unpack_webp(chunk: &ChunkShape, data: &[u8], to: &mut [u8]) -> Result<(), SampleFault> {
    let mut picture = WebPDecoder::new(Cursor::new(data)).map_err(corrupt)?;
    let (width, height) = picture.dimensions();
    if width != chunk.width || height < chunk.rows {
        return Err(corrupt(format!(
            "WebP of {width} x {height} in a strip or tile of {} x {}",
            chunk.width, chunk.rows
        )));
    }
    let channels = if picture.has_alpha() { 4 } else { 3 };
    let pixels = u64::from(width) * u64::from(height);
    if pixels > 2 * u64::from(chunk.width) * u64::from(chunk.rows) || pixels > 1 << 30 {
        return Err(corrupt(format!(
            "WebP of {width} x {height} in a strip or tile"
        )));
    }
    let mut frame = vec![0; channels * pixels as usize];
    picture.read_image(&mut frame).map_err(corrupt)?;
    let samples = usize::from(chunk.samples);
    let pixels = frame.chunks_exact(channels);
    for (to, pixel) in to.chunks_exact_mut(samples).zip(pixels) {
        for (i, to) in to.iter_mut().enumerate() {
            *to = pixel.get(i).copied().unwrap_or(255);
        }
    }
    Ok(())
}

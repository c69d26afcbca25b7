//! Packed pages: byte ranges of a file that are unpacked before they are read.
//!
//! A page of a Parquet file is compressed, and so may be a buffer of an Arrow file. A page of a CIFAR
//! batch is one image, stored as three colour planes. Workers unpack pages. The consumer also
//! unpacks pages if it reads headers, makes an index or has zero workers. All decompressors are
//! written in Rust. Without the feature `parquet` there are none, and a compressed page is a fault.
//! Not in this file: memory maps, and the meaning of the unpacked bytes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::data::frame_header::{FRAME_HEADER, MOST_LZ4, ZstdHeader, lz4_bytes, zstd_bytes};
use crate::error::{FaultKind, SampleFault};
use crate::picture::npy;
#[cfg(feature = "parquet")]
use crate::sys::panics::catch_panic;

/// The largest page in bytes, both packed and unpacked.
pub(crate) const MOST_PAGE: u64 = 512 << 20;

/// The largest window of Zstandard that its decoder accepts. A window is cut to the length of its
/// page.
pub(crate) const MOST_WINDOW: u64 = 128 << 20;

/// How a page is packed. The sealed index stores these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageCodec {
    Snappy = 1,
    Gzip = 2,
    Lz4 = 3,
    Zstd = 4,
    /// A CIFAR image: a red plane of 32 x 32 bytes, then a green and a blue one.
    Planar = 5,
    /// Like `Planar`, but each byte is stored as a UTF-8 character.
    PlanarText = 6,
    // 7 means raw pixels in the sealed index.
    /// Frames of LZ4, where `Lz4` is one block.
    Lz4Frame = 8,
}

/// The height and width of a CIFAR image.
const SIDE: usize = 32;
/// Bytes of a CIFAR image after it is unpacked to a NumPy array.
pub(crate) const PLANAR_BYTES: u64 = (npy::HEADER_BYTES + 3 * SIDE * SIDE) as u64;

impl PageCodec {
    /// The codec of a number in a sealed index.
    pub(crate) fn of(number: u64) -> Option<Self> {
        let all = [
            Self::Snappy,
            Self::Gzip,
            Self::Lz4,
            Self::Zstd,
            Self::Planar,
            Self::PlanarText,
            Self::Lz4Frame,
        ];
        all.into_iter().find(|codec| *codec as u64 == number)
    }
}

/// A byte range of a file that must be unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedPage {
    /// Offset in its file.
    pub(crate) at: u64,
    /// Bytes in its file.
    pub(crate) packed: u64,
    /// Bytes after it is unpacked.
    pub(crate) unpacked: u64,
    pub(crate) codec: PageCodec,
    /// Most bytes that its decoder keeps beside the unpacked page.
    beside: u64,
}

impl PackedPage {
    /// A page whose frame may have any header. So its decoder is assumed to keep the most that it
    /// may keep.
    pub(crate) fn new(at: u64, packed: u64, unpacked: u64, codec: PageCodec) -> Self {
        let beside = match codec {
            PageCodec::Zstd => zstd_bytes(unpacked, unpacked),
            PageCodec::Lz4Frame => MOST_LZ4,
            _ => 0,
        };
        Self {
            at,
            packed,
            unpacked,
            codec,
            beside,
        }
    }

    /// The same with the memory that its frame needs, by the first bytes of the frame.
    pub(crate) fn with_header(self, begin: &[u8]) -> Self {
        let begin = match usize::try_from(self.packed) {
            Ok(packed) => &begin[..begin.len().min(packed)],
            Err(_) => begin,
        };
        let found = match self.codec {
            PageCodec::Zstd => {
                ZstdHeader::parse(begin).map(|header| zstd_bytes(header.window, self.unpacked))
            }
            PageCodec::Lz4Frame => lz4_bytes(begin),
            _ => None,
        };
        let beside = found.unwrap_or(self.beside);
        Self { beside, ..self }
    }

    /// Like [`PackedPage::with_header`], with the bytes of the file. A file that cannot be read has
    /// no header: reading the page reports it.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    pub(crate) fn with_header_in(self, file: &File) -> Self {
        let mut begin = [0; FRAME_HEADER];
        match self.codec {
            PageCodec::Zstd | PageCodec::Lz4Frame => {
                let read = file.read_at(&mut begin, self.at).unwrap_or(0);
                self.with_header(&begin[..read])
            }
            _ => self,
        }
    }

    /// The most bytes of memory that the page takes while it is unpacked, without its packed bytes.
    /// The decoder of Zstandard keeps a window, at most the page. That of LZ4 frames keeps two
    /// blocks and a packed one.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.unpacked.saturating_add(self.beside)
    }

    /// Replaces the content of `out` by the unpacked page: `self.unpacked` bytes. Allocates that
    /// number of bytes, and the memory that the decompressor needs.
    ///
    /// # Errors
    /// The bytes are not such a page, or the page is over [`MOST_PAGE`].
    pub(crate) fn unpack(&self, packed: &[u8], out: &mut Vec<u8>) -> Result<(), SampleFault> {
        out.clear();
        if self.unpacked > MOST_PAGE || self.packed > MOST_PAGE {
            return Err(FaultKind::TooLarge.fault(
                "its page of the Parquet or Arrow file is larger than 512 MiB: write the file \
                 again with smaller row groups or record batches",
            ));
        }
        let len = self.unpacked as usize;
        if out.capacity() < len {
            // `resize` alone could double the capacity, and would copy the old bytes.
            *out = Vec::new();
            out.try_reserve_exact(len)
                .map_err(|_| FaultKind::Unreadable.fault("no memory for its page"))?;
        }
        out.resize(len, 0);
        match self.codec {
            PageCodec::Planar | PageCodec::PlanarText => planar(self.codec, packed, out),
            PageCodec::Snappy
            | PageCodec::Gzip
            | PageCodec::Lz4
            | PageCodec::Lz4Frame
            | PageCodec::Zstd => self.unpack_into(packed, out),
        }
    }

    #[cfg(feature = "parquet")]
    fn unpack_into(&self, packed: &[u8], out: &mut [u8]) -> Result<(), SampleFault> {
        let len = out.len();
        // The decoders read untrusted bytes. A panic counts as a broken page.
        match catch_panic(|| by_codec(self.codec, packed, out)) {
            Some(Ok(bytes)) if bytes == len => Ok(()),
            Some(Ok(bytes)) => Err(broken(format!("{bytes} bytes instead of {len}"))),
            Some(Err(what)) => Err(broken(what)),
            None => Err(broken("its decoder panicked".to_owned())),
        }
    }

    #[cfg(not(feature = "parquet"))]
    fn unpack_into(&self, _: &[u8], _: &mut [u8]) -> Result<(), SampleFault> {
        Err(FaultKind::Unsupported.fault(
            "lies in a compressed page of a Parquet or Arrow file: build featherload with the \
             feature parquet",
        ))
    }
}

/// The page that was unpacked last, or its fault: a broken page is not unpacked for each sample.
#[derive(Debug, Default)]
pub(crate) struct LastPage {
    number: Option<u64>,
    fault: Option<SampleFault>,
    bytes: Vec<u8>,
}

impl LastPage {
    /// The bytes of page `number`, which `unpack` writes if it is another one than the last.
    ///
    /// # Errors
    /// The fault of `unpack`. It is kept with the page, unless the page could not be read.
    pub(crate) fn get(
        &mut self,
        number: u64,
        unpack: impl FnOnce(&mut Vec<u8>) -> Result<(), SampleFault>,
    ) -> Result<&[u8], SampleFault> {
        if self.number != Some(number) {
            (self.number, self.fault) = (None, None);
            match unpack(&mut self.bytes) {
                Err(fault) if fault.kind == FaultKind::Unreadable => return Err(fault),
                unpacked => self.fault = unpacked.err(),
            }
            self.number = Some(number);
        }
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(&self.bytes),
        }
    }
}

/// Writes a CIFAR image of three planes to `out` as a NumPy array.
fn planar(codec: PageCodec, packed: &[u8], out: &mut [u8]) -> Result<(), SampleFault> {
    let fault = || {
        FaultKind::Corrupt
            .fault("its CIFAR batch has no image at that offset: make the index again")
    };
    let Some((header, pixels)) = out.split_at_mut_checked(npy::HEADER_BYTES) else {
        return Err(fault());
    };
    let side = SIDE as u32;
    header.copy_from_slice(&npy::header((side, side), 3));
    let area = SIDE * SIDE;
    let mut written = 0;
    let mut write = |byte: u8| {
        let (channel, pixel) = (written / area, written % area);
        written += 1;
        match pixels.get_mut(3 * pixel + channel) {
            Some(to) if channel < 3 => {
                *to = byte;
                Ok(())
            }
            _ => Err(fault()),
        }
    };
    match codec {
        PageCodec::PlanarText => {
            for c in std::str::from_utf8(packed).map_err(|_| fault())?.chars() {
                write(u8::try_from(c).map_err(|_| fault())?)?;
            }
        }
        _ => packed.iter().try_for_each(|byte| write(*byte))?,
    }
    match written == 3 * area {
        true => Ok(()),
        false => Err(fault()),
    }
}

/// Reads the packed bytes of a page. Returns no bytes for a page over [`MOST_PAGE`].
pub(crate) fn read_page(file: &File, page: &PackedPage) -> io::Result<Vec<u8>> {
    // `unpack` rejects a page over the limit.
    let len = match page.packed {
        len @ 0..=MOST_PAGE => len as usize,
        _ => return Ok(Vec::new()),
    };
    let mut packed = Vec::new();
    packed
        .try_reserve_exact(len)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    packed.resize(len, 0);
    file.read_exact_at(&mut packed, page.at)?;
    Ok(packed)
}

/// The bytes of a sample in an unpacked page.
pub(crate) fn slice_page<'a>(
    unpacked: &'a [u8],
    range: &Range<u64>,
) -> Result<&'a [u8], SampleFault> {
    let place = usize::try_from(range.start)
        .ok()
        .zip(usize::try_from(range.end).ok());
    place
        .and_then(|(start, end)| unpacked.get(start..end))
        .ok_or_else(|| {
            let (end, len) = (range.end, unpacked.len());
            FaultKind::Truncated.fault(format!(
                "its page has {len} bytes, but its image ends at byte {end}"
            ))
        })
}

#[cfg(feature = "parquet")]
fn broken(what: String) -> SampleFault {
    // The message of a decoder can have any length.
    let what: String = what.chars().take(200).collect();
    FaultKind::Corrupt.fault(format!(
        "its page of the Parquet or Arrow file cannot be unpacked ({what})"
    ))
}

/// Unpacks into `out`, and returns the number of bytes written.
#[cfg(feature = "parquet")]
fn by_codec(codec: PageCodec, packed: &[u8], out: &mut [u8]) -> Result<usize, String> {
    match codec {
        // `unpack` handles these.
        PageCodec::Planar | PageCodec::PlanarText => Err("is a CIFAR image".to_owned()),
        PageCodec::Snappy => snap::raw::Decoder::new()
            .decompress(packed, out)
            .map_err(|e| e.to_string()),
        PageCodec::Gzip => fill(flate2::read::MultiGzDecoder::new(packed), out),
        PageCodec::Lz4 => lz4_flex::block::decompress_into(packed, out).map_err(|e| e.to_string()),
        PageCodec::Lz4Frame => {
            let mut decoder = lz4_flex::frame::FrameDecoder::new(packed);
            let filled = fill(&mut decoder, out)?;
            check_end(&mut decoder)?;
            Ok(filled)
        }
        PageCodec::Zstd => unpack_zstd(packed, out),
    }
}

/// Unpacks a frame of Zstandard. Its decoder keeps a window of at most the bytes of `out` or of one
/// block, whatever the frame states.
#[cfg(feature = "parquet")]
fn unpack_zstd(packed: &[u8], out: &mut [u8]) -> Result<usize, String> {
    use crate::data::frame_header::ZSTD_EMPTY;
    use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
    use std::io::Read;

    let header = ZstdHeader::parse(packed).ok_or("it does not begin with a frame of Zstandard")?;
    let (begin, rest) = packed.split_at(header.bytes);
    let begin = header
        .for_page(out.len() as u64)
        .unwrap_or_else(|| begin.to_vec());
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MOST_WINDOW);
    // Its buffer grows by doubling, unless the decoder has read a frame before.
    decoder.init(&ZSTD_EMPTY[..]).map_err(|e| e.to_string())?;
    let source = begin.as_slice().chain(rest);
    let mut decoder =
        StreamingDecoder::new_with_decoder(source, decoder).map_err(|e| e.to_string())?;
    let filled = fill(&mut decoder, out)?;
    check_end(&mut decoder)?;
    Ok(filled)
}

/// Checks that a page has no more bytes than it states.
#[cfg(feature = "parquet")]
fn check_end(from: &mut impl std::io::Read) -> Result<(), String> {
    match from.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err("more bytes than it states".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// Bytes that a decoder is asked for at once.
#[cfg(feature = "parquet")]
const PIECE: usize = 1 << 20;

/// Reads until `out` is full or the input ends.
#[cfg(feature = "parquet")]
fn fill(mut from: impl std::io::Read, out: &mut [u8]) -> Result<usize, String> {
    let mut filled = 0;
    while filled < out.len() {
        let end = out.len().min(filled + PIECE);
        match from.read(&mut out[filled..end]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(e) => return Err(e.to_string()),
        }
    }
    Ok(filled)
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use std::io::Write;

    use super::*;

    fn page(codec: PageCodec, packed: &[u8], unpacked: u64) -> PackedPage {
        PackedPage::new(0, packed.len() as u64, unpacked, codec)
    }

    /// A frame of Zstandard with this window and blocks, each of which repeats a byte.
    fn zstd_of_runs(window: u8, blocks: &[(u32, u8)]) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
        for (number, (length, byte)) in blocks.iter().enumerate() {
            let last = u32::from(number + 1 == blocks.len());
            let header = last | 1 << 1 | length << 3;
            frame.extend_from_slice(&header.to_le_bytes()[..3]);
            frame.push(*byte);
        }
        frame
    }

    /// 128 MiB.
    const LARGE_WINDOW: u8 = 17 << 3;

    #[test]
    fn a_window_that_is_larger_than_the_page_takes_no_memory() {
        let mut out = Vec::new();
        // Honest: a writer that did not know the length.
        let runs: Vec<(u32, u8)> = (0..6).map(|n| (128 << 10, n)).collect();
        let packed = zstd_of_runs(LARGE_WINDOW, &runs);
        let honest = page(PageCodec::Zstd, &packed, 6 << 17);
        honest.unpack(&packed, &mut out).unwrap();
        let is_run = |(n, run): (usize, &[u8])| run.iter().all(|byte| *byte == n as u8);
        assert!(out.chunks(128 << 10).enumerate().all(is_run));
        let stated = honest.with_header(&packed);
        assert!(stated.most_bytes() <= (6 << 17) + (4 << 20), "{stated:?}");
        // A frame of 128 MiB, of which the page states 1000 bytes. Its last block has no valid kind.
        // The decoder ends before it reaches that block.
        let runs: Vec<(u32, u8)> = (0..1024).map(|_| (128 << 10, 7)).collect();
        let mut packed = zstd_of_runs(LARGE_WINDOW, &runs);
        let last = packed.len() - 4;
        packed[last] = 0b111;
        for unpacked in [1000, 300_000] {
            let fault = page(PageCodec::Zstd, &packed, unpacked).unpack(&packed, &mut out);
            let reason = fault.unwrap_err().reason;
            assert!(reason.contains("more bytes than it states"), "{reason}");
        }
    }

    #[test]
    fn the_memory_of_a_page_is_that_of_its_frame() {
        // As zstd's level 1 writes 100 MiB.
        let head = [0x28, 0xb5, 0x2f, 0xfd, 0x80, 9 << 3, 0, 0, 0x40, 6];
        let large = PackedPage::new(0, 1 << 20, 100 << 20, PageCodec::Zstd);
        assert!(large.most_bytes() > 200 << 20);
        assert!(large.with_header(&head).most_bytes() < 105 << 20);
        // Another file at its place, or none.
        assert_eq!(large.with_header(b"other"), large);
        let lz4 = PackedPage::new(0, 1 << 20, 1 << 20, PageCodec::Lz4Frame);
        let head = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
        assert!(lz4.with_header(&head).most_bytes() < 2 << 20);
        // The header of a page of 3 bytes is not what lies after them.
        let short = PackedPage::new(0, 3, 1 << 20, PageCodec::Lz4Frame);
        assert_eq!(short.with_header(&head), short);
    }

    #[test]
    fn a_broken_page_is_unpacked_once() {
        let mut last = LastPage::default();
        let mut calls = 0;
        let mut get = |last: &mut LastPage, number, kind: Option<FaultKind>| {
            let bytes = last.get(number, |out| {
                calls += 1;
                *out = vec![number as u8];
                kind.map_or(Ok(()), |kind| Err(kind.fault("broken")))
            });
            let bytes = bytes.map(<[u8]>::to_vec).map_err(|fault| fault.reason);
            (bytes, calls)
        };
        let broken = || Err("broken".to_owned());
        for _ in 0..3 {
            assert_eq!(get(&mut last, 5, Some(FaultKind::Corrupt)), (broken(), 1));
        }
        assert_eq!(get(&mut last, 6, None), (Ok(vec![6]), 2));
        assert_eq!(get(&mut last, 6, None), (Ok(vec![6]), 2));
        assert_eq!(get(&mut last, 5, Some(FaultKind::Corrupt)), (broken(), 3));
        // Storage that fails may work the next time.
        assert_eq!(
            get(&mut last, 7, Some(FaultKind::Unreadable)),
            (broken(), 4)
        );
        assert_eq!(get(&mut last, 7, None), (Ok(vec![7]), 5));
    }

    fn packed_by(codec: PageCodec, bytes: &[u8]) -> Vec<u8> {
        match codec {
            PageCodec::Planar | PageCodec::PlanarText => unreachable!("no compressed page"),
            // A frame of one block that is stored as it is, with the checksum of its header.
            PageCodec::Lz4Frame => {
                let header = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
                let len = ((bytes.len() as u32) | (1 << 31)).to_le_bytes();
                [&header[..], &len, bytes, &[0; 4]].concat()
            }
            PageCodec::Snappy => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            PageCodec::Gzip => {
                let level = flate2::Compression::default();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            // An LZ4 block that consists of literals.
            PageCodec::Lz4 => {
                assert!((15..270).contains(&bytes.len()));
                let head = [0xf0, (bytes.len() - 15) as u8];
                [&head[..], bytes].concat()
            }
            PageCodec::Zstd => ruzstd::encoding::compress_to_vec(
                bytes,
                ruzstd::encoding::CompressionLevel::Fastest,
            ),
        }
    }

    const ALL: [PageCodec; 5] = [
        PageCodec::Snappy,
        PageCodec::Gzip,
        PageCodec::Lz4,
        PageCodec::Lz4Frame,
        PageCodec::Zstd,
    ];

    #[test]
    fn a_page_with_more_bytes_than_it_states_is_a_fault() {
        for codec in [PageCodec::Lz4Frame, PageCodec::Zstd] {
            let packed = packed_by(codec, &[3; 200]);
            let fault = page(codec, &packed, 199).unpack(&packed, &mut Vec::new());
            let fault = fault.unwrap_err();
            assert!(
                fault.reason.contains("more bytes than it states"),
                "{codec:?}"
            );
        }
    }

    #[test]
    fn a_page_comes_back_and_no_other_length_passes() {
        let bytes: Vec<u8> = (0..200u8).map(|i| i % 7).collect();
        for codec in ALL {
            let packed = packed_by(codec, &bytes);
            let mut out = vec![9; 3];
            page(codec, &packed, 200).unpack(&packed, &mut out).unwrap();
            assert_eq!(out, bytes, "{codec:?}");
            let fault = page(codec, &packed, 201).unpack(&packed, &mut out);
            assert_eq!(fault.unwrap_err().kind, FaultKind::Corrupt, "{codec:?}");
            assert_eq!(PageCodec::of(codec as u64), Some(codec));
        }
        assert_eq!(PageCodec::of(0), None);
    }

    #[test]
    fn broken_bytes_and_large_pages_are_faults() {
        let bytes = [5; 100];
        for codec in ALL {
            let packed = packed_by(codec, &bytes);
            let mut out = Vec::new();
            for cut in 0..packed.len() {
                let _ = page(codec, &packed, 100).unpack(&packed[..cut], &mut out);
                let mut other = packed.clone();
                other[cut] ^= 0x55;
                let _ = page(codec, &packed, 100).unpack(&other, &mut out);
                assert!(out.len() <= 100);
            }
            let fault = page(codec, &packed, 100).unpack(&packed[..3], &mut out);
            assert_eq!(fault.unwrap_err().kind, FaultKind::Corrupt, "{codec:?}");
            let fault = page(codec, &packed, MOST_PAGE + 1).unpack(&packed, &mut out);
            assert_eq!(fault.unwrap_err().kind, FaultKind::TooLarge, "{codec:?}");
        }
    }
}

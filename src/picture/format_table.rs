//! The supported formats: one row each, with all differences between them.
//!
//! Pure. A new format needs a variant of [`FileFormat`] and a row here; no other code lists the
//! formats. Reading files belongs to `raster` and `read_header`.

use image::ImageFormat;

use super::file_format::FileFormat;
use super::npy;

/// The properties of one format.
pub(crate) struct FormatInfo {
    format: FileFormat,
    /// The name in messages.
    pub(crate) name: &'static str,
    /// The extension for files of this format that have another name.
    pub(crate) extension: &'static str,
    /// Its file extensions, in lower case.
    extensions: &'static [&'static str],
    mark: FormatMark,
    pub(crate) decoder: FormatDecoder,
    /// Maximum bytes read before the first pixel, in the consumer and in workers. A decoder may
    /// keep several copies of them, so the limit is low. Real files stay far below it. Skipped
    /// bytes do not count.
    pub(crate) max_header: u64,
}

/// How the content of a file shows its format.
enum FormatMark {
    /// It begins with one of these.
    Begins(&'static [&'static [u8]]),
    /// The function accepts its first bytes.
    Head(fn(&[u8]) -> bool),
    /// It ends with this. Checked after all formats that are known by their first bytes.
    Ends(&'static [u8]),
}

/// The decoder of a format.
#[derive(Clone, Copy)]
pub(crate) enum FormatDecoder {
    /// `jpeg`: any region.
    Jpeg,
    /// `png`: row by row.
    Png,
    /// No decoder: the file has raw pixels (`npy`).
    Raw,
    /// `tiff`: a whole frame.
    Tiff,
    /// The `image` crate: a whole frame.
    Frame(FrameDecoder),
}

/// Properties of a decoder of whole frames.
#[derive(Clone, Copy)]
pub(crate) struct FrameDecoder {
    pub(crate) image_format: ImageFormat,
    /// The decoder's memory per pixel, besides the frame that it fills: a multiple of the pixel's
    /// own bytes, and a number of bytes. Measured with a counting allocator
    /// (`tests/alone/scratch.rs`).
    pub(crate) extra_bytes: (u64, u64),
    /// Maximum pixels per number of bytes in a file; `None` if a few bytes may mean any number of
    /// pixels.
    pub(crate) max_density: Option<(u64, u64)>,
}

const fn frame(
    known: ImageFormat,
    beside: (u64, u64),
    densest: Option<(u64, u64)>,
) -> FormatDecoder {
    FormatDecoder::Frame(FrameDecoder {
        image_format: known,
        extra_bytes: beside,
        max_density: densest,
    })
}

/// For decoders that fill the frame row by row, or directly.
const ROW_BY_ROW: (u64, u64) = (0, 1);

/// All formats. If a sample in a shard has several images, the first format here wins.
const FORMATS: [FormatInfo; 15] = [
    FormatInfo {
        format: FileFormat::Jpeg,
        name: "JPEG",
        extension: "jpg",
        extensions: &["jpg", "jpeg", "jpe", "jfif"],
        // A file of this one byte was cut off within the mark.
        mark: FormatMark::Head(|head| head.starts_with(b"\xff\xd8") || head == [0xff]),
        decoder: FormatDecoder::Jpeg,
        // Its own limits on markers, stray bytes and XMP (`jpeg/header.rs`) apply first: 3.2 MiB.
        // Profiles are skipped.
        max_header: 4 << 20,
    },
    FormatInfo {
        format: FileFormat::Png,
        name: "PNG",
        extension: "png",
        extensions: &["png", "apng"],
        mark: FormatMark::Begins(&[b"\x89PNG\r\n\x1a\n"]),
        decoder: FormatDecoder::Png,
        // 12 for each chunk. Chunks of pixels mostly have 8 KiB, so the limit allows a file of 10
        // GiB. None of these bytes is kept.
        max_header: 16 << 20,
    },
    FormatInfo {
        format: FileFormat::WebP,
        name: "WebP",
        extension: "webp",
        extensions: &["webp"],
        mark: FormatMark::Head(|head| {
            head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP".as_slice())
        }),
        // Planes of luma, chroma and alpha. Lossless files need a second frame and its entropy
        // image instead.
        decoder: frame(ImageFormat::WebP, (0, 10), None),
        // 8 for each chunk, twice, and 20 for each frame; 64 KiB of EXIF and 256 KiB of XMP.
        // Profiles are skipped.
        max_header: 2 << 20,
    },
    FormatInfo {
        format: FileFormat::Bmp,
        name: "BMP",
        extension: "bmp",
        extensions: &["bmp"],
        mark: FormatMark::Begins(&[b"BM"]),
        decoder: frame(ImageFormat::Bmp, ROW_BY_ROW, None),
        // 138 and a palette of 1 KiB. A profile comes after the pixels.
        max_header: 64 << 10,
    },
    FormatInfo {
        format: FileFormat::Gif,
        name: "GIF",
        extension: "gif",
        extensions: &["gif"],
        mark: FormatMark::Begins(&[b"GIF87a", b"GIF89a"]),
        // A frame smaller than the canvas has a buffer of its own.
        decoder: frame(ImageFormat::Gif, (0, 5), None),
        // Profile, XMP and comments are read, and the first two kept. XMP from editors can have a
        // few MiB.
        max_header: 8 << 20,
    },
    FormatInfo {
        format: FileFormat::Tiff,
        name: "TIFF",
        extension: "tif",
        extensions: &["tif", "tiff"],
        mark: FormatMark::Begins(&[b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"]),
        decoder: FormatDecoder::Tiff,
        // Offset and length of each strip or tile: 16 bytes for each of at most 262,144. Profiles
        // are not read, and only the start of XMP.
        max_header: 8 << 20,
    },
    FormatInfo {
        format: FileFormat::Pnm,
        name: "PNM",
        extension: "pnm",
        extensions: &["ppm", "pgm", "pbm", "pnm", "pam"],
        mark: FormatMark::Head(|head| {
            matches!(head, [b'P', b'1'..=b'7', space, ..]
                if space.is_ascii_whitespace() || *space == b'#')
        }),
        // One bit per pixel.
        decoder: frame(ImageFormat::Pnm, ROW_BY_ROW, Some((8, 1))),
        // Three numbers or a few lines, and comments.
        max_header: 1 << 20,
    },
    FormatInfo {
        format: FileFormat::Tga,
        name: "TGA",
        extension: "tga",
        extensions: &["tga"],
        // The mark of version 2. Version 1 has no mark, so any file could be one: it is not
        // supported.
        mark: FormatMark::Ends(b"TRUEVISION-XFILE.\0"),
        // The longest run, of pixels of 8 bits.
        decoder: frame(ImageFormat::Tga, ROW_BY_ROW, Some((128, 2))),
        // 18, 255 of a text, and a palette of 65,535 colours of 4.
        max_header: 1 << 20,
    },
    FormatInfo {
        format: FileFormat::Ico,
        name: "ICO",
        extension: "ico",
        extensions: &["ico"],
        mark: FormatMark::Begins(&[b"\0\0\x01\0"]),
        decoder: frame(ImageFormat::Ico, (0, 5), None),
        // 65,535 entries of 16, twice, and the header of the largest image.
        max_header: 4 << 20,
    },
    FormatInfo {
        format: FileFormat::Qoi,
        name: "QOI",
        extension: "qoi",
        extensions: &["qoi"],
        mark: FormatMark::Begins(&[b"qoif"]),
        // The longest run.
        decoder: frame(ImageFormat::Qoi, ROW_BY_ROW, Some((62, 1))),
        max_header: 1 << 10,
    },
    FormatInfo {
        format: FileFormat::Dds,
        name: "DDS",
        extension: "dds",
        extensions: &["dds"],
        mark: FormatMark::Begins(&[b"DDS "]),
        // The densest files have blocks of 4 x 4 in 8 bytes.
        decoder: frame(ImageFormat::Dds, ROW_BY_ROW, Some((2, 1))),
        max_header: 1 << 10,
    },
    FormatInfo {
        format: FileFormat::Hdr,
        name: "Radiance HDR",
        extension: "hdr",
        extensions: &["hdr"],
        mark: FormatMark::Begins(&[b"#?RADIANCE", b"#?RGBE"]),
        decoder: frame(ImageFormat::Hdr, ROW_BY_ROW, None),
        // Lines of text, of which a list is kept: the edits of the image, and of each image that it
        // was made from.
        max_header: 256 << 10,
    },
    FormatInfo {
        format: FileFormat::OpenExr,
        name: "OpenEXR",
        extension: "exr",
        extensions: &["exr"],
        mark: FormatMark::Begins(&[b"\x76\x2f\x31\x01"]),
        // Layers as lists of floats.
        decoder: frame(ImageFormat::OpenExr, (0, 40), None),
        // Attributes of all parts, which are read up to three times. Names of objects (Cryptomatte)
        // take a few MiB in each part.
        max_header: 48 << 20,
    },
    FormatInfo {
        format: FileFormat::Farbfeld,
        name: "farbfeld",
        extension: "ff",
        extensions: &["ff"],
        mark: FormatMark::Begins(&[b"farbfeld"]),
        // Four values of 16 bits.
        decoder: frame(ImageFormat::Farbfeld, ROW_BY_ROW, Some((1, 8))),
        max_header: 1 << 10,
    },
    FormatInfo {
        format: FileFormat::Npy,
        name: "NumPy",
        extension: "npy",
        // An array is an image only by its content: see `ARRAY_EXTENSION`.
        extensions: &[],
        mark: FormatMark::Begins(&[npy::MAGIC]),
        decoder: FormatDecoder::Raw,
        max_header: npy::HEAD,
    },
];

/// Index of each format's row. A format without a row does not compile.
const AT: [usize; FORMATS.len()] = {
    let mut at = [usize::MAX; FORMATS.len()];
    let mut i = 0;
    while i < FORMATS.len() {
        assert!(at[FORMATS[i].format as usize] == usize::MAX);
        at[FORMATS[i].format as usize] = i;
        i += 1;
    }
    at
};

const EXTENSIONS: usize = {
    let (mut n, mut i) = (0, 0);
    while i < FORMATS.len() {
        n += FORMATS[i].extensions.len();
        i += 1;
    }
    n
};

/// File extensions that make a file a sample, in upper or lower case.
pub const IMAGE_EXTENSIONS: [&str; EXTENSIONS] = {
    let mut all = [""; EXTENSIONS];
    let (mut n, mut i) = (0, 0);
    while i < FORMATS.len() {
        let mut of = 0;
        while of < FORMATS[i].extensions.len() {
            all[n] = FORMATS[i].extensions[of];
            n += 1;
            of += 1;
        }
        i += 1;
    }
    all
};

/// The extension of raw pixels. In shards and lists such files are images. In folders arrays may be
/// masks, depths or features beside the images, so there they are not samples.
pub const ARRAY_EXTENSION: &str = FileFormat::Npy.info().extension;

impl FileFormat {
    /// The format's row of properties.
    pub(crate) const fn info(self) -> &'static FormatInfo {
        const ROWS: &[FormatInfo] = &FORMATS;
        &ROWS[AT[self as usize]]
    }

    /// The format whose mark is at the start or end of a file.
    pub(super) fn by_mark(head: &[u8], tail: &[u8]) -> Option<Self> {
        let by_head = |row: &&FormatInfo| match row.mark {
            FormatMark::Begins(with) => with.iter().any(|mark| head.starts_with(mark)),
            FormatMark::Head(is_one) => is_one(head),
            FormatMark::Ends(_) => false,
        };
        let by_tail =
            |row: &&FormatInfo| matches!(row.mark, FormatMark::Ends(with) if tail.ends_with(with));
        let row = FORMATS.iter().find(by_head);
        row.or_else(|| FORMATS.iter().find(by_tail))
            .map(|row| row.format)
    }
}

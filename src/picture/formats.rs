//! The formats that are decoded: a row each, with all that differs between them.
//!
//! Pure. Who adds a format adds its name to [`Format`] and its row here; nothing else
//! lists them. Never here: reading a file (`raster`, `header`).

use image::ImageFormat;

use super::format::Format;
use super::npy;

/// What there is to know of a format.
pub(crate) struct Row {
    format: Format,
    /// In messages.
    pub(crate) name: &'static str,
    /// What a file of it that has another name is called by.
    pub(crate) extension: &'static str,
    /// Of names, in lower case.
    extensions: &'static [&'static str],
    mark: Mark,
    pub(crate) decoder: Decoder,
    /// The most bytes that are read before its first pixel is wanted, in the consumer and in
    /// workers. A decoder may keep them, some of them several times: so no more than that
    /// real files stay far below. What is stepped over does not count.
    pub(crate) header: u64,
}

/// By what a file is known.
enum Mark {
    /// It begins with one of these.
    Begins(&'static [&'static [u8]]),
    /// Its beginning is one.
    Head(fn(&[u8]) -> bool),
    /// It ends with this, and nothing else is known by its beginning.
    Ends(&'static [u8]),
}

/// Who decodes it.
#[derive(Clone, Copy)]
pub(crate) enum Decoder {
    /// `jpeg`: any part of it.
    Jpeg,
    /// `png`: row by row.
    Png,
    /// Nobody: its pixels lie in the file (`npy`).
    Raw,
    /// `tiff`: a whole frame.
    Tiff,
    /// The `image` crate: a whole frame.
    Frame(Frame),
}

/// What is known of a decoder of whole frames.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) known: ImageFormat,
    /// The most that it holds for a pixel beside the frame that it fills: so many
    /// times the pixel's own bytes, and so many bytes. Measured with a counting
    /// allocator (`tests/alone/scratch.rs`).
    pub(crate) beside: (u64, u64),
    /// Most pixels that so many bytes of a file can stand for; none where a few bytes
    /// may stand for any number.
    pub(crate) densest: Option<(u64, u64)>,
}

const fn frame(known: ImageFormat, beside: (u64, u64), densest: Option<(u64, u64)>) -> Decoder {
    Decoder::Frame(Frame {
        known,
        beside,
        densest,
    })
}

/// Beside a frame that is filled row by row, or straight away.
const ROW_BY_ROW: (u64, u64) = (0, 1);

/// All of them. Of several pictures of a sample in a shard the first of these counts.
const FORMATS: [Row; 15] = [
    Row {
        format: Format::Jpeg,
        name: "JPEG",
        extension: "jpg",
        extensions: &["jpg", "jpeg", "jpe", "jfif"],
        // One byte alone was cut off within the two that would tell.
        mark: Mark::Head(|head| head.starts_with(b"\xff\xd8") || head == [0xff]),
        decoder: Decoder::Jpeg,
        // Its own limits on markers, stray bytes and XMP (`jpeg/header.rs`) come first: 3.2 MiB.
        // Profiles are stepped over.
        header: 4 << 20,
    },
    Row {
        format: Format::Png,
        name: "PNG",
        extension: "png",
        extensions: &["png", "apng"],
        mark: Mark::Begins(&[b"\x89PNG\r\n\x1a\n"]),
        decoder: Decoder::Png,
        // 12 of each chunk; those of pixels have 8 KiB as a rule, so this is a file of
        // 10 GiB. Nothing of it is kept.
        header: 16 << 20,
    },
    Row {
        format: Format::WebP,
        name: "WebP",
        extension: "webp",
        extensions: &["webp"],
        mark: Mark::Head(|head| {
            head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP".as_slice())
        }),
        // Planes of luma and chroma and the alpha plane; or, lossless, a second frame
        // and its entropy image.
        decoder: frame(ImageFormat::WebP, (0, 10), None),
        // 8 of each chunk, twice, and 20 of each frame; 64 KiB of EXIF and 256 KiB of XMP.
        // Profiles are stepped over.
        header: 2 << 20,
    },
    Row {
        format: Format::Bmp,
        name: "BMP",
        extension: "bmp",
        extensions: &["bmp"],
        mark: Mark::Begins(&[b"BM"]),
        decoder: frame(ImageFormat::Bmp, ROW_BY_ROW, None),
        // 138 and a palette of 1 KiB. A profile lies behind the pixels.
        header: 64 << 10,
    },
    Row {
        format: Format::Gif,
        name: "GIF",
        extension: "gif",
        extensions: &["gif"],
        mark: Mark::Begins(&[b"GIF87a", b"GIF89a"]),
        // A frame smaller than the canvas has a buffer of its own.
        decoder: frame(ImageFormat::Gif, (0, 5), None),
        // Profile, XMP and comments are read through, and the first two kept. XMP that grew in
        // an editor has been seen with a few MiB.
        header: 8 << 20,
    },
    Row {
        format: Format::Tiff,
        name: "TIFF",
        extension: "tif",
        extensions: &["tif", "tiff"],
        mark: Mark::Begins(&[b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"]),
        decoder: Decoder::Tiff,
        // Where each strip or tile lies, and how long it is: 16 of each, for 262,144 at most.
        // Profiles are not read, and of XMP the beginning.
        header: 8 << 20,
    },
    Row {
        format: Format::Pnm,
        name: "PNM",
        extension: "pnm",
        extensions: &["ppm", "pgm", "pbm", "pnm", "pam"],
        mark: Mark::Head(|head| {
            matches!(head, [b'P', b'1'..=b'7', space, ..]
                if space.is_ascii_whitespace() || *space == b'#')
        }),
        // One bit each.
        decoder: frame(ImageFormat::Pnm, ROW_BY_ROW, Some((8, 1))),
        // Three numbers or a few lines, and comments.
        header: 1 << 20,
    },
    Row {
        format: Format::Tga,
        name: "TGA",
        extension: "tga",
        extensions: &["tga"],
        // That of version 2. Version 1 has no mark at all and is not served: it could
        // be anything.
        mark: Mark::Ends(b"TRUEVISION-XFILE.\0"),
        // The longest run, of pixels of 8 bits.
        decoder: frame(ImageFormat::Tga, ROW_BY_ROW, Some((128, 2))),
        // 18, 255 of a text, and a palette of 65,535 colours of 4.
        header: 1 << 20,
    },
    Row {
        format: Format::Ico,
        name: "ICO",
        extension: "ico",
        extensions: &["ico"],
        mark: Mark::Begins(&[b"\0\0\x01\0"]),
        decoder: frame(ImageFormat::Ico, (0, 5), None),
        // 65,535 entries of 16, twice, and what stands before the pixels of the largest.
        header: 4 << 20,
    },
    Row {
        format: Format::Qoi,
        name: "QOI",
        extension: "qoi",
        extensions: &["qoi"],
        mark: Mark::Begins(&[b"qoif"]),
        // The longest run.
        decoder: frame(ImageFormat::Qoi, ROW_BY_ROW, Some((62, 1))),
        header: 1 << 10,
    },
    Row {
        format: Format::Dds,
        name: "DDS",
        extension: "dds",
        extensions: &["dds"],
        mark: Mark::Begins(&[b"DDS "]),
        // The densest are blocks of 4 x 4 in 8 bytes.
        decoder: frame(ImageFormat::Dds, ROW_BY_ROW, Some((2, 1))),
        header: 1 << 10,
    },
    Row {
        format: Format::Hdr,
        name: "Radiance HDR",
        extension: "hdr",
        extensions: &["hdr"],
        mark: Mark::Begins(&[b"#?RADIANCE", b"#?RGBE"]),
        decoder: frame(ImageFormat::Hdr, ROW_BY_ROW, None),
        // Lines of text, a list of which is kept: what was done to the picture, of each
        // picture that it was made of.
        header: 256 << 10,
    },
    Row {
        format: Format::OpenExr,
        name: "OpenEXR",
        extension: "exr",
        extensions: &["exr"],
        mark: Mark::Begins(&[b"\x76\x2f\x31\x01"]),
        // Layers as lists of floats.
        decoder: frame(ImageFormat::OpenExr, (0, 40), None),
        // Attributes of all parts, which are read up to three times. Names of objects (Cryptomatte)
        // take a few MiB, in each part again.
        header: 48 << 20,
    },
    Row {
        format: Format::Farbfeld,
        name: "farbfeld",
        extension: "ff",
        extensions: &["ff"],
        mark: Mark::Begins(&[b"farbfeld"]),
        // Four values of 16 bits.
        decoder: frame(ImageFormat::Farbfeld, ROW_BY_ROW, Some((1, 8))),
        header: 1 << 10,
    },
    Row {
        format: Format::Npy,
        name: "NumPy",
        extension: "npy",
        // No name makes an array a picture: see `ARRAY_EXTENSION`.
        extensions: &[],
        mark: Mark::Begins(&[npy::MAGIC]),
        decoder: Decoder::Raw,
        header: npy::HEAD,
    },
];

/// Where the row of a format is. A format without one does not compile.
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

/// The extensions that make a name a sample's, in any case.
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

/// That of raw pixels, which are a picture in shards and lists. In folders arrays
/// lie beside pictures as masks, depths and features, so there it makes no sample.
pub const ARRAY_EXTENSION: &str = Format::Npy.row().extension;

impl Format {
    /// What there is to know of it.
    pub(crate) const fn row(self) -> &'static Row {
        const ROWS: &[Row] = &FORMATS;
        &ROWS[AT[self as usize]]
    }

    /// The format that a file's beginning or end is a mark of.
    pub(super) fn marked(head: &[u8], tail: &[u8]) -> Option<Self> {
        let by_head = |row: &&Row| match row.mark {
            Mark::Begins(with) => with.iter().any(|mark| head.starts_with(mark)),
            Mark::Head(is_one) => is_one(head),
            Mark::Ends(_) => false,
        };
        let by_tail = |row: &&Row| matches!(row.mark, Mark::Ends(with) if tail.ends_with(with));
        let row = FORMATS.iter().find(by_head);
        row.or_else(|| FORMATS.iter().find(by_tail))
            .map(|row| row.format)
    }
}

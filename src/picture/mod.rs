//! One image file: the format of its bytes, its header, and its pixels as 8-bit RGB.
//!
//! Runs in workers, and in the consumer with zero workers. Surveys use the headers only. Files are
//! bytes here: this room knows no paths, maps, slots, recipes or threads, and no later operations
//! on the pixels. A broken file is a [`SampleFault`](crate::SampleFault), never a panic.
//!
//! - `format_table`: one row for each format: name, extensions, magic bytes, decoder, memory;
//! - `file_format`: detects the format from the content, never from the name;
//! - `orientation`: the eight EXIF orientations, and whether they apply; `xmp`: orientations in
//!   XMP;
//! - `background`: the background of transparent images;
//! - `pixel_box`: a rectangle that is used as the whole image;
//! - `limits`: `max_pixels` and `max_scratch`; `truncation`: what happens to truncated files;
//! - `jpeg`: headers, and a decoder of exactly the part that a crop needs;
//! - `reader`: memory or a file, as decoders read it, with a limit on headers;
//! - `raster`: every other format, row by row;
//! - `png`, `png_text`, `png_repair`: PNG by rows, its texts, and truncated files;
//! - `tiff`: strips and tiles of every kind;
//! - `webp`, `openexr`, `ico`, `dds`, `tga`, `gif`: facts that their decoders do not report, or not
//!   safely;
//! - `npy`: raw pixels with a NumPy header, read and written;
//! - `depth`: depth images, as numbers; `flow`: optical flow;
//! - `labels`: label images, as numbers;
//! - `rgb8`: conversion of all pixel forms of files to 8-bit RGB;
//! - `picture_header`: the contents of a header; `read_header`: the header of any format, for
//!   surveys;
//! - `buffer`: memory that is used again.

mod background;
mod buffer;
mod dds;
pub(crate) mod depth;
pub(crate) mod file_format;
#[cfg(feature = "codecs")]
pub(crate) mod flow;
mod format_table;
mod gif;
mod ico;
pub(crate) mod jpeg;
pub(crate) mod labels;
mod limits;
pub(crate) mod npy;
mod openexr;
mod orientation;
mod picture_header;
mod pixel_box;
mod png;
mod png_repair;
mod png_text;
pub(crate) mod raster;
pub(crate) mod read_header;
mod reader;
mod rgb8;
mod tga;
mod tiff;
mod truncation;
mod webp;
mod xmp;

pub(crate) use background::AlphaPolicy;
pub use background::BackgroundColor;
pub(crate) use buffer::grow;
pub use file_format::FileFormat;
pub use format_table::{ARRAY_EXTENSION, IMAGE_EXTENSIONS};
pub use labels::LabelForm;
pub(crate) use limits::PictureLimits;
pub(crate) use orientation::ExifOrientation;
pub use orientation::OrientationMode;
pub use pixel_box::PixelBox;
pub use truncation::TruncationPolicy;

//! One picture file: what format its bytes are in, what its header says, and
//! its pixels as 8-bit RGB.
//!
//! Used in workers, in the consumer with zero workers, and (headers only) where
//! a data set is surveyed. Knows files as bytes alone: no paths, no maps, no
//! slots, no recipes, no threads, and nothing of what is done to the pixels
//! afterwards. A file that is broken is a [`SampleFault`](crate::SampleFault),
//! never a panic.
//!
//! - `format_table`: one row for each format: name, extensions, mark, decoder, memory;
//!   `file_format`: sniffed from the content, never from a name;
//! - `orientation`: the eight EXIF orientations, and whether they count; `xmp`: where XMP has
//!   them;
//!   `background`: what transparent pictures stand on;
//! - `pixel_box`: a part that counts as the picture;
//! - `limits`: `max_pixels` and `max_scratch`; `truncation`: what becomes of truncated files;
//! - `jpeg`: headers, and decoding exactly the part that a crop needs;
//! - `reader`: memory or a file, as decoders read it, with a limit on headers;
//! - `raster`: every other format, as rows; `png` row by row, `png_text` its texts,
//!   `png_repair` where it was cut off;
//!   `tiff`: strips and tiles of every kind;
//!   `webp`, `openexr`, `ico`, `dds`, `tga`, `gif`: what their decoders do not tell, or not
//!   safely;
//! - `npy`: raw pixels, whose headers are read and written;
//! - `depth`: depth images, as numbers;
//! - `rgb8`: from the forms that pixels have in files to 8-bit RGB;
//! - `picture_header`: what a header says; `read_header`: the header of any format, for surveys;
//! - `buffer`: memory that is kept.

mod background;
mod buffer;
mod dds;
pub(crate) mod depth;
pub(crate) mod file_format;
mod format_table;
mod gif;
mod ico;
pub(crate) mod jpeg;
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
pub(crate) use limits::PictureLimits;
pub(crate) use orientation::ExifOrientation;
pub use orientation::OrientationMode;
pub use pixel_box::PixelBox;
pub use truncation::TruncationPolicy;

//! Every JPEG that libjpeg-turbo 3.1 decodes and that [`super::Decoder::decode`] does not take:
//! several scans, progressive, arithmetic coding, extended tables, odd sampling factors, and
//! damage of all kinds, with its bytes, its verdicts and its words.
//!
//! Plain rather than fast. Coefficients become pixels in the same way as of other files.
//!
//! - `fatal`: why a file is given up; `source`: bytes, markers and warnings.
//! - `entropy`: what decoders of coefficients have in common.

mod entropy;
mod fatal;
mod source;

//! One image of a set of any kind: its name, size, format and bytes.

use std::io;

use super::args::DemoKind;
use super::encode::{ChromaSampling, JpegCoding, JpegOptions};
use super::random::{RandomStream, hash};
use super::{mixed, photo, scene};

/// The values that determine the bytes of one image.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DemoPicture {
    /// Name of its format. None if all images share one.
    pub(super) form: Option<&'static str>,
    pub(super) coding: JpegCoding,
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) quality: u8,
    pub(super) look: u64,
    pub(super) key: u64,
}

impl DemoPicture {
    /// Image `i` of the set, in class `class`.
    pub(super) fn new(kind: DemoKind, seed: u64, i: u64, class: u64) -> Self {
        let key = hash(hash(seed, 0), i);
        let mut s = RandomStream::new(hash(key, 0));
        let (form, coding, (width, height)) = match kind {
            DemoKind::Photos => (None, photo::coding(seed, i), photo::size(&mut s)),
            // Camera sizes, a quarter of them upright. A photo's size is drawn too, but not used.
            DemoKind::Large => {
                photo::size(&mut s);
                let size = if i % 4 == 3 {
                    (2160, 3840)
                } else {
                    (3840, 2160)
                };
                (
                    None,
                    JpegCoding::Jpeg(JpegOptions::Baseline(ChromaSampling::Quarter)),
                    size,
                )
            }
            DemoKind::Mixed => {
                let form = mixed::form_of(seed, i);
                (Some(form.name), form.coding, form.size(&mut s))
            }
        };
        Self {
            form,
            coding,
            width,
            height,
            quality: 75 + s.below(21) as u8,
            look: hash(hash(seed, 2), class),
            key,
        }
    }

    /// The name of file `number` of a class.
    pub(super) fn file_name(&self, number: u32) -> String {
        match self.form {
            Some(form) => format!("{number:04}_{form}"),
            None => format!("{number:04}.jpg"),
        }
    }

    pub(super) fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The bytes of the file.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let (w, h) = (self.width, self.height);
        let rgb = scene::paint(w.into(), h.into(), self.look, self.key);
        self.coding.encode(w, h, rgb, self.quality)
    }
}

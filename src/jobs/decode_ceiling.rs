//! The decoder alone, as an upper bound for a loader. It decodes the same files in the same order,
//! from files that stay mapped, into one reused buffer. No resize, no ring, no output.
//!
//! Runs in separate processes, which `measure::ceiling` starts. `file_maps`: the bytes of each
//! file; `copy`: copies raw images.

mod copy;
mod file_maps;

use std::time::{Duration, Instant};

use self::copy::CopyWork;
use self::file_maps::FileMaps;
use crate::data::index::Index;
use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{Error, Result, SampleFault};
use crate::order::{EpochPlan, PositionRandom};
use crate::picture::jpeg;
use crate::picture::jpeg::{JpegDecoder, JpegScratch};
use crate::picture::{FileFormat, PictureLimits, PixelBox};
use crate::recipe::steps::OpStep;
use crate::recipe::{DrawnPicture, SampleProgram};

/// What the ceiling does with each image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CeilingPart {
    /// Decodes all of it, to RGB at full size, with the loader's own decoder.
    Full,
    /// Decodes what the recipe's crops need, at the scales that the recipe allows.
    Crop,
    /// Decodes nothing: copies raw images from mapped files into a circular buffer of `room` bytes.
    Copy { room: u64 },
}

/// The share of one process.
pub(crate) struct CeilingLoop {
    index: Index,
    plan: EpochPlan,
    work: CeilingWork,
    /// The next row in the stream of all epochs, and the distance between this process's rows.
    next: u64,
    step: u64,
}

/// The work for each image.
enum CeilingWork {
    Decode(Box<DecodeWork>),
    Copy(CopyWork),
}

struct DecodeWork {
    maps: FileMaps,
    program: SampleProgram,
    /// Decodes crops at the recipe's scales, not whole images.
    crops: bool,
    decoder: JpegDecoder,
    scratch: JpegScratch,
    steps: Vec<OpStep>,
}

impl CeilingLoop {
    /// Share `share.0` of `share.1`. Maps every file of the index.
    ///
    /// # Errors
    /// A file that cannot be read, or is not a JPEG (for [`CeilingPart::Copy`]: not a raw image).
    pub(crate) fn new(
        index: Index,
        plan: EpochPlan,
        program: SampleProgram,
        part: CeilingPart,
        share: (u64, u64),
    ) -> Result<Self> {
        index.check_local("the ceiling does not download them")?;
        let work = match part {
            CeilingPart::Copy { room } => CeilingWork::Copy(CopyWork::new(&index, room)?),
            CeilingPart::Full | CeilingPart::Crop => CeilingWork::Decode(Box::new(DecodeWork {
                maps: FileMaps::of(&index, FileFormat::Jpeg)?,
                // Without objects no crop can be drawn that depends on them.
                crops: part == CeilingPart::Crop && program.box_reader().is_none(),
                program,
                decoder: JpegDecoder::new(&PictureLimits::default()),
                scratch: JpegScratch::default(),
                steps: Vec::new(),
            })),
        };
        Ok(Self {
            index,
            plan,
            work,
            next: share.0,
            step: share.1,
        })
    }

    /// Decodes for `limit`. Returns the number of images and the time.
    pub(crate) fn run(&mut self, limit: Duration) -> Result<(u64, Duration)> {
        let began = Instant::now();
        let mut images = 0;
        while began.elapsed() < limit {
            self.decode_next()?;
            images += 1;
        }
        Ok((images, began.elapsed()))
    }

    fn decode_next(&mut self) -> Result<()> {
        let batch = u64::from(self.plan.options().batch);
        let per_epoch = self.index.len();
        let (epoch, at) = (self.next / per_epoch, self.next % per_epoch);
        self.next += self.step;
        let mark = self.plan.mark(epoch, at / batch);
        let row = self.plan.row_at(mark, (at % batch) as u32);
        let failed = |fault: SampleFault| Error::Sample {
            id: row.id,
            path: self.index.path(row.id),
            fault,
        };
        match &mut self.work {
            CeilingWork::Copy(copies) => copies.copy(row.id),
            CeilingWork::Decode(decode) => {
                let seed = self.plan.options().seed;
                let part = self.index.pixel_box(row.id);
                decode.decode(
                    row.id,
                    part,
                    &PositionRandom::new(seed, epoch, row.position),
                )
            }
        }
        .map_err(failed)
    }
}

impl DecodeWork {
    fn decode(
        &mut self,
        id: u64,
        part: Option<PixelBox>,
        random: &PositionRandom,
    ) -> Result<(), SampleFault> {
        let bytes = self.maps.bytes(id);
        let header = jpeg::read_header(bytes)?;
        let stored = StoredPicture {
            size: (header.width, header.height),
            orientation: (header.orientation).in_mode(self.program.orientation, FileFormat::Jpeg),
            cost: header.decoding(),
            pixel_box: None,
        }
        .with_box(part)?;
        self.steps.clear();
        if self.crops {
            let steps = &mut self.steps;
            let picture = DrawnPicture::of_size(stored.upright_size());
            self.program.steps(&picture, random, steps)?;
        }
        let plan = stored.plan_decode(&self.program, &self.steps);
        let decoded =
            self.decoder
                .decode_region(bytes, &header, plan.scale, plan.window, &mut self.scratch);
        std::hint::black_box(decoded?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;

    use super::*;
    use crate::data::index::FolderOptions;
    use crate::order::OrderOptions;
    use crate::picture::jpeg::fixtures;
    use crate::picture::jpeg::fixtures::Sampling;
    use crate::recipe::Recipe;

    /// One picture of 6 x 8, and beside it a link to nothing, a FIFO, and an
    /// empty file.
    fn folder() -> (tempfile::TempDir, Index) {
        let dir = tempfile::tempdir().unwrap();
        let jpeg = fixtures::jpeg(8, 6, Sampling::S444);
        std::fs::write(dir.path().join("0.jpg"), jpeg).unwrap();
        symlink("absent", dir.path().join("1.jpg")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("2.jpg"), Mode::S_IRWXU).unwrap();
        std::fs::write(dir.path().join("3.jpg"), b"").unwrap();
        let index = Index::folder(dir.path(), &FolderOptions::default());
        (dir, index.unwrap().0)
    }

    #[test]
    fn the_ceiling_refuses_what_it_cannot_decode_and_names_it() {
        let (dir, index) = folder();
        let refusal = |index: Index| {
            let plan = EpochPlan::new(index.len(), OrderOptions::default()).unwrap();
            let program = SampleProgram::compile(&Recipe::train224()).unwrap();
            match CeilingLoop::new(index, plan, program, CeilingPart::Full, (0, 1)) {
                Ok(_) => panic!("it is not refused"),
                Err(e) => {
                    assert!(e.is_usage(), "{e}");
                    e.to_string()
                }
            }
        };
        let message = refusal(index);
        assert!(
            message.contains("1.jpg (sample 1) cannot be opened"),
            "{message}"
        );
        for (name, bytes, word) in [
            ("1.jpg", None, "2.jpg (sample 1) is a FIFO"),
            ("2.jpg", None, "3.jpg (sample 1) is empty"),
            ("3.jpg", Some(b"no picture"), "3.jpg (sample 1) is no JPEG"),
        ] {
            let path = dir.path().join(name);
            std::fs::remove_file(&path).unwrap();
            if let Some(bytes) = bytes {
                std::fs::write(&path, bytes).unwrap();
            }
            let (index, _) = Index::folder(dir.path(), &FolderOptions::default()).unwrap();
            let message = refusal(index);
            assert!(message.contains(word), "{word}: {message}");
        }
    }
}

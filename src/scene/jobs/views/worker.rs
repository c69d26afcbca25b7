//! Makes the image of a step.
//!
//! Runs in workers, and in the consumer with zero workers. The first process that needs an image
//! decodes it into the image store. Not here: image decoding.

use std::ops::Range;
use std::os::fd::RawFd;

use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::sample_input::InputMode;
use crate::jobs::stages;
use crate::picture::grow;
use crate::pixels::remap::{RemapOutput, RemapSource, SourcePoint};
use crate::pool::job::{Job, JobKind, JobParts};
use crate::pool::ring::ticket::{BatchKey, Ticket};
use crate::pool::worker::meter::StageMeter;
use crate::scene::jobs::shared::image_supply::ImageSupply;
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::jobs::shared::spec::tag_fault;
use crate::scene::jobs::views::fields::ViewArrays;
use crate::scene::jobs::views::output_camera::{OutputCamera, OutputCameras};
use crate::scene::jobs::views::spec;
use crate::scene::jobs::views::spec::{MAPS_KEY, NAME, ViewsSpec};
use crate::scene::jobs::views::straightener::RowStraightener;
use crate::sys::cpu::CpuLevel;

/// State of a worker, reused for every view.
struct ViewsJob {
    spec: ViewsSpec,
    supply: ImageSupply,
    masks: SceneMasks,
    output_cameras: OutputCameras,
    straightener: RowStraightener,
    /// Pixels of the current image, if they are not copied directly to the row.
    pixels: Vec<u8>,
    mask: Vec<u8>,
    depths: Vec<f32>,
    levels: [f32; 256],
}

pub(crate) const KIND: JobKind = JobKind { name: NAME, build };

fn build(mut parts: JobParts) -> Result<Box<dyn Job>> {
    // An invalid `FEATHERLOAD_CPU` ends the run before any image is decoded.
    CpuLevel::detect()?;
    let spec: ViewsSpec = parts.spec()?;
    let fds = std::mem::take(&mut parts.descriptors);
    let mut fds = fds.into_iter();
    let mut next = || {
        let missing = "the job of views got no image store, masks or maps";
        fds.next().ok_or_else(|| Error::protocol(missing))
    };
    let [index, files, control, content, masks] = [next()?, next()?, next()?, next()?, next()?];
    let mode = InputMode::of(parts.runs_in);
    let supply = ImageSupply::open(&spec.store, mode, [index, files, control, content])?;
    let masks = SceneMasks::from_fd(&supply.frames, masks)?;
    let output_cameras = OutputCameras::new(&supply.frames, spec.form)
        .map_err(|refused| Error::protocol(format!("the camera of a job: {}", refused.why)))?;
    let maps = output_cameras.maps(&supply.frames, spec.most_maps)?;
    let shared = match maps.places.len() {
        0 => None,
        _ => Some([next()?, next()?]),
    };
    Ok(Box::new(ViewsJob {
        straightener: RowStraightener::new(maps, shared, MAPS_KEY)?,
        output_cameras,
        spec,
        supply,
        masks,
        pixels: Vec::new(),
        mask: Vec::new(),
        depths: Vec::new(),
        levels: std::array::from_fn(|level| level as f32 / 255.0),
    }))
}

impl ViewsJob {
    /// The image of a ticket.
    fn image(&self, ticket: &Ticket) -> usize {
        // A pure function of any number, so the result is always a valid frame.
        let BatchKey([step, _]) = ticket.key;
        self.spec.order.image(step) as usize
    }

    /// Copies an image to its arrays.
    fn copy(&mut self, image: usize, arrays: &mut ViewArrays<'_>) -> Result<(), SampleFault> {
        let pictures = &self.supply.store;
        match self.spec.form.float {
            false => pictures.read_part(image, 0, arrays.image)?,
            true => {
                let len = arrays.image.len() / size_of::<f32>();
                grow(&mut self.pixels, len)?;
                pictures.read_part(image, 0, &mut self.pixels[..len])?;
                let floats = arrays.image.as_chunks_mut::<4>().0;
                for (level, to) in self.pixels[..len].iter().zip(floats) {
                    *to = self.levels[usize::from(*level)].to_ne_bytes();
                }
            }
        }
        let mask = self.masks.of(&self.supply.frames, image as u32);
        if let Some(mask) = mask.filter(|_| !arrays.mask.is_empty()) {
            mask.unpack(arrays.mask);
        }
        if self.read_depths(image)? {
            let scale = self.spec.depth_scale;
            for (level, to) in self.depths.iter().zip(arrays.depth.iter_mut()) {
                *to = scaled_depth(*level, scale);
            }
        }
        Ok(())
    }

    /// Reads the depth values of an image; false if it has none.
    fn read_depths(&mut self, image: usize) -> Result<bool, SampleFault> {
        let frames = &self.supply.frames;
        let (Some(begin), Some(camera)) = (frames.depth_begin(image), frames.camera(image)) else {
            return Ok(false);
        };
        let pixels = camera.width as usize * camera.height as usize;
        self.depths.resize(pixels, 0.0);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.depths);
        self.supply.store.read_part(image, begin, bytes)?;
        Ok(true)
    }

    /// Straightens an image with its mask and depths into its arrays.
    fn straighten(&mut self, image: usize, arrays: &mut ViewArrays<'_>) -> Result<(), SampleFault> {
        let has_depths = self.read_depths(image)?;
        let frames = &self.supply.frames;
        let (Some(frame), Some(source), Some(len), Some(OutputCamera::Straight(straight))) = (
            frames.frames.get(image),
            frames.camera(image),
            frames.color_bytes(image),
            self.output_cameras.of(frames, image),
        ) else {
            return Err(row_size_fault());
        };
        let (width, height) = (source.width as usize, source.height as usize);
        grow(&mut self.pixels, len)?;
        let pictures = &self.supply.store;
        pictures.read_part(image, 0, &mut self.pixels[..len])?;
        let mask = self.masks.of(frames, image as u32);
        if let Some(mask) = mask {
            grow(&mut self.mask, width * height)?;
            mask.unpack(&mut self.mask[..width * height]);
        }
        let mask = mask.map(|_| image_view(&self.mask[..width * height], (width, height)));
        let depths = has_depths.then(|| image_view(&self.depths[..], (width, height)));
        let columns = straight.camera().width as usize;
        let (float, scale) = (self.spec.form.float, self.spec.depth_scale);
        let pixels = &self.pixels[..len];
        let alpha = frames.alpha;
        self.straightener
            .rows(frame.camera as usize, (straight, source), |row, places| {
                let row_range_here = row * columns..(row + 1) * columns;
                let to = &mut *arrays.image;
                match (alpha, float) {
                    (false, false) => interpolate_row::<3, u8>(
                        pixels,
                        (width, height),
                        places,
                        to,
                        &row_range_here,
                    ),
                    (false, true) => interpolate_row::<3, f32>(
                        pixels,
                        (width, height),
                        places,
                        to,
                        &row_range_here,
                    ),
                    (true, false) => interpolate_row::<4, u8>(
                        pixels,
                        (width, height),
                        places,
                        to,
                        &row_range_here,
                    ),
                    (true, true) => interpolate_row::<4, f32>(
                        pixels,
                        (width, height),
                        places,
                        to,
                        &row_range_here,
                    ),
                }?;
                if let Some(mask) = mask {
                    let to = arrays
                        .mask
                        .get_mut(row_range_here.clone())
                        .ok_or_else(row_size_fault)?;
                    mask.sample_mask(places, to);
                }
                if let Some(depths) = depths {
                    let to = arrays
                        .depth
                        .get_mut(row_range_here)
                        .ok_or_else(row_size_fault)?;
                    depths.sample_nearest(places, 0.0, |level| scaled_depth(level, scale), to);
                }
                Ok(())
            })
    }
}

/// Interpolates a row of a straight image.
fn interpolate_row<const C: usize, L>(
    pixels: &[u8],
    size: (usize, usize),
    places: &[SourcePoint],
    out: &mut [u8],
    row_range_here: &Range<usize>,
) -> Result<(), SampleFault>
where
    L: RemapOutput,
    [L; C]: bytemuck::AnyBitPattern + bytemuck::NoUninit,
{
    let out: &mut [[L; C]] = bytemuck::try_cast_slice_mut(out).map_err(|_| row_size_fault())?;
    let out = out
        .get_mut(row_range_here.clone())
        .ok_or_else(row_size_fault)?;
    image_view(pixels.as_chunks::<C>().0, size).sample_bilinear(places, out);
    Ok(())
}

fn image_view<T>(pixels: &[T], (width, height): (usize, usize)) -> RemapSource<'_, T> {
    RemapSource {
        pixels,
        width,
        height,
    }
}

/// Converts a depth value to the scene's units.
fn scaled_depth(level: f32, scale: f64) -> f32 {
    (f64::from(level) * scale) as f32
}

/// Fault of a row that does not fit a view: its ticket is corrupt.
#[cold]
fn row_size_fault() -> SampleFault {
    SampleFault::new(FaultKind::Unknown, "its row does not fit a view")
}

impl Job for ViewsJob {
    fn row_range(&mut self, ticket: &Ticket, _row: u32) -> Range<usize> {
        let layout = self
            .output_cameras
            .layout(&self.supply.frames, self.image(ticket));
        0..layout.map_or(0, |layout| layout.bytes())
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        _attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let image = self.image(ticket);
        let layout = self.output_cameras.layout(&self.supply.frames, image);
        let mut arrays = layout
            .filter(|_| row == 0)
            .and_then(|layout| layout.arrays(out))
            .ok_or_else(row_size_fault)?;
        self.supply.ensure_image(image as u32, meter)?;
        meter.lap(stages::DECODE);
        let written = match self.output_cameras.of(&self.supply.frames, image) {
            Some(OutputCamera::Straight(_)) => self.straighten(image, &mut arrays),
            Some(OutputCamera::AsItIs(_)) | None => self.copy(image, &mut arrays),
        };
        written.map_err(|fault| tag_fault(image as u64, image as u64, &fault))?;
        meter.lap(spec::SHOW);
        Ok(())
    }

    fn memory_limit(&self) -> u64 {
        self.supply
            .memory_limit()
            .saturating_add(2 * self.supply.frames.places.largest())
    }

    fn enter_worker(&mut self, _lane: u32) -> Result<()> {
        self.supply.enter_worker()?;
        self.straightener.enter_worker()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let mut all = self.supply.descriptors();
        all.extend(self.straightener.descriptors());
        all
    }

    fn describe(&self, ticket: &Ticket, _row: u32, _attempt: u32) -> String {
        let BatchKey([step, _]) = ticket.key;
        format!("the view of step {step}")
    }
}

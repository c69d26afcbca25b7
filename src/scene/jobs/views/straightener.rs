//! Straightening: source coordinates for each row of a straight image.
//!
//! Runs in workers, and in the consumer with zero workers. If many images have the same camera, the
//! first worker that needs its map computes it, and all workers share it. Other maps are computed
//! row by row, with the same numbers. Not here: interpolation of pixels.

use std::os::fd::{OwnedFd, RawFd};

use crate::camera::{Camera, UndistortedCamera};
use crate::error::{FaultKind, Result, SampleFault};
use crate::pixels::remap::SourcePoint;
use crate::scene::image_store::{ImageStore, StoreBacking, WaitMode};
use crate::scene::jobs::views::output_camera::MapPlaces;

/// Source coordinates, row by row.
#[derive(Debug)]
pub(super) struct RowStraightener {
    maps: Option<ImageStore>,
    of_cameras: MapPlaces,
    row: Vec<SourcePoint>,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl RowStraightener {
    /// `shared`: memory of the shared maps; `None` if there are none.
    pub(super) fn new(
        of_cameras: MapPlaces,
        shared: Option<[OwnedFd; 2]>,
        key: u128,
    ) -> Result<Self> {
        let maps = match shared {
            Some([control, content]) => {
                let places = of_cameras.places.clone();
                Some(ImageStore::open(
                    places,
                    StoreBacking::Memory,
                    control,
                    content,
                    key,
                )?)
            }
            None => None,
        };
        Ok(Self {
            maps,
            of_cameras,
            row: Vec::new(),
            x: Vec::new(),
            y: Vec::new(),
        })
    }

    /// Calls `each` with every row of the straight image and its source coordinates in the
    /// distorted image, whose camera is `source`.
    pub(super) fn rows(
        &mut self,
        camera: usize,
        (straight, source): (&UndistortedCamera, &Camera),
        mut each: impl FnMut(usize, &[SourcePoint]) -> Result<(), SampleFault>,
    ) -> Result<(), SampleFault> {
        let to = *straight.camera();
        let (width, height) = (to.width as usize, to.height as usize);
        let Self {
            maps,
            of_cameras,
            row,
            x,
            y,
        } = self;
        for numbers in [&mut *x, &mut *y] {
            numbers.resize(width, 0.0);
        }
        row.resize(width, SourcePoint::new(f64::NAN, f64::NAN, (1, 1)));
        let size = (source.width, source.height);
        let mut make_row = |at: usize, row: &mut [SourcePoint]| {
            straight.source_row(at as u32, x, y);
            for ((x, y), place) in x.iter().zip(&*y).zip(row) {
                *place = SourcePoint::new(*x, *y, size);
            }
        };
        let number = of_cameras.of(camera);
        let Some((maps, number)) = maps.as_mut().zip(number) else {
            for at in 0..height {
                make_row(at, row);
                each(at, row)?;
            }
            return Ok(());
        };
        maps.ensure_image(number, WaitMode::Wait, |out| {
            let places: &mut [SourcePoint] = bytemuck::try_cast_slice_mut(out).map_err(|e| {
                SampleFault::new(
                    FaultKind::Unknown,
                    format!(
                        "the straightening map of a camera: \
                                                              {e}"
                    ),
                )
            })?;
            for (at, row) in places.chunks_exact_mut(width).enumerate() {
                make_row(at, row);
            }
            Ok(())
        })?;
        let bytes = size_of_val(row.as_slice());
        for at in 0..height {
            maps.read_part(number, at * bytes, bytemuck::cast_slice_mut(row))?;
            each(at, row)?;
        }
        Ok(())
    }

    /// Opens files that this process, a worker, cannot open later.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn enter_worker(&mut self) -> Result<()> {
        self.maps.as_mut().map_or(Ok(()), ImageStore::enter_worker)
    }

    /// Descriptors of the shared memory. They stay open in workers.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.maps
            .as_ref()
            .map(ImageStore::open_files)
            .unwrap_or_default()
    }
}

//! Views as a kind of run: memory, order, and the makers of batches.
//!
//! Runs in the consumer. `scene::run::build` has the order of the start.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::camera::Camera;
use crate::device::Device;
use crate::device::scene_launch::SCENE_ALIGN;
use crate::device::view_launch::MOST_ROWS;
use crate::error::{self, Error, Result};
use crate::pool::batch_request::BatchRequest;
use crate::pool::job::JobRequest;
use crate::pool::pool_report::PoolReport;
use crate::pool::worker::meter::JobStage;
use crate::scene::draw::ViewOrder;
use crate::scene::image_store::{ImageStore, StoreBacking, StoreLayout};
use crate::scene::jobs::device_images::image_uploads::DeviceRun;
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::kernel_run::KernelRun;
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::jobs::shared::spec::StoreMemory;
use crate::scene::jobs::shared::ticket_run::StepTickets;
use crate::scene::jobs::views::device_views::DeviceViews;
use crate::scene::jobs::views::image_queue::ImageQueue;
use crate::scene::jobs::views::output_camera::{OutputCameras, UnsupportedLens};
use crate::scene::jobs::views::spec::{self, MAPS_KEY, ViewFormat, ViewsSpec};
use crate::scene::jobs::views::view::StepImage;
use crate::scene::jobs::views::view_tickets::ViewTickets;
use crate::scene::run::views::discs::masks_within_discs;
use crate::scene::run::views::options::ViewKindOptions;
use crate::scene::run::views::report::ViewWork;
use crate::scene::run::views::state::ViewsState;
use crate::scene::run::{
    RunOptions, RunSizes, SceneFacts, SceneInputs, SceneKind, SplitFrames, decode_seconds, seconds,
};

/// Data of a run of views.
#[derive(Debug)]
pub struct ViewKind {
    pub(super) order: ViewOrder,
    /// Output camera of each image.
    pub(super) cameras: Vec<Camera>,
}

/// Values computed from options and frames.
#[derive(Debug)]
pub struct ViewPlan {
    order: ViewOrder,
    form: ViewFormat,
    output_cameras: OutputCameras,
    /// Layout of the straightening maps in shared memory, and their maximum bytes.
    maps: StoreLayout,
    most_maps: u64,
}

/// Inputs for making views, before workers or a device start.
#[derive(Debug)]
pub struct ViewSetup {
    steps: ViewTickets,
    masks: SceneMasks,
    /// Shared straightening maps. `None`: every view computes its own.
    maps: Option<ImageStore>,
}

#[expect(private_interfaces, reason = "all kinds are in this crate")]
impl SceneKind for ViewKind {
    type Options = ViewKindOptions;
    type Plan = ViewPlan;
    type Setup = ViewSetup;
    type Arrays = StepImage;
    type Request = ();
    type State = ViewsState;
    type Work = ViewWork;
    type Workers = ViewTickets;
    type Kernel = DeviceViews;

    const LOWER: [&'static str; 2] = ["`depth`", "depth"];

    /// For any number of workers: each view is a whole image.
    const MOST_DEPTH: u32 = 8;

    fn plan(
        run: &RunOptions,
        options: &ViewKindOptions,
        chosen: &SplitFrames,
    ) -> Result<(ViewPlan, RunSizes)> {
        let images = chosen.images.len() as u64;
        let order = ViewOrder::new(images, run.seed, options.shuffles, options.rank)?;
        let form = ViewFormat {
            float: options.float,
            straight: options.undistort,
        };
        let frames = with_discs(chosen);
        let output_cameras = OutputCameras::new(&frames, form);
        let output_cameras =
            output_cameras.map_err(|refused| unsupported_lens(&chosen.images, &refused))?;
        let view = output_cameras.most_bytes(&frames);
        // A row's length is counted in 32 bits.
        if view > u64::from(u32::MAX) {
            return Err(Error::option(
                "downscale",
                format!(
                    "the largest view needs {}, but at most 4 GiB fit: raise `downscale`",
                    error::size_rounded_up(view)
                ),
            ));
        }
        // A kernel computes source coordinates itself, and workers make no views.
        let (most_maps, worker, device) = match run.device {
            Device::Cpu => {
                let worker = output_cameras.worker_bytes(&frames);
                (most_maps(run.memory_limit), worker, Default::default())
            }
            Device::Cuda(_) => {
                check_rows(&frames, &output_cameras)?;
                let masks = frames.mask_bytes().next_multiple_of(SCENE_ALIGN as u64);
                let queue = ImageQueue::new(order, frames.frames.len(), run.first_step);
                (0, 0, (queue.images_in_order(), masks))
            }
        };
        let maps = output_cameras.maps(&frames, most_maps)?.places;
        let other_sizes = RunSizes {
            batch: view,
            worker,
            maps: maps.bytes(),
            discs_are_masks: true,
            device,
            ..RunSizes::default()
        };
        let plan = ViewPlan {
            order,
            form,
            output_cameras,
            maps,
            most_maps,
        };
        Ok((plan, other_sizes))
    }

    fn masks(chosen: &mut SplitFrames, words: Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>> {
        masks_within_discs(chosen, words)
    }

    fn prepare_batches(
        options: &ViewKindOptions,
        plan: ViewPlan,
        read: SceneInputs,
        facts: SceneFacts,
    ) -> Result<(ViewsState, Self, ViewSetup)> {
        let frames = read.split.frames;
        let words: Vec<&[u64]> = read.words.iter().map(Vec::as_slice).collect();
        let masks = SceneMasks::seal(&frames, &words)?;
        let maps = match plan.maps.len() {
            0 => None,
            _ => Some(ImageStore::create(
                plan.maps,
                StoreBacking::Memory,
                Path::new(""),
                MAPS_KEY,
            )?),
        };
        let world = options.rank.world;
        let state = ViewsState::new(facts, options.shuffles, world, options.undistort);
        let images = 0..frames.frames.len();
        let cameras = images.filter_map(|image| plan.output_cameras.camera(&frames, image));
        let kind = Self {
            order: plan.order,
            cameras: cameras.copied().collect(),
        };
        let spec = ViewsSpec {
            order: plan.order,
            form: plan.form,
            depth_scale: read.split.depth_scale,
            most_maps: plan.most_maps,
            store: read.store,
        };
        let steps = ViewTickets {
            spec,
            frames,
            output_cameras: plan.output_cameras,
        };
        Ok((state, kind, ViewSetup { steps, masks, maps }))
    }

    fn order<'a>(
        setup: &'a ViewSetup,
        memory: StoreMemory<'a>,
        step: u64,
    ) -> Result<(JobRequest<'a>, BatchRequest)> {
        let order = (setup.steps.spec).order(memory, &setup.masks, setup.maps.as_ref())?;
        Ok((order, setup.steps.place(step)))
    }

    fn workers(setup: ViewSetup) -> ViewTickets {
        setup.steps
    }

    fn kernel(setup: ViewSetup, run: DeviceRun<'_>, step: u64) -> Result<KernelRun<DeviceViews>> {
        let ViewTickets {
            spec,
            frames,
            output_cameras,
        } = setup.steps;
        DeviceViews::open((frames, output_cameras), &setup.masks, spec, run, step)
    }

    fn images(&self) -> Cow<'_, [u32]> {
        let all: Vec<u32> = (0..self.cameras.len() as u32).collect();
        all.into()
    }

    fn first_image(&self, step: u64) -> u32 {
        self.order.image(step) as u32
    }

    fn work(pool: &PoolReport, startup: Duration) -> ViewWork {
        ViewWork {
            startup_s: startup.as_secs_f64(),
            decode_s: decode_seconds(pool),
            show_s: seconds(pool, spec::SHOW),
            idle_s: seconds(pool, JobStage::IDLE),
        }
    }
}

/// The frames, where those with a crop radius count as having a mask. For use before any mask is
/// read.
fn with_discs(chosen: &SplitFrames) -> Cow<'_, StoredFrames> {
    if chosen.crop_radii.iter().all(Option::is_none) {
        return Cow::Borrowed(&chosen.frames);
    }
    let mut frames = chosen.frames.clone();
    for (frame, radius) in frames.frames.iter_mut().zip(&chosen.crop_radii) {
        frame.has_mask |= radius.is_some();
    }
    Cow::Owned(frames)
}

/// # Errors
/// An image that the kernel does not support.
fn check_rows(frames: &StoredFrames, output_cameras: &OutputCameras) -> Result<()> {
    let cameras = (0..frames.frames.len()).filter_map(|image| output_cameras.camera(frames, image));
    match cameras.map(|camera| camera.height).max() {
        Some(rows) if rows > MOST_ROWS => Err(Error::option(
            "downscale",
            format!(
                "an image has {rows} rows, but views on a device have at most {MOST_ROWS}: raise \
                 `downscale`, or use device cpu"
            ),
        )),
        _ => Ok(()),
    }
}

/// Maximum bytes of straightening maps. Maps beyond it are computed again for each view.
fn most_maps(memory_limit: Option<u64>) -> u64 {
    const MOST: u64 = 256 << 20;
    memory_limit.map_or(MOST, |limit| MOST.min(limit / 8))
}

fn unsupported_lens(images: &[PathBuf], refused: &UnsupportedLens) -> Error {
    let path = images.get(refused.image);
    let name = path.map_or_else(String::new, |path| path.display().to_string());
    Error::option(
        "undistort",
        format!(
            "`undistort` is not possible for {name} (lens {}): {}. Remove `undistort`",
            refused.lens, refused.why,
        ),
    )
}

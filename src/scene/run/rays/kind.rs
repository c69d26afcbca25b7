//! Rays as a kind of run: memory, sampling table, and the makers of batches.
//!
//! Runs in the consumer. `scene::run::build` has the order of the start.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::device::ray_launch::RaySceneSizes;
use crate::error::{Error, Result};
use crate::pool::batch_request::BatchRequest;
use crate::pool::job::JobRequest;
use crate::pool::pool_report::PoolReport;
use crate::pool::worker::meter::JobStage;
use crate::scene::draw::{RayTable, RayTableBuilder};
use crate::scene::jobs::device_images::image_uploads::DeviceRun;
use crate::scene::jobs::rays::batch::StepRays;
use crate::scene::jobs::rays::device_rays::DeviceRays;
use crate::scene::jobs::rays::fields::{RayForm, RayLayout};
use crate::scene::jobs::rays::ray_tickets::RayTickets;
use crate::scene::jobs::rays::spec::{self, RaysSpec};
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::kernel_run::KernelRun;
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::jobs::shared::spec::StoreMemory;
use crate::scene::jobs::shared::ticket_run::StepTickets;
use crate::scene::run::rays::options::RayKindOptions;
use crate::scene::run::rays::ray_table::{shape_of, table};
use crate::scene::run::rays::report::RayWork;
use crate::scene::run::rays::state::RaysState;
use crate::scene::run::{
    RunOptions, RunSizes, SceneFacts, SceneInputs, SceneKind, SplitFrames, decode_seconds, seconds,
};

/// Data of a run of rays.
#[derive(Debug)]
pub struct RayKind {
    table: Arc<RayTable>,
    /// Rays per step.
    pub(super) rays: u64,
    most_rays: u64,
}

/// Values computed from options and frames.
#[derive(Debug)]
pub struct RayPlan {
    most_rays: u64,
    form: RayForm,
}

/// Inputs for making rays, before workers or a device start.
#[derive(Debug)]
pub struct RaySetup {
    steps: RayTickets,
    table: Arc<RayTable>,
    masks: SceneMasks,
    frames: StoredFrames,
}

#[expect(private_interfaces, reason = "all kinds are in this crate")]
impl SceneKind for RayKind {
    type Options = RayKindOptions;
    type Plan = RayPlan;
    type Setup = RaySetup;
    type Arrays = StepRays;
    type Request = u64;
    type State = RaysState;
    type Work = RayWork;
    type Workers = RayTickets;
    type Kernel = DeviceRays;

    const LOWER: [&'static str; 2] = ["`rays`, most_rays or `depth`", "rays, most_rays or depth"];
    const MOST_DEPTH: u32 = u32::MAX;

    fn check(options: &RayKindOptions) -> Result<()> {
        options.rank.check()?;
        options.checked_rays().map(drop)
    }

    fn plan(
        run: &RunOptions,
        options: &RayKindOptions,
        chosen: &SplitFrames,
    ) -> Result<(RayPlan, RunSizes)> {
        let plan = RayPlan {
            most_rays: options.checked_rays()?,
            form: RayForm {
                times: chosen.times,
                depths: chosen.has_depths(),
                alpha: run.alpha,
            },
        };
        let frames = &chosen.frames;
        let shutters = (frames.frames.iter()).filter(|frame| frame.rolling_shutter.is_some());
        let sizes = RaySceneSizes {
            table: table_bytes(chosen)?,
            masks: frames.mask_bytes(),
            cameras: frames.cameras.len() as u64,
            shutters: shutters.count() as u64,
            frames: frames.frames.len() as u64,
        };
        let other_sizes = RunSizes {
            batch: RayLayout::new(plan.most_rays as usize, plan.form).bytes() as u64,
            tables: sizes.table,
            device: ((0..frames.places.len() as u32).collect(), sizes.bytes()),
            ..RunSizes::default()
        };
        Ok((plan, other_sizes))
    }

    fn prepare_batches(
        options: &RayKindOptions,
        plan: RayPlan,
        read: SceneInputs,
        facts: SceneFacts,
    ) -> Result<(RaysState, Self, RaySetup)> {
        let draws = (facts.seed, options.joining);
        let (table, masks) = table(&read.split, options.sampler, draws, &read.words)?;
        let table = Arc::new(table);
        let state = RaysState::new(facts, options.sampler, options.joining);
        let kind = Self {
            table: table.clone(),
            rays: options.rays,
            most_rays: plan.most_rays,
        };
        let spec = RaysSpec {
            rank: options.rank.rank,
            most_rays: plan.most_rays,
            form: plan.form,
            depth_scale: read.split.depth_scale,
            store: read.store,
        };
        let steps = RayTickets {
            spec,
            root: read.root,
            posted: options.rays,
        };
        let setup = RaySetup {
            steps,
            table,
            masks,
            frames: read.split.frames,
        };
        Ok((state, kind, setup))
    }

    fn order<'a>(
        setup: &'a RaySetup,
        memory: StoreMemory<'a>,
        step: u64,
    ) -> Result<(JobRequest<'a>, BatchRequest)> {
        let order = (setup.steps.spec).order(memory, &setup.table, &setup.masks)?;
        Ok((order, setup.steps.place(step)))
    }

    fn workers(setup: RaySetup) -> RayTickets {
        setup.steps
    }

    fn kernel(setup: RaySetup, run: DeviceRun<'_>, _: u64) -> Result<KernelRun<DeviceRays>> {
        let draws = (setup.table, &setup.masks);
        DeviceRays::open(&setup.frames, draws, setup.steps.spec, run)
    }

    fn check_request(&self, rays: u64) -> Result<()> {
        let sampler = self.table.sampler();
        let whole = sampler.whole_rays(rays);
        if rays == 0 || whole != rays {
            let per_unit = u64::from(sampler.rays_per_unit());
            return Err(Error::config(format!(
                "{rays} rays are not a multiple of {per_unit}, the rays of a unit: use {}",
                whole.max(per_unit)
            )));
        }
        if rays > self.most_rays {
            return Err(Error::option(
                "most_rays",
                format!(
                    "{rays} rays were requested, but at most {} fit: raise most_rays",
                    self.most_rays
                ),
            ));
        }
        Ok(())
    }

    fn images(&self) -> Cow<'_, [u32]> {
        self.table.drawn_images().into()
    }

    fn first_image(&self, _: u64) -> u32 {
        self.table
            .drawn_images()
            .first()
            .copied()
            .unwrap_or_default()
    }

    fn work(pool: &PoolReport, startup: Duration) -> RayWork {
        RayWork {
            rows_by_worker: pool.processes.rows_by_worker.clone(),
            startup_s: startup.as_secs_f64(),
            draw_s: seconds(pool, spec::DRAW),
            decode_s: decode_seconds(pool),
            trace_s: seconds(pool, spec::TRACE),
            color_s: seconds(pool, spec::COLOR),
            idle_s: seconds(pool, JobStage::IDLE),
        }
    }
}

/// Maximum bytes of the sampling table. Images with an empty mask need less.
fn table_bytes(chosen: &SplitFrames) -> Result<u64> {
    let mut images = Vec::with_capacity(chosen.frames.frames.len());
    for (image, frame) in chosen.frames.frames.iter().enumerate() {
        let camera = chosen.frames.camera(image);
        let size = camera.map_or((0, 0), |camera| (camera.width, camera.height));
        images.push((size, shape_of(chosen, image)?, frame.has_mask));
    }
    Ok(RayTableBuilder::most_bytes(images.into_iter()))
}

//! Rays as a kind of run: what they take, their table of draws, and who makes them.
//!
//! In the consumer. The order of the start is `loader::scene`'s.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::device::ray_launch::RaySceneSizes;
use crate::error::{Error, Result};
use crate::jobs::pictures::on_device::DeviceRun;
use crate::jobs::rays::batch::StepRays;
use crate::jobs::rays::fields::{RayForm, RayLayout};
use crate::jobs::rays::on_device::DeviceRays;
use crate::jobs::rays::run::WorkerRays;
use crate::jobs::rays::spec::RaysSpec;
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::scene::kernel_run::KernelRun;
use crate::jobs::scene::masks::Masks;
use crate::jobs::scene::spec::{StoreMemory, StoreSpec};
use crate::loader::rays::options::RayOptions;
use crate::loader::rays::prepared::{shape_of, table};
use crate::loader::rays::report::RayWork;
use crate::loader::rays::state::RaysState;
use crate::loader::scene::{Beside, Chosen, RunOptions, SceneFacts, SceneKind};
use crate::plan::rays::{RayTable, RayTableBuilder};
use crate::pool::job::JobOrder;
use crate::pool::report::PoolReport;

/// Rays: what a run of them keeps.
#[derive(Debug)]
pub struct RayKind {
    table: Arc<RayTable>,
    /// Of a step.
    pub(super) rays: u64,
    most_rays: u64,
}

/// What follows from options and frames.
#[derive(Debug)]
pub struct RayPlan {
    most_rays: u64,
    form: RayForm,
}

/// What is drawn from.
#[derive(Debug)]
pub struct RayTables {
    table: Arc<RayTable>,
    masks: Masks,
}

#[expect(private_interfaces, reason = "nobody else has a kind of run")]
impl SceneKind for RayKind {
    type Options = RayOptions;
    type Plan = RayPlan;
    type Tables = RayTables;
    type Spec = RaysSpec;
    type Arrays = StepRays;
    type Request = u64;
    type State = RaysState;
    type Work = RayWork;
    type Workers = WorkerRays;
    type Kernel = DeviceRays;

    const LOWER: [&'static str; 2] = ["`rays`, most_rays or `depth`", "rays, most_rays or depth"];
    const MOST_DEPTH: u32 = u32::MAX;

    fn check(options: &RayOptions) -> Result<()> {
        options.checked_rays().map(drop)
    }

    fn plan(run: &RunOptions, options: &RayOptions, chosen: &Chosen) -> Result<(RayPlan, Beside)> {
        let plan = RayPlan {
            most_rays: options.checked_rays()?,
            form: RayForm {
                times: chosen.times,
                depths: chosen.has_depths(),
                alpha: run.alpha,
            },
        };
        let layout = RayLayout::new(plan.most_rays as usize, plan.form);
        let beside = Beside {
            batch: layout.bytes() as u64,
            tables: table_bytes(chosen)?,
            ..Beside::default()
        };
        Ok((plan, beside))
    }

    fn on_device(
        _: &RunOptions,
        _: &RayPlan,
        beside: &Beside,
        chosen: &Chosen,
    ) -> Result<(Vec<u32>, u64)> {
        let frames = &chosen.frames;
        let shutters = (frames.frames.iter()).filter(|frame| frame.rolling_shutter.is_some());
        let sizes = RaySceneSizes {
            table: beside.tables,
            masks: frames.mask_bytes(),
            cameras: frames.cameras.len() as u64,
            shutters: shutters.count() as u64,
            frames: frames.frames.len() as u64,
        };
        Ok(((0..frames.places.len() as u32).collect(), sizes.bytes()))
    }

    fn state(options: &RayOptions, facts: SceneFacts) -> RaysState {
        RaysState {
            version: RaysState::VERSION,
            step: facts.step,
            seed: facts.seed,
            sampler: options.sampler,
            joining: options.joining,
            split: facts.split,
            downscale: facts.downscale,
            images: facts.images,
            scene: facts.scene,
        }
    }

    fn tables(
        (run, options): (&RunOptions, &RayOptions),
        _: &RayPlan,
        chosen: &Chosen,
        words: &[Vec<u64>],
    ) -> Result<RayTables> {
        let draws = (run.seed, options.joining);
        let (table, masks) = table(chosen, options.sampler, draws, words)?;
        Ok(RayTables {
            table: Arc::new(table),
            masks,
        })
    }

    fn spec(options: &RayOptions, plan: &RayPlan, depth_scale: f64, store: StoreSpec) -> RaysSpec {
        RaysSpec {
            rank: options.rank,
            most_rays: plan.most_rays,
            form: plan.form,
            depth_scale,
            store,
        }
    }

    fn new(options: &RayOptions, plan: &RayPlan, tables: &RayTables, _: &Chosen) -> Self {
        Self {
            table: tables.table.clone(),
            rays: options.rays,
            most_rays: plan.most_rays,
        }
    }

    fn order<'a>(
        spec: &RaysSpec,
        memory: StoreMemory<'a>,
        tables: &'a RayTables,
    ) -> Result<JobOrder<'a>> {
        spec.order(memory, &tables.table, &tables.masks)
    }

    fn workers(&self, spec: RaysSpec, _: RayPlan, _: StoredFrames, root: PathBuf) -> WorkerRays {
        WorkerRays {
            spec,
            root,
            posted: self.rays,
        }
    }

    fn kernel(
        (spec, _): (RaysSpec, RayPlan),
        tables: &RayTables,
        frames: StoredFrames,
        run: DeviceRun<'_>,
        step: u64,
    ) -> Result<KernelRun<DeviceRays>> {
        let draws = (tables.table.clone(), &tables.masks);
        DeviceRays::open(&frames, draws, spec, run, step)
    }

    fn check_request(&self, rays: u64) -> Result<()> {
        let sampler = self.table.sampler();
        let whole = sampler.whole_rays(rays);
        if rays == 0 || whole != rays {
            let per_unit = u64::from(sampler.rays_per_unit());
            return Err(Error::config(format!(
                "{rays} rays are not whole units of {per_unit}: ask for {}",
                whole.max(per_unit)
            )));
        }
        if rays > self.most_rays {
            return Err(Error::option(
                "most_rays",
                format!(
                    "{rays} rays were asked for, and there is room for {}: raise most_rays",
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
        RayWork::new(pool, startup)
    }
}

/// Bytes of the table of the draws, at most: images with an empty mask take less.
fn table_bytes(chosen: &Chosen) -> Result<u64> {
    let mut images = Vec::with_capacity(chosen.frames.frames.len());
    for (image, frame) in chosen.frames.frames.iter().enumerate() {
        let camera = chosen.frames.camera(image);
        let size = camera.map_or((0, 0), |camera| (camera.width, camera.height));
        images.push((size, shape_of(chosen, image)?, frame.has_mask));
    }
    Ok(RayTableBuilder::most_bytes(images.into_iter()))
}

//! Options of a run of rays and of one of views: names, types, groups and help.
//!
//! A macro writes both structs, with the options that both have. A struct within another one would
//! let unknown names pass.
//!
//! In the consumer. Never in here: defaults; the builder has them. Help texts name them.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::device::Device;
use crate::error::Result;
#[cfg(feature = "cli")]
use crate::options::cli::{self, one_of};
use crate::options::rank::read_rank;
#[cfg(feature = "cli")]
use crate::options::units;
use crate::options::units::read_seconds;
use crate::picture::BackgroundColor;
use crate::pool::sandbox::Sandbox;
use crate::scene::data::SceneSplit;
use crate::scene::draw::RaySampler;
use crate::scene::run::rays::RayKind;
use crate::scene::run::views::ViewKind;
use crate::scene::run::{SceneBuilder, SceneRun, SceneSource};

/// A struct of options, each `None` or a value. An option has the name of the builder's method
/// that takes it.
macro_rules! run_options {
    (
        $(#[$about:meta])*
        $name:ident: $kind:ty { $($own:tt)* }
    ) => {
        run_options! {
            @with_shared
            $(#[$about])*
            $name: $kind {
                $($own)*

                /// The first step: to go on (default: 0).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
                start: u64,

                /// Which frames are used (default: train).
                #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<SceneSplit>(&SceneSplit::ALL.map(SceneSplit::name)), help_heading = cli::SOURCE))]
                split: SceneSplit,

                /// Leave masks out: rays are drawn from masked pixels too, and views have no mask.
                #[cfg_attr(feature = "cli", arg(long = "no-masks", action = clap::ArgAction::SetFalse, help_heading = cli::RECIPE))]
                masks: bool,

                /// Give depths, also those that the scene's file does not name: by the names of the
                /// images, in `depths` or `depth`.
                #[cfg_attr(feature = "cli", arg(long, action = clap::ArgAction::SetTrue, help_heading = cli::RECIPE))]
                depths: bool,

                /// Keep alpha as a fourth channel, instead of showing the background through.
                #[cfg_attr(feature = "cli", arg(long, action = clap::ArgAction::SetTrue, help_heading = cli::RECIPE))]
                alpha: bool,

                /// Colour behind transparent pixels.
                #[cfg_attr(feature = "cli", arg(skip))]
                background: BackgroundColor,

                /// Read images at 1/N of their width and height (default: 1).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = cli::RECIPE))]
                downscale: u32,

                /// Worker processes; 0 makes the batches in this one (default: the CPUs).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
                num_workers: usize,

                /// Batches that are made ahead (default: the workers and 2; of views at most 8); on
                /// a device those that may be held at a time (default: 4).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
                depth: u32,

                /// Where batches are made: cpu, cuda, or cuda:N (default: cpu). On a device workers
                /// only decode images.
                #[cfg_attr(feature = "cli", arg(long, help_heading = cli::DEVICE))]
                device: Device,

                /// Most memory of the device that the run may take, its context apart. Images that
                /// do not fit are read from the host's memory.
                #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::DEVICE))]
                gpu_memory_limit: u64,

                /// Most memory that all processes may take together, such as 2G, 1500M or bytes.
                /// Images that do not fit are kept in a file.
                #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS))]
                memory_limit: u64,

                /// Where that file goes (default: TMPDIR, or /tmp; /var/tmp where that lies in
                /// memory).
                #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", help_heading = cli::LIMITS))]
                store_folder: PathBuf,

                /// Decode images for this run alone, though another one may have them.
                #[cfg_attr(feature = "cli", arg(long = "own-store", action = clap::ArgAction::SetFalse, help_heading = cli::LIMITS))]
                share_store: bool,

                /// What workers are kept from, beside their work: all system calls and files but
                /// those that they need (auto, as far as the system allows it; require), or nothing
                /// (off) (default: auto).
                #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<Sandbox>(&["auto", "require", "off"]), help_heading = cli::LIMITS))]
                sandbox: Sandbox,

                /// Most time that one step may take (default: 600).
                #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", value_parser = units::seconds, help_heading = cli::LIMITS))]
                #[serde(deserialize_with = "read_seconds")]
                row_limit: Duration,

                /// Most time that `next` waits for a batch to be dropped, in seconds. Commands hold
                /// none.
                #[cfg_attr(feature = "cli", arg(skip))]
                #[serde(deserialize_with = "read_seconds")]
                hold_timeout: Duration,

                /// Most pixels that an image may have (default: 178956970).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
                max_pixels: u64,

                /// Most memory that decoding one image may take, such as 256M (default: 512M).
                #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS))]
                max_scratch: u64,

                /// Seed of draws and orders (default: 0).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
                seed: u64,

                #[cfg_attr(feature = "cli", arg(skip))]
                helper: PathBuf,
            }
        }
    };
    (
        @with_shared
        $(#[$about:meta])*
        $name:ident: $kind:ty {
            $($(#[$meta:meta])* $option:ident: $value:ident,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, Deserialize)]
        #[cfg_attr(feature = "cli", derive(clap::Args))]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$meta])* pub $option: Option<$value>,)*

            /// This process's number among those that train together, from 0; with --world-size
            /// (default: 0).
            #[cfg_attr(feature = "cli", arg(long, value_name = "R", requires = "world_size", help_heading = cli::ORDER))]
            pub rank: Option<u32>,

            /// How many processes train together; with --rank (default: 1).
            #[cfg_attr(feature = "cli", arg(long, value_name = "W", requires = "rank", help_heading = cli::ORDER))]
            pub world_size: Option<u32>,
        }

        impl $name {
            /// The run that they describe.
            ///
            /// # Errors
            /// One of `rank` and `world_size` alone.
            pub fn builder(self, scene: impl Into<SceneSource>) -> Result<SceneBuilder<$kind>> {
                let mut builder = SceneRun::<$kind>::builder(scene);
                if let Some(rank) = read_rank(self.rank, self.world_size)? {
                    builder = builder.rank(rank);
                }
                $(
                    if let Some(value) = self.$option {
                        builder = builder.$option(value);
                    }
                )*
                Ok(builder)
            }
        }
    };
}

run_options! {
    /// Options of a run of rays. What is left out has
    /// [`RaysBuilder`](crate::rays::RaysBuilder)'s default.
    RaysOptions: RayKind {
        /// Rays of a step (default: 4096).
        #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
        rays: u64,

        /// The most rays that a step may be asked for. Commands ask for `rays`.
        #[cfg_attr(feature = "cli", arg(skip))]
        most_rays: u64,

        /// How rays are spread over the images; flags of its own on the command line.
        #[cfg_attr(feature = "cli", arg(skip))]
        sampler: RaySampler,

        /// Images that join at each step, so that the first steps need few; 0: all at once
        /// (default: 4).
        #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
        joining: u32,
    }
}

run_options! {
    /// Options of a run of views. What is left out has
    /// [`ViewsBuilder`](crate::views::ViewsBuilder)'s default.
    ViewsOptions: ViewKind {
        /// Show images in the scene's order, and not in a new random one each epoch.
        #[cfg_attr(feature = "cli", arg(long = "no-shuffle", action = clap::ArgAction::SetFalse, help_heading = cli::ORDER))]
        shuffle: bool,

        /// Straighten images: as a pinhole camera sees them, masks and depths with them.
        #[cfg_attr(feature = "cli", arg(long, action = clap::ArgAction::SetTrue, help_heading = cli::RECIPE))]
        undistort: bool,

        /// Give images as floats from 0 to 1: four bytes a number instead of one.
        #[cfg_attr(feature = "cli", arg(long, action = clap::ArgAction::SetTrue, help_heading = cli::RECIPE))]
        float: bool,
    }
}

//! Options of a run of rays and of a run of views: names, types, groups and help texts.
//!
//! A macro writes both structs, so that they share options. A nested struct would accept unknown
//! names.
//!
//! Runs in the consumer. Not here: defaults, which the builder has. The help texts state them.

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

/// A struct of options, each `None` or a value. An option has the name of its builder method.
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

                /// First step of the run, to continue an earlier one (default: 0).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
                start: u64,

                /// Frames to use: train, eval or test (default: train).
                #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<SceneSplit>(&SceneSplit::ALL.map(SceneSplit::name)), help_heading = cli::SOURCE))]
                split: SceneSplit,

                /// Ignore masks: draw rays from masked pixels too, and leave the mask out of views.
                #[cfg_attr(feature = "cli", arg(long = "no-masks", action = clap::ArgAction::SetFalse, help_heading = cli::RECIPE))]
                masks: bool,

                /// Also return depths, including files that the scene does not name: those with the
                /// names of the images, in `depths` or `depth`.
                #[cfg_attr(feature = "cli", arg(long, action = clap::ArgAction::SetTrue, help_heading = cli::RECIPE))]
                depths: bool,

                /// Keep alpha as a fourth channel instead of compositing on the background.
                #[cfg_attr(feature = "cli", arg(long, action = clap::ArgAction::SetTrue, help_heading = cli::RECIPE))]
                alpha: bool,

                /// Background colour of transparent pixels.
                #[cfg_attr(feature = "cli", arg(skip))]
                background: BackgroundColor,

                /// Read images at 1/N of their width and height (default: 1).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = cli::RECIPE))]
                downscale: u32,

                /// Worker processes; 0 makes the batches in this process (default: number of CPUs).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
                num_workers: usize,

                /// Batches made ahead (default: workers + 2; at most 8 for views). On a device:
                /// batches that may be held at a time (default: 4).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
                depth: u32,

                /// Where batches are made: cpu, cuda, or cuda:N (default: cpu). On a device,
                /// workers only decode images.
                #[cfg_attr(feature = "cli", arg(long, help_heading = cli::DEVICE))]
                device: Device,

                /// Device memory limit of the run, without the CUDA context. Images beyond it are
                /// read from host memory.
                #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::DEVICE))]
                gpu_memory_limit: u64,

                /// Memory limit of all processes together, such as 2G, 1500M or bytes. Images
                /// beyond it are kept in a file.
                #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS))]
                memory_limit: u64,

                /// Folder of that file (default: TMPDIR or /tmp; /var/tmp if that folder is in
                /// memory).
                #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", help_heading = cli::LIMITS))]
                store_folder: PathBuf,

                /// Decode images for this run alone instead of sharing them with other runs.
                #[cfg_attr(feature = "cli", arg(long = "own-store", action = clap::ArgAction::SetFalse, help_heading = cli::LIMITS))]
                share_store: bool,

                /// Restrict workers to the system calls and files that they need: auto (as far as
                /// the system allows it), require, or off (default: auto).
                #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<Sandbox>(&["auto", "require", "off"]), help_heading = cli::LIMITS))]
                sandbox: Sandbox,

                /// Time limit of one step, in seconds (default: 600).
                #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", value_parser = units::seconds, help_heading = cli::LIMITS))]
                #[serde(deserialize_with = "read_seconds")]
                row_limit: Duration,

                /// Longest wait of `next` for a batch to be dropped, in seconds. Has no effect in
                /// commands.
                #[cfg_attr(feature = "cli", arg(skip))]
                #[serde(deserialize_with = "read_seconds")]
                hold_timeout: Duration,

                /// Most pixels that an image may have (default: 178956970).
                #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
                max_pixels: u64,

                /// Memory limit for decoding one image, such as 256M (default: 512M).
                #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS))]
                max_scratch: u64,

                /// Seed of random draws and orders (default: 0).
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

            /// Rank of this process in the training group, from 0; requires --world-size (default:
            /// 0).
            #[cfg_attr(feature = "cli", arg(long, value_name = "R", requires = "world_size", help_heading = cli::ORDER))]
            pub rank: Option<u32>,

            /// Number of processes in the training group; requires --rank (default: 1).
            #[cfg_attr(feature = "cli", arg(long, value_name = "W", requires = "rank", help_heading = cli::ORDER))]
            pub world_size: Option<u32>,
        }

        impl $name {
            /// Creates a builder with these options.
            ///
            /// # Errors
            /// Only one of `rank` and `world_size` is set.
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
    /// Options of a run of rays. An option that is not set has the default of
    /// [`RaysBuilder`](crate::rays::RaysBuilder).
    RaysOptions: RayKind {
        /// Rays per step (default: 4096).
        #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
        rays: u64,

        /// Most rays that one step may request. Commands request `rays`.
        #[cfg_attr(feature = "cli", arg(skip))]
        most_rays: u64,

        /// How rays are distributed over the images. The command line has separate flags for it.
        #[cfg_attr(feature = "cli", arg(skip))]
        sampler: RaySampler,

        /// Images that become available per step, so that the first steps decode few; 0: all at
        /// once (default: 4).
        #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
        joining: u32,
    }
}

run_options! {
    /// Options of a run of views. An option that is not set has the default of
    /// [`ViewsBuilder`](crate::views::ViewsBuilder).
    ViewsOptions: ViewKind {
        /// Return images in the scene's order instead of a new random order each epoch.
        #[cfg_attr(feature = "cli", arg(long = "no-shuffle", action = clap::ArgAction::SetFalse, help_heading = cli::ORDER))]
        shuffle: bool,

        /// Straighten images, masks and depths: as a pinhole camera sees them.
        #[cfg_attr(feature = "cli", arg(long, action = clap::ArgAction::SetTrue, help_heading = cli::RECIPE))]
        undistort: bool,

        /// Return images as floats from 0 to 1: four bytes a value instead of one.
        #[cfg_attr(feature = "cli", arg(long, action = clap::ArgAction::SetTrue, help_heading = cli::RECIPE))]
        float: bool,
    }
}

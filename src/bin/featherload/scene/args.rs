//! Arguments of the commands over a scene.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use featherload::options::{cli, units};
use featherload::scene::{
    Center, ImageOrder, Orientation, SceneFormat, SceneOptions, Split, SplitBy,
};
use featherload::scene::{SceneBuilder, SceneKind, SceneSource};
use featherload::{Device, Sandbox};

/// How a scene is read.
#[derive(Debug, Args)]
pub struct SceneReading {
    /// Read this description of the scene, where there are several (default: the one with the
    /// most images that are there).
    #[arg(long, value_name = "FORMAT", value_parser = cli::one_of::<SceneFormat>(&SceneFormat::ALL.map(SceneFormat::name)), help_heading = cli::SOURCE)]
    format: Option<SceneFormat>,

    /// The order of the images, which decides how they are split: by name, or as nerfstudio's
    /// parser of the format has it (default: nerfstudio; for COLMAP name, as gsplat).
    #[arg(long, value_name = "ORDER", value_parser = cli::one_of::<ImageOrder>(&ImageOrder::ALL.map(ImageOrder::name)), help_heading = cli::SOURCE)]
    image_order: Option<ImageOrder>,

    /// How the world is turned, as nerfstudio's parsers do (default: up; none for Blender,
    /// instant-ngp and LLFF).
    #[arg(long, value_name = "METHOD", value_parser = cli::one_of::<Orientation>(&["up", "vertical", "pca", "none"]), help_heading = cli::SOURCE)]
    orientation: Option<Orientation>,

    /// Where the world's origin lies (default: poses; none for Blender, instant-ngp and LLFF).
    #[arg(long, value_name = "METHOD", value_parser = cli::one_of::<Center>(&["poses", "focus", "none"]), help_heading = cli::SOURCE)]
    center: Option<Center>,

    /// Whether camera centres are scaled into -1 to 1 (default: true; false for Blender and
    /// instant-ngp).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = cli::SOURCE)]
    auto_scale: Option<bool>,

    /// A factor on top of that scale (default: 1).
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = cli::SOURCE)]
    scale_factor: Option<f64>,

    /// Read the images of images_N; 1 reads the originals (default: as nerfstudio chooses).
    #[arg(long, value_name = "N", help_heading = cli::SOURCE)]
    downscale_folder: Option<u32>,

    /// Which frames train: a fraction (0.9), every N-th evaluates (8), filename, listed or all
    /// (default: as the files list it; else every 8th of COLMAP and LLFF and a tenth of the
    /// others evaluate).
    #[arg(long, value_name = "RULE", value_parser = split_by, help_heading = cli::SOURCE)]
    split_by: Option<SplitBy>,

    /// Whether masks are looked for by name where the files name none (default: true).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = cli::SOURCE)]
    find_masks: Option<bool>,

    /// Whether depths that are found by name are read where the files name none (default:
    /// false).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = cli::SOURCE)]
    find_depths: Option<bool>,

    /// What 1 in a depth's file means, in units of the file's world (default: as the file says,
    /// else 0.001).
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = cli::SOURCE)]
    depth_unit: Option<f64>,

    /// Refuse a scene of which an image is missing or cannot be read.
    #[arg(long, help_heading = cli::SOURCE)]
    strict: bool,

    /// The largest transforms.json that is read (default: 256M).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::SOURCE)]
    max_json_bytes: Option<u64>,
}

impl SceneReading {
    pub fn source(&self, scene: &Path) -> SceneSource {
        SceneSource::Path(scene.to_owned(), self.options())
    }

    /// Whether a flag is given.
    pub fn is_given(&self) -> bool {
        self.options() != SceneOptions::default()
    }

    /// What they say, as the library takes it.
    pub fn options(&self) -> SceneOptions {
        let mut options = SceneOptions::default();
        options.format = self.format;
        options.image_order = self.image_order;
        options.orientation = self.orientation;
        options.center = self.center;
        options.auto_scale = self.auto_scale;
        options.scale_factor = self.scale_factor.unwrap_or(options.scale_factor);
        options.downscale_folder = self.downscale_folder;
        options.split = self.split_by;
        options.find_masks = self.find_masks.unwrap_or(options.find_masks);
        options.find_depths = self.find_depths.unwrap_or(options.find_depths);
        options.depth_unit = self.depth_unit;
        options.strict = self.strict;
        options.max_json_bytes = self.max_json_bytes.unwrap_or(options.max_json_bytes);
        options
    }
}

/// What every run over a scene has.
#[derive(Args)]
pub struct SceneRunArgs {
    /// Steps.
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = cli::ORDER)]
    pub steps: u64,

    /// The first step: to go on.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = cli::ORDER)]
    start: u64,

    /// Which frames are used.
    #[arg(long, default_value = "train", value_parser = cli::one_of::<Split>(&Split::ALL.map(Split::name)), help_heading = cli::SOURCE)]
    split: Split,

    /// Leave masks out: rays are drawn from masked pixels too, and views have no mask.
    #[arg(long, help_heading = cli::RECIPE)]
    no_masks: bool,

    /// Give depths, also those that the scene's file does not name: by the names of the images,
    /// in `depths` or `depth`.
    #[arg(long, help_heading = cli::RECIPE)]
    depths: bool,

    /// Leave depths out.
    #[arg(long, conflicts_with = "depths", help_heading = cli::RECIPE)]
    no_depths: bool,

    /// Keep alpha as a fourth channel, instead of showing the background through.
    #[arg(long, help_heading = cli::RECIPE)]
    alpha: bool,

    /// Read images at 1/N of their width and height.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = cli::RECIPE)]
    downscale: u32,

    /// Worker processes; 0 makes the batches in this one (default: the CPUs).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    num_workers: Option<usize>,

    /// Batches that are made ahead (default: the workers and 2; of views at most 8); on a device
    /// those that may be held at a time (default: 4).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    depth: Option<u32>,

    /// Where batches are made: cpu, cuda, or cuda:N. On a device workers only decode images.
    #[arg(long, value_name = "DEVICE", default_value = "cpu", help_heading = cli::DEVICE)]
    device: Device,

    /// Most memory of the device that the run may take, its context apart. Images that do not
    /// fit are read from the host's memory.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::DEVICE)]
    gpu_memory_limit: Option<u64>,

    /// Most memory that all processes may take together, such as 2G, 1500M or bytes.
    /// Images that do not fit are kept in a file.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS)]
    memory_limit: Option<u64>,

    /// Where that file goes (default: TMPDIR, or /tmp; /var/tmp where that lies in memory).
    #[arg(long, value_name = "DIR", help_heading = cli::LIMITS)]
    store_folder: Option<PathBuf>,

    /// Decode images for this run alone, though another one may have them.
    #[arg(long, help_heading = cli::LIMITS)]
    own_store: bool,

    /// What workers are kept from, beside their work: all system calls and files but those
    /// that they need (auto, as far as the system allows it; require), or nothing (off).
    #[arg(long, value_name = "HOW", default_value = "auto", help_heading = cli::LIMITS)]
    sandbox: Sandbox,

    /// Most time that one step may take (default: 600).
    #[arg(long, value_name = "SECONDS", value_parser = units::seconds, help_heading = cli::LIMITS)]
    row_limit: Option<Duration>,

    /// Most pixels that an image may have (default: 178956970).
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    max_pixels: Option<u64>,

    /// Most memory that decoding one image may take, such as 256M (default: 512M).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS)]
    max_scratch: Option<u64>,

    /// Seed of draws and orders.
    #[arg(long, default_value_t = 0, help_heading = cli::ORDER)]
    seed: u64,

    /// Hash every batch: the same digests mean the same batches.
    #[arg(long, help_heading = cli::MEASURE)]
    pub digest: bool,

    /// Kill a worker that often, as 200 (milliseconds): the batches stay the same.
    #[arg(long, value_name = "MS", help_heading = cli::LIMITS)]
    kill_workers_every: Option<u64>,
}

impl SceneRunArgs {
    /// The builder with these options set.
    pub fn apply<K: SceneKind>(&self, builder: SceneBuilder<K>) -> SceneBuilder<K> {
        let mut builder = builder
            .start(self.start)
            .split(self.split)
            .masks(!self.no_masks)
            .alpha(self.alpha)
            .downscale(self.downscale)
            .share_store(!self.own_store)
            .device(self.device)
            .sandbox(self.sandbox)
            .seed(self.seed);
        if self.depths || self.no_depths {
            builder = builder.depths(self.depths);
        }
        builder = with(builder, self.num_workers, SceneBuilder::num_workers);
        builder = with(builder, self.depth, SceneBuilder::depth);
        builder = with(
            builder,
            self.gpu_memory_limit,
            SceneBuilder::gpu_memory_limit,
        );
        builder = with(builder, self.memory_limit, SceneBuilder::memory_limit);
        builder = with(
            builder,
            self.store_folder.as_ref(),
            SceneBuilder::store_folder,
        );
        builder = with(builder, self.row_limit, SceneBuilder::row_limit);
        builder = with(builder, self.max_pixels, SceneBuilder::max_pixels);
        builder = with(builder, self.max_scratch, SceneBuilder::max_scratch);
        if let Some(every) = self.kill_workers_every {
            use featherload::internals::Drilled;
            builder = builder.kill_workers_every(Duration::from_millis(every.max(1)));
        }
        builder
    }
}

/// The builder with an option set, where it is given.
fn with<B, T>(builder: B, value: Option<T>, set: impl FnOnce(B, T) -> B) -> B {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

/// A rule of `--split-by`: whole numbers are intervals, as in Python.
fn split_by(text: &str) -> std::result::Result<SplitBy, String> {
    let wrong = || "use a fraction (0.9), a whole number (8), filename, listed or all".to_owned();
    match text {
        "filename" => Ok(SplitBy::Filename),
        "listed" => Ok(SplitBy::Listed),
        "all" => Ok(SplitBy::All),
        _ => match text.parse::<u64>() {
            Ok(0) => Err("every 0th frame is none: use at least 1".to_owned()),
            Ok(n) => Ok(SplitBy::Interval(n)),
            Err(_) => match text.parse::<f64>() {
                Ok(part) if (0.0..=1.0).contains(&part) => Ok(SplitBy::Fraction(part)),
                _ => Err(wrong()),
            },
        },
    }
}

//! `featherload index SCENE`: the frames of a scene, their cameras and positions.

use std::path::{Path, PathBuf};

use clap::Args;
use featherload::options::cli;
use featherload::scene::{CameraCount, SceneOptions, SceneSplit, SceneSummary, scene_svg};
use featherload::{Lens, Result, Scene};

use crate::outcome::CommandOutcome;
use crate::output;

/// Cameras that are printed; `--json` lists all.
const MOST_CAMERAS: usize = 8;

#[derive(Args)]
pub struct SceneArgs {
    /// Read SRC as a scene: transforms.json, a COLMAP model. A scene in SRC is detected without
    /// this flag.
    #[arg(long, conflicts_with = "samples", help_heading = cli::SOURCE)]
    scene: bool,

    /// Count the images of a scene as samples of a data set.
    #[arg(long, help_heading = cli::SOURCE)]
    samples: bool,

    #[command(flatten)]
    reading: SceneOptions,

    /// For a scene: draw its cameras and points, from above and from the side.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    svg: Option<PathBuf>,
}

impl SceneArgs {
    /// Whether `src` is to be read as a scene.
    pub fn is_scene(&self, src: &Path) -> bool {
        let asked = self.scene || self.reading != SceneOptions::default();
        let is_found = || Scene::detect(src).is_some() || Scene::conversion(src).is_some();
        asked || self.svg.is_some() || (!self.samples && is_found())
    }
}

pub fn run(
    args: &SceneArgs,
    src: &Path,
    max_pixels: Option<u64>,
    json: bool,
) -> Result<CommandOutcome> {
    if let Some(file) = &args.svg {
        output::check_text_writable("--svg", file)?;
    }
    let mut options = args.reading.clone();
    if let Some(pixels) = max_pixels {
        options.max_pixels = pixels;
    }
    let scene = Scene::open(src, &options)?;
    let points = scene.points()?;
    if let Some(file) = &args.svg {
        output::write_whole(file, scene_svg(&scene, points.as_ref()).as_bytes())?;
    }
    let report = scene.report();
    if json {
        output::json(&report)?;
        return Ok(CommandOutcome::Done);
    }
    let points = points.map(|points| points.xyz.len() as u64);
    for line in lines(&report, points) {
        output::line(&line)?;
    }
    Ok(CommandOutcome::Done)
}

/// The printed report.
fn lines(report: &SceneSummary, points: Option<u64>) -> Vec<String> {
    let splits = SceneSplit::ALL.into_iter().filter_map(|split| {
        let count = report.splits.get(&split)?;
        Some(format!("{} {}", output::grouped(*count), split.name()))
    });
    let splits: Vec<String> = splits.collect();
    let all = match report.evaluates_all {
        true => "all train and evaluate".to_owned(),
        false => splits.join(", "),
    };
    let mut lines = vec![format!(
        "{} frames ({all}) under {}; format {}, {:.1} megapixels",
        output::grouped(report.frames),
        report.root.display(),
        report.format,
        report.pixels as f64 * 1e-6
    )];
    if report.downscale_folder > 1 {
        lines.push(format!("images     of images_{}", report.downscale_folder));
    }
    let mut title = "cameras    ";
    for camera in report.cameras.iter().take(MOST_CAMERAS) {
        lines.push(format!("{title}{}", camera_line(camera)));
        title = "           ";
    }
    if let Some(more @ 1..) = report.cameras.len().checked_sub(MOST_CAMERAS) {
        lines.push(format!("           and {more} more (--json lists them)"));
    }
    for (name, count, full_size) in [
        ("masks", report.masks, report.full_size_masks),
        ("depths", report.depths, report.full_size_depths),
    ] {
        if count > 0 {
            let full = match full_size {
                0 => String::new(),
                n => format!(", {} of the original size", output::grouped(n)),
            };
            lines.push(format!("{name:<11}{}{full}", output::grouped(count)));
        }
    }
    if report.found_depths > 0 && report.depths == 0 {
        let found = output::grouped(report.found_depths);
        lines.push(format!(
            "depths     {found} found by name: read with --depths"
        ));
    }
    if report.times > 0 {
        lines.push(format!("times      {}", output::grouped(report.times)));
    }
    let missing = report.missing.lines();
    lines.extend(missing.iter().map(|line| format!("missing    {line}")));
    if let Some(points) = points {
        lines.push(format!("points     {}", output::grouped(points)));
    }
    if report.models.len() > 1 {
        for model in &report.models {
            let images = match model.images {
                Some(images) => format!("{} images", output::grouped(images)),
                None => "cannot be read".to_owned(),
            };
            let read = if model.is_read { ", read" } else { "" };
            lines.push(format!(
                "model      {}: {images}{read}",
                model.folder.display()
            ));
        }
    }
    let corner = |v: &[f64; 3]| format!("({:.3}, {:.3}, {:.3})", v[0], v[1], v[2]);
    lines.push(format!(
        "cameras at {} to {}; 1 unit of the scene is {:.4} of the file",
        corner(&report.bounds[0]),
        corner(&report.bounds[1]),
        1.0 / report.to_scene.scale
    ));
    lines.extend(report.notes.iter().map(|note| format!("note       {note}")));
    lines
}

fn camera_line(count: &CameraCount) -> String {
    let camera = &count.camera;
    let lens = match camera.lens {
        Lens::Pinhole => "pinhole",
        Lens::Brown { .. } => "Brown distortion",
        Lens::Rational { .. } => "rational distortion",
        Lens::Fisheye { .. } => "fisheye",
        Lens::Fisheye624 { .. } => "fisheye 624",
        Lens::ThinPrismFisheye { .. } => "thin prism fisheye",
        Lens::Fov { .. } => "FOV",
        Lens::Equirectangular => "equirectangular",
        Lens::Orthographic => "orthographic",
    };
    format!(
        "{} x {} {lens}, f {:.1} {:.1}, centre {:.1} {:.1}: {} frames",
        camera.width,
        camera.height,
        camera.fx,
        camera.fy,
        camera.cx,
        camera.cy,
        output::grouped(count.frames)
    )
}

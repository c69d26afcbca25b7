//! A small scene whose pixels say where they are.

use std::fs;
use std::path::{Path, PathBuf};

use featherload::rays::{RayBatch, RayField, Rays, RaysBuilder};
use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use twox_hash::XxHash3_128;

use super::FEATHERLOAD;

pub const WIDTH: u32 = 37;
pub const HEIGHT: u32 = 23;
pub const IMAGES: u32 = 7;

/// The colour of a pixel.
pub fn color(image: u32, row: u32, col: u32) -> [u8; 3] {
    [(image * 30) as u8, (row * 11) as u8, (col * 6) as u8]
}

/// Depths of an image.
pub type Depths = ImageBuffer<Luma<u16>, Vec<u16>>;

/// A folder with a scene in it.
pub struct Written {
    dir: tempfile::TempDir,
    masks: bool,
    /// Timing of a rolling shutter, whose cameras turn and move during an image.
    shutter: Option<[f64; 4]>,
    /// So many times WIDTH and HEIGHT.
    times: u32,
}

impl Written {
    pub fn new() -> Self {
        Self::enlarged(1)
    }

    /// So many times as wide and as high.
    pub fn enlarged(times: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("images")).unwrap();
        for image in 0..IMAGES {
            let (width, height) = (times * WIDTH, times * HEIGHT);
            let picture = RgbImage::from_fn(width, height, |x, y| Rgb(color(image, y, x)));
            picture.save(image_path(dir.path(), image)).unwrap();
        }
        let written = Self {
            dir,
            masks: false,
            shutter: None,
            times,
        };
        written.write_transforms();
        written
    }

    /// With a mask for each image that `of` gives one for.
    pub fn with_masks(of: impl Fn(u32) -> Option<GrayImage>) -> Self {
        let mut written = Self::new();
        written.masks = true;
        fs::create_dir(written.path().join("masks")).unwrap();
        for image in 0..IMAGES {
            if let Some(mask) = of(image) {
                mask.save(written.path().join(format!("masks/{image:02}.png")))
                    .unwrap();
            }
        }
        written.write_transforms();
        written
    }

    /// With depths for each image that `of` gives some for.
    pub fn with_depths(of: impl Fn(u32) -> Option<Depths>) -> Self {
        let written = Self::new();
        fs::create_dir(written.path().join("depths")).unwrap();
        for image in 0..IMAGES {
            if let Some(depths) = of(image) {
                depths.save(written.depth(image)).unwrap();
            }
        }
        written.write_transforms();
        written
    }

    /// With images whose pixels have the alpha that `of` image, row and column gives.
    pub fn with_alpha(of: impl Fn(u32, u32, u32) -> u8) -> Self {
        let written = Self::new();
        for image in 0..IMAGES {
            let picture = RgbaImage::from_fn(WIDTH, HEIGHT, |x, y| {
                let [r, g, b] = color(image, y, x);
                Rgba([r, g, b, of(image, y, x)])
            });
            picture.save(written.image(image)).unwrap();
        }
        written
    }

    /// The same with JPEGs under the names that the images had: their content says what they are.
    pub fn into_jpegs(self) -> Self {
        for image in 0..IMAGES {
            fs::write(self.image(image), self.jpeg(image, false)).unwrap();
        }
        self
    }

    /// An image as a JPEG; subsampled in turns.
    pub fn jpeg(&self, image: u32, progressive: bool) -> Vec<u8> {
        let (width, height) = (self.times * WIDTH, self.times * HEIGHT);
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixels: Vec<u8> = places.flat_map(|(x, y)| color(image, y, x)).collect();
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, 80 + image as u8);
        encoder.set_progressive(progressive);
        encoder.set_sampling_factor(match image % 3 {
            0 => SamplingFactor::F_2_2,
            1 => SamplingFactor::F_1_1,
            _ => SamplingFactor::F_2_1,
        });
        let (width, height) = (width as u16, height as u16);
        let kind = ColorType::Rgb;
        encoder.encode(&pixels, width, height, kind).unwrap();
        file
    }

    pub fn depth(&self, image: u32) -> PathBuf {
        self.path().join(format!("depths/{image:02}.png"))
    }

    /// Seen through a rolling shutter.
    pub fn rolling(timing: [f64; 4]) -> Self {
        let mut written = Self::new();
        written.shutter = Some(timing);
        written.write_transforms();
        written
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn image(&self, image: u32) -> PathBuf {
        image_path(self.path(), image)
    }

    fn write_transforms(&self) {
        let frames: Vec<_> = (0..IMAGES)
            .map(|image| {
                let matrix = |later: f64| {
                    let (sin, cos) = (f64::from(image) * 0.7 + 0.2 * later).sin_cos();
                    serde_json::json!([
                        [cos, 0.0, sin, f64::from(image) + 0.5 * later],
                        [0.0, 1.0, 0.0, 0.5],
                        [-sin, 0.0, cos, -2.0],
                        [0.0, 0.0, 0.0, 1.0],
                    ])
                };
                let mut frame = serde_json::json!({
                    "file_path": format!("images/{image:02}.png"),
                });
                match self.shutter {
                    None => frame["transform_matrix"] = matrix(0.0),
                    Some(timing) => {
                        frame["transform_matrix_start"] = matrix(0.0);
                        frame["transform_matrix_end"] = matrix(1.0);
                        frame["rolling_shutter"] = timing.to_vec().into();
                    }
                }
                let mask = format!("masks/{image:02}.png");
                if self.masks && self.path().join(&mask).exists() {
                    frame["mask_path"] = mask.into();
                }
                if self.depth(image).exists() {
                    frame["depth_file_path"] = format!("depths/{image:02}.png").into();
                }
                frame
            })
            .collect();
        let times = f64::from(self.times);
        let transforms = serde_json::json!({
            "camera_model": "OPENCV",
            "w": self.times * WIDTH, "h": self.times * HEIGHT,
            "fl_x": 30.0 * times, "fl_y": 31.0 * times, "cx": 18.0 * times, "cy": 12.5 * times,
            "k1": 0.05, "k2": -0.02, "p1": 0.001, "p2": -0.001,
            "frames": frames,
            "train_filenames": (0..IMAGES).map(|i| format!("images/{i:02}.png")).collect::<Vec<_>>(),
            "val_filenames": [], "test_filenames": [],
        });
        fs::write(self.path().join("transforms.json"), transforms.to_string()).unwrap();
    }

    /// Says in the scene's file that it was taken with a fisheye, whose pixels count this
    /// near to the middle alone.
    pub fn crop(&self, radius: f64) {
        let path = self.path().join("transforms.json");
        let text = fs::read(&path).unwrap();
        let mut text: serde_json::Value = serde_json::from_slice(&text).unwrap();
        text["camera_model"] = "OPENCV_FISHEYE".into();
        text["fisheye_crop_radius"] = radius.into();
        fs::write(path, text.to_string()).unwrap();
    }

    /// Rays of all its images, drawn from all of them at once.
    pub fn rays(&self, workers: usize) -> RaysBuilder {
        Rays::builder(self.path())
            .helper(FEATHERLOAD)
            .num_workers(workers)
            .rays(500)
            .joining(0)
    }
}

fn image_path(folder: &Path, image: u32) -> PathBuf {
    folder.join(format!("images/{image:02}.png"))
}

/// A hash of all that a batch says.
pub fn digest(batch: &RayBatch) -> u128 {
    let mut hash = XxHash3_128::new();
    hash.write(&batch.step().to_le_bytes());
    for field in RayField::ALL {
        hash.write(batch.bytes(field).unwrap());
    }
    hash.finish_128()
}

/// Those of the next steps.
pub fn digests(rays: &mut Rays, steps: usize) -> Vec<u128> {
    (0..steps)
        .map(|_| digest(&rays.next_batch().unwrap()))
        .collect()
}

/// A mask in which `holds` of row and column are in.
pub fn mask(holds: impl Fn(u32, u32) -> bool) -> GrayImage {
    GrayImage::from_fn(WIDTH, HEIGHT, |x, y| Luma([u8::from(holds(y, x))]))
}

/// The least `memory_limit` that is not refused: with a slot, and images in a file.
pub fn least_limit(scene: &Written, workers: usize) -> u64 {
    let rays = scene.rays(workers).depth(1).memory_limit(1);
    let (forecast, refusal) = rays.memory_plan_with_refusal().unwrap();
    assert!(refusal.is_some() && forecast.store.in_file);
    forecast.memory.total_bytes
}

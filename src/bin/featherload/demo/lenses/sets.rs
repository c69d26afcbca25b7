//! The list of scenes: one for each camera model, and one for each optional feature of a scene.
//!
//! Pure: names and numbers, without rendering.

use std::f64::consts::TAU;

use featherload::{Camera, Lens};

use super::super::random::{RandomStream, hash};
use super::place::{CameraMotion, CameraPlace};
use super::render::{MaskPixels, RenderView, ShutterMotion};

/// One scene, which is one folder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LensSet {
    pub(super) name: &'static str,
    /// The camera model, as the scene's file names it.
    pub(super) model: &'static str,
    pub(super) what: &'static str,
    pub(super) form: ImageEncoding,
    pub(super) coding: Coding,
    /// Whether there is a depth beside every image.
    pub(super) depths: bool,
    pub(super) views: Vec<RenderView>,
}

/// The file format of cameras and poses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageEncoding {
    /// nerfstudio's `transforms.json`.
    Transforms,
    ColmapText,
    ColmapBinary,
}

impl ImageEncoding {
    /// Length of one depth level. `transforms.json` states it; COLMAP's models cannot.
    pub(super) fn depth_unit(self) -> f64 {
        match self {
            Self::Transforms => 0.0002,
            Self::ColmapText | Self::ColmapBinary => 0.001,
        }
    }
}

/// The image format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Png,
    /// PNG with transparency.
    Rgba,
    /// JPEG of quality 95, in which every pixel has its own colour.
    Jpeg,
}

impl Coding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Rgba => "rgba",
            Self::Jpeg => "jpeg",
        }
    }

    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Png | Self::Rgba => "png",
            Self::Jpeg => "jpg",
        }
    }
}

const WIDTH: u32 = 61;
const HEIGHT: u32 = 47;
/// Default number of images of a scene.
const VIEWS: u32 = 6;

/// All scenes, in printed order.
pub(super) fn all(seed: u64) -> Vec<LensSet> {
    let mut sets = models();
    sets.extend(feature_sets());
    for (number, set) in (0..).zip(&mut sets) {
        place_on_ring(&mut set.views, hash(hash(seed, 1), number));
    }
    sets
}

/// A scene for each camera model.
fn models() -> Vec<LensSet> {
    let of = |name, model, form, depths, camera, what| LensSet {
        name,
        model,
        what,
        form,
        coding: Coding::Png,
        depths,
        views: vec![view(camera); VIEWS as usize],
    };
    let (json, text, binary) = (
        ImageEncoding::Transforms,
        ImageEncoding::ColmapText,
        ImageEncoding::ColmapBinary,
    );
    let (pinhole, fov) = (Lens::Pinhole, Lens::Fov { omega: 0.95 });
    let sphere = Lens::Equirectangular;
    #[rustfmt::skip] // A scene, and what is printed of it.
    let sets = vec![
        of("pinhole", "PINHOLE", json, false, middle((WIDTH, HEIGHT), [34.0, 33.0], pinhole),
            "no distortion, the principal point exactly in the middle"),
        of("radial", "RADIAL", json, false, odd([46.0, 45.0], RADIAL),
            "a barrel that turns round before the corners, which have no rays"),
        of("opencv", "OPENCV", json, true, brown(),
            "Brown's lens with tangential distortion; depths"),
        of("full-opencv", "FULL_OPENCV", binary, false, odd([26.0, 27.0], RATIONAL),
            "OpenCV's eight coefficients; COLMAP, binary"),
        of("opencv-fisheye", "OPENCV_FISHEYE", json, true, odd([21.0, 20.5], FISHEYE),
            "Kannala-Brandt over more than half the sphere, corners without rays; depths"),
        of("fisheye624", "FISHEYE624", json, false, odd([24.0, 24.5], FISHEYE624),
            "twelve coefficients"),
        of("thin-prism-fisheye", "THIN_PRISM_FISHEYE", text, true, odd([25.0, 25.5], THIN_PRISM),
            "COLMAP as text; depths by their names"),
        of("fov", "FOV", binary, false, odd([30.0, 31.0], fov),
            "COLMAP, binary"),
        of("equirectangular", "EQUIRECTANGULAR", json, false, middle((121, 61), [60.5, 61.0], sphere),
            "the whole sphere"),
        of("orthophoto", "ORTHOPHOTO", json, false, odd([38.0, 39.0], Lens::Orthographic),
            "parallel rays"),
    ];
    sets
}

/// A scene for each optional feature.
fn feature_sets() -> Vec<LensSet> {
    let of = |name, model, coding, depths, views, what| LensSet {
        name,
        model,
        what,
        form: ImageEncoding::Transforms,
        coding,
        depths,
        views,
    };
    let six = || vec![view(brown()); VIEWS as usize];
    // Larger, smaller, upright: each with its own intrinsics.
    let sizes = [(61, 47), (47, 61), (64, 48), (33, 71), (61, 47), (80, 23)];
    let own = sizes.map(|(width, height)| {
        let mut camera = brown().scaled(width, height);
        // Non-square pixels would hide swapped axes.
        camera.fx = camera.fx.max(camera.fy);
        camera.fy = camera.fx + 1.5;
        view(camera)
    });
    let masked = [
        None,
        Some(MaskPixels::Pixel),
        Some(MaskPixels::Empty),
        Some(MaskPixels::Partial),
        None,
        Some(MaskPixels::Board),
    ];
    let masked = masked.map(|mask| RenderView {
        mask,
        ..view(brown())
    });
    let timed = (0..VIEWS).map(|number| RenderView {
        time: Some(f64::from(number) / f64::from(VIEWS - 1)),
        ..view(brown())
    });
    let rolling = TIMINGS.map(|timing| RenderView {
        shutter: timing.map(|timing| ShutterMotion {
            timing,
            motion: MOTION,
        }),
        ..view(brown())
    });
    // The disc is cut at the top and at the bottom.
    let cropped = RenderView {
        crop_radius: Some(24.8),
        ..view(odd([34.0, 33.5], FISHEYE))
    };
    let cropped = vec![cropped; VIEWS as usize];
    let tiny = vec![view(middle((9, 7), [5.0, 5.5], Lens::Pinhole)); 300];
    #[rustfmt::skip] // A scene, and what is printed of it.
    let sets = vec![
        of("jpeg", "OPENCV", Coding::Jpeg, false, six(), "JPEGs of quality 95"),
        of("rgba", "OPENCV", Coding::Rgba, false, six(), "images with transparency"),
        of("own-intrinsics", "OPENCV", Coding::Png, false, own.to_vec(),
            "each frame with its own size and intrinsics, landscape and upright"),
        of("masks", "OPENCV", Coding::Png, false, masked.to_vec(),
            "masks: none, one pixel, empty, a part, every other pixel"),
        of("time", "OPENCV", Coding::Png, false, timed.collect(),
            "colours that change with the time of the frame"),
        of("many", "PINHOLE", Coding::Png, false, tiny,
            "300 images of 9 x 7 pixels: more than half the rays of a small batch"),
        of("rolling-shutter", "OPENCV", Coding::Png, true, rolling.to_vec(),
            "rows or columns are seen one after the other, in several orders; depths"),
        of("crop-radius", "OPENCV_FISHEYE", Coding::Png, false, cropped,
            "fisheye_crop_radius: a disc, magenta beyond it"),
    ];
    sets
}

/// Places the cameras on a ring around the middle. They look outwards.
fn place_on_ring(views: &mut [RenderView], key: u64) {
    let mut s = RandomStream::new(key);
    let count = views.len() as f64;
    for (number, view) in (0..).zip(views) {
        let angle = TAU * f64::from(number) / count;
        let (sine, cosine) = libm::sincos(angle);
        let mut random_offset = |most: f32| f64::from(s.between(-most, most));
        let centre = [0.7 * cosine, 0.6 * sine, random_offset(0.4)];
        view.place = CameraPlace::new(
            centre,
            [
                angle + random_offset(0.5),
                random_offset(0.4),
                random_offset(0.3),
            ],
        );
    }
}

fn view(camera: Camera) -> RenderView {
    RenderView {
        camera,
        place: CameraPlace::new([0.0; 3], [0.0; 3]),
        shutter: None,
        time: None,
        mask: None,
        crop_radius: None,
    }
}

fn brown() -> Camera {
    odd([33.0, 34.0], BROWN)
}

/// An odd size, with the principal point off the middle.
fn odd([fx, fy]: [f64; 2], lens: Lens) -> Camera {
    Camera {
        cx: 31.75,
        cy: 22.125,
        ..middle((WIDTH, HEIGHT), [fx, fy], lens)
    }
}

fn middle((width, height): (u32, u32), [fx, fy]: [f64; 2], lens: Lens) -> Camera {
    Camera {
        width,
        height,
        fx,
        fy,
        cx: 0.5 * f64::from(width),
        cy: 0.5 * f64::from(height),
        lens,
    }
}

/// Timings of the frames of `rolling-shutter`: from the top down; from the bottom up; from the
/// left; in slanted lines, over a part of the motion; without a shutter; all at once, half way.
const TIMINGS: [Option<[f64; 3]>; VIEWS as usize] = [
    Some([0.0, 0.0, 1.0]),
    Some([1.0, 0.0, -1.0]),
    Some([0.0, 1.0, 0.0]),
    Some([0.1, -0.2, 0.7]),
    None,
    Some([0.5, 0.0, 0.0]),
];
/// The motion of the camera during an image.
const MOTION: CameraMotion = CameraMotion {
    axis: [0.48, 0.6, 0.64],
    angle: 0.5,
    way: [0.3, -0.25, 0.2],
};

// Each coefficient is large enough to move a ray visibly.
const RADIAL: Lens = Lens::Brown {
    k: [-0.3, 0.02, 0.0, 0.0],
    p: [0.0; 2],
};
const BROWN: Lens = Lens::Brown {
    k: [0.15, -0.08, 0.04, -0.01],
    p: [0.012, -0.009],
};
const RATIONAL: Lens = Lens::Rational {
    k: [0.3, 0.12, 0.05, 0.2, 0.08, 0.04],
    p: [0.01, -0.008],
};
const FISHEYE: Lens = Lens::Fisheye {
    k: [-0.03, 0.012, -0.006, 0.0004],
};
const FISHEYE624: Lens = Lens::Fisheye624 {
    k: [0.05, -0.03, 0.02, -0.01, 0.006, -0.002],
    p: [0.008, -0.006],
    s: [0.01, -0.006, -0.008, 0.007],
};
const THIN_PRISM: Lens = Lens::ThinPrismFisheye {
    k: [0.04, -0.02, 0.01, -0.004],
    p: [0.007, -0.009],
    s: [0.008, -0.01],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_scenes_have_one_name_and_all_cameras_can_be() {
        let sets = all(0);
        for (number, set) in sets.iter().enumerate() {
            assert!(sets[..number].iter().all(|other| other.name != set.name));
            for view in &set.views {
                assert_eq!(view.camera.check(), Ok(()), "{}", set.name);
            }
        }
    }

    #[test]
    fn every_lens_has_a_scene() {
        let sets = all(0);
        let has = |is: fn(&Lens) -> bool| sets.iter().any(|set| is(&set.views[0].camera.lens));
        assert!(has(|lens| matches!(lens, Lens::Pinhole)));
        assert!(has(|lens| matches!(lens, Lens::Brown { .. })));
        assert!(has(|lens| matches!(lens, Lens::Rational { .. })));
        assert!(has(|lens| matches!(lens, Lens::Fisheye { .. })));
        assert!(has(|lens| matches!(lens, Lens::Fisheye624 { .. })));
        assert!(has(|lens| matches!(lens, Lens::ThinPrismFisheye { .. })));
        assert!(has(|lens| matches!(lens, Lens::Fov { .. })));
        assert!(has(|lens| matches!(lens, Lens::Equirectangular)));
        assert!(has(|lens| matches!(lens, Lens::Orthographic)));
    }
}

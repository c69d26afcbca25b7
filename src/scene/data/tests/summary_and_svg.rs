//! The summary and the drawing.

use super::scenes_on_disk::{Folder, Model, as_is};
use crate::scene::data::scene::SceneSplit;
use crate::scene::data::scene_svg::scene_svg;

#[test]
fn a_report_counts_what_the_scene_has() {
    let folder = Folder::new();
    Model::small().write(&folder);
    let report = folder.open(&as_is()).unwrap().report();
    assert_eq!(report.splits.get(&SceneSplit::Train), Some(&2));
    assert_eq!((report.cameras.len(), report.cameras[0].frames), (1, 3));
    assert_eq!(report.pixels, 3 * 48);
    assert!(report.has_points);
    assert_eq!(report.bounds[0][2], -3.0);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["format"], "colmap");
    assert_eq!(json["splits"]["eval"], 1);
    assert_eq!(json["cameras"][0]["fx"], 9.0);
}

#[test]
fn a_drawing_has_every_camera_twice_and_no_number_that_is_none() {
    let folder = Folder::new();
    Model::small().write(&folder);
    let scene = folder.open(&as_is()).unwrap();
    let points = scene.points().unwrap();
    let svg = scene_svg(&scene, points.as_ref());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<path ").count(), 2 * scene.frames.len());
    assert!(svg.matches("<circle ").count() >= 2, "{svg}");
    assert!(svg.contains("train: 2") && svg.contains("eval: 1"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    // Every opening tag has a closing one.
    assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    // A single camera has no extent.
    let mut one = Model::small();
    one.images.truncate(1);
    let folder = Folder::new();
    one.write(&folder);
    let svg = scene_svg(&folder.open(&as_is()).unwrap(), None);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

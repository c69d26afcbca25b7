//! The same views by any number of workers, through deaths, wherever a run begins.

use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::views::ViewField;
use nix::sys::signal::Signal;

use crate::common::processes::send;
use crate::common::scene::{Written, digests as rays_of, mask};
use crate::{digest, digests, views};

const STEPS: usize = 24;

fn masked() -> Written {
    Written::with_masks(|image| (image == 2).then(|| mask(|row, _| row > 9)))
}

#[test]
fn any_number_of_workers_gives_the_same_views() {
    let scene = masked();
    let wanted = digests(&mut views(&scene, 0).build().unwrap(), STEPS);
    for workers in [1, 2, 8] {
        let mut views = views(&scene, workers).build().unwrap();
        assert!(digests(&mut views, STEPS) == wanted, "{workers} workers");
        let report = views.report().unwrap();
        assert_eq!((report.images, report.decoded), (7, 7));
        assert_eq!((report.workers.len(), report.worker_deaths), (workers, 0));
    }
    let another = digests(&mut views(&scene, 0).seed(1).build().unwrap(), STEPS);
    assert!(another != wanted);
}

#[test]
fn images_that_do_not_fit_in_memory_are_read_from_a_file() {
    let scene = Written::new();
    let wanted = digests(&mut views(&scene, 0).build().unwrap(), STEPS);
    for workers in [0, 2] {
        let refused = views(&scene, workers).depth(1).memory_limit(1);
        let (forecast, refusal) = refused.memory_plan_with_refusal().unwrap();
        assert!(refusal.is_some());
        let least = forecast.memory.total_bytes;
        let limited = views(&scene, workers).depth(1).memory_limit(least);
        let mut limited = limited.build().unwrap();
        assert!(digests(&mut limited, STEPS) == wanted, "{workers} workers");
        assert!(limited.report().unwrap().in_file);
    }
}

#[test]
fn killed_workers_change_nothing() {
    let scene = masked();
    let wanted = digests(&mut views(&scene, 0).build().unwrap(), 300);
    let often = Duration::from_millis(3);
    let mut killed = views(&scene, 3).kill_workers_every(often).build().unwrap();
    assert!(digests(&mut killed, 300) == wanted);
    let mut killed = views(&scene, 2).build().unwrap();
    let victims = killed.report().unwrap().workers;
    assert!(victims.iter().any(|pid| send(*pid, Signal::SIGKILL)));
    assert!(digests(&mut killed, 300) == wanted);
    assert!(killed.report().unwrap().worker_deaths > 0);
}

#[test]
fn a_run_goes_on_by_its_step_or_its_state_which_others_refuse() {
    let scene = masked();
    let wanted = digests(&mut views(&scene, 0).build().unwrap(), STEPS);
    let mut first = views(&scene, 2).build().unwrap();
    assert!(digests(&mut first, 11) == wanted[..11]);
    assert_eq!(first.step(), 11);
    let state = first.state();
    let mut second = views(&scene, 1).start(first.step()).build().unwrap();
    assert!(digests(&mut second, STEPS - 11) == wanted[11..]);
    let mut third = views(&scene, 0).build().unwrap();
    third.resume(&state).unwrap();
    assert!(digests(&mut third, STEPS - 11) == wanted[11..]);
    first.go_to(3);
    assert!(digests(&mut first, 5) == wanted[3..8]);
    for (mut other, named) in [
        (views(&scene, 0).seed(1).build().unwrap(), "seed was 0"),
        (
            views(&scene, 0).shuffle(false).build().unwrap(),
            "shuffle was true",
        ),
        (views(&scene, 0).downscale(2).build().unwrap(), "downscale"),
        (views(&Written::new(), 0).build().unwrap(), "the scene"),
    ] {
        let text = other.resume(&state).unwrap_err().to_string();
        assert!(text.contains(named), "{text}");
        assert_eq!(other.step(), 0);
    }
}

#[test]
fn a_detached_view_is_the_same_and_gives_its_slot_back() {
    let scene = masked();
    let wanted = digests(&mut views(&scene, 0).build().unwrap(), 7);
    let mut shown = views(&scene, 1).depth(1).build().unwrap();
    assert_eq!(shown.depth(), Some(1));
    let mut kept = Vec::new();
    for _ in 0..7 {
        let view = shown.next_view().unwrap();
        assert!(view.is_in_slot());
        let mut view = view.detach().unwrap();
        assert!(!view.is_in_slot());
        let begin = view.address().unwrap() as usize;
        for field in ViewField::ALL {
            let bytes = view.bytes(field).unwrap();
            assert!(bytes.is_empty() != view.has(field));
            let at = begin + view.offset(field);
            assert!(bytes.is_empty() || bytes.as_ptr() as usize == at);
        }
        kept.push(view);
    }
    drop(shown);
    assert!(kept.iter().map(digest).collect::<Vec<_>>() == wanted);
}

#[test]
fn rays_and_views_of_a_scene_share_its_store() {
    let scene = masked();
    let mut rays = scene.rays(1).build().unwrap();
    rays_of(&mut rays, 3);
    let wanted = digests(
        &mut views(&scene, 0).share_store(false).build().unwrap(),
        STEPS,
    );
    assert!(rays.is_decoded());
    let mut shown = views(&scene, 1).build().unwrap();
    assert!(shown.is_decoded());
    assert!(digests(&mut shown, STEPS) == wanted);
}

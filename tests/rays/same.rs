//! The same rays by any number of workers, through deaths, wherever a run begins.

use std::time::Duration;

use featherload::Rank;
use featherload::internals::DrillBuilder;
use featherload::rays::RayField;
use nix::sys::signal::Signal;

use crate::common::processes::send;
use crate::common::scene::{Written, digest, digests, least_limit, mask};

const STEPS: usize = 24;

#[test]
fn any_number_of_workers_gives_the_same_rays() {
    let scene = Written::with_masks(|image| (image == 2).then(|| mask(|row, _| row > 9)));
    let wanted = digests(&mut scene.rays(0).build().unwrap(), STEPS);
    for workers in [1, 2, 8] {
        let mut rays = scene.rays(workers).build().unwrap();
        assert!(digests(&mut rays, STEPS) == wanted, "{workers} workers");
        let report = rays.report().unwrap();
        assert_eq!((report.images, report.decoded), (7, 7));
        assert_eq!((report.workers.len(), report.worker_deaths), (workers, 0));
    }
    // And others by another seed or rank.
    let another = digests(&mut scene.rays(0).seed(1).build().unwrap(), STEPS);
    let rank = digests(
        &mut scene.rays(0).rank(Rank::new(1, 2)).build().unwrap(),
        STEPS,
    );
    assert!(another != wanted && rank != wanted && rank != another);
}

#[test]
fn images_that_do_not_fit_in_memory_are_read_from_a_file() {
    let scene = Written::new();
    let wanted = digests(&mut scene.rays(0).build().unwrap(), STEPS);
    for workers in [0, 2] {
        // The ring and workers fit, and the images do not.
        let limit = least_limit(&scene, workers);
        let mut rays = scene
            .rays(workers)
            .depth(1)
            .memory_limit(limit)
            .build()
            .unwrap();
        assert!(digests(&mut rays, STEPS) == wanted, "{workers} workers");
        assert!(rays.report().unwrap().in_file);
    }
}

#[test]
fn killed_workers_change_nothing() {
    let scene = Written::new();
    let wanted = digests(&mut scene.rays(0).build().unwrap(), 200);
    let mut rays = scene
        .rays(3)
        .kill_workers_every(Duration::from_millis(3))
        .build()
        .unwrap();
    assert!(digests(&mut rays, 200) == wanted);
    // One that has the turn at an image, perhaps: right at the start.
    let mut rays = scene.rays(2).build().unwrap();
    let victims = rays.report().unwrap().workers;
    assert!(victims.iter().any(|pid| send(*pid, Signal::SIGKILL)));
    assert!(digests(&mut rays, 200) == wanted);
    assert!(rays.report().unwrap().worker_deaths > 0);
}

#[test]
fn a_run_goes_on_by_its_step_alone() {
    let scene = Written::new();
    let wanted = digests(&mut scene.rays(0).build().unwrap(), STEPS);
    let mut first = scene.rays(2).build().unwrap();
    assert!(digests(&mut first, 11) == wanted[..11]);
    assert_eq!(first.step(), 11);
    let mut second = scene.rays(1).start(first.step()).build().unwrap();
    assert!(digests(&mut second, STEPS - 11) == wanted[11..]);
    first.go_to(3);
    assert!(digests(&mut first, 5) == wanted[3..8]);
}

#[test]
fn the_number_of_rays_may_change_from_step_to_step() {
    let scene = Written::new();
    let numbers = [500, 501, 499, 20, 2000, 1, 700, 2000];
    let all = {
        let mut rays = scene.rays(0).rays(2000).build().unwrap();
        numbers.map(|_| rays.next_batch().unwrap().indices().unwrap().to_vec())
    };
    for workers in [0, 2] {
        let mut rays = scene.rays(workers).most_rays(2000).build().unwrap();
        for (step, number) in numbers.into_iter().enumerate() {
            let batch = rays.next_rays(number as u64).unwrap();
            assert_eq!((batch.step(), batch.len()), (step as u64, number));
            assert!(batch.indices().unwrap() == &all[step][..number]);
        }
        let e = rays.next_rays(2001).unwrap_err().to_string();
        assert!(e.contains("most_rays"), "{e}");
        assert!(rays.next_rays(0).is_err());
    }
}

#[test]
fn a_detached_batch_is_the_same_and_gives_its_slot_back() {
    let scene = Written::new();
    let wanted = digests(&mut scene.rays(0).build().unwrap(), 4);
    let mut rays = scene.rays(1).depth(1).build().unwrap();
    assert_eq!(rays.depth(), Some(1));
    let mut kept = Vec::new();
    for _ in 0..4 {
        // The slot has room for more rays than these.
        let batch = rays.next_batch().unwrap();
        assert!(batch.is_in_slot());
        let mut batch = batch.detach().unwrap();
        assert!(!batch.is_in_slot());
        let begin = batch.address().unwrap() as usize;
        for field in RayField::ALL {
            let bytes = batch.bytes(field).unwrap();
            let at = begin + batch.offset(field);
            assert!(bytes.is_empty() != batch.has(field));
            assert!(bytes.is_empty() || bytes.as_ptr() as usize == at);
        }
        kept.push(batch);
    }
    assert!(kept.iter().map(digest).collect::<Vec<_>>() == wanted);
}

#[test]
fn a_run_goes_on_by_its_state_which_others_refuse() {
    let scene = Written::new();
    let mut first = scene.rays(2).rank(Rank::new(1, 2)).build().unwrap();
    let wanted = digests(&mut first, STEPS);
    first.go_to(11);
    let state = first.state();
    assert_eq!(state.step, 11);
    // Of any rank and number of rays.
    let mut second = scene.rays(0).rank(Rank::new(1, 2)).build().unwrap();
    second.resume(&state).unwrap();
    assert!(digests(&mut second, STEPS - 11) == wanted[11..]);
    let mut third = scene.rays(0).rays(20).build().unwrap();
    third.resume(&state).unwrap();
    assert_eq!(third.step(), 11);
    let masked = Written::with_masks(|image| (image == 2).then(|| mask(|row, _| row > 9)));
    for (mut other, named) in [
        (scene.rays(0).seed(1).build().unwrap(), "seed was 0"),
        (scene.rays(0).downscale(2).build().unwrap(), "downscale"),
        (masked.rays(0).build().unwrap(), "the scene"),
    ] {
        let text = other.resume(&state).unwrap_err().to_string();
        assert!(text.contains(named), "{text}");
        assert_eq!(other.step(), 0);
    }
}

#[test]
fn batches_outlive_the_run_and_each_other() {
    let scene = Written::new();
    let wanted = digests(&mut scene.rays(0).build().unwrap(), 4);
    let mut rays = scene.rays(2).depth(4).build().unwrap();
    let held: Vec<_> = (0..4).map(|_| rays.next_batch().unwrap()).collect();
    let full = rays.next_rays_within(500, Duration::from_millis(50));
    assert!(full.unwrap().is_none());
    drop(rays);
    let found: Vec<_> = held.iter().map(digest).collect();
    assert!(found == wanted);
}

#[test]
fn a_state_is_of_one_crop_radius() {
    let scene = Written::new();
    scene.crop(8.0);
    let state = scene.rays(1).build().unwrap().state();
    scene.rays(1).build().unwrap().resume(&state).unwrap();
    scene.crop(9.0);
    let e = scene.rays(1).build().unwrap().resume(&state).unwrap_err();
    assert!(e.to_string().contains("the scene"), "{e}");
}

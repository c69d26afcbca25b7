//! Several runs that share a store: each has the rays that it has alone.

use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::common::FEATHERLOAD;
use crate::common::processes::{send, wait_for};
use crate::common::scene::{Written, digests, mask};

const STEPS: usize = 12;

#[test]
fn a_run_finds_what_another_has_decoded() {
    let scene = Written::new();
    let mut first = scene.rays(2).build().unwrap();
    let wanted = digests(&mut first, STEPS);
    let mut second = scene.rays(1).build().unwrap();
    assert!(second.is_decoded());
    // Images go, and the pixels stay: with the last that has the store open they go too.
    for image in 0..crate::common::scene::IMAGES {
        std::fs::rename(scene.image(image), scene.image(image + 50)).unwrap();
    }
    assert!(digests(&mut second, STEPS) == wanted);
    drop(first);
    second.go_to(0);
    assert!(digests(&mut second, STEPS) == wanted);
}

#[test]
fn what_others_have_decoded_is_not_taken_for_ones_own() {
    // Three images to draw from, and others that only a run without masks draws.
    let scene = Written::with_masks(|image| (image < 4).then(|| mask(|_, _| false)));
    // Two rays a step: the first step needs two of the three at most.
    let alone = scene.rays(0).rays(2).share_store(false);
    let wanted = digests(&mut alone.build().unwrap(), 3 * STEPS);
    for seed in 0..8 {
        let other = scene.rays(0).masks(false).joining(1).seed(seed);
        let mut other = other.build().unwrap();
        // As many images as the masked run draws from, but others.
        digests(&mut other, 3);
        for workers in [0, 1] {
            let mut rays = scene.rays(workers).rays(2).build().unwrap();
            let found = digests(&mut rays, 3 * STEPS);
            assert!(found == wanted, "seed {seed}, {workers} workers");
            assert!(rays.is_decoded() && rays.report().unwrap().images == 3);
        }
    }
}

#[test]
fn a_killed_maker_of_the_store_leaves_it_to_the_others() {
    let scene = Written::new();
    let alone = scene.rays(0).share_store(false);
    let wanted = digests(&mut alone.build().unwrap(), STEPS);
    let mut maker = Command::new(FEATHERLOAD)
        .arg("rays")
        .arg(scene.path())
        .args(["--steps", "100000000", "--num-workers", "2", "--json"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Once it has the store, a run finds images that it did not decode.
    let found = wait_for(Duration::from_secs(20), || {
        let rays = scene.rays(1).build().unwrap();
        rays.is_decoded().then_some(rays)
    });
    let mut rays = found.unwrap();
    assert!(send(maker.id() as i32, Signal::SIGKILL));
    maker.wait().unwrap();
    assert!(digests(&mut rays, STEPS) == wanted);
    // And who comes now finds it too.
    assert!(scene.rays(1).build().unwrap().is_decoded());
}

#[test]
fn a_run_with_a_limit_does_not_join_a_store_that_breaks_it() {
    let scene = Written::new();
    let mut first = scene.rays(1).build().unwrap();
    let wanted = digests(&mut first, STEPS);
    let limit = crate::common::scene::least_limit(&scene, 1);
    let limited = scene.rays(1).depth(1).memory_limit(limit);
    let mut limited = limited.build().unwrap();
    assert!(limited.report().unwrap().in_file);
    assert!(digests(&mut limited, STEPS) == wanted);
}

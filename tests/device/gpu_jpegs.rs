//! Engines of a real device: the stream is the same for any number of workers and both ways
//! to the pixels, memory is what was planned, and rates are printed. Without a device, or
//! without photos, it says `SKIP`.

use std::time::{Duration, Instant};

use featherload::internals::Drilled;
use featherload::{DecodeOn, Device, Loader, LoaderBuilder, Position, Upload};

use crate::common::rows::{Row, assert_same, rows};
use crate::common::{builder, cuda, photos};

const MOST: (u32, u32) = (1024, 1024);

/// Rows of the next epoch.
fn epoch(loader: &mut Loader) -> Vec<Row> {
    let batches = loader
        .epoch()
        .map(|batch| batch.unwrap().to_host().unwrap());
    batches.flat_map(|batch| rows(&batch)).collect()
}

/// Images in a second, of so many epochs.
fn rate(loader: &mut Loader, epochs: u64) -> f64 {
    let (began, mut images) = (Instant::now(), 0);
    for _ in 0..epochs {
        for batch in loader.epoch() {
            images += batch.unwrap().len();
        }
    }
    images as f64 / began.elapsed().as_secs_f64()
}

#[test]
fn gpu_engines_give_one_stream_of_photos() {
    let name = "gpu_engines_give_one_stream_of_photos";
    let Some(folder) = cuda::is_there().then(|| photos(name)).flatten() else {
        return;
    };
    let of = |share: Option<f64>, workers| -> LoaderBuilder {
        let b = builder(&folder)
            .batch_size(64)
            .workers(workers)
            .device(Device::Cuda(0))
            .epochs(1000);
        match share {
            Some(share) => (b.decode_on(DecodeOn::Both))
                .engine_share(share)
                .engine_largest(MOST.0, MOST.1),
            None => b,
        }
    };
    let began = Instant::now();
    let mut usual = of(Some(0.663), 4).build().unwrap();
    println!("built in {:.3} s", began.elapsed().as_secs_f64());
    let want: Vec<Vec<Row>> = (0..3).map(|_| epoch(&mut usual)).collect();
    println!("{}", usual.state().profile);
    for (workers, upload) in [
        (12, Upload::InPlace),
        (15, Upload::Copied),
        (1, Upload::Copied),
    ] {
        let b = of(Some(0.663), workers).upload(upload);
        let mut loader = b.build().unwrap();
        for want in &want {
            let what = format!("{workers} workers, {upload}");
            assert_same(&epoch(&mut loader), want, &what);
        }
        let memory = loader.device_memory().unwrap().unwrap();
        println!("{workers} workers, {upload}: {memory:?}");
        assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
    }
    // Killed workers, and a start in the midst of each of 20 batches.
    let b = of(Some(0.663), 15).kill_workers_every(Duration::from_millis(20));
    let mut killed = b.build().unwrap();
    while killed.report().unwrap().worker_deaths < 50 {
        killed.set_epoch(0);
        for want in &want {
            assert_same(&epoch(&mut killed), want, "killed");
        }
    }
    drop(killed);
    let small = |workers| of(Some(0.663), workers).batch_size(5);
    let mut whole = small(15).build().unwrap();
    let want: Vec<Vec<Row>> = (0..3).map(|_| epoch(&mut whole)).collect();
    for n in 0..20u64 {
        let (at, batch) = (n * 7 % 3, n * 5 % whole.plan().batches());
        let first = small(15).start(Position::new(at, batch)).build().unwrap();
        let state = first.state();
        drop(first);
        let mut resumed = small(3).resume(state).build().unwrap();
        let want = &want[at as usize][5 * batch as usize..];
        assert_same(
            &epoch(&mut resumed),
            want,
            &format!("resumed at {at}:{batch}"),
        );
    }
    for share in [None, Some(0.5), Some(0.663), Some(0.8), Some(1.0)] {
        let mut loader = of(share, 15).build().unwrap();
        rate(&mut loader, 20);
        println!("share {share:?}: {:.0} images/s", rate(&mut loader, 100));
    }
}

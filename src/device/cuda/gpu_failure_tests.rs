//! What a real device says when something is not there, or not there any more. Without
//! a device as `gpu_tests`.

use std::env;

use super::gpu_tests::context;
use super::tests::ring::TestRing;
use super::{CudaContext, RowsStage};
use crate::error;

/// More than the device has, and a device that is not there.
#[test]
fn what_is_not_there_is_said_in_bytes_and_by_name() {
    let Some(context) = context() else { return };
    let scene = TestRing::new(1, 1, 4096);
    let all = context.device().total_bytes as usize;
    let free = context.free_bytes().unwrap();
    assert!(free > 0);
    let e = RowsStage::new(&context, scene.ring(), 1, all).unwrap_err();
    let message = e.to_string();
    for words in [
        "cuda:0 (",
        &format!("{} of device memory", error::size_rounded_up(all as u64)),
        "needed for batches",
        "free",
        "lower batch or depth",
    ] {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    let message = CudaContext::open(99).unwrap_err().to_string();
    assert!(
        message.contains("cuda:99 does not exist") && message.contains("cuda:0 ("),
        "{message}"
    );
    // Neither is the end.
    RowsStage::new(&context, scene.ring(), 1, 4096).unwrap();
}

/// Set in the child of the test below.
const CHILD: &str = "FEATHERLOAD_TEST_RESET";

/// PyTorch does not, but `cudaDeviceReset` in the same process does: what was made in
/// the context is gone, and says so; what comes behind it works. In a child, for the
/// other tests of this process have the context too.
#[test]
fn a_context_that_is_reset_is_said_and_left_alone() {
    use std::process::Command;

    use cudarc::driver::sys;

    let Some(before) = context() else { return };
    let name = "device::cuda::gpu_failure_tests::a_context_that_is_reset_is_said_and_left_alone";
    if env::var_os(CHILD).is_none() {
        let out = Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&out.stdout);
        assert!(
            out.status.success() && message.contains("1 passed"),
            "{message}\n{}",
            String::from_utf8_lossy(&out.stderr)
        );
        return;
    }
    drop(before);
    let bytes: Vec<u8> = (0..4096u32).map(|i| i as u8).collect();
    let begin = || {
        let mut scene = TestRing::new(2, 1, bytes.len());
        let context = CudaContext::open(0).unwrap();
        let mut stage = RowsStage::new(&context, scene.ring(), 2, bytes.len()).unwrap();
        let rows = stage
            .submit_rows(scene.held_slot(&bytes), bytes.len(), &[])
            .unwrap();
        assert_eq!(rows.to_host().unwrap(), bytes);
        (scene, stage, rows)
    };
    for with_another in [false, true] {
        let (mut scene, mut stage, rows) = begin();
        // SAFETY: no call of the driver is under way in another thread.
        let reset = unsafe { sys::cuDevicePrimaryCtxReset_v2(0) };
        assert_eq!(reset, sys::CUresult::CUDA_SUCCESS);
        let another = with_another.then(begin);
        for lost in [
            rows.wait(),
            rows.is_ready().map(drop),
            rows.to_host().map(drop),
            stage.drop_read_slots(),
            stage
                .submit_rows(scene.held_slot(&bytes), bytes.len(), &[])
                .map(drop),
        ] {
            let e = lost.unwrap_err().to_string();
            println!("another {with_another}: {e}");
            assert!(e.contains("cuda:0") && e.contains("reset"), "{e}");
        }
        drop(rows);
        drop(stage);
        if let Some((mut scene, mut stage, rows)) = another {
            assert_eq!(rows.to_host().unwrap(), bytes);
            let next = stage
                .submit_rows(scene.held_slot(&bytes), bytes.len(), &[])
                .unwrap();
            assert_eq!(next.to_host().unwrap(), bytes);
        }
    }
    drop(begin());
}

//! Which devices there are.
//!
//! In the consumer, or in the CLI.

use super::cuda;
use super::found::DeviceReport;

/// Looks for devices that batches may end on. Loads the driver's library and starts
/// it, but makes no context: no memory of a device is taken. Never fails: what is
/// missing is said in the report.
///
/// A process that has called this must not go on with CUDA in a forked copy of
/// itself; such a copy may start a pool, whose processes have no CUDA.
pub fn probe() -> DeviceReport {
    cuda::probe()
}

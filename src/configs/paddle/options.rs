//! Options for reading a config.

use super::environment::LauncherEnvironment;

/// Options for reading a config.
#[derive(Debug, Clone)]
pub struct ConfigOptions {
    /// Skips unsupported operations instead of rejecting the config.
    pub skip_unknown_ops: bool,
    /// The launcher's variables, for rank and world.
    pub environment: LauncherEnvironment,
    /// The maximum number of workers that a config may request.
    pub usable_cpus: usize,
}

impl ConfigOptions {
    /// Options with the environment and the CPUs of this process. Nothing is skipped.
    pub fn of_process() -> Self {
        Self {
            skip_unknown_ops: false,
            environment: LauncherEnvironment::of_process(),
            usable_cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }
}

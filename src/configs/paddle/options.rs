//! What a caller says of the reading of a config.

use super::environment::LauncherEnvironment;

/// How a config is read.
#[derive(Debug, Clone)]
pub struct ConfigOptions {
    /// Leaves out operations that are not served, instead of refusing the config.
    pub skip_unknown_ops: bool,
    /// Where rank and world come from.
    pub environment: LauncherEnvironment,
    /// Most workers that a config may ask for.
    pub usable_cpus: usize,
}

impl ConfigOptions {
    /// With the environment and the CPUs of this process; nothing is left out.
    pub fn of_process() -> Self {
        Self {
            skip_unknown_ops: false,
            environment: LauncherEnvironment::of_process(),
            usable_cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }
}

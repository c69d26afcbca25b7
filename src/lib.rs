//! Batches of images for vision and NeRF training, at the speed of the decoder
//! and with the memory of one process.

pub mod batch;
pub(crate) mod coordinator;
pub mod error;
pub mod index;
pub mod loader;
pub mod measure;
pub mod plan;
pub mod recipe;
pub(crate) mod ring;
pub(crate) mod sys;
pub(crate) mod worker;

pub use batch::{Batch, Labels, RowFault};
pub use coordinator::launch::{COORDINATOR_COMMAND, Launch};
#[cfg(feature = "codecs")]
pub use coordinator::process::run_coordinator;
pub use error::{Error, FaultKind, Result, SampleFault};
pub use index::Index;
pub use loader::{Epoch, Loader, LoaderBuilder, LoaderReport, OnError, Source};
pub use plan::{RowStatus, State, Tail};
pub use recipe::{DecodeMode, Dtype, MemoryLayout, NumericProfile, Recipe};

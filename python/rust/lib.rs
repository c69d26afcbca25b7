//! The extension module `featherload._featherload`: loaders, batches and tensors. The Python files
//! beside it are the public interface.
//!
//! - `options`: options from Python, as JSON; `json`: values of the library as JSON;
//! - `items`: samples that Python lists; `feed`: samples whose bytes Python gives during a run;
//!   `stream`: a loader; `batch`: a batch; `captions`: texts that Python has;
//! - `stream_state`: the state that all streams have; `scene_stream`: the common part of streams
//!   over a scene;
//! - `scene`: cameras, frames and points; `rays`: rays of a scene; `ray_batch`: the rays of a step;
//! - `views`: whole images of a scene; `raw_view`: the view of a step;
//! - `held_step`: the memory of these batches; `wait`: waits for work in other threads;
//! - `tensor`: memory of a batch for other libraries; `dlpack`: the format of the exchange;
//! - `errors`: the library's errors as Python exceptions; `logs`: its warnings.
//!
//! Runs in the consumer, in any thread. It releases the GIL during every wait. Never in here: a
//! decoder, a worker, printing.

mod batch;
mod captions;
mod dlpack;
mod errors;
mod feed;
mod held_step;
mod items;
mod json;
mod logs;
mod objects;
mod options;
mod raw_view;
mod ray_batch;
mod rays;
mod scene;
mod scene_stream;
mod stream;
mod stream_state;
mod tensor;
mod views;
mod wait;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _featherload {
    #[pymodule_export]
    use crate::batch::RawBatch;
    #[pymodule_export]
    use crate::errors::printable;
    #[pymodule_export]
    use crate::feed::{RawFeed, RawRequest};
    #[pymodule_export]
    use crate::items::{RawItems, usual_image_columns, usual_label_column, usual_path_column};
    #[pymodule_export]
    use crate::logs::tell_warnings;
    #[pymodule_export]
    use crate::objects::{RawObjectRows, RawObjects};
    #[pymodule_export]
    use crate::options::{
        option_names, plan, rays_option_names, recipe_json, size_in_bytes, views_option_names,
    };
    #[pymodule_export]
    use crate::raw_view::RawView;
    #[pymodule_export]
    use crate::ray_batch::RawRays;
    #[pymodule_export]
    use crate::rays::RayStream;
    #[pymodule_export]
    use crate::scene::RawScene;
    #[pymodule_export]
    use crate::stream::Stream;
    #[pymodule_export]
    use crate::tensor::Tensor;
    #[pymodule_export]
    use crate::views::ViewStream;

    use featherload::measure;
    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        measure::system::check_stack().map_err(|e| PyImportError::new_err(e.to_string()))?;
        crate::logs::listen();
        crate::errors::find_classes(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

//! Which decoder decodes JPEGs, from the options and the data set.
//!
//! In the consumer, before a worker starts. The stream does not depend on the choice.

use serde::Serialize;

use crate::device::{DecodeOn, Device};
use crate::error::{Error, Result};
use crate::recipe::SampleProgram;

/// Which decoder decodes the JPEGs of a run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DecodeChoice {
    /// [`DecodeOn::Gpu`] if the device decodes all files that its kernels support, otherwise
    /// [`DecodeOn::Cpu`].
    pub on: DecodeOn,
    /// The reason, in one sentence.
    pub why: String,
}

/// Which decoder the options request.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecodeWish {
    pub(super) on: DecodeOn,
    pub(super) device: Device,
    /// Why workers must decode these samples, if they must.
    pub(super) by_workers: Option<&'static str>,
}

/// Whether the device should decode JPEGs.
///
/// # Errors
/// `decode_on` is `gpu`, and the run cannot decode on a device.
pub(super) fn device_decodes(wish: DecodeWish, program: &SampleProgram) -> Result<bool> {
    match (wish.on, obstacle(wish, program)) {
        (DecodeOn::Cpu, _) | (DecodeOn::Auto, Some(_)) => Ok(false),
        (_, None) => Ok(true),
        (on, Some(why)) => {
            let fix = wish.by_workers.map_or("", |_| ": leave decode_on out");
            let text = format!("decode_on {on}: {why}{fix}");
            Err(Error::option("decode_on", text))
        }
    }
}

/// The final choice. `has_jpegs`: whether the files that were read contain JPEGs. `decodes`:
/// whether the device decodes.
pub(super) fn decode_choice(
    wish: DecodeWish,
    program: &SampleProgram,
    has_jpegs: bool,
    decodes: bool,
) -> DecodeChoice {
    let (on, why) = match obstacle(wish, program) {
        Some(why) => (DecodeOn::Cpu, why),
        None if decodes => (
            DecodeOn::Gpu,
            "the device decodes the files that its kernels support, and workers the others".into(),
        ),
        None if !has_jpegs => (
            DecodeOn::Cpu,
            "none of the files that were checked is a JPEG".into(),
        ),
        None => (
            DecodeOn::Cpu,
            "gpu_memory_limit leaves no room to decode on the device".into(),
        ),
    };
    DecodeChoice { on, why }
}

/// Why the device does not decode JPEGs. None if it can.
fn obstacle(wish: DecodeWish, program: &SampleProgram) -> Option<String> {
    let DecodeWish {
        on,
        device,
        by_workers,
    } = wish;
    if on == DecodeOn::Cpu {
        return Some("decode_on is cpu".into());
    }
    if device == Device::Cpu {
        return Some("batches are delivered on the CPU: use device cuda to decode on a GPU".into());
    }
    if let Some(why) = by_workers {
        return Some(why.into());
    }
    if cfg!(not(feature = "codecs")) {
        return Some(
            "this build has no decoders, which are needed for images that the device flags: build with \
             the feature `codecs`"
                .into(),
        );
    }
    if program.is_crop_set() {
        return Some("workers decode the images of recipes with several crops".into());
    }
    match (&program.crops, program.with_crops()) {
        (Some(_), _) => None,
        (None, Err(why)) => Some(format!("workers finish the rows: {why}")),
        (None, Ok(_)) => Some("workers finish the rows of this recipe".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Recipe, ReorderMode};

    #[test]
    fn auto_decodes_where_it_can_and_gpu_says_why_not() {
        let program = SampleProgram::compile(&Recipe::train224()).unwrap();
        let crops = program.with_crops().unwrap();
        let separate = Recipe::train224().with_reorder(ReorderMode::Off);
        let separate = SampleProgram::compile(&separate).unwrap();
        let cuda = Device::Cuda(0);
        for (on, device, program, expected) in [
            (DecodeOn::Auto, cuda, &crops, Ok(true)),
            (DecodeOn::Gpu, cuda, &crops, Ok(true)),
            (DecodeOn::Cpu, cuda, &crops, Ok(false)),
            (DecodeOn::Auto, Device::Cpu, &program, Ok(false)),
            (DecodeOn::Gpu, Device::Cpu, &program, Err("use device cuda")),
            (DecodeOn::Auto, cuda, &separate, Ok(false)),
            (DecodeOn::Gpu, cuda, &separate, Err("reorder: off")),
        ] {
            let wish = |by_workers| DecodeWish {
                on,
                device,
                by_workers,
            };
            let found = device_decodes(wish(None), program);
            match (&found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(*found, expected, "{on} {device}"),
                (Err(why), Err(part)) => assert!(why.to_string().contains(part), "{why}"),
                other => panic!("{on} {device}: {other:?}"),
            }
            let outlook = decode_choice(wish(None), program, true, true);
            assert_eq!(outlook.on == DecodeOn::Gpu, matches!(found, Ok(true)));
            let workers = wish(Some("on_error is substitute"));
            let never = device_decodes(workers, program);
            assert_ne!(never.as_ref().ok(), Some(&true), "{on} {device}");
            if (on, device) == (DecodeOn::Gpu, cuda) {
                let why = never.unwrap_err().to_string();
                assert!(
                    why.contains("on_error is substitute: leave decode_on out"),
                    "{why}"
                );
            }
            let outlook = decode_choice(workers, program, true, false);
            assert_eq!(outlook.on, DecodeOn::Cpu);
            if on != DecodeOn::Cpu && device == cuda {
                assert_eq!(outlook.why, "on_error is substitute");
            }
        }
    }
}

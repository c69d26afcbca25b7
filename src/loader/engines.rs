//! Which JPEGs the engines of a device decode: what was asked for, and what becomes of it.
//!
//! In the consumer. Settled before a worker starts, and never changed: who decodes a row is
//! part of the stream. The share follows from the device and the CPUs that this process may
//! use, not from how many workers there are: so their number does not change the stream.

use crate::device::cuda::EngineThread;
use crate::device::{DecodeOn, Device, EngineInfo};
use crate::error::{Error, Result};
use crate::forecast::memory::Depth;
use crate::jobs::images::spec::EngineRule;
use crate::picture::jpeg::plain::LEAST_SIDE;
use crate::plan::{EngineShare, State};
use crate::pool::crew::default_workers;
use crate::recipe::{EngineProfile, SampleProgram};

/// Width and height of the largest picture, where nobody says another: of 66 ImageNet photos 61
/// can be handed over with it, and 52 with 512 x 512. Engines then take 180 MiB of the device
/// for each of two lanes.
const LARGEST: (u32, u32) = (1024, 1024);
/// Rows beside those of the usual slots: those of both lanes, those that wait for one, and those
/// that workers are at. A batch is handed over when its last row is there, and a large picture
/// takes a worker as long as engines take for hundreds.
const WITH_ENGINES: u32 = 512;
/// The longest side that engines decode.
const MOST_SIDE: u32 = 16_384;

/// As a user asks for engines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    pub(super) on: DecodeOn,
    /// The part of the positions that is theirs; none = by what device and CPUs can do.
    pub(super) share: Option<f64>,
    /// Width and height of the largest picture.
    pub(super) largest: Option<(u32, u32)>,
}

/// Engines that a run wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) largest: (u32, u32),
    share: Option<EngineShare>,
    /// Without them workers decode all.
    optional: bool,
}

/// Slots of a ring where engines decode, in the place of so many: more, where nobody says a
/// number. On an H100 batches of 64 photos came at 19,900 images/s with 6 slots, at 24,100 with
/// 12, and at 25,100 with 16.
pub(super) fn depth(asked: Depth, batch: u32) -> Depth {
    match asked {
        Depth::AtMost(slots) => Depth::AtMost(slots + WITH_ENGINES.div_ceil(batch.max(1))),
        Depth::Exactly(slots) => Depth::Exactly(slots),
    }
}

/// Engines that are being opened.
#[derive(Debug)]
pub(super) struct Opening {
    wanted: Wanted,
    thread: EngineThread,
}

/// What a run has of them.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) rule: EngineRule,
    pub(super) profile: EngineProfile,
    pub(super) thread: EngineThread,
}

impl Asked {
    /// What a run wants of engines; none = nothing. `resume` has what its run had, where
    /// nobody says otherwise.
    ///
    /// # Errors
    /// Options that have no effect, a recipe whose rows no device makes.
    pub(super) fn wanted(
        &self,
        device: Device,
        program: &SampleProgram,
        resume: Option<&State>,
    ) -> Result<Option<Wanted>> {
        if self.on == DecodeOn::Cpu {
            let unused = [
                ("engine_share", self.share.is_some()),
                ("engine_largest", self.largest.is_some()),
            ];
            return match unused.iter().find(|(_, said)| *said) {
                Some((option, _)) => Err(Error::option(
                    option,
                    format!("{option} has no effect on decode_on cpu: use decode_on both"),
                )),
                None => Ok(None),
            };
        }
        if device == Device::Cpu {
            return Err(Error::option(
                "decode_on",
                format!(
                    "decode_on {} needs the engines of a device: use device cuda, or decode_on cpu",
                    self.on
                ),
            ));
        }
        let then = resume.and_then(|state| state.profile.engines.as_ref());
        let optional = self.on == DecodeOn::Auto;
        if program.crops.is_none() {
            let why = "workers finish the rows of this recipe (`plan` says why), so engines \
                       cannot make them: use decode_on cpu";
            return match optional {
                true => Ok(None),
                false => Err(Error::option("decode_on", why)),
            };
        }
        let share = match (self.on, self.share) {
            (DecodeOn::Engines, Some(_)) => {
                return Err(Error::option(
                    "engine_share",
                    "decode_on engines gives them all that they take: use decode_on both with \
                     engine_share",
                ));
            }
            (DecodeOn::Engines, None) => Some(EngineShare::new(1.0)?),
            (_, Some(share)) => Some(EngineShare::new(share)?),
            (_, None) => match then {
                Some(then) => Some(EngineShare::try_from(then.share).map_err(Error::config)?),
                None => None,
            },
        };
        let largest = self.largest.or(then.map(|then| then.largest));
        let (width, height) = largest.unwrap_or(LARGEST);
        let sides = LEAST_SIDE..=MOST_SIDE;
        if !sides.contains(&width) || !sides.contains(&height) {
            return Err(Error::option(
                "engine_largest",
                format!(
                    "engine_largest is {width} x {height}, and engines take sides of {LEAST_SIDE} \
                     to {MOST_SIDE} pixels: use one between"
                ),
            ));
        }
        Ok(Some(Wanted {
            largest: (width, height),
            share,
            optional,
        }))
    }
}

impl Wanted {
    /// Whether a run does without them where there are none.
    pub(super) fn is_optional(&self) -> bool {
        self.optional
    }
}

impl Opening {
    pub(super) fn new(wanted: Wanted, thread: EngineThread) -> Self {
        Self { wanted, thread }
    }

    pub(super) fn is_optional(&self) -> bool {
        self.wanted.optional
    }

    /// Waits until it is known which engines there are, and where a run does without until
    /// they are open; none then, if they are not.
    ///
    /// # Errors
    /// Why there are none, where a run needs them.
    pub(super) fn opened(mut self) -> Result<Option<Opened>> {
        let mut found = self.thread.found();
        if self.wanted.optional {
            found = found.and_then(|info| self.thread.opened().map(|()| info));
        }
        match found {
            Ok(info) => {
                let (rule, profile) = self.wanted.settle(&info);
                Ok(Some(Opened {
                    rule,
                    profile,
                    thread: self.thread,
                }))
            }
            Err(why) if self.wanted.optional => {
                tracing::warn!("workers decode all: {why}");
                Ok(None)
            }
            Err(why) => Err(why),
        }
    }
}

impl Wanted {
    /// What these engines decode, and what the profile says of them.
    pub(super) fn settle(&self, info: &EngineInfo) -> (EngineRule, EngineProfile) {
        let share = self.share.unwrap_or_else(|| {
            // One CPU feeds the engines, and takes batches.
            let decoders = default_workers().saturating_sub(1).max(1);
            EngineShare::balanced(info.engines, u32::try_from(decoders).unwrap_or(u32::MAX))
        });
        let most = self.largest;
        let profile = EngineProfile {
            library: info.library.clone(),
            share: share.into(),
            largest: most,
        };
        (EngineRule { share, most }, profile)
    }
}

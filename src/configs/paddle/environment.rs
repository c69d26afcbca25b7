//! The variables of PaddlePaddle's launcher: the rank of this process. Read once, in the process
//! that makes the loader.

use crate::error::{Error, Result};
use crate::order::Rank;

/// The launcher sets all of these variables.
const TRAINER: &str = "PADDLE_TRAINER_ID";
const TRAINERS: &str = "PADDLE_TRAINERS_NUM";
const SELECTED: &str = "FLAGS_selected_gpus";

/// Values of the launcher's variables. None: not set. By default none is set, for callers that set
/// rank and world themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LauncherEnvironment {
    pub trainer: Option<String>,
    pub trainers: Option<String>,
    pub selected_gpus: Option<String>,
}

impl LauncherEnvironment {
    /// The values in this process.
    pub fn of_process() -> Self {
        let read = |name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
        Self {
            trainer: read(TRAINER),
            trainers: read(TRAINERS),
            selected_gpus: read(SELECTED),
        }
    }

    /// Rank and world: the launcher's if all three variables are set, else 0 of 1. The text is a
    /// note for the user.
    ///
    /// # Errors
    /// If a value is not a number, or the rank is not below the world size.
    pub(crate) fn rank(&self) -> Result<(Rank, Option<String>)> {
        let (Some(trainer), Some(trainers), Some(_)) =
            (&self.trainer, &self.trainers, &self.selected_gpus)
        else {
            let set = [
                (TRAINER, self.trainer.is_some()),
                (TRAINERS, self.trainers.is_some()),
                (SELECTED, self.selected_gpus.is_some()),
            ];
            let names = |is: bool| -> Vec<&str> {
                let of = set.iter().filter(|(_, set)| *set == is);
                of.map(|(name, _)| *name).collect()
            };
            let note = (!names(true).is_empty()).then(|| {
                format!(
                    "{} without {}: only all three count, so this is rank 0 of 1",
                    names(true).join(" and "),
                    names(false).join(" and ")
                )
            });
            return Ok((Rank::default(), note));
        };
        let number = |name: &str, text: &str| {
            text.trim().parse::<u32>().map_err(|_| {
                Error::config(format!(
                    "the environment has {name}={text:?}: use a whole number of 0 or more, or \
                     unset it"
                ))
            })
        };
        let (rank, world) = (number(TRAINER, trainer)?, number(TRAINERS, trainers)?);
        if rank >= world {
            return Err(Error::config(format!(
                "the environment has {TRAINER}={rank} and {TRAINERS}={world}: ranks count from 0"
            )));
        }
        Ok((Rank::new(rank, world), None))
    }
}

#[cfg(test)]
mod tests {
    use super::LauncherEnvironment;
    use crate::order::Rank;

    fn of(trainer: &str, trainers: &str, gpus: &str) -> LauncherEnvironment {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        LauncherEnvironment {
            trainer: some(trainer),
            trainers: some(trainers),
            selected_gpus: some(gpus),
        }
    }

    #[test]
    fn all_three_or_none() {
        assert_eq!(of("2", "4", "2").rank().unwrap(), (Rank::new(2, 4), None));
        assert_eq!(of("", "", "").rank().unwrap(), (Rank::default(), None));
        let (rank, note) = of("2", "4", "").rank().unwrap();
        assert_eq!(rank, Rank::default());
        let note = note.unwrap();
        assert!(note.contains("PADDLE_TRAINER_ID and PADDLE_TRAINERS_NUM without FLAGS"));
        assert!(of("", "", "0").rank().unwrap().1.is_some());
    }

    #[test]
    fn wrong_numbers_are_named() {
        for (env, word) in [
            (of("x", "4", "0"), "PADDLE_TRAINER_ID=\"x\""),
            (of("0", "-4", "0"), "PADDLE_TRAINERS_NUM=\"-4\""),
            (of("4", "4", "0"), "PADDLE_TRAINER_ID=4 and"),
            (of("0", "0", "0"), "PADDLE_TRAINERS_NUM=0"),
        ] {
            let e = env.rank().unwrap_err();
            assert!(e.is_usage(), "{e}");
            let e = e.to_string();
            assert!(e.contains("the environment") && e.contains(word), "{e}");
        }
    }
}

//! Properties that must hold after each change of a row, and at the end.
//!
//! The routine of the consumer in `processes` checks the bytes of each delivered row twice: at
//! delivery and at release.

use crate::memory::Place;
use crate::plan::Config;
use crate::pool::ring::attempt;
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::processes::End;
use crate::state::{Life, State};

/// The process that performs an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Worker { lane: usize, serial: u32 },
    Consumer,
    Coordinator,
}

/// Which process may make which change of a row word, and may write a row's bytes.
///
/// Together these rules mean: the bytes of a row have at most one live writer, the owner in its
/// word; a slot is never posted while a row of it is claimed; a row is committed once per ticket.
pub(crate) fn row_rules(
    state: &State,
    actor: Actor,
    place: Place,
    row_word: u64,
    to: u64,
) -> Result<(), String> {
    use RowState::{Claimed, Done, Failed, Open, Void};
    let from = RowWord::unpack(row_word);
    let to_word = RowWord::unpack(to);
    let same_ticket = from.sequence == to_word.sequence;
    let allowed = match (place, actor) {
        (Place::Payload(..) | Place::Attempt(..), Actor::Worker { serial, .. }) => {
            from.state == Claimed && from.owner == serial
        }
        (Place::Row(..), Actor::Worker { serial, .. }) => {
            same_ticket
                && to_word.owner == serial
                && match (from.state, to_word.state) {
                    (Open, Claimed) => true,
                    (Claimed, Done | Failed) => from.owner == serial,
                    _ => false,
                }
        }
        (Place::Attempt(..), Actor::Coordinator) => {
            from.state == Claimed && !state.not_reaped(from.owner)
        }
        (Place::Row(..), Actor::Coordinator) => {
            same_ticket
                && from.state == Claimed
                && matches!(to_word.state, Open | Failed)
                && !state.not_reaped(from.owner)
        }
        (Place::Row(..), Actor::Consumer) => match to_word.state {
            Void if same_ticket => from.state == Open,
            Open | Void => to_word.sequence > from.sequence && !matches!(from.state, Claimed),
            _ => false,
        },
        _ => false,
    };
    if allowed {
        Ok(())
    } else {
        Err(format!(
            "{actor:?} must not write {place:?} while the row is {from:?}"
        ))
    }
}

/// A row advances from one attempt to the next. None is skipped, repeated after the next began, or
/// beyond the last.
pub(crate) fn attempt_rule(c: &Config, row_word: u64, from: u64, to: u64) -> Result<(), String> {
    let sequence = RowWord::unpack(row_word).sequence;
    let (before, now) = (
        attempt::unpack(from, sequence),
        attempt::unpack(to, sequence),
    );
    if to == attempt::pack(sequence, now) && now == before + 1 && now <= c.tries {
        return Ok(());
    }
    Err(format!(
        "the attempt {from:#x} of a row of ticket {sequence} must not become {to:#x}"
    ))
}

/// A ticket is written only while no row of its slot is claimed.
pub(crate) fn ticket_rule(slot: u32, rows: impl Iterator<Item = u64>) -> Result<(), String> {
    match rows
        .map(RowWord::unpack)
        .find(|r| r.state == RowState::Claimed)
    {
        None => Ok(()),
        Some(row) => Err(format!("a ticket for slot {slot} while it has {row:?}")),
    }
}

/// No process can do anything: all must have ended, as planned.
pub(crate) fn at_the_end(c: &Config, state: &State, ends: &[Option<End>]) -> Result<(), String> {
    let stuck: Vec<_> = state
        .lives()
        .zip(ends)
        .enumerate()
        .filter_map(|(process, (life, end))| match (life, end) {
            (Life::Runs, Some(_)) | (Life::Zombie | Life::Absent, _) => None,
            (Life::Asleep, _) => Some(format!("{} sleeps for ever", state.name(process))),
            (Life::Runs, None) => Some(format!("{} waits for ever", state.name(process))),
        })
        .collect();
    if !stuck.is_empty() {
        return Err(stuck.join(", "));
    }
    match ends[state.consumer()] {
        _ if state.life(state.consumer()) == Life::Zombie => Ok(()),
        Some(End::Delivered) => Ok(()),
        Some(End::GivenUp) if c.give_up_at.is_some() => Ok(()),
        Some(End::CoordinatorLost) if state.life(state.coordinator()) == Life::Zombie => Ok(()),
        end => Err(format!("the consumer ended with {end:?}")),
    }
}

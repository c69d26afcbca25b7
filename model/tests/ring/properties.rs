//! What must hold: after each change of a row, and at the end.
//!
//! What the consumer sees (bytes of each delivered row, twice: at delivery and
//! when it lets go) is checked by its routine in `processes`.

use crate::memory::Place;
use crate::plan::Config;
use crate::pool::ring::attempt;
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::processes::End;
use crate::state::{Life, State};

/// Who performs an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Worker { lane: usize, serial: u32 },
    Consumer,
    Coordinator,
}

/// Which change of a row word is whose, and who may write a row's bytes.
///
/// Together: a row's bytes have at most one live writer, the owner named in its
/// word; a slot is never posted into while a row of it is claimed; a row is
/// committed once for each ticket.
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

/// A row goes on from one attempt to the next: none is left out, none is done
/// again once the next was begun, none is behind the last.
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

/// Nobody can do anything any more: everybody must have ended, and as the plan
/// says.
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

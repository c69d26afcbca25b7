//! The word of a row: 8 bits of state, 24 bits of owner, 32 bits of the ticket's sequence.
//!
//! Used by every process. All three change in one compare-and-swap, so a claimed row always has an
//! owner.

/// State of a row in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum RowState {
    /// Belongs to no ticket: unused, beyond a short batch, or cancelled.
    Void = 0,
    /// Posted; any worker may claim it.
    Open = 1,
    /// Its owner fills it.
    Claimed = 2,
    /// Filled.
    Done = 3,
    /// Final without pixels. The row record holds the fault.
    Failed = 4,
}

/// Largest serial of a worker; 0 means "no owner".
pub(crate) const MAX_SERIAL: u32 = (1 << 24) - 1;

/// A row word, unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowWord {
    pub(crate) state: RowState,
    /// Serial of the worker that claimed or committed the row; 0 for none.
    pub(crate) owner: u32,
    /// Sequence of the row's ticket.
    pub(crate) sequence: u32,
}

impl RowWord {
    pub(crate) fn void(sequence: u32) -> Self {
        Self::new(RowState::Void, 0, sequence)
    }

    pub(crate) fn open(sequence: u32) -> Self {
        Self::new(RowState::Open, 0, sequence)
    }

    pub(crate) fn claimed(owner: u32, sequence: u32) -> Self {
        Self::new(RowState::Claimed, owner, sequence)
    }

    pub(crate) fn new(state: RowState, owner: u32, sequence: u32) -> Self {
        Self {
            state,
            owner,
            sequence,
        }
    }

    pub(crate) fn pack(self) -> u64 {
        (self.state as u64) << 56
            | u64::from(self.owner & MAX_SERIAL) << 32
            | u64::from(self.sequence)
    }

    /// Unpacks a word. An unknown state becomes void, which is never claimed, filled or delivered.
    pub(crate) fn unpack(word: u64) -> Self {
        let state = match word >> 56 {
            1 => RowState::Open,
            2 => RowState::Claimed,
            3 => RowState::Done,
            4 => RowState::Failed,
            _ => RowState::Void,
        };
        Self {
            state,
            owner: (word >> 32) as u32 & MAX_SERIAL,
            sequence: word as u32,
        }
    }

    /// Whether no version writes such a word: an unknown state, or an owner where there must be
    /// none. No claim would ever succeed on it.
    pub(crate) fn is_unknown(word: u64) -> bool {
        let (state, owner) = (word >> 56, Self::unpack(word).owner);
        state > RowState::Failed as u64 || (state <= RowState::Open as u64 && owner != 0)
    }

    /// Whether the row of ticket `sequence` needs no more work.
    pub(crate) fn is_final(self, sequence: u32) -> bool {
        self.sequence == sequence && matches!(self.state, RowState::Done | RowState::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_and_unpacks_at_the_limits() {
        for state in [
            RowState::Void,
            RowState::Open,
            RowState::Claimed,
            RowState::Done,
            RowState::Failed,
        ] {
            for owner in [0, 1, MAX_SERIAL] {
                for sequence in [0, 1, u32::MAX] {
                    let w = RowWord::new(state, owner, sequence);
                    assert_eq!(RowWord::unpack(w.pack()), w);
                }
            }
        }
    }

    #[test]
    fn an_unknown_state_is_nobodys() {
        let w = RowWord::unpack(0xff << 56 | 5);
        assert_eq!(w.state, RowState::Void);
        assert!(RowWord::is_unknown(0xff << 56 | 5) && RowWord::is_unknown(5 << 56));
        for owned in [RowState::Void, RowState::Open] {
            assert!(!RowWord::is_unknown(RowWord::new(owned, 0, 5).pack()));
            assert!(RowWord::is_unknown(RowWord::new(owned, 4, 5).pack()));
        }
        assert!(!RowWord::is_unknown(RowWord::claimed(4, 5).pack()));
        assert!(!w.is_final(5));
    }
}

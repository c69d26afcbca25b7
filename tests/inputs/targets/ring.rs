//! The ring of a pool under a worker that writes anything.
//!
//! The bytes are steps: tickets, claims, commits, deaths, looks, and words that are overwritten
//! between them. Then nothing is harmed any more, and the run must come to its end: with the
//! batches that were ordered, or with an error. What must hold stands in `RingDrill`.

use featherload::internals::RingDrill;

use super::Target;

/// Steps of one input.
const MOST: usize = 400;
/// Batches that must come behind the steps.
const MORE: u64 = 8;

pub fn target() -> Target {
    Box::new(run)
}

fn run(data: &[u8]) {
    let mut drill = RingDrill::new().expect("a ring");
    let mut bytes = data.iter().copied();
    drill.post();
    for _ in 0..MOST {
        let Some(step) = bytes.next() else { break };
        if take(&mut drill, step, &mut bytes).is_none() {
            break;
        }
    }
    drill.settle(MORE);
    assert!(drill.end().is_some() || drill.delivered() >= MORE);
}

/// One step; none when the bytes end within it.
fn take(drill: &mut RingDrill, step: u8, bytes: &mut impl Iterator<Item = u8>) -> Option<()> {
    let argument = step >> 4;
    let lane = usize::from(argument & 1);
    match step & 15 {
        0 => drill.post(),
        1..=3 => drill.work(lane, false),
        4 => drill.work(lane, true),
        5 | 6 => drill.consume(),
        7 => drill.check(),
        8 => drill.release(),
        9 => drill.cancel(),
        10 => drill.die(lane, argument >> 1),
        _ => overwrite(drill, argument, bytes)?,
    }
    Some(())
}

/// Another value of any word, or of one that is in use: those are few.
fn overwrite(drill: &mut RingDrill, how: u8, bytes: &mut impl Iterator<Item = u8>) -> Option<()> {
    let which = usize::from(u16::from_le_bytes([bytes.next()?, bytes.next()?]));
    let used = |drill: &RingDrill| -> Vec<usize> {
        (0..drill.words()).filter(|&w| drill.word(w) != 0).collect()
    };
    let word = match how & 1 {
        0 => which % drill.words(),
        _ => {
            let used = used(drill);
            used[which % used.len()]
        }
    };
    let old = drill.word(word);
    let argument = bytes.next()?;
    let value = match how >> 1 {
        0 => u64::from(argument),
        1 => old ^ 1 << (argument & 63),
        2 => old.wrapping_add(u64::from(argument)),
        3 => u64::MAX - u64::from(argument),
        // That of another word: what a confused pointer copies.
        4 => {
            let used = used(drill);
            drill.word(used[usize::from(argument) % used.len()])
        }
        // A row word of any state, for any worker and ticket.
        5 => {
            let [owner, sequence] = [bytes.next()?, bytes.next()?].map(u64::from);
            u64::from(argument % 6) << 56 | owner << 32 | sequence
        }
        _ => {
            let mut value = [argument, 0, 0, 0, 0, 0, 0, 0];
            for byte in &mut value[1..] {
                *byte = bytes.next()?;
            }
            u64::from_le_bytes(value)
        }
    };
    drill.overwrite(word, value);
    Some(())
}

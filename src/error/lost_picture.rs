//! The bytes in place of an image that could not be had: a mark, and the reason.
//!
//! Written into packs by the fetcher. Every reader of images recognises them, so the reason comes
//! with the sample through all processes.

use crate::error::{FaultKind, SampleFault};

/// No image begins with one of these: for a lasting reason, and for one that may pass.
const MARKS: [&[u8]; 2] = [
    b"\x89FEATHERLOAD HAS NO IMAGE\n",
    b"\x89FEATHERLOAD HAS NO ANSWER\n",
];

/// Most bytes of mark and reason.
pub(crate) const MOST_BYTES: usize = 600;

/// Most bytes of the text of a fault. A worker's record has at least as many.
const MOST_TEXT: usize = 232;

/// The end of a reason that may pass.
const ASKED_AGAIN: &str = "(the next run asks for it again)";

/// In place of what was cut off.
const CUT: &str = " ...";

/// The bytes for this reason, at most `most`. `may_pass`: whether the next run may have the object.
/// Only downloads use it.
#[allow(dead_code)]
pub(crate) fn bytes_for(reason: &str, may_pass: bool, most: usize) -> Vec<u8> {
    let mut bytes = MARKS[usize::from(may_pass)].to_vec();
    let room = most.min(MOST_BYTES).saturating_sub(bytes.len());
    bytes.extend(shortened(reason, room).as_bytes());
    bytes
}

/// The text, or its whole words that fit.
fn shortened(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let most = room.saturating_sub(CUT.len());
    let most = (0..=most).rfind(|at| text.is_char_boundary(*at));
    let begin = &text[..most.unwrap_or(0)];
    // One word may be all of it.
    let begin = match text[begin.len()..].starts_with(' ') {
        true => begin,
        false => begin.rsplit_once(' ').map_or(begin, |(begin, _)| begin),
    };
    match begin.is_empty() {
        true => String::new(),
        false => format!("{begin}{CUT}"),
    }
}

/// Whether these are the bytes for a reason, or their beginning.
#[allow(dead_code)]
pub(crate) fn is_in_place(bytes: &[u8]) -> bool {
    let begins = |mark: &&[u8]| {
        let short = bytes.len().min(mark.len());
        bytes[..short] == mark[..short]
    };
    !bytes.is_empty() && MARKS.iter().any(begins)
}

/// Whether these are the bytes for a reason that may pass.
#[allow(dead_code)]
pub(crate) fn may_pass(bytes: &[u8]) -> bool {
    bytes.starts_with(MARKS[1])
}

/// Whether the reason of a fault is one that may pass.
pub(crate) fn reason_may_pass(reason: &str) -> bool {
    reason.starts_with(BEGIN) && reason.ends_with(ASKED_AGAIN)
}

/// The begin of the reason of each fault.
const BEGIN: &str = "was not downloaded: ";

/// The fault that the bytes of a file give as reason. `None` for any other file.
pub(crate) fn fault_of(bytes: &[u8]) -> Option<SampleFault> {
    let (mark, advice) = [
        (MARKS[0], "(a run with `on_error` stop asks for it again)"),
        (MARKS[1], ASKED_AGAIN),
    ]
    .into_iter()
    .find(|(mark, _)| bytes.starts_with(mark))?;
    let reason = &bytes[mark.len()..];
    let reason = &reason[..reason.len().min(MOST_BYTES)];
    let reason = String::from_utf8_lossy(reason);
    // Bytes of a file are not trusted.
    let reason = reason.trim_end_matches('\0').replace(char::is_control, " ");
    let room = MOST_TEXT - BEGIN.len() - 1 - advice.len();
    let reason = shortened(&reason, room);
    Some(FaultKind::NotDownloaded.fault(format!("{BEGIN}{reason} {advice}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_comes_back_and_has_a_limit() {
        let bytes = |text: &str| bytes_for(text, false, usize::MAX);
        let fault = fault_of(&bytes("there is nothing: 404")).unwrap();
        let want = "was not downloaded: there is nothing: 404 (a run with `on_error` stop asks for it \
                    again)";
        assert_eq!(fault.reason, want);
        assert!(!reason_may_pass(want));
        let passing = bytes_for("no answer", true, usize::MAX);
        assert!(may_pass(&passing) && is_in_place(&passing) && !may_pass(&bytes("no answer")));
        let reason = fault_of(&passing).unwrap().reason;
        assert_eq!(
            reason,
            "was not downloaded: no answer (the next run asks for it again)"
        );
        assert!(reason_may_pass(&reason));
        let long = bytes(&"\u{e9}".repeat(1000));
        assert!(long.len() <= MOST_BYTES && long.len() > MOST_BYTES - 8);
        assert_eq!(fault_of(&long).unwrap().kind, FaultKind::NotDownloaded);
        let mut padded = bytes("a\x1b[0mb");
        padded.extend([0; 50]);
        let reason = fault_of(&padded).unwrap().reason;
        assert!(
            reason.starts_with("was not downloaded: a [0mb ("),
            "{reason}"
        );
        assert!(fault_of(b"\x89PNG\r\n").is_none());
        // Cut off within the mark.
        assert!(fault_of(&MARKS[0][..10]).is_none() && is_in_place(&MARKS[0][..10]));
        assert!(is_in_place(&long) && !is_in_place(b"") && !is_in_place(b"\x89PNG\r\n"));
    }
    #[test]
    fn a_reason_is_cut_between_words() {
        let mark = MARKS[0].len();
        let cut = |room: usize| {
            let bytes = bytes_for("the server said nothing", false, mark + room);
            String::from_utf8(bytes[mark..].to_vec()).unwrap()
        };
        assert_eq!(cut(100), "the server said nothing");
        assert_eq!(cut(22), "the server said ...");
        assert_eq!(cut(19), "the server said ...");
        assert_eq!(cut(18), "the server ...");
        assert_eq!(cut(7), "the ...");
        assert_eq!([cut(4), cut(0)], ["", ""]);
        let reason = fault_of(&bytes_for(&"word ".repeat(300), true, usize::MAX));
        let reason = reason.unwrap().reason;
        assert!(
            reason.len() <= MOST_TEXT && reason_may_pass(&reason),
            "{reason}"
        );
        assert!(reason.contains("word ... (the next run"), "{reason}");
        let long = "word ".repeat(300);
        let text = bytes_for(&long, true, usize::MAX);
        assert!(text.len() <= MOST_BYTES && text.ends_with(b"word ..."));
    }
}

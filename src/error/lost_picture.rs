//! The bytes in place of an image that could not be had: a mark, and the reason.
//!
//! Written into packs by the fetcher. Every reader of images recognises them, so the reason comes
//! with the sample through all processes.

use crate::error::{FaultKind, SampleFault};

/// No image begins with these bytes.
const MARK: &[u8] = b"\x89FEATHERLOAD HAS NO IMAGE\n";

/// Most bytes of mark and reason.
pub(crate) const MOST_BYTES: usize = 600;

/// The bytes for this reason. Only downloads use it.
#[allow(dead_code)]
pub(crate) fn bytes_for(reason: &str) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    let kept = reason.char_indices();
    let kept = kept.take_while(|(at, c)| MARK.len() + at + c.len_utf8() <= MOST_BYTES);
    bytes.extend(kept.map(|(_, c)| c).collect::<String>().as_bytes());
    bytes
}

/// Whether these are the bytes for a reason, or their beginning.
#[allow(dead_code)]
pub(crate) fn is_in_place(bytes: &[u8]) -> bool {
    let short = bytes.len().min(MARK.len());
    !bytes.is_empty() && bytes[..short] == MARK[..short]
}

/// The fault that the bytes of a file give as reason. `None` for any other file.
pub(crate) fn fault_of(bytes: &[u8]) -> Option<SampleFault> {
    let reason = bytes.strip_prefix(MARK)?;
    let reason = &reason[..reason.len().min(MOST_BYTES)];
    let reason = String::from_utf8_lossy(reason);
    // Bytes of a file are not trusted.
    let reason = reason.trim_end_matches('\0').replace(char::is_control, " ");
    let advice = "a run with `on_error` fail asks for it again";
    Some(FaultKind::NotDownloaded.fault(format!("was not downloaded: {reason} ({advice})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_comes_back_and_has_a_limit() {
        let fault = fault_of(&bytes_for("there is nothing: 404")).unwrap();
        let want = "was not downloaded: there is nothing: 404 (a run with `on_error` fail asks for it \
                    again)";
        assert_eq!(fault.reason, want);
        let long = bytes_for(&"\u{e9}".repeat(1000));
        assert!(long.len() <= MOST_BYTES && long.len() > MOST_BYTES - 2);
        assert_eq!(fault_of(&long).unwrap().kind, FaultKind::NotDownloaded);
        let mut padded = bytes_for("a\x1b[0mb");
        padded.extend([0; 50]);
        let reason = fault_of(&padded).unwrap().reason;
        assert!(
            reason.starts_with("was not downloaded: a [0mb ("),
            "{reason}"
        );
        assert!(fault_of(b"\x89PNG\r\n").is_none());
        // Cut off within the mark.
        assert!(fault_of(&MARK[..10]).is_none() && is_in_place(&MARK[..10]));
        assert!(is_in_place(&long) && !is_in_place(b"") && !is_in_place(b"\x89PNG\r\n"));
    }
}

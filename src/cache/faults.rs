//! Which faults may be left out of a cache: those that the next build would find
//! again.
//!
//! In the consumer. A cache keeps what it left out for as long as it is used.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::error::{FaultKind, SampleFault};

/// Whether the fault follows from the bytes of the sample's `file`, or from the
/// file's absence; false for what may have passed by the next build: time that
/// ran out, workers that were killed, storage that failed.
pub(super) fn is_lasting(fault: &SampleFault, file: &Path) -> bool {
    match fault.kind {
        FaultKind::NotRegular
        | FaultKind::Truncated
        | FaultKind::Corrupt
        | FaultKind::Unsupported
        | FaultKind::TooLarge => true,
        FaultKind::Unreadable => cannot_be_opened(file),
        _ => false,
    }
}

/// What a fault says that stops a build which leaves out others.
pub(super) fn passing(fault: SampleFault) -> SampleFault {
    SampleFault::new(
        fault.kind,
        format!(
            "{}; that may pass, so the sample is not left out for good: run the command again, \
             with a longer --row-limit where time ran out, or take the file out of the source \
             where it fails each time",
            fault.reason
        ),
    )
}

/// Whether it is missing, or not ours to read: asked of the system, since a
/// fault has a sentence alone.
fn cannot_be_opened(file: &Path) -> bool {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits())
        .open(file);
    let Err(e) = opened else {
        return false;
    };
    // A path with a zero byte.
    if e.kind() == ErrorKind::InvalidInput {
        return true;
    }
    let said = e.raw_os_error().map(Errno::from_raw);
    matches!(
        said,
        Some(
            Errno::ENOENT
                | Errno::EACCES
                | Errno::EPERM
                | Errno::ENOTDIR
                | Errno::ELOOP
                | Errno::ENAMETOOLONG
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_bytes_last_and_those_of_the_moment_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("there.jpg");
        std::fs::write(&there, "x").unwrap();
        let missing = dir.path().join("missing.jpg");
        let lasting = [2, 3, 4, 5, 6];
        for code in (2..=11).chain([255]) {
            let fault = SampleFault::new(FaultKind::from_code(code), "");
            assert_eq!(
                is_lasting(&fault, &there),
                lasting.contains(&code),
                "{code}"
            );
        }
        let unreadable = SampleFault::new(FaultKind::Unreadable, "");
        // It can be opened now: what failed was storage, or a table of files.
        assert!(!is_lasting(&unreadable, &there));
        assert!(is_lasting(&unreadable, &missing));
        assert!(is_lasting(&unreadable, &there.join("below")));
        let circle = dir.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        assert!(is_lasting(&unreadable, &circle));
    }
}

//! Which faults may be left out of a cache: those that the next build would find
//! again.
//!
//! In the consumer. A cache keeps what it left out for as long as it is used.

use std::io::{self, ErrorKind};
use std::path::Path;

use nix::errno::Errno;

use crate::cache::OnBadSample;
use crate::error::{FaultKind, SampleFault};

/// Whether the fault follows from the bytes of the sample, or from the absence of
/// its `file` (none of a sample that lies in a shard: one that is gone takes others
/// with it, and was there when the names were read). False for what may have passed
/// by the next build: time that ran out, workers that were killed, storage that
/// failed, and a file that `had_header` when all headers were read and is gone now.
pub(super) fn is_lasting(fault: &SampleFault, file: Option<&Path>, had_header: bool) -> bool {
    let file = file.filter(|_| !had_header);
    match fault.kind {
        FaultKind::Truncated
        | FaultKind::Corrupt
        | FaultKind::Unsupported
        | FaultKind::TooLarge
        // Of its box, which is the source's.
        | FaultKind::TooSmall => true,
        FaultKind::NotRegular => file.is_some(),
        FaultKind::Unreadable => file.is_some_and(is_absent),
        _ => false,
    }
}

/// The reason for which a sample is left out.
///
/// # Errors
/// The fault, with what to do, where it ends the build.
pub(super) fn skip_reason(
    fault: SampleFault,
    is_lasting: bool,
    on_error: OnBadSample,
) -> Result<String, SampleFault> {
    match (on_error, is_lasting) {
        (OnBadSample::Skip, true) => Ok(fault.reason),
        (OnBadSample::Skip, false) => Err(transient_fault(fault)),
        (OnBadSample::Stop, true) => {
            Err(fault.advised("use `on_error: skip` to leave such samples out"))
        }
        (OnBadSample::Stop, false) => Err(fault),
    }
}

/// What a fault says that stops a build which leaves out others.
fn transient_fault(fault: SampleFault) -> SampleFault {
    let mend = match fault.kind {
        FaultKind::Unreadable | FaultKind::NotRegular => {
            "make the file readable and build again, or take it out of the source and build with \
             `force`"
        }
        FaultKind::TimedOut => {
            "build again with a longer row_limit. If it fails each time, take the file out of \
             the source and build with `force`"
        }
        _ => {
            "build again. If it fails each time, take the file out of the source and build with \
             `force`"
        }
    };
    SampleFault::new(
        fault.kind,
        format!(
            "{}. This may pass, so the sample is not left out: {mend}",
            fault.reason
        ),
    )
}

/// Whether there is no file of this path: asked of the system, since a fault has a
/// sentence alone.
fn is_absent(file: &Path) -> bool {
    file.metadata().is_err_and(|e| is_not_found(&e))
}

/// Whether the system says by this error that no file has the path.
pub(super) fn is_not_found(e: &io::Error) -> bool {
    // A path with a zero byte.
    e.kind() == ErrorKind::InvalidInput || e.raw_os_error().is_some_and(says_absent)
}

/// Whether the system says by this number that no file has the path. That it may
/// not be read is no absence: rights are mended by a `chmod`.
fn says_absent(errno: i32) -> bool {
    matches!(
        Errno::from_raw(errno),
        Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ENAMETOOLONG
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
        let lasting = [2, 3, 4, 5, 6, 11];
        for code in (2..=12).chain([255]) {
            let fault = SampleFault::new(FaultKind::from_code(code), "");
            let due = lasting.contains(&code);
            assert_eq!(is_lasting(&fault, Some(&there), false), due, "{code}");
            // What was a picture's file is not for ever a folder.
            let due = due && code != 2;
            assert_eq!(is_lasting(&fault, Some(&there), true), due, "{code}");
            assert_eq!(is_lasting(&fault, None, false), due, "{code}");
        }
        let unreadable = SampleFault::new(FaultKind::Unreadable, "");
        // It can be opened now: what failed was storage, or a table of files.
        assert!(!is_lasting(&unreadable, Some(&there), false));
        let circle = dir.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        for absent in [missing, there.join("below"), circle] {
            assert!(is_lasting(&unreadable, Some(&absent), false));
            assert!(!is_lasting(&unreadable, Some(&absent), true));
            assert!(!is_lasting(&unreadable, None, false));
        }
    }

    #[test]
    fn a_file_that_may_not_be_read_is_not_absent() {
        for errno in [
            Errno::EACCES,
            Errno::EPERM,
            Errno::EIO,
            Errno::EMFILE,
            Errno::ESTALE,
            Errno::ENOTCONN,
        ] {
            assert!(!says_absent(errno as i32), "{errno}");
        }
        assert!(says_absent(Errno::ENOENT as i32));
    }
}

//! Decides which bad samples may be left out of a cache: only those with a fault that the next
//! build would find again.
//!
//! Runs in the consumer. A left-out sample is missing for as long as the cache is used.

use std::io::{self, ErrorKind};
use std::path::Path;

use nix::errno::Errno;

use crate::cache::OnBadSample;
use crate::error::{FaultKind, SampleFault};

/// Whether the next build would find the fault again. True if it follows from the bytes of the
/// sample, or if its `file` is absent or not a regular file.
///
/// `file` is none for a sample in a shard. A shard existed when the names were read, and other
/// samples are lost with it. `had_header` means that the header of `file` was read earlier in this
/// build.
///
/// False for faults that may pass: timeouts, killed workers, storage errors, and a `file` that
/// disappeared after its header was read.
pub(super) fn is_lasting(fault: &SampleFault, file: Option<&Path>, had_header: bool) -> bool {
    let file = file.filter(|_| !had_header);
    match fault.kind {
        FaultKind::Truncated
        | FaultKind::Corrupt
        | FaultKind::Unsupported
        | FaultKind::TooLarge
        // Its pack keeps the reason in its place.
        | FaultKind::NotDownloaded
        // The box of the sample lies outside its image. The box comes from the source.
        | FaultKind::TooSmall => true,
        FaultKind::NotRegular => file.is_some(),
        FaultKind::Unreadable => file.is_some_and(is_absent),
        _ => false,
    }
}

/// The reason that is listed for a left-out sample.
///
/// # Errors
/// The fault, with advice, if it ends the build.
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

/// The error for a fault that may pass, in a build that leaves out bad samples.
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
            "{}. The fault may pass, so the sample is not left out: {mend}",
            fault.reason
        ),
    )
}

/// Whether no file has this path. Checks the file system, because a fault has only a text.
fn is_absent(file: &Path) -> bool {
    file.metadata().is_err_and(|e| is_not_found(&e))
}

/// Whether this error means that no file has the path.
pub(super) fn is_not_found(e: &io::Error) -> bool {
    // A path with a NUL byte.
    e.kind() == ErrorKind::InvalidInput || e.raw_os_error().is_some_and(says_absent)
}

/// Whether this errno means that no file has the path. A file without read permission is not
/// absent: the user can change its permissions.
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
        let lasting = [2, 3, 4, 5, 6, 11, 13];
        for code in (2..=13).chain([255]) {
            let fault = SampleFault::new(FaultKind::from_code(code), "");
            let due = lasting.contains(&code);
            assert_eq!(is_lasting(&fault, Some(&there), false), due, "{code}");
            // An image file that has become a folder may become a file again.
            let due = due && code != 2;
            assert_eq!(is_lasting(&fault, Some(&there), true), due, "{code}");
            assert_eq!(is_lasting(&fault, None, false), due, "{code}");
        }
        let unreadable = SampleFault::new(FaultKind::Unreadable, "");
        // The file can be opened now, so storage failed, or a limit on open files was reached.
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

//! Limits of this process that explain a system error.
//!
//! Read when an error is printed, in the process that got it.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

/// Set in workers. This crate sets their limits of memory and file length, and their sandbox does
/// not allow the call that reads limits.
static ARE_OWN: AtomicBool = AtomicBool::new(false);

/// Stops reading limits in this process.
pub(crate) fn disable_reading() {
    ARE_OWN.store(true, Ordering::Relaxed);
}

/// The limit that explains this error number, and its flag in `ulimit`. `None` if none is known.
pub(crate) fn explain(errno: i32) -> Option<String> {
    match errno {
        libc::EMFILE => {
            let most = foreign(Resource::RLIMIT_NOFILE);
            let most = most.map_or("no more".to_owned(), |most| most.to_string());
            Some(format!(
                "this process may open {most} files: raise it with ulimit -n"
            ))
        }
        libc::ENFILE => {
            Some("the system's limit of open files is reached: raise fs.file-max".into())
        }
        libc::EFBIG => foreign(Resource::RLIMIT_FSIZE).map(|bytes| {
            format!(
                "the limit of a file's length is {} KiB: raise it with ulimit -f",
                bytes / 1024
            )
        }),
        libc::ENOMEM => memory(),
        _ => None,
    }
}

/// Whether the error number means that a limit of this process or the system was reached. The file
/// may exist anyway.
pub(crate) fn is_reached(errno: i32) -> bool {
    [libc::EMFILE, libc::ENFILE, libc::ENOMEM].contains(&errno)
}

/// The memory limits of this process; `None` without any.
pub(crate) fn memory() -> Option<String> {
    let one = |resource, what, flag| {
        let kib = foreign(resource)? / 1024;
        Some(format!("{what} to {kib} KiB (ulimit -{flag})"))
    };
    let found = [
        one(Resource::RLIMIT_AS, "address space", 'v'),
        one(Resource::RLIMIT_DATA, "data", 'd'),
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    (!found.is_empty()).then(|| {
        format!(
            "this process is limited in {}: raise it",
            found.join(" and ")
        )
    })
}

/// Limits of processes and threads.
pub(super) fn processes() -> String {
    match foreign(Resource::RLIMIT_NPROC) {
        Some(most) => format!(
            "this user may have {most} processes and threads (ulimit -u), or the container's \
             pids.max is reached: raise it"
        ),
        None => "the container's limit of processes is reached: raise pids.max".into(),
    }
}

fn foreign(resource: Resource) -> Option<u64> {
    if ARE_OWN.load(Ordering::Relaxed) {
        return None;
    }
    let (soft, _) = getrlimit(resource).ok()?;
    (soft != RLIM_INFINITY).then_some(soft)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::io;

    #[test]
    fn an_error_names_the_limit_that_was_reached() {
        let (most, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let refused = |errno| Error::io("try", io::Error::from_raw_os_error(errno)).to_string();
        let text = refused(libc::EMFILE);
        assert!(
            text.ends_with(&format!(
                "; this process may open {most} files: raise it with ulimit -n"
            )),
            "{text}"
        );
        assert!(refused(libc::ENFILE).contains("fs.file-max"));
        assert!(!refused(libc::EPERM).contains("raise it"));
    }

    #[test]
    fn a_thread_that_was_not_started_has_a_limit_of_processes_or_of_memory_as_its_reason() {
        let again = io::Error::from_raw_os_error(libc::EAGAIN);
        let text = Error::not_started("start a thread", again).to_string();
        assert!(
            text.contains("pids.max") && !text.contains("stack"),
            "{text}"
        );
        let other = io::Error::from_raw_os_error(libc::EPERM);
        let text = Error::not_started("start a thread", other).to_string();
        assert!(!text.contains("pids.max"), "{text}");
    }
}

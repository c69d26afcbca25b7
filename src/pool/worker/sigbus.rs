//! Turns a file that shrinks while it is mapped into one failed sample.
//!
//! Runs in workers only. If the address lies in the live input map, the handler marks the worker's
//! record and ends the process with [`EXIT_BROKEN_MAP`]. Any other address gets the default action.
//! It never jumps out of a C or Rust frame, and never returns.

use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Exit status of a worker whose mapped input became unreadable.
pub(crate) const EXIT_BROKEN_MAP: i32 = 77;

static LIVE_START: AtomicUsize = AtomicUsize::new(0);
static LIVE_END: AtomicUsize = AtomicUsize::new(0);
static RECORD: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the address range of the live input map.
pub(crate) fn set_live_map(bytes: &[u8]) {
    let start = bytes.as_ptr() as usize;
    LIVE_END.store(
        start + bytes.len().next_multiple_of(4096),
        Ordering::Release,
    );
    LIVE_START.store(start, Ordering::Release);
}

/// Clears the address range: no input is mapped.
pub(crate) fn clear_live_map() {
    LIVE_START.store(0, Ordering::Release);
    LIVE_END.store(0, Ordering::Release);
}

/// Installs the handler, on its own stack. It sets `record` to 1, which must stay mapped until the
/// process ends.
pub(crate) fn install(record: &'static AtomicU64) -> Result<()> {
    RECORD.store(std::ptr::from_ref(record).cast_mut(), Ordering::Release);
    let stack = Box::leak(vec![0u8; 64 * 1024].into_boxed_slice());
    let alt = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: stack.len(),
    };
    // SAFETY: `stack` is leaked just above, so the kernel may use it for the
    // rest of the process.
    if unsafe { libc::sigaltstack(&alt, std::ptr::null_mut()) } != 0 {
        return Err(Error::io("sigaltstack", io::Error::last_os_error()));
    }
    // SAFETY: an all-zero sigaction is a valid value: no flags, empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_sigbus as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
    // SAFETY: `on_sigbus` has the signature that SA_SIGINFO asks for and calls
    // only async-signal-safe functions.
    if unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) } != 0 {
        return Err(Error::io(
            "install the SIGBUS handler",
            io::Error::last_os_error(),
        ));
    }
    Ok(())
}

extern "C" fn on_sigbus(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler, and
    // `si_addr` is the field that SIGBUS fills.
    let address = unsafe { (*info).si_addr() } as usize;
    let live = LIVE_START.load(Ordering::Acquire)..LIVE_END.load(Ordering::Acquire);
    if live.contains(&address) {
        let record = RECORD.load(Ordering::Acquire);
        if !record.is_null() {
            // SAFETY: `install` took a `&'static`, so it is alive and aligned.
            unsafe { (*record).store(1, Ordering::Release) };
        }
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(EXIT_BROKEN_MAP) };
    }
    // SA_RESETHAND has put the default action back: returning runs the faulting
    // instruction again, and the process dies of SIGBUS, as it should.
}

//! Catches panics of decoders that read untrusted bytes, without printing them.
//!
//! The panic hook belongs to the program. The first call of [`catch_panic`] replaces it by one that
//! passes every other panic on. If a program sets a hook later, that one is used.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `work`. Returns `None` after a panic, which is not printed. Data that `work` was changing
/// then is in an unknown state and must not be used again.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| match IS_CAUGHT.get() {
            true => tracing::debug!("a decoder has panicked: {panic}"),
            false => before(panic),
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    IS_CAUGHT.set(outer);
    done
}

/// Passes all panics of this process to `hook`, including caught ones.
pub(crate) fn report_all(hook: impl Fn(&PanicHookInfo<'_>) + Send + Sync + 'static) {
    HOOK.call_once(|| ());
    set_hook(Box::new(hook));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_programs_hook_has_every_panic_but_those_that_are_caught() {
        let seen = Arc::new(AtomicUsize::new(0));
        let counter = seen.clone();
        set_hook(Box::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        let broken = || -> u32 { panic!("a decoder") };
        assert_eq!(catch_panic(broken), None);
        assert_eq!(catch_panic(|| catch_panic(broken).unwrap_or(7)), Some(7));
        assert_eq!(seen.load(Ordering::Relaxed), 0);
        assert!(catch_unwind(broken).is_err());
        assert_eq!(seen.load(Ordering::Relaxed), 1);
    }
}

//! Work that makes more work, for several threads.
//!
//! The last that came is taken first: the pieces of a shard are done before the
//! next shard is begun, so few manifests are held at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tasks that are to be done.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    tasks: Vec<T>,
    /// Who may still give more.
    busy: usize,
}

/// A task on its way. Dropped, by a panic too, it is done.
pub(super) struct Taken<'a, T> {
    queue: &'a Queue<T>,
    task: Option<T>,
}

impl<T> Queue<T> {
    pub(super) fn new(mut tasks: Vec<T>) -> Self {
        tasks.reverse();
        Self {
            state: Mutex::new(State { tasks, busy: 0 }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next task; waits for it while another may give one. None when all are
    /// done.
    pub(super) fn take(&self) -> Option<Taken<'_, T>> {
        let mut state = self.state();
        loop {
            if let Some(task) = state.tasks.pop() {
                state.busy += 1;
                return Some(Taken {
                    queue: self,
                    task: Some(task),
                });
            }
            if state.busy == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T> Taken<'_, T> {
    /// Does the task, which gives more.
    pub(super) fn run(mut self, with: impl FnOnce(T) -> Vec<T>) {
        if let Some(task) = self.task.take() {
            let more = with(task);
            self.queue.state().tasks.extend(more.into_iter().rev());
        }
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        self.queue.state().busy -= 1;
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    #[test]
    fn tasks_that_tasks_give_are_done_by_all_and_first() {
        let queue = Queue::new(vec![(0, 3), (1, 3)]);
        let done = Mutex::new(Vec::new());
        let work = || {
            while let Some(task) = queue.take() {
                task.run(|(name, left)| {
                    done.lock().unwrap().push((name, left));
                    (0..left).map(|n| (name * 10 + n, left - 1)).collect()
                });
            }
        };
        work();
        let alone = std::mem::take(&mut *done.lock().unwrap());
        assert_eq!(alone[..4], [(0, 3), (0, 2), (0, 1), (0, 0)]);
        let shared = Queue::new(vec![(0, 3), (1, 3)]);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(task) = shared.take() {
                        task.run(|(name, left)| {
                            done.lock().unwrap().push((name, left));
                            (0..left).map(|n| (name * 10 + n, left - 1)).collect()
                        });
                    }
                });
            }
        });
        let mut together = std::mem::take(&mut *done.lock().unwrap());
        together.sort_unstable();
        let mut alone = alone;
        alone.sort_unstable();
        assert_eq!(together, alone);
    }

    #[test]
    fn a_panic_keeps_nobody_waiting() {
        let queue = Queue::new(vec![1]);
        let task = queue.take().unwrap();
        let panics = AssertUnwindSafe(|| task.run(|_| panic!("on purpose")));
        assert!(catch_unwind(panics).is_err());
        assert!(queue.take().is_none());
    }
}

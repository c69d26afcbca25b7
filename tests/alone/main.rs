//! What needs a process with one thread, a `main` of its own, or an allocator that
//! counts. No harness, since the usual one has the others.

mod allocations;
mod allocator;
#[path = "../common/mod.rs"]
mod common;
mod forks;
mod own_helper;
mod scratch;

use std::process::ExitCode;

macro_rules! tests {
    ($($module:ident::$name:ident,)*) => {
        const TESTS: &[(&str, fn())] = &[$(
            (concat!(stringify!($module), "::", stringify!($name)), $module::$name),
        )*];
    };
}

tests! {
    allocations::a_warm_sample_allocates_nothing,
    allocations::a_warm_sample_of_raw_pixels_allocates_nothing,
    forks::forked_workers_give_the_stream_of_none,
    forks::forked_processes_keep_no_handler,
    forks::a_second_thread_forbids_the_fork,
    forks::a_forked_copy_of_the_loader_is_harmless,
    forks::a_forked_copy_of_a_forked_pool_is_harmless,
    forks::a_killed_trainer_leaves_nothing_although_its_child_lives,
    forks::a_killed_trainer_of_a_forked_pool_leaves_nothing,
    own_helper::a_program_that_begins_with_init_is_its_helper,
    own_helper::a_replaced_program_starts_what_it_is,
    own_helper::without_init_the_error_names_the_line,
    own_helper::a_helper_that_never_calls_init_starts_no_other,
    own_helper::init_behind_a_thread_is_told,
    own_helper::a_helper_with_threads_says_so,
    own_helper::arguments_that_are_read_before_init_are_told,
    own_helper::a_stray_argument_is_refused,
    scratch::no_more_than_the_limit_is_allocated,
}

fn main() -> ExitCode {
    own_helper::begin();
    if let Some(code) = own_helper::play() {
        return code;
    }
    common::harness::run(TESTS)
}

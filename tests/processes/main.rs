//! Processes: who ends them, what they leave behind, how much memory they take.

#[path = "../common/mod.rs"]
mod common;

mod big_caller;
mod limits;
mod rss;
mod scene_memory;
mod shutdown;
<<<<<<< HEAD
<<<<<<< HEAD
=======
mod stderr;
mod surroundings;
>>>>>>> ff45ac6 (Nobody in a pool waits for stderr; no core holds the ring)
=======
mod surroundings;
>>>>>>> d5da12a (The helper comes from nowhere that others may write; LD_PRELOAD's threads and a missing /proc are named)

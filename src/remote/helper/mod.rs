//! The life of a helper that works with a store, whichever kind it is.
//!
//! | what it is | files | in which process |
//! |---|---|---|
//! | a helper as its consumer has it: started, asked, ended | `process` | consumer |
//! | the loop of a helper on its socket | `helper_loop` | helper |
//! | transfers that are reported while they are slow | `progress` | consumer, helper |

#[cfg(feature = "stores")]
pub(super) mod helper_loop;
pub(super) mod process;
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
pub(super) mod progress;

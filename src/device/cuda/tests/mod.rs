//! What tests of the stages share.
//!
//! - `ring`: slots that hold given bytes; `standin`: a driver that writes down its calls.

pub(super) mod ring;
pub(super) mod standin;

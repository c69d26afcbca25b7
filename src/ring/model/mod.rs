//! The model test of the ring protocol.

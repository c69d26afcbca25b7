//! What augmentation policies share: their operations, strengths and random numbers,
//! for Pillow's arithmetic (`pixels`) on 8-bit RGB.
//!
//! Pure, and the same in every process and on every machine: no I/O, no pixels,
//! and of transcendental functions `libm`'s alone. Every operation of a policy
//! takes the same draws in the same order, whether it uses them or not. Never in here:
//! the policies themselves, which are in `recipe/ops`, a file each.
//!
//! - [`kind`]: the operations of all policies, and the step that each becomes;
//! - [`distribution`]: normal, beta and Dirichlet numbers;
//! - [`paddle`]: the functions and strengths that PaddleClas' policies share;
//! - [`torchvision`]: those of torchvision's.

pub(crate) mod distribution;
pub(crate) mod paddle;
pub(crate) mod policy_op;
pub(crate) mod torchvision;

#[cfg(test)]
mod tests;

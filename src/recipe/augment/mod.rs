//! Code shared by augmentation policies: operations, strengths and random numbers, for Pillow's
//! arithmetic (`pixels`) on 8-bit RGB.
//!
//! Pure, the same in every process and on every machine: no I/O, no pixels, and only `libm` for
//! transcendental functions. Every operation of a policy makes the same draws in the same order,
//! even if it does not use them. Never in here: the policies, which are in `recipe/ops`, one file
//! each.
//!
//! - [`policy_op`]: the operations of all policies, and the step of each;
//! - [`distribution`]: normal, beta and Dirichlet numbers;
//! - [`paddle`]: functions and strengths shared by PaddleClas' policies;
//! - [`torchvision`]: those of torchvision;
//! - [`timm`]: those of timm; [`timm_tables`]: its AutoAugment; [`timm_text`]: its notation.

pub(crate) mod distribution;
pub(crate) mod paddle;
pub(crate) mod policy_op;
pub(crate) mod timm;
pub(crate) mod timm_tables;
pub(crate) mod timm_text;
pub(crate) mod torchvision;

#[cfg(test)]
mod tests;

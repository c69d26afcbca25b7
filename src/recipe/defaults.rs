//! Defaults that serde names by function, and the tests for leaving them out of a file.

/// `true` where a file says nothing.
pub(crate) fn yes() -> bool {
    true
}

/// A probability of 1.
pub(crate) fn always() -> f64 {
    1.0
}

/// torchvision's usual probability.
pub(crate) fn half() -> f64 {
    0.5
}

pub(crate) fn is_always(p: &f64) -> bool {
    *p == 1.0
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

//! Default values that serde calls by name, and the tests for omitting a default in a file.

/// The default of a switch that is on.
pub(crate) fn yes() -> bool {
    true
}

/// A probability of 1.
pub(crate) fn always() -> f64 {
    1.0
}

/// torchvision's usual probability, 0.5.
pub(crate) fn half() -> f64 {
    0.5
}

pub(crate) fn is_always(p: &f64) -> bool {
    *p == 1.0
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

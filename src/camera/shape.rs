//! Compares the shapes of two images of any sizes.
//!
//! Pure.

/// Whether one size (width, height) is a multiple of the other. Each side may be off by one pixel
/// of the smaller size, for rounding.
pub(crate) fn same_shape(a: (u32, u32), b: (u32, u32)) -> bool {
    let ((w, h), (width, height)) = match a.0 >= b.0 {
        true => (a, b),
        false => (b, a),
    };
    let [w, h, width, height] = [w, h, width, height].map(f64::from);
    let least = ((width - 1.0) / w).max((height - 1.0) / h);
    let most = ((width + 1.0) / w).min((height + 1.0) / h);
    least <= most
}

#[cfg(test)]
mod tests {
    use super::same_shape;

    #[test]
    fn sizes_that_are_rounded_have_one_shape() {
        for (a, b) in [
            ((60, 40), (30, 20)),
            ((60, 41), (30, 20)),
            ((1920, 1081), (480, 270)),
            ((30, 20), (30, 20)),
            ((30, 20), (90, 60)),
        ] {
            assert!(same_shape(a, b) && same_shape(b, a), "{a:?} {b:?}");
        }
        for (a, b) in [
            ((40, 100), (30, 20)),
            ((40, 60), (30, 20)),
            ((60, 44), (30, 20)),
        ] {
            assert!(!same_shape(a, b) && !same_shape(b, a), "{a:?} {b:?}");
        }
    }
}

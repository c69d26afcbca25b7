//! The bound of the picture: checked before an image is read.

use featherload::{Error, Result};

/// Most pixels of all images, each with the longest sides.
const MOST_PIXELS: u64 = 64 << 20;

/// Checks that a picture of this many images is not too large.
///
/// # Errors
/// The images have more than 64 Mi pixels at `side` x `side`.
pub fn check_size(rows: usize, draws: u32, crops: usize, side: u32) -> Result<()> {
    let images = (rows as u64).saturating_mul(1 + u64::from(draws) * crops.max(1) as u64);
    let pixels = images.saturating_mul(u64::from(side).pow(2));
    if pixels <= MOST_PIXELS {
        return Ok(());
    }
    let fits = (MOST_PIXELS / images.max(1)).isqrt();
    let smaller = match fits {
        32.. => format!("--side {fits}, or fewer --rows or --draws"),
        _ => "fewer --rows or --draws".to_owned(),
    };
    let of_crops = match crops {
        0 | 1 => String::new(),
        crops => format!(" of {crops} crops"),
    };
    Err(Error::config(format!(
        "{rows} samples with {draws} draws{of_crops} are {images} images of up to {side} x {side} \
         pixels, {} million in one picture, and at most 67 million fit: give {smaller}",
        pixels.div_ceil(1_000_000)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_bound() {
        check_size(4, 4, 10, 224).unwrap();
        check_size(64, 16, 1, 224).unwrap();
        let e = check_size(64, 16, 10, 224).unwrap_err().to_string();
        let wanted = "64 samples with 16 draws of 10 crops are 10304 images of up to 224 x 224";
        assert!(e.contains(wanted) && e.contains("--side 80, or"), "{e}");
        check_size(64, 16, 10, 80).unwrap();
        assert!(check_size(64, 16, 10, 81).is_err());
        let e = check_size(usize::MAX, 16, 1, 32).unwrap_err().to_string();
        assert!(e.ends_with("give fewer --rows or --draws"), "{e}");
    }
}

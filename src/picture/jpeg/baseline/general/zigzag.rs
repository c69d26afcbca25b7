//! Places of coefficients in natural order.

use super::super::frame::ZIGZAG;

/// Of each place in zigzag order its place in natural order. What runs over the end of a block
/// goes to its last place, as in libjpeg-turbo.
pub(super) const NATURAL: [u8; 128] = natural();

const fn natural() -> [u8; 128] {
    let mut natural = [63; 128];
    let mut i = 0;
    while i < 64 {
        natural[i] = ZIGZAG[i];
        i += 1;
    }
    natural
}

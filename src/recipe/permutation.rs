//! A random order of the three channels.

use super::geometry::UniformSource;
use super::pixel_state::PixelState;

/// Draws an order: channel `i` of the result is channel `order[i]` of the image. All six are
/// equally likely. The draw refers to red, green and blue, and the result to the order in memory.
pub(crate) fn draw_permutation(known: &PixelState, random: &mut impl UniformSource) -> [u8; 3] {
    let mut order = [0, 1, 2];
    for i in (1..order.len()).rev() {
        order.swap(i, random.next_up_to(i as u32) as usize);
    }
    match known.bgr {
        true => reversed(order),
        false => order,
    }
}

/// The same order for pixels whose channels are reversed.
pub(super) fn reversed([a, b, c]: [u8; 3]) -> [u8; 3] {
    [2 - c, 2 - b, 2 - a]
}

#[cfg(test)]
mod tests {
    use super::reversed;

    #[test]
    fn reversed_channels_are_put_in_the_same_order() {
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        let put = |pixel: [u8; 3], order: [u8; 3]| order.map(|from| pixel[usize::from(from)]);
        for order in orders {
            let pixel = [10, 20, 30];
            let mut back = pixel;
            back.reverse();
            let mut back = put(back, reversed(order));
            back.reverse();
            assert_eq!(back, put(pixel, order), "{order:?}");
        }
    }
}

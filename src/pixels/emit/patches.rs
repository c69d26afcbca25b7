//! Rows of patches: the order of a vision-language model's processor.

use super::emit_source::{CHANNELS, EmitSource};
use crate::pixels::pixel_view::RgbPixel;
use crate::recipe::{ColorOrder, PatchOrder};

/// Most pixels of a run, which are read at once. A line of a patch is one or several runs.
const RUN: usize = 64;

/// Writes an image of whole patches. `encode` converts a value of a source channel.
pub(super) fn write_patches<T: Copy + Default, const N: usize>(
    source: EmitSource<'_, T>,
    order: PatchOrder,
    colors: ColorOrder,
    out: &mut [u8],
    encode: impl Fn(usize, T) -> [u8; N],
) {
    let (width, height) = source.output_size();
    let side = order.patch_size as usize;
    let columns = (width / side) as u32;
    let elements = out.as_chunks_mut::<N>().0;
    let mut buffer = [[T::default(); CHANNELS]; RUN];
    // The source channel of an output channel.
    let channels = match colors {
        ColorOrder::Bgr => [2, 1, 0],
        ColorOrder::Rgb | ColorOrder::Grey => [0, 1, 2],
    };
    let value = |pixel: &RgbPixel<T>, c: usize| encode(channels[c], pixel[channels[c]]);
    let copies = 1..order.temporal as usize;
    for y in 0..height {
        let patches = (0..width).step_by(side);
        for x in patches.flat_map(|x| (x..x + side).step_by(RUN)) {
            let length = RUN.min(side - x % side);
            let run = source.run(y, x, &mut buffer[..length]);
            let first = |c: u32| order.index(columns, y as u32, x as u32, c);
            if order.channels_last {
                let to = &mut elements[first(0)..][..CHANNELS * length];
                for (to, pixel) in to.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(run) {
                    *to = [0, 1, 2].map(|c| value(pixel, c));
                }
                for copy in copies.clone() {
                    let to = first(0) + copy * order.frame_stride();
                    elements.copy_within(first(0)..first(0) + CHANNELS * length, to);
                }
                continue;
            }
            for c in 0..CHANNELS {
                let first = first(c as u32);
                for (to, pixel) in elements[first..][..length].iter_mut().zip(run) {
                    *to = value(pixel, c);
                }
                for copy in copies.clone() {
                    let to = first + copy * order.frame_stride();
                    elements.copy_within(first..first + length, to);
                }
            }
        }
    }
}

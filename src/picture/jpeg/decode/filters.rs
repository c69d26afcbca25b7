//! Enlarges rows of samples (jdsample.c) and converts them to RGB (jdcolor.c), one sample at a
//! time.

/// Repeats each sample `times` times.
pub(in crate::picture::jpeg) fn repeat(from: &[u8], times: usize, to: &mut [u8]) {
    for (to, &sample) in to.chunks_mut(times).zip(from) {
        to.fill(sample);
    }
}

/// Doubles the samples across: 3/4 of the nearer one and 1/4 of the next (`h2v1_fancy_upsample`).
/// `from` begins with the sample left of the first.
pub(super) fn across(from: &[u8], count: usize, to: &mut [u8]) {
    for (to, from) in to.chunks_exact_mut(2).zip(from.windows(3)).take(count) {
        let [left, middle, right] = [from[0], from[1], from[2]].map(u16::from);
        to[0] = ((3 * middle + left + 1) >> 2) as u8;
        to[1] = ((3 * middle + right + 2) >> 2) as u8;
    }
}

/// Blends two rows: 3/4 of the nearer and 1/4 of the other (`h1v2_fancy_upsample`). `is_below`: the
/// other row is the one below.
pub(super) fn down(near: &[u8], far: &[u8], is_below: bool, to: &mut [u8]) {
    let bias = if is_below { 2 } else { 1 };
    for ((to, &near), &far) in to.iter_mut().zip(near).zip(far) {
        *to = ((3 * u16::from(near) + u16::from(far) + bias) >> 2) as u8;
    }
}

/// Doubles the samples across, blending two rows: 9/16, 3/16, 3/16 and 1/16
/// (`h2v2_fancy_upsample`). Rows begin with the sample left of the first.
pub(in crate::picture::jpeg) fn both(near: &[u8], far: &[u8], count: usize, to: &mut [u8]) {
    let windows = near.windows(3).zip(far.windows(3));
    for (to, (near, far)) in to.chunks_exact_mut(2).zip(windows).take(count) {
        let sum = |i: usize| 3 * u16::from(near[i]) + u16::from(far[i]);
        to[0] = ((3 * sum(1) + sum(0) + 8) >> 4) as u8;
        to[1] = ((3 * sum(1) + sum(2) + 7) >> 4) as u8;
    }
}

/// Converts a pixel to RGB (`ycc_rgb_convert`): factors of ITU-T T.871 with 16 bits of fraction.
pub(super) fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    [
        y + ((91881 * cr + HALF) >> 16),
        y + ((-22554 * cb - 46802 * cr + HALF) >> 16),
        y + ((116_130 * cb + HALF) >> 16),
    ]
    .map(|value| value.clamp(0, 255) as u8)
}

/// Converts 16 pixels at a time, in loops that the compiler vectorizes. The factors fit 16 bits
/// there.
pub(in crate::picture::jpeg) fn ycc_to_rgb([y, cb, cr]: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
    const RUN: usize = 16;
    let rows = y.chunks_exact(RUN).zip(cb.chunks_exact(RUN));
    let rows = rows.zip(cr.chunks_exact(RUN)).take(pixels / RUN);
    let mut done = 0;
    for (to, ((y, cb), cr)) in to.chunks_exact_mut(3 * RUN).zip(rows) {
        let mut planes = [[0u8; RUN]; 3];
        for i in 0..RUN {
            let y = i16::from(y[i]);
            let (cb, cr) = (i16::from(cb[i]) - 128, i16::from(cr[i]) - 128);
            // 1.402 is 1 + 0.402, 1.772 is 2 - 0.228, and 0.71414 is 1 - 0.28586.
            let part = |value: i16, factor: i32| ((2 * i32::from(value) * factor) >> 16) as i16;
            let green = (18734 * i32::from(cr) - 22554 * i32::from(cb) + (1 << 15)) >> 16;
            let byte = |value: i16| value.clamp(0, 255) as u8;
            planes[0][i] = byte(y + cr + ((part(cr, 26345) + 1) >> 1));
            planes[1][i] = byte(y + green as i16 - cr);
            planes[2][i] = byte(y + 2 * cb + ((part(cb, -14942) + 1) >> 1));
        }
        for (i, to) in to.chunks_exact_mut(3).enumerate() {
            to.copy_from_slice(&[planes[0][i], planes[1][i], planes[2][i]]);
        }
        done += RUN;
    }
    let samples = y.iter().zip(cb).zip(cr).take(pixels).skip(done);
    for (to, ((&y, &cb), &cr)) in to.chunks_exact_mut(3).skip(done).zip(samples) {
        to.copy_from_slice(&rgb(y, cb, cr));
    }
}

pub(super) fn interleave([a, b, c]: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
    let samples = a.iter().zip(b).zip(c).take(pixels);
    for (to, ((&a, &b), &c)) in to.chunks_exact_mut(3).zip(samples) {
        to.copy_from_slice(&[a, b, c]);
    }
}

/// Interleaves four planes. With `ycc` the first three are YCbCr of inverted colours
/// (`ycck_cmyk_convert`).
pub(super) fn inks(rows: [&[u8]; 4], ycc: bool, to: &mut [u8]) {
    let [a, b, c, k] = rows;
    let samples = a.iter().zip(b).zip(c).zip(k);
    for (to, (((&a, &b), &c), &k)) in to.chunks_exact_mut(4).zip(samples) {
        let [a, b, c] = match ycc {
            true => rgb(a, b, c).map(|value| 255 - value),
            false => [a, b, c],
        };
        to.copy_from_slice(&[a, b, c, k]);
    }
}

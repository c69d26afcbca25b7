#pragma once
// Resizes a decoded window to the size of the row, if the window does not fit into the row as
// pixels. It is the CPU's resize in integers (src/pixels/resample/scalar.rs): two passes with bytes
// between them, one launch each, RESIZE_BLOCKS blocks a window. Images with an error are skipped.
//
// A worker has written the tables, and they may even change meanwhile. So the pixel positions in
// them are clamped to the image here.

#define RESIZE_BLOCKS 64u
#define RESIZE_THREADS 256u

// Hostile coefficients can make sums wrap. The bits of wrapped sums are the same in every order.
__device__ __forceinline__ int weighed(u32 sum, u32 precision) { return (int)sum >> precision; }

// `rows` rows across. One thread per pixel; those that pad a row repeat the last one's.
__device__ __forceinline__ void resize_across(const ResizeAxis &a, const u8 *tables, u32 first,
                                              const u8 *from, u32 from_pitch, u8 *to, u32 to_pitch,
                                              u32 rows) {
    const u32 *starts = (const u32 *)(tables + a.starts);
    const u32 *coefficients = (const u32 *)(tables + a.coefficients);
    const u32 last = a.inputs - 1, width = to_pitch / 3, half = (1u << a.precision) >> 1;
    for (u32 i = first; i < width * rows; i += RESIZE_BLOCKS * RESIZE_THREADS) {
        const u32 row = i / width, at = i - row * width, o = min(at, a.outputs - 1);
        const u8 *line = from + (u64)row * from_pitch;
        const u32 start = min(starts[o], last);
        u32 sums[3] = {half, half, half};
        for (u32 tap = 0; tap < a.taps; tap++) {
            const u32 k = coefficients[tap * a.outputs + o];
            const u8 *pixel = line + 3 * min(start + tap, last);
#pragma unroll
            for (u32 c = 0; c < 3; c++) sums[c] += pixel[c] * k;
        }
        u8 *pixel = to + (u64)row * to_pitch + 3 * at;
#pragma unroll
        for (u32 c = 0; c < 3; c++)
            pixel[c] = (u8)min(max(weighed(sums[c], a.precision), 0), 255);
    }
}

// Rows of `columns` pixels down, which begin `skip` bytes after a multiple of 4. One thread per
// four bytes.
__device__ __forceinline__ void resize_down(const ResizeAxis &a, const u8 *tables, u32 first,
                                            const u8 *from, u32 from_pitch, u8 *to, u32 to_pitch,
                                            u32 skip, u32 columns) {
    const u32 *starts = (const u32 *)(tables + a.starts);
    const u32 *coefficients = (const u32 *)(tables + a.coefficients);
    const u32 last = a.inputs - 1, half = (1u << a.precision) >> 1;
    const u32 begin = skip / 4, words = (skip + 3 * columns + 3) / 4 - begin;
    for (u32 i = first; i < words * a.outputs; i += RESIZE_BLOCKS * RESIZE_THREADS) {
        const u32 o = i / words, at = 4 * (begin + i - o * words);
        const u32 start = min(starts[o], last);
        u32 sums[4] = {half, half, half, half};
        for (u32 tap = 0; tap < a.taps; tap++) {
            const u32 k = coefficients[tap * a.outputs + o];
            const u32 four = *(const u32 *)(from + (u64)min(start + tap, last) * from_pitch + at);
#pragma unroll
            for (u32 c = 0; c < 4; c++) sums[c] += (four >> (8 * c) & 255) * k;
        }
        *(u32 *)(to + (u64)o * to_pitch + at) =
            levels(weighed(sums[0], a.precision), weighed(sums[1], a.precision),
                   weighed(sums[2], a.precision), weighed(sums[3], a.precision));
    }
}

template <u32 PASS>
__device__ __forceinline__ void resize_pass(const Batch &b) {
    const Resize &r = b.resizes[blockIdx.x / RESIZE_BLOCKS];
    if (b.errors[r.picture]) return;
    const u32 first = blockIdx.x % RESIZE_BLOCKS * RESIZE_THREADS + threadIdx.x;
    const u8 *tables = b.coded + r.tables, *from = b.work + r.images[PASS];
    u8 *to = b.work + r.images[PASS + 1];
    const u32 from_pitch = r.pitches[PASS], to_pitch = r.pitches[PASS + 1], skip = r.skips[PASS];
    if ((PASS == 0) == (r.down_first != 0))
        resize_down(r.down, tables, first, from, from_pitch, to, to_pitch, skip,
                    PASS == 0 ? r.across.inputs : r.across.outputs);
    else
        resize_across(r.across, tables, first, from + skip, from_pitch, to, to_pitch,
                      PASS == 0 ? r.down.inputs : r.down.outputs);
}

extern "C" __global__ void __launch_bounds__(RESIZE_THREADS) jpeg_first_pass(const Batch b) {
    resize_pass<0>(b);
}

extern "C" __global__ void __launch_bounds__(RESIZE_THREADS) jpeg_second_pass(const Batch b) {
    resize_pass<1>(b);
}

// The pixel of a ray: src/scene/draw, integer by integer. Its files explain each part: `random`,
// `bits`, `region`, `draw`.

// ---- random ---------------------------------------------------------------

enum Drawn { PLACE = 0, PARTNER = 1, MOMENT = 2 };

struct Words {
    u64 first, second;
};

// Philox4x32-10.
__device__ __forceinline__ Words words(const Launch &l, u64 unit, u32 drawn) {
    u32 a = 0, b = drawn, c = (u32)unit, d = (u32)(unit >> 32);
    u32 key0 = l.key[0], key1 = l.key[1];
#pragma unroll
    for (int round = 0; round < 10; round++) {
        if (round > 0) {
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        const u64 low = (u64)0xD2511F53u * a, high = (u64)0xCD9E8D57u * c;
        a = (u32)(high >> 32) ^ b ^ key0;
        b = (u32)high;
        c = (u32)(low >> 32) ^ d ^ key1;
        d = (u32)low;
    }
    return {(u64)a << 32 | b, (u64)c << 32 | d};
}

// An integer below n. The unused part of the word stays in `word`.
__device__ __forceinline__ u64 below(u64 &word, u64 n) {
    const u64 drawn = __umul64hi(word, n);
    word *= n;
    return drawn;
}

// The first index whose running sum is above n.
template <typename T>
__device__ __forceinline__ u32 place_of(const T *sums, u32 count, T n) {
    u32 low = 0, high = count;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (__ldg(sums + middle) <= n)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// ---- columns of a row -----------------------------------------------------

struct Range {
    u32 start, end;
    __device__ __forceinline__ u32 len() const { return end > start ? end - start : 0; }
};

// The square root of n, rounded down.
__device__ __forceinline__ u64 root_of(u64 n) {
    u64 root = (u64)__dsqrt_rn(__ull2double_rn(n));
    while (root * root > n) root--;
    while ((root + 1) * (root + 1) <= n) root++;
    return root;
}

__device__ __forceinline__ Range disc_columns(const Image &image, u32 row) {
    const i64 width = image.width, height = image.height;
    const i64 off = 2 * (i64)row + 1 - height;
    const u64 up = off < 0 ? -off : off;
    if (up * up > image.limit) return {0, 0};
    const i64 reach = (i64)root_of(image.limit - up * up);
    // Shifts round down, also below 0.
    const i64 first = max((width - reach) >> 1, 0ll);
    const i64 last = min((width - 1 + reach) >> 1, width - 1);
    if (first > last) return {0, 0};
    return {(u32)first, (u32)last + 1};
}

__device__ __forceinline__ Range columns(const Image &image, u32 extent, u32 row) {
    if (row >= image.height || extent >= image.height - row) return {0, 0};
    Range both = {0, image.width};
    if ((image.shape & ~MASKED) == DISC) {
        both = disc_columns(image, row);
        if (extent) {
            const Range last = disc_columns(image, row + extent);
            both = {max(both.start, last.start), min(both.end, last.end)};
        }
    }
    const u32 end = both.end > extent ? both.end - extent : 0;
    return {both.start, max(end, both.start)};
}

// ---- masks ----------------------------------------------------------------

struct Mask {
    const u64 *words;
    u32 width;

    __device__ __forceinline__ const u64 *row(u32 row) const {
        return words + (u64)row * ((width + 63) / 64);
    }

    // Number of pixels in the mask, in some columns of a row.
    __device__ __forceinline__ u32 count(u32 at, Range cols) const {
        const u64 *line = row(at);
        u32 sum = 0;
        for (u32 number = cols.start / 64; number * 64 < cols.end; number++)
            sum += __popcll(within(__ldg(line + number), number * 64, cols));
        return sum;
    }

    // The column of pixel n of the mask, in some columns of a row.
    __device__ __forceinline__ u32 select(u32 at, Range cols, u32 n) const {
        const u64 *line = row(at);
        for (u32 number = cols.start / 64; number * 64 < cols.end; number++) {
            u64 word = within(__ldg(line + number), number * 64, cols);
            const u32 here = __popcll(word);
            if (n < here) {
                u32 bit = 0;
#pragma unroll
                for (u32 half = 32; half > 0; half /= 2) {
                    const u32 low = __popcll(word & ((1ull << half) - 1));
                    if (n >= low) {
                        n -= low;
                        word >>= half;
                        bit += half;
                    }
                }
                return number * 64 + bit;
            }
            n -= here;
        }
        // Cannot happen in a mask that was counted.
        return cols.start;
    }

    // A word that begins at column `at`, cleared outside `cols`.
    __device__ __forceinline__ static u64 within(u64 word, u32 at, Range cols) {
        if (cols.start > at) word &= ~0ull << (cols.start - at);
        if (cols.end < at + 64) word &= ~0ull >> (at + 64 - cols.end);
        return word;
    }
};

__device__ __forceinline__ Mask mask_of(const Launch &l, u32 image, u32 width) {
    return {l.masks + l.frames[image].mask, width};
}

// ---- units ----------------------------------------------------------------

// The row of an image that is restricted to a part, and the unit's number in the row.
__device__ __forceinline__ u32 row_of(const Launch &l, const Image &image, u32 height, u64 word,
                                      u32 &nth) {
    const u32 *counts = l.counts + image.counts;
    if ((image.shape & ~MASKED) != SPHERE) {
        const u32 n = (u32)below(word, counts[height - 1]);
        const u32 row = place_of(counts, height, n);
        nth = n - (row ? counts[row - 1] : 0);
        return row;
    }
    const u64 *weights = l.weights + image.weights;
    const u64 n = below(word, weights[height - 1]);
    const u32 row = place_of(weights, height, n);
    const u64 start = row ? weights[row - 1] : 0;
    const u32 first = row ? counts[row - 1] : 0;
    // All pixels of a row have the same weight: its sine.
    const u64 sine = (weights[row] - start) / (counts[row] - first);
    nth = (u32)((n - start) / sine);
    return row;
}

// The first pixel of a unit.
__device__ __forceinline__ Pixel first_of(const Launch &l, u64 unit) {
    Words w = words(l, unit, PLACE);
    const u64 drawn = below(w.first, l.total);
    if (l.alike_width) {
        Pixel pixel;
        pixel.image = __ldg(l.order + drawn);
        pixel.row = (u32)below(w.second, l.alike_height);
        pixel.col = (u32)below(w.second, l.alike_width);
        return pixel;
    }
    const u32 place = l.even ? (u32)drawn : place_of(l.sums, l.joined, drawn);
    Pixel pixel;
    pixel.image = __ldg(l.order + place);
    const Image image = l.images[pixel.image];
    const u32 width = image.width - l.extent, height = image.height - l.extent;
    if (image.shape == WHOLE) {
        pixel.row = (u32)below(w.second, height);
        pixel.col = (u32)below(w.second, width);
        return pixel;
    }
    u32 nth;
    pixel.row = row_of(l, image, height, w.second, nth);
    const Range cols = columns(image, l.extent, pixel.row);
    if (image.shape & MASKED)
        pixel.col = mask_of(l, pixel.image, image.width).select(pixel.row, cols, nth);
    else
        pixel.col = cols.start + nth;
    return pixel;
}

// The pixels around the first of a pair.
struct Window {
    const Image &image;
    Mask mask;
    Range rows, cols;
    u32 each;  // pixels of each row if all rows are full; else 0

    __device__ __forceinline__ Range here(u32 row) const {
        const Range all = columns(image, 0, row);
        return {max(all.start, cols.start), min(all.end, cols.end)};
    }

    __device__ __forceinline__ u32 count(u32 row) const {
        return image.shape & MASKED ? mask.count(row, here(row)) : here(row).len();
    }

    __device__ __forceinline__ u32 total() const {
        if (each) return each * rows.len();
        u32 sum = 0;
        for (u32 row = rows.start; row < rows.end; row++) sum += count(row);
        return sum;
    }

    __device__ __forceinline__ void find(u32 n, Pixel &to) const {
        if (each) {
            to.row = rows.start + n / each;
            to.col = cols.start + n % each;
            return;
        }
        for (u32 row = rows.start; row < rows.end; row++) {
            const u32 in_row = count(row);
            if (n < in_row) {
                to.row = row;
                to.col = image.shape & MASKED ? mask.select(row, here(row), n) : here(row).start + n;
                return;
            }
            n -= in_row;
        }
    }
};

__device__ __forceinline__ Range around(u32 at, u32 radius, u32 size) {
    return {at > radius ? at - radius : 0, min(at + radius + 1, size)};
}

// The second pixel of a pair.
__device__ __noinline__ Pixel partner_of(const Launch &l, u64 unit, Pixel first) {
    u64 word = words(l, unit, PARTNER).first;
    const Image image = l.images[first.image];
    Window window = {image, mask_of(l, first.image, image.width),
                     around(first.row, l.first, image.height),
                     around(first.col, l.first, image.width), 0};
    if (image.shape == WHOLE || image.shape == SPHERE) window.each = window.cols.len();
    const u32 total = window.total(), others = total ? total - 1 : 0;
    const u32 n = (u32)below(word, others);
    Pixel pair = first;
    window.find(n, pair);
    // The first of the pair is excluded: if drawn, the last pixel of the window replaces it.
    if (pair.row == first.row && pair.col == first.col && others) window.find(others, pair);
    return pair;
}

__device__ __forceinline__ Pixel pixel_of(const Launch &l, u32 ray) {
    if (l.sampler == PATCHES) {
        const u32 per_unit = l.first * l.first;
        const u32 unit = ray / per_unit, within = ray - unit * per_unit;
        Pixel pixel = first_of(l, unit);
        pixel.row += within / l.first * l.second;
        pixel.col += within % l.first * l.second;
        return pixel;
    }
    if (l.sampler == PAIRS) {
        const Pixel first = first_of(l, ray / 2);
        return ray % 2 ? partner_of(l, ray / 2, first) : first;
    }
    return first_of(l, ray);
}

// Time of a ray within the exposure of its image, 0 to below 1.
__device__ __forceinline__ double moment_of(const Launch &l, u32 ray) {
    return (double)(words(l, ray, MOMENT).first >> 11) / 9007199254740992.0;
}

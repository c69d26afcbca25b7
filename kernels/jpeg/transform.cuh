#pragma once
// Inverse transforms: libjpeg's "islow" to 8 x 8 samples (jidctint), and the reduced ones to 4 x 4,
// 2 x 2 and 1 x 1 (jidctred). One thread per block. Sums wrap and saturate as in
// src/picture/jpeg/decode/transform.rs, so that absurd coefficients produce the same bytes.
//
// Images with an error are skipped: their blocks may never have been written.

// FIX(x): x * 2^13.
#define F0_211 1730
#define F0_298 2446
#define F0_390 3196
#define F0_509 4176
#define F0_541 4433
#define F0_601 4926
#define F0_720 5906
#define F0_765 6270
#define F0_850 6967
#define F0_899 7373
#define F1_061 8697
#define F1_175 9633
#define F1_272 10426
#define F1_451 11893
#define F1_501 12299
#define F1_847 15137
#define F1_961 16069
#define F2_053 16819
#define F2_172 17799
#define F2_562 20995
#define F3_072 25172
#define F3_624 29692

// Zigzag index of each coefficient.
__device__ constexpr u8 zigzag(int natural) {
    constexpr u8 order[64] = {
        0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
        41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
        46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};
    return order[natural];
}

// The halves of a word with coefficients outside row 0 and, for 4 x 4, row 4.
__device__ constexpr u32 lower_rows(int word, bool four) {
    u32 mask = 0xffffffff;
    for (int x = 0; x < 8; x++) {
        for (int row = 0; row < (four ? 8 : 4); row += 4) {
            const int at = zigzag(8 * row + x);
            if (at / 2 == word) mask &= at % 2 ? 0x0000ffff : 0xffff0000;
        }
    }
    return mask;
}

__device__ __forceinline__ int wrapped(int value) { return (int)(i16)value; }
__device__ __forceinline__ int times(int a, int b) { return (int)((u32)a * (u32)b); }
__device__ __forceinline__ int plus(int a, int b) { return (int)((u32)a + (u32)b); }
__device__ __forceinline__ int minus(int a, int b) { return (int)((u32)a - (u32)b); }
__device__ __forceinline__ int saturated(int value) { return min(max(value, -32768), 32767); }
__device__ __forceinline__ u32 halves(int low, int high) {
    return __byte_perm((u32)low, (u32)high, 0x5410);
}
__device__ __forceinline__ int low_half(u32 word) { return (int)(i16)word; }
__device__ __forceinline__ int high_half(u32 word) { return (int)word >> 16; }

// Four values as bytes: each clamped to -128 to 127, plus 128.
__device__ __forceinline__ u32 samples(int a, int b, int c, int d) {
    const u32 low = __byte_perm(min(max(a, -128), 127), min(max(b, -128), 127), 0x0040);
    const u32 high = __byte_perm(min(max(c, -128), 127), min(max(d, -128), 127), 0x0040);
    return __byte_perm(low, high, 0x5410) ^ 0x80808080;
}

// A block of coefficients in zigzag order, and its quantization factors.
struct Block {
    u32 words[32];
    const i16 *factors;

    // Dequantized, in 16 bits that wrap.
    __device__ __forceinline__ int at(int natural) const {
        const int z = zigzag(natural);
        const int value = z & 1 ? high_half(words[z >> 1]) : low_half(words[z >> 1]);
        return wrapped(times(value, factors[natural]));
    }

    __device__ __forceinline__ bool is_flat(bool four) const {
        u32 any = 0;
#pragma unroll
        for (int i = 0; i < 32; i++) any |= words[i] & lower_rows(i, four);
        return !any;
    }

    // Whether four times a coefficient of row 0 takes more than 16 bits.
    __device__ __forceinline__ bool is_steep() const {
        bool any = false;
#pragma unroll
        for (int x = 0; x < 8; x++) any |= at(x) > 8191 || at(x) < -8192;
        return any;
    }
};

// Eight values of a row or column, before and after rounding by BITS.
template <int BITS>
__device__ __forceinline__ void islow(int r0, int r1, int r2, int r3, int r4, int r5, int r6,
                                      int r7, int *out) {
    const int half = 1 << (BITS - 1);
    const int z1 = times(plus(r2, r6), F0_541);
    const int t2 = plus(z1, times(r6, -F1_847)), t3 = plus(z1, times(r2, F0_765));
    const int t0 = plus((int)((u32)wrapped(r0 + r4) << 13), half);
    const int t1 = plus((int)((u32)wrapped(r0 - r4) << 13), half);
    const int even0 = plus(t0, t3), even3 = minus(t0, t3);
    const int even1 = plus(t1, t2), even2 = minus(t1, t2);
    int z3 = wrapped(r7 + r3), z4 = wrapped(r5 + r1);
    const int z5 = times(plus(z3, z4), F1_175);
    z3 = plus(z5, times(z3, -F1_961));
    z4 = plus(z5, times(z4, -F0_390));
    const int y1 = times(plus(r7, r1), -F0_899), y2 = times(plus(r5, r3), -F2_562);
    const int odd0 = plus(plus(times(r1, F1_501), y1), z4);
    const int odd1 = plus(plus(times(r3, F3_072), y2), z3);
    const int odd2 = plus(plus(times(r5, F2_053), y2), z4);
    const int odd3 = plus(plus(times(r7, F0_298), y1), z3);
    out[0] = plus(even0, odd0) >> BITS;
    out[1] = plus(even1, odd1) >> BITS;
    out[2] = plus(even2, odd2) >> BITS;
    out[3] = plus(even3, odd3) >> BITS;
    out[4] = minus(even3, odd3) >> BITS;
    out[5] = minus(even2, odd2) >> BITS;
    out[6] = minus(even1, odd1) >> BITS;
    out[7] = minus(even0, odd0) >> BITS;
}

// 8 x 8 samples: two words a row.
__device__ __forceinline__ void to_8(const Block &block, u32 *out) {
    u32 middle[32];
#pragma unroll
    for (int x = 0; x < 8; x += 2) {
        int y[2][8];
#pragma unroll
        for (int i = 0; i < 2; i++)
            islow<11>(block.at(x + i), block.at(8 + x + i), block.at(16 + x + i),
                      block.at(24 + x + i), block.at(32 + x + i), block.at(40 + x + i),
                      block.at(48 + x + i), block.at(56 + x + i), y[i]);
#pragma unroll
        for (int row = 0; row < 8; row++)
            middle[4 * row + x / 2] = halves(saturated(y[0][row]), saturated(y[1][row]));
    }
    // For such blocks, libjpeg-turbo's shortcut wraps where the full transform saturates.
    if (block.is_steep() && block.is_flat(false)) {
#pragma unroll
        for (int i = 0; i < 32; i++)
            middle[i] = halves(block.at(i % 4 * 2) << 2, block.at(i % 4 * 2 + 1) << 2);
    }
#pragma unroll
    for (int row = 0; row < 8; row++) {
        const u32 *m = middle + 4 * row;
        int y[8];
        islow<18>(low_half(m[0]), high_half(m[0]), low_half(m[1]), high_half(m[1]),
                  low_half(m[2]), high_half(m[2]), low_half(m[3]), high_half(m[3]), y);
        out[2 * row] = samples(y[0], y[1], y[2], y[3]);
        out[2 * row + 1] = samples(y[4], y[5], y[6], y[7]);
    }
}

// Four values from seven, rounded by BITS.
template <int BITS>
__device__ __forceinline__ void reduced(int r0, int r1, int r2, int r3, int r5, int r6, int r7,
                                        int *out) {
    const int even = plus((int)((u32)r0 << 14), 1 << (BITS - 1));
    const int t = plus(times(r2, F1_847), times(r6, -F0_765));
    const int t10 = plus(even, t), t12 = minus(even, t);
    const int t0 = plus(plus(times(r1, F1_061), times(r3, -F2_172)),
                        plus(times(r5, F1_451), times(r7, -F0_211)));
    const int t2 = plus(plus(times(r1, F2_562), times(r3, F0_899)),
                        plus(times(r5, -F0_601), times(r7, -F0_509)));
    out[0] = plus(t10, t2) >> BITS;
    out[1] = plus(t12, t0) >> BITS;
    out[2] = minus(t12, t0) >> BITS;
    out[3] = minus(t10, t2) >> BITS;
}

// 4 x 4 samples: a word a row.
__device__ __forceinline__ void to_4(const Block &block, u32 *out) {
    int middle[4][8];
#pragma unroll
    for (int x = 0; x < 8; x++) {
        if (x == 4) continue;
        int y[4];
        reduced<12>(block.at(x), block.at(8 + x), block.at(16 + x), block.at(24 + x),
                    block.at(40 + x), block.at(48 + x), block.at(56 + x), y);
#pragma unroll
        for (int row = 0; row < 4; row++) middle[row][x] = saturated(y[row]);
    }
    if (block.is_steep() && block.is_flat(true)) {
#pragma unroll
        for (int x = 0; x < 8; x++)
#pragma unroll
            for (int row = 0; row < 4; row++) middle[row][x] = wrapped(block.at(x) << 2);
    }
#pragma unroll
    for (int row = 0; row < 4; row++) {
        const int *m = middle[row];
        int y[4];
        reduced<19>(m[0], m[1], m[2], m[3], m[5], m[6], m[7], y);
        out[row] = samples(y[0], y[1], y[2], y[3]);
    }
}

__device__ __forceinline__ int odd_2(int r1, int r3, int r5, int r7) {
    return plus(plus(times(r1, F3_624), times(r3, -F1_272)),
                plus(times(r5, F0_850), times(r7, -F0_720)));
}

// 2 x 2 samples: a row in the low half of each word.
__device__ __forceinline__ void to_2(const Block &block, u32 *out) {
    int middle[2][8];
#pragma unroll
    for (int x = 0; x < 8; x++) {
        if (x > 0 && x % 2 == 0) continue;
        const int even = plus((int)((u32)block.at(x) << 15), 1 << 12);
        const int t = odd_2(block.at(8 + x), block.at(24 + x), block.at(40 + x), block.at(56 + x));
        middle[0][x] = plus(even, t) >> 13;
        middle[1][x] = minus(even, t) >> 13;
    }
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const int *m = middle[row];
        // The first value is not narrowed to 16 bits in between.
        const int even = plus((int)((u32)m[0] << 15), 1 << 19);
        const int t = odd_2(saturated(m[1]), saturated(m[3]), saturated(m[5]), saturated(m[7]));
        out[row] = samples(plus(even, t) >> 20, minus(even, t) >> 20, 0, 0);
    }
}

// One sample. Absurd values keep only the low ten bits.
__device__ __forceinline__ u32 to_1(int dc, int factor) {
    const int value = (dc * factor + 4) >> 3 & 1023;
    const int sample = value < 512 ? value : value - 1024;
    return (u32)(min(max(sample, -128), 127) + 128);
}

// The DC coefficient of a block: the sum within its piece plus the sum before the piece.
__device__ __forceinline__ int dc_of(const Batch &b, const Picture &p, Info info, u32 component) {
    const u32 piece = min(info.piece, p.units - 1);
    const int *sums = b.sums + (u64)p.first_unit * 3;
    return wrapped((int)(info.dc & 0xffff) + sums[3 * piece + component]);
}

__device__ __forceinline__ void load_block(const Batch &b, const Picture &p, u32 at, u32 component,
                                           const i16 *factors, Block &block) {
    const Info info = ((const Info *)(b.work + p.infos))[at];
    const uint4 *from = (const uint4 *)(b.work + p.coefficients) + (u64)at * 8;
    const u32 sixteens = info.dc >> 16 & 3;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (i / 2 <= sixteens) v = __ldcs(from + i);
        block.words[4 * i] = v.x;
        block.words[4 * i + 1] = v.y;
        block.words[4 * i + 2] = v.z;
        block.words[4 * i + 3] = v.w;
    }
    block.words[0] = (block.words[0] & 0xffff0000) | (dc_of(b, p, info, component) & 0xffff);
    block.factors = factors;
}

// Writes the samples of the components to their planes. A block of threads serves one component.
extern "C" __global__ void __launch_bounds__(THREADS) jpeg_planes(const Batch b, u32 map) {
    const u32 picture = b.maps[map + blockIdx.x];
    if (b.errors[picture]) return;
    const Picture &p = b.pictures[picture];
    u32 nth = blockIdx.x - p.plane_block, component = 0;
    for (; component < p.count; component++) {
        const Component &c = p.component[component];
        const u32 blocks = (c.columns * c.rows + THREADS - 1) / THREADS;
        if (nth < blocks) break;
        nth -= blocks;
    }
    if (component >= p.count) return;
    const Component &c = p.component[component];
    __shared__ i16 factors[64];
    if (threadIdx.x < 64) factors[threadIdx.x] = c.factors[threadIdx.x];
    __syncthreads();
    const u32 at = nth * THREADS + threadIdx.x;
    if (at >= c.columns * c.rows) return;
    const u32 row = at / c.columns, column = at - row * c.columns;
    u8 *to = b.work + p.planes + c.plane + (u64)row * c.side * c.pitch + column * c.side;
    if (c.side == 1) {
        const Info info = ((const Info *)(b.work + p.infos))[c.blocks + at];
        *to = (u8)to_1(dc_of(b, p, info, component), factors[0]);
        return;
    }
    Block block;
    load_block(b, p, c.blocks + at, component, factors, block);
    u32 out[16];
    if (c.side == 8) {
        to_8(block, out);
#pragma unroll
        for (u32 y = 0; y < 8; y++)
            *(uint2 *)(to + y * c.pitch) = make_uint2(out[2 * y], out[2 * y + 1]);
    } else if (c.side == 4) {
        to_4(block, out);
#pragma unroll
        for (u32 y = 0; y < 4; y++) *(u32 *)(to + y * c.pitch) = out[y];
    } else {
        to_2(block, out);
#pragma unroll
        for (u32 y = 0; y < 2; y++) *(u16 *)(to + y * c.pitch) = (u16)out[y];
    }
}

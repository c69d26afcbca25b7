#pragma once
// Places in coded data: segments, units, words that were copied to shared memory.
//
// A state describes a decoder between two symbols, at a unit's end: bits consumed beyond the end
// (5) | place in the block (6) << 5 | block of the MCU (4) << 11. If all components have the same
// tables, the last is 0: otherwise chains that differ only in it would never meet.

#define NO_STATE 0xffffffffffffffffull

extern __shared__ uint4 shared_memory[];

// Position of a chain or a piece.
struct Place {
    u32 start, end;  // bits
    u32 unit;
    u32 segment;
    bool is_first;   // of its segment
};

__device__ __forceinline__ u32 segment_of(const Segment *s, u32 count, u32 at, bool chains) {
    u32 low = 0, high = count;
    while (high - low > 1) {
        const u32 middle = (low + high) >> 1;
        if ((chains ? s[middle].chain : s[middle].unit) <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

template <bool CHAINS>
__device__ __forceinline__ Place place_of(const Batch &b, const Picture &p, u32 at) {
    const Segment *segments = b.segments + p.segment;
    const u32 segment = p.segments > 1 ? segment_of(segments, p.segments, at, CHAINS) : 0;
    const Segment s = segments[segment];
    const u32 units = CHAINS ? CHAIN_UNITS : 1, nth = at - (CHAINS ? s.chain : s.unit);
    Place place;
    place.start = s.start + nth * units * UNIT_BITS;
    place.end = min(s.end, place.start + units * UNIT_BITS);
    place.unit = s.unit + nth * units;
    place.segment = segment;
    place.is_first = nth == 0;
    return place;
}

__device__ __forceinline__ u32 big_endian(u32 word) { return __byte_perm(word, 0, 0x0123); }

// Index of a word in shared memory. After every 1 << spread words one is skipped, so that threads
// at the same distance into their parts use different banks. 31: no word is skipped.
__device__ __forceinline__ u32 spread_at(u32 word, u32 spread) { return word + (word >> spread); }

// Copies words of coded data from the first of `from` to a few after the last of `to`. Returns the
// number of the first word. The caller must synchronise afterwards.
template <u32 SPREAD>
__device__ __forceinline__ u32 stage_words(const Batch &b, const Picture &p, Place from, Place to,
                                           u32 behind, u32 *words) {
    const u32 first = from.start >> 5, end = (to.end >> 5) + behind;
    const u32 *coded = (const u32 *)(b.coded + p.coded);
    const u32 have = (p.coded_bytes + 3) >> 2;
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x)
        words[spread_at(i - first, SPREAD)] = i < have ? big_endian(coded[i]) : 0;
    return first;
}

// A reader of such words: 32 bits are always ready, and one more word is loaded.
struct Reader {
    const u32 *words;
    u32 next, w0, w1, w2, offset, spread;

    __device__ __forceinline__ u32 at(u32 i) const { return words[spread_at(i, spread)]; }

    __device__ __forceinline__ void begin(const u32 *from, u32 spread_by, u32 bit) {
        words = from;
        spread = spread_by;
        next = bit >> 5;
        offset = bit & 31;
        w0 = at(next);
        w1 = at(next + 1);
        next += 2;
        w2 = at(next);
    }

    __device__ __forceinline__ u32 peek() const { return __funnelshift_l(w1, w0, offset); }

    __device__ __forceinline__ void skip(u32 bits) {
        offset += bits;
        const bool over = offset >= 32;
        offset &= 31;
        w0 = over ? w1 : w0;
        w1 = over ? w2 : w1;
        next += over;
        w2 = at(next);
    }
};

// Units that a thread sums by itself.
#define RUN 4u

// For N numbers: the sum over the preceding threads of the block, and over all threads. `shared`:
// 33 words a number.
template <u32 N>
__device__ __forceinline__ void block_sums(const u32 *values, u32 *shared, u32 *before, u32 *all) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    u32 sums[N];
#pragma unroll
    for (u32 i = 0; i < N; i++) {
        sums[i] = values[i];
        for (u32 d = 1; d < 32; d <<= 1) {
            const u32 other = __shfl_up_sync(~0u, sums[i], d);
            if (lane >= d) sums[i] += other;
        }
        if (lane == 31) shared[33 * i + warp] = sums[i];
    }
    __syncthreads();
    if (warp < N) {
        u32 *own = shared + 33 * warp;
        const u32 value = lane < warps ? own[lane] : 0;
        u32 total = value;
        for (u32 d = 1; d < 32; d <<= 1) {
            const u32 other = __shfl_up_sync(~0u, total, d);
            if (lane >= d) total += other;
        }
        own[lane] = total - value;
        if (lane == 31) own[32] = total;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < N; i++) {
        before[i] = sums[i] - values[i] + shared[33 * i + warp];
        all[i] = shared[33 * i + 32];
    }
    __syncthreads();
}

#pragma once
// The coefficients of the blocks that begin in each piece (ITU-T T.81, F.2.2). One thread per
// piece.
//
// A thread gathers a block in shared memory, in zigzag order. It copies the block's coefficients
// out in steps of 16, up to the last one. Blocks outside the window are decoded for their DC alone.
// For components with one sample per block, only DC is kept.
//
// Addresses of shared memory are 32 bits and kept in registers by hand: otherwise the compiler
// recomputes them for each access.

// Words of a block, and four more for the banks.
#define BLOCK_WORDS 36
// One of 16 words of a piece is skipped.
#define PIECE_SPREAD 4
// Words that a block takes after its piece, and a reader's lookahead: 64 symbols of 31 bits.
#define WORDS_BEHIND 72u

__device__ __forceinline__ u32 shared_address(const void *at) {
    u32 address = (u32)__cvta_generic_to_shared(at);
    asm volatile("" : "+r"(address)::"memory");
    return address;
}
__device__ __forceinline__ u32 load_word(u32 at) {
    u32 value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at));
    return value;
}
__device__ __forceinline__ u32 load_half(u32 at) {
    u32 value;
    asm volatile("{ .reg .u16 t; ld.shared.u16 t, [%1]; cvt.u32.u16 %0, t; }"
                 : "=r"(value)
                 : "r"(at));
    return value;
}
__device__ __forceinline__ uint4 load_words(u32 at) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at));
    return v;
}
__device__ __forceinline__ void store_word(u32 at, u32 value) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}
__device__ __forceinline__ void store_half(u32 at, u32 value) {
    asm volatile("{ .reg .u16 t; cvt.u16.u32 t, %1; st.shared.u16 [%0], t; }" ::"r"(at), "r"(value)
                 : "memory");
}
__device__ __forceinline__ void clear_words(u32 at) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(at), "r"(0) : "memory");
}

// Destination of an MCU's block: first kept block | side > 1 << 31; position minus the first kept
// column and row, in 16 bits that wrap; blocks of an MCU across and down; columns and rows.
__device__ __forceinline__ uint4 target_of(const Picture &p, u32 block) {
    const Component &c = p.component[p.order >> (2 * block) & 3];
    const u32 x = p.places[block] & 255, y = p.places[block] >> 8;
    return make_uint4(c.blocks | (c.side > 1) << 31, ((x - c.left) & 0xffff) | (y - c.top) << 16,
                      c.h | c.v << 16, c.columns | c.rows << 16);
}

// Dynamic shared memory: entries up to `words_at`, then words.
extern "C" __global__ void __launch_bounds__(THREADS)
    jpeg_coefficients(const Batch b, u32 map, u32 words_at) {
    const u32 picture = b.maps[map + blockIdx.x];
    const Picture &p = b.pictures[picture];
    const u32 first = (blockIdx.x - p.piece_block) * THREADS, piece = first + threadIdx.x;
    int *sums_out = b.sums + ((u64)p.first_unit + piece) * 3;
    if (b.firsts[p.first_unit + first] >= p.last) {
        // Below the window.
        if (piece < p.units) sums_out[0] = sums_out[1] = sums_out[2] = 0;
        return;
    }
    __shared__ Lookups lookups;
    __shared__ uint4 targets[10];
    __shared__ __align__(16) u32 gathered[THREADS * BLOCK_WORDS];
    __shared__ u32 dc[3 * THREADS];
    u16 *entries = (u16 *)shared_memory;
    u32 *words = (u32 *)((u8 *)shared_memory + words_at);
    const u32 last_piece = min(first + THREADS, p.units) - 1;
    const u32 first_word =
        stage_words<PIECE_SPREAD>(b, p, place_of<false>(b, p, first),
                                  place_of<false>(b, p, last_piece), WORDS_BEHIND, words);
    for (u32 i = threadIdx.x; i < THREADS * BLOCK_WORDS; i += THREADS) gathered[i] = 0;
    if (threadIdx.x < p.of_mcu) targets[threadIdx.x] = target_of(p, threadIdx.x);
    stage_tables<false>(b, p, entries, lookups);
    __syncthreads();
    if (piece >= p.units) return;

    dc[threadIdx.x] = dc[THREADS + threadIdx.x] = dc[2 * THREADS + threadIdx.x] = 0;
    const Place place = place_of<false>(b, p, piece);
    const u32 state = place.is_first ? 0 : (u32)b.states[p.first_unit + place.unit - 1] & 0xffff;
    const u32 over = state & 31;
    int left = (int)place.end - (int)(place.start + over);
    u32 block = b.firsts[p.first_unit + piece];
    const u32 end_of_segment =
        p.segments > 1 ? min(p.blocks, (place.segment + 1) * p.interval) : p.blocks;
    const u32 end = min(end_of_segment, p.last);
    u32 worst = 0;
    if (left > 0 && block < end) {
        const u32 gathered_at = shared_address(gathered + threadIdx.x * BLOCK_WORDS);
        const u32 dc_at = shared_address(dc + threadIdx.x);
        const u32 lookups_at = shared_address(lookups.of), entries_at = shared_address(entries);
        const u32 words_from = shared_address(words), targets_at = shared_address(targets);
        const u32 of_mcu = p.of_mcu, order = p.order << 5, mcus = p.mcus;
        Info *infos = (Info *)(b.work + p.infos);
        uint4 *coefficients = (uint4 *)(b.work + p.coefficients);
        u32 next, offset, w0, w1, w2;
        {
            Reader reader;
            reader.begin(words, PIECE_SPREAD, place.start + over - first_word * 32);
            next = reader.next, offset = reader.offset;
            w0 = reader.w0, w1 = reader.w1, w2 = reader.w2;
        }
        u32 k = state >> 5 & 63;
        bool is_others = k > 0;  // the current block began in an earlier piece
        const u32 mcu = block / of_mcu;
        u32 nth = block - mcu * of_mcu;
        u32 row = mcu / mcus, column = mcu - row * mcus, last = 0, sum = 0;
        // Bytes of a component's two lookups.
        u32 component = order >> (2 * nth) & 0x60;
        uint4 lookup = load_words(lookups_at + component + (k ? 16 : 0));
        do {
            const u32 bits = __funnelshift_l(w1, w0, offset), top = bits >> 16;
            const u32 slot = top < lookup.y ? bits >> (32 - FIRST_BITS)
                                            : FIRST + min(top - lookup.y, lookup.z);
            const u32 entry = load_half(entries_at + 2 * (lookup.x + slot));
            const u32 size = value_bits(entry), go = places(entry);
            const u32 end_bits = go - (END + 1) < 62 ? lookup.w : 0;
            const u32 reached = k + (go & 63);
            worst = max(worst, go == NO_SYMBOL ? 127 : reached);
            // EXTEND (F.2.2.1); a size of 0 gives 0.
            u32 taken = bits_of(entry);
            const int value_at_top = (int)(bits << (taken - size - end_bits));
            const int sign = ~(value_at_top >> 31);
            const u32 magnitude = (u32)(value_at_top ^ sign) >> 1 >> (31 - size);
            int value = ((int)magnitude ^ sign) - sign;
            // A block that ends with its 63rd coefficient has no end code.
            if (reached >= 64) taken -= end_bits;
            offset += taken;
            const bool is_over = offset >= 32;
            offset &= 31;
            w0 = is_over ? w1 : w0;
            w1 = is_over ? w2 : w1;
            next += is_over;
            w2 = load_word(words_from + 4 * spread_at(next, PIECE_SPREAD));
            left -= (int)taken;
            if (k == 0) {
                const u32 at = dc_at + component / 32 * (THREADS * 4);
                value += (int)load_word(at);
                store_word(at, value);
                sum = value & 0xffff;
                last = 0;
            } else if (size) {
                last = min(reached - 1, 63u);
                if (!is_others) store_half(gathered_at + 2 * last, value);
            }
            k += go;
            if (k >= 64) {
                k = 0;
                if (!is_others) {
                    const uint4 t = load_words(targets_at + 16 * nth);
                    const u32 x = column * (t.z & 0xffff) + (u32)(int)(i16)t.y;
                    const u32 y = row * (t.z >> 16) + (u32)((int)t.y >> 16);
                    const bool is_kept = x < (t.w & 0xffff) && y < t.w >> 16;
                    const u32 to = (t.x & 0x7fffffff) + y * (t.w & 0xffff) + x;
                    const u32 sixteens = last >> 4;
                    if (is_kept) infos[to] = {sum | sixteens << 16, piece};
                    const bool is_copied = is_kept && t.x >> 31;
#pragma unroll
                    for (u32 i = 0; i < 4; i++)
                        if (i <= sixteens) {
                            const u32 from = gathered_at + 32 * i;
                            const uint4 low = load_words(from), high = load_words(from + 16);
                            clear_words(from);
                            clear_words(from + 16);
                            if (is_copied) {
                                coefficients[(u64)to * 8 + 2 * i] = low;
                                coefficients[(u64)to * 8 + 2 * i + 1] = high;
                            }
                        }
                }
                is_others = false;
                block++;
                nth++;
                if (nth == of_mcu) {
                    nth = 0;
                    column++;
                    if (column == mcus) column = 0, row++;
                }
                component = order >> (2 * nth) & 0x60;
            }
            lookup = load_words(lookups_at + component + (k ? 16 : 0));
        } while (block < end && (left > 0 || (k && !is_others)));
        // A segment's data end with its last block, except for the bits that fill the last byte.
        if (block == end_of_segment) {
            const int behind = (int)(b.segments[p.segment + place.segment].end - place.end) + left;
            const bool has_marker = place.segment + 1 < p.segments;
            if (behind < 0 || (has_marker && behind >= 8)) atomicOr(&b.errors[picture], BAD_END);
        }
    }
    if (worst > 64) atomicOr(&b.errors[picture], NO_CODE);
    sums_out[0] = dc[threadIdx.x];
    sums_out[1] = dc[THREADS + threadIdx.x];
    sums_out[2] = dc[2 * THREADS + threadIdx.x];
}

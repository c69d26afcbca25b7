#pragma once
// Finds where blocks begin: decodes only the lengths of codes, from many places at once. One thread
// per chain.
//
// A chain starts at its first unit as if an image began there, which is usually wrong. Codes
// synchronise by themselves after some symbols. At each unit's end a chain stores one word: its
// number, the blocks that ended in the unit, and its state. The word of the lowest chain stays.
//
// A chain walks past its own units until the stored state equals its own, or the stored word
// belongs to a lower chain. The first chain of a segment starts right. Where another chain meets
// it, their words are equal. So each unit ends with the word of a correct chain, whatever the order
// of threads.
//
// A memo of each unit's last four walks makes it cheap when many chains pass the same place.

// Words of a unit, and of a reader's lookahead.
#define WALK_WORDS (UNIT_BITS / 32 + 5)
// One of 64 words of a chain is skipped.
#define CHAIN_SPREAD 6

// Position of a chain.
struct Walker {
    Reader reader;
    u32 k, block;
    uint4 lookup;
};

struct Codes {
    const u16 *entries;
    const Lookups *lookups;
    u32 order, phases;
};

__device__ __forceinline__ void choose_table(Walker &w, const Codes &c) {
    w.lookup = c.lookups->of[(c.order >> (2 * w.block) & 3) * 2 + (w.k > 0)];
}

__device__ __forceinline__ void start_walk(Walker &w, const u32 *words, u32 spread, u32 bit,
                                           u32 state, const Codes &c) {
    w.reader.begin(words, spread, bit);
    w.k = state >> 5 & 63;
    w.block = state >> 11 & 15;
    choose_table(w, c);
}

// Walks over `left` bits. At the end `left` is zero, or negative by the excess bits. Returns the
// state; `blocks` is the number of blocks that ended.
__device__ __forceinline__ u32 walk(Walker &w, int &left, u32 &blocks, const Codes &c) {
    blocks = 0;
    while (left > 0) {
        const u32 bits = w.reader.peek(), top = bits >> 16, beyond = top - w.lookup.y;
        const bool is_short = top < w.lookup.y;
        const bool many = is_short && w.k <= 48 && left >= (int)MANY_BITS && w.lookup.w;
        const u32 single = is_short ? bits >> (32 - FIRST_BITS) : FIRST + min(beyond, w.lookup.z);
        const u32 entry =
            c.entries[many ? w.lookup.w + (bits >> (32 - MANY_BITS)) : w.lookup.x + single];
        w.reader.skip(bits_of(entry));
        left -= bits_of(entry);
        w.k += places(entry);
        const bool done = w.k >= 64;
        w.k = done ? 0 : w.k;
        blocks += done;
        w.block += done;
        w.block = w.block == c.phases ? 0 : w.block;
        choose_table(w, c);
    }
    return ((u32)-left | w.k << 5 | w.block << 11) & 0xffff;
}

__device__ __forceinline__ u32 memo_of(u32 unit, u32 state) {
    return unit * 4 + ((state ^ state >> 5 ^ state >> 11) & 3);
}

__device__ __forceinline__ u64 memo(u32 blocks, u32 end, u32 start) {
    return (u64)blocks << 32 | end << 16 | start;
}

// Dynamic shared memory: entries up to `words_at`, then the words of all chains. After those,
// WALK_WORDS a thread.
extern "C" __global__ void __launch_bounds__(THREADS)
    jpeg_chains(const Batch b, u32 map, u32 words_at) {
    const u32 picture = b.maps[map + blockIdx.x];
    const Picture &p = b.pictures[picture];
    const u32 first = (blockIdx.x - p.chain_block) * blockDim.x, chain = first + threadIdx.x;
    __shared__ Lookups lookups;
    u16 *entries = (u16 *)shared_memory;
    u32 *words = (u32 *)((u8 *)shared_memory + words_at);
    const u32 last = min(first + blockDim.x, p.chains) - 1;
    const u32 first_word =
        stage_words<CHAIN_SPREAD>(b, p, place_of<true>(b, p, first), place_of<true>(b, p, last), 5,
                                  words);
    stage_tables<true>(b, p, entries, lookups);
    __syncthreads();

    const Place place = place_of<true>(b, p, min(chain, p.chains - 1));
    const Codes codes = {entries, &lookups, p.order, p.phases};
    u64 *states = b.states + p.first_unit, *memos = b.memos + (u64)p.first_unit * 4;
    const u64 id = (u64)chain << 32;
    u32 unit = place.unit, state = 0, at = place.start;
    Walker walker;
    if (chain < p.chains) {
        start_walk(walker, words, CHAIN_SPREAD, at - first_word * 32, 0, codes);
        int left = 0;
        for (; at < place.end; at += UNIT_BITS, unit++) {
            u32 blocks;
            left += (int)(min(at + UNIT_BITS, place.end) - at);
            const u32 end = walk(walker, left, blocks, codes);
            memos[memo_of(unit, state)] = memo(blocks, end, state);
            atomicMin(&states[unit], id | blocks << 16 | end);
            state = end;
        }
    }
    __syncthreads();
    if (chain >= p.chains) return;

    const u32 segment_end = b.segments[p.segment + place.segment].end;
    const u32 *coded = (const u32 *)(b.coded + p.coded);
    const u32 have = (p.coded_bytes + 3) >> 2;
    u32 *own = words + threadIdx.x * WALK_WORDS;
    u32 walked = 0, all = 0;
    for (; at < segment_end; at += UNIT_BITS, unit++) {
        if (walked > MOST_UNITS || ++all > MOST_KNOWN) {
            atomicOr(&b.errors[picture], TOO_LONG);
            break;
        }
        u64 *slot = &memos[memo_of(unit, state)];
        const u64 known = *(volatile u64 *)slot;
        u32 end, blocks;
        if ((known & 0xffff) == state) {
            end = known >> 16 & 0xffff;
            blocks = known >> 32 & 0xffff;
        } else {
            walked++;
            const u32 over = state & 31, bit = at + over, word = bit >> 5;
            u32 ahead[WALK_WORDS];
#pragma unroll
            for (u32 i = 0; i < WALK_WORDS; i++) ahead[i] = word + i < have ? coded[word + i] : 0;
#pragma unroll
            for (u32 i = 0; i < WALK_WORDS; i++) own[i] = big_endian(ahead[i]);
            start_walk(walker, own, 31, bit & 31, state, codes);
            int left = (int)(min(at + UNIT_BITS, segment_end) - at) - (int)over;
            end = walk(walker, left, blocks, codes);
            *slot = memo(blocks, end, state);
        }
        const u64 old = atomicMin(&states[unit], id | blocks << 16 | end);
        if ((old >> 32) < chain || (old != NO_STATE && (old & 0xffff) == end)) break;
        state = end;
    }
}

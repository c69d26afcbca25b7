#pragma once
// Lookups of an image's Huffman tables (ITU-T T.81, Annex C). One block of threads per image.
//
// An entry is 16 bits: bits taken with the value (5) | bits of the value (4) << 5 | places to
// advance (7) << 9. END ends the block; NO_SYMBOL is no code.
//
// | lookups | indexed by | entry |
// |---|---|---|
// | singles | 9 bits, or from `threshold` on the 16 bits less that | one symbol |
// | pairs | 11 bits | as many symbols as they hold, without values |
// | values | as singles | one symbol, and the end of the block after it if 9 bits hold it |
//
// In memory: singles of the four tables; pairs, from a DC code on and among AC codes, of up to two
// components; values.

#define FIRST_BITS 9u
#define FIRST (1u << FIRST_BITS)
#define MANY_BITS 11u
#define MANY (1u << MANY_BITS)
#define END 64u
#define NO_SYMBOL 127u
#define NO_CODE_ENTRY (u16)(16 | NO_SYMBOL << 9)

__device__ __forceinline__ u32 bits_of(u32 entry) { return entry & 31; }
__device__ __forceinline__ u32 value_bits(u32 entry) { return entry >> 5 & 15; }
__device__ __forceinline__ u32 places(u32 entry) { return entry >> 9; }

// The entry of the code at the top of 16 bits.
__device__ u16 symbol_at(const Table &t, u32 bits, bool is_dc) {
    u32 code = 0, index = 0;
    for (u32 length = 1; length <= 16; length++) {
        const u32 count = t.counts[length - 1], top = bits >> (16 - length);
        if (top < code + count) {
            const u32 symbol = t.symbols[(index + top - code) & 255];
            const u32 size = is_dc ? min(symbol, 15u) : symbol & 15, run = symbol >> 4;
            u32 go = size ? run + 1 : run == 15 ? 16 : END;
            if (is_dc) go = symbol > 15 ? NO_SYMBOL : 1;
            return (u16)(length + size | size << 5 | go << 9);
        }
        index += count;
        code = (code + count) << 1;
    }
    return NO_CODE_ENTRY;
}

__device__ __forceinline__ u32 table_entries(const Table &t) {
    return t.used ? (FIRST + t.second + 1 + 7) & ~7u : 0;
}

__device__ __forceinline__ u16 entry_of(const Table &t, u32 slot, bool is_dc) {
    if (slot < FIRST) {
        const u32 bits = slot << (16 - FIRST_BITS);
        return bits >= t.threshold ? 0 : symbol_at(t, bits, is_dc);
    }
    slot -= FIRST;
    return slot < t.second ? symbol_at(t, t.threshold + slot, is_dc) : NO_CODE_ENTRY;
}

// A code and the end of the block after it, if FIRST_BITS hold both; else `entry`.
__device__ u16 with_end(u32 entry, u32 slot, const u16 *ac, u32 threshold, bool is_dc) {
    const u32 taken = bits_of(entry), go = places(entry);
    if (!entry || go >= END || taken >= FIRST_BITS || (!is_dc && !value_bits(entry))) return entry;
    const u32 rest = slot << (32 - FIRST_BITS) << taken;
    if (rest >> 16 >= threshold) return entry;
    const u32 end = ac[rest >> (32 - FIRST_BITS)];
    const u32 all = taken + bits_of(end);
    if (places(end) != END || all > FIRST_BITS) return entry;
    return (u16)(all | (entry & 0x1e0) | (END + go) << 9);
}

// As many symbols as MANY_BITS hold, up to four. No symbol follows the end of a block. Only the
// last symbol's value may extend beyond the bits.
__device__ u16 many_at(const Table *tables, const u16 (*first)[FIRST], u32 dc, u32 ac, bool in_ac,
                       u32 slot) {
    u32 taken = 0, gone = 0, table = in_ac ? ac : dc, out = 0;
    const u32 bits = slot << (32 - MANY_BITS);
    for (int i = 0; i < 4 && taken < MANY_BITS; i++) {
        const u32 rest = bits << taken;
        const bool is_short = rest >> 16 < tables[table].threshold;
        const u32 entry = is_short ? first[table][rest >> (32 - FIRST_BITS)] : 0;
        const u32 own = bits_of(entry), length = own - value_bits(entry), go = places(entry);
        if (!entry || go == NO_SYMBOL || taken + length > MANY_BITS || (in_ac && gone > 15) ||
            taken + own > 31)
            break;
        taken += own;
        gone += go;
        if (go >= END) return (u16)(taken | END << 9);
        out = taken | gone << 9;
        table = ac;
        if (gone >= 48) break;
    }
    if (out) return (u16)out;
    const u32 entry = first[in_ac ? ac : dc][slot >> (MANY_BITS - FIRST_BITS)];
    return entry ? (u16)(bits_of(entry) | places(entry) << 9) : 0;
}

extern "C" __global__ void __launch_bounds__(WIDE_THREADS) jpeg_tables(const Batch b) {
    const Picture &p = b.pictures[blockIdx.x];
    __shared__ Table tables[4];
    __shared__ u16 first[4][FIRST];
    const u32 words = sizeof tables / 4;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x)
        ((u32 *)tables)[i] = ((const u32 *)p.table)[i];
    __syncthreads();
    u16 *singles = (u16 *)(b.work + p.tables), *many = singles + p.singles;
    u16 *values = many + 2 * p.pairs * MANY;
    for (u32 t = 0; t < 4; t++) {
        for (u32 slot = threadIdx.x; slot < table_entries(tables[t]); slot += blockDim.x) {
            const u16 entry = entry_of(tables[t], slot, t < 2);
            singles[tables[t].base + slot] = entry;
            if (slot >= FIRST) values[tables[t].base + slot] = entry;
            if (slot < FIRST) first[t][slot] = entry;
        }
    }
    __syncthreads();
    for (u32 t = 0; t < 4; t++) {
        if (!tables[t].used) continue;
        // The AC table used with a DC table, if all its users have the same one.
        u32 ac = t;
        if (t < 2) {
            ac = 0;
            for (u32 c = 0; c < p.count; c++)
                if (p.component[c].dc == t)
                    ac = ac == 0 || ac == p.component[c].ac ? p.component[c].ac : 4;
        }
        const bool is_one = ac >= 2 && ac < 4;
        for (u32 slot = threadIdx.x; slot < FIRST; slot += blockDim.x)
            values[tables[t].base + slot] =
                is_one ? with_end(first[t][slot], slot, first[ac], tables[ac].threshold, t < 2)
                       : first[t][slot];
    }
    for (u32 pair = 0; pair < p.pairs; pair++) {
        u32 c = 0;
        while (c + 1 < p.count && p.component[c].pair != pair) c++;
        for (u32 in_ac = 0; in_ac < 2; in_ac++)
            for (u32 slot = threadIdx.x; slot < MANY; slot += blockDim.x)
                many[(2 * pair + in_ac) * MANY + slot] =
                    many_at(tables, first, p.component[c].dc, p.component[c].ac, in_ac, slot);
    }
}

// Positions of a component's lookups in shared memory: [component * 2 + among AC codes].
struct Lookups {
    uint4 of[6];  // base, threshold, second; then for chains the base of the pairs (0: none), or
                  // for coefficients the bits of the end of a block
};

// Copies the lookups for chains (singles and pairs) or for coefficients (values). The caller must
// synchronise afterwards.
template <bool CHAINS>
__device__ __forceinline__ void stage_tables(const Batch &b, const Picture &p, u16 *to,
                                             Lookups &lookups) {
    const u32 chain_entries = p.singles + 2 * p.pairs * MANY;
    const u16 *tables = (const u16 *)(b.work + p.tables);
    const uint4 *from = (const uint4 *)(CHAINS ? tables : tables + chain_entries);
    const u32 entries = CHAINS ? chain_entries : p.singles;
    for (u32 i = threadIdx.x; i < entries / 8; i += blockDim.x) ((uint4 *)to)[i] = from[i];
    if (threadIdx.x < 2 * p.count) {
        const Component &c = p.component[threadIdx.x >> 1];
        const u32 in_ac = threadIdx.x & 1;
        const Table &t = p.table[in_ac ? c.ac : c.dc];
        const u32 many = c.pair < p.pairs ? p.singles + (2 * c.pair + in_ac) * MANY : 0;
        lookups.of[threadIdx.x] =
            make_uint4(t.base, t.threshold, t.second, CHAINS ? many : p.table[c.ac].end);
    }
}

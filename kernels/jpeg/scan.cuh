#pragma once
// The number of the current block where each piece begins: the sum of the blocks that ended in
// earlier pieces. One block of threads per image. Counts that do not fit the image are an error.

extern "C" __global__ void __launch_bounds__(WIDE_THREADS) jpeg_scan(const Batch b) {
    const Picture &p = b.pictures[blockIdx.x];
    __shared__ u32 sums[33];
    const Segment *segments = b.segments + p.segment;
    const u64 *states = b.states + p.first_unit;
    u32 *firsts = b.firsts + p.first_unit;
    u32 base = 0;
    for (u32 at = 0; at < p.units; at += RUN * blockDim.x) {
        const u32 first = at + RUN * threadIdx.x;
        u32 own[RUN], of_run = 0, before, all;
#pragma unroll
        for (u32 i = 0; i < RUN; i++) {
            own[i] = first + i < p.units ? (u32)states[first + i] >> 16 : 0;
            of_run += own[i];
        }
        block_sums<1>(&of_run, sums, &before, &all);
        before += base;
#pragma unroll
        for (u32 i = 0; i < RUN; i++) {
            if (first + i < p.units) firsts[first + i] = before;
            before += own[i];
        }
        base += all;
    }
    bool is_bad = p.segments == 1 && base < p.blocks;
    __syncthreads();
    if (p.segments > 1) {
        // Each segment begins with a new block. The sum at its start is saved first.
        u32 *before = (u32 *)(b.sums + (u64)p.first_unit * 3);
        for (u32 s = threadIdx.x; s < p.segments; s += blockDim.x)
            before[s] = firsts[segments[s].unit];
        __syncthreads();
        for (u32 s = threadIdx.x; s < p.segments; s += blockDim.x) {
            const bool is_last = s + 1 == p.segments;
            const u32 end = is_last ? p.units : segments[s + 1].unit;
            const u32 found = (is_last ? base : before[s + 1]) - before[s];
            const u32 first = s * p.interval, wanted = min(p.interval, p.blocks - first);
            if (found < wanted) is_bad = true;
            const u32 shift = first - before[s];
            for (u32 unit = segments[s].unit; unit < end; unit++) firsts[unit] += shift;
        }
    }
    if (is_bad) atomicOr(&b.errors[blockIdx.x], TOO_FEW_BLOCKS);
}

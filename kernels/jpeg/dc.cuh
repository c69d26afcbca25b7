#pragma once
// What the DC coefficients of each component are where each piece begins: sums of the
// differences in the pieces before it, from zero in each segment. A block a picture.

extern "C" __global__ void __launch_bounds__(WIDE_THREADS) jpeg_dc(const Batch b) {
    const Picture &p = b.pictures[blockIdx.x];
    __shared__ u32 shared[33];
    int *sums = b.sums + (u64)p.first_unit * 3;
    u32 base[3] = {0, 0, 0};
    for (u32 at = 0; at < p.units; at += blockDim.x) {
        const u32 unit = at + threadIdx.x;
#pragma unroll
        for (u32 c = 0; c < 3; c++) {
            if (c >= p.count) break;
            u32 all;
            const u32 own = unit < p.units ? sums[3 * unit + c] : 0;
            const u32 before = block_sum(own, shared, all);
            if (unit < p.units) sums[3 * unit + c] = base[c] + before;
            base[c] += all;
        }
    }
    if (p.segments == 1) return;
    __syncthreads();
    const Segment *segments = b.segments + p.segment;
    for (u32 s = threadIdx.x; s < p.segments; s += blockDim.x) {
        const u32 first = segments[s].unit;
        const u32 end = s + 1 < p.segments ? segments[s + 1].unit : p.units;
        for (u32 c = 0; c < p.count; c++) {
            const int start = sums[3 * first + c];
            for (u32 unit = first; unit < end; unit++) sums[3 * unit + c] -= start;
        }
    }
}

#pragma once
// The DC coefficient of each component where each piece begins: the sum of the differences in
// earlier pieces, from zero in each segment. One block of threads per image.

extern "C" __global__ void __launch_bounds__(WIDE_THREADS) jpeg_dc(const Batch b) {
    const Picture &p = b.pictures[blockIdx.x];
    __shared__ u32 shared[3 * 33];
    int *sums = b.sums + (u64)p.first_unit * 3;
    u32 base[3] = {0, 0, 0};
    for (u32 at = 0; at < p.units; at += RUN * blockDim.x) {
        const u32 first = at + RUN * threadIdx.x;
        u32 own[RUN][3], of_run[3] = {0, 0, 0}, before[3], all[3];
#pragma unroll
        for (u32 i = 0; i < RUN; i++) {
#pragma unroll
            for (u32 c = 0; c < 3; c++) {
                own[i][c] = first + i < p.units ? sums[3 * (first + i) + c] : 0;
                of_run[c] += own[i][c];
            }
        }
        block_sums<3>(of_run, shared, before, all);
#pragma unroll
        for (u32 c = 0; c < 3; c++) {
            before[c] += base[c];
            base[c] += all[c];
#pragma unroll
            for (u32 i = 0; i < RUN; i++) {
                if (first + i < p.units) sums[3 * (first + i) + c] = before[c];
                before[c] += own[i][c];
            }
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

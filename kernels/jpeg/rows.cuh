#pragma once
// Coded data from the host's memory to the device's, of all pictures at once: a copy for each
// costs the host more. ROW_BLOCKS blocks a picture.

#define ROW_BLOCKS 4u

extern "C" __global__ void __launch_bounds__(WIDE_THREADS) jpeg_rows(const Batch b) {
    const Picture &p = b.pictures[blockIdx.x / ROW_BLOCKS];
    const uint4 *from = (const uint4 *)p.source;
    uint4 *to = (uint4 *)(b.coded + p.coded);
    // Both begin at multiples of 16, and go on to one.
    const u32 count = (p.coded_bytes + 15u) / 16u, step = ROW_BLOCKS * blockDim.x;
#pragma unroll 4
    for (u32 i = blockIdx.x % ROW_BLOCKS * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = from[i];
}

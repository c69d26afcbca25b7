#pragma once
// Copies coded data from host memory to the device, for all images at once: one copy for each costs
// the host more. The tables of resizes follow them. ROW_BLOCKS blocks each.

#define ROW_BLOCKS 4u

extern "C" __global__ void __launch_bounds__(WIDE_THREADS) jpeg_rows(const Batch b, u32 pictures) {
    const u32 number = blockIdx.x / ROW_BLOCKS;
    u64 source, place;
    u32 bytes;
    if (number < pictures) {
        const Picture &p = b.pictures[number];
        source = p.source, place = p.coded, bytes = p.coded_bytes;
    } else {
        const Resize &r = b.resizes[number - pictures];
        source = r.source, place = r.tables, bytes = r.table_bytes;
    }
    const uint4 *from = (const uint4 *)source;
    uint4 *to = (uint4 *)(b.coded + place);
    // Both begin at multiples of 16, and have room up to the next multiple.
    const u32 count = (bytes + 15u) / 16u, step = ROW_BLOCKS * blockDim.x;
#pragma unroll 4
    for (u32 i = blockIdx.x % ROW_BLOCKS * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = from[i];
}

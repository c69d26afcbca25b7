#pragma once
// From samples to RGB: upsampling (jdsample) and colour (jdcolor). Images with an error are
// skipped.

// Bytes, each clamped to 0 to 255.
__device__ __forceinline__ u32 levels(int a, int b, int c, int d) {
    const u32 low = __byte_perm(min(max(a, 0), 255), min(max(b, 0), 255), 0x0040);
    const u32 high = __byte_perm(min(max(c, 0), 255), min(max(d, 0), 255), 0x0040);
    return __byte_perm(low, high, 0x5410);
}

// Factors of ITU-T T.871 with 16 fraction bits. The result is not clamped yet.
__device__ __forceinline__ void to_rgb(int y, int cb, int cr, int *out) {
    cb -= 128;
    cr -= 128;
    out[0] = y + ((91881 * cr + 32768) >> 16);
    out[1] = y + ((-22554 * cb - 46802 * cr + 32768) >> 16);
    out[2] = y + ((116130 * cb + 32768) >> 16);
}

// Four pixels as three words.
__device__ __forceinline__ void pixels(const u32 *components, u32 colour, u32 *out) {
    int v[12];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int a = components[0] >> (8 * i) & 255, x = components[1] >> (8 * i) & 255,
                  y = components[2] >> (8 * i) & 255;
        if (colour == YCBCR) {
            to_rgb(a, x, y, v + 3 * i);
        } else {
            v[3 * i] = a;
            v[3 * i + 1] = x;
            v[3 * i + 2] = y;
        }
    }
#pragma unroll
    for (int i = 0; i < 3; i++) out[i] = levels(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
}

// Images whose three components have one sample per pixel in 8 x 8 blocks: samples and RGB at once.
// One thread per position, for its three blocks.
extern "C" __global__ void __launch_bounds__(THREADS) jpeg_rgb(const Batch b, u32 map) {
    const u32 picture = b.maps[map + blockIdx.x];
    if (b.errors[picture]) return;
    const Picture &p = b.pictures[picture];
    __shared__ i16 factors[3][64];
    for (u32 i = threadIdx.x; i < 192; i += THREADS)
        factors[i >> 6][i & 63] = p.component[i >> 6].factors[i & 63];
    __syncthreads();
    __shared__ u32 samples_of[3][16][THREADS];
    const Component &c = p.component[0];
    const u32 at = (blockIdx.x - p.rgb_block) * THREADS + threadIdx.x;
    if (at >= c.columns * c.rows) return;
    const u32 row = at / c.columns, column = at - row * c.columns;
#pragma unroll 1
    for (u32 i = 0; i < 3; i++) {
        Block block;
        u32 out[16];
        load_block(b, p, p.component[i].blocks + at, i, factors[i], block);
        to_8(block, out);
#pragma unroll
        for (u32 j = 0; j < 16; j++) samples_of[i][j][threadIdx.x] = out[j];
    }
    // Rows of the block, relative to the window's first row. Rows above the window wrap to huge
    // numbers.
    const u32 top = (c.top + row) * 8 - p.y;
    u8 *to = b.work + p.rgb + column * 24;
#pragma unroll
    for (u32 y = 0; y < 8; y++) {
        if (top + y >= p.height) continue;
        u32 *words = (u32 *)(to + (u64)(top + y) * p.pitch);
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 components[3], out[3];
#pragma unroll
            for (u32 i = 0; i < 3; i++) components[i] = samples_of[i][2 * y + half][threadIdx.x];
            pixels(components, p.colour, out);
#pragma unroll
            for (u32 i = 0; i < 3; i++) words[3 * half + i] = out[i];
        }
    }
}

__device__ __forceinline__ u32 held(int at, u32 size) {
    return (u32)min(max(at, 0), (int)size - 1);
}

// The kept samples of a component.
struct Plane {
    const u8 *samples;
    u32 pitch, columns, rows;
    int left, top;
    u32 width, height;

    __device__ __forceinline__ Plane(const u8 *planes, const Component &c)
        : samples(planes + c.plane), pitch(c.pitch), columns(c.columns * c.side),
          rows(c.rows * c.side), left((int)(c.left * c.side)), top((int)(c.top * c.side)),
          width(c.width), height(c.height) {}

    __device__ __forceinline__ const u8 *row(int y) const {
        return samples + (u64)held(y - top, rows) * pitch;
    }

    // The sample of a row at x, or the one at the image's edge.
    __device__ __forceinline__ int at(const u8 *row, int x) const {
        return row[held((int)held(x, width) - left, columns)];
    }
};

// The samples of four pixels from x on, a multiple of 4.
__device__ __forceinline__ u32 enlarged(const u8 *planes, const Component &c, u32 x, u32 y) {
    const Plane plane(planes, c);
    int out[4];
    if (c.filter == REPEAT || c.filter == DOWN) {
        const int near = (int)(y / c.down);
        const int far = (int)held(y & 1 ? near + 1 : near - 1, plane.height);
        const u8 *row = plane.row(near), *other = plane.row(far);
        const int bias = y & 1 ? 2 : 1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = (int)((x + i) / c.across), value = plane.at(row, at);
            out[i] = c.filter == DOWN ? (3 * value + plane.at(other, at) + bias) >> 2 : value;
        }
    } else {
        const int column = (int)(x >> 1);
        int sums[4];
        if (c.filter == BOTH) {
            const int near = (int)(y >> 1);
            const int far = (int)held(y & 1 ? near + 1 : near - 1, plane.height);
            const u8 *row = plane.row(near), *other = plane.row(far);
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums[i] = 3 * plane.at(row, column - 1 + i) + plane.at(other, column - 1 + i);
        } else {
            const u8 *row = plane.row((int)(y / c.down));
#pragma unroll
            for (int i = 0; i < 4; i++) sums[i] = plane.at(row, column - 1 + i);
        }
        const int bits = c.filter == BOTH ? 4 : 2;
        const int first = c.filter == BOTH ? 8 : 1, second = c.filter == BOTH ? 7 : 2;
        out[0] = (3 * sums[1] + sums[0] + first) >> bits;
        out[1] = (3 * sums[1] + sums[2] + second) >> bits;
        out[2] = (3 * sums[2] + sums[1] + first) >> bits;
        out[3] = (3 * sums[2] + sums[3] + second) >> bits;
    }
    return levels(out[0], out[1], out[2], out[3]);
}

// All other images, from their planes. One thread per four pixels.
extern "C" __global__ void __launch_bounds__(256) jpeg_colour(const Batch b, u32 map) {
    const u32 picture = b.maps[map + blockIdx.x];
    if (b.errors[picture]) return;
    const Picture &p = b.pictures[picture];
    const u32 fours = (p.x + p.width - p.left + 3) / 4;
    const u32 at = (blockIdx.x - p.colour_block) * 256 + threadIdx.x;
    const u32 row = at / fours, x = p.left + 4 * (at - row * fours);
    if (row >= p.height || x + 3 < p.x) return;
    const u8 *planes = b.work + p.planes;
    u32 components[3], out[3];
    const Component &c = p.component[0];
    if (c.side >= 4 && c.across == 1 && c.down == 1) {
        const u8 *from = planes + c.plane + (u64)(p.y + row - c.top * c.side) * c.pitch;
        components[0] = *(const u32 *)(from + x - c.left * c.side);
    } else {
        components[0] = enlarged(planes, c, x, p.y + row);
    }
#pragma unroll
    for (u32 i = 1; i < 3; i++)
        components[i] = p.colour == GREY ? components[0]
                                         : enlarged(planes, p.component[i], x, p.y + row);
    pixels(components, p.colour, out);
    u32 *to = (u32 *)(b.work + p.rgb + (u64)row * p.pitch + 3 * (x - p.left));
#pragma unroll
    for (u32 i = 0; i < 3; i++) to[i] = out[i];
}

// Makes rows of a batch, or of a part of one, from the crops that workers write: resize,
// orientation, colour, normalise, cast, layout. A block makes a tile of a row.
//
// Contrast needs the mean of a whole row. Batches with contrast are launched twice. The first
// launch does the steps before it and sums the grey of each row. The second makes the rows.
//
// The CPU stage defines each step (src/device/tests/reference.rs and src/pixels). README.md beside
// this file has rounding rules and tolerances. This file includes no header, so NVRTC needs only
// this file.
//
// The pixels and the tables were written by processes that run a decoder on untrusted bytes. The
// consumer wrote and checked the descriptors. The kernel bounds every offset that it reads from a
// table.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Orientation of a row, and whether it holds a sample. As in src/decode_plan/crop_row.rs.
#define FLIP_X 1u
#define FLIP_Y 2u
#define TRANSPOSE 4u
#define MASKED 8u
// Another launch makes the row.
#define ELSEWHERE 16u

#define MAX_STEPS 8

enum StepKind {
    BRIGHTNESS = 1,
    SATURATION = 2,
    HUE = 3,
    GRAYSCALE = 4,
    LAB_D65 = 5,
    LAB_D50 = 6,
    HSV = 7,
    YCBCR = 8,
    CONTRAST = 9,
};

struct Step {
    u32 kind;
    float amount;
};

// One row of the batch.
struct Row {
    u64 pixels;        // tight rows of RGB, from the beginning of `pixels`
    u64 tables;        // from the beginning of `tables`
    u64 grey;          // sum for the mean of contrast, in 1 / GREY_ONE; 0 at first
    u32 width;         // of the crop
    u32 height;
    u32 across_taps;   // table: out_width starts (u32), then taps x out_width weights (f32)
    u32 down_taps;     // the same for out_height, directly after it
    u32 out_width;     // in stored orientation
    u32 out_height;
    u32 flags;
    u32 steps;
    struct Step step[MAX_STEPS];  // at most one CONTRAST
};

// Grey is summed in integer parts of a level, so the sum is the same in every order.
#define GREY_ONE 65536.0f

enum Dtype { DTYPE_U8 = 0, DTYPE_F16 = 1, DTYPE_F32 = 2, DTYPE_BF16 = 3 };

// Converts values to elements. The same for every row of a run.
struct Emission {
    float unit;
    float mean[3];
    float std[3];
    u32 order;         // of the output's channels: 0 RGB, 1 BGR, 2 only the first
    u32 dtype;
    u32 nhwc;          // or NCHW
    u32 height;        // of an upright output row
    u32 width;
};

struct Rgb {
    float v[3];
};

__device__ __forceinline__ float held(float v, float low, float high) {
    return fminf(fmaxf(v, low), high);
}

// ---- resize ---------------------------------------------------------------

#define THREADS_ACROSS 32u
#define THREADS_DOWN 8u

// The output of a block, and its memory.
struct Tile {
    u32 width;   // output pixels
    u32 height;
    u32 kept;    // bytes of shared memory; larger parts are read in place
};

// The weights of one axis.
struct Table {
    const u32 *starts;
    const float *weights;  // tap by tap, each for all output pixels
    u32 outputs;
    u32 taps;

    __device__ __forceinline__ Table(const u8 *at, u32 outputs, u32 taps)
        : starts((const u32 *)at), weights((const float *)at + outputs), outputs(outputs),
          taps(taps) {}
};

// A part of the source, and where to read it.
struct Part {
    u32 left, top, width, height;

    // The source parts of output pixels `first` to `last` of both axes.
    __device__ __forceinline__ void cover(const Table &across, u32 first_x, u32 last_x,
                                          const Table &down, u32 first_y, u32 last_y,
                                          const Row &row) {
        left = min(across.starts[first_x], row.width - 1);
        top = min(down.starts[first_y], row.height - 1);
        const u32 right = min(across.starts[last_x] + across.taps, row.width);
        const u32 bottom = min(down.starts[last_y] + down.taps, row.height);
        width = max(right, left + 1) - left;
        height = max(bottom, top + 1) - top;
    }
};

// Vectors of 16 bytes that contain a line of this number of pixels, wherever it begins.
__device__ __forceinline__ u32 vectors(u32 width) {
    return (3 * width + 15 + 15) / 16;
}

// Reads each byte of a part once, in whole vectors. If the source is host memory, this goes over
// the bus. A row has at least 16 bytes before its pixels, and ends at a multiple of 16.
__device__ __forceinline__ void keep(uint4 *kept, const u8 *pixels, const Row &row,
                                     const Part &part) {
    const u32 thread = threadIdx.y * THREADS_ACROSS + threadIdx.x;
    const u32 a_line = vectors(part.width);
    for (u32 i = thread; i < a_line * part.height; i += THREADS_ACROSS * THREADS_DOWN) {
        const u32 line = i / a_line, vector = i - line * a_line;
        const u8 *from = pixels + ((size_t)(part.top + line) * row.width + part.left) * 3;
        const uint4 *first = (const uint4 *)((u64)from & ~15ull);
        // The last vector of a line may hold none of its bytes.
        if (first + vector < (const uint4 *)(from + 3 * part.width))
            kept[i] = __ldg(first + vector);
    }
}

// One output pixel from bytes at `line(y)`. `y` and `x` are counted within a part.
template <typename Lines>
__device__ __forceinline__ Rgb weighted_sum(const Lines &line, const Part &part,
                                            const Table &across, u32 sx, const Table &down,
                                            u32 sy) {
    const u32 left = across.starts[sx] - part.left;
    const u32 top = down.starts[sy] - part.top;
    Rgb out = {{0.0f, 0.0f, 0.0f}};
    for (u32 j = 0; j < down.taps; j++) {
        const float wy = down.weights[j * down.outputs + sy];
        // After the last tap of an output pixel weights are 0.
        if (wy == 0.0f) continue;
        const u8 *from = line(min(top + j, part.height - 1));
        float r = 0.0f, g = 0.0f, b = 0.0f;
        for (u32 i = 0; i < across.taps; i++) {
            const float wx = across.weights[i * across.outputs + sx];
            const u32 x = 3 * min(left + i, part.width - 1);
            r = fmaf((float)from[x], wx, r);
            g = fmaf((float)from[x + 1], wx, g);
            b = fmaf((float)from[x + 2], wx, b);
        }
        out.v[0] = fmaf(r, wy, out.v[0]);
        out.v[1] = fmaf(g, wy, out.v[1]);
        out.v[2] = fmaf(b, wy, out.v[2]);
    }
    for (int c = 0; c < 3; c++) out.v[c] = held(out.v[c], 0.0f, 255.0f);
    return out;
}

// ---- colour ---------------------------------------------------------------

__device__ __forceinline__ float weighted(const Rgb &p) {
    return fmaf(0.114f, p.v[2], fmaf(0.587f, p.v[1], 0.2989f * p.v[0]));
}

// The fractional part, with the sign.
__device__ __forceinline__ float part(float v) {
    return v - truncf(v);
}

__device__ __noinline__ Rgb turned_hue(Rgb p, float by) {
    const float r = p.v[0] * (1.0f / 255.0f), g = p.v[1] * (1.0f / 255.0f),
                b = p.v[2] * (1.0f / 255.0f);
    const float most = fmaxf(fmaxf(r, g), b);
    const float range = most - fminf(fminf(r, g), b);
    float h = 0.0f, s = 0.0f;
    if (range != 0.0f) {
        const float rc = (most - r) / range, gc = (most - g) / range, bc = (most - b) / range;
        const float sixths = most == r ? bc - gc : most == g ? rc + 2.0f - bc : gc + 4.0f - rc;
        h = part(sixths * (1.0f / 6.0f) + 1.0f);
        s = range / most;
    }
    h = part(h + by);
    if (h < 0.0f) h += 1.0f;
    const float sixths = h * 6.0f;
    const int i = (int)sixths;
    const float f = sixths - (float)i;
    const float rest = 1.0f - s;
    const float q = held((1.0f - s * f) * most, 0.0f, 1.0f);
    const float t = held((s * f + rest) * most, 0.0f, 1.0f);
    const float l = held(rest * most, 0.0f, 1.0f);
    Rgb out;
    switch (i) {
        case 1: out = {{q, most, l}}; break;
        case 2: out = {{l, most, t}}; break;
        case 3: out = {{l, q, most}}; break;
        case 4: out = {{t, l, most}}; break;
        case 5: out = {{most, l, q}}; break;
        default: out = {{most, t, l}}; break;
    }
    for (int c = 0; c < 3; c++) out.v[c] = held(out.v[c] * 255.0f, 0.0f, 255.0f);
    return out;
}

// IEC 61966-2-1.
__device__ __forceinline__ float light(float level) {
    const float c = level * (1.0f / 255.0f);
    return c <= 0.04045f ? c / 12.92f : powf((c + 0.055f) / 1.055f, 2.4f);
}

__device__ __forceinline__ float root(float t) {
    return t > 216.0f / 24389.0f ? cbrtf(t) : (841.0f / 108.0f) * t + 4.0f / 29.0f;
}

// Contributions of red and blue to X, Y and Z, relative to a white of 1. src/pixels/convert.rs
// derives them.
__constant__ float LAB_PARTS[2][3][2] = {
    {{0.433949947f, 0.189840287f}, {0.212672904f, 0.0721750036f}, {0.0177565832f, 0.872775435f}},
    {{0.452256411f, 0.148389801f}, {0.222504511f, 0.060616944f}, {0.0168831963f, 0.865444303f}},
};

__device__ __noinline__ Rgb lab(Rgb p, u32 white) {
    const float r = light(p.v[0]), g = light(p.v[1]), b = light(p.v[2]);
    const float red = r - g, blue = b - g;
    float f[3];
    for (int i = 0; i < 3; i++) {
        const float *of = LAB_PARTS[white][i];
        f[i] = root(g + (of[0] * red + of[1] * blue));
    }
    return {{116.0f * f[1] - 16.0f, 500.0f * (f[0] - f[1]), 200.0f * (f[1] - f[2])}};
}

__device__ __noinline__ Rgb hsv(Rgb p) {
    const float r = p.v[0], g = p.v[1], b = p.v[2];
    const float most = fmaxf(fmaxf(r, g), b);
    const float range = most - fminf(fminf(r, g), b);
    if (range == 0.0f) return {{0.0f, 0.0f, most / 255.0f}};
    float hue;
    if (most == r)
        hue = 60.0f * (g - b) / range;
    else if (most == g)
        hue = 60.0f * (b - r) / range + 120.0f;
    else
        hue = 60.0f * (r - g) / range + 240.0f;
    if (hue < 0.0f) hue += 360.0f;
    // A hue just below 0 rounds up to 360.
    if (hue >= 360.0f) hue = 0.0f;
    return {{hue, range / most, most / 255.0f}};
}

__device__ __forceinline__ Rgb ycbcr(const Rgb &p) {
    const float r = p.v[0], g = p.v[1], b = p.v[2];
    const float y = g + (0.299f * (r - g) + 0.114f * (b - g));
    return {{y, (b - y) / 1.772f + 128.0f, (r - y) / 1.402f + 128.0f}};
}

// Number of steps before contrast. All steps in rows without contrast.
__device__ __forceinline__ u32 before_contrast(const Row &row) {
    u32 n = 0;
    while (n < row.steps && row.step[n].kind != CONTRAST) n++;
    return n;
}

// The mean grey of a row, from its sum.
__device__ __forceinline__ float mean_grey(const Row &row) {
    const u64 pixels = (u64)row.out_width * row.out_height;
    return __fdiv_rn(__ull2float_rn(row.grey), GREY_ONE * __ull2float_rn(pixels));
}

// Applies the first `steps` of a row. Not inlined, so that rows without steps need fewer registers.
__device__ __noinline__ Rgb coloured(Rgb p, const Row &row, u32 steps, float mean) {
    for (u32 n = 0; n < steps; n++) {
        const float amount = row.step[n].amount;
        switch (row.step[n].kind) {
            case BRIGHTNESS:
                for (int c = 0; c < 3; c++) p.v[c] = held(p.v[c] * amount, 0.0f, 255.0f);
                break;
            case CONTRAST:
            case SATURATION: {
                const float grey = row.step[n].kind == CONTRAST ? mean : weighted(p);
                const float rest = 1.0f - amount;
                for (int c = 0; c < 3; c++)
                    p.v[c] = held(fmaf(grey, rest, p.v[c] * amount), 0.0f, 255.0f);
                break;
            }
            case HUE: p = turned_hue(p, amount); break;
            case GRAYSCALE: {
                const float grey = weighted(p);
                p = {{grey, grey, grey}};
                break;
            }
            case LAB_D65: p = lab(p, 0); break;
            case LAB_D50: p = lab(p, 1); break;
            case HSV: p = hsv(p); break;
            case YCBCR: p = ycbcr(p); break;
        }
    }
    return p;
}

// ---- elements -------------------------------------------------------------

// Rounds to nearest, halves to even.
__device__ __forceinline__ u16 f16(float v) {
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}

// The same in integers: Volta has no such instruction. A NaN stays a NaN.
__device__ __forceinline__ u16 bf16(float v) {
    const u32 bits = __float_as_uint(v);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)((bits >> 16) | 0x40u);
    return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Writes the elements of one pixel. All rows have the same type, so threads do not diverge.
__device__ __forceinline__ void emit(Rgb p, bool masked, const Emission &e, u32 x, u32 y,
                                     u8 *out) {
    const u32 channels = e.order == 2 ? 1 : 3;
    const size_t plane = (size_t)e.width * e.height, pixel = (size_t)y * e.width + x;
    const size_t row = blockIdx.z * plane * channels;
    for (u32 c = 0; c < channels; c++) {
        const size_t at = row + (e.nhwc ? pixel * channels + c : c * plane + pixel);
        float v = p.v[e.order == 1 ? 2 - c : c];
        if (e.dtype == DTYPE_U8) {
            out[at] = (u8)__float2int_rn(held(v, 0.0f, 255.0f));
            continue;
        }
        // Each step is rounded, as on the CPU. In masked rows every bit is 0.
        if (!masked) v = __fdiv_rn(__fsub_rn(__fdiv_rn(v, e.unit), e.mean[c]), e.std[c]);
        switch (e.dtype) {
            case DTYPE_F16: ((u16 *)out)[at] = f16(v); break;
            case DTYPE_BF16: ((u16 *)out)[at] = bf16(v); break;
            default: ((float *)out)[at] = v; break;
        }
    }
}

// ---- sums -----------------------------------------------------------------

#define WARP 32u
#define ALL_LANES 0xffffffffu

// Adds the values of all threads of the block.
__device__ __forceinline__ void add(u64 *to, u64 mine) {
    __shared__ u64 block;
    const u32 thread = threadIdx.y * THREADS_ACROSS + threadIdx.x;
    if (thread == 0) block = 0;
    __syncthreads();
    for (u32 lanes = WARP / 2; lanes > 0; lanes /= 2)
        mine += __shfl_down_sync(ALL_LANES, mine, lanes);
    if (thread % WARP == 0) atomicAdd(&block, mine);
    __syncthreads();
    if (thread == 0) atomicAdd(to, block);
}

// `sums`: the launch before the one that makes the rows. It does not write `out` and skips rows
// without contrast.
//
// Three blocks per multiprocessor: with more, some devices have too few registers.
extern "C" __global__ void __launch_bounds__(THREADS_ACROSS * THREADS_DOWN, 3)
    crops(const u8 *tables, const u8 *source, Row *rows, Emission e, Tile tile, u8 *out,
          u32 sums) {
    extern __shared__ uint4 kept[];
    const u32 first_x = blockIdx.x * tile.width, first_y = blockIdx.y * tile.height;
    const u32 end_x = min(first_x + tile.width, e.width);
    const u32 end_y = min(first_y + tile.height, e.height);
    const Row &row = rows[blockIdx.z];
    if (row.flags & ELSEWHERE) return;
    const u32 plain = before_contrast(row);
    if (sums && (plain == row.steps || row.flags & MASKED)) return;
    if (row.flags & MASKED) {
        for (u32 y = first_y + threadIdx.y; y < end_y; y += THREADS_DOWN)
            for (u32 x = first_x + threadIdx.x; x < end_x; x += THREADS_ACROSS)
                emit({{0.0f, 0.0f, 0.0f}}, true, e, x, y, out);
        return;
    }
    const u8 *at = tables + row.tables;
    const Table across(at, row.out_width, row.across_taps);
    const Table down(at + 4 * (size_t)row.out_width * (1 + row.across_taps), row.out_height,
                     row.down_taps);
    const u8 *pixels = source + row.pixels;
    const bool transpose = row.flags & TRANSPOSE;

    // The tile in stored orientation.
    u32 low_x = transpose ? first_y : first_x, high_x = (transpose ? end_y : end_x) - 1;
    u32 low_y = transpose ? first_x : first_y, high_y = (transpose ? end_x : end_y) - 1;
    if (row.flags & FLIP_X) {
        const u32 low = row.out_width - 1 - high_x;
        high_x = row.out_width - 1 - low_x;
        low_x = low;
    }
    if (row.flags & FLIP_Y) {
        const u32 low = row.out_height - 1 - high_y;
        high_y = row.out_height - 1 - low_y;
        low_y = low;
    }
    Part part;
    part.cover(across, low_x, high_x, down, low_y, high_y, row);
    const u32 a_line = vectors(part.width);
    const bool keeps = (u64)a_line * part.height * 16 <= tile.kept;
    if (keeps) {
        keep(kept, pixels, row, part);
        __syncthreads();
    }
    // Address of line `y` of the part.
    const auto line = [&](u32 y) {
        const u8 *there = pixels + ((size_t)(part.top + y) * row.width + part.left) * 3;
        return keeps ? (const u8 *)(kept + y * a_line) + ((u64)there & 15) : there;
    };
    const u32 steps = sums ? plain : row.steps;
    const float mean = plain < steps ? mean_grey(row) : 0.0f;
    u64 grey = 0;
    for (u32 y = first_y + threadIdx.y; y < end_y; y += THREADS_DOWN) {
        for (u32 x = first_x + threadIdx.x; x < end_x; x += THREADS_ACROSS) {
            u32 sx = transpose ? y : x, sy = transpose ? x : y;
            if (row.flags & FLIP_X) sx = row.out_width - 1 - sx;
            if (row.flags & FLIP_Y) sy = row.out_height - 1 - sy;
            Rgb p = weighted_sum(line, part, across, sx, down, sy);
            if (steps) p = coloured(p, row, steps, mean);
            if (sums)
                grey += __float2uint_rn(GREY_ONE * weighted(p));
            else
                emit(p, false, e, x, y, out);
        }
    }
    if (sums) add(&rows[blockIdx.z].grey, grey);
}

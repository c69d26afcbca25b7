// compile: --fmad=false
// Makes all crops of a batch whose samples have several: resize, colour, blur, orientation, and
// elements. One launch. A block makes one crop after another, from the decoded pixels of its image.
//
// All arithmetic is that of the CPU stage (src/pixels), on bytes, so the bytes of a batch are those
// of the CPU. Fused sums are switched off above. README.md beside this file has a table of tests.
//
// This file is C as well as CUDA: the tests' stand-in for the driver compiles it and runs it with
// one thread for each block (tests/standin_cuda/cuda.c). So every loop over pixels goes from
// `threadIdx.x` in steps of `blockDim.x`, and whatever other threads read stands before a
// `__syncthreads()`. It includes no header.
//
// Pixels and tables were written by processes that run a decoder on untrusted bytes. The consumer
// wrote and checked the descriptors. Places that come from a table are held to the window.

#ifndef KERNEL
#define KERNEL extern "C" __global__
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define DEVICE static __device__ __forceinline__

// Threads of a block, and blocks that a multiprocessor has room for.
#define SET_THREADS 512
#define SET_BLOCKS_EACH 2

// As in src/decode_plan/hull_row.rs and src/device/crop_set_launch.rs.
#define SET_FLIP_X 1u
#define SET_FLIP_Y 2u
#define SET_TRANSPOSE 4u
#define SET_DOWN_FIRST 8u
#define SET_MASKED 16u

#define SET_STEPS 16
// Weights of a Gaussian blur at the beginning of a crop's tables: 32 across, 32 down.
#define SET_WEIGHTS 32u

// Three numbers each.
enum LevelKind {
    LEVEL_BRIGHTNESS = 1,         // torchvision's, of bytes: factor
    LEVEL_CONTRAST = 2,           // factor, 1 - factor
    LEVEL_SATURATION = 3,         // factor, 1 - factor
    LEVEL_HUE = 4,                // part of the circle
    LEVEL_GRAYSCALE = 5,
    LEVEL_LUMA = 6,               // Pillow's from here on
    LEVEL_PILLOW_BRIGHTNESS = 7,  // factor
    LEVEL_PILLOW_CONTRAST = 8,    // factor
    LEVEL_PILLOW_COLOR = 9,       // factor
    LEVEL_PILLOW_HUE = 10,        // 256ths of the circle
    LEVEL_SOLARIZE = 11,          // lowest level that is inverted, 0 to 256
    LEVEL_POSTERIZE = 12,         // bits that stay, as a mask
    LEVEL_BOX_BLUR = 13,          // whole pixels at each side, weight inside, weight of the edges
    LEVEL_BOX_BLUR_DOWN = 14,     // the same, columns first
    LEVEL_GAUSSIAN_BLUR = 15,     // pixels at each side: across, down
    LEVEL_PERMUTE = 16,           // the former channel of each channel
};

typedef struct {
    u32 kind;
    u32 a, b, c;
} LevelStep;

// One crop of one row.
typedef struct {
    u64 pixels;  // of its window, from the beginning of the source
    u64 tables;  // 64 weights; then of each axis: starts (u32), taps x outputs coefficients (s32)
    u64 out;     // from the beginning of the batch
    u32 line;    // bytes from a line of the window to the next
    u32 width;   // of the window
    u32 height;
    u32 out_width;  // in stored orientation
    u32 out_height;
    u32 across_taps;
    u32 down_taps;
    u32 across_precision;
    u32 down_precision;
    u32 flags;
    u32 form;  // index of its output form
    u32 steps;
    LevelStep step[SET_STEPS];
} SetCrop;

// How levels become the elements of a crop. The same for all rows.
typedef struct {
    u32 height;  // upright
    u32 width;
    u32 channels;
    u32 reversed;  // blue first
    u32 nhwc;      // or NCHW
    u32 bytes;     // of an element
    u32 element[3][256];
} SetForm;

// ---- arithmetic -----------------------------------------------------------

DEVICE float level_float(u32 bits) {
    return __uint_as_float(bits);
}

// Truncated, and held to the range. As Rust's `as u8`.
DEVICE u32 level_of(float v) {
    if (!(v > 0.0f)) return 0;
    return v >= 255.0f ? 255u : (u32)(int)v;
}

DEVICE float level_held(float v, float low, float high) {
    return v < low ? low : v > high ? high : v;
}

// `sum + v * factor`, rounded once.
DEVICE float level_fused(float sum, float v, float factor) {
    return (float)((double)sum + (double)v * (double)factor);
}

// torchvision's grey.
DEVICE float level_grey(u32 r, u32 g, u32 b) {
    return level_fused(level_fused((float)r * 0.2989f, (float)g, 0.587f), (float)b, 0.114f);
}

// Pillow's `L`.
DEVICE u32 level_luma(u32 r, u32 g, u32 b) {
    return (19595u * r + 38470u * g + 7471u * b + 0x8000u) >> 16;
}

// Pillow's `Image.blend`.
DEVICE u32 level_blend(u32 from, u32 to, float factor) {
    return level_of((float)from + factor * (float)((int)to - (int)from));
}

// The fractional part, with the sign.
DEVICE float level_part(float v) {
    return v - (float)(int)v;
}

// torchvision's hue.
DEVICE void level_turn_hue(u8 *p, float by) {
    const float r = (float)p[0] * (1.0f / 255.0f), g = (float)p[1] * (1.0f / 255.0f),
                b = (float)p[2] * (1.0f / 255.0f);
    const float rg = r > g ? r : g, gr = r < g ? r : g;
    const float most = rg > b ? rg : b, least = gr < b ? gr : b;
    const float range = most - least;
    float h = 0.0f, s = 0.0f;
    if (range != 0.0f) {
        const float rc = (most - r) / range, gc = (most - g) / range, bc = (most - b) / range;
        const float sixths = most == r ? bc - gc : most == g ? rc + 2.0f - bc : gc + 4.0f - rc;
        h = level_part(sixths * (1.0f / 6.0f) + 1.0f);
        s = range / most;
    }
    h = level_part(h + by);
    if (h < 0.0f) h = h + 1.0f;
    const float sixths = h * 6.0f;
    const int i = (int)sixths;
    const float f = sixths - (float)i;
    const float sf = s * f;
    const float rest = 1.0f - s;
    const u32 q = level_of(level_held((1.0f - sf) * most, 0.0f, 1.0f) * 255.999f);
    const u32 t = level_of(level_held((sf + rest) * most, 0.0f, 1.0f) * 255.999f);
    const u32 l = level_of(level_held(rest * most, 0.0f, 1.0f) * 255.999f);
    const u32 v = level_of(most * 255.999f);
    u32 red, green, blue;
    switch (i) {
        case 1: red = q, green = v, blue = l; break;
        case 2: red = l, green = v, blue = t; break;
        case 3: red = l, green = q, blue = v; break;
        case 4: red = t, green = l, blue = v; break;
        case 5: red = v, green = l, blue = q; break;
        default: red = v, green = t, blue = l; break;
    }
    p[0] = (u8)red, p[1] = (u8)green, p[2] = (u8)blue;
}

// `round` of a number from 0 up, halves away from zero, and held to the range.
DEVICE u32 level_rounded(double v) {
    if (!(v > 0.0)) return 0;
    if (v >= 255.0) return 255;
    const u32 whole = (u32)(int)v;
    return v - (double)whole >= 0.5 ? whole + 1 : whole;
}

// Pillow's hue: to `HSV` in bytes, and back.
DEVICE void level_shift_hue(u8 *p, u32 by) {
    const u32 r = p[0], g = p[1], b = p[2];
    const u32 rg = r > g ? r : g, gr = r < g ? r : g;
    const u32 most = rg > b ? rg : b, least = gr < b ? gr : b;
    u32 h = 0, s = 0;
    if (most != least) {
        const float range = (float)(most - least);
        const float rc = (float)(most - r) / range, gc = (float)(most - g) / range,
                    bc = (float)(most - b) / range;
        float sixths;
        if (r == most)
            sixths = bc - gc;
        else if (g == most)
            sixths = (float)(2.0 + (double)rc - (double)bc);
        else
            sixths = (float)(4.0 + (double)gc - (double)rc);
        const double circle = (double)sixths / 6.0 + 1.0;
        const float hue = (float)(circle - (double)(int)circle);
        const float saturation = range / (float)most;
        h = (u32)(int)((double)hue * 255.0);
        s = (u32)(int)((double)saturation * 255.0);
    }
    h = (h + by) & 255u;
    if (s == 0) {
        p[0] = p[1] = p[2] = (u8)most;
        return;
    }
    const double sixths = (double)h * 6.0 / 255.0;
    const int which = (int)sixths;
    const float f = (float)(sixths - (double)which);
    const float part = (float)s / 255.0f;
    const double value = (double)most;
    const u32 l = level_rounded(value * (1.0 - (double)part));
    const u32 q = level_rounded(value * (1.0 - (double)(part * f)));
    const u32 t = level_rounded(value * (1.0 - (double)part * (1.0 - (double)f)));
    u32 red, green, blue;
    switch (which) {
        case 1: red = q, green = most, blue = l; break;
        case 2: red = l, green = most, blue = t; break;
        case 3: red = l, green = q, blue = most; break;
        case 4: red = t, green = l, blue = most; break;
        case 5: red = most, green = l, blue = q; break;
        default: red = most, green = t, blue = l; break;
    }
    p[0] = (u8)red, p[1] = (u8)green, p[2] = (u8)blue;
}

// ---- resize ---------------------------------------------------------------

// The coefficients of one axis.
typedef struct {
    const u32 *starts;
    const u32 *coefficients;  // tap by tap, each for all output pixels
    u32 outputs;
    u32 taps;
    u32 precision;
    u32 inputs;
} SetAxis;

DEVICE u32 set_clip(u32 sum, u32 precision) {
    const int v = (int)sum >> precision;
    return v < 0 ? 0u : v > 255 ? 255u : (u32)v;
}

// Each of `lines` lines becomes one of `axis.outputs` pixels, without gaps.
DEVICE void set_across(SetAxis axis, const u8 *from, u32 from_line, u32 lines, u8 *to) {
    const u32 count = lines * axis.outputs;
    const u32 half = (1u << axis.precision) >> 1;
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        const u32 line = i / axis.outputs, o = i - line * axis.outputs;
        const u8 *row = from + (u64)line * from_line;
        const u32 start = axis.starts[o];
        u32 r = half, g = half, b = half;
        for (u32 tap = 0; tap < axis.taps; tap++) {
            const u32 k = axis.coefficients[tap * axis.outputs + o];
            if (k == 0) continue;
            const u32 at = start + tap;
            const u8 *p = row + 3u * (at < axis.inputs ? at : axis.inputs - 1u);
            r += k * p[0], g += k * p[1], b += k * p[2];
        }
        u8 *p = to + 3u * (u64)i;
        p[0] = (u8)set_clip(r, axis.precision);
        p[1] = (u8)set_clip(g, axis.precision);
        p[2] = (u8)set_clip(b, axis.precision);
    }
}

// Lines of `bytes` bytes become `axis.outputs` lines without gaps.
DEVICE void set_down(SetAxis axis, const u8 *from, u32 from_line, u32 bytes, u8 *to) {
    const u32 count = axis.outputs * bytes;
    const u32 half = (1u << axis.precision) >> 1;
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        const u32 o = i / bytes, x = i - o * bytes;
        const u32 start = axis.starts[o];
        u32 sum = half;
        for (u32 tap = 0; tap < axis.taps; tap++) {
            const u32 k = axis.coefficients[tap * axis.outputs + o];
            if (k == 0) continue;
            const u32 at = start + tap;
            const u32 line = at < axis.inputs ? at : axis.inputs - 1u;
            sum += k * from[(u64)line * from_line + x];
        }
        to[i] = (u8)set_clip(sum, axis.precision);
    }
}

// The window, resized, in `made`. `between`: scratch memory.
DEVICE void set_resize(const SetCrop *crop, const u8 *source, u8 *between, u8 *made) {
    const u8 *tables = source + crop->tables + 2u * 4u * SET_WEIGHTS;
    SetAxis across, down;
    across.starts = (const u32 *)tables;
    across.coefficients = (const u32 *)(tables + 4u * (u64)crop->out_width);
    across.outputs = crop->out_width;
    across.taps = crop->across_taps;
    across.precision = crop->across_precision;
    across.inputs = crop->width;
    tables += 4u * (u64)crop->out_width * (1u + crop->across_taps);
    down.starts = (const u32 *)tables;
    down.coefficients = (const u32 *)(tables + 4u * (u64)crop->out_height);
    down.outputs = crop->out_height;
    down.taps = crop->down_taps;
    down.precision = crop->down_precision;
    down.inputs = crop->height;
    const u8 *window = source + crop->pixels;
    if (crop->flags & SET_DOWN_FIRST) {
        set_down(down, window, crop->line, 3u * crop->width, between);
        __syncthreads();
        set_across(across, between, 3u * crop->width, crop->out_height, made);
    } else {
        set_across(across, window, crop->line, crop->height, between);
        __syncthreads();
        set_down(down, between, 3u * crop->out_width, 3u * crop->out_width, made);
    }
    __syncthreads();
}

// ---- colour ---------------------------------------------------------------

// The sum of all threads' numbers. `total` is shared.
DEVICE u64 set_total(u64 *total, u64 mine) {
    if (threadIdx.x == 0) *total = 0;
    __syncthreads();
    if (mine) atomicAdd(total, mine);
    __syncthreads();
    const u64 sum = *total;
    __syncthreads();
    return sum;
}

// A step on single pixels, or contrast.
DEVICE void set_color(LevelStep step, u8 *made, u32 pixels, u64 *total, u8 *table) {
    const float a = level_float(step.a), b = level_float(step.b);
    float mean = 0.0f;
    u32 pillow_mean = 0;
    if (step.kind == LEVEL_CONTRAST || step.kind == LEVEL_PILLOW_CONTRAST) {
        u64 mine = 0;
        for (u32 i = threadIdx.x; i < pixels; i += blockDim.x) {
            const u8 *p = made + 3u * (u64)i;
            mine += step.kind == LEVEL_CONTRAST ? level_of(level_grey(p[0], p[1], p[2]))
                                                : level_luma(p[0], p[1], p[2]);
        }
        const double sum = (double)set_total(total, mine);
        mean = (float)(sum / (double)pixels);
        pillow_mean = (u32)(int)(sum / (double)pixels + 0.5);
    }
    // Steps that map each level by itself.
    const u32 mapped = step.kind == LEVEL_BRIGHTNESS || step.kind == LEVEL_CONTRAST ||
                       step.kind == LEVEL_PILLOW_BRIGHTNESS ||
                       step.kind == LEVEL_PILLOW_CONTRAST || step.kind == LEVEL_SOLARIZE ||
                       step.kind == LEVEL_POSTERIZE;
    if (mapped) {
        for (u32 v = threadIdx.x; v < 256u; v += blockDim.x) {
            u32 to = v;
            switch (step.kind) {
                case LEVEL_BRIGHTNESS: to = level_of((float)v * a); break;
                case LEVEL_CONTRAST: to = level_of(level_fused((float)v * a, mean, b)); break;
                case LEVEL_PILLOW_BRIGHTNESS: to = level_blend(0, v, a); break;
                case LEVEL_PILLOW_CONTRAST: to = level_blend(pillow_mean, v, a); break;
                case LEVEL_SOLARIZE: to = v < step.a ? v : 255u - v; break;
                default: to = v & step.a; break;
            }
            table[v] = (u8)to;
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < 3u * pixels; i += blockDim.x) made[i] = table[made[i]];
        __syncthreads();
        return;
    }
    for (u32 i = threadIdx.x; i < pixels; i += blockDim.x) {
        u8 *p = made + 3u * (u64)i;
        const u32 red = p[0], green = p[1], blue = p[2];
        switch (step.kind) {
            case LEVEL_SATURATION: {
                const float grey = (float)level_of(level_grey(red, green, blue));
                p[0] = (u8)level_of(level_fused((float)red * a, grey, b));
                p[1] = (u8)level_of(level_fused((float)green * a, grey, b));
                p[2] = (u8)level_of(level_fused((float)blue * a, grey, b));
                break;
            }
            case LEVEL_HUE: level_turn_hue(p, a); break;
            case LEVEL_GRAYSCALE:
                p[0] = p[1] = p[2] = (u8)level_of(level_grey(red, green, blue));
                break;
            case LEVEL_LUMA: p[0] = p[1] = p[2] = (u8)level_luma(red, green, blue); break;
            case LEVEL_PILLOW_COLOR: {
                const u32 grey = level_luma(red, green, blue);
                p[0] = (u8)level_blend(grey, red, a);
                p[1] = (u8)level_blend(grey, green, a);
                p[2] = (u8)level_blend(grey, blue, a);
                break;
            }
            case LEVEL_PILLOW_HUE: level_shift_hue(p, step.a); break;
            case LEVEL_PERMUTE: {
                const u32 first = step.a, second = step.b, third = step.c;
                p[0] = (u8)(first == 0 ? red : first == 1 ? green : blue);
                p[1] = (u8)(second == 0 ? red : second == 1 ? green : blue);
                p[2] = (u8)(third == 0 ? red : third == 1 ? green : blue);
                break;
            }
        }
    }
    __syncthreads();
}

// ---- blur -----------------------------------------------------------------

// Pillow's box blur of `count` values that are `apart` bytes apart. Ends are repeated.
DEVICE void set_box(LevelStep box, const u8 *from, u8 *to, u32 count, u32 apart) {
    const u32 last = count - 1u, radius = box.a;
    u32 sum = (radius + 1u) * from[0];
    for (u32 x = 0; x < radius; x++) sum += from[(u64)apart * (x < last ? x : last)];
    for (u32 x = 0; x < count; x++) {
        const u32 before = from[(u64)apart * (x > radius ? x - radius - 1u : 0u)];
        const u32 end = from[(u64)apart * (x + radius < last ? x + radius : last)];
        const u32 after = from[(u64)apart * (x + radius + 1u < last ? x + radius + 1u : last)];
        sum += end - before;
        const u32 value = sum * box.b + (before + after) * box.c;
        to[(u64)apart * x] = (u8)((value + (1u << 23)) >> 24);
    }
}

// Three boxes along each line or column of bytes. The result is in `to`; `from` is lost.
DEVICE void set_boxes(LevelStep box, u8 *from, u8 *to, u32 width, u32 height, u32 columns) {
    // A thread has all values of a channel in a line, so no other thread reads what it writes.
    const u32 lines = columns ? 3u * width : 3u * height;
    for (u32 i = threadIdx.x; i < lines; i += blockDim.x) {
        const u64 first = columns ? i : (u64)(i / 3u) * 3u * width + i % 3u;
        const u32 count = columns ? height : width, apart = columns ? 3u * width : 3u;
        set_box(box, from + first, to + first, count, apart);
        set_box(box, to + first, from + first, count, apart);
        set_box(box, from + first, to + first, count, apart);
    }
    __syncthreads();
}

DEVICE void set_box_blur(LevelStep box, u8 *made, u8 *between, u32 width, u32 height) {
    const u32 down_first = box.kind == LEVEL_BOX_BLUR_DOWN;
    set_boxes(box, made, between, width, height, down_first);
    set_boxes(box, between, made, width, height, !down_first);
}

// The one of `n` pixels at `i` after mirroring: 2 1 0 1 2 ... n-2 n-1 n-2.
DEVICE u32 set_reflected(int i, u32 n) {
    if (n == 1) return 0;
    const int period = 2 * ((int)n - 1);
    int at = i % period;
    if (at < 0) at += period;
    return (u32)(at < period - at ? at : period - at);
}

// torchvision's blur. `sums`: room for a float of each value.
DEVICE void set_gaussian_blur(LevelStep step, const float *weights, u8 *made, float *sums, u32 width,
                             u32 height) {
    const u32 values = 3u * width * height, line = 3u * width;
    const float *across = weights, *down = weights + SET_WEIGHTS;
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        const u32 y = i / line, in_line = i - y * line, x = in_line / 3u, c = in_line - 3u * x;
        const u8 *row = made + (u64)y * line + c;
        float sum = (float)row[3u * x] * across[0];
        for (u32 k = 1; k <= step.a; k++) {
            const float left = (float)row[3u * set_reflected((int)x - (int)k, width)];
            const float right = (float)row[3u * set_reflected((int)(x + k), width)];
            sum = sum + (left + right) * across[k];
        }
        sums[i] = sum;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        const u32 y = i / line, in_line = i - y * line;
        float sum = sums[i] * down[0];
        for (u32 k = 1; k <= step.b; k++) {
            const float above = sums[(u64)set_reflected((int)y - (int)k, height) * line + in_line];
            const float below = sums[(u64)set_reflected((int)(y + k), height) * line + in_line];
            sum = sum + (above + below) * down[k];
        }
        // Between 2^23 and 2^24 a float has no fraction, so the addition rounds, halves to even.
        const float rounded = level_held(sum, 0.0f, 255.0f) + 8388608.0f;
        made[i] = (u8)(int)(rounded - 8388608.0f);
    }
    __syncthreads();
}

// ---- elements -------------------------------------------------------------

DEVICE void set_put(u8 *out, u64 at, u32 bytes, u32 element) {
    if (bytes == 4u)
        ((u32 *)out)[at] = element;
    else if (bytes == 2u)
        ((u16 *)out)[at] = (u16)element;
    else
        out[at] = (u8)element;
}

// Writes the upright crop from the pixels as they are stored. A masked crop is zeros.
DEVICE void set_emit(const SetCrop *crop, const SetForm *form, const u8 *made, u8 *out) {
    const u32 pixels = form->width * form->height, masked = crop->flags & SET_MASKED;
    for (u32 i = threadIdx.x; i < pixels; i += blockDim.x) {
        const u32 y = i / form->width, x = i - y * form->width;
        u32 sx = x, sy = y;
        if (crop->flags & SET_TRANSPOSE) sx = y, sy = x;
        if (crop->flags & SET_FLIP_X) sx = crop->out_width - 1u - sx;
        if (crop->flags & SET_FLIP_Y) sy = crop->out_height - 1u - sy;
        const u8 *p = made + 3u * ((u64)sy * crop->out_width + sx);
        for (u32 c = 0; c < form->channels; c++) {
            const u32 to = form->reversed ? form->channels - 1u - c : c;
            const u64 at = form->nhwc ? (u64)i * form->channels + to : (u64)to * pixels + i;
            set_put(out, at, form->bytes, masked ? 0u : form->element[c][p[c]]);
        }
    }
}

// `scratch`: for each block `between` bytes, then `made` bytes.
KERNEL void __launch_bounds__(SET_THREADS, SET_BLOCKS_EACH)
    crop_sets(const u8 *source, const SetCrop *crops, u32 count, const SetForm *forms, u8 *scratch,
              u64 between_bytes, u64 made_bytes, u8 *out) {
    __shared__ u64 total;
    __shared__ u8 table[256];
    u8 *between = scratch + (u64)blockIdx.x * (between_bytes + made_bytes);
    u8 *made = between + between_bytes;
    for (u32 n = blockIdx.x; n < count; n += gridDim.x) {
        const SetCrop *crop = crops + n;
        const SetForm *form = forms + crop->form;
        if (!(crop->flags & SET_MASKED)) {
            const u32 width = crop->out_width, height = crop->out_height;
            set_resize(crop, source, between, made);
            for (u32 s = 0; s < crop->steps; s++) {
                const LevelStep step = crop->step[s];
                if (step.kind == LEVEL_BOX_BLUR || step.kind == LEVEL_BOX_BLUR_DOWN)
                    set_box_blur(step, made, between, width, height);
                else if (step.kind == LEVEL_GAUSSIAN_BLUR)
                    set_gaussian_blur(step, (const float *)(source + crop->tables), made,
                                      (float *)between, width, height);
                else
                    set_color(step, made, width * height, &total, table);
            }
        }
        set_emit(crop, form, made, out + crop->out);
        __syncthreads();
    }
}

// compile: --fmad=false
//
// A whole image of a scene, as it is or straightened as a pinhole camera sees it, with its mask and
// its depths. One thread per pixel.
//
// - `scene/types`: cameras; `scene/lens`, `scene/plain`: lenses.
//
// Must produce the CPU's views (src/scene/jobs/views, src/pixels/remap.rs): the same formulas in
// the same order, so products and sums are not fused here. Both round places to 1/16384 pixel. So
// the differences between sine libraries disappear, except by rare chance.

#include "scene/types.cuh"

#include "scene/lens.cuh"
#include "scene/plain.cuh"

// Byte for byte as in src/device/view_launch.rs. The consumer wrote and checked all of it.
struct View {
    Camera camera;       // of the image
    double fx, fy, cx, cy;  // the pinhole camera of the view
    double depth_scale;  // a depth level in scene units
    const u8 *pixels;    // in device memory, or mapped host memory
    const u64 *mask;     // rows of whole words; null without a mask
    u64 depths;          // offset from the pixels, as float; 0 for none
    u8 *out;
    u64 at[3];           // offsets of the arrays in `out`, in the order of ViewField
    u32 width, height;   // of the view
    u32 source_width, source_height;
    u32 channels;
    u32 form;            // STRAIGHT, FLOAT
};

#define STRAIGHT 1u
#define FLOAT 2u

// ---- from the straight image to a place in the bent one -------------------

// Pixel position of a point on the plane before the camera. Source: src/camera/optics.rs,
// `project`.
__device__ __forceinline__ bool seen(const Camera &c, Point at, Point &place) {
    if (c.lens == FOV) {
        const double omega = c.k[0], r = sqrt(at.x * at.x + at.y * at.y);
        const double spread = omega == 0.0 ? 1.0 : 2.0 * tan(0.5 * omega);
        double scale;
        if (omega == 0.0 || r == 0.0)
            scale = omega == 0.0 ? 1.0 : spread / omega;
        else
            scale = atan(r * spread) / (r * omega);
        at = {at.x * scale, at.y * scale};
    } else if (c.lens != PINHOLE) {
        if (c.lens != BROWN && c.lens != RATIONAL) {
            const double across = hypot(at.x, at.y);
            const double scale = across == 0.0 ? 0.0 : atan2(across, 1.0) / across;
            at = {at.x * scale, at.y * scale};
        }
        if (c.lens == FISHEYE624) {
            const double square = at.x * at.x + at.y * at.y;
            if (square >= c.limit * c.limit) return false;
            double slope;
            const double d = plain_series(c.k, 6, square, slope);
            at = {at.x * d, at.y * d};
        }
        Bent bent;
        if (!inside(c, at, bent)) return false;
        at = {bent.x, bent.y};
    }
    place = {at.x * c.fx + c.cx, at.y * c.fy + c.cy};
    return isfinite(place.x) && isfinite(place.y);
}

// ---- pixels of a place: src/pixels/remap.rs -------------------------------

#define FRACTION 14
#define ONE (1 << FRACTION)

// In 1/16384 pixel, relative to the centre of the first pixel.
struct Place {
    i32 x, y;
    bool somewhere;
};

__device__ __forceinline__ Place place_at(const View &v, u32 col, u32 row) {
    const Point plane = {((double)col + 0.5 - v.cx) / v.fx, ((double)row + 0.5 - v.cy) / v.fy};
    Point at;
    if (!seen(v.camera, plane, at)) return {0, 0, false};
    const bool inside = at.x >= 0.0 && at.x <= (double)v.source_width && at.y >= 0.0 &&
                        at.y <= (double)v.source_height;
    if (!inside) return {0, 0, false};
    // Rounds halves away from zero.
    return {(i32)round((at.x - 0.5) * ONE), (i32)round((at.y - 0.5) * ONE), true};
}

__device__ __forceinline__ u32 held(i32 at, u32 size) { return min(max(at, 0), (i32)size - 1); }

__device__ __forceinline__ float part(i32 at) { return (float)(at & (ONE - 1)) / (float)ONE; }

// ---- masks ----------------------------------------------------------------

__device__ __forceinline__ bool holds(const View &v, i32 x, i32 y) {
    if (x < 0 || y < 0 || x >= (i32)v.source_width || y >= (i32)v.source_height) return false;
    const u64 word = v.mask[(u64)y * ((v.source_width + 63) / 64) + x / 64];
    return word >> (x % 64) & 1;
}

__device__ __forceinline__ bool all_hold(const View &v, Place at) {
    const i32 x = at.x >> FRACTION, y = at.y >> FRACTION;
    const bool right = at.x & (ONE - 1), down = at.y & (ONE - 1);
    return at.somewhere && holds(v, x, y) && (!right || holds(v, x + 1, y)) &&
           (!down || holds(v, x, y + 1)) && (!(right && down) || holds(v, x + 1, y + 1));
}

extern "C" __global__ void __launch_bounds__(256) views(const View v) {
    const u32 col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (col >= v.width || row >= v.height) return;
    const size_t here = (size_t)row * v.width + col;
    const bool straight = v.form & STRAIGHT;
    const Place at =
        straight ? place_at(v, col, row) : Place{(i32)col << FRACTION, (i32)row << FRACTION, true};

    const u32 x0 = straight ? held(at.x >> FRACTION, v.source_width) : col;
    const u32 y0 = straight ? held(at.y >> FRACTION, v.source_height) : row;
    const u32 x1 = straight ? held((at.x >> FRACTION) + 1, v.source_width) : col;
    const u32 y1 = straight ? held((at.y >> FRACTION) + 1, v.source_height) : row;
    const float right = straight ? part(at.x) : 0.0f, down = straight ? part(at.y) : 0.0f;
    const u8 *upper = v.pixels + (size_t)y0 * v.source_width * v.channels;
    const u8 *lower = v.pixels + (size_t)y1 * v.source_width * v.channels;
    u8 *levels = v.out + v.at[0] + here * v.channels;
    float *floats = (float *)(v.out + v.at[0]) + here * v.channels;
    for (u32 i = 0; i < v.channels; i++) {
        float value = 0.0f;
        if (straight && at.somewhere) {
            const float a = upper[x0 * v.channels + i], b = upper[x1 * v.channels + i];
            const float c = lower[x0 * v.channels + i], d = lower[x1 * v.channels + i];
            const float above = a + (b - a) * right, below = c + (d - c) * right;
            value = above + (below - above) * down;
        } else if (!straight) {
            value = upper[x0 * v.channels + i];
        }
        if (v.form & FLOAT)
            floats[i] = __fdiv_rn(value, 255.0f);
        else
            levels[i] = (u8)(value + 0.5f);
    }
    if (v.mask) v.out[v.at[1] + here] = straight ? all_hold(v, at) : holds(v, col, row);
    if (v.depths) {
        const float *depths = (const float *)(v.pixels + v.depths);
        float level = 0.0f;
        if (straight && at.somewhere) {
            const u32 x = held((at.x + ONE / 2) >> FRACTION, v.source_width);
            const u32 y = held((at.y + ONE / 2) >> FRACTION, v.source_height);
            level = depths[(size_t)y * v.source_width + x];
        } else if (!straight) {
            level = depths[here];
        }
        ((float *)(v.out + v.at[2]))[here] = (float)(level * v.depth_scale);
    }
}

// compile: --fmad=false
//
// The rays of a step, computed from their numbers alone. Chooses the pixel, sends a ray through its
// lens into the world, and looks up its colour. One thread per ray.
//
// - `types`: the arguments of a launch; `draw`: chooses the pixel;
// - `scene/lens`, `scene/plain`: from an image point to a ray; `bundle`: the ray, and the size of
//   its pixel in the world;
// - `pose`: where the camera is.
//
// Must produce the CPU's rays (src/scene/jobs/rays): the same pixels and colours to the bit, and
// the same formulas in doubles. So products and sums are not fused here.

#include "scene/types.cuh"

#include "rays/types.cuh"
#include "rays/draw.cuh"
#include "scene/lens.cuh"
#include "scene/plain.cuh"
#include "rays/bundle.cuh"
#include "rays/pose.cuh"

// The arrays of a batch, in the order of src/scene/jobs/rays/fields.rs.
enum Field { INDICES, ORIGINS, DIRECTIONS, COLORS, NORMS, AREAS, DEPTHS, TIMES, VALID };

template <typename T>
__device__ __forceinline__ T *array(const Launch &l, int field, u32 ray, u32 width) {
    return (T *)(l.out + l.at[field]) + (size_t)ray * width;
}

__device__ __forceinline__ void put(float *to, Vector v) {
    to[0] = (float)v.x;
    to[1] = (float)v.y;
    to[2] = (float)v.z;
}

extern "C" __global__ void __launch_bounds__(128, 3) rays(const Launch l) {
    const u32 ray = blockIdx.x * 128 + threadIdx.x;
    if (ray >= l.rays) return;
    const Pixel pixel = pixel_of(l, ray);
    const Frame &frame = l.frames[pixel.image];
    const u64 in_front = (u64)pixel.row * frame.width + pixel.col;
    const u8 *at = frame.pixels + in_front * l.channels;
    float *color = array<float>(l, COLORS, ray, l.channels);
    color[0] = __fdiv_rn((float)at[0], 255.0f);
    color[1] = __fdiv_rn((float)at[1], 255.0f);
    color[2] = __fdiv_rn((float)at[2], 255.0f);
    if (l.channels == 4) color[3] = __fdiv_rn((float)at[3], 255.0f);
    if (l.has & HAS_DEPTHS) {
        const float *depths = (const float *)(frame.pixels + frame.depths);
        const float level = frame.depths ? depths[in_front] : 0.0f;
        *array<float>(l, DEPTHS, ray, 1) = (float)(level * l.depth_scale);
    }

    i64 *indices = array<i64>(l, INDICES, ray, 3);
    indices[0] = pixel.image;
    indices[1] = pixel.row;
    indices[2] = pixel.col;
    if (l.has & HAS_TIMES) *array<float>(l, TIMES, ray, 1) = frame.time;

    const Camera &camera = l.cameras[frame.camera];
    const double x = (double)pixel.col + 0.5, y = (double)pixel.row + 0.5;
    const Bundle b = bundle(camera, x, y);
    // All of these are zero where the lens is not defined.
    *array<u8>(l, VALID, ray, 1) = b.valid;
    *array<float>(l, AREAS, ray, 1) = (float)b.area;

    Pose pose;
#pragma unroll
    for (int i = 0; i < 12; i++) pose.m[i] = frame.pose[i];
    if (frame.shutter) {
        const Shutter &shutter = l.shutters[frame.shutter - 1];
        const double moment = shutter.timing[3] == 0.0 ? 0.0 : moment_of(l, ray);
        pose_at(shutter, x / camera.width, y / camera.height, moment, pose);
    }
    double length;
    put(array<float>(l, DIRECTIONS, ray, 3), pose.direction(b.direction, length));
    *array<float>(l, NORMS, ray, 1) = (float)(b.norm * length);
    Vector origin = {0.0, 0.0, 0.0};
    if (b.valid) {
        origin = pose.centre();
        if (camera.lens == ORTHOGRAPHIC) {
            const Point beside = without_unit(camera, x, y);
            const Vector more = pose.rotated({beside.x, beside.y, 0.0});
            origin = {origin.x + more.x, origin.y + more.y, origin.z + more.z};
        }
    }
    put(array<float>(l, ORIGINS, ray, 3), origin);
}

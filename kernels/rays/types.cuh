// The arguments of a launch of `rays`, byte for byte as in src/device/ray_launch.rs. The table has
// the format of src/scene/draw/table_format.rs and is copied to shared memory.
//
// The consumer wrote and checked all of it: no number here leads outside its array.

// ---- the table of the draws ----

#define WHOLE 0u
#define DISC 1u
#define SPHERE 2u
#define MASKED 0x80000000u

struct Image {
    u64 limit;    // for a disc: the square of its diameter
    u32 width;
    u32 height;
    u32 shape;    // and MASKED
    u32 counts;   // start of its row counts
    u32 weights;  // start of its row weights
    u32 zero;
};

#define UNIFORM 0u
#define BY_IMAGE 1u
#define PATCHES 2u
#define PAIRS 3u

// ---- frames ----

struct Shutter {
    double end[12];    // the pose at the end of the exposure
    double timing[4];  // begin, by u, by v, blur
};

struct Frame {
    double pose[12];    // camera to world, 3 rows of 4
    const u8 *pixels;   // in device memory, or mapped host memory
    u64 mask;           // its first word
    u64 depths;         // offset from the pixels, as float; 0 for none
    u32 camera;
    float time;
    u32 width;
    u32 shutter;        // its number plus 1; 0 for none
};

// ---- a launch ----

struct Launch {
    const u64 *sums;
    const u64 *weights;
    const Image *images;
    const u32 *order;
    const u32 *counts;
    const u64 *masks;
    const Camera *cameras;
    const Frame *frames;
    const Shutter *shutters;
    u8 *out;
    u64 at[9];          // offsets of the arrays in `out`, in the order of RayField
    double depth_scale; // a depth level in scene units
    u64 total;          // images to draw from if they are even, else units
    u32 key[2];         // of the step
    u32 joined;         // number of images drawn from: the first of the order
    u32 even;           // all images are equally likely
    u32 alike_width;    // of every image if all are whole and equal; else 0
    u32 alike_height;
    u32 sampler;
    u32 first;          // size of a patch, radius of a pair
    u32 second;         // dilation
    u32 extent;         // distance from the first row of a patch to the last
    u32 rays;
    u32 has;            // optional arrays: Times, Depths
    u32 channels;       // bytes of a pixel, and numbers of a colour: 3, or 4 with alpha
    u32 zero;
};

#define HAS_TIMES 1u
#define HAS_DEPTHS 2u

struct Pixel {
    u32 image, row, col;
};

// Numbers, and the camera arguments of every scene kernel, byte for byte as in
// src/device/scene_launch.rs.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

enum LensKind {
    PINHOLE = 0,
    BROWN = 1,
    RATIONAL = 2,
    FISHEYE = 3,
    FISHEYE624 = 4,
    THIN_PRISM = 5,
    FOV = 6,
    EQUIRECTANGULAR = 7,
    ORTHOGRAPHIC = 8,
};

struct Camera {
    double fx, fy, cx, cy;
    double width, height;
    double limit;   // radius or angle where the lens ends; may be infinite
    double k[6];    // of FOV: omega
    double p[2];
    double s[4];
    u32 lens;
    u32 steps;        // of Newton's method on the plane
    u32 prism_steps;  // of FISHEYE624, after its polynomial
    u32 zero;
};

// Infinity as a double.
#define INFINITE __longlong_as_double(0x7ff0000000000000ll)

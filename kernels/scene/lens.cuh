// From an image point to a ray: src/camera, formula by formula, in doubles and never fused.
//
// The fast path (src/camera/lanes.rs) is Newton's method, with as many steps as the camera's points
// need. The plain path (src/camera/optics.rs) computes points that did not converge or are near the
// end of the lens. It also computes lenses whose formula needs no steps.

struct Point {
    double x, y;
};

struct Vector {
    double x, y, z;
};

__device__ __forceinline__ double length_of(Vector v) {
    return sqrt(v.x * v.x + v.y * v.y + v.z * v.z);
}

__device__ __forceinline__ Vector less(Vector a, Vector b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

// A distorted point, and its derivatives: x_y is that of x by y.
struct Bent {
    double x, y, x_x, x_y, y_x, y_y;

    __device__ __forceinline__ double growth() const { return x_x * y_y - x_y * y_x; }
};

// ---- the plane, bent ------------------------------------------------------

// 1 + k1 s + k2 s2 + ..., and its derivative.
template <int N>
__device__ __forceinline__ double series(const double *k, double s, double &slope) {
    double sum = 0.0;
    slope = 0.0;
#pragma unroll
    for (int i = N - 1; i >= 0; i--) {
        slope = slope * s + (double)(i + 1) * k[i];
        sum = sum * s + k[i];
    }
    return 1.0 + sum * s;
}

__device__ __forceinline__ Bent tangential(double x, double y, double d, double by_r2, double p1,
                                           double p2) {
    const double xx = x * x, yy = y * y, xy = x * y;
    const double r2 = xx + yy, twice = 2.0 * by_r2;
    const double p1x = 2.0 * p1 * x, p1y = 2.0 * p1 * y, p2x = 2.0 * p2 * x, p2y = 2.0 * p2 * y;
    const double across = twice * xy + p1x + p2y;
    return {x * d + p1y * x + p2 * (r2 + 2.0 * xx),
            y * d + p2x * y + p1 * (r2 + 2.0 * yy),
            d + twice * xx + p1y + 3.0 * p2x,
            across,
            across,
            d + twice * yy + p2x + 3.0 * p1y};
}

// BROWN and FISHEYE, with PRISM for THIN_PRISM. N = 6 without tangential terms is the polynomial of
// FISHEYE624.
template <int N, bool PRISM>
struct Polynomial {
    const Camera &c;

    __device__ __forceinline__ Bent bend(double x, double y) const {
        double by_r2;
        const double r2 = x * x + y * y;
        const double d = series<N>(c.k, r2, by_r2);
        Bent bent = N == 6 ? tangential(x, y, d, by_r2, 0.0, 0.0)
                           : tangential(x, y, d, by_r2, c.p[0], c.p[1]);
        if (PRISM) {
            bent.x += c.s[0] * r2;
            bent.y += c.s[1] * r2;
            bent.x_x += 2.0 * c.s[0] * x;
            bent.x_y += 2.0 * c.s[0] * y;
            bent.y_x += 2.0 * c.s[1] * x;
            bent.y_y += 2.0 * c.s[1] * y;
        }
        return bent;
    }
};

struct Quotient {
    const Camera &c;

    __device__ __forceinline__ Bent bend(double x, double y) const {
        double above_slope, below_slope;
        const double r2 = x * x + y * y;
        const double above = series<3>(c.k, r2, above_slope);
        const double below = series<3>(c.k + 3, r2, below_slope);
        const double d = above / below;
        return tangential(x, y, d, (above_slope - d * below_slope) / below, c.p[0], c.p[1]);
    }
};

// The terms that FISHEYE624 applies after its polynomial. Its first p belongs to x.
struct Prism {
    const Camera &c;

    __device__ __forceinline__ Bent bend(double x, double y) const {
        const double r2 = x * x + y * y;
        Bent bent = tangential(x, y, 1.0, 0.0, c.p[1], c.p[0]);
        bent.x += r2 * (c.s[0] + c.s[1] * r2);
        bent.y += r2 * (c.s[2] + c.s[3] * r2);
        const double x_r2 = 2.0 * (c.s[0] + 2.0 * c.s[1] * r2);
        const double y_r2 = 2.0 * (c.s[2] + 2.0 * c.s[3] * r2);
        bent.x_x += x_r2 * x;
        bent.x_y += x_r2 * y;
        bent.y_x += y_r2 * x;
        bent.y_y += y_r2 * y;
        return bent;
    }
};

// ---- the fast way back ----------------------------------------------------

// As in src/camera/lanes.rs.
#define RESIDUAL 2e-11
#define LEAST_GROWTH 0.02

// False means that the plain path may still find a solution.
template <typename Plane>
__device__ __forceinline__ bool unbend(const Plane &plane, double limit, u32 steps, Point bent,
                                       Point &point) {
    double x = bent.x, y = bent.y;
#pragma unroll 1
    for (u32 step = 0; step < steps; step++) {
        const Bent at = plane.bend(x, y);
        const double left_x = bent.x - at.x, left_y = bent.y - at.y;
        const double scale = 1.0 / (at.x_x * at.y_y - at.x_y * at.y_x);
        x += (at.y_y * left_x - at.x_y * left_y) * scale;
        y += (at.x_x * left_y - at.y_x * left_x) * scale;
    }
    const Bent at = plane.bend(x, y);
    const double left_x = bent.x - at.x, left_y = bent.y - at.y;
    point = {x, y};
    // Each comparison is false for NaN.
    return left_x * left_x + left_y * left_y <= RESIDUAL * RESIDUAL && at.growth() > LEAST_GROWTH &&
           x * x + y * y < limit * limit;
}

// sin t / t and cos t, in t2: Taylor series.
#define TERMS 15
__constant__ double SINE[TERMS] = {1.0,
                                   -0.16666666666666666,
                                   0.008333333333333333,
                                   -0.0001984126984126984,
                                   2.7557319223985893e-06,
                                   -2.505210838544172e-08,
                                   1.6059043836821616e-10,
                                   -7.647163731819817e-13,
                                   2.811457254345521e-15,
                                   -8.220635246624331e-18,
                                   1.9572941063391266e-20,
                                   -3.868170170630685e-23,
                                   6.446950284384475e-26,
                                   -9.183689863795548e-29,
                                   1.130996288644772e-31};
__constant__ double COSINE[TERMS] = {1.0,
                                     -0.5,
                                     0.041666666666666664,
                                     -0.0013888888888888887,
                                     2.4801587301587298e-05,
                                     -2.755731922398589e-07,
                                     2.0876756987868096e-09,
                                     -1.1470745597729723e-11,
                                     4.7794773323873846e-14,
                                     -1.5619206968586225e-16,
                                     4.1103176233121644e-19,
                                     -8.896791392450572e-22,
                                     1.6117375710961182e-24,
                                     -2.4795962632247972e-27,
                                     3.279889237069838e-30};

// The ray of length 1 with these angles, of at most pi.
__device__ __forceinline__ Vector ray_at(Point angles) {
    const double square = angles.x * angles.x + angles.y * angles.y;
    double sine = 0.0, cosine = 0.0;
#pragma unroll
    for (int i = TERMS - 1; i >= 0; i--) {
        sine = sine * square + SINE[i];
        cosine = cosine * square + COSINE[i];
    }
    return {angles.x * sine, angles.y * sine, cosine};
}

__device__ __forceinline__ bool fast(const Camera &c, Point bent, Vector &ray) {
    Point point;
    bool found;
    switch (c.lens) {
        case PINHOLE:
            ray = {bent.x, bent.y, 1.0};
            return isfinite(bent.x) && isfinite(bent.y);
        case BROWN:
            found = unbend(Polynomial<4, false>{c}, c.limit, c.steps, bent, point);
            ray = {point.x, point.y, 1.0};
            return found;
        case RATIONAL:
            found = unbend(Quotient{c}, c.limit, c.steps, bent, point);
            ray = {point.x, point.y, 1.0};
            return found;
        case FISHEYE:
            found = unbend(Polynomial<4, false>{c}, c.limit, c.steps, bent, point);
            break;
        case THIN_PRISM:
            found = unbend(Polynomial<4, true>{c}, c.limit, c.steps, bent, point);
            break;
        case FISHEYE624:
            found = unbend(Prism{c}, INFINITE, c.prism_steps, bent, bent);
            found &= unbend(Polynomial<6, false>{c}, c.limit, c.steps, bent, point);
            break;
        default: return false;
    }
    ray = ray_at(point);
    return found;
}

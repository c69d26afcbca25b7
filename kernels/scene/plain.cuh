// The plain path from an image point to a ray: src/camera/optics.rs and src/camera/lens, with
// bounds on each step. For points near the end of a lens, and for lenses without steps.

// As in src/camera/lens/radial.rs and plane.rs.
#define TOLERANCE 1e-12
#define FARTHEST 1e9
#define HALVINGS 128
#define STEPS 64
#define SMALLEST_PART 1e-6

#define PI 3.141592653589793

__device__ __forceinline__ u32 terms(const Camera &c) { return c.lens == FISHEYE624 ? 6 : 4; }

// 1 + k1 s + k2 s2 + ..., and its derivative by s.
__device__ double plain_series(const double *k, u32 count, double s, double &by_s) {
    double sum = 0.0, slope = 0.0;
    for (u32 i = count; i-- > 0;) {
        slope = slope * s + sum;
        sum = sum * s + k[i];
    }
    by_s = sum + s * slope;
    return 1.0 + s * sum;
}

__device__ double plain_radial(const Camera &c, double s, double &by_s) {
    if (c.lens != RATIONAL) return plain_series(c.k, terms(c), s, by_s);
    double above_slope, below_slope;
    const double above = plain_series(c.k, 3, s, above_slope);
    const double below = plain_series(c.k + 3, 3, s, below_slope);
    const double d = above / below;
    by_s = (above_slope - d * below_slope) / below;
    return d;
}

// The length that the lens maps t to.
__device__ double curve(const Camera &c, double t, double &slope) {
    double by_s;
    const double s = t * t, d = plain_radial(c, s, by_s);
    slope = d + 2.0 * s * by_s;
    return t * d;
}

// The t in [0, limit) that the lens maps to `bent`.
__device__ bool straighten(const Camera &c, double bent, double &t) {
    const double limit = c.limit;
    double slope, low = 0.0, high = fmin(limit, 2.0 * bent);
    while (high < limit && curve(c, high, slope) < bent) {
        low = high;
        high = fmin(limit, 2.0 * high);
        if (!isfinite(high) || high > FARTHEST) return false;
    }
    if (curve(c, high, slope) <= bent && high >= limit) return false;
    t = fmin(fmax(bent, low), high);
    for (int i = 0; i < HALVINGS; i++) {
        const double missing = bent - curve(c, t, slope);
        if (missing == 0.0) break;
        if (missing > 0.0)
            low = t;
        else
            high = t;
        const double step = t + missing / slope;
        const double next =
            slope > 0.0 && low < step && step < high ? step : 0.5 * (low + high);
        if (next == t) break;
        t = next;
    }
    return t < limit && fabs(curve(c, t, slope) - bent) <= TOLERANCE * fmax(bent, 1.0);
}

__device__ bool radially(const Camera &c, Point bent, Point &point) {
    const double length = sqrt(bent.x * bent.x + bent.y * bent.y);
    point = {0.0, 0.0};
    if (length == 0.0) return true;
    double t;
    if (!straighten(c, length, t)) return false;
    const double scale = t / length;
    point = {bent.x * scale, bent.y * scale};
    return true;
}

// Maps a point. False outside the lens, and where the plane folds over.
__device__ bool inside(const Camera &c, Point at, Bent &bent) {
    const double x = at.x, y = at.y, r2 = x * x + y * y;
    if (c.lens == FISHEYE624) {
        bent = Prism{c}.bend(x, y);
        return bent.growth() > 0.0;
    }
    if (!(r2 < c.limit * c.limit)) return false;
    double by_r2;
    const double d = plain_radial(c, r2, by_r2);
    bent = tangential(x, y, d, by_r2, c.p[0], c.p[1]);
    if (c.lens == THIN_PRISM) {
        bent.x += c.s[0] * r2;
        bent.y += c.s[1] * r2;
        bent.x_x += 2.0 * c.s[0] * x;
        bent.x_y += 2.0 * c.s[0] * y;
        bent.y_x += 2.0 * c.s[1] * x;
        bent.y_y += 2.0 * c.s[1] * y;
    }
    return bent.growth() > 0.0;
}

// Newton's method. A step that leads outside or away is halved until it does not.
__device__ bool plain_unbend(const Camera &c, Point start, Point wanted, Point &point) {
    Bent here;
    point = start;
    if (!inside(c, point, here)) {
        point = {0.0, 0.0};
        if (!inside(c, point, here)) return false;
    }
    const double size = fmax(sqrt(wanted.x * wanted.x + wanted.y * wanted.y), 1.0);
    double left_x = wanted.x - here.x, left_y = wanted.y - here.y;
    double error = sqrt(left_x * left_x + left_y * left_y);
    for (int i = 0; i < STEPS; i++) {
        const double growth = here.growth();
        const double step_x = (here.y_y * left_x - here.x_y * left_y) / growth;
        const double step_y = (here.x_x * left_y - here.y_x * left_x) / growth;
        const bool good = error <= TOLERANCE * size;
        double part = 1.0;
        bool closer = false, last = false;
        for (;;) {
            const Point next = {point.x + part * step_x, point.y + part * step_y};
            Bent there;
            if (inside(c, next, there)) {
                const double x = wanted.x - there.x, y = wanted.y - there.y;
                const double smaller = sqrt(x * x + y * y);
                if (smaller < error) {
                    // The remaining error is rounding.
                    last = good && smaller > 0.5 * error;
                    point = next;
                    here = there;
                    left_x = x;
                    left_y = y;
                    error = smaller;
                    closer = true;
                    break;
                }
            }
            part *= 0.5;
            if (good || part < SMALLEST_PART) break;
        }
        if (!closer || last || error == 0.0) break;
    }
    return error <= TOLERANCE * size;
}

__device__ bool undistort(const Camera &c, Point bent, Point &point) {
    const bool straight = c.p[0] == 0.0 && c.p[1] == 0.0 && c.s[0] == 0.0 && c.s[1] == 0.0 &&
                          c.s[2] == 0.0 && c.s[3] == 0.0;
    if (c.lens == FISHEYE624) {
        if (!straight && !plain_unbend(c, bent, bent, bent)) return false;
        return radially(c, bent, point);
    }
    Point start;
    const bool found = radially(c, bent, start);
    if (straight) {
        point = start;
        return found;
    }
    if (!found) start = {0.0, 0.0};
    return plain_unbend(c, start, bent, point);
}

__device__ bool undistort_fov(double omega, Point bent, Point &point) {
    const double r = sqrt(bent.x * bent.x + bent.y * bent.y);
    double scale;
    if (omega == 0.0 || r == 0.0) {
        scale = 1.0 / (omega == 0.0 ? 1.0 : 2.0 * tan(0.5 * omega) / omega);
    } else {
        const double angle = r * fabs(omega);
        if (angle >= 0.5 * PI) return false;
        scale = tan(angle) / (r * (2.0 * tan(0.5 * fabs(omega))));
    }
    point = {bent.x * scale, bent.y * scale};
    return true;
}

// The direction through a point of a spherical image, which wraps around.
__device__ __forceinline__ Vector on_sphere(Point at) {
    double sine, cosine, across, up;
    sincos(PI * at.x, &sine, &cosine);
    sincos(PI * (0.5 + at.y), &across, &up);
    return {sine * across, -up, cosine * across};
}

__device__ __noinline__ bool plain(const Camera &c, Point bent, Vector &ray) {
    Point point;
    bool found = isfinite(bent.x) && isfinite(bent.y);
    switch (c.lens) {
        case PINHOLE: point = bent; break;
        case FOV: found = found && undistort_fov(c.k[0], bent, point); break;
        case EQUIRECTANGULAR:
            found = found && fabs(bent.x) <= 1.0 && fabs(bent.y) <= 0.5;
            if (found) ray = on_sphere(bent);
            return found;
        case ORTHOGRAPHIC: ray = {0.0, 0.0, 1.0}; return found;
        default: found = found && undistort(c, bent, point); break;
    }
    if (!found) return false;
    if (c.lens == FISHEYE || c.lens == THIN_PRISM || c.lens == FISHEYE624) {
        const double theta = sqrt(point.x * point.x + point.y * point.y);
        double sine, cosine;
        sincos(theta, &sine, &cosine);
        const double scale = theta < 1e-10 ? 1.0 : sine / theta;
        ray = {point.x * scale, point.y * scale, cosine};
    } else {
        ray = {point.x, point.y, 1.0};
    }
    return isfinite(ray.x) && isfinite(ray.y) && isfinite(ray.z);
}

// A ray in camera coordinates, and the size of its pixel in the world: src/camera/unprojector.rs
// and footprint.rs.

struct Bundle {
    Vector direction;  // of length 1
    double area, norm;
    bool valid;
};

__device__ __forceinline__ Point without_unit(const Camera &c, double x, double y) {
    return {(x - c.cx) / c.fx, (y - c.cy) / c.fy};
}

__device__ __forceinline__ bool unproject(const Camera &c, double x, double y, Vector &ray) {
    const Point bent = without_unit(c, x, y);
    return fast(c, bent, ray) || plain(c, bent, ray);
}

__device__ __forceinline__ Vector unit(Vector v) {
    const double scale = 1.0 / length_of(v);
    return {v.x * scale, v.y * scale, v.z * scale};
}

__device__ __forceinline__ double directions_norm(const Camera &c, Vector v) {
    switch (c.lens) {
        case PINHOLE:
        case BROWN:
        case RATIONAL:
        case FOV: return length_of(v);
        // The smallest z that doubles distinguish from a sideways direction.
        case FISHEYE624: return v.z > 1e-15 ? length_of(v) / v.z : 1.0;
        default: return 1.0;
    }
}

// Distance from `here` to the direction through a point. If the lens ends between them, the point
// on the opposite side is used. A sphere has no end.
__device__ __noinline__ double other_side(const Camera &c, Vector here, double x, double y,
                                          double step_x, double step_y) {
    Vector next;
    if (c.lens == EQUIRECTANGULAR)
        next = on_sphere(without_unit(c, x + step_x, y + step_y));
    else if (!plain(c, without_unit(c, x - step_x, y - step_y), next))
        return 0.0;
    else
        next = unit(next);
    return length_of(less(here, next));
}

__device__ __forceinline__ Bundle bundle(const Camera &c, double x, double y) {
    Bundle b = {{0.0, 0.0, 0.0}, 0.0, 0.0, false};
    // In a loop, so that the lens's code exists once: the pixel, the one to the right, the one
    // below.
    double apart[2] = {0.0, 0.0};
    bool beside = true;
#pragma unroll 1
    for (int i = 0; i < 3; i++) {
        Vector ray;
        const bool found =
            unproject(c, i == 1 ? x + 1.0 : x, i == 2 ? y + 1.0 : y, ray);
        if (i == 0) {
            if (!found) return b;
            b.valid = true;
            b.norm = directions_norm(c, ray);
            b.direction = unit(ray);
            continue;
        }
        double far = -1.0;
        if (found) {
            const Vector d = less(b.direction, unit(ray));
            far = d.x * d.x + d.y * d.y + d.z * d.z;
        }
        beside = beside && found;
        if (i == 1)
            apart[0] = far;
        else
            apart[1] = far;
    }
    if (beside) {
        b.area = sqrt(apart[0] * apart[1]);
        return b;
    }
    const double right = apart[0] >= 0.0 ? sqrt(apart[0]) : other_side(c, b.direction, x, y, 1.0, 0.0);
    const double down = apart[1] >= 0.0 ? sqrt(apart[1]) : other_side(c, b.direction, x, y, 0.0, 1.0);
    b.area = right * down;
    return b;
}

// Where the camera is: src/scene/data/rolling_shutter.rs, and src/scene/jobs/rays/ray_tracer.rs.

// A squared length that differs from 1 by less counts as 1.
#define EXACT 1e-6

struct Pose {
    double m[12];  // 3 rows of 4

    __device__ __forceinline__ Vector rotated(Vector d) const {
        return {m[0] * d.x + m[1] * d.y + m[2] * d.z, m[4] * d.x + m[5] * d.y + m[6] * d.z,
                m[8] * d.x + m[9] * d.y + m[10] * d.z};
    }

    // A rotated direction of length 1, although a pose may scale it. Also returns the length
    // before.
    __device__ __forceinline__ Vector direction(Vector d, double &length) const {
        Vector to = rotated(d);
        const double square = to.x * to.x + to.y * to.y + to.z * to.z;
        length = 1.0;
        if (fabs(square - 1.0) > EXACT && square > 0.0) {
            length = sqrt(square);
            to = {to.x / length, to.y / length, to.z / length};
        }
        return to;
    }

    __device__ __forceinline__ Vector centre() const { return {m[3], m[7], m[11]}; }
};

struct Quaternion {
    double w, x, y, z;

    __device__ __forceinline__ double dot(const Quaternion &q) const {
        return w * q.w + x * q.x + y * q.y + z * q.z;
    }

    __device__ __forceinline__ Quaternion unit() const {
        const double length = sqrt(dot(*this));
        return {w / length, x / length, y / length, z / length};
    }
};

// Shepperd's method, by the largest of the four components.
__device__ Quaternion quaternion(const double *m) {
    const double trace = m[0] + m[5] + m[10];
    double most = trace;
    int largest = 0;
    if (m[0] > most) most = m[0], largest = 1;
    if (m[5] > most) most = m[5], largest = 2;
    if (m[10] > most) largest = 3;
    Quaternion q;
    switch (largest) {
        case 0: q = {1.0 + trace, m[9] - m[6], m[2] - m[8], m[4] - m[1]}; break;
        case 1: q = {m[9] - m[6], 1.0 + 2.0 * m[0] - trace, m[1] + m[4], m[2] + m[8]}; break;
        case 2: q = {m[2] - m[8], m[1] + m[4], 1.0 + 2.0 * m[5] - trace, m[6] + m[9]}; break;
        default: q = {m[4] - m[1], m[2] + m[8], m[6] + m[9], 1.0 + 2.0 * m[10] - trace}; break;
    }
    return q.unit();
}

// Quaternions closer than this are interpolated linearly.
#define NEAR (1.0 - 1e-12)

// Takes the shorter way.
__device__ Quaternion slerp(const Quaternion &from, Quaternion to, double t) {
    double cosine = from.dot(to);
    if (cosine < 0.0) {
        to = {-to.w, -to.x, -to.y, -to.z};
        cosine = -cosine;
    }
    double a = 1.0 - t, b = t;
    if (!(cosine > NEAR)) {
        const double angle = acos(cosine), sine = sin(angle);
        a = sin((1.0 - t) * angle) / sine;
        b = sin(t * angle) / sine;
    }
    const Quaternion q = {a * from.w + b * to.w, a * from.x + b * to.x, a * from.y + b * to.y,
                          a * from.z + b * to.z};
    return q.unit();
}

// The pose at the time when the point (u, v) of the image is exposed.
__device__ __noinline__ void pose_at(const Shutter &shutter, double u, double v, double random,
                                     Pose &pose) {
    const double *timing = shutter.timing;
    const double t = timing[0] + timing[1] * u + timing[2] * v + timing[3] * random;
    const Quaternion q = slerp(quaternion(pose.m), quaternion(shutter.end), t);
    const double w = q.w, x = q.x, y = q.y, z = q.z;
    const Vector from = pose.centre();
    const double *end = shutter.end;
    pose.m[0] = 1.0 - 2.0 * (y * y + z * z);
    pose.m[1] = 2.0 * (x * y - w * z);
    pose.m[2] = 2.0 * (x * z + w * y);
    pose.m[3] = from.x + t * (end[3] - from.x);
    pose.m[4] = 2.0 * (x * y + w * z);
    pose.m[5] = 1.0 - 2.0 * (x * x + z * z);
    pose.m[6] = 2.0 * (y * z - w * x);
    pose.m[7] = from.y + t * (end[7] - from.y);
    pose.m[8] = 2.0 * (x * z - w * y);
    pose.m[9] = 2.0 * (y * z + w * x);
    pose.m[10] = 1.0 - 2.0 * (x * x + y * y);
    pose.m[11] = from.z + t * (end[11] - from.z);
}

//! Eigenvectors of a symmetric 3 x 3 matrix, with LAPACK's signs.
//!
//! Pure. nerfstudio's `pca` orientation depends on the signs. So this follows LAPACK's `dsytd2`,
//! `dorgtr` and `dsteqr` step by step: one Householder reflection, then implicit QL or QR. LAPACK
//! 3.10 changed the signs of rotations. These are the older ones, as in the MKL of torch's x86
//! wheels.

type Columns = [[f64; 3]; 3];

/// Eigenvalues in ascending order, and their vectors as columns of a row-major matrix.
pub(super) fn symmetric(matrix: &[[f64; 3]; 3]) -> ([f64; 3], Columns) {
    let (mut d, mut e, mut z) = tridiagonal(matrix);
    diagonalise(&mut d, &mut e, &mut z);
    // Selection sort, which moves the fewest columns.
    for i in 0..2 {
        let mut least = i;
        for j in i + 1..3 {
            if d[j] < d[least] {
                least = j;
            }
        }
        if least != i {
            d.swap(i, least);
            for row in &mut z {
                row.swap(i, least);
            }
        }
    }
    (d, z)
}

/// Diagonal, subdiagonal, and the rotation that made them: `dsytd2` of the lower half.
fn tridiagonal(a: &[[f64; 3]; 3]) -> ([f64; 3], [f64; 2], Columns) {
    let (alpha, x) = (a[1][0], a[2][0]);
    let mut q = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    if x == 0.0 {
        return ([a[0][0], a[1][1], a[2][2]], [alpha, a[2][1]], q);
    }
    let beta = -alpha.hypot(x).copysign(alpha);
    let tau = (beta - alpha) / beta;
    let v = [1.0, x / (alpha - beta)];
    // The lower block, on both sides.
    let block = [[a[1][1], a[2][1]], [a[2][1], a[2][2]]];
    let w = [0, 1].map(|i| tau * (block[i][0] * v[0] + block[i][1] * v[1]));
    let shift = -0.5 * tau * (w[0] * v[0] + w[1] * v[1]);
    let w = [w[0] + shift * v[0], w[1] + shift * v[1]];
    let at = |i: usize, j: usize| block[i][j] - v[i] * w[j] - w[i] * v[j];
    for i in 0..2 {
        for j in 0..2 {
            q[i + 1][j + 1] -= tau * v[i] * v[j];
        }
    }
    ([a[0][0], at(0, 0), at(1, 1)], [beta, at(1, 0)], q)
}

/// Rotates columns j and j + 1: `dlasr` of one rotation.
fn rotate_columns(z: &mut Columns, j: usize, c: f64, s: f64) {
    for row in z {
        let next = row[j + 1];
        row[j + 1] = c * next - s * row[j];
        row[j] = s * next + c * row[j];
    }
}

/// `dsteqr`: d becomes the eigenvalues, unsorted.
fn diagonalise(d: &mut [f64; 3], e: &mut [f64; 2], z: &mut Columns) {
    const EPS: f64 = f64::EPSILON / 2.0;
    const EPS2: f64 = EPS * EPS;
    const TINY: f64 = f64::MIN_POSITIVE;
    let mut left = 90;
    let mut first = 0;
    while first < 3 {
        if first > 0 {
            e[first - 1] = 0.0;
        }
        // The block from here to the first zero of the subdiagonal.
        let mut m = 2;
        for at in first..2 {
            let size = e[at].abs();
            if size == 0.0 {
                m = at;
                break;
            }
            if size <= d[at].abs().sqrt() * d[at + 1].abs().sqrt() * EPS {
                e[at] = 0.0;
                m = at;
                break;
            }
        }
        let (mut l, mut end) = (first, m);
        first = m + 1;
        if end == l {
            continue;
        }
        if d[end].abs() < d[l].abs() {
            std::mem::swap(&mut l, &mut end);
        }
        let small = |e: &[f64; 2], d: &[f64; 3], at: usize| {
            e[at] * e[at] <= EPS2 * d[at].abs() * d[at + 1].abs() + TINY
        };
        if end > l {
            loop {
                let m = (l..end).find(|&at| small(e, d, at)).unwrap_or(end);
                if m < end {
                    e[m] = 0.0;
                }
                if m == l {
                    l += 1;
                } else if m == l + 1 {
                    let (rt1, rt2, c, s) = two_by_two(d[l], e[l], d[l + 1]);
                    rotate_columns(z, l, c, s);
                    (d[l], d[l + 1], e[l]) = (rt1, rt2, 0.0);
                    l += 2;
                } else {
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                    ql(d, e, z, l, m);
                }
                if l > end {
                    break;
                }
            }
        } else {
            // As above, from the other end.
            let mut l = l as isize;
            let end = end as isize;
            loop {
                let at = l as usize;
                let m = (end as usize..at)
                    .rev()
                    .find(|&below| small(e, d, below))
                    .map_or(end as usize, |below| below + 1);
                if m as isize > end {
                    e[m - 1] = 0.0;
                }
                if m == at {
                    l -= 1;
                } else if m + 1 == at {
                    let (rt1, rt2, c, s) = two_by_two(d[at - 1], e[at - 1], d[at]);
                    rotate_columns(z, at - 1, c, s);
                    (d[at - 1], d[at], e[at - 1]) = (rt1, rt2, 0.0);
                    l -= 2;
                } else {
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                    qr(d, e, z, at, m);
                }
                if l < end {
                    break;
                }
            }
        }
    }
}

/// One implicit QL step of the block l to m.
fn ql(d: &mut [f64; 3], e: &mut [f64; 2], z: &mut Columns, l: usize, m: usize) {
    let mut p = d[l];
    let mut g = (d[l + 1] - p) / (2.0 * e[l]);
    let r = g.hypot(1.0);
    g = d[m] - p + e[l] / (g + r.copysign(g));
    let (mut s, mut c) = (1.0, 1.0);
    p = 0.0;
    let mut turns = Vec::with_capacity(2);
    for i in (l..m).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        let r;
        (c, s, r) = rotation(g, f);
        if i + 1 != m {
            e[i + 1] = r;
        }
        g = d[i + 1] - p;
        let r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        turns.push((i, c, -s));
    }
    // Backward: from the last column on.
    for (i, c, s) in turns {
        rotate_columns(z, i, c, s);
    }
    d[l] -= p;
    e[l] = g;
}

/// One implicit QR step of the block m to l.
fn qr(d: &mut [f64; 3], e: &mut [f64; 2], z: &mut Columns, l: usize, m: usize) {
    let mut p = d[l];
    let mut g = (d[l - 1] - p) / (2.0 * e[l - 1]);
    let r = g.hypot(1.0);
    g = d[m] - p + e[l - 1] / (g + r.copysign(g));
    let (mut s, mut c) = (1.0, 1.0);
    p = 0.0;
    let mut turns = Vec::with_capacity(2);
    for i in m..l {
        let (f, b) = (s * e[i], c * e[i]);
        let r;
        (c, s, r) = rotation(g, f);
        if i != m {
            e[i - 1] = r;
        }
        g = d[i] - p;
        let r = (d[i + 1] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i] = g + p;
        g = c * r - b;
        turns.push((i, c, s));
    }
    for (i, c, s) in turns {
        rotate_columns(z, i, c, s);
    }
    d[l] -= p;
    e[l - 1] = g;
}

/// `dlartg` as in LAPACK up to 3.9: cosine, sine and length.
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    if g == 0.0 {
        return (1.0, 0.0, f);
    }
    if f == 0.0 {
        return (0.0, 1.0, g);
    }
    let r = f.hypot(g);
    match f.abs() > g.abs() && f < 0.0 {
        true => (-f / r, -g / r, -r),
        false => (f / r, g / r, r),
    }
}

/// `dlaev2`: the eigenvalues of [[a, b], [b, c]], the one of larger magnitude first, and its
/// vector.
fn two_by_two(a: f64, b: f64, c: f64) -> (f64, f64, f64, f64) {
    let (sum, df) = (a + c, a - c);
    let tb = b + b;
    let (most, least) = match a.abs() > c.abs() {
        true => (a, c),
        false => (c, a),
    };
    let rt = df.hypot(tb);
    let (rt1, rt2, sign1) = if sum < 0.0 {
        let rt1 = 0.5 * (sum - rt);
        (rt1, (most / rt1) * least - (b / rt1) * b, -1)
    } else if sum > 0.0 {
        let rt1 = 0.5 * (sum + rt);
        (rt1, (most / rt1) * least - (b / rt1) * b, 1)
    } else {
        (0.5 * rt, -0.5 * rt, 1)
    };
    let (cs, sign2) = match df >= 0.0 {
        true => (df + rt, 1),
        false => (df - rt, -1),
    };
    let (mut cs1, mut sn1);
    if cs.abs() > tb.abs() {
        let ct = -tb / cs;
        sn1 = 1.0 / (1.0 + ct * ct).sqrt();
        cs1 = ct * sn1;
    } else if tb == 0.0 {
        (cs1, sn1) = (1.0, 0.0);
    } else {
        let tn = -cs / tb;
        cs1 = 1.0 / (1.0 + tn * tn).sqrt();
        sn1 = tn * cs1;
    }
    if sign1 == sign2 {
        let tn = cs1;
        cs1 = -sn1;
        sn1 = tn;
    }
    (rt1, rt2, cs1, sn1)
}

/* Winograd's convolution F(OUT x OUT, 3 x 3): tiles of OUT x OUT outputs from SIZE x SIZE inputs,
 * SIZE = OUT + 2.
 *
 *   U = G w G'     V = B' d B     M[point][k][tile] = sum over c of U[point][k][c]
 *   V[point][c][tile]     y = A' M A
 *
 * The interpolation points are 0, 1, -1 for OUT 2, and 0, +-sqrt(1/2), +-sqrt(2) for OUT 4, whose
 * rounding errors are smaller than those of small integers; with m(x) = product of (x - p_i), row i
 * of B' are the coefficients of m(x) / (x - p_i), the last of m. (Lavin and Gray, "Fast algorithms
 * for convolutional neural networks", CVPR 2016.)
 *
 * The gradient by g is the adjoint of the same steps, D = A dy A' in the place of M:
 *
 *   W[point][k][c] = sum over tiles of D[point][k][tile] V[point][c][tile]     dg = G' W G
 *
 * Neighbouring items do neighbouring tiles, so that V and M, which hold tiles side by side, are
 * read and written in whole lines; with LAST neighbouring channels, which lie side by side in the
 * image and in V, V[point][tile][c].
 * Options in front: OUT; FLIPPED: weights of the convolution whose gradient this is; FOURS: rows of
 * y are stored in fours. */
#define SIZE (OUT + 2)
#define UNROLL _Pragma("unroll")
#define HALF_ROOT 0.70710678118654752f
#define ROOT 1.4142135623730951f

typedef struct {
    long at, image, channel, h, w, to;
    int  height, width, pad_h, pad_w, down, across, first, tiles, row, channels;
} sight;
typedef struct { long from, to, row, channel, group; int M, padded, channels, groups; } filters;
typedef struct { long from; int height, width, down, across, first, tiles, row, channels; } results;
typedef struct { long from, to, row, channel, h, w; int channels, rows; } weights;

#ifdef FILTERS
/* U[point][group][channel][row], or with PANEL rows in a panel [point][group][panel][channel][row];
 * filled up with zeros. */
kernel void filter_tiles(const filters f, global const float *restrict w,
                         global float *restrict u) {
    const int m = get_global_id(0) % f.padded, c = get_global_id(0) / f.padded,
              group = get_global_id(1);
    if (c >= f.channels) return;
    float g[3][3], half_way[SIZE][3];
    w += f.from + group * f.group + min(m, f.M - 1) * f.row + c * f.channel;
    UNROLL for (int i = 0; i < 9; i++)
#ifdef FLIPPED
        g[i / 3][i % 3] = m < f.M ? w[8 - i] : 0;
#else
        g[i / 3][i % 3] = m < f.M ? w[i] : 0;
#endif
#if OUT == 2
#define TO_POINTS(t, a, b, c)                                                                      \
    t(0) = a, t(1) = 0.5f * (a + b + c), t(2) = 0.5f * (a - b + c), t(3) = c
#else
    /* 1 / m'(p): 1 at 0, -2/3 at +-sqrt(1/2), 1/6 at +-sqrt(2) */
#define TO_POINTS(t, a, b, c)                                                                      \
    t(0) = a, t(1) = -(a + HALF_ROOT * b + 0.5f * c) * (2 / 3.f),                                  \
    t(2) = -(a - HALF_ROOT * b + 0.5f * c) * (2 / 3.f), t(3) = (a + ROOT * b + 2 * c) * (1 / 6.f), \
    t(4) = (a - ROOT * b + 2 * c) * (1 / 6.f), t(5) = c
#endif
#define DOWN(i) half_way[i][j]
#define ALONG(j) r[j]
    UNROLL for (int j = 0; j < 3; j++) TO_POINTS(DOWN, g[0][j], g[1][j], g[2][j]);
    const long point = (long)f.groups * f.channels * f.padded;
    u += f.to + (long)group * f.channels * f.padded;
#ifdef PANEL
    u += (m / PANEL * (long)f.channels + c) * PANEL + m % PANEL;
#else
    u += c * (long)f.padded + m;
#endif
    UNROLL for (int i = 0; i < SIZE; i++) {
        float r[SIZE];
        TO_POINTS(ALONG, half_way[i][0], half_way[i][1], half_way[i][2]);
        UNROLL for (int j = 0; j < SIZE; j++) u[(i * SIZE + j) * point] = r[j];
    }
}
#endif

#if defined(INPUTS) || defined(GRADIENTS)
#ifdef INPUTS
#define SEEN SIZE
static inline void to_points(const float *d, float *v) {
#if OUT == 2
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
#else
    const float a = d[4] - 2 * d[2], b = HALF_ROOT * d[3] - ROOT * d[1], c = d[4] - 0.5f * d[2],
        e = ROOT * d[3] - HALF_ROOT * d[1];
    v[0] = d[4] - 2.5f * d[2] + d[0];
    v[1] = a + b;
    v[2] = a - b;
    v[3] = c + e;
    v[4] = c - e;
    v[5] = d[5] - 2.5f * d[3] + d[1];
#endif
}
#else
#define SEEN OUT
static inline void to_points(const float *d, float *v) {
#if OUT == 2
    v[0] = d[0];
    v[1] = d[0] + d[1];
    v[2] = d[0] - d[1];
    v[3] = d[1];
#else
    const float a = d[0] + 0.5f * d[2], b = HALF_ROOT * (d[1] + 0.5f * d[3]), c = d[0] + 2 * d[2],
                e = ROOT * (d[1] + 2 * d[3]);
    v[0] = d[0];
    v[1] = a + b;
    v[2] = a - b;
    v[3] = c + e;
    v[4] = c - e;
    v[5] = d[3];
#endif
}
#endif

/* V[point][channel][tile], D likewise; tiles after the last are zeros. */
kernel void input_tiles(const sight s, global const float *restrict x, global float *restrict v) {
#ifdef LAST
    const int channel = get_global_id(0) % s.channels, tile = get_global_id(0) / s.channels;
#else
    const int tile = get_global_id(0), channel = get_global_id(1);
#endif
    if (tile >= s.row || channel >= s.channels) return;
    const bool live = tile < s.tiles;
    const int seen = live ? s.first + tile : 0;
    const int column = seen % s.across * OUT - s.pad_w,
              line = seen / s.across % s.down * OUT - s.pad_h;
    x += s.at + seen / s.across / s.down * s.image + channel * s.channel;
    float half_way[SEEN][SIZE];
    UNROLL for (int i = 0; i < SEEN; i++) {
        float d[SEEN];
        const bool inside = live & ((uint)(line + i) < (uint)s.height);
        UNROLL for (int j = 0; j < SEEN; j++) {
            const bool here = inside & ((uint)(column + j) < (uint)s.width);
            const float e = x[here ? (line + i) * s.h + (column + j) * s.w : 0];
            d[j] = here ? e : 0;
        }
        to_points(d, half_way[i]);
    }
    const long point = (long)s.channels * s.row;
#ifdef LAST
    v += s.to + (long)tile * s.channels + channel;
#else
    v += s.to + (long)channel * s.row + tile;
#endif
    UNROLL for (int j = 0; j < SIZE; j++) {
        float d[SEEN], r[SIZE];
        UNROLL for (int i = 0; i < SEEN; i++) d[i] = half_way[i][j];
        to_points(d, r);
        UNROLL for (int i = 0; i < SIZE; i++) v[(i * SIZE + j) * point] = r[i];
    }
}
#endif

#ifdef WEIGHTS
static inline void to_taps(const float *u, float *g) {
    const float p = u[1] + u[2], m = u[1] - u[2];
#if OUT == 2
    g[0] = u[0] + 0.5f * p;
    g[1] = 0.5f * m;
    g[2] = 0.5f * p + u[3];
#else
    const float q = u[3] + u[4], n = u[3] - u[4];
    g[0] = u[0] - (2 / 3.f) * p + (1 / 6.f) * q;
    g[1] = (ROOT / 6) * n - (ROOT / 3) * m;
    g[2] = (1 / 3.f) * (q - p) + u[5];
#endif
}

kernel void weight_tiles(const weights f, global const float *restrict u,
                         global float *restrict dw) {
    const int c = get_global_id(0) % f.channels, k = get_global_id(0) / f.channels;
    if (k >= f.rows) return;
    const long point = (long)f.rows * f.channels;
    float half_way[SIZE][3];
    u += f.from + (long)k * f.channels + c;
    UNROLL for (int i = 0; i < SIZE; i++) {
        float r[SIZE];
        UNROLL for (int j = 0; j < SIZE; j++) r[j] = u[(i * SIZE + j) * point];
        to_taps(r, half_way[i]);
    }
    dw += f.to + k * f.row + c * f.channel;
    UNROLL for (int j = 0; j < 3; j++) {
        float r[SIZE], g[3];
        UNROLL for (int i = 0; i < SIZE; i++) r[i] = half_way[i][j];
        to_taps(r, g);
        UNROLL for (int i = 0; i < 3; i++) dw[i * f.h + j * f.w] = g[i];
    }
}
#endif

#ifdef RESULTS
static inline void from_points(const float *m, float *y) {
#if OUT == 2
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] + m[3];
#else
    const float a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
    y[0] = m[0] + a + c;
    y[1] = HALF_ROOT * b + ROOT * d;
    y[2] = 0.5f * a + 2 * c;
    y[3] = 0.5f * HALF_ROOT * b + 2 * ROOT * d + m[5];
#endif
}

kernel void output_tiles(const shape s, const results d, global const float *restrict from,
                         global RESULT *y EXTRA_PARAMS) {
    const int tile = get_global_id(0), channel = get_global_id(1), group = channel / (int)s.M,
              m = channel % (int)s.M;
    if (tile >= d.tiles || channel >= d.channels) return;
    const int left = tile % d.across * OUT, top = tile / d.across % d.down * OUT,
              image = d.first + tile / d.across / d.down;
    const long point = (long)d.channels * d.row;
    from += d.from + (long)channel * d.row + tile;
    float half_way[SIZE][OUT];
    UNROLL for (int i = 0; i < SIZE; i++) {
        float r[SIZE];
        UNROLL for (int j = 0; j < SIZE; j++) r[j] = from[(i * SIZE + j) * point];
        from_points(r, half_way[i]);
    }
    const long z0 = 0, z1 = 0, z2 = 0, z3 = group;
    EXTRA_STARTS
    y += START(s.y) + m * s.y.row + image * s.y.outer;
    float out[OUT][OUT];
    UNROLL for (int j = 0; j < OUT; j++) {
        float r[SIZE], e[OUT];
        UNROLL for (int i = 0; i < SIZE; i++) r[i] = half_way[i][j];
        from_points(r, e);
        UNROLL for (int i = 0; i < OUT; i++) out[i][j] = e[i];
    }
    UNROLL for (int i = 0; i < OUT; i++) {
        if (top + i >= d.height) continue;
        const long at = (top + i) * (long)d.width + left;
#ifdef FOURS
        *(global float4 *)(y + at) =
            (float4)(FINISH(out[i][0], m, image, at), FINISH(out[i][1], m, image, at + 1),
                     FINISH(out[i][2], m, image, at + 2), FINISH(out[i][3], m, image, at + 3));
#else
        UNROLL for (int j = 0; j < OUT; j++)
            if (left + j < d.width)
                STORE(y, (at + j) * s.y.column, FINISH(out[i][j], m, image, at + j));
#endif
    }
}
#endif

/* softmax(scale q k^T) v of one query of one head by a group: what a step of decoding asks for.
 * Keys are looked at in chunks: an item has a key for itself, then some columns of the values of
 * every PARTS-th key.  After team.cl, with a team of ITEMS.
 * Options: those of elements.cl and team.cl; CHUNK keys at once; SIZE: of a query at most; LENGTHS:
 * i64 or i32, where there are some; CAUSAL; SOFT. */
typedef struct {
    long q, k, v, lengths, y, heads, share, queries, keys, size, columns, window, scale, cap;
    long q_by[3], k_by[3], v_by[3], y_by[3]; /* steps of batch, head, row */
} numbers;

#define ADD(a, b) ((a) + (b))
TEAM_FOLDER(largest, float, fmax)
TEAM_FOLDER(total, float, ADD)

static inline float lanes_of(TV v) {
    lanes r = { .v = v };
    float sum = r.lane[0];
    for (int l = 1; l < V; l++) sum += r.lane[l];
    return sum;
}

kernel void attention(const numbers s, global const float *q, global const float *k,
                      global const float *v, global const MEMORY(LENGTHS) *lengths,
                      global float *y) {
    local float query[SIZE], score[CHUNK], tree[ITEMS];
    local TV part[ITEMS];
    const int item = (int)get_local_id(0);
    const long unit = get_group_id(0), i = unit % s.queries, h = unit / s.queries % s.heads;
    const long b = unit / s.queries / s.heads, g = h / s.share;
#ifdef COUNTED
    const long have = (long)lengths[s.lengths + b], before = have - s.queries;
#else
    const long have = s.keys, before = 0;
#endif
#ifdef CAUSAL
    const long last = i + before, first = s.window ? max(last - s.window + 1, 0L) : 0;
#else
    const long last = s.keys - 1, first = 0;
#endif
    const long end = min(last + 1, min(have, s.keys));
    q += s.q + b * s.q_by[0] + h * s.q_by[1] + i * s.q_by[2];
    k += s.k + b * s.k_by[0] + g * s.k_by[1];
    v += s.v + b * s.v_by[0] + g * s.v_by[1];
    y += s.y + b * s.y_by[0] + h * s.y_by[1] + i * s.y_by[2];
    const int size = (int)s.size, across = (int)s.columns / V, parts = ITEMS / across;
    const int column = item % across * V, mine = item / across;
    for (int d = item; d < size; d += ITEMS) query[d] = q[d] * REAL(s.scale);
    barrier(CLK_LOCAL_MEM_FENCE);
    float top = -INFINITY, sum = 0;
    TV out = 0;
    for (long c = first; c < end; c += CHUNK) {
        const int m = (int)min(end - c, (long)CHUNK);
        float most = -INFINITY, weight = 0;
        for (int j = item; j < m; j += ITEMS) {
            global const float *row = k + (c + j) * s.k_by[2];
            TV product = 0;
            _Pragma("unroll 8") for (int d = 0; d < size; d += V) product +=
                LOADV(f32, row, d) * *(local const TV *)(query + d);
            float x = lanes_of(product);
#ifdef SOFT
            x = REAL(s.cap) * tanh(x / REAL(s.cap));
#endif
            score[j] = x;
            most = fmax(most, x);
        }
        const float now = fmax(top, largest(tree, most)), by = exp(top - now);
        for (int j = item; j < m; j += ITEMS) {
            score[j] = exp(score[j] - now);
            weight += score[j];
        }
        sum = sum * by + total(tree, weight);
        barrier(CLK_LOCAL_MEM_FENCE);
        out *= by;
        if (mine < parts)
            _Pragma("unroll 8") for (int j = mine; j < m; j += parts) out +=
                LOADV(f32, v, (c + j) * s.v_by[2] + column) * score[j];
        top = now;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    part[item] = out;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (mine) return;
    for (int p = 1; p < parts; p++) out += part[p * across + item];
    out = sum > 0 || sum != sum ? out / sum : 0;
    STOREV(f32, y, column, out);
}

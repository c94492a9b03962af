/* softmax(scale q k^T) v of one query of one head by a group: what a step of decoding asks for.
 * Keys are looked at in chunks: an item has a key for itself, then some columns of the values of
 * every PARTS-th key.  After team.cl, with a team of ITEMS.
 * STEP: the query's own key and value are given beside the caches, and the first head that has them
 * writes them there at row `place`; no group reads that row.  ROTATED: query and key are rotated by
 * their position first, POSITIONS: which is given.  After index.cl then.
 * Options: those of elements.cl and team.cl; CHUNK keys at once; SIZE: of a query at most; LENGTHS:
 * i64 or i32, where there are some; CAUSAL; SOFT. */
typedef struct {
#ifdef STEP
    long q, k, v, lengths, y, at, key, value, k_to, v_to, cos, sin, positions, told, step;
    long pairs, table;
#else
    long q, k, v, lengths, y;
#endif
    long heads, share, queries, keys, size, columns, window, scale, cap;
    long q_by[3], k_by[3], v_by[3], y_by[3]; /* steps of batch, head, row */
#ifdef STEP
    long key_by[3], value_by[3];
#endif
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

static inline float product(local const float *a, global const float *b, const int n) {
    TV sum = 0;
    _Pragma("unroll 8") for (int d = 0; d < n; d += V) sum +=
        LOADV(f32, b, d) * *(local const TV *)(a + d);
    return lanes_of(sum);
}

#ifdef STEP
#ifdef ROTATED
/* Element d of a row, rotated. */
static inline float rotated(global const float *x, const int d, const int pairs,
                           global const float *c, global const float *sine) {
#if INTERLEAVED
    const int k = d / 2, second = d % 2, first = 2 * k, other = first + 1;
#else
    const int k = d % pairs, second = d / pairs, first = k, other = k + pairs;
#endif
    if (d >= 2 * pairs) return x[d];
    const float a = x[first], b = x[other];
    return second ? b * c[k] + a * sine[k] : a * c[k] - b * sine[k];
}
#define ROTATE(x, d) rotated(x, d, (int)s.pairs, c, sine)
#else
#define ROTATE(x, d) (x)[d]
#endif
#define STEP_BUFFERS                                                                               \
    , global const MEMORY(AT) *at, global const float *key, global const float *value,             \
        global float *k_to, global float *v_to, global const float *c, global const float *sine,   \
        global const MEMORY(POSITIONS) *positions, global long *told
#else
#define ROTATE(x, d) (x)[d]
#define STEP_BUFFERS
#endif

kernel void attention(const numbers s, global const float *q, global const float *k,
                      global const float *v, global const MEMORY(LENGTHS) *lengths,
                      global float *y STEP_BUFFERS) {
    /* read as vectors, of which the language promises the alignment of a float */
    local float query[SIZE] __attribute__((aligned(sizeof(TV))));
    local float score[CHUNK], tree[ITEMS];
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
#ifdef STEP
    local float fresh[SIZE];
    const long place = (long)at[s.at + b];
    if (outside(place, place, s.keys, told + s.told, s.step)) return;
#ifdef ROTATED
#ifdef PLACED
    const long given = (long)positions[s.positions + b];
    const long angle = given < 0 ? given + s.table : given;
    if (outside(angle, given, s.table, told + s.told, s.step)) return;
#else
    const long angle = b;
#endif
    c += s.cos + angle * s.pairs;
    sine += s.sin + angle * s.pairs;
#endif
    key += s.key + b * s.key_by[0] + g * s.key_by[1];
    value += s.value + b * s.value_by[0] + g * s.value_by[1];
    for (int d = item; d < size; d += ITEMS) fresh[d] = ROTATE(key, d);
    if (h % s.share == 0) {
        const long line = b * (s.heads / s.share) + g;
        k_to += s.k_to + (line * s.keys + place) * s.size;
        v_to += s.v_to + (line * s.keys + place) * s.columns;
        for (int d = item; d < size; d += ITEMS) k_to[d] = fresh[d];
        for (int d = item; d < (int)s.columns; d += ITEMS) v_to[d] = value[d];
    }
#endif
    for (int d = item; d < size; d += ITEMS) query[d] = ROTATE(q, d) * REAL(s.scale);
    barrier(CLK_LOCAL_MEM_FENCE);
    float top = -INFINITY, sum = 0;
    TV out = 0;
    for (long from = first; from < end; from += CHUNK) {
        const int m = (int)min(end - from, (long)CHUNK);
        float most = -INFINITY, weight = 0;
        for (int j = item; j < m; j += ITEMS) {
            float x = 0;
#ifdef STEP
            if (from + j == place) {
                for (int d = 0; d < size; d++) x += query[d] * fresh[d];
            } else
#endif
                x = product(query, k + (from + j) * s.k_by[2], size);
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
            _Pragma("unroll 8") for (int j = mine; j < m; j += parts) {
                global const float *row = v + (from + j) * s.v_by[2];
#ifdef STEP
                if (from + j == place) row = value;
#endif
                out += LOADV(f32, row, column) * score[j];
            }
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

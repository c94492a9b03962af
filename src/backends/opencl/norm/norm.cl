/* Rows of neighbours, each normalized by itself:  y = (x - mean) / sqrt(var + epsilon) scale +
 * bias;
 * RMS: x / sqrt(mean of x^2 + epsilon) scale.  Which scale and bias belong to element k of row r:
 * number  r mod `rows`  times a step, plus what the D dims of a row say.
 * Options: those of elements.cl and team.cl (a line is a row); X; Y; SCALE, BIAS, MEAN, INVERSE:
 * tags of what is there; RMS; D; ALIKE: `rows` is 1; HELD: a row is HELD accesses of each item at
 * most, and stays in registers; STORED: in local memory, and a group does several rows, the next of
 * which is on its way while one is worked on; SHIFTED, or STORED: both sums are taken in one pass,
 * of x - k where k is the mean of the row's first elements. */
typedef struct {
    long x, y, scale, bias, mean, inverse, units, size, epsilon, rows, scale_row, bias_row,
        size_of[D], scale_by[D], bias_by[D];
} numbers;

#ifndef SCALE
#define SCALE u8
#define NO_SCALE
#endif
#ifndef BIAS
#define BIAS u8
#define NO_BIAS
#endif
#ifndef MEAN
#define MEAN u8
#define NO_MEAN
#endif
#ifndef INVERSE
#define INVERSE u8
#define NO_INVERSE
#endif

LOADER(load_x, X)
LOADER(load_scale, SCALE)
LOADER(load_bias, BIAS)
STORER(store_y, Y)
FOLDER(fold, PLUS)

/* Parameters of neighbours: side by side, or one for all. */
#define PARAMETER(name, tag) \
    static inline TV name##_of(global const MEMORY(tag) *p, long step, pos i, pos n) { \
        if (step == 1) return name(p + i, n, 0); \
        return (TV)LOAD(tag, p, i * (pos)step); \
    }
PARAMETER(load_scale, SCALE)
PARAMETER(load_bias, BIAS)

/* r scale + bias, in one expression, for element i of those that the outer dims say with number o.
 */
#ifdef NO_SCALE
#define SCALED(r, scale, o, i, n) (r)
#else
#define SCALED(r, scale, o, i, n) \
    ((r) * load_scale_of((scale) + place(s.size_of, s.scale_by, D - 1, o), s.scale_by[D - 1], i, n))
#endif
#ifdef NO_BIAS
#define RESULT(r, scale, bias, o, i, n) SCALED(r, scale, o, i, n)
#else
#define RESULT(r, scale, bias, o, i, n)                                                            \
    (SCALED(r, scale, o, i, n) +                                                                   \
     load_bias_of((bias) + place(s.size_of, s.bias_by, D - 1, o), s.bias_by[D - 1], i, n))
#endif

#ifdef ALIKE
#define WHICH(row) 0
#else
#define WHICH(row) ((row) % (pos)s.rows)
#endif

/* What an item has of a row; where it has nothing, the last that there is once more: a branch would
 * wait for what is in it. */
#define PLACE(k) min((MY_PART + (k) * G) * V, (pos)s.size - V)
#define ASK(came, from)                                                                            \
    _Pragma("unroll") for (int k = 0; k < HELD; k++) came[k] = COME(X, from, PLACE(k));

/* Lines in local memory are read once less: both sums are taken of x - k, k the mean of a row's
 * first elements. */
#if defined(STORED) && !defined(RMS)
#define AROUND
enum { SAMPLED = V < 8 ? 8 / V : 1 };
typedef FAC_CAT(T, 2) two;
TEAM_FOLDER(fold_two, two, PLUS)
#endif

TEAM_KERNEL norm(const numbers s, global const MEMORY(X) * x, global MEMORY(Y) * y,
                 global const MEMORY(SCALE) * scale, global const MEMORY(BIAS) * bias,
                 global MEMORY(MEAN) * mean_out, global MEMORY(INVERSE) * inverse_out) {
    LINE_OF_TEAM(get_group_id(0))
    pos size = (pos)s.size;
    x += s.x;
    y += s.y;
#ifdef AROUND
    local two two_tree[TREE_SIZE];
#else
    TREE_OF_TEAM
#endif
#ifdef STORED
    local TV stored[HELD * G];
#define E(k) stored[(k) * G + MY_PART]
    const pos inner = (pos)s.size_of[D - 1];
#if D > 1 /* from one access of an item to the next, without a division for each */
    const pos first_o = MY_PART * V / inner, first_i = MY_PART * V - first_o * inner;
    const pos over = G * V / inner, along = G * V - over * inner;
#endif
    CAME(X) came[HELD];
    pos group = (pos)get_group_id(0);
    bool more;
#ifdef AROUND
    CAME(X) samples[SAMPLED];
#define ASK_SAMPLES(from)                                                                          \
    _Pragma("unroll") for (int k = 0; k < SAMPLED; k++) samples[k] =                               \
        COME(X, from, min((pos)k * V, size - V));
    ASK_SAMPLES(x + unit * size)
#endif
    ASK(came, x + unit * size)
    do {
        TV sum = (TV)(T)0, squares = (TV)(T)0;
        T mean = 0;
        group += (pos)get_num_groups(0);
        more = group * C < (pos)s.units;
        const pos next = min(group * C + MY_LINE, (pos)s.units - 1), which = WHICH(unit);
        global const MEMORY(X) *next_line = x + (more ? next : unit) * size;
#ifdef AROUND
        TV few = (TV)(T)0;
#pragma unroll
        for (int k = 0; k < SAMPLED; k++) few += SEEN(X, samples[k]);
        const T around = FOLD_LANES(PLUS, few) / (T)(SAMPLED * V);
        ASK_SAMPLES(next_line)
#else
        const T around = 0;
#endif
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            const TV v = SEEN(X, came[k]),
                     d = IN_LINE((MY_PART + k * G) * V) ? v - around : (TV)(T)0;
            sum += d;
            E(k) = v;
            squares += d * d;
            came[k] = COME(X, next_line, PLACE(k));
        }
#ifdef AROUND
        const two all =
            fold_two(two_tree, (two)(FOLD_LANES(PLUS, sum), FOLD_LANES(PLUS, squares))) / (T)s.size;
        mean = around + all.x;
        const T spread = all.y - all.x * all.x;
        const T inverse =
            (T)1 / sqrt((spread > 0 || spread != spread ? spread : 0) + REAL(s.epsilon));
#else
        const T inverse = (T)1 / sqrt(fold(tree, squares) / (T)s.size + REAL(s.epsilon));
#endif
#ifndef NO_MEAN
        if (live && MY_PART == 0) STORE(MEAN, mean_out, s.mean + unit, mean);
#endif
#ifndef NO_INVERSE
        if (live && MY_PART == 0) STORE(INVERSE, inverse_out, s.inverse + unit, inverse);
#endif
        global const MEMORY(SCALE) *a = scale + s.scale + which * (pos)s.scale_row;
        global const MEMORY(BIAS) *b = bias + s.bias + which * (pos)s.bias_row;
#if D > 1
        pos o = first_o, in = first_i;
#endif
#pragma unroll 1 /* unrolled, all places would be kept in registers */
        for (int k = 0; k < HELD; k++) {
            const pos i = (MY_PART + k * G) * V, left = size - i;
#if D == 1
            const pos o = 0, in = i;
#endif
            if (live && IN_LINE(i)) {
                const TV r = (E(k) - mean) * inverse;
                store_y(y + unit * size + i, left, RESULT(r, a, b, o, in, left));
            }
#if D > 1
            o += over;
            in += along;
            if (in >= inner) in -= inner, o++;
#endif
        }
        live = group * C + MY_LINE < (pos)s.units;
        unit = next;
    } while (more);
#else
    if (!live) size = 0;
    x += unit * (pos)s.size;
    y += unit * (pos)s.size;
    TV sum = (TV)(T)0, squares = (TV)(T)0;
    T mean = 0;
#ifdef HELD
    TV e[HELD];
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = (MY_PART + k * G) * V;
        e[k] = i < size ? load_x(x + i, size - i, 0) : (TV)(T)0;
        sum += e[k];
    }
#ifndef RMS
    mean = fold(tree, sum) / (T)s.size;
#endif
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        if ((MY_PART + k * G) * V < size) e[k] -= mean;
        squares += e[k] * e[k];
    }
#elif defined(SHIFTED) && !defined(RMS)
    enum { SAMPLES = 8 };
    const pos samples = size < SAMPLES ? size : SAMPLES;
    T around = 0;
    for (pos i = 0; i < samples; i++) around += LOAD(X, x, i);
    around /= (T)(samples ? samples : 1);
#pragma unroll 4
    for (pos i = MY_PART * V; i < size; i += G * V) {
        const TV d = load_x(x + i, size - i, around) - around;
        sum += d;
        squares += d * d;
    }
    mean = around + fold(tree, sum) / (T)s.size;
#else
#ifndef RMS
    for (pos i = MY_PART * V; i < size; i += G * V) sum += load_x(x + i, size - i, 0);
    mean = fold(tree, sum) / (T)s.size;
#endif
#pragma unroll 4
    for (pos i = MY_PART * V; i < size; i += G * V) {
        const TV d = load_x(x + i, size - i, mean) - mean;
        squares += d * d;
    }
#endif
#if defined(SHIFTED) && !defined(RMS)
    const T spread = fold(tree, squares) / (T)s.size - (mean - around) * (mean - around);
#else
    const T spread = fold(tree, squares) / (T)s.size;
#endif
    const T inverse = (T)1 / sqrt((spread > 0 || spread != spread ? spread : 0) + REAL(s.epsilon));
#ifndef NO_MEAN
    if (live && MY_PART == 0) STORE(MEAN, mean_out, s.mean + unit, mean);
#endif
#ifndef NO_INVERSE
    if (live && MY_PART == 0) STORE(INVERSE, inverse_out, s.inverse + unit, inverse);
#endif
    const pos inner = (pos)s.size_of[D - 1], which = WHICH(unit);
    scale += s.scale + which * (pos)s.scale_row;
    bias += s.bias + which * (pos)s.bias_row;
#ifdef HELD
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        const pos i = (MY_PART + k * G) * V, o = D == 1 ? 0 : i / inner, left = size - i;
        if (left <= 0) continue;
        const TV r = e[k] * inverse;
        store_y(y + i, left, RESULT(r, scale, bias, o, i - o * inner, left));
    }
#else
    const int across = inner < G * V ? min(G, (int)((inner + V - 1) / V)) : G, down =
            G / across;      /* items along and over inner dims */
    if (MY_PART >= across * down) return;
    for (pos o = MY_PART / across; o * inner < size; o += down) {
        global const MEMORY(SCALE) *a = scale + place(s.size_of, s.scale_by, D - 1, o);
        global const MEMORY(BIAS) *b = bias + place(s.size_of, s.bias_by, D - 1, o);
        for (pos i = MY_PART % across * V; i < inner; i += across * V) {
            const pos left = inner - i;
            TV e = (load_x(x + o * inner + i, left, 0) - mean) * inverse;
#ifndef NO_SCALE
            e *= load_scale_of(a, s.scale_by[D - 1], i, left);
#endif
#ifndef NO_BIAS
            e += load_bias_of(b, s.bias_by[D - 1], i, left);
#endif
            store_y(y + o * inner + i, left, e);
        }
    }
#endif
#endif
}

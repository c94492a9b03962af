/* Numbers sent to places that are data, in the order of the updates wherever several meet, so the
 * result is the same every time.
 *   keys    where each update goes, counted in slices of the result; -1: outside, nowhere
 *   links   updates that meet form chains: for each the next one of the same key after it, and
 *           whether there is one before it. Only updates of one line can meet: those `step` apart,
 *           `line` of them.
 *   start   the result before the updates: x, or zeros; EACH elements an item
 *   chains  the first of each chain folds it into the result; SCAN: it looks for the others, all of
 *           which it reads at once, instead of waiting for each link: chains are long
 * Options: those of elements.cl, V == 1; X; I: tag of the numbers; OP; R. */
typedef struct {
    long a, b, c, step_name, count, line, step, depth, inner, outer, slices, size[R], by[R];
} numbers;
/* a, b, c: offsets of the buffers, in the order of the arguments; step_name: for index.cl, which
 * stands in front */

#ifdef NONE
#define MEET(a, b) (b)
#elif defined(ADD)
#define MEET(a, b) ((a) + (b))
#elif defined(MUL)
#define MEET(a, b) ((a) * (b))
#elif defined(MAXIMUM)
#define MEET(a, b) (((b) > (a)) || (b) != (b) ? (b) : (a))
#else
#define MEET(a, b) (((b) < (a)) || (b) != (b) ? (b) : (a))
#endif

/* Of scatter_nd: `depth` numbers an update, each counting a dim. */
kernel void keys_nd(const numbers s, global const MEMORY(I) * indices, global long *keys,
                    global long *told) {
    const long u = get_global_id(0);
    if (u >= s.count) return;
    long key = 0;
    bool nowhere = false;
    for (int k = 0; k < s.depth; k++) {
        const long given = (long)indices[s.a + u * s.depth + k],
                   i = given < 0 ? given + s.size[k] : given;
        nowhere |= outside(i, given, s.size[k], told + s.c, s.step_name);
        key = key * s.size[k] + i;
    }
    keys[s.b + u] = nowhere ? -1 : key;
}

/* Of scatter_elements: one number an element, counting dim `depth` of size `slices`; size: dims of
 * the updates, by: steps in x.
 * */
kernel void keys_elements(const numbers s, global const MEMORY(I) * indices, global long *keys,
                          global long *told) {
    const long u = get_global_id(0);
    if (u >= s.count) return;
    const long given = (long)indices[s.a + u], i = given < 0 ? given + s.slices : given;
    long key = 0, rest = u;
    for (int k = R - 1; k >= 0; k--) {
        key += (k == (int)s.depth ? i : rest % s.size[k]) * s.by[k];
        rest /= s.size[k];
    }
    keys[s.b + u] = outside(i, given, s.slices, told + s.c, s.step_name) ? -1 : key;
}

/* links[u]: 2 (next + 1), or 0, plus 1 when another one comes before. */
kernel void links(const numbers s, global const long *keys, global long *to,
                  global const uchar *unused) {
    const long u = get_global_id(0);
    if (u >= s.count) return;
    const long key = keys[s.a + u], at = u / s.step % s.line, first = u - at * s.step;
    long next = 0, before = 0;
    for (long k = at + 1; k < s.line && !next; k++)
        if (keys[s.a + first + k * s.step] == key) next = first + k * s.step + 1;
    for (long k = at - 1; k >= 0 && !before; k--) before = keys[s.a + first + k * s.step] == key;
    to[s.b + u] = 2 * next + before;
}

kernel void start(const numbers s, global const MEMORY(X) * x, global MEMORY(X) * y,
                  global const uchar *unused) {
    const long group = get_local_size(0), first = get_group_id(0) * group * EACH + get_local_id(0);
    for (int k = 0; k < EACH; k++) {
        const long e = first + k * group;
        if (e >= s.count) return;
#ifdef ZEROS
        y[s.b + e] = 0;
#else
        y[s.b + e] = x[s.a + e];
#endif
    }
}

/* y[outer, key, inner] meets u[outer, update, inner]; `slices` keys, `line` updates in an outer;
 * keys and links lie side by side. */
kernel void chains(const numbers s, global const MEMORY(X) * updates, global MEMORY(X) * y,
                   global const long *keys) {
    const long e = get_global_id(0);
    if (e >= s.count) return;
    const long i = e % s.inner, o = e / s.inner / s.line;
    long u = e / s.inner % s.line;
    const long key = keys[s.c + u];
    global const long *next = keys + s.c + s.line;
    if (key < 0 || next[u] & 1) return;
    const long at = s.b + (o * s.slices + key) * s.inner + i;
    T total = LOAD(X, y, at);
#ifdef SCAN
#pragma unroll 16
    for (; u < s.line; u++) { /* no branch: reads of many updates are under way */
        const T one = LOAD(X, updates, s.a + (o * s.line + u) * s.inner + i);
        const T more = MEET(total, one);
        total = keys[s.c + u] == key ? more : total;
    }
#else
    for (;;) {
        const T one = LOAD(X, updates, s.a + (o * s.line + u) * s.inner + i);
        total = MEET(total, one);
        if (!(next[u] >> 1)) break;
        u = (next[u] >> 1) - 1;
    }
#endif
    STORE(X, y, at, total);
}

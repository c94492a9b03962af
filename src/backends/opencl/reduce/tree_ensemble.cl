/* Decision trees (ops/ml/tree.h): an item walks one row down all trees and joins the weights of its
 * target, tree by tree.  Tables that are no trees are told (index.cl).  Options: those of
 * elements.cl; LEAST, MOST or AVERAGE, else the sum; SUMS: the type of a sum. */
#define NAN_TO_YES (1 << 30)
#define EQUAL (1 << 29)
#define FEATURE (EQUAL - 1)
typedef struct {
    long x, features, splits, next, roots, targets, weights, y, told, step, count, columns, nodes,
         trees, all_weights, all_targets;
} numbers;
#define TELL(place, size) outside(place, place, size, told + s.told, s.step)

kernel void walk(const numbers s, global const float *x, global const int *features,
                 global const float *splits, global const int *next, global const int *roots,
                 global const int *targets, global const float *weights, global float *y,
                 global long *told) {
    const pos e = (pos)get_global_id(0);
    if (e >= (pos)s.count) return;
    const pos target = e % (pos)s.all_targets;
    global const float *row = x + s.x + e / (pos)s.all_targets * (pos)s.columns;
    SUMS sum = 0;
    bool have = false;
    for (pos t = 0; t < (pos)s.trees; t++) {
        long at = roots[s.roots + t];
        int code = 0;
        for (long steps = 0; steps <= s.nodes; steps++) {
            if (TELL(at, s.nodes)) return;
            code = features[s.features + at];
            if (code < 0) break;
            if (TELL((long)(code & FEATURE), s.columns)) return;
            const float v = row[code & FEATURE], split = splits[s.splits + at];
            const bool nan = code & NAN_TO_YES && v != v, equal = v == split;
            const bool yes = nan || equal || (v < split && !(code & EQUAL));
            at = next[s.next + at] + (yes ? 0 : 1);
        }
        if (code >= 0) {
            TELL(s.nodes, s.nodes); /* a circle */
            return;
        }
        const long first = next[s.next + at], end = first - 1 - (long)code;
        if (first < end && (TELL(first, s.all_weights) || TELL(end - 1, s.all_weights))) return;
        for (long k = first; k < end; k++) {
            const int of = targets[s.targets + k];
            if (TELL((long)of, s.all_targets)) return;
            if (of != target) continue;
            const SUMS w = weights[s.weights + k];
#ifdef LEAST
            sum = have ? fmin(sum, w) : w;
#elif defined(MOST)
            sum = have ? fmax(sum, w) : w;
#else
            sum += w;
#endif
            have = true;
        }
    }
#ifdef AVERAGE
    if (s.trees) sum *= (SUMS)1 / (SUMS)s.trees;
#endif
    y[s.y + e] = (float)sum;
}

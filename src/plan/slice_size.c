/* How many images of a batch are done at once, from where on.
 *
 * The least of  weights / b  +  3 * (bytes of values that do not stay near when b images are done
 * at once)  for one image, a store to far memory being a read and a write, and its reader a third;
 * b among the divisors of the batch.  First layers have large images and few weights, last ones the
 * opposite: b may grow, to a multiple, wherever all that the rest needs is one value. That is a
 * shortest way: through the nodes in their order, by b. */
#include <string.h>
#include "base/memory.h"
#include "graph/attr.h"
#include "op_list.h"
#include "plan/schedule.h"

enum { DIVISORS = 128, MOST = 1 << 16 }; /* no number up to MOST has more */

static double bytes_of(const fac_value *v) { return v ? (double)fac_type_bytes(&v->type) : 0; }

/* Bytes of a weight where it is used: transformed for a convolution of 3 x 3 with stride 1 (36
 * points for 9 taps). */
static double weight_bytes(const fac_node *n, int i) {
    const bool filter = i == 1 && FAC_IS(n, conv2d) && fac_attr_int(n, "groups", 1) == 1;
    const bool transformed = filter && n->in[1]->type.dims.d[2] > 1;
    return bytes_of(n->in[i]) * (transformed ? 4 : 1);
}

/* Bytes of a node: of its weights; of its values, for one image. */
typedef struct traffic {
    double weights, values;
} traffic;
static traffic traffic_of(const fac_node *n, int64_t images) {
    traffic t = { 0, 0 };
    for (int i = 0; i < n->nin; i++)
        if (fac_early(n->in[i]))
            t.weights += weight_bytes(n, i);
        else
            t.values += bytes_of(n->in[i]);
    for (int k = 0; k < n->nout; k++) t.values += bytes_of(n->out[k]);
    t.values /= (double)images;
    return t;
}

/* What one image costs in bytes when b are done at once; a step is worth some for its start and its
 * end, where threads wait for each other (MobileNetV2, two threads: 16 us more for each step when
 * images come one by one). */
static double price(const traffic *t, int64_t b, size_t near) {
    enum { STEP = 320 << 10, FAR = 3 };
    return (t->weights + STEP) / (double)b +
           (t->values * (double)b > (double)near ? FAR * t->values : 0);
}

/* What it costs to gather b images of a value: they lie there until the last of them has come. */
static double gathering(double bytes, int64_t b, size_t near) {
    return bytes * (bytes * (double)b > (double)near ? 2 : 0.5);
}

static int divisors_of(int64_t n, int64_t *to) {
    int count = 0;
    for (int64_t b = 1; b <= n; b++)
        if (n % b == 0) to[count++] = b;
    return count;
}

/* Of a convolution in groups, whatever is fused after it. */
static bool in_groups(const fac_node *n) {
    while (n && (n->op->map || FAC_IS(n, batch_norm))) n = n->in[0]->node;
    return n && FAC_IS(n, conv2d) && fac_attr_int(n, "groups", 1) > 1;
}

/* Is nothing lost when b changes after this value: its first reader would not be fused with its
 * maker?  A depthwise convolution may be one with those around it. */
static bool may_gather(const fac_value *v) {
    static const fac_op *const readers[] = { &fac_op_conv1d, &fac_op_conv2d, &fac_op_conv3d,
                                             &fac_op_linear, &fac_op_gemm,   NULL };
    const fac_node *first = NULL;
    for (const fac_use *u = v->uses; u; u = u->next)
        if (!first || u->node->order < first->order) first = u->node;
    return first && !v->roots && fac_op_is_one_of(first->op, readers) && first->in[0] == v &&
           !in_groups(first) && !in_groups(v->node);
}

/* The only value alive after node n, which makes it; NULL: there are others.  left: by value id,
 * reads to come; *alive: values with any. */
static const fac_value *narrow(const fac_node *n, int *left, int *alive) {
    const fac_value *last = NULL;
    for (int i = 0; i < n->nin; i++)
        if (!fac_early(n->in[i]) && --left[n->in[i]->id] == 0) --*alive;
    for (int k = 0; k < n->nout; k++) {
        if (fac_early(n->out[k]) || !(left[n->out[k]->id] = fac_reads_of(n->out[k]))) continue;
        ++*alive;
        last = n->out[k];
    }
    return *alive == 1 ? last : NULL;
}

/* The shortest way so far that ends with b[j] images at once becomes one that goes on with b[j];
 * before[j]: with how many it came. */
static void change(const fac_value *v, const int64_t *b, int count, int64_t images, size_t near,
                   double *way, uint8_t *before) {
    for (int j = count - 1; j >= 0; j--) /* from the most on: ways of fewer are not changed yet */
        for (int i = 0; i < j; i++) {
            if (b[j] % b[i]) continue;
            const double other = way[i] + gathering(bytes_of(v) / (double)images, b[j], near);
            if (other < way[j]) {
                way[j] = other;
                before[j] = (uint8_t)i;
            }
        }
}

static int64_t shortest(const fac_graph *g, int64_t images, size_t near, int *left, uint8_t *before,
                        int64_t *after) {
    int64_t b[DIVISORS];
    double way[DIVISORS] = { 0 };
    const int count = divisors_of(images, b);
    int alive = 0, node = 0, best = count - 1;
    for (size_t i = 0; i < g->ninputs; i++)
        alive += (left[g->inputs[i]->id] = fac_reads_of(g->inputs[i])) > 0;
    for (const fac_node *n = g->first; n; n = n->next, node++) {
        const bool runs = n->out[0]->time == FAC_RUN;
        const traffic t = traffic_of(n, images);
        const fac_value *v = narrow(n, left, &alive);
        for (int j = 0; j < count; j++) {
            before[node * count + j] = (uint8_t)j;
            if (runs && !n->op->map && !n->op->view)
                way[j] += price(&t, b[j], near); /* others are mostly fused */
        }
        if (v && may_gather(v)) change(v, b, count, images, near, way, before + node * count);
    }
    for (int j = count - 1; j >= 0; j--)
        if (way[j] < way[best]) best = j;
    while (node-- > 0) {
        const int came = before[node * count + best];
        after[node] = came == best ? 0 : b[best];
        best = came;
    }
    return b[best];
}

int64_t fac_batch_slice(const fac_graph *g, size_t near, int64_t *after) {
    const int64_t images =
        g->ninputs && g->inputs[0]->type.dims.n ? g->inputs[0]->type.dims.d[0] : 0;
    int64_t best = images;
    memset(after, 0, (size_t)g->nodes * sizeof *after);
    if (images < 2 || images > MOST || !near) return images;
    bool *seen = fac_alloc(g->ids + 1, sizeof *seen);
    int *left = fac_alloc(g->ids + 1, sizeof *left);
    uint8_t *before = fac_alloc((size_t)g->nodes + 1, DIVISORS);
    if (seen && left && before && fac_by_image(g, images, seen))
        best = shortest(g, images, near, left, before, after);
    fac_release(seen);
    fac_release(left);
    fac_release(before);
    return best;
}

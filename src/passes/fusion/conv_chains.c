/* An expansion of 1 x 1 (or a first layer), a depthwise convolution and a projection of 1 x 1
 * become one `fused_conv` node:
 *   y = p(act(d(act(e(x))))) [+ r]
 * the inverted residual of MobileNetV2 (Sandler et al., CVPR 2018), whose expanded image is several
 * times as large as x and y: row by row it stays in a cache that all of it would not fit.  Only
 * where a kernel's estimate is below the sum of those for the three. Preserves the sums of each
 * output. */
#include <stdio.h>
#include "facula/ops.h"
#include "op_list.h"
#include "ops/conv.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum { OPERANDS = 8, STEPS = 8 };

/* The nodes of a chain in their order; each but the first works on the result of the one before,
 * in[at]. */
typedef struct chain {
    const fac_node *step[STEPS];
    int n;
    const fac_value *last;
} chain;

static bool is_conv(const fac_node *n) {
    const bool conv = FAC_IS(n, conv2d) && !n->body[0] && n->out[0]->time == FAC_RUN &&
                      n->in[0]->type.dims.n == 4;
    return conv && n->in[1]->time != FAC_RUN && (!n->in[2] || n->in[2]->time != FAC_RUN);
}

static bool is_pointwise(const fac_node *n) {
    if (!is_conv(n) || fac_attr_int(n, "groups", 1) != 1) return false;
    const fac_dims *w = &n->in[1]->type.dims;
    const int64_t *stride = fac_attr_ints(n, "stride"), *pad = fac_attr_ints(n, "pad");
    return w->d[2] == 1 && w->d[3] == 1 && stride[0] <= 1 && stride[1] <= 1 && !pad[0] && !pad[1] &&
           !pad[2] && !pad[3];
}

/* A convolution of an image as it was loaded, which is expanded too. */
static bool is_first(const fac_node *n) {
    return is_conv(n) && n->in[0]->type.dims.d[1] <= FAC_FEW_PLANES &&
           n->in[0]->type.dims.d[1] < n->out[0]->type.dims.d[1] &&
           fac_attr_int(n, "groups", 1) == 1;
}

static bool is_depthwise(const fac_node *n) {
    const int64_t channels = is_conv(n) ? n->in[0]->type.dims.d[1] : 0;
    return channels > 1 && fac_attr_int(n, "groups", 1) == channels &&
           n->in[1]->type.dims.d[0] == channels;
}

static void push(chain *c, const fac_node *n) {
    c->step[c->n++] = n;
    c->last = n->out[0];
}

/* The one node that reads the end of the chain, whatever it is. */
static const fac_node *reader(const chain *c) {
    return fac_used_once(c->last) ? c->last->uses->node : NULL;
}

/* An activation: an elementwise op of one operand and numbers. */
static void take_activation(chain *c) {
    const fac_node *n = reader(c);
    if (!n || !n->op->map || n->body[0] || n->nout != 1 || n->in[0] != c->last) return;
    for (int i = 1; i < n->nin; i++)
        if (n->in[i] && !fac_is_number(n->in[i])) return;
    if (fac_dims_equal(&n->out[0]->type.dims, &c->last->type.dims)) push(c, n);
}

static void take_add(chain *c) {
    const fac_node *n = reader(c);
    if (!FAC_IS(n, add) || n->in[0] == n->in[1]) return;
    if (fac_dims_equal(&n->in[0]->type.dims, &n->in[1]->type.dims)) push(c, n);
}

static bool find_chain(const fac_node *n, chain *c) {
    *c = (chain){ .n = 0 };
    if (!is_pointwise(n) && !is_first(n)) return false;
    push(c, n);
    take_activation(c);
    for (int k = 0; k < 2; k++) {
        const fac_node *next = reader(c);
        if (!(k ? is_pointwise(next) : is_depthwise(next)) || next->in[0] != c->last) return false;
        push(c, next);
        if (!k) take_activation(c);
    }
    take_add(c);
    return true;
}

/* The chain as a body, and what it reads; NULL when that is too much, or memory is gone, which `to`
 * is told. */
static fac_graph *body_of(fac_graph *to, const chain *c, fac_value *outer[OPERANDS], int *count) {
    fac_graph *g = fac_graph_new();
    fac_value *last = NULL;
    *count = 0;
    for (int s = 0; g && s < c->n; s++) {
        const fac_node *n = c->step[s];
        fac_value *in[OPERANDS] = { NULL }, *out[1];
        for (int i = 0; i < n->nin && i < OPERANDS; i++) {
            fac_value *v = n->in[i];
            if (v && s && v == c->step[s - 1]->out[0])
                in[i] = last;
            else if (v && fac_is_number(v))
                in[i] = fac_const(g, v->tensor);
            else if (v) {
                int k = 0; /* weights are packed, each in a form of its own */
                while (k < *count && (outer[k] != v || v->time != FAC_RUN)) k++;
                if (k == OPERANDS) {
                    fac_graph_free(g);
                    return NULL;
                }
                if (k == *count) {
                    char name[16];
                    snprintf(name, sizeof name, "x%d", k);
                    fac_input(g, name, v->type.dtype, v->type.dims);
                    outer[(*count)++] = v;
                }
                in[i] = fac_graph_input(g, k);
            }
        }
        fac_node_copy(g, n, in, out);
        last = out[0];
    }
    if (g) fac_output(g, "y", last);
    if (g && !g->error.status) return g;
    if (!g || g->error.status == FAC_E_NOMEM)
        fac_graph_raise(to, FAC_E_NOMEM, "no memory for the body of a chain of convolutions");
    fac_graph_free(g);
    return NULL;
}

static void fuse(fac_graph *g, const chain *c, fac_price *price, void *self) {
    fac_value *outer[OPERANDS];
    int n;
    double apart = 0;
    fac_graph *body = body_of(g, c, outer, &n);
    if (!body) return;
    fac_value *y = fac_emit_body(g, &fac_op_fused_conv, NULL, n, n, outer, body, NULL);
    for (int s = 0; s < c->n; s++)
        if (is_conv(c->step[s])) apart += price(self, c->step[s]);
    if (!y->node || price(self, y->node) >= apart)
        return; /* nothing reads it: the sweep takes it away */
    fac_node_named_as(y->node, c->step[0]);
    fac_replace(c->step[c->n - 1]->out[0], y);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    chain c;
    if (find_chain(n, &c)) fuse(to, &c, by->price, by->self);
}

fac_graph *fac_pass_conv_chains(const fac_graph *g, fac_price *price, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .price = price, .self = self });
}

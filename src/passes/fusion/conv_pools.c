/* Max pools after convolutions: the two become one `conv2d_max_pool`, where nothing else reads what
 * the convolution makes and a kernel does both in less time.  After epilogue.c, whose body goes
 * along: it comes after the pool then, which is the same for functions that do not fall, as the
 * largest of what they give is what they give of the largest.  Preserves every bit but the sign of
 * zeros that no body follows. */
#include "op_list.h"
#include "ops/conv_pool.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/common/body_chain.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum { PORTS = 3 };

/* Does f(a) <= f(b) hold for all a <= b, of what a node of a chain makes of its one operand and
 * numbers? */
static bool never_falls(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_relu, &fac_op_clip, &fac_op_max, &fac_op_min,
                                           NULL };
    const bool leaky = FAC_IS(n, leaky_relu) && fac_attr_real(n, "slope", -1) >= 0;
    int operands = 0;
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i] && n->in[i]->leaf != FAC_CONST)
            operands++;
        else if (n->in[i] && !fac_is_number(n->in[i]))
            return false;
    }
    return (leaky || fac_op_is_one_of(n->op, names)) && operands == 1 &&
           (!FAC_IS(n, clip) || n->in[0]->leaf != FAC_CONST);
}

static bool body_never_falls(const fac_graph *body) {
    bool never = fac_body_is_chain(body);
    for (const fac_node *n = body->first; n && never; n = n->next) never = never_falls(n);
    return never;
}

/* The pool as conv2d_max_pool has it; false: it has more to it. */
static bool read_pool(const fac_node *n, fac_conv_pool_attrs *to) {
    const fac_pool2d_attrs *p = n->attrs;
    fac_pool_geom g;
    if (n->out[1]->uses || n->out[1]->roots || !fac_pool_geometry(n, &g)) return false;
    for (int k = 0; k < 2; k++) {
        const fac_window *w = &g.window[1 + k];
        if (w->dilation != 1 ||
            (p->o.ceil_mode && (w->in + w->pad + w->pad_end - w->kernel) % w->stride))
            return false;
        to->pool[k] = w->kernel;
        to->pool_stride[k] = w->stride;
        to->pool_pad[k] = w->pad;
        to->pool_pad[2 + k] = w->pad_end;
    }
    return true;
}

static fac_node *convolution(const fac_value *v, int stage) {
    fac_node *n = v->node;
    if (!FAC_IS(n, conv2d) || n->out[0]->time != FAC_RUN || n->nin != PORTS || n->stage != stage)
        return NULL;
    if (!fac_used_once(v)) return NULL;
    return !n->body[0] || body_never_falls(n->body[0]) ? n : NULL;
}

static void fuse(fac_graph *g, fac_node *n, fac_price *price, void *self) {
    fac_node *conv = convolution(n->in[0], n->stage);
    fac_conv_pool_attrs attrs = { .pool = { 0 } };
    if (!conv || !read_pool(n, &attrs)) return;
    attrs.conv = *(const fac_conv2d_opts *)conv->attrs;
    fac_value *y;
    if (conv->body[0]) {
        fac_graph *body = fac_body_resized(g, conv->body[0], n->out[0]->type);
        if (!body) return;
        y = fac_emit_body(g, &fac_op_conv2d_max_pool, &attrs, PORTS, PORTS, conv->in, body, NULL);
    } else
        y = fac_emit(&fac_op_conv2d_max_pool, &attrs, PORTS, conv->in);
    if (!y->node || !(price(self, y->node) < price(self, conv) + price(self, n)))
        return; /* what nothing reads is swept away */
    fac_node_stands_for(y->node, conv);
    fac_replace(n->out[0], y);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    if (FAC_IS(n, max_pool2d) && n->out[0]->time == FAC_RUN) fuse(to, n, by->price, by->self);
}

fac_graph *fac_pass_conv_pools(const fac_graph *g, fac_price *price, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .price = price, .self = self });
}

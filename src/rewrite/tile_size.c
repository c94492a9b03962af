/* Which nodes are products, and how large:
 *
 *   linear    x[..., K] w[N, K]' + b     all leading dims of x are rows
 *   gemm      alpha a b + beta c         as it is
 *   matmul    a[..., M, K] b[..., K, N]  one product for each matrix of a batch; one in all where b
 *             has two dims
 *   conv      see tile_conv.c            one for each image and group; depthwise ones are no
 *             products for a matrix unit
 *   conv_transpose  see tile_conv_transpose.c  one for each image, group, and phase of the stride
 *                   that some weight meets */
#include <string.h>
#include "ops/conv_transpose.h"
#include "graph/attr.h"
#include "op_list.h"
#include "rewrite/tile.h"

enum { PHASES = 4096 }; /* strides of a transposed convolution, multiplied */

static bool open_size(const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && fac_dims_count(&n->in[i]->type.dims) < 0) return true;
    return fac_dims_count(&n->out[0]->type.dims) < 0;
}

static fac_tile_size of_linear(const fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    const int64_t k = x->d[x->n - 1];
    return (fac_tile_size){ { k ? fac_dims_count(x) / k : 0, n->in[1]->type.dims.d[0], k }, 1, 1 };
}

static fac_tile_size of_gemm(const fac_node *n) {
    const fac_dims *y = &n->out[0]->type.dims;
    return (fac_tile_size){
        { y->d[0], y->d[1], n->in[0]->type.dims.d[!fac_attr_flag(n, "trans_a")] }, 1, 1
    };
}

static fac_tile_size of_matmul(const fac_node *n) {
    const fac_dims *a = &n->in[0]->type.dims, *b = &n->in[1]->type.dims, *y = &n->out[0]->type.dims;
    const int64_t m = a->n > 1 ? a->d[a->n - 2] : 1;
    const int64_t cols = b->n > 1 ? b->d[b->n - 1] : 1;
    const int64_t k = a->d[a->n - 1];
    const int64_t all = fac_dims_count(y), count = m > 0 && cols > 0 ? all / (m * cols) : 0;
    if (b->n <= 2) return (fac_tile_size){ { m * count, cols, k }, 1, 1 };
    return (fac_tile_size){ { m, cols, k }, count, 1 };
}

static fac_tile_size of_conv(const fac_tile_opts *o, const fac_conv_geom *g) {
    const int64_t taps = g->T * g->R * g->S, depth = g->C / g->groups,
                  positions = g->O * g->P * g->Q;
    const bool each = o->conv == FAC_TILE_TAPS;
    const int64_t k = each ? depth : depth * taps;
    const int64_t count = g->N * g->groups * (each ? taps : 1);
    return (fac_tile_size){ { g->K / g->groups, positions, k }, count, taps };
}

/* Phases with as many taps are one row; 0: there are too many of them to be convolutions of their
 * own. */
static int of_transposed(const fac_tile_opts *o, const fac_node *n, const fac_conv_geom *g,
                         fac_tile_size to[FAC_TILE_SIZES]) {
    const bool each = o->conv == FAC_TILE_TAPS;
    const int64_t depth = g->K / g->groups;
    int64_t phases[3] = { 1, 1, 1 }, positions = 1;
    fac_tile_phases line[3];
    int rank, rows = 0;
    for (int k = 0; k < g->rank; k++) {
        line[k] = fac_tile_phases_of(n, k, &rank);
        phases[k] = line[k].stride;
        positions *= line[k].positions;
    }
    const int64_t all = fac_dims_count(&(fac_dims){ 3, { phases[0], phases[1], phases[2] } });
    for (int64_t i = 0; all > 0 && all <= PHASES && i < all; i++) {
        const int64_t at[3] = { i / phases[2] / phases[1], i / phases[2] % phases[1],
                                i % phases[2] };
        int64_t taps = 1;
        for (int k = 0; k < g->rank; k++) taps *= fac_tile_phase(&line[k], at[k]).seen.taps;
        if (!taps) continue;
        const int64_t k = each ? depth : depth * taps;
        const int64_t count = g->N * g->groups * (each ? taps : 1);
        const fac_tile_size s = { { g->C / g->groups, positions, k }, count, taps };
        int row = 0;
        while (row < rows && to[row].taps != taps) row++;
        if (row < rows)
            to[row].count += s.count;
        else if (rows < FAC_TILE_SIZES)
            to[rows++] = s;
    }
    return rows;
}

static bool is_product(const fac_node *n) {
    return FAC_IS(n, linear) || FAC_IS(n, gemm) || FAC_IS(n, matmul) || FAC_IS(n, conv1d) ||
           FAC_IS(n, conv2d) || FAC_IS(n, conv3d) || n->op->layer == FAC_CLASS_CONV_TRANSPOSE;
}

int fac_tile_sizes(const fac_tile_opts *o, const fac_node *n, fac_tile_size to[FAC_TILE_SIZES],
                   const char **why) {
    fac_conv_geom g;
    int rows = 1;
    bool depthwise = false;
    *why = NULL;
    to[0] = (fac_tile_size){ { 0 }, 0, 1 };
    if (!is_product(n) || n->body[0]) return 0;
    if (open_size(n)) {
        *why = "its size depends on contents";
        return 1;
    }
    if (FAC_IS(n, linear))
        to[0] = of_linear(n);
    else if (FAC_IS(n, gemm))
        to[0] = of_gemm(n);
    else if (FAC_IS(n, matmul))
        to[0] = of_matmul(n);
    else if (fac_conv_geometry(n, &g)) {
        to[0] = of_conv(o, &g);
        depthwise = g.groups > 1 && g.groups == g.C;
    } else if (fac_conv_transpose_geometry(n, &g)) {
        rows = of_transposed(o, n, &g, to);
        if (!rows) {
            *why = "its strides make too many phases, or none that a weight meets";
            rows = 1;
        }
        depthwise = g.groups > 1 && g.groups == g.K;
    } else
        return 0;
    if (depthwise) *why = "depthwise: no product for a matrix unit";
    for (int k = 0; k < rows && !*why; k++)
        if (to[k].count < 1 || to[k].d[0] < 1 || to[k].d[1] < 1 || to[k].d[2] < 1) return 0;
    return rows;
}

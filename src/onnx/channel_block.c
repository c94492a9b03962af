/* Blocks of channels in files with operators of com.microsoft.nchwc.
 *
 * Such a file does not say how long they are: ONNX Runtime writes it for the machine that it runs
 * on, and reads it only there.  Outputs of convolutions are whole blocks, so that a number of them
 * that is no multiple of 16 tells blocks of 8.  Where none tells, blocks are those of this machine,
 * as ONNX Runtime takes them. */
#include <string.h>
#include "base/table.h"
#include "onnx/import.h"

enum { WIDE = 16, NARROW = 8 };

static int64_t of_this_machine(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? WIDE : NARROW;
#elif defined(__aarch64__)
    return WIDE;
#else
    return NARROW;
#endif
}

/* Outputs of the convolution at a node of the file, 0: it is another node, or they are not known.
 */
static int64_t outputs_of(const fac_onnx_node *n, const fac_proto_node *at) {
    const fac_body *b = ((const fac_import_node *)n->self)->body;
    if (strcmp(at->domain, n->domain) || strcmp(at->type, "Conv") || at->in.n < 2) return 0;
    const fac_definition *w = fac_table_get(&b->names, at->in.at[1]);
    if (!w || w->maker != FAC_MADE_BY_TENSOR) return 0;
    const fac_value *v = fac_onnx_named(n, at->in.at[1]);
    return v && v->type.dims.n ? v->type.dims.d[0] : 0;
}

int64_t fac_onnx_channel_block(const fac_onnx_node *n) {
    const fac_proto_nodes *all = ((const fac_import_node *)n->self)->body->nodes;
    for (size_t k = 0; k < all->n; k++)
        if (outputs_of(n, &all->at[k]) % WIDE) return NARROW;
    return of_this_machine();
}

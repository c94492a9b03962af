/* See flow.h: a node whose op works on tensors of the host. */
#include "base/error.h"
#include "base/memory.h"
#include "run/flow.h"
#include "tensor/tensor_internal.h"

static bool lies_plain(const fac_tensor *t) { return !t->storage->ops && t->contiguous; }

/* in[] as contiguous tensors of the host: those that are not are copied to own[]. */
static fac_status bring(const fac_node *n, fac_tensor *const in[], fac_tensor *to[],
                        fac_tensor *own[], fac_error *err) {
    for (int i = 0; i < n->nin; i++) {
        to[i] = in[i];
        if (!in[i]) continue;
        FAC_TRY(fac_storage_home(in[i]->storage, err));
        if (lies_plain(in[i])) continue;
        FAC_TRY(fac_tensor_copy_contiguous(in[i], &own[i], err));
        to[i] = own[i];
    }
    return FAC_OK;
}

fac_status fac_host_op_run(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
                           fac_error *err) {
    fac_tensor **all = fac_alloc(2 * (size_t)n->nin + 1, sizeof *all), **own = all + n->nin;
    if (!all) return fac_raise_memory(err, "%d operands", n->nin);
    fac_status status = bring(n, in, all, own, err);
    if (!status) status = n->op->host(n, all, out, err);
    for (int i = 0; i < n->nin; i++) fac_tensor_free(own[i]);
    fac_release(all);
    return status;
}

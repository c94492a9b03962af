/* A node of constants, as tensors: how passes compute. */
#include "base/error.h"
#include "ref/ref.h"
#include "tensor/tensor_internal.h"

fac_status fac_ref_evaluate(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
                            fac_error *err) {
    enum { FEW = 32 };
    fac_host x[FEW] = { 0 }, y[FEW] = { 0 };
    fac_status status = FAC_OK;
    if (!fac_ref_able(n)) return FAC_E_UNSUPPORTED;
    for (int i = 0; i < n->nin; i++)
        if (in[i])
            x[i] = (fac_host){ fac_tensor_type(in[i]), fac_tensor_memory(in[i]),
                               n->in[i]->known };
    for (int k = 0; k < n->nout && !status; k++) {
        void *data = NULL;
        status = fac_tensor_new_on(NULL, NULL, n->out[k]->type, true, &out[k], err);
        if (!status) status = fac_tensor_begin_write(out[k], &data, err);
        y[k] = (fac_host){ n->out[k]->type, data, NULL };
    }
    if (!status) status = fac_ref_node(n, x, y, NULL, err);
    for (int k = 0; k < n->nout && !status; k++) /* texts are borrowed from inputs */
        if (n->out[k]->type.dtype == FAC_TEXT && fac_type_bytes(&n->out[k]->type))
            status = fac_tensor_write(out[k], fac_tensor_data(out[k]),
                                      fac_type_bytes(&n->out[k]->type), err);
    for (int k = 0; status && k < n->nout; k++) {
        fac_tensor_free(out[k]);
        out[k] = NULL;
    }
    return status;
}

/* Rows by heads: Hugging Face's GPT-NeoX has those of q, k and v head by head, here they lie one
 * kind after the other; GGUF's Llama has the two halves of a head in pairs. */
#include <string.h>
#include "base/error.h"
#include "lm/lm.h"
#include "tensor/tensor_internal.h"

/* The order in which rows are taken. */
typedef struct order {
    int64_t n[3], step[3]; /* n = 0: as they are */
} order;

static order order_of(const fac_lm *m, const char *name, bool theirs) {
    const int64_t D = m->c.head, H = m->c.heads;
    const bool qkv = strstr(name, "attn_qkv."), q = strstr(name, "attn_q."),
               k = strstr(name, "attn_k.");
    if (qkv && m->c.is & FAC_LM_PER_HEAD) {
        if (theirs) return (order){ { H, 3, D }, { D, H * D, 1 } };
        return (order){ { 3, H, D }, { D, 3 * D, 1 } };
    }
    if ((q || k) && m->c.is & FAC_LM_NEIGHBOURS) {
        const int64_t heads = q ? H : m->c.kv_heads;
        if (theirs) return (order){ { heads, 2, D / 2 }, { D, 1, 2 } };
        return (order){ { heads, D / 2, 2 }, { D, 1, D / 2 } };
    }
    return (order){ 0 };
}

fac_status fac_lm_by_heads(const fac_lm *m, const char *canonical, bool theirs, fac_tensor *t,
                           fac_tensor **out, fac_error *err) {
    const order o = order_of(m, canonical, theirs);
    const fac_dims d = fac_tensor_type(t).dims;
    const int64_t w = d.n > 1 ? d.d[1] : 1;
    if (!o.n[0]) {
        *out = fac_tensor_retain(t);
        return FAC_OK;
    }
    if (d.d[0] != o.n[0] * o.n[1] * o.n[2])
        return fac_raise(err, FAC_E_FORMAT, "%s: %lld rows, expected %lld", canonical,
                         (long long)d.d[0], (long long)(o.n[0] * o.n[1] * o.n[2]));
    fac_tensor *view, *copy;
    const int64_t strides[] = { o.step[0] * w, o.step[1] * w, o.step[2] * w, 1 };
    FAC_TRY(fac_tensor_view(t, fac_shape(o.n[0], o.n[1], o.n[2], w), strides, 0, &view, err));
    fac_status status = fac_tensor_copy_contiguous(view, &copy, err);
    fac_tensor_free(view);
    if (status) return status;
    status = fac_tensor_view(copy, d, NULL, 0, out, err);
    fac_tensor_free(copy);
    return status;
}

/* Recurrent layers into ONNX: RNN, GRU and LSTM, with time as the first dim and the gates in ONNX's
 * order. */
#include "base/memory.h"
#include "graph/onnx_write.h"
#include "ops/onnx_put.h"
#include "ops/recurrent.h"

/* Where ONNX's gates are among PyTorch's: z r h in r z n, and i o f c in i f c o. */
static const int *torch_order(int64_t gates) {
    static const int rnn[] = { 0 }, gru[] = { 1, 0, 2 }, lstm[] = { 0, 3, 1, 2 };
    if (gates == 4) return lstm;
    return gates == 3 ? gru : rnn;
}

/* Axis 1 of w, r or b, which has `parts` blocks of H rows, in ONNX's order of the gates; NULL when
 * memory is gone. */
static const char *reordered(const fac_onnx_writer *w, const fac_value *v, int64_t gates, int64_t H,
                             int64_t parts) {
    int64_t *rows = fac_alloc((size_t)(parts * H), sizeof *rows);
    if (!rows) return NULL;
    for (int64_t k = 0; k < parts; k++)
        for (int64_t i = 0; i < H; i++)
            rows[k * H + i] = (k / gates * gates + torch_order(gates)[k % gates]) * H + i;
    const char *list = fac_onnx_list(w, (int)(parts * H), rows);
    fac_release(rows);
    const char *y = fac_onnx_binary(w, "Gather", fac_onnx_name(w, v), list, NULL);
    fac_onnx_put_int(w, "axis", 1);
    return y;
}

static const char *transposed(const fac_onnx_writer *w, const char *x, int n, const int64_t *perm,
                              const char *y) {
    y = fac_onnx_unary(w, "Transpose", x, y);
    fac_onnx_put_ints(w, "perm", n, perm);
    return y;
}

static const int64_t swap[] = { 1, 0, 2 };

/* ONNX has lengths of i32, and what is beyond all steps means all of them: cut off before it wraps.
 */
static const char *lengths(const fac_onnx_writer *w, const fac_node *n) {
    const fac_recurrent_opts *o = n->attrs;
    const fac_value *v = n->in[FAC_CELL_LENGTHS], *x = n->in[FAC_CELL_X];
    const int64_t steps = x->guess == FAC_RANKLESS ? -1 : x->type.dims.d[o->batch_first];
    const fac_dtype t = v->type.dtype;
    const char *in[] = { fac_onnx_name(w, v), NULL, NULL };
    if (t == FAC_I32) return in[0];
    if (fac_dtype_get(t)->bits >= 32 && w->opset >= 12) {
        in[1] = fac_onnx_number(w, t, 0);
        in[2] = fac_onnx_number(w, t, (double)(steps >= 0 ? steps : INT32_MAX));
        in[0] = fac_onnx_put(w, "Clip", 3, in, NULL);
    }
    return fac_onnx_cast(w, in[0], FAC_I32, NULL);
}

/* The operands as ONNX has them; false when memory is gone. */
static bool operands(const fac_onnx_writer *w, const fac_node *n, int64_t H, int64_t gates,
                     const char *in[]) {
    const fac_recurrent_opts *o = n->attrs;
    for (int k = 0; k < n->nin; k++) {
        const fac_value *v = n->in[k];
        const bool weight = k == FAC_CELL_W || k == FAC_CELL_R || k == FAC_CELL_B;
        in[k] = fac_onnx_name(w, v);
        if (!v) continue;
        if (weight && o->torch_gates && gates > 1) {
            in[k] = reordered(w, v, gates, H, k == FAC_CELL_B ? 2 * gates : gates);
            if (!in[k]) return false;
        } else if (k == FAC_CELL_LENGTHS) {
            in[k] = lengths(w, n);
        } else if (o->batch_first && (k == FAC_CELL_X || k == FAC_CELL_H0 || k == FAC_CELL_C0)) {
            in[k] = transposed(w, in[k], 3, swap, NULL);
        }
    }
    return true;
}

/* Names of the activations, and the numbers of those that take some. */
static void put_activations(const fac_onnx_writer *w, const fac_recurrent_opts *o,
                            const fac_cell_kind *kind) {
    enum { MOST = 2 * FAC_CELL_ACTIVATIONS };
    const char *names[MOST];
    double alphas[MOST], betas[MOST];
    int n = 0, nalpha = 0, nbeta = 0, numbers;
    for (int d = 0; d < fac_cell_directions(o); d++) {
        fac_activation act[FAC_CELL_ACTIVATIONS];
        fac_cell_activations(o, kind, d, act);
        for (int k = 0; k < kind->activations; k++) {
            names[n++] = fac_activation_name(act[k].kind, &numbers);
            if (numbers > 0) alphas[nalpha++] = act[k].alpha;
            if (numbers > 1) betas[nbeta++] = act[k].beta;
        }
    }
    fac_onnx_put_texts(w, "activations", n, names);
    if (nalpha) fac_onnx_put_reals(w, "activation_alpha", nalpha, alphas);
    if (nbeta) fac_onnx_put_reals(w, "activation_beta", nbeta, betas);
}

static void put_attributes(const fac_onnx_writer *w, const fac_node *n, int64_t H,
                           const fac_cell_kind *kind) {
    const fac_recurrent_opts *o = n->attrs;
    fac_onnx_put_int(w, "hidden_size", H);
    fac_onnx_put_text(w, "direction", fac_direction_names[o->direction]);
    if (o->activations && *o->activations) put_activations(w, o, kind);
    if (o->clip > 0) fac_onnx_put_real(w, "clip", o->clip);
    if (o->input_forget) fac_onnx_put_int(w, "input_forget", 1);
    if (o->linear_before_reset) fac_onnx_put_int(w, "linear_before_reset", 1);
}

/* The outputs come with time and directions first; those of a layer with the batch first are
 * transposed after it. */
bool fac_cell_save(const fac_onnx_writer *w, const fac_node *n, const fac_cell_kind *kind) {
    enum { MOST = 1 << 20 };
    static const int64_t batch_in_front[] = { 2, 0, 1, 3 };
    const fac_recurrent_opts *o = n->attrs;
    const fac_value *r = n->in[FAC_CELL_R];
    const int64_t H = r->guess == FAC_RANKLESS ? -1 : r->type.dims.d[2];
    const char *in[FAC_CELL_INPUTS] = { NULL }, *want[3] = { NULL }, *have[3] = { NULL };
    if (H < 0 || H > MOST || !operands(w, n, H, kind->gates, in)) return false;
    for (int k = 0; k < n->nout; k++) {
        want[k] = fac_onnx_name(w, n->out[k]);
        have[k] = want[k] && o->batch_first ? fac_onnx_fresh(w) : want[k];
    }
    fac_onnx_put(w, n->op->onnx->type, n->nin, in, have[0] ? have[0] : "");
    for (int k = 1; k < n->nout; k++) fac_onnx_put_out(w, have[k]);
    put_attributes(w, n, H, kind);
    if (!o->batch_first) return true;
    if (want[0]) transposed(w, have[0], 4, batch_in_front, want[0]);
    for (int k = 1; k < n->nout; k++)
        if (want[k]) transposed(w, have[k], 3, swap, want[k]);
    return true;
}

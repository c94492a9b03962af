/* Layers in a row, from a line of text. */
#include "facula/nn/mlp.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "nn/nn_internal.h"

static const struct {
    const char *name;
    fac_value *(*op)(fac_value *x);
} activations[] = { { "relu", fac_relu },
                    { "tanh", fac_tanh },
                    { "sigmoid", fac_sigmoid },
                    { "gelu", fac_gelu },
                    { "linear", NULL } };
enum { ACTIVATIONS = sizeof activations / sizeof *activations, WORD = 16 };

static int find(const char *word) {
    int k = 0;
    while (k < ACTIVATIONS && strcmp(activations[k].name, word)) k++;
    return k;
}

static fac_status take(fac_mlp *m, const char *word, bool last, fac_error *err) {
    char *end;
    const long width = strtol(word, &end, 10);
    if (end != word && !*end) {
        if (m->n == FAC_MLP_LAYERS)
            return fac_raise(err, FAC_E_ARGUMENT, "a network has at most %d hidden layers",
                             FAC_MLP_LAYERS);
        if (width < 1 || width > FAC_MLP_WIDTH)
            return fac_raise(err, FAC_E_ARGUMENT, "a layer is 1 to %d wide, not %s", FAC_MLP_WIDTH,
                             word);
        m->width[m->n++] = (int)width;
        return FAC_OK;
    }
    const int k = find(word);
    if (!last || k == ACTIVATIONS)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a network is widths and relu, tanh, sigmoid, gelu or linear, "
                         "such as 16,16,tanh; \"%s\" is neither",
                         word);
    m->activation = activations[k].name;
    return FAC_OK;
}

fac_status fac_mlp_parse(const char *text, fac_mlp *out, fac_error *err) {
    fac_mlp m = { .activation = activations[0].name };
    for (const char *at = text; *at;) {
        char word[WORD];
        const size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(n < WORD ? n : WORD), at);
        at += n;
        FAC_TRY(take(&m, word, !*at, err));
        if (*at && !*++at) return fac_raise(err, FAC_E_ARGUMENT, "\"%s\" ends in a comma", text);
    }
    *out = m;
    return FAC_OK;
}

void fac_mlp_text(const fac_mlp *m, char *to, size_t size) {
    size_t at = 0;
    for (int k = 0; k < m->n && at < size; k++)
        at += (size_t)snprintf(to + at, size - at, "%d,", m->width[k]);
    if (at < size) snprintf(to + at, size - at, "%s", m->activation);
}

fac_value *fac_nn_mlp(fac_value *x, const fac_mlp *m, int outputs, fac_value *hidden[]) {
    char name[16];
    fac_value *(*op)(fac_value *) = activations[find(m->activation)].op;
    x = fac_flatten(x, 1);
    for (int k = 0; k < m->n; k++) {
        snprintf(name, sizeof name, "fc%d", k + 1);
        x = fac_nn_linear(x, name, m->width[k]);
        if (op) x = op(x);
        if (hidden) hidden[k] = x;
    }
    snprintf(name, sizeof name, "fc%d", m->n + 1);
    return fac_nn_linear(x, name, outputs);
}

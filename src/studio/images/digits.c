/* From the bytes of digits.bin to the parameters of LeNet-5. */
#include "studio/images/digits.h"
#include <stdint.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/nn/zoo.h"
#include "studio_digits.h"

typedef struct reader {
    const unsigned char *at;
    size_t left;
} reader;

/* n bytes, or NULL if fewer are left. */
static const unsigned char *take(reader *r, size_t n) {
    const unsigned char *at = r->at;
    if (n > r->left) return NULL;
    r->at += n;
    r->left -= n;
    return at;
}

static float number(const unsigned char *p) {
    const uint32_t bits = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* `rows` scales, then a signed byte per weight. */
static bool read_weights(reader *r, size_t rows, size_t width, float *to) {
    const unsigned char *scale = take(r, 4 * rows), *byte = scale ? take(r, rows * width) : NULL;
    for (size_t i = 0; byte && i < rows; i++)
        for (size_t k = 0; k < width; k++)
            to[i * width + k] = number(scale + 4 * i) * (float)(int8_t)byte[i * width + k];
    return byte != NULL;
}

static bool read_bias(reader *r, size_t n, float *to) {
    const unsigned char *x = take(r, 4 * n);
    for (size_t k = 0; x && k < n; k++) to[k] = number(x + 4 * k);
    return x != NULL;
}

static fac_status fill(reader *r, fac_tensor *t, fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    const size_t n = (size_t)fac_dims_count(&type.dims), rows = (size_t)type.dims.d[0];
    float *x = fac_alloc(n, sizeof *x);
    if (!x) return fac_raise_memory(err, "the network for digits");
    const bool whole = type.dims.n > 1 ? read_weights(r, rows, n / rows, x) : read_bias(r, n, x);
    const fac_status status = whole ? fac_tensor_write(t, x, n * sizeof *x, err)
                                    : fac_raise(err, FAC_E_INTERNAL, "digits.bin is too short");
    fac_release(x);
    return status;
}

fac_status fac_studio_digits(fac_graph **out, fac_error *err) {
    reader r = { (const unsigned char *)studio_digits, sizeof studio_digits - 1 };
    fac_graph *g;
    FAC_TRY(fac_zoo_new("lenet", NULL, 0, &g, err));
    fac_status status = FAC_OK;
    for (int i = 0; i < fac_graph_params(g) && !status; i++)
        status = fill(&r, fac_value_tensor(fac_graph_param(g, i)), err);
    if (!status && r.left)
        status = fac_raise(err, FAC_E_INTERNAL, "digits.bin is too long by %zu bytes", r.left);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}

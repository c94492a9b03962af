/* Small networks of few bits as packed files. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "facula/nn.h"
#include "facula/quantize.h"
#include "fuzz.h"

static fac_graph *network(const char *scheme) {
    fac_graph *g = fac_graph_new(), *q = NULL;
    static const char *const names[] = { "a", "b", "c" };
    const fac_nn_conv2d_opts o = { .pad = 1 };
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, 1, 3, 3));
    for (int k = 0; k < 3; k++) x = fac_relu(fac_nn_conv2d(x, names[k], 3, 3, &o));
    fac_output(g, "y", x);
    fac_graph_set_note(g, "key", "text");
    fac_graph_quantize(g, &(fac_quantizing){ .n = 1, .schemes = &scheme }, &q, NULL, NULL);
    fac_graph_free(g);
    return q;
}

void fac_seeds(fac_seed_taker *take, void *self) {
    static const char *const schemes[] = { "lq:w1a2", "lq:w3a1", "bnn" };
    for (int k = 0; k < 3; k++) {
        static char bytes[1 << 16];
        char path[] = "/tmp/facula_seed_XXXXXX";
        const int f = mkstemp(path);
        fac_graph *g = f < 0 ? NULL : network(schemes[k]);
        if (g && !fac_packed_save(g, path, NULL, NULL)) {
            FILE *in = fopen(path, "rb");
            const size_t n = in ? fread(bytes, 1, sizeof bytes, in) : 0;
            if (in) fclose(in);
            take(self, schemes[k], bytes, n);
        }
        fac_graph_free(g);
        if (f >= 0) close(f);
        if (f >= 0) unlink(path);
    }
}

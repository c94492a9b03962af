// Every public header as C++17, and what of them is not a plain declaration there.
#include "facula/facula.h"
#include "facula/op.h"
#include "facula/backend.h"
#include "facula/opencl.h"
#include <cstdio>

static int bad;
static void check(bool ok, const char *what) {
    if (ok) return;
    std::printf("FAILED: %s\n", what);
    bad++;
}

int main() {
    const int width = 28;
    const fac_dims d = fac_shape(1, int64_t{ 3 }, width, 7);
    check(d.n == 4 && d.d[0] == 1 && d.d[1] == 3 && d.d[2] == 28 && d.d[3] == 7, "fac_shape");
    check(fac_shape(5).n == 1, "fac_shape of one size");

    fac_error err = {};
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 1, 28, 28));
    fac_output(g, "y", fac_nn_linear(fac_flatten(fac_relu(x), 1), "fc", 10));
    check(fac_graph_check(g, &err) == FAC_OK, err.text);
    fac_graph_free(g);

    fac_preprocess how = {};
    check(fac_preprocess_parse("caffe,crop=227", &how, &err) == FAC_OK && how.bgr,
          "fac_preprocess_parse");
    check(fac_preset_find("imagenet") != nullptr, "fac_preset_find");
    check(fac_preset_find("none") == nullptr, "fac_preset_find of none");
    if (!bad) std::puts("every header is C++17");
    return bad != 0;
}

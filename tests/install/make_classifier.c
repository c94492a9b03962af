/* Writes a small ONNX classifier, x [N,3,224,224] -> GlobalAveragePool -> Flatten -> Gemm -> 1000
 * scores, for tests that need a model file: make_classifier OUT.onnx.  The class that wins is 950
 * for bright photos. */
#include "../support/onnx_writer.h"

int main(int argc, char **argv) {
    static float w[3 * 1000], c[1000];
    for (int k = 0; k < 3000; k++) w[k] = k % 1000 == 950 ? 1.0f : 0.1f / (float)(1 + k % 1000);
    bytes g = { 0 };
    w_sub(&g, 1, w_node("GlobalAveragePool", "x", "mean"));
    w_sub(&g, 1, w_node("Flatten", "mean", "flat"));
    w_sub(&g, 1, w_node("Gemm", "flat,w,c", "y"));
    w_sub(&g, 5, w_tensor_f32("w", "3,1000", w, 3000));
    w_sub(&g, 5, w_tensor_f32("c", "1000", c, 1000));
    w_sub(&g, 11, w_value("x", 1, "N,3,224,224"));
    w_sub(&g, 12, w_value("y", 1, "N,1000"));
    bytes m = w_model(g, 8, 13);
    FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (!f || fwrite(m.p, 1, m.n, f) != m.n || fclose(f)) return 1;
    free(m.p);
    return 0;
}

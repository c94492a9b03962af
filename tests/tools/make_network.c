/* Writes a network with random weights as an ONNX file, for checks by other programs:
 *
 *   make_network minilm LAYERS OUT.onnx      x [1,128,384] -> blocks of 12 heads and 1536 hidden,
 *       the sizes of MiniLM
 *   make_network encoder LAYERS OUT.onnx     half as wide, with relu and heads whose scale is 1/4:
 *       integers stay
 *   make_network NAME SIZE OUT.onnx          a network of the zoo for images of SIZE x SIZE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "facula/facula.h"

static fac_value *encoder(fac_value *x, int layers, int width) {
    const fac_nn_transformer_opts block = { .feedforward = 4 * width,
                                            .batch_first = true,
                                            .activation = width < 384 ? NULL : fac_gelu };
    for (int k = 0; k < layers; k++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%d", k);
        x = fac_nn_transformer_encoder_layer(x, name, 12, &block);
    }
    return x;
}

int main(int argc, char **argv) {
    fac_error err = { FAC_OK, "" };
    if (argc != 4) return 2;
    const int size = atoi(argv[2]);
    int width = 0;
    if (!strcmp(argv[1], "minilm")) width = 384;
    if (!strcmp(argv[1], "encoder")) width = 192;
    const fac_zoo *zoo = width ? NULL : fac_zoo_find(argv[1]);
    if (!width && !zoo) return 2;
    fac_graph *g = fac_graph_new();
    if (!g) return 1;
    fac_nn_seed(g, 1);
    fac_value *x =
        fac_input(g, "x", FAC_F32,
                  width ? fac_shape(1, 128, width) : fac_shape(1, zoo->channels, size, size));
    fac_output(g, "y", width ? encoder(x, size, width) : zoo->build(x));
    fac_graph *still = fac_graph_inference(g);
    const int failed = !still || fac_onnx_save(still, argv[3], NULL, &err);
    if (failed) fprintf(stderr, "make_network: %s\n", err.text);
    fac_graph_free(still);
    fac_graph_free(g);
    return failed;
}

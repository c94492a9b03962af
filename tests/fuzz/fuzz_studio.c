/* libFuzzer: what the playground's page sends: expressions, drawings, settings of the page of
 * points.  The first byte chooses. */
#include <stdlib.h>
#include <string.h>
#include "facula/ops.h"
#include "fuzz.h"
#include "studio/sandbox/expression.h"
#include "studio/points/points.h"
#include "studio/images/sketch.h"

/* A result is a step of the expression, and every step reads earlier ones. */
static void try_expression(const char *text) {
    expression e = { .g = fac_graph_new(), .dtype = FAC_F64 };
    int result = -1;
    if (!e.g) return;
    strcpy(e.of[0].name, "x");
    e.of[e.n++].value = fac_input(e.g, "x", FAC_F64, fac_shape(3));
    if (!fac_expression_read(&e, text, &result, NULL)) {
        if (result < 0 || result >= e.n || e.n > EXPRESSION_STEPS) abort();
        for (int k = 0; k < e.n; k++)
            for (int i = 0; i < e.of[k].n; i++)
                if (e.of[k].in[i] < 0 || e.of[k].in[i] >= k) abort();
    }
    fac_graph_free(e.g);
}

static void try_drawing(const cJSON *j) {
    uint8_t image[SKETCH_SIDE * SKETCH_SIDE];
    fac_sketch_read(j, image, NULL);
}

/* What is taken is within its ranges. */
static void try_settings(const cJSON *j) {
    points_setup s;
    fac_points_setup_usual(&s);
    fac_points_setup_read(&s, j, NULL);
    if (s.count < 1 || s.count > POINTS_MOST || s.n < 0 || s.n > POINTS_MOST || !(s.lr > 0))
        abort();
    if (s.net.n < 0 || s.net.n > FAC_MLP_LAYERS || !fac_points_setup_same(&s, &s)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = bytes ? malloc(bytes) : NULL;
    if (!text) return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = 0;
    cJSON *j = data[0] == 'e' ? NULL : cJSON_Parse(text);
    if (data[0] == 'e')
        try_expression(text);
    else if (data[0] == 'd' && j)
        try_drawing(j);
    else if (j)
        try_settings(j);
    cJSON_Delete(j);
    free(text);
    return 0;
}

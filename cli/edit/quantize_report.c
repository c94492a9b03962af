/* What facula quantize says of its layers. */
#include <math.h>
#include <string.h>
#include "json.h"
#include "quantize.h"

static const char *decibels(double x, char to[16]) {
    snprintf(to, 16, isfinite(x) ? "%.1f" : "-", x);
    return to;
}

static int name_width(const quantized *q) {
    enum { LEAST = 8, MOST = 44 };
    int width = LEAST;
    const fac_integer_layer *l;
    for (int i = 0; (l = fac_calibrator_layer(q->by, i)); i++)
        if ((int)strlen(l->name) > width) width = (int)strlen(l->name);
    return width < MOST ? width : MOST;
}

static void print_row(const fac_integer_layer *l, int width) {
    char before[32], after[32], weights[16], output[16];
    bytes_text(l->bytes_before, before, sizeof before);
    bytes_text(l->bytes, after, sizeof after);
    if (l->kept) snprintf(after, sizeof after, l->few_bits ? "bits" : "float");
    printf("%-*s  %-10s  %9s  %9s  %10s  %9s\n", width, end_of(l->name, width), l->op, before,
           after, decibels(l->kept ? INFINITY : l->weight_sqnr, weights),
           decibels(l->output_sqnr, output));
}

/* What few bits lose without training is much, as a rule. */
static void print_loss(const quantized *q) {
    const double lost = 100 * (q->right_before - q->right) / q->tested;
    if (strncmp(q->scheme, "lq:", 3) || lost < 0.5) return;
    printf("%.2f points are lost without training; `facula train --weights --quantize %s` learns "
           "the levels and loses less\n",
           lost, q->scheme);
}

static void print_accuracy(const quantized *q) {
    if (!q->tested) return;
    printf("accuracy %.2f %% before, %.2f %% after; %.0f of %.0f answers are the same\n",
           100 * q->right_before / q->tested, 100 * q->right / q->tested, q->same, q->tested);
    print_loss(q);
}

static void print_float_inputs(int n) {
    if (!n) return;
    printf("inputs of %d layer%s stay floats: samples go below 0 there, where levels after a relu "
           "have none\n",
           n, plural(n));
}

int quantize_print(const quantized *q) {
    const int width = name_width(q);
    const fac_integer_layer *l;
    char bytes[32], before[32];
    int n = 0, kept = 0, rest = 0, floats = 0;
    printf("%-*s  %-10s  %9s  %9s  %10s  %9s\n", width, "layer", "op", "before", "after",
           "weights dB", "result dB");
    for (; (l = fac_calibrator_layer(q->by, n)); n++) {
        print_row(l, width);
        kept += l->kept;
        rest += l->rest;
        floats += l->float_input;
    }
    printf("\n%s: %s of %s, %d of %d layer%s", q->out, bytes_text(q->bytes, bytes, sizeof bytes),
           q->scheme, n - kept - rest, n, plural(n));
    if (rest) printf(", weights of %d as bytes", rest);
    printf("; parameters took %s before; %ld sample%s\n",
           bytes_text(q->bytes_before, before, sizeof before), q->samples,
           plural((double)q->samples));
    print_float_inputs(floats);
    if (q->drawn) printf("%s: what becomes which level\n", q->drawn);
    print_accuracy(q);
    photo_plan_print(&q->plan);
    return EXIT_OK;
}

/* ---- for machines ---- */

static void add_decibels(cJSON *to, const char *key, double x) {
    if (isfinite(x))
        json_number(to, key, x, 6);
    else
        cJSON_AddNullToObject(to, key);
}

static cJSON *layer(const fac_integer_layer *l) {
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "name", l->name);
    cJSON_AddStringToObject(j, "op", l->op);
    cJSON_AddBoolToObject(j, "float", l->kept && !l->few_bits);
    cJSON_AddBoolToObject(j, "few_bits", l->few_bits);
    cJSON_AddBoolToObject(j, "rest", l->rest);
    cJSON_AddBoolToObject(j, "float_input", l->float_input);
    cJSON_AddNumberToObject(j, "bytes", l->bytes);
    cJSON_AddNumberToObject(j, "bytes_before", l->bytes_before);
    add_decibels(j, "weight_sqnr", l->weight_sqnr);
    add_decibels(j, "result_sqnr", l->output_sqnr);
    return j;
}

int quantize_json(const quantized *q) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", q->out);
    cJSON_AddStringToObject(root, "scheme", q->scheme);
    cJSON_AddNumberToObject(root, "bytes", q->bytes);
    cJSON_AddNumberToObject(root, "parameter_bytes_before", q->bytes_before);
    cJSON_AddNumberToObject(root, "samples", (double)q->samples);
    if (q->tested) {
        json_number(root, "accuracy_before", q->right_before / q->tested, 9);
        json_number(root, "accuracy", q->right / q->tested, 9);
        cJSON_AddNumberToObject(root, "tested", q->tested);
        cJSON_AddNumberToObject(root, "same_answers", q->same);
    }
    cJSON *layers = cJSON_AddArrayToObject(root, "layers");
    const fac_integer_layer *l;
    for (int i = 0; (l = fac_calibrator_layer(q->by, i)); i++)
        cJSON_AddItemToArray(layers, layer(l));
    if (q->levels) levels_json(q->levels, root);
    photo_plan_json(&q->plan, root);
    return json_print(root);
}

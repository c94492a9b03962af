/* How few bits a model's products have, in words: see bits.h. */
#include "bits.h"
#include "analyze/summary/summary.h"

const char *bits_text(const fac_layer *l, char *to, size_t size) {
    if (!l->weight_bits) return "--";
    snprintf(to, size, "w%da%d", l->weight_bits, l->input_bits);
    return to;
}

bool bits_few(const fac_totals *t) { return t->binary_macs > 0 || t->integer_macs > 0; }

double bits_packed(const fac_totals *t) { return 8 * t->weights - t->spared_bits; }

void bits_print(const fac_analysis *a) {
    const fac_totals t = fac_analysis_totals(a);
    char text[256], x[64], y[64];
    if (!bits_few(&t)) return;
    printf("products       %s\n", fac_totals_products(&t, text, sizeof text));
    printf("packed         %s bits of weights (%s), %.1f times fewer than they are stored in\n",
           digits_text(bits_packed(&t), x, sizeof x), bytes_text(bits_packed(&t) / 8, y, sizeof y),
           bits_packed(&t) > 0 ? 8 * t.weights / bits_packed(&t) : 1);
}

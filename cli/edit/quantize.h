/* facula quantize: what its files share. */
#ifndef FACULA_CLI_QUANTIZE_H
#define FACULA_CLI_QUANTIZE_H
#include "analyze/levels.h"
#include "run/inputs.h"
#include "train/evaluate.h"

/* What the verb made. */
typedef struct quantized {
    const char *scheme, *out, *drawn; /* drawn: histograms, or NULL */
    fac_calibrator *by;
    fac_quantizers *levels;             /* of the result; NULL: not drawn */
    double bytes, bytes_before;         /* of the file; of all parameters of the model */
    long samples;                       /* that calibrated, or measured errors */
    double right, right_before, tested; /* of labelled samples; 0: there were none */
    double same;                        /* answers that did not change */
    photo_plan plan;
} quantized;

int quantize_print(const quantized *q);
int quantize_json(const quantized *q);
#endif

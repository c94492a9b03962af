/* Histograms of numbers beside their levels: facula quantize and facula evaluate. */
#ifndef FACULA_CLI_LEVELS_H
#define FACULA_CLI_LEVELS_H
#include "facula/quantize.h"
#include "json.h"

/* A panel for each quantizer, as .svg or .png.  An exit code. */
int levels_draw(const fac_quantizers *q, const char *title, const char *path);
/* The same numbers, as "histograms" of root. */
void levels_json(const fac_quantizers *q, cJSON *root);
#endif

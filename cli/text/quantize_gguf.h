/* Schemes of facula quantize for language models. */
#ifndef FACULA_CLI_QUANTIZE_GGUF_H
#define FACULA_CLI_QUANTIZE_GGUF_H
#include <stdbool.h>

bool gguf_scheme(const char *name); /* q8_0 and its like */
int gguf_quantize(const char *path, const char *scheme, const char *out, bool json);
void gguf_schemes(void); /* lists them */
#endif

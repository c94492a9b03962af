/* A language model with smaller weights, as a GGUF file: schemes of facula quantize for texts. */
#include <string.h>
#include <sys/stat.h>
#include "cli.h"
#include "facula/lm.h"
#include "json.h"
#include "quantize_gguf.h"

bool gguf_scheme(const char *name) {
    for (int k = 0; fac_lm_scheme(k); k++)
        if (!strcmp(fac_lm_scheme(k), name)) return true;
    return false;
}

int gguf_quantize(const char *path, const char *scheme, const char *out, bool json) {
    fac_error err = { 0 };
    char text[32];
    struct stat s;
    if (fac_lm_quantize(path, scheme, out, &err)) return fail(&err);
    const double bytes = stat(out, &s) ? 0 : (double)s.st_size;
    if (!json) {
        printf("%s: %s of %s\n", out, bytes_text(bytes, text, sizeof text), scheme);
        return EXIT_OK;
    }
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", out);
    cJSON_AddStringToObject(root, "scheme", scheme);
    cJSON_AddNumberToObject(root, "bytes", bytes);
    return json_print(root);
}

void gguf_schemes(void) {
    char all[256] = "";
    for (int k = 0; fac_lm_scheme(k); k++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, " %s", fac_lm_scheme(k));
    }
    printf("\n");
    help_paragraphs(
        "Schemes of language models, a folder of Hugging Face or a .gguf, which are written "
        "as GGUF.  Tables of tokens get q8_0 where others get fewer bits; `facula "
        "perplexity` tells the cost.\n");
    help_row("", 0, all);
}

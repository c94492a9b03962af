/* facula train text: the folder that is left behind. */
#include <sys/stat.h>
#include "facula/read.h"
#include "files.h"
#include "train.h"

static const size_t largest = (size_t)1 << 30; /* bytes of a tokenizer's file */

/* Of a model that was trained further: the tokenizer's files, as they are. */
static int copy_tokenizer(const char *from, const char *to) {
    static const char *const names[] = { "tokenizer.json",      "tokenizer_config.json",
                                         "vocab.json",          "merges.txt",
                                         "added_tokens.json",   "special_tokens_map.json",
                                         "chat_template.jinja", "generation_config.json" };
    char path[4096];
    int code = EXIT_OK;
    for (size_t k = 0; k < sizeof names / sizeof *names && !code; k++) {
        fac_error err = { 0 };
        char *contents;
        size_t bytes;
        struct stat s;
        code = path_join(path, sizeof path, from, names[k], "");
        if (code || stat(path, &s)) continue;
        if (fac_read_text(path, largest, FAC_READ_FILE, &contents, &bytes, &err)) return fail(&err);
        code = path_join(path, sizeof path, to, names[k], "");
        if (!code) code = file_write(path, contents, bytes);
        fac_read_free(contents);
    }
    return code;
}

static int store_gguf(const train_options *o, const train_job *j, const char *dir) {
    fac_error err = { 0 };
    char path[4096];
    const int code = path_join(path, sizeof path, dir, "model.gguf", "");
    if (code) return code;
    return fac_lm_save_gguf(j->lm, j->tokens, o->scheme, path, &err) ? fail(&err) : EXIT_OK;
}

/* Tokenizer, settings and weights. */
static int store_model(const train_options *o, const train_job *j, const char *dir) {
    fac_error err = { 0 };
    char path[4096];
    if (lm_writes_gguf(o)) return store_gguf(o, j, dir);
    int code = lm_is_new(o) ? path_join(path, sizeof path, dir, "tokenizer.json", "")
                            : copy_tokenizer(o->model, dir);
    if (!code && lm_is_new(o) && fac_tokenizer_save(j->tokens, path, &err)) code = fail(&err);
    if (!code && fac_lm_save(j->lm, dir, &err)) code = fail(&err);
    return code;
}

/* Adapters and weights that have taken them in are folders of their own: transformers adds to a
 * model what adapters it finds beside it. */
static int store_adapters(const train_options *o, const train_job *j) {
    fac_error err = { 0 };
    char path[4096];
    if (fac_lm_lora_save(j->lm, o->out, o->model, &err)) return fail(&err);
    if (!o->merge) return EXIT_OK;
    int code = path_join(path, sizeof path, o->out, "merged", "");
    if (!code) code = folder_make(path);
    if (!code && fac_lm_lora_merge(j->lm, &err)) code = fail(&err);
    return code ? code : store_model(o, j, path);
}

int lm_store(const train_options *o, const train_job *j) {
    return o->lora ? store_adapters(o, j) : store_model(o, j, o->out);
}

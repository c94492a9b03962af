/* Which file holds a tokenizer, and its reader. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "facula/read.h"
#include "text/tokenizer.h"

enum { LARGEST_JSON = 256 << 20 };

static fac_status from_gguf(fac_file *f, fac_tokenizer **out, fac_error *err) {
    fac_gguf *g;
    FAC_TRY(fac_gguf_open(f, &g, err));
    const fac_status status = fac_tokenizer_gguf(g, out, err);
    fac_gguf_free(g);
    return status;
}

fac_status fac_tokenizer_parse(fac_file *f, fac_tokenizer **out, fac_error *err) {
    const char *p = fac_file_data(f);
    const size_t n = fac_file_size(f);
    size_t at = 0;
    if (fac_gguf_here(f)) return from_gguf(f, out, err);
    while (at < n && (p[at] == ' ' || p[at] == '\n' || p[at] == '\r' || p[at] == '\t')) at++;
    if (at < n && p[at] == '{') {
        if (n > LARGEST_JSON) return fac_raise(err, FAC_E_FORMAT, "a tokenizer of %zu bytes", n);
        return fac_tokenizer_json(p, n, out, err);
    }
    return fac_tokenizer_llama2c(p, n, out, err);
}

static fac_status load_file(const char *path, fac_tokenizer **out, fac_error *err) {
    fac_file *f;
    FAC_TRY(fac_file_map(path, &f, err));
    const fac_status status = fac_tokenizer_parse(f, out, err);
    fac_file_free(f);
    return status ? fac_raise_in(err, status, "%s", path) : FAC_OK;
}

static bool is_there(const char *path) {
    struct stat s;
    return !stat(path, &s);
}

/* file NULL: vocab.json and merges.txt */
static fac_status load_with_config(const char *file, const char *folder, fac_tokenizer **out,
                                   fac_error *err) {
    fac_tokenizer *t;
    FAC_TRY(file ? load_file(file, &t, err) : fac_tokenizer_merges(folder, &t, err));
    const fac_status status = fac_tokenizer_config(t, folder, err);
    if (status)
        fac_tokenizer_free(t);
    else
        *out = t;
    return status;
}

fac_status fac_tokenizer_load(const char *path, fac_tokenizer **out, fac_error *err) {
    static const char *const names[] = { "tokenizer.json", "tokenizer.gguf", "tokenizer.bin" };
    char inside[4096];
    if (!fac_is_folder(path)) return load_file(path, out, err);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const int n = snprintf(inside, sizeof inside, "%s/%s", path, names[k]);
        if (n < 0 || (size_t)n >= sizeof inside)
            return fac_raise(err, FAC_E_ARGUMENT, "%s: a path that is too long", path);
        if (!is_there(inside)) continue;
        return load_with_config(inside, path, out, err);
    }
    if (fac_tokenizer_merges_here(path)) return load_with_config(NULL, path, out, err);
    return fac_raise(err, FAC_E_IO,
                     "%s: a folder without tokenizer.json, or vocab.json and merges.txt", path);
}

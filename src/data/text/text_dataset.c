/* Texts as token ids, and the Stanford Sentiment Treebank. */
#include <string.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/text.h"
#include "data/sets/dataset_internal.h"
#include "data/text/text_internal.h"

static fac_status take_names(const fac_texts *t, fac_dataset *d, fac_error *err) {
    d->classes = t->classes;
    if (!t->class_names) return FAC_OK;
    d->class_names = fac_arena_texts(&d->memory->arena, t->class_names, (size_t)t->classes);
    return d->class_names ? FAC_OK : fac_raise_memory(err, "the names of %d classes", t->classes);
}

fac_status fac_dataset_texts(const fac_texts *t, const fac_vocab *v, int64_t length,
                             fac_dataset *out, fac_error *err) {
    fac_dataset d = { 0 };
    if (length < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "texts of %lld tokens", (long long)length);
    for (int64_t i = 0; !length && i < t->count; i++) {
        int64_t n = fac_vocab_encode(v, t->text[i], NULL, 0);
        if (n > d.item.d[0]) d.item.d[0] = n;
    }
    if (!length) length = d.item.d[0] ? d.item.d[0] : 1;
    fac_status status = fac_dataset_new_of(&d, t->count, fac_shape(length), FAC_I32, "texts", err);
    if (!status) status = take_names(t, &d, err);
    for (int64_t i = 0; !status && i < t->count; i++) { /* memory is zero: FAC_PAD */
        fac_vocab_encode(v, t->text[i], fac_dataset_tokens(&d) + i * length, length);
        fac_dataset_labels(&d)[i] = t->labels[i];
    }
    if (status)
        fac_dataset_free(&d);
    else
        *out = d;
    return status;
}

/* ---- SST-2 ---- */

static bool begins_with(const fac_file *f, const char *s) {
    return fac_file_size(f) >= strlen(s) && !memcmp(fac_file_data(f), s, strlen(s));
}

fac_status fac_texts_sst2(const char *folder, const char *part, fac_texts *out, fac_error *err) {
    static const char *const names[] = { "negative", "positive" };
    static const fac_texts two = { .classes = 2 };
    fac_text path = { 0 };
    fac_file *f = NULL;
    fac_text_print(&path, "%s/%s.tsv", folder, part);
    fac_status status =
        path.failed ? fac_raise_memory(err, "a path") : fac_file_map(path.s, &f, err);
    if (!status) {
        const bool glue = begins_with(f, "sentence\t") || begins_with(f, "sentence \t");
        const fac_texts_opts o = { .separator = '\t',
                                   .header = glue,
                                   .text = glue ? "sentence" : NULL,
                                   .label = glue ? "label" : NULL,
                                   .like = &two };
        status = fac_texts_scan(fac_file_data(f), fac_file_size(f), path.s, &o, out, err);
        if (!status) out->class_names = names;
    }
    fac_file_free(f);
    fac_text_free(&path);
    return status;
}

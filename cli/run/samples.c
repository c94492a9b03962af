/* What the samples of a training were: written beside its model, and read again to use it. */
#include <string.h>
#include "json.h"
#include "samples.h"

enum { LONGEST = 64 << 20, CLASSES = 1 << 20 };
static const char *const kinds[] = { "values", "images", "texts" }; /* as samples_kind */

static void add_numbers(cJSON *to, const char *key, const double *x, int n) {
    cJSON *a = cJSON_AddArrayToObject(to, key);
    for (int i = 0; i < n; i++) cJSON_AddItemToArray(a, cJSON_CreateNumber(x[i]));
}

static cJSON *describe(const fac_dataset *d) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "kind",
                            kinds[d->tokens  ? SAMPLES_TEXTS
                                  : d->bytes ? SAMPLES_IMAGES
                                             : SAMPLES_VALUES]);
    cJSON_AddItemToObject(root, "item", json_dims(&d->item));
    if (d->bytes) {
        add_numbers(root, "mean", d->mean, 3);
        add_numbers(root, "std", d->std, 3);
    }
    cJSON *classes = cJSON_AddArrayToObject(root, "classes");
    for (int c = 0; c < d->classes; c++) {
        char number[16];
        snprintf(number, sizeof number, "%d", c);
        cJSON_AddItemToArray(classes,
                             cJSON_CreateString(d->class_names ? d->class_names[c] : number));
    }
    return root;
}

int samples_record(const char *dir, const fac_dataset *d, const fac_vocab *vocab) {
    char path[4096];
    fac_error err = { 0 };
    snprintf(path, sizeof path, "%s/vocab.txt", dir);
    if (vocab && fac_vocab_save(vocab, path, &err)) return fail(&err);
    snprintf(path, sizeof path, "%s/samples.json", dir);
    return json_write(path, describe(d), true);
}

/* ---- reading ---- */

static bool numbers(const cJSON *a, double *to, int n) {
    for (int i = 0; i < n; i++) {
        const cJSON *x = cJSON_GetArrayItem(a, i);
        if (!cJSON_IsNumber(x)) return false;
        to[i] = x->valuedouble;
    }
    return true;
}

static bool read_item(const cJSON *root, fac_dims *item) {
    const cJSON *a = cJSON_GetObjectItem(root, "item");
    double sizes[FAC_DIMS];
    item->n = cJSON_GetArraySize(a);
    if (item->n < 1 || item->n >= FAC_DIMS || !numbers(a, sizes, item->n)) return false;
    for (int k = 0; k < item->n; k++) {
        if (!(sizes[k] >= 1 && sizes[k] < 1e9)) return false;
        item->d[k] = (int64_t)sizes[k];
    }
    return true;
}

static bool read_classes(const cJSON *root, fac_dataset *d) {
    const cJSON *a = cJSON_GetObjectItem(root, "classes"), *name;
    const int n = cJSON_GetArraySize(a);
    const char **names = n > 0 && n <= CLASSES ? calloc((size_t)n, sizeof *names) : NULL;
    if (!names) return false;
    d->class_names = names;
    cJSON_ArrayForEach(name,
                       a) if (!cJSON_IsString(name) ||
                              !(names[d->classes++] = strdup(name->valuestring))) return false;
    return true;
}

static bool understand(const cJSON *root, samples *s) {
    const cJSON *kind = cJSON_GetObjectItem(root, "kind");
    int k = 0;
    while (k < 3 && !(cJSON_IsString(kind) && !strcmp(kind->valuestring, kinds[k]))) k++;
    if (k == 3 || !read_item(root, &s->like.item) || !read_classes(root, &s->like)) return false;
    s->kind = (samples_kind)k;
    if (s->kind != SAMPLES_IMAGES) return true;
    return s->like.item.n == 3 && numbers(cJSON_GetObjectItem(root, "mean"), s->like.mean, 3) &&
           numbers(cJSON_GetObjectItem(root, "std"), s->like.std, 3);
}

int samples_parse(const char *text, size_t bytes, const char *path, samples *out) {
    samples s = { 0 };
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    const bool good = root && understand(root, &s);
    cJSON_Delete(root);
    if (good)
        *out = s;
    else
        samples_free(&s);
    if (!good && json_lost()) return fail_text("out of memory");
    return good ? EXIT_OK
                : fail_text("%s: cannot be understood: is this the --out folder of a training?",
                            path);
}

int samples_recall(const char *dir, samples *out) {
    char path[4096], *text;
    size_t bytes;
    fac_error err = { 0 };
    samples s;
    snprintf(path, sizeof path, "%s/samples.json", dir);
    if (fac_read_text(path, LONGEST, FAC_READ_FILE, &text, &bytes, &err))
        return fail_text("%s: is this the --out folder of a training?", err.text);
    const int code = samples_parse(text, bytes, path, &s);
    fac_read_free(text);
    if (code) return code;
    snprintf(path, sizeof path, "%s/vocab.txt", dir);
    if (s.kind == SAMPLES_TEXTS && fac_vocab_load(path, &s.vocab, &err)) {
        samples_free(&s);
        return fail(&err);
    }
    *out = s;
    return EXIT_OK;
}

void samples_free(samples *s) {
    const char *const *names = s->like.class_names;
    for (int c = 0; names && c < s->like.classes; c++) free((char *)(uintptr_t)names[c]);
    free((void *)(uintptr_t)names);
    fac_vocab_free(s->vocab);
    *s = (samples){ 0 };
}

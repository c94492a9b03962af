/* facula train: DIR/run.json, what a training was started with. */
#include <string.h>
#include <sys/stat.h>
#include "json.h"
#include "train.h"

enum { LONGEST = 1 << 20 };

static void add_text(cJSON *to, const char *key, const char *text) {
    if (text) cJSON_AddStringToObject(to, key, text);
}

char *train_about(const train_options *o, const fac_device *device) {
    cJSON *root = cJSON_CreateObject(), *freeze = cJSON_AddArrayToObject(root, "freeze");
    add_text(root, "set", o->set);
    add_text(root, "data", o->data);
    add_text(root, "model", o->model);
    add_text(root, "weights", o->weights);
    add_text(root, "optimizer", o->optimizer);
    add_text(root, "schedule", o->schedule);
    add_text(root, "augment", o->augment);
    add_text(root, "size", o->size);
    add_text(root, "tensorboard", o->tensorboard);
    cJSON_AddNumberToObject(root, "epochs", (double)o->epochs);
    cJSON_AddNumberToObject(root, "batch", (double)o->batch);
    cJSON_AddNumberToObject(root, "seed", (double)o->seed);
    cJSON_AddNumberToObject(root, "warmup", (double)o->warmup);
    json_number(root, "lr", o->lr, 17);
    json_number(root, "momentum", o->momentum, 17);
    json_number(root, "weight_decay", o->weight_decay, 17);
    json_number(root, "label_smoothing", o->label_smoothing, 17);
    json_number(root, "clip", o->clip, 17);
    for (int i = 0; i < o->freeze.n; i++) cJSON_AddItemToArray(freeze, cJSON_CreateString(o->freeze.at[i]));
    add_text(root, "facula", FACULA_VERSION);
    add_text(root, "device", fac_device_about(device));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}

int train_record(const char *dir, const char *about) {
    char path[4096];
    if (mkdir(dir, 0777)) {
        struct stat s;
        if (stat(dir, &s) || !S_ISDIR(s.st_mode)) return fail_text("%s: cannot be made", dir);
    }
    snprintf(path, sizeof path, "%s/run.json", dir);
    FILE *f = fopen(path, "w");
    bool written = f && fprintf(f, "%s\n", about) > 0;
    if (f) written &= !fclose(f);
    return written ? EXIT_OK : fail_text("%s: cannot be written", path);
}

/* Strings live as long as the process, as those of the command line do. */
static const char *text_of(const cJSON *root, const char *key) {
    const cJSON *j = cJSON_GetObjectItem(root, key);
    return cJSON_IsString(j) ? strdup(j->valuestring) : NULL;
}

static double number_of(const cJSON *root, const char *key) {
    const cJSON *j = cJSON_GetObjectItem(root, key);
    return cJSON_IsNumber(j) && j->valuedouble > -1e15 && j->valuedouble < 1e15 ? j->valuedouble : 0;
}

int train_recall(const char *dir, train_options *o) {
    char path[4096];
    snprintf(path, sizeof path, "%s/run.json", dir);
    FILE *f = fopen(path, "r");
    if (!f) return fail_text("%s: cannot be read: is this the folder of a training?", path);
    char *text = malloc(LONGEST);
    size_t n = text ? fread(text, 1, LONGEST - 1, f) : 0;
    fclose(f);
    if (!text) return fail_text("out of memory");
    text[n] = 0;
    cJSON *root = cJSON_Parse(text);
    free(text);
    if (!root) return fail_text("%s: is no JSON", path);
    const struct { const char **to; const char *key; } texts[] = {
        { &o->set, "set" }, { &o->data, "data" }, { &o->model, "model" }, { &o->weights, "weights" },
        { &o->optimizer, "optimizer" },
        { &o->schedule, "schedule" }, { &o->augment, "augment" }, { &o->size, "size" },
        { &o->tensorboard, "tensorboard" } };
    const struct { long *to; const char *key; } longs[] = {
        { &o->epochs, "epochs" }, { &o->batch, "batch" }, { &o->seed, "seed" }, { &o->warmup, "warmup" } };
    const struct { double *to; const char *key; } reals[] = {
        { &o->lr, "lr" }, { &o->momentum, "momentum" }, { &o->weight_decay, "weight_decay" },
        { &o->label_smoothing, "label_smoothing" },
        { &o->clip, "clip" } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!*texts[i].to) *texts[i].to = text_of(root, texts[i].key);
    for (size_t i = 0; i < sizeof longs / sizeof *longs; i++)
        if (!*longs[i].to) *longs[i].to = (long)number_of(root, longs[i].key);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (!*reals[i].to) *reals[i].to = number_of(root, reals[i].key);
    const cJSON *freeze = cJSON_GetObjectItem(root, "freeze");
    int patterns = o->freeze.n ? 0 : cJSON_GetArraySize(freeze);
    if (patterns > 0 && (o->freeze.at = calloc((size_t)patterns, sizeof *o->freeze.at)))
        for (int i = 0; i < patterns; i++) {
            const cJSON *j = cJSON_GetArrayItem(freeze, i);
            if (cJSON_IsString(j)) o->freeze.at[o->freeze.n++] = strdup(j->valuestring);
        }
    cJSON_Delete(root);
    return o->set ? EXIT_OK : fail_text("%s: names no data set", path);
}

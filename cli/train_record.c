/* facula train: DIR/run.json, what a training was started with. */
#include <string.h>
#include <unistd.h>
#include "files.h"
#include "json.h"
#include "train.h"

enum { LONGEST = 1 << 20 };

/* "--weight-decay" is recorded as "weight_decay". */
static const char *key_of(const option *row, char key[64]) {
    snprintf(key, 64, "%s", row->name + 2);
    for (char *c = key; *c; c++)
        if (*c == '-') *c = '_';
    return key;
}

static void add(cJSON *root, const option *row) {
    char key[64];
    key_of(row, key);
    switch (row->kind) {
    case OPTION_FLAG: cJSON_AddBoolToObject(root, key, *(const bool *)row->to); break;
    case OPTION_INT:  cJSON_AddNumberToObject(root, key, (double)*(const long *)row->to); break;
    case OPTION_REAL: json_number(root, key, *(const double *)row->to, 17); break;
    case OPTION_TEXT: case OPTION_OUT:
        if (*(const char **)row->to) cJSON_AddStringToObject(root, key, *(const char **)row->to);
        break;
    case OPTION_STEP: break;            /* training has none */
    case OPTION_LIST: case OPTION_OUTS: {
        const list *l = row->to;
        cJSON *array = cJSON_AddArrayToObject(root, key);
        for (int i = 0; i < l->n; i++) cJSON_AddItemToArray(array, cJSON_CreateString(l->at[i]));
    }
    }
}

char *train_about(const train_options *o, const fac_device *device) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "set", o->set);
    for (const option *row = train_rows; row->name; row++)
        if (train_recorded(row)) add(root, row);
    cJSON_AddStringToObject(root, "facula", FACULA_VERSION);
    cJSON_AddStringToObject(root, "device", fac_device_about(device));
    return json_string(root, true);
}

int train_record(const char *dir, const char *about) {
    char path[4096], *text = NULL;
    int code = folder_make(dir);
    if (code) return code;
    snprintf(path, sizeof path, "%s/run.json", dir);
    if (asprintf(&text, "%s\n", about) < 0) return fail_text("out of memory");
    code = file_write_text(path, text);
    free(text);
    return code;
}

/* What a training leaves in its folder, beside logs: with one of these there it has begun. */
static const char *const kept[] = { "checkpoint.safetensors", "model.safetensors", "model.onnx" };
enum { KEPT = sizeof kept / sizeof *kept };

int train_folder_free(const char *dir) {
    char path[4096], word[4096];
    for (int k = 0; k < KEPT; k++) {
        snprintf(path, sizeof path, "%s/%s", dir, kept[k]);
        if (!access(path, F_OK))
            return fail_text("%s is there: the folder holds a training, which --resume %s goes on "
                             "with and --overwrite replaces",
                             path, shell_word(dir, word, sizeof word));
    }
    return EXIT_OK;
}

void train_folder_clear(const char *dir) {
    char path[4096];
    for (int k = 0; k < KEPT; k++) {
        snprintf(path, sizeof path, "%s/%s", dir, kept[k]);
        unlink(path);
    }
}

/* A copy that lives as long as the process, as the strings of the command line do, whoever forgets it. */
static const char *keep(const char *text) {
    static struct kept { struct kept *next; char text[]; } *all;
    struct kept *k = malloc(sizeof *k + strlen(text) + 1);
    if (!k) return NULL;
    k->next = all;
    all = k;
    return strcpy(k->text, text);
}

/* What was not given now is as it was recorded; 0 of a number is "not given", too.  False: the option takes no such number. */
static bool take(const cJSON *root, const option *row) {
    char key[64];
    const cJSON *j = cJSON_GetObjectItem(root, key_of(row, key));
    const bool number = cJSON_IsNumber(j) && j->valuedouble > -1e15 && j->valuedouble < 1e15;
    if (number && j->valuedouble != 0 && !option_takes(row, j->valuedouble)) return false;
    switch (row->kind) {
    case OPTION_FLAG: *(bool *)row->to |= cJSON_IsTrue(j); break;
    case OPTION_INT:  if (number && !option_given(row->to)) *(long *)row->to = (long)j->valuedouble; break;
    case OPTION_REAL: if (number && !option_given(row->to)) *(double *)row->to = j->valuedouble; break;
    case OPTION_TEXT: case OPTION_OUT:
        if (cJSON_IsString(j) && !*(const char **)row->to)
            *(const char **)row->to = keep(j->valuestring);
        break;
    case OPTION_STEP: break;
    case OPTION_LIST: case OPTION_OUTS: {
        list *l = row->to;
        int n = l->n ? 0 : cJSON_GetArraySize(j);
        if (n < 1 || !(l->at = calloc((size_t)n, sizeof *l->at))) break;
        for (int i = 0; i < n; i++)
            if (cJSON_IsString(cJSON_GetArrayItem(j, i))) l->at[l->n++] = keep(cJSON_GetArrayItem(j, i)->valuestring);
    }
    }
    return true;
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
    const cJSON *set = cJSON_GetObjectItem(root, "set");
    if (cJSON_IsString(set) && !o->set) o->set = keep(set->valuestring);
    const option *wrong = NULL;
    for (const option *row = train_rows; row->name; row++)
        if (train_recorded(row) && !take(root, row)) wrong = row;
    cJSON_Delete(root);
    if (wrong) return fail_text("%s: has a number that %s does not take", path, wrong->name);
    return o->set ? EXIT_OK : fail_text("%s: names no data set", path);
}

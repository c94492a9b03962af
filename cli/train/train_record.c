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
    case OPTION_FLAG:
        cJSON_AddBoolToObject(root, key, *(const bool *)row->to);
        break;
    case OPTION_INT:
        cJSON_AddNumberToObject(root, key, (double)*(const long *)row->to);
        break;
    case OPTION_REAL:
        json_number(root, key, *(const double *)row->to, 17);
        break;
    case OPTION_TEXT:
    case OPTION_OUT:
        if (*(const char **)row->to) cJSON_AddStringToObject(root, key, *(const char **)row->to);
        break;
    case OPTION_STEP:
        break; /* training has none */
    case OPTION_LIST:
    case OPTION_OUTS: {
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
static const char *const kept[] = { "checkpoint.safetensors", "model.safetensors", "model.onnx",
                                    "model.gguf" };
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

/* A copy that lives as long as the process, as the strings of the command line do, whoever forgets
 * it. */
static const char *keep(const char *text) {
    static struct kept {
        struct kept *next;
        char text[];
    } * all;
    struct kept *k = malloc(sizeof *k + strlen(text) + 1);
    if (!k) return NULL;
    k->next = all;
    all = k;
    return strcpy(k->text, text);
}

typedef enum taken { TAKEN, WRONG, NO_MEMORY } taken;

static bool take_list(const cJSON *j, list *to) {
    const cJSON *one;
    const int n = cJSON_GetArraySize(j);
    if (to->n || n < 1) return true;
    to->at = calloc((size_t)n, sizeof *to->at);
    if (!to->at) return false;
    cJSON_ArrayForEach(one, j) {
        if (!cJSON_IsString(one)) continue;
        if (!(to->at[to->n] = keep(one->valuestring))) return false;
        to->n++;
    }
    return true;
}

static bool take_text(const cJSON *j, const char **to) {
    if (!cJSON_IsString(j) || *to) return true;
    return (*to = keep(j->valuestring)) != NULL;
}

/* What was not given now is as it was recorded.  WRONG: the option takes no such number. */
static taken take(const cJSON *root, const option *row) {
    char key[64];
    const cJSON *j = cJSON_GetObjectItem(root, key_of(row, key));
    const bool number = cJSON_IsNumber(j) && j->valuedouble > -1e15 && j->valuedouble < 1e15;
    if (number && j->valuedouble != 0 && !option_takes(row, j->valuedouble)) return WRONG;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)row->to |= cJSON_IsTrue(j);
        break;
    case OPTION_INT:
        if (number && !option_given(row->to)) *(long *)row->to = (long)j->valuedouble;
        break;
    case OPTION_REAL:
        if (number && !option_given(row->to)) *(double *)row->to = j->valuedouble;
        break;
    case OPTION_TEXT:
    case OPTION_OUT:
        return take_text(j, row->to) ? TAKEN : NO_MEMORY;
    case OPTION_STEP:
        break;
    case OPTION_LIST:
    case OPTION_OUTS:
        return take_list(j, row->to) ? TAKEN : NO_MEMORY;
    }
    return TAKEN;
}

int train_recall_text(const char *text, size_t bytes, const char *path, train_options *o) {
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    if (!root && json_lost()) return fail_text("out of memory");
    if (!root) return fail_text("%s: is not JSON", path);
    const option *row = train_rows;
    taken how = take_text(cJSON_GetObjectItem(root, "set"), &o->set) ? TAKEN : NO_MEMORY;
    for (; how == TAKEN && row->name; row++)
        if (train_recorded(row)) how = take(root, row);
    cJSON_Delete(root);
    if (how == NO_MEMORY) return fail_text("out of memory");
    if (how == WRONG)
        return fail_text("%s: has a number that %s does not take", path, row[-1].name);
    return o->set ? EXIT_OK : fail_text("%s: names no data set", path);
}

int train_recall(const char *dir, train_options *o) {
    char path[4096], *text;
    size_t bytes;
    fac_error err = { 0 };
    snprintf(path, sizeof path, "%s/run.json", dir);
    if (fac_read_text(path, LONGEST, FAC_READ_FILE, &text, &bytes, &err))
        return fail_text("%s: is this the folder of a training?", err.text);
    const int code = train_recall_text(text, bytes, path, o);
    fac_read_free(text);
    return code;
}

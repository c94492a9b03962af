/* facula train: DIR/run.json, what a training was started with. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
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
    case OPTION_TEXT: if (*(const char **)row->to) cJSON_AddStringToObject(root, key, *(const char **)row->to); break;
    case OPTION_STEP: break;            /* training has none */
    case OPTION_LIST: {
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
    char path[4096], beside[4096];
    if (mkdir(dir, 0777)) {
        struct stat s;
        if (stat(dir, &s) || !S_ISDIR(s.st_mode)) return fail_text("%s: cannot be made", dir);
    }
    /* beside the old one, which is there until the new one is whole */
    snprintf(path, sizeof path, "%s/run.json", dir);
    snprintf(beside, sizeof beside, "%s/run.json.tmp", dir);
    FILE *f = fopen(beside, "w");
    bool written = f && fprintf(f, "%s\n", about) > 0 && !fflush(f) && !fsync(fileno(f));
    if (f) written &= !fclose(f);
    if (written && !rename(beside, path)) return EXIT_OK;
    if (f) remove(beside);
    return fail_text("%s: cannot be written", path);
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

/* What was not given now is as it was recorded.  false: no memory. */
static bool take(const cJSON *root, const option *row) {
    char key[64];
    const cJSON *j = cJSON_GetObjectItem(root, key_of(row, key));
    bool number = cJSON_IsNumber(j) && j->valuedouble > -1e15 && j->valuedouble < 1e15;
    switch (row->kind) {
    case OPTION_FLAG: *(bool *)row->to |= cJSON_IsTrue(j); break;
    case OPTION_INT:  if (number && !*(long *)row->to) *(long *)row->to = (long)j->valuedouble; break;
    case OPTION_REAL: if (number && *(double *)row->to == 0) *(double *)row->to = j->valuedouble; break;
    case OPTION_TEXT: return take_text(j, row->to);
    case OPTION_STEP: break;
    case OPTION_LIST: return take_list(j, row->to);
    }
    return true;
}

int train_recall_text(const char *text, size_t bytes, const char *path, train_options *o) {
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    if (!root && json_lost()) return fail_text("out of memory");
    if (!root) return fail_text("%s: is no JSON", path);
    bool room = take_text(cJSON_GetObjectItem(root, "set"), &o->set);
    for (const option *row = train_rows; room && row->name; row++)
        if (train_recorded(row)) room = take(root, row);
    cJSON_Delete(root);
    if (!room) return fail_text("out of memory");
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

/* What stands beside tokenizer.json: tokenizer_config.json (names of tokens, the chat template) and
 * chat_template.jinja. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cjson/cJSON.h>
#include "base/error.h"
#include "facula/read.h"
#include "text/tokenizer.h"

enum { LARGEST = 64 << 20 };

static const cJSON *get(const cJSON *o, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* "<s>", or {"content": "<s>"}.  Without one *to stays. */
static fac_status token(const fac_tokenizer *t, const cJSON *root, const char *key, int32_t *to,
                        fac_error *err) {
    const cJSON *j = get(root, key);
    const char *s = cJSON_GetStringValue(cJSON_IsObject(j) ? get(j, "content") : j);
    if (!s || !*s) return FAC_OK;
    const int32_t id = fac_tokenizer_look(t, s, strlen(s));
    if (id < 0)
        return fac_raise(err, FAC_E_FORMAT,
                         "tokenizer_config.json: %s \"%.40s\" is no token of the vocabulary", key,
                         s);
    *to = id;
    return FAC_OK;
}

/* A text, or a list of {"name", "template"} of which one is the default. */
static const char *template_of(const cJSON *root) {
    const cJSON *j = get(root, "chat_template"), *k;
    if (!cJSON_IsArray(j)) return cJSON_GetStringValue(j);
    cJSON_ArrayForEach(k, j) {
        const char *name = cJSON_GetStringValue(get(k, "name"));
        if (name && !strcmp(name, "default")) return cJSON_GetStringValue(get(k, "template"));
    }
    return NULL;
}

static bool keep(fac_tokenizer *t, const char *chat) {
    if (chat) t->chat = fac_arena_text(&t->arena, chat);
    return !chat || t->chat;
}

static fac_status take(fac_tokenizer *t, const char *text, size_t bytes, fac_error *err) {
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return fac_raise(err, FAC_E_FORMAT, "tokenizer_config.json is no JSON object");
    }
    fac_status status = token(t, root, "bos_token", &t->bos, err);
    if (!status) status = token(t, root, "eos_token", &t->eos, err);
    if (!status && !keep(t, template_of(root))) status = fac_raise_memory(err, "a chat template");
    cJSON_Delete(root);
    return status;
}

/* The file's text; NULL without an error: there is none. */
static fac_status read_file(const char *folder, const char *name, char **text, size_t *bytes,
                            fac_error *err) {
    char path[4096];
    struct stat s;
    *text = NULL;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path || stat(path, &s)) return FAC_OK;
    return fac_read_text(path, LARGEST, FAC_READ_FILE, text, bytes, err);
}

fac_status fac_tokenizer_config(fac_tokenizer *t, const char *folder, fac_error *err) {
    char *text;
    size_t bytes;
    FAC_TRY(read_file(folder, "tokenizer_config.json", &text, &bytes, err));
    fac_status status = text ? take(t, text, bytes, err) : FAC_OK;
    fac_read_free(text);
    if (status) return status;
    FAC_TRY(read_file(folder, "chat_template.jinja", &text, &bytes, err));
    if (text && !keep(t, text)) status = fac_raise_memory(err, "a chat template");
    fac_read_free(text);
    return status;
}

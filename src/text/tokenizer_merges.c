/* The older files of byte-level BPE: vocab.json (tokens and ids), merges.txt (a pair a line, the
 * first is merged first), and added_tokens.json.  They become the text of a tokenizer.json, so that
 * one reader checks both. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cjson/cJSON.h>
#include "base/error.h"
#include "base/quote.h"
#include "facula/read.h"
#include "text/tokenizer.h"

enum { LARGEST = 64 << 20 };

static const char qwen2[] =
    ",\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":"
    "[{\"type\":\"Split\","
    "\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
    "\\\\p{N}| "
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}},"
    "{\"type\":\"ByteLevel\",\"use_regex\":false}]}";
static const char gpt2[] = ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";

static const struct {
    const char *name, *parts;
} classes[] = { { "GPT2Tokenizer", gpt2 },    { "GPT2TokenizerFast", gpt2 },
                { "CodeGenTokenizer", gpt2 }, { "CodeGenTokenizerFast", gpt2 },
                { "Qwen2Tokenizer", qwen2 },  { "Qwen2TokenizerFast", qwen2 } };

/* The file's text; NULL without an error: there is none. */
static fac_status read_file(const char *folder, const char *name, char **text, fac_error *err) {
    char path[4096];
    struct stat s;
    *text = NULL;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path || stat(path, &s)) return FAC_OK;
    return fac_read_text(path, LARGEST, FAC_READ_FILE, text, NULL, err);
}

static bool is_there(const char *folder, const char *name) {
    char path[4096];
    struct stat s;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && !stat(path, &s);
}

bool fac_tokenizer_merges_here(const char *folder) {
    return is_there(folder, "vocab.json") && is_there(folder, "merges.txt");
}

/* "left right" of each line; a line that begins with #version is none. */
static fac_status add_merges(fac_text *t, const char *s, fac_error *err) {
    int line = 1;
    bool any = false;
    fac_text_add(t, "\"merges\":[");
    for (; *s; line++) {
        const size_t n = strcspn(s, "\r\n");
        const char *space = memchr(s, ' ', n);
        if (n && strncmp(s, "#version", 8)) {
            const size_t left = space ? (size_t)(space - s) : 0;
            if (!left || left + 1 == n || memchr(space + 1, ' ', n - left - 1))
                return fac_raise(err, FAC_E_FORMAT, "merges.txt: line %d is no pair", line);
            fac_text_add(t, any ? ",[" : "[");
            fac_text_quote(t, s, left);
            fac_text_add(t, ",");
            fac_text_quote(t, space + 1, n - left - 1);
            fac_text_add(t, "]");
            any = true;
        }
        s += n;
        s += *s == '\r';
        s += *s == '\n';
    }
    fac_text_add(t, "]");
    return FAC_OK;
}

/* ---- tokens beside the vocabulary ---- */

static void add_one(fac_text *t, const char *content, double id, bool special, const cJSON *more) {
    fac_text_add(t, t->s && t->s[t->n - 1] == '}' ? ",{\"content\":" : "{\"content\":");
    fac_text_quote(t, content, strlen(content));
    fac_text_print(t, ",\"id\":%.0f,\"special\":%s", id, special ? "true" : "false");
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(more, "lstrip")))
        fac_text_add(t, ",\"lstrip\":true");
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(more, "rstrip")))
        fac_text_add(t, ",\"rstrip\":true");
    fac_text_add(t, "}");
}

/* {"0": {"content": "<s>", "special": true}} of tokenizer_config.json */
static void add_decoder(fac_text *t, const cJSON *all) {
    const cJSON *x;
    cJSON_ArrayForEach(x, all) {
        double id;
        const char *content = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(x, "content"));
        if (!content || sscanf(x->string, "%lf", &id) != 1) continue;
        add_one(t, content, id, cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(x, "special")), x);
    }
}

/* {"<s>": 0}: all of them are special */
static void add_named(fac_text *t, const cJSON *all, const char *only) {
    const cJSON *x;
    cJSON_ArrayForEach(x, all) if (cJSON_IsNumber(x) && (!only || !strcmp(x->string, only)))
        add_one(t, x->string, x->valuedouble, true, NULL);
}

static fac_status parts_of(const cJSON *config, const char **parts, fac_error *err) {
    const char *name =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(config, "tokenizer_class"));
    *parts = gpt2;
    for (size_t k = 0; name && k < sizeof classes / sizeof *classes; k++) {
        if (strcmp(name, classes[k].name)) continue;
        *parts = classes[k].parts;
        return FAC_OK;
    }
    if (!name) return FAC_OK;
    return fac_raise(
        err, FAC_E_UNSUPPORTED,
        "tokenizer_config.json: tokenizer_class \"%.60s\" with vocab.json: GPT2Tokenizer, "
        "CodeGenTokenizer and Qwen2Tokenizer are known",
        name);
}

/* ---- all of it ---- */

typedef struct files {
    char *vocab, *merges, *config, *added;
    cJSON *vocabulary, *settings, *more;
} files;

static fac_status read_files(const char *folder, files *f, fac_error *err) {
    FAC_TRY(read_file(folder, "vocab.json", &f->vocab, err));
    FAC_TRY(read_file(folder, "merges.txt", &f->merges, err));
    FAC_TRY(read_file(folder, "tokenizer_config.json", &f->config, err));
    FAC_TRY(read_file(folder, "added_tokens.json", &f->added, err));
    if (!f->vocab || !f->merges)
        return fac_raise(err, FAC_E_IO, "%s: vocab.json or merges.txt went away", folder);
    f->vocabulary = cJSON_Parse(f->vocab);
    f->settings = f->config ? cJSON_Parse(f->config) : NULL;
    f->more = f->added ? cJSON_Parse(f->added) : NULL;
    if (!cJSON_IsObject(f->vocabulary))
        return fac_raise(err, FAC_E_FORMAT, "vocab.json is no JSON object");
    if (f->config && !cJSON_IsObject(f->settings))
        return fac_raise(err, FAC_E_FORMAT, "tokenizer_config.json is no JSON object");
    if (f->added && !cJSON_IsObject(f->more))
        return fac_raise(err, FAC_E_FORMAT, "added_tokens.json is no JSON object");
    return FAC_OK;
}

static void free_files(files *f) {
    fac_read_free(f->vocab);
    fac_read_free(f->merges);
    fac_read_free(f->config);
    fac_read_free(f->added);
    cJSON_Delete(f->vocabulary);
    cJSON_Delete(f->settings);
    cJSON_Delete(f->more);
}

static fac_status write_json(const files *f, fac_text *t, fac_error *err) {
    const char *parts;
    fac_text added = { 0 };
    FAC_TRY(parts_of(f->settings, &parts, err));
    fac_text_print(t, "{\"model\":{\"type\":\"BPE\",\"vocab\":");
    fac_text_add(t, f->vocab);
    fac_text_add(t, ",");
    FAC_TRY(add_merges(t, f->merges, err));
    add_named(&added, f->vocabulary, "<|endoftext|>");
    add_named(&added, f->more, NULL);
    add_decoder(&added, cJSON_GetObjectItemCaseSensitive(f->settings, "added_tokens_decoder"));
    fac_text_print(t, "},\"added_tokens\":[");
    if (added.s) fac_text_add(t, added.s);
    fac_text_add(t, "]");
    fac_text_add(t, parts);
    fac_text_add(t, ",\"decoder\":{\"type\":\"ByteLevel\"}}");
    t->failed |= added.failed;
    fac_text_free(&added);
    return t->failed ? fac_raise_memory(err, "a tokenizer") : FAC_OK;
}

fac_status fac_tokenizer_merges(const char *folder, fac_tokenizer **out, fac_error *err) {
    files f = { 0 };
    fac_text t = { 0 };
    fac_tokenizer *made;
    fac_status status = read_files(folder, &f, err);
    if (!status) status = write_json(&f, &t, err);
    if (!status) status = fac_tokenizer_json(t.s, t.n, &made, err);
    fac_text_free(&t);
    free_files(&f);
    if (status) return status;
    made->eos = fac_tokenizer_look(made, "<|endoftext|>", 13);
    made->bos = made->eos;
    *out = made;
    return FAC_OK;
}

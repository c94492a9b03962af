/* A vocabulary as a text file: "facula-vocab 1 word lower", then a line for each word in the order
 * of their numbers, <pad> and <unk> included.  Backslash, tab and line ends inside words (of
 * characters) are written \\ \t \n \r. */
#include <string.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/text.h"
#include "data/text/text_internal.h"
#include "facula/read.h"

enum { LONGEST = 256 << 20 };

static const char first_words[] = "facula-vocab 1 ";
static const char *const kinds[] = { "word", "space", "char" }; /* as fac_token_kind */
static const char escaped[] = "\\\t\n\r", letters[] = "\\tnr";

static void add_word(fac_text *t, const char *word) {
    for (; *word; word++) {
        const char *at = strchr(escaped, *word);
        if (at)
            fac_text_add_bytes(t, (char[]){ '\\', letters[at - escaped] }, 2);
        else
            fac_text_add_bytes(t, word, 1);
    }
    fac_text_add(t, "\n");
}

fac_status fac_vocab_save(const fac_vocab *v, const char *path, fac_error *err) {
    fac_text t = { 0 };
    fac_writer *w;
    fac_text_print(&t, "%s%s %s\n", first_words, kinds[v->kind], v->keep_case ? "case" : "lower");
    for (int64_t i = 0; i < v->count; i++) add_word(&t, v->words[i]);
    fac_status status = t.failed ? fac_raise(err, FAC_E_NOMEM, "%s: no memory for its text", path)
                                 : fac_writer_open(path, &w, err);
    if (!status) {
        status = fac_writer_put(w, t.s, t.n, err);
        if (status)
            fac_writer_cancel(w);
        else
            status = fac_writer_close(w, err);
    }
    fac_text_free(&t);
    return status;
}

/* ---- reading ---- */

typedef struct lines {
    const char *at, *end;
    int64_t number;
} lines;

/* The next line without its end; false when there is none. */
static bool next_line(lines *l, const char **s, size_t *n) {
    if (l->at == l->end) return false;
    const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
    *s = l->at;
    l->at = stop ? stop + 1 : l->end;
    *n = (size_t)((stop ? stop : l->end) - *s);
    if (*n && (*s)[*n - 1] == '\r') --*n;
    l->number++;
    return true;
}

static bool read_word(const char *s, size_t n, char word[FAC_TOKEN_ROOM]) {
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '\\') {
            const char *at = ++i < n && s[i] ? strchr(letters, s[i]) : NULL;
            if (!at) return false;
            c = escaped[at - letters];
        }
        if (!c || to + 1 == FAC_TOKEN_ROOM) return false;
        word[to++] = c;
    }
    word[to] = 0;
    return to > 0;
}

static bool read_head(const char *s, size_t n, fac_token_kind *kind, bool *keep_case) {
    const size_t first = sizeof first_words - 1;
    if (n < first || memcmp(s, first_words, first)) return false;
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++)
        for (int keep = 0; keep < 2; keep++) {
            const char *ending = keep ? " case" : " lower";
            const size_t a = strlen(kinds[k]), b = strlen(ending);
            if (n - first != a + b || memcmp(s + first, kinds[k], a) ||
                memcmp(s + first + a, ending, b))
                continue;
            *kind = (fac_token_kind)k;
            *keep_case = keep;
            return true;
        }
    return false;
}

static fac_status add_words(lines *l, const char *name, fac_vocab *v, fac_error *err) {
    const char *s;
    size_t n;
    char word[FAC_TOKEN_ROOM];
    for (int64_t id = 0; next_line(l, &s, &n); id++) {
        if (!read_word(s, n, word))
            return fac_raise(err, FAC_E_FORMAT, "%s:%lld: is no word of 1 to %d bytes", name,
                             (long long)l->number, FAC_TOKEN_ROOM - 1);
        if (id < v->count && id <= FAC_UNK) {
            if (strcmp(word, v->words[id]))
                return fac_raise(err, FAC_E_FORMAT, "%s:%lld: \"%s\" where %s belongs", name,
                                 (long long)l->number, word, v->words[id]);
            continue;
        }
        fac_status status = fac_vocab_add(v, word, err);
        if (status) return fac_raise_in(err, status, "%s:%lld", name, (long long)l->number);
    }
    return FAC_OK;
}

fac_status fac_vocab_parse(const char *data, size_t bytes, const char *name, fac_vocab **out,
                           fac_error *err) {
    lines l = { data, data + bytes, 0 };
    const char *s;
    size_t n, count = 1;
    fac_token_kind kind;
    bool keep_case;
    if (!next_line(&l, &s, &n) || !read_head(s, n, &kind, &keep_case))
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: is no vocabulary: its first line must be like \"%sword lower\"", name,
                         first_words);
    for (size_t i = 0; i < bytes; i++) count += data[i] == '\n';
    if (count > INT32_MAX)
        return fac_raise(err, FAC_E_FORMAT, "%s: holds more than %d words", name, INT32_MAX);
    fac_vocab *v = fac_vocab_begin(kind, keep_case, (int64_t)count);
    fac_status status =
        v ? add_words(&l, name, v, err) : fac_raise(err, FAC_E_NOMEM, "%s: no memory", name);
    if (status)
        fac_vocab_free(v);
    else
        *out = v;
    return status;
}

fac_status fac_vocab_load(const char *path, fac_vocab **out, fac_error *err) {
    char *text;
    size_t bytes;
    FAC_TRY(fac_read_text(path, LONGEST, FAC_READ_FILE, &text, &bytes, err));
    const fac_status status = fac_vocab_parse(text, bytes, path, out, err);
    fac_read_free(text);
    return status;
}

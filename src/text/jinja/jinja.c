/* A conversation is written by a chat template. */
#include "text/jinja/jinja.h"
#include <string.h>
#include "base/error.h"
#include "text/tokenizer.h"

typedef fac_jinja_run run;
typedef fac_jinja_value value;

/* With one kind of line ends, and without the last one, as Jinja reads templates. */
static char *plain(fac_arena *arena, const char *source, size_t *n) {
    const size_t bytes = strlen(source);
    char *s = fac_arena_alloc(arena, bytes + 3, 1); /* zeros after it: a tag looks ahead */
    *n = 0;
    for (size_t k = 0; s && k < bytes; k++) {
        if (source[k] == '\r' && source[k + 1] == '\n') continue;
        s[(*n)++] = source[k] == '\r' ? '\n' : source[k];
    }
    if (s && *n && s[*n - 1] == '\n') s[--*n] = 0;
    return s;
}

/* A text of a message, each byte with where it is from. */
static value told(run *r, const char *text, char from) {
    const size_t n = strlen(text);
    char *mark = fac_jinja_alloc(r, n, 1);
    if (mark) memset(mark, from, n);
    return (value){ .kind = FAC_JINJA_TEXT, .text = { text, mark, n } };
}

/* Templates make control tokens of the roles that they know: <|user|>.  Any other is a text. */
static value role(run *r, const char *name) {
    static const char *const known[] = { "system", "user", "assistant", "tool" };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(name, known[k])) return fac_jinja_string(name);
    return told(r, name, FAC_JINJA_MESSAGE);
}

static value messages(run *r, const fac_jinja_input *in) {
    const value all = fac_jinja_new_list(r, FAC_JINJA_LIST);
    for (int k = 0; k < in->n && !r->status; k++) {
        const fac_message *m = &in->messages[k];
        const value one = fac_jinja_new_dict(r, FAC_JINJA_DICT);
        const bool system = !strcmp(m->role, "system");
        if (r->status) break;
        fac_jinja_put(r, one.dict, fac_jinja_string("role"), role(r, m->role));
        value content = { .kind = FAC_JINJA_NONE };
        if (m->text) content = told(r, m->text, system ? FAC_JINJA_SYSTEM : FAC_JINJA_MESSAGE);
        fac_jinja_put(r, one.dict, fac_jinja_string("content"), content);
        if (in->more && in->more[k])
            fac_jinja_fields(r, one.dict, in->more[k], "fields of a message");
        fac_jinja_add(r, all.list, one);
    }
    return all;
}

/* What transformers gives a template. */
static void define_all(run *r, const fac_jinja_input *in) {
    const value none = { .kind = FAC_JINJA_NONE };
    if (in->variables) fac_jinja_fields(r, NULL, in->variables, "variables of the template");
    fac_jinja_define(r, "messages", messages(r, in));
    fac_jinja_define(r, "tools", in->tools ? fac_jinja_from_json(r, in->tools, "tools") : none);
    fac_jinja_define(r, "documents", none);
    fac_jinja_define(r, "add_generation_prompt", fac_jinja_bool(in->answer));
    fac_jinja_define(r, "bos_token", fac_jinja_string(in->bos ? in->bos : ""));
    fac_jinja_define(r, "eos_token", fac_jinja_string(in->eos ? in->eos : ""));
    if (in->unknown) fac_jinja_define(r, "unk_token", fac_jinja_string(in->unknown));
}

fac_status fac_jinja_render(fac_arena *arena, const char *source, const fac_jinja_input *in,
                            fac_jinja_result *out, fac_error *err) {
    fac_jinja_reading reading = { .arena = arena, .line = 1, .err = err };
    fac_jinja_out written = { 0 };
    run r = { .arena = arena, .out = &written, .err = err };
    *out = (fac_jinja_result){ 0 };
    if (!fac_is_utf8(source, strlen(source)))
        return fac_raise(err, FAC_E_FORMAT, "the chat template is no UTF-8");
    reading.s = plain(arena, source, &reading.n);
    if (!reading.s) return fac_raise_memory(err, "a chat template");
    const fac_jinja_node *body = fac_jinja_parse(&reading);
    if (reading.status) return reading.status;
    fac_jinja_enter(&r, NULL);
    if (!r.status) define_all(&r, in);
    fac_jinja_execute(&r, body);
    *out = (fac_jinja_result){
        .s = written.s ? written.s : "", .from = written.from, .n = written.n, .refused = r.refused
    };
    if (written.n) out->system = memchr(written.from, FAC_JINJA_SYSTEM, written.n);
    return r.status;
}

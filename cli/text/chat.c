/* facula chat: a conversation with a language model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "generate.h"

static struct { const char *system, *format, *think; } o;
static const option options[] = {
    { "--system", OPTION_TEXT, &o.system, "TEXT",
      "what the model is told before the conversation" },
    { "--chat-template", OPTION_TEXT, &o.format, "NAME|FILE",
      "format of the turns, or a template in Jinja, instead of the file's own" },
    { "--think", OPTION_TEXT, &o.think, "on|off",
      "whether the model thinks before it answers, if its template knows enable_thinking" },
    LM_OPTIONS,
    { 0 }
};

static const char commands[] =
    "/clear forgets the conversation, /system TEXT begins one anew with that text,\n"
    "/regenerate answers again, /quit or the end of the input ends it";

/* The conversation: roles are constants, texts are its own. */
typedef struct talk {
    lm_open_model *m;
    fac_message *said;
    int n, room;
    char *answer; /* while it is written */
    size_t bytes, answer_room;
    int32_t *read; /* what the slot has read */
    int64_t nread;
    bool lost;
} talk;

static int say(talk *t, const char *role, const char *text) {
    if (t->n == t->room) {
        fac_message *more = realloc(t->said, (size_t)(t->room = 2 * t->room + 8) * sizeof *more);
        if (!more) return fail_text("out of memory");
        t->said = more;
    }
    char *copy = strdup(text);
    if (!copy) return fail_text("out of memory");
    t->said[t->n++] = (fac_message){ role, copy };
    return EXIT_OK;
}

static void forget(talk *t, int from) {
    while (t->n > from) free((char *)(uintptr_t)t->said[--t->n].text);
}

static int begin(talk *t, const char *system) {
    forget(t, 0);
    return system ? say(t, "system", system) : EXIT_OK;
}

/* ---- an answer ---- */

static bool tell(void *self, int32_t id, const char *text, size_t bytes) {
    talk *t = self;
    if (t->bytes + bytes + 1 > t->answer_room) {
        char *more = realloc(t->answer, 2 * (t->bytes + bytes) + 256);
        if (!more) return !(t->lost = true);
        t->answer = more;
        t->answer_room = 2 * (t->bytes + bytes) + 256;
    }
    memcpy(t->answer + t->bytes, text, bytes);
    t->bytes += bytes;
    t->answer[t->bytes] = 0;
    return lm_tell(NULL, id, text, bytes);
}

/* The slot keeps what both conversations begin with, one token less than all so that there is
 * something to read. */
static fac_status rewind_to(talk *t, const int32_t *ids, int64_t n, int64_t *kept, fac_error *err) {
    int64_t k = 0;
    while (k < n - 1 && k < t->nread && ids[k] == t->read[k]) k++;
    *kept = k;
    return fac_session_cut(t->m->session, 0, k, err);
}

static int write_answer(talk *t, const int32_t *ids, int64_t n) {
    fac_error err = { 0 };
    fac_generate_stat stat;
    const fac_generate_opts how = lm_how(t->m);
    int64_t kept;
    t->bytes = 0;
    if (rewind_to(t, ids, n, &kept, &err)) return fail(&err);
    memcpy(t->read, ids, (size_t)n * sizeof *ids);
    t->nread = n;
    lm_catch();
    if (fac_generate(t->m->session, t->m->tokens, ids + kept, n - kept, &how, tell, t, &stat, &err))
        return fail(&err);
    out_char('\n', stdout);
    /* a shift moved what was read */
    if (fac_session_length(t->m->session, 0) + 1 < n + stat.generated) t->nread = 0;
    if (t->lost) return fail_text("out of memory");
    if (lm_given.stats) lm_stats(t->m, &stat);
    if (stat.finish == FAC_FINISH_CONTEXT)
        fprintf(stderr, "the context is full: /clear begins anew\n");
    return EXIT_OK;
}

/* The oldest question and its answer go; false: there is only what was asked last. */
static bool forget_oldest(talk *t) {
    const int first = t->n && !strcmp(t->said[0].role, "system");
    int last = first + 1;
    while (last < t->n && strcmp(t->said[last].role, "user")) last++;
    if (last >= t->n) return false;
    for (int k = first; k < last; k++) free((char *)(uintptr_t)t->said[k].text);
    memmove(t->said + first, t->said + last, (size_t)(t->n - last) * sizeof *t->said);
    t->n -= last - first;
    return true;
}

static bool is(const char *given, const char *word) { return given && !strcmp(given, word); }

/* For the template; NULL: it decides itself. */
static const char *thinks(void) {
    if (!o.think) return NULL;
    return is(o.think, "on") ? "{\"enable_thinking\": true}" : "{\"enable_thinking\": false}";
}

static int check_think(const lm_open_model *m) {
    const char *jinja = o.format ? o.format : fac_tokenizer_template(m->tokens);
    if (!o.think) return EXIT_OK;
    if (!is(o.think, "on") && !is(o.think, "off"))
        return usage_error(verb_find("chat"), "--think on or --think off, not %s", o.think);
    if (jinja && strstr(jinja, "enable_thinking")) return EXIT_OK;
    return fail_text("--think: the model's chat template knows no enable_thinking");
}

/* The tokens of the conversation; with --context-shift of its newest part that leaves a quarter of
 * the context. */
static fac_status encode(talk *t, int64_t room, int32_t **ids, int64_t *n, fac_error *err) {
    for (;;) {
        const fac_chat_opts how = { .format = o.format, .variables = thinks(), .answer = true };
        const fac_status status =
            fac_chat_encode_with(t->m->tokens, &how, t->n, t->said, ids, n, err);
        if (status || !lm_given.shift || *n < room - room / 4 || !forget_oldest(t)) return status;
        fac_chat_free(*ids);
    }
}

static int answer(talk *t) {
    fac_error err = { 0 };
    int32_t *ids;
    int64_t n;
    const int64_t room = fac_lm_about(t->m->lm).context;
    if (encode(t, room, &ids, &n, &err)) return fail(&err);
    int code = EXIT_OK;
    if (n >= room)
        fprintf(stderr, "the conversation has %lld tokens, the context %lld: /clear begins anew\n",
                (long long)n, (long long)room);
    else
        code = write_answer(t, ids, n);
    fac_chat_free(ids);
    if (!code && n < room) code = say(t, "assistant", t->bytes ? t->answer : "");
    return code;
}

/* ---- lines ---- */

static int again(talk *t) {
    if (t->n && !strcmp(t->said[t->n - 1].role, "assistant")) forget(t, t->n - 1);
    if (!t->n || strcmp(t->said[t->n - 1].role, "user")) {
        fprintf(stderr, "nothing was asked yet\n");
        return EXIT_OK;
    }
    lm_given.seed++;
    return answer(t);
}

/* -1: it is over */
static int line(talk *t, const char *s) {
    if (!strcmp(s, "/quit") || !strcmp(s, "/exit")) return -1;
    if (!strcmp(s, "/clear")) return begin(t, o.system);
    if (!strncmp(s, "/system ", 8)) return begin(t, s + 8);
    if (!strcmp(s, "/regenerate")) return again(t);
    if (*s == '/') {
        out_raw(commands, stderr);
        fprintf(stderr, "\n");
        return EXIT_OK;
    }
    if (!*s) return EXIT_OK;
    if (fac_tokenizer_encode(t->m->tokens, s, strlen(s), 0, NULL, 0) == -1) {
        fprintf(stderr, "this line is not UTF-8 and was left out\n");
        return EXIT_OK;
    }
    const int code = say(t, "user", s);
    return code ? code : answer(t);
}

static int converse(talk *t) {
    const bool shown = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    char *s = NULL;
    size_t room = 0;
    int code = begin(t, o.system);
    while (!code) {
        if (shown) printf("> ");
        fflush(stdout);
        const ssize_t n = getline(&s, &room, stdin);
        if (n < 0) break;
        if (n && s[n - 1] == '\n') s[n - 1] = 0;
        code = line(t, s);
    }
    free(s);
    return code < 0 ? EXIT_OK : code;
}

static int chat(list args) {
    lm_open_model m = { 0 };
    talk t = { .m = &m };
    const int wrong = arguments_fit(verb_find("chat"), args, 1, 1, "which model?");
    if (wrong) return wrong;
    int code = lm_fits(verb_find("chat"));
    if (!code) code = lm_format(verb_find("chat"), o.format, &o.format);
    if (!code) code = lm_open(args.at[0], &m);
    if (!code) code = lm_chats(m.tokens, args.at[0], o.format);
    if (!code) code = check_think(&m);
    if (!code && !(t.read = calloc((size_t)fac_lm_about(m.lm).context + 1, sizeof *t.read)))
        code = fail_text("out of memory");
    if (!code) code = converse(&t);
    forget(&t, 0);
    free(t.said);
    free(t.answer);
    free(t.read);
    lm_close(&m);
    return code;
}

const verb verb_chat = {
    .name = "chat",
    .summary = "hold a conversation with a language model",
    .usage = "facula chat MODEL [options]",
    .options = options,
    .examples =
        "chat model.gguf --system 'Answer in one sentence.'\nchat model.gguf --think off --temp 0",
    .run = chat,
    .list = lm_formats,
    .more = "Each line is a message.  /clear forgets the conversation, /system TEXT begins one "
            "anew with that\ntext, /regenerate answers again, /quit ends it.  Ctrl-C stops the "
            "answer, a second one the program.",
};

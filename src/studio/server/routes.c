/* Routes: the page and its modules need no key, everything else does. */
#include <string.h>
#include "base/memory.h"
#include "studio/server/studio.h"

enum { NAME = 32, WAIT_MS = 1000000, PUT_BYTES = 32 << 20 };

static void say_failed(fac_http_request *r, const fac_error *err) {
    const int status = err->status == FAC_E_NOMEM || err->status == FAC_E_INTERNAL ? 500 : 400;
    fac_http_fail(r, status, fac_status_name(err->status), "%s", err->text);
}

/* Replies with the members of an object, or with the error; frees t. */
static void say(fac_http_request *r, fac_status status, const fac_error *err, fac_text *t) {
    fac_text all = { 0 };
    fac_text_add(&all, "{");
    if (t->n) fac_text_add_bytes(&all, t->s, t->n);
    fac_text_add(&all, "}");
    if (status)
        say_failed(r, err);
    else if (t->failed || all.failed)
        fac_http_fail(r, 500, "FAC_E_NOMEM", "out of memory");
    else
        fac_http_json(r, 200, all.s);
    fac_text_free(&all);
    fac_text_free(t);
}

static void send_file(fac_http_request *r, const char *type, const fac_text *t) {
    if (t->failed)
        fac_http_fail(r, 500, "FAC_E_NOMEM", "out of memory");
    else
        fac_http_reply(r, 200, type, t->n ? t->s : "", t->n);
}

static void get_asset(void *self, fac_http_request *r) {
    const asset *a = fac_asset_find(fac_http_path(r));
    (void)self;
    if (a)
        fac_http_reply(r, 200, a->type, a->text, strlen(a->text));
    else
        fac_http_fail(r, 404, "not_found", "nothing is served at this path");
}

/* The body as an object; NULL: it is not one, and this has replied. */
static cJSON *read_body(fac_http_request *r) {
    size_t bytes;
    const char *text = fac_http_body(r, &bytes);
    cJSON *j = cJSON_ParseWithLength(text, bytes);
    if (cJSON_IsObject(j)) return j;
    cJSON_Delete(j);
    fac_http_fail(r, 400, "no_object", "the body must be a JSON object");
    return NULL;
}

/* ---- sessions ---- */

static const page *find_page(const char *name) {
    static const page *const pages[] = { &fac_page_points,  &fac_page_runs, &fac_page_images,
                                         &fac_page_graph,   &fac_page_text, &fac_page_sound,
                                         &fac_page_notebook };
    for (size_t k = 0; name && k < sizeof pages / sizeof *pages; k++)
        if (!strcmp(pages[k]->name, name)) return pages[k];
    return NULL;
}

static void open_session(void *self, fac_http_request *r) {
    fac_studio *st = self;
    fac_error err = { 0 };
    fac_text t = { 0 };
    session *s;
    char name[TABLE_NAME];
    cJSON *how = read_body(r);
    if (!how) return;
    const page *p = find_page(fac_json_string_of(how, "page"));
    if (!p) {
        cJSON_Delete(how);
        fac_http_fail(r, 400, "no_page", "unknown page");
        return;
    }
    fac_status status = fac_studio_session_new(p, &st->with, how, &s, &err);
    if (!status) status = fac_sessions_add(&st->sessions, s, name, &err);
    if (!status) fac_json_put_pair_text(&t, "id", name);
    say(r, status, &err, &t);
    cJSON_Delete(how);
}

/* The session named in the path after `before`; NULL: there is none, and this has replied. */
static table_entry *use(fac_studio *st, fac_http_request *r, const char *before) {
    const char *at = fac_http_path(r) + strlen(before);
    char name[TABLE_NAME] = "";
    const size_t n = strcspn(at, "/");
    if (n == NAME) memcpy(name, at, NAME);
    table_entry *e = fac_sessions_use(&st->sessions, name);
    if (!e) fac_http_fail(r, 404, "no_session", "this page was closed, or unused for too long");
    return e;
}

static void do_command(void *self, fac_http_request *r) {
    fac_studio *st = self;
    fac_error err = { 0 };
    fac_text t = { 0 };
    cJSON *what = read_body(r);
    table_entry *e = what ? use(st, r, "/api/do/") : NULL;
    if (e) {
        const fac_status status = fac_studio_session_command(e->session, what, &t, &err);
        say(r, status, &err, &t);
        fac_sessions_leave(&st->sessions, e);
    }
    cJSON_Delete(what);
}

static void end_session(void *self, fac_http_request *r) {
    fac_studio *st = self;
    fac_sessions_end(&st->sessions, fac_http_path(r) + strlen("/api/close/"));
    fac_http_json(r, 200, "{}");
}

static void get_file(void *self, fac_http_request *r) {
    fac_studio *st = self;
    fac_error err = { 0 };
    fac_text t = { 0 };
    const char *type = NULL, *name = fac_http_path(r) + strlen("/api/file/") + NAME;
    table_entry *e = use(st, r, "/api/file/");
    if (!e) return;
    const fac_status status =
        fac_studio_session_file(e->session, *name ? name + 1 : name, &t, &type, &err);
    if (status)
        say_failed(r, &err);
    else
        send_file(r, type, &t);
    fac_text_free(&t);
    fac_sessions_leave(&st->sessions, e);
}

/* Raw bytes stay in memory; the page interprets them. */
static void put_file(void *self, fac_http_request *r) {
    fac_studio *st = self;
    fac_error err = { 0 };
    size_t n;
    const char *bytes = fac_http_body(r, &n), *name = fac_http_path(r) + strlen("/api/put/") + NAME;
    table_entry *e = use(st, r, "/api/put/");
    if (!e) return;
    if (fac_studio_session_put(e->session, *name ? name + 1 : name, bytes, n, &err))
        say_failed(r, &err);
    else
        fac_http_json(r, 200, "{}");
    fac_sessions_leave(&st->sessions, e);
}

/* ---- streams ---- */

typedef struct reader {
    table *t;
    table_entry *e;
    int ticket;
    fac_text left;
    size_t at;
} reader;

static int64_t next(void *self, char *to, size_t room, int wait_ms) {
    reader *s = self;
    if (s->at == s->left.n) {
        fac_text_free(&s->left);
        s->left = (fac_text){ 0 };
        s->at = 0;
        if (!fac_frames_take(fac_studio_session_frames(s->e->session), s->ticket,
                             (int64_t)wait_ms * WAIT_MS, &s->left))
            return -1;
        if (s->left.failed) return -2;
    }
    const size_t n = s->left.n - s->at < room ? s->left.n - s->at : room;
    if (n) memcpy(to, s->left.s + s->at, n);
    s->at += n;
    return (int64_t)n;
}

static void done(void *self) {
    reader *s = self;
    fac_text_free(&s->left);
    fac_sessions_leave(s->t, s->e);
    fac_release(s);
}

static void get_stream(void *self, fac_http_request *r) {
    fac_studio *st = self;
    table_entry *e = use(st, r, "/api/stream/");
    if (!e) return;
    reader *s = fac_alloc(1, sizeof *s);
    if (!s) {
        fac_sessions_leave(&st->sessions, e);
        fac_http_fail(r, 500, "FAC_E_NOMEM", "out of memory");
        return;
    }
    *s = (reader){
        &st->sessions, e, fac_frames_ticket(fac_studio_session_frames(e->session)), { 0 }, 0
    };
    fac_http_stream(r, "application/octet-stream", next, done, s);
}

/* ---- questions ---- */

static void ask(void *self, fac_http_request *r) {
    const char *name = fac_http_path(r) + strlen("/api/ask/");
    const question *q = fac_questions;
    fac_error err = { 0 };
    fac_text t = { 0 };
    (void)self;
    while (q->name && strcmp(q->name, name)) q++;
    if (!q->name) {
        fac_http_fail(r, 404, "not_found", "unknown question");
        return;
    }
    cJSON *what = read_body(r);
    if (!what) return;
    const fac_status status = q->answer(what, &t, &err);
    say(r, status, &err, &t);
    cJSON_Delete(what);
}

/* Exports a file of a question. */
static void make_file(void *self, fac_http_request *r) {
    fac_error err = { 0 };
    fac_text t = { 0 };
    const char *type = NULL;
    (void)self;
    cJSON *what = read_body(r);
    if (!what) return;
    if (fac_sandbox_file(fac_http_path(r) + strlen("/api/make/"), what, &t, &type, &err))
        say_failed(r, &err);
    else
        send_file(r, type, &t);
    fac_text_free(&t);
    cJSON_Delete(what);
}

const fac_http_route fac_studio_routes[] = {
    { "GET", "/", get_asset, FAC_HTTP_OPEN, 0 },
    { "GET", "/page/", get_asset, FAC_HTTP_OPEN | FAC_HTTP_PREFIX, 0 },
    { "POST", "/api/open", open_session, 0, 0 },
    { "POST", "/api/do/", do_command, FAC_HTTP_PREFIX, 0 },
    { "POST", "/api/close/", end_session, FAC_HTTP_PREFIX, 0 },
    { "POST", "/api/ask/", ask, FAC_HTTP_PREFIX, 0 },
    { "POST", "/api/make/", make_file, FAC_HTTP_PREFIX, 0 },
    { "GET", "/api/stream/", get_stream, FAC_HTTP_PREFIX, 0 },
    { "GET", "/api/file/", get_file, FAC_HTTP_PREFIX, 0 },
    { "POST", "/api/put/", put_file, FAC_HTTP_PREFIX | FAC_HTTP_RAW, PUT_BYTES },
};
const int fac_studio_nroutes = sizeof fac_studio_routes / sizeof *fac_studio_routes;

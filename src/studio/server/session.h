/* An open page: its state, a thread that works on it, and frames for the page.
 *
 * Commands come from threads of the server.  They run between two slices of work, none of which
 * takes more than a few milliseconds, so a click is answered at once. */
#ifndef FACULA_STUDIO_SESSION_H
#define FACULA_STUDIO_SESSION_H
#include "facula/studio.h"
#include "studio/server/frames.h"
#include "studio/server/json.h"
#include "studio/runs/notebook.h"

typedef struct session session;

/* Shared by the pages of a studio. */
typedef struct studio_means {
    fac_studio_opts opts;
    notebook *notebook;
} studio_means;

/* A kind of page.  All functions but open have exclusive access to the session. */
typedef struct page {
    const char *name;
    fac_status (*open)(const studio_means *with, const cJSON *how, void **self, fac_error *err);
    void (*close)(void *self);
    /* One command.  answer: members of a JSON object, without braces. */
    fac_status (*command)(void *self, const cJSON *what, fac_text *answer, fac_error *err);
    /* Does a slice of work.  Returns the nanoseconds until the next one; negative: none before a
     * command. */
    int64_t (*work)(void *self);
    void (*show)(void *self, frames *to); /* puts frames of what is new */
    /* A file to export; *type: its media type.  FAC_E_ARGUMENT: unknown name.  May be NULL. */
    fac_status (*file)(void *self, const char *name, fac_text *out, const char **type,
                       fac_error *err);
    /* Takes bytes of a user's file or of a stream; name: what they are.  May be NULL. */
    fac_status (*put)(void *self, const char *name, const void *bytes, size_t n, fac_error *err);
} page;
extern const page fac_page_points, fac_page_runs, fac_page_images, fac_page_graph, fac_page_text,
    fac_page_sound, fac_page_notebook;

fac_status fac_studio_session_new(const page *p, const studio_means *with, const cJSON *how,
                                  session **out, fac_error *err);
void fac_studio_session_free(session *s); /* ends its readers and its thread; NULL is allowed */
fac_status fac_studio_session_command(session *s, const cJSON *what, fac_text *answer,
                                      fac_error *err);
fac_status fac_studio_session_file(session *s, const char *name, fac_text *out, const char **type,
                                   fac_error *err);
fac_status fac_studio_session_put(session *s, const char *name, const void *bytes, size_t n,
                                  fac_error *err);
frames *fac_studio_session_frames(session *s);
int64_t fac_studio_session_idle_ns(session *s); /* since the last command or reader */
#endif

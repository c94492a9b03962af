/* Between the files that read what a client asks for. */
#ifndef FACULA_SERVE_WISH_READ_H
#define FACULA_SERVE_WISH_READ_H
#include <cjson/cJSON.h>
#include "serve/wish.h"

const cJSON *fac_wish_get(const cJSON *o, const char *name); /* NULL: none, or null */
fac_status fac_wish_wrong(const char *name, const char *expected, fac_error *err);
fac_status fac_wish_flag(const cJSON *o, const char *name, bool *x, fac_error *err);

/* ---- wish_tools.c ---- */
/* tools, tool_choice, parallel_tool_calls, chat_template_kwargs. */
fac_status fac_wish_tools(const cJSON *o, fac_wish *w, fac_error *err);
/* A message's further fields, as JSON in the arena; NULL: it has none. */
fac_status fac_wish_more(const cJSON *message, fac_wish *w, const char **to, fac_error *err);
#endif

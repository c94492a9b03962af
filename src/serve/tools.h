/* Calls of tools in the text of an answer. */
#ifndef FACULA_SERVE_TOOLS_H
#define FACULA_SERVE_TOOLS_H
#include <cjson/cJSON.h>
#include "serve/wish.h"

/* How a model writes a call, which its chat template tells. */
typedef enum fac_call_form {
    FAC_CALL_NONE, /* there are no tools */
    FAC_CALL_TAGS, /* <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Hermes, Qwen */
    FAC_CALL_XML,  /* the same tags around <function=NAME><parameter=NAME>value</parameter>...
                      </function>, or that alone: Qwen 3 Coder */
    FAC_CALL_LIST, /* [TOOL_CALLS][{"name": ..., "arguments": {...}}], or name{...}: Mistral */
    FAC_CALL_JSON, /* {"name": ..., "parameters": {...}} and no more: Llama 3 */
    FAC_CALL_MUST  /* the same, since a grammar lets nothing else through */
} fac_call_form;

fac_call_form fac_call_form_of(const char *jinja, const fac_wish *w);
/* How many bytes of an answer that is still written belong to no call. */
size_t fac_call_text(fac_call_form form, const char *s, size_t n);
/* The calls of a whole answer, [{"name": ..., "arguments": "a text of JSON"}]; NULL: there are
 * none.  *text: so many bytes come before them. */
cJSON *fac_calls_read(fac_call_form form, const fac_wish *w, const char *s, size_t n, size_t *text);

/* ---- tools_xml.c ---- */
#define FAC_XML_FUNCTION "<function="
/* Adds the call that begins at *at with FAC_XML_FUNCTION, after which *at stands.  Values are of
 * the types that the tool's parameters say: those of a text stay as they are, others are read as
 * JSON. False: it is no whole call. */
bool fac_xml_call(cJSON *to, const fac_wish *w, const char *s, size_t n, size_t *at);
#endif

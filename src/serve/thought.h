/* Thoughts in the text of an answer: <think> ... </think> before it, as Qwen 3 and DeepSeek R1
 * write them. */
#ifndef FACULA_SERVE_THOUGHT_H
#define FACULA_SERVE_THOUGHT_H
#include "facula/tokenizer.h"
#include "serve/wish.h"

/* Where an answer of a model may begin. */
typedef enum fac_thought_form {
    FAC_THOUGHT_NONE, /* with its text: the template knows no thoughts, or they stay in the text */
    FAC_THOUGHT_TAGS, /* with <think> */
    FAC_THOUGHT_OPEN  /* within a thought: the prompt ends with <think> */
} fac_thought_form;

/* A thought, s[from] to s[to - 1], and the text after it, which begins at s[text]. */
typedef struct fac_thought {
    size_t from, to, text;
} fac_thought;

/* Of a conversation whose prompt has been made; jinja: the chat template, or NULL. */
fac_thought_form fac_thought_form_of(const char *jinja, const fac_wish *w, const fac_tokenizer *t);
/* What is sure of the n bytes that were written so far; over: there will be no more.  A thought
 * that is not closed goes to the end. */
fac_thought fac_thought_find(fac_thought_form form, const char *s, size_t n, bool over);
#endif

/* facula generate --beams: the most probable of several texts. */
#include <stdlib.h>
#include <string.h>
#include "generate.h"
#include "json.h"

/* The text of some tokens, of malloc; NULL: no memory. */
static char *text_of(const fac_tokenizer *t, const fac_beam *b) {
    const size_t n = fac_tokenizer_decode(t, b->ids, b->n, 0, NULL, 0);
    char *text = malloc(n + 1);
    if (!text) return NULL;
    fac_tokenizer_decode(t, b->ids, b->n, 0, text, n);
    text[n] = 0;
    return text;
}

static int print_json(const fac_tokenizer *t, const fac_beams *all) {
    cJSON *root = cJSON_CreateObject(), *texts = cJSON_AddArrayToObject(root, "beams");
    for (int k = 0; k < all->n; k++) {
        char *text = text_of(t, &all->at[k]);
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "text", text ? text : "");
        cJSON_AddNumberToObject(one, "tokens", (double)all->at[k].n);
        json_number(one, "score", all->at[k].score, 9);
        cJSON_AddItemToArray(texts, one);
        free(text);
    }
    return json_print(root);
}

static int print_text(const lm_open_model *m, const fac_beams *all, const char *prompt) {
    char *text = text_of(m->tokens, &all->at[0]);
    if (!text) return fail_text("out of memory");
    out_text(prompt, stdout);
    out_text(text, stdout);
    out_char('\n', stdout);
    free(text);
    return EXIT_OK;
}

int lm_beams(lm_open_model *m, const int32_t *ids, int64_t n, const char *prompt,
             double length_penalty) {
    fac_error err = { 0 };
    fac_beams all = { 0 };
    const fac_beam_opts o = { .beams = (int)lm_given.beams,
                              .tokens = lm_given.tokens,
                              .length_penalty = length_penalty,
                              .ignore_end = lm_given.ignore_end };
    if (fac_generate_beams(m->session, m->tokens, ids, n, &o, &all, &err)) return fail(&err);
    const int code = lm_given.json ? print_json(m->tokens, &all) : print_text(m, &all, prompt);
    fac_beams_free(&all);
    return code;
}

/* What an answer tells its client: text that is ready, and how probable its tokens were. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "serve/engine.h"

/* Comes from the writer, for text that is ready. */
static bool tell(void *self, int32_t id, const char *text, size_t bytes) {
    fac_task *t = self;
    (void)id;
    pthread_mutex_lock(&t->call->lock);
    fac_text_add_bytes(&t->text, text, bytes);
    const bool fine = !t->text.failed;
    pthread_cond_signal(&t->call->moved);
    pthread_mutex_unlock(&t->call->lock);
    return fine;
}

static void insert(fac_token_record *r, int most, fac_likely x) {
    int at = r->ntop;
    while (at > 0 && r->top[at - 1].logprob < x.logprob) at--;
    if (at >= most) return;
    if (r->ntop < most) r->ntop++;
    memmove(r->top + at + 1, r->top + at, (size_t)(r->ntop - at - 1) * sizeof *r->top);
    r->top[at] = x;
}

fac_status fac_task_record(fac_task *t, const float *logits, int64_t vocabulary, int32_t id,
                           fac_error *err) {
    const int most = t->call->wish.logprobs;
    const float sum = (float)fac_log_sum(logits, vocabulary);
    fac_token_record r = { .chosen = { id, logits[id] - sum } };
    for (int64_t k = 0; k < vocabulary && most; k++)
        if (r.ntop < most || logits[k] - sum > r.top[r.ntop - 1].logprob)
            insert(&r, most, (fac_likely){ (int32_t)k, logits[k] - sum });
    pthread_mutex_lock(&t->call->lock);
    const bool room = fac_reserve(&t->records, &t->room, t->nrecords + 1, sizeof *t->records);
    if (room) t->records[t->nrecords++] = r;
    pthread_mutex_unlock(&t->call->lock);
    return room ? FAC_OK : fac_raise_memory(err, "the answer");
}

fac_status fac_task_begin(fac_task *t, const fac_tokenizer *tokens, const fac_lm_facts *facts,
                          fac_error *err) {
    fac_generate_stat *stat = fac_alloc(1, sizeof *stat);
    if (!stat) return fac_raise_memory(err, "the answer");
    t->writer = (fac_writer){
        .t = tokens, .o = &t->how, .tell = tell, .self = t, .facts = *facts, .stat = stat
    };
    const fac_status status = fac_writer_begin(&t->writer, t->prompt, t->nprompt, err);
    if (status)
        fac_release(stat);
    else
        t->begun = true;
    return status;
}

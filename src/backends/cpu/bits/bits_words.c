/* Convolutions of bits whose codes whole numbers tell, a word of 32 channels at once (bits.h). */
#include "backends/cpu/bits/bits_internal.h"

bool fac_bit_by_words(const fac_bit_job *j) {
    const fac_bit_conv *p = j->p;
    const bool whole = p->groups == 1 || p->K % FAC_BIT_WORD == 0;
    return j->d->limits && p->kernels->words && !p->tables && !p->sign && p->of_weights == 1 &&
           p->chunks * p->kernels->lanes == FAC_BIT_WORD && whole;
}

void fac_bit_finish_words(const fac_bit_job *j, const fac_bit_strip *s, const int32_t *sums,
                          int64_t part, const int32_t *acc) {
    const fac_bit_conv *p = j->p;
    const int64_t of_group = p->parts / p->groups, first = part % of_group * FAC_BIT_WORD;
    const int64_t words = fac_bit_up(p->groups * p->K, FAC_BIT_WORD);
    const int64_t at = (s->image * p->P + s->row) * p->Q + s->column;
    const int64_t k = part / of_group * p->K + first, left = p->K - first;
    const fac_bit_word t = { .n = (int)p->run,
                             .planes = p->planes,
                             .acc = acc,
                             .pixel = j->end.pixel,
                             .plane = j->end.plane,
                             .times = p->times,
                             .sums = sums,
                             .limits = j->limits + part * FAC_BIT_WORD,
                             .limits_row = j->end.limits_row,
                             .codes = &j->y,
                             .q = j->d->q + at * words + k / FAC_BIT_WORD,
                             .valid = left < FAC_BIT_WORD ? (1u << left) - 1 : ~0u,
                             .q_pixel = words,
                             .q_plane = p->images * p->P * p->Q * words };
    p->kernels->words(&t);
}

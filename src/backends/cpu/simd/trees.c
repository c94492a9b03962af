/* Decision trees, many walks at once: see fac_tree_walk in simd.h.  All lanes take a step whether
 * or not they are at a leaf, where they stay, so that nothing is guessed by a branch predictor;
 * gathers bring what they read. */
#include "backends/cpu/simd/vector.h"
#include "ops/ml/tree.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

extern fac_tree_kernel FAC_SIMD(fac_trees);

#if defined(__AVX512F__)
/* Which lanes answer yes; bits FAC_TREE_EQUAL and FAC_TREE_NAN of the codes say how. */
INLINE __mmask16 answers(__m512i code, __m512 x, __m512 split) {
    const __mmask16 equal = _mm512_test_epi32_mask(code, _mm512_set1_epi32(FAC_TREE_EQUAL));
    const __mmask16 nan = _mm512_test_epi32_mask(code, _mm512_set1_epi32(FAC_TREE_NAN));
    const __mmask16 below = _mm512_cmp_ps_mask(x, split, _CMP_LE_OQ);
    const __mmask16 same = _mm512_cmp_ps_mask(x, split, _CMP_EQ_OQ);
    return (__mmask16)((below & ~equal) | (same & equal) |
                       (_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q) & nan));
}

bool FAC_SIMD(fac_trees)(fac_tree_walk *t) {
    __m512i at = _mm512_loadu_si512(t->at);
    const __m512i row = _mm512_loadu_si512(t->row), nodes = _mm512_set1_epi32(t->nodes);
    const __m512i columns = _mm512_set1_epi32(t->columns), zero = _mm512_setzero_si512();
    if (_mm512_cmpge_epu32_mask(at, nodes)) return false;
    for (int32_t step = 0; step <= t->nodes; step++) {
        const __m512i code = _mm512_i32gather_epi32(at, t->features, 4);
        const __mmask16 going = _mm512_cmpge_epi32_mask(code, zero);
        if (!going) {
            _mm512_storeu_si512(t->at, at);
            return true;
        }
        const __m512i column = _mm512_and_epi32(code, _mm512_set1_epi32(FAC_TREE_FEATURE));
        if (_mm512_mask_cmpge_epi32_mask(going, column, columns)) return false;
        const __m512 split = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), going, at, t->splits, 4);
        const __m512 x = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), going,
                                                  _mm512_add_epi32(row, column), t->x, 4);
        const __m512i yes = _mm512_mask_i32gather_epi32(at, going, at, t->next, 4);
        const __mmask16 no = (__mmask16)(going & ~answers(code, x, split));
        at = _mm512_mask_add_epi32(yes, no, yes, _mm512_set1_epi32(1));
        if (_mm512_cmpge_epu32_mask(at, nodes)) return false;
    }
    return false;
}
#else
/* The step of one lane; *bad: it left the tables. */
INLINE int32_t step_of(const fac_tree_walk *t, int32_t row, int32_t at, bool *bad) {
    const int32_t code = t->features[at], column = code & FAC_TREE_FEATURE;
    if (code < 0) return at;
    *bad |= column >= t->columns;
    const float x = *bad ? 0 : t->x[row + column], split = t->splits[at];
    const bool below = code & FAC_TREE_EQUAL ? x == split : x <= split;
    const int32_t to = t->next[at] + !(below | ((code & FAC_TREE_NAN) != 0 && x != x));
    *bad |= (uint32_t)to >= (uint32_t)t->nodes;
    return *bad ? at : to;
}

bool FAC_SIMD(fac_trees)(fac_tree_walk *t) {
    bool bad = false;
    for (int k = 0; k < FAC_TREE_LANES; k++) bad |= (uint32_t)t->at[k] >= (uint32_t)t->nodes;
    for (int32_t step = 0; step <= t->nodes && !bad; step++) {
        bool moved = false;
        for (int k = 0; k < FAC_TREE_LANES && !bad; k++) {
            const int32_t to = step_of(t, t->row[k], t->at[k], &bad);
            moved |= t->features[t->at[k]] >= 0;
            t->at[k] = to;
        }
        if (!moved) return !bad;
    }
    return false;
}
#endif

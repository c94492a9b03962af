/* What the ops conv2d_basis and conv2d_codes, the passes that make them and their solvers agree
 * on.
 *
 * Codes of numbers are planes of words: u32 A,N,H,W,(C + 31) / 32, and bit c % 32 of word c / 32 is
 * digit j of channel c in plane j.  Bits after the last channel are 0. */
#ifndef FACULA_OPS_CONV_BASIS_H
#define FACULA_OPS_CONV_BASIS_H
#include "ops/basis.h"
#include "ops/conv.h"

enum { FAC_WORD_BITS = 32 };

/* Ports; the last three of conv2d_codes alone. */
enum {
    FAC_CB_X,
    FAC_CB_BITS,
    FAC_CB_B,
    FAC_CB_X_BASIS,
    FAC_CB_W_BASIS,
    FAC_CB_SCALE,
    FAC_CB_PORTS,
    FAC_CB_Z = FAC_CB_PORTS,
    FAC_CB_Y_BASIS,
    FAC_CB_LIMITS,
    FAC_CC_PORTS
};

/* The convolution's own first: what reads those of conv2d reads them here. */
typedef struct fac_conv_basis_attrs {
    fac_conv2d_opts conv;
    fac_dims dims;       /* of the weight: K, C/groups, R, S */
    bool relu;           /* of x, before it is quantized     */
    bool y_relu, q_relu; /* conv2d_codes: of y; of y before it becomes codes */
} fac_conv_basis_attrs;
extern const fac_op fac_op_conv2d_basis, fac_op_conv2d_codes;

static inline int64_t fac_words_of(int64_t channels) {
    return (channels + FAC_WORD_BITS - 1) / FAC_WORD_BITS;
}

/* Where word `word` of plane j of a pixel lies: dims of codes. */
static inline int64_t fac_code_at(const fac_dims *d, int64_t j, int64_t image, int64_t row,
                                  int64_t column, int64_t word) {
    return (((j * d->d[1] + image) * d->d[2] + row) * d->d[3] + column) * d->d[4] + word;
}

/* The dims of x as an image N,C,H,W, also where it is codes. */
fac_dims fac_conv_basis_image(const fac_type *x, const fac_conv_basis_attrs *a);

/* false: sizes are open. */
bool fac_conv_basis_geometry(const fac_node *n, fac_conv_geom *g);

/* The levels of a basis of positive digits; basis->f NULL: of signs, one plane whose digits are -1
 * and 1. */
void fac_code_levels(const fac_array *basis, bool single, fac_basis *to);
unsigned fac_code_of(const fac_basis *b, double x);
double fac_code_level(const fac_basis *b, unsigned code);

/* Shared by both ops. */
extern const fac_attr fac_conv_basis_table[];
bool fac_conv_basis_infer(fac_node *n);
fac_status fac_conv_basis_ref(const fac_ref *r, const fac_array *y, fac_error *err);
void fac_conv_basis_cost(const fac_node *n, fac_cost *to);
#endif

/* Lines of elements folded by a group of C x G work items: G of them (a power of two) do one line
 * together, through local memory in a fixed order; C lines are done side by side.  COLUMNS: lines
 * lie side by side in memory, so neighbouring items take neighbouring lines; otherwise neighbouring
 * items take neighbours of a line.  V > 1: a vector is of V neighbours of the line, or of V lines.
 *
 * FOLDER(name, OP) makes  folded name(local folded *tree, TV x): the fold of all that the items of
 * a line hold, for each of them: a T, or a TV where a vector is of V lines.  TEAM_FOLDER(name,
 * type, OP) makes  type name(local type *tree, type x). */
#if G > 1
#ifdef COLUMNS
#define MY_LINE ((int)get_local_id(0) % C)
#define MY_PART ((int)get_local_id(0) / C)
#define TREE(part) ((part)*C + MY_LINE)
#else
#define MY_LINE ((int)get_local_id(0) / G)
#define MY_PART ((int)get_local_id(0) % G)
#define TREE(part) (MY_LINE * G + (part))
#endif
#define TREE_SIZE (C * G)
#else
#define MY_LINE ((int)get_local_id(0))
#define MY_PART 0
#define TREE_SIZE 1
#endif

/* Of the lanes of a vector, neighbours first. */
#if V == 1 || defined(COLUMNS)
typedef TV folded;
#define FOLD_LANES(OP, x) (x)
#else
typedef T folded;
#define FOLD_LANES(OP, x) fold_lanes_##OP(x)
#endif

#define LANES_FOLDER(OP)                                                                           \
    static inline T fold_lanes_##OP(TV x) {                                                        \
        lanes r = { .v = x };                                                                      \
        for (int n = V / 2; n > 0; n /= 2)                                                         \
            for (int l = 0; l < n; l++) r.lane[l] = OP(r.lane[l], r.lane[l + n]);                  \
        return r.lane[0];                                                                          \
    }
/* Where items read each other's registers (exchange.cl), a team folds without local memory as far
 * as that reaches, in pairs whose numbers differ in one bit: OP must not care which of two comes
 * first.  What is left is folded by all alike.  What a partner has gets a name: OP may write its
 * operands more than once, and everybody must ask together. */
#if G > 1 && defined(FAC_EXCHANGE) && !defined(COLUMNS) && C * G % 32 == 0
#define TEAM_FOLDER(name, type, OP)                                                                \
    EXCHANGER(name##_exchanged, type)                                                              \
    static inline type name##_paired(type x, int lanes) {                                          \
        _Pragma("unroll") for (int n = lanes / 2; n > 0; n /= 2) {                                 \
            const type other = name##_exchanged(x, n);                                             \
            x = OP(x, other);                                                                      \
        }                                                                                          \
        return x;                                                                                  \
    }                                                                                              \
    __attribute__((always_inline)) static inline type name(local type *tree, type x) {             \
        const int lanes = min(G, fac_lanes()), rest = G / lanes;                                   \
        x = name##_paired(x, lanes);                                                               \
        if (rest == 1) return x;                                                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        if (MY_PART % lanes == 0) tree[TREE(MY_PART / lanes)] = x;                                 \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        x = name##_paired(tree[TREE(MY_PART % rest)], min(rest, lanes));                           \
        for (int n = lanes; n < rest; n += lanes) {                                                \
            const type other = name##_paired(tree[TREE((MY_PART + n) % rest)], lanes);             \
            x = OP(x, other);                                                                      \
        }                                                                                          \
        return x;                                                                                  \
    }
#else
/* Inlined at once: a compiler for CPUs that sees the same local array at each call takes it for one
 * that all groups share. In two steps, since barriers cost more than reading: HEADS items fold G /
 * HEADS numbers each, all fold what they got. */
#if G > 256
#define HEADS 32
#elif G > 64
#define HEADS 16
#elif G > 16
#define HEADS 8
#else
#define HEADS (G < 4 ? G : 4)
#endif
#if G > 1
#define TEAM_FOLDER(name, type, OP)                                                                \
    __attribute__((always_inline)) static inline type name(local type *tree, type x) {             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        tree[TREE(MY_PART)] = x;                                                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        if (MY_PART < HEADS) {                                                                     \
            for (int n = HEADS; n < G; n += HEADS) x = OP(x, tree[TREE(MY_PART + n)]);             \
            tree[TREE(MY_PART)] = x;                                                               \
        }                                                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        x = tree[TREE(0)];                                                                         \
        for (int n = 1; n < HEADS; n++) x = OP(x, tree[TREE(n)]);                                  \
        return x;                                                                                  \
    }
#else
#define TEAM_FOLDER(name, type, OP)                                                                \
    static inline type name(local type *tree, type x) { return x; }
#endif
#endif
#define FOLDER(name, OP)                                                                           \
    LANES_FOLDER(OP)                                                                               \
    TEAM_FOLDER(name##_team, folded, OP)                                                           \
    __attribute__((always_inline)) static inline folded name(local folded *tree, TV x) {           \
        return name##_team(tree, FOLD_LANES(OP, x));                                               \
    }

/* Local memory for FOLDER's functions, in a kernel. */
#if G > 1
#define TREE_OF_TEAM local folded tree[TREE_SIZE];
#else
#define TREE_OF_TEAM local folded *tree = 0;
#endif

/* The compiler must leave room for the registers of so many items.  CAPPED: an option of NVIDIA's
 * says how many registers an item has, which counts only where the size of a group is not told. */
#ifdef CAPPED
#define TEAM_KERNEL kernel void
#else
#define TEAM_KERNEL kernel __attribute__((reqd_work_group_size(C * G, 1, 1))) void
#endif

/* unit: the line of this item; those that have none (not live) go through the first once more, for
 * the barriers. */
#define LINE_OF_TEAM(group)                                                                        \
    pos unit = (pos)(group)*C + MY_LINE;                                                           \
    bool live = unit < (pos)s.units;                                                               \
    unit = live ? unit : 0;

/* Whether element i is one of the `size` that the line has; FULL: the team's accesses are exactly
 * the line. */
#ifdef FULL
#define IN_LINE(i) true
#else
#define IN_LINE(i) ((i) < size)
#endif

/* How many neighbours of a line an access is. */
#if defined(UNIT) && !defined(COLUMNS)
enum { WIDE_STEP = V };
#else
enum { WIDE_STEP = 1 };
#endif

/* Part number `part` of `parts`: rows *first .. *last of all of them, or where there are fewer
 * rows, elements *begin .. *end of each. */
static inline void part_of(pos parts, pos part, pos *first, pos *last, pos *begin, pos *end) {
    if (parts <= 1) return;
    const bool rows = *last >= parts;
    const pos all = rows ? *last : (*end + WIDE_STEP - 1) / WIDE_STEP, each = all / parts,
              more = all % parts;
    const pos from = each * part + min(part, more), to = from + each + (part < more);
    if (rows) {
        *first = from;
        *last = to;
    } else {
        *begin = from * WIDE_STEP;
        *end = min(to * WIDE_STEP, *end);
    }
}

/* Where line number `line` of these dims begins.  What is left for the first dim is less than its
 * size, and goes without a division: an item's share of a line may cost less than one. */
static inline pos place(const long *size, const long *step, int dims, pos line) {
    pos at = 0;
    if (!dims) return 0;
    for (int k = dims - 1; k > 0; k--) {
        at += line % (pos)size[k] * (pos)step[k];
        line /= (pos)size[k];
    }
    return at + line * (pos)step[0];
}

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
/* A NaN wins. */
#define LARGER(a, b) ((((a) > (b)) | ((a) != (a))) ? (a) : (b))
#define SMALLER(a, b) ((((a) < (b)) | ((a) != (a))) ? (a) : (b))
/* A NaN loses; of floats it is one instruction. */
#define HIGHER(a, b) fmax(a, b)

/* V lanes to places `step` apart. */
#define STORER_APART(name, tag)                                                                    \
    STORER(name##_near, tag)                                                                       \
    static inline void name(global MEMORY(tag) * p, pos step, pos n, TV v) {                       \
        if (step == 1) {                                                                           \
            name##_near(p, n, v);                                                                  \
            return;                                                                                \
        }                                                                                          \
        lanes r = { .v = v };                                                                      \
        for (pos l = 0; l < V && l < n; l++) STORE(tag, p, l *step, r.lane[l]);                    \
    }

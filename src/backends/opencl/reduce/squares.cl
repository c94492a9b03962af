/* Sums of squares of several tensors: a group of G items does a chunk of one of them, `gather` adds
 * up what all chunks gave. Options: those of elements.cl and team.cl (C == 1); X; INPUTS: x0, x1,
 * ... as the parameters of the kernel; PICK: the statement that sets x and n for a chunk, which
 * counts on from there. */
#ifdef INPUTS
typedef struct {
    long at[COUNT], to, first[COUNT + 1], size[COUNT], before;
} numbers;

LOADER(load_x, X)
FOLDER(fold, PLUS)
enum { BLOCK = 64 };

kernel void squares(const numbers s, INPUTS, global T *to) {
    TREE_OF_TEAM
    global const MEMORY(X) * x;
    long chunk = get_group_id(0), n;
    PICK const long first = chunk * CHUNK, last = min(first + CHUNK, n);
    TV total = (TV)(T)0;
    for (long i = first + MY_PART * V; i < last;) {
        TV sum = (TV)(T)0;
        const long stop = i + min((last - i + G * V - 1) / (G * V), (long)BLOCK) * (G * V);
#pragma unroll 4
        for (; i < stop; i += G * V) {
            const TV e = load_x(x + i, (pos)(last - i), 0);
            sum += e * e;
        }
        total += sum;
    }
    const T r = fold(tree, total);
    if (MY_PART == 0) to[s.to + s.before + get_group_id(0)] = r;
}
#else
typedef struct {
    long from, y, count;
} numbers;
FOLDER(fold, PLUS)

kernel void gather(const numbers s, global const T *from, global MEMORY(X) * y) {
    TREE_OF_TEAM
    T sum = 0;
    for (long i = MY_PART; i < s.count; i += G) sum += from[s.from + i];
    sum = fold(tree, sum);
    if (MY_PART == 0) STORE(X, y, s.y, sum);
}
#endif

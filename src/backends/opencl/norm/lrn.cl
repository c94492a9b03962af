/* y = x (bias + factor sum of x^2 over a window of channels)^-beta; x and y dense, pixels last or
 * (LAST) channels last.  An item has V neighbouring pixels, or one element.  Options: those of
 * elements.cl; X; THREE_QUARTERS: beta is 0.75, which roots do. */
typedef struct {
    long x, y, units, channels, plane, before, after, factor, bias, beta;
} numbers;

LOADER(load_x, X)
STORER(store_y, X)

kernel void lrn(const numbers s, global const MEMORY(X) * x, global MEMORY(X) * y) {
    const pos unit = (pos)get_global_id(0), channels = (pos)s.channels;
    if (unit >= (pos)s.units) return;
#ifdef LAST
    const pos c = unit % channels, step = 1, left = 1, at = unit;
#else
    const pos plane = (pos)s.plane, tiles = (plane + V - 1) / V, pixel = unit % tiles * V,
              row = unit / tiles;
    const pos c = row % channels, step = plane, left = plane - pixel, at = row * plane + pixel;
#endif
    const pos first = max(c - (pos)s.before, (pos)0), last = min(c + (pos)s.after, channels - 1);
    TV sum = (TV)(T)0;
    x += s.x;
    y += s.y;
    for (pos k = first; k <= last; k++) {
        const TV e = load_x(x + at + (k - c) * step, left, 0);
        sum += e * e;
    }
    const TV base = (TV)REAL(s.bias) + REAL(s.factor) * sum;
#ifdef THREE_QUARTERS
    const TV root = sqrt(base);
    store_y(y + at, left, load_x(x + at, left, 0) / (root * sqrt(root)));
#else
    store_y(y + at, left, load_x(x + at, left, 0) / pow(base, (TV)REAL(s.beta)));
#endif
}

// All drawing of the studio: canvases that fit their container, heat maps, contours, points, curves, bars.
const dark = matchMedia("(prefers-color-scheme: dark)");
let colours;
const rgb = text => {
    const n = parseInt(text.trim().slice(1), 16);
    return [n >> 16, n >> 8 & 255, n & 255];
};
export const colour = name => {
    if (!colours) {
        const of = getComputedStyle(document.documentElement);
        colours = { map: null, of: n => of.getPropertyValue("--" + n).trim() };
    }
    return colours.of(name);
};
const redraws = new Set();
dark.addEventListener("change", () => {
    colours = null;
    redraws.forEach(f => f());
});

// 256 colours from a through the middle to b, as pixels.
const palette = () => {
    colour("a");
    if (colours.map) return colours.map;
    const [a, m, b] = ["a", "mid", "b"].map(n => rgb(colour(n))), map = new Uint32Array(256);
    for (let i = 0; i < 256; i++) {
        const t = Math.abs(i - 127.5) / 127.5 * .86, to = i < 128 ? a : b;
        const c = m.map((x, k) => Math.round(x + (to[k] - x) * t));
        map[i] = 0xff000000 | c[2] << 16 | c[1] << 8 | c[0];
    }
    return colours.map = map;
};

// A canvas with `draw(ctx, width, height)`, which is called with CSS pixels.
export const picture = (label, height, draw, props = {}) => {
    const c = document.createElement("canvas");
    c.className = "fill";
    c.setAttribute("role", "img");
    c.setAttribute("aria-label", label);
    if (props.tabIndex !== undefined) c.tabIndex = props.tabIndex;
    const fit = () => {
        const w = c.clientWidth, h = props.square ? w : props.height?.() ?? height, scale = devicePixelRatio || 1;
        if (!w) return false;
        c.style.height = h + "px";
        if (c.width !== Math.round(w * scale) || c.height !== Math.round(h * scale)) {
            c.width = Math.round(w * scale);
            c.height = Math.round(h * scale);
        }
        const ctx = c.getContext("2d");
        ctx.setTransform(scale, 0, 0, scale, 0, 0);
        ctx.clearRect(0, 0, w, h);
        Object.assign(ctx, { lineWidth: 1, globalAlpha: 1, lineCap: "butt", lineJoin: "miter", textAlign: "start", textBaseline: "alphabetic" });
        draw(ctx, w, h);
        return true;
    };
    let asked = false;
    c.redraw = () => {
        if (asked) return;
        asked = true;
        requestAnimationFrame(() => {
            asked = false;
            if (c.isConnected) fit();
            else redraws.delete(c.redraw);
        });
    };
    new ResizeObserver(() => { redraws.add(c.redraw); c.redraw(); }).observe(c);
    return c;
};

const scratch = document.createElement("canvas");
// Draws w x h bytes, one per pixel, over the rectangle; discrete: two colours.
export const heat = (ctx, bytes, w, h, x, y, width, height, discrete) => {
    const map = palette();
    scratch.width = w;
    scratch.height = h;
    const s = scratch.getContext("2d"), image = s.createImageData(w, h), to = new Uint32Array(image.data.buffer);
    for (let i = 0; i < to.length; i++) to[i] = map[discrete ? (bytes[i] > 127 ? 215 : 40) : bytes[i]];
    s.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = !discrete;
    ctx.drawImage(scratch, x, y, width, height);
};

// Draws heights f of n x n places, 0 to 1, as a rotated surface; far squares first.
export const surface = (ctx, f, n, width, height, degrees) => {
    const map = palette(), c = Math.cos(degrees * Math.PI / 180), s = Math.sin(degrees * Math.PI / 180), squares = [];
    const near = (i, j) => (i / (n - 1) - .5) * s + (j / (n - 1) - .5) * c;
    const at = (i, j) => [width * (.5 + .64 * ((i / (n - 1) - .5) * c - (j / (n - 1) - .5) * s)),
        height * (.54 + .34 * near(i, j) - .5 * (f[j * n + i] - .5))];
    for (let j = 0; j + 1 < n; j++) for (let i = 0; i + 1 < n; i++) squares.push([i, j, near(i, j)]);
    for (const [i, j] of squares.sort((a, b) => a[2] - b[2])) {
        const v = (f[j * n + i] + f[j * n + i + 1] + f[j * n + n + i] + f[j * n + n + i + 1]) / 4;
        if (!Number.isFinite(v)) continue;
        const p = map[Math.round(255 * v)];
        ctx.beginPath();
        [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]].forEach(q => ctx.lineTo(...at(...q)));
        ctx.fillStyle = `rgb(${p & 255} ${p >> 8 & 255} ${p >> 16 & 255})`;
        ctx.strokeStyle = i % 5 && j % 5 ? ctx.fillStyle : colour("soft");
        ctx.fill();
        ctx.stroke();
    }
};

// Draws the line where bytes cross `level`: marching squares between the centres of pixels.
export const contour = (ctx, f, w, h, level, x, y, width, height, style = colour("ink")) => {
    const px = i => x + (i + .5) / w * width, py = j => y + (j + .5) / h * height;
    ctx.beginPath();
    for (let j = 0; j + 1 < h; j++) for (let i = 0; i + 1 < w; i++) {
        const v = [f[j * w + i], f[j * w + i + 1], f[(j + 1) * w + i + 1], f[(j + 1) * w + i]].map(b => b - level);
        const cut = (a, b) => v[a] / (v[a] - v[b]), at = [];
        if (v[0] > 0 !== v[1] > 0) at.push([px(i + cut(0, 1)), py(j)]);
        if (v[1] > 0 !== v[2] > 0) at.push([px(i + 1), py(j + cut(1, 2))]);
        if (v[3] > 0 !== v[2] > 0) at.push([px(i + cut(3, 2)), py(j + 1)]);
        if (v[0] > 0 !== v[3] > 0) at.push([px(i), py(j + cut(0, 3))]);
        for (let k = 0; k + 1 < at.length; k += 2) {
            ctx.moveTo(...at[k]);
            ctx.lineTo(...at[k + 1]);
        }
    }
    ctx.strokeStyle = style;
    ctx.lineWidth = 1.4;
    ctx.stroke();
};

// Points [x, y, label, test] of the unit square: circles and squares, test points hollow.
export const scatter = (ctx, points, x, y, width, height, size = 4, wrong) => {
    points.forEach(([px, py, label, test], i) => {
        const cx = x + px * width, cy = y + (1 - py) * height;
        ctx.beginPath();
        if (label) ctx.rect(cx - size * .9, cy - size * .9, size * 1.8, size * 1.8);
        else ctx.arc(cx, cy, size, 0, 7);
        ctx.fillStyle = test ? colour("card") : colour(label ? "b" : "a");
        ctx.strokeStyle = test ? colour(label ? "b" : "a") : colour("card");
        ctx.lineWidth = test ? 2 : 1;
        ctx.fill();
        ctx.stroke();
        if (!wrong?.(i)) return;
        ctx.beginPath();
        ctx.arc(cx, cy, size * 2.1, 0, 7);
        ctx.strokeStyle = colour("ink");
        ctx.stroke();
    });
};

// ---- axes and curves ----
export const ticks = (low, high, most) => {
    const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw)), all = [];
    const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= raw * .999) || raw;
    for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) all.push(+v.toPrecision(10));
    return all;
};
const word = v => Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-3) ? v.toExponential(0) : String(+v.toPrecision(4));
const spread = values => {
    let low = Infinity, high = -Infinity;
    for (const v of values) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    if (low > high) return [0, 1];
    return low === high ? [low - .5, high + .5] : [low, high];
};

// series: [{ x, y, colour, dash, dots }]; o: { x: [low, high], y: [...], xlabel, ylabel, log, room }.  Returns the scales.
export const plot = (ctx, w, h, series, o = {}) => {
    const left = o.left ?? 46, bottom = h - (o.xlabel ? 34 : 20), top = 8, right = w - 10;
    const logged = v => o.log ? Math.log10(Math.max(v, 1e-12)) : v;
    const join = k => series.flatMap(s => s[k]);
    const [x0, x1] = o.x || spread(join("x"));
    let [y0, y1] = o.y || spread(join("y").map(logged));
    if (!o.y) { const pad = (y1 - y0) * .05; y0 -= pad; y1 += pad; }
    const sx = v => left + (v - x0) / (x1 - x0) * (right - left), sy = v => bottom - (logged(v) - y0) / (y1 - y0) * (bottom - top);
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillStyle = colour("soft");
    ctx.strokeStyle = colour("line");
    ctx.lineWidth = 1;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const v of ticks(y0, y1, Math.max(2, (bottom - top) / 36))) {
        const y = bottom - (v - y0) / (y1 - y0) * (bottom - top);
        ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(right, y); ctx.stroke();
        ctx.fillText(word(o.log ? 10 ** v : v), left - 6, y);
    }
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    for (const v of ticks(x0, x1, Math.max(2, (right - left) / 70))) ctx.fillText(word(v), sx(v), bottom + 5);
    if (o.xlabel) ctx.fillText(o.xlabel, (left + right) / 2, h - 14);
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top - 4, right - left, bottom - top + 8); ctx.clip();
    for (const s of series) curve(ctx, s, sx, sy);
    ctx.restore();
    return { sx, sy, x: [x0, x1], y: [y0, y1], left, right, top, bottom };
};
const curve = (ctx, s, sx, sy) => {
    ctx.strokeStyle = ctx.fillStyle = s.colour;
    ctx.lineWidth = s.width || 1.8;
    ctx.setLineDash(s.dash || []);
    ctx.beginPath();
    let down = false;
    s.x.forEach((x, i) => {
        const y = s.y[i];
        if (!Number.isFinite(y)) { down = false; return; }
        if (s.dots) { ctx.moveTo(sx(x) + 3, sy(y)); ctx.arc(sx(x), sy(y), 3, 0, 7); }
        else if (down) ctx.lineTo(sx(x), sy(y));
        else ctx.moveTo(sx(x), sy(y));
        down = true;
    });
    if (s.dots) ctx.fill(); else ctx.stroke();
    ctx.setLineDash([]);
};
export const legend = items => {
    const d = document.createElement("div");
    d.className = "legend";
    for (const [name, c] of items) {
        const span = document.createElement("span"), mark = document.createElement("i");
        mark.style.background = c.startsWith("#") || c.startsWith("hsl") ? c : `var(--${c})`;
        span.append(mark, name);
        d.append(span);
    }
    return d;
};

// Bars of counts between min and max.
export const bars = (ctx, w, h, counts, min, max, style) => {
    const most = Math.max(1, ...counts), bottom = h - 16, wide = (w - 4) / counts.length;
    ctx.fillStyle = style;
    counts.forEach((n, i) => ctx.fillRect(2 + i * wide, bottom - n / most * (bottom - 4), Math.max(1, wide - 1), n / most * (bottom - 4)));
    ctx.fillStyle = colour("soft");
    ctx.font = "10.5px system-ui, sans-serif";
    ctx.textBaseline = "bottom";
    ctx.textAlign = "left";
    ctx.fillText(word(min), 2, h - 1);
    ctx.textAlign = "right";
    ctx.fillText(word(max), w - 2, h - 1);
};

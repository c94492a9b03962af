// The network as a picture: a small heat map for each neuron, lines for weights, an editor of layers.
import { el, button, choose } from "/page/form.js";
import { picture, heat, colour } from "/page/draw.js";

const SIZE = 34, SHOWN = 16, DEEPEST = 8, ACTIVATIONS = ["relu", "tanh", "sigmoid", "gelu", "linear"];

export const network = page => {
    let layers = [], activation = "relu", neurons = [], weights = null, params = [], dead = [], near = null;
    const editor = el("div", { className: "editor", id: "editor" });
    const note = el("p", { className: "note" });
    const told = el("p", { className: "note", role: "status" }, "Point at a line to see its weight, click to change it.");
    const value = el("input", { type: "number", step: "any", "aria-label": "weight", hidden: true });

    // A state that the session sent before it got the last change is old: the next click starts from that change.
    // If the change is refused or never arrives, the last state of the session counts.
    let wanted = null, told_last = null;
    const change = async widths => {
        if (widths.length > DEEPEST) return;
        const mine = wanted = [...widths, activation].join(",");
        layers = widths;
        const taken = await page.send({ net: mine, keep: true });
        setTimeout(() => {
            if (wanted !== mine) return;
            wanted = null;
            if (told_last) show(told_last);
        }, taken ? 1000 : 0);
    };
    const build_editor = () => {
        editor.replaceChildren(el("span", { className: "pill" }, "x, y"),
            ...layers.map((width, k) => {
                const i = el("input", { type: "number", min: 1, max: 512, value: width, "aria-label": `width of hidden layer ${k + 1}`,
                    onchange: () => change(layers.with(k, Math.min(512, Math.max(1, Math.round(+i.value) || 1)))) });
                return el("span", { className: "layer" }, i, button("×", () => change(layers.toSpliced(k, 1)), { "aria-label": `remove hidden layer ${k + 1}` }));
            }),
            layers.length < DEEPEST ? button("+ layer", () => change([...layers, layers.at(-1) || 8]), { id: "more" }) : null,
            el("span", { className: "pill" }, "2 classes"));
    };
    const kind = choose("Activation", ACTIVATIONS, "relu", v => { activation = v; change(layers); }, { id: "activation" });

    // Middle of neuron i of column k; columns: inputs, hidden layers, outputs.
    const columns = () => [2, ...layers.map(n => Math.min(n, SHOWN)), 2];
    const height = () => Math.max(150, 26 + Math.max(...columns()) * (SIZE + 7));
    const place = (k, i, w, h) => {
        const all = columns(), x = all.length < 2 ? w / 2 : 24 + k / (all.length - 1) * (w - 48);
        return [x, (h - 20) / 2 + 18 + (i - (all[k] - 1) / 2) * (SIZE + 7)];
    };
    // The weight from neuron i of column k to neuron j of the next: its place in the tensor of the layer.
    const weight_of = k => {
        const at = params.findIndex(q => q.name === `fc${k + 1}.weight`);
        const from = params.slice(0, at).reduce((n, q) => n + q.shape.reduce((a, b) => a * b, 1), 0);
        return at < 0 ? null : { name: params[at].name, from, wide: params[at].shape[1] };
    };
    const each_line = (w, h, see) => {
        const all = columns();
        if (!weights?.length) return;
        for (let k = 0; k + 1 < all.length; k++) {
            const of = weight_of(k);
            if (!of) return;
            for (let j = 0; j < all[k + 1]; j++) for (let i = 0; i < all[k]; i++) {
                const index = j * of.wide + i, weight = weights[of.from + index];
                if (weight === undefined) return;           // the network is still loading
                see(place(k, i, w, h), place(k + 1, j, w, h), weight, { param: of.name, index, text: `${of.name}[${j},${i}]` });
            }
        }
    };
    const draw = (ctx, w, h) => {
        each_line(w, h, (a, b, x, line) => {
            ctx.beginPath();
            ctx.moveTo(...a);
            ctx.bezierCurveTo((a[0] + b[0]) / 2, a[1], (a[0] + b[0]) / 2, b[1], ...b);
            ctx.strokeStyle = near?.text === line.text ? colour("ink") : colour(x < 0 ? "a" : "b");
            ctx.globalAlpha = Math.min(.9, .12 + Math.abs(x) * .5);
            ctx.lineWidth = Math.min(6, .4 + Math.abs(x) * 1.6);
            ctx.stroke();
        });
        ctx.globalAlpha = 1;
        const all = columns();
        all.forEach((n, k) => { for (let i = 0; i < n; i++) draw_neuron(ctx, k, i, ...place(k, i, w, h), k === all.length - 1); });
        ctx.fillStyle = colour("soft");
        ctx.font = "12px system-ui, sans-serif";
        ctx.textAlign = "center";
        ctx.textBaseline = "top";
        all.forEach((n, k) => {
            const name = !k ? "input" : k === all.length - 1 ? "output" : `${layers[k - 1]} ${activation}` + (layers[k - 1] > SHOWN ? `, ${SHOWN} shown` : "");
            const [x] = place(k, 0, w, h), wide = ctx.measureText(name).width / 2;
            ctx.fillText(name, Math.min(w - wide - 2, Math.max(wide + 2, x)), 2);
        });
    };
    const ramp = k => Uint8Array.from({ length: 2500 }, (_, i) => 255 * (k ? 1 - Math.floor(i / 50) / 50 : i % 50 / 50));
    const inputs = [ramp(0), ramp(1)];
    const output = k => {
        const b = page.boundary;
        return b && Uint8Array.from({ length: 2500 }, (_, i) => {
            const p = b[Math.floor(i / 50) * 200 + i % 50 * 2];
            return k ? p : 255 - p;
        });
    };
    const draw_neuron = (ctx, k, i, x, y, last) => {
        const bytes = !k ? inputs[i] : last ? output(i) : neurons[k - 1]?.[i]?.bytes;
        ctx.fillStyle = colour("mid");
        ctx.fillRect(x - SIZE / 2, y - SIZE / 2, SIZE, SIZE);
        if (bytes) heat(ctx, bytes, 50, 50, x - SIZE / 2, y - SIZE / 2, SIZE, SIZE);
        ctx.strokeStyle = colour("soft");
        ctx.lineWidth = 1;
        ctx.strokeRect(x - SIZE / 2, y - SIZE / 2, SIZE, SIZE);
    };
    const view = picture("the network: neurons as small pictures of their outputs, weights as lines", 200, draw, { height: () => height() });
    view.id = "net";
    const box = el("div", { className: "net" }, view);
    const find = e => {
        const r = view.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
        let best = null, least = 64;
        each_line(r.width, r.height, (a, b, v, line) => {
            const t = (x - a[0]) / (b[0] - a[0]);
            if (t < .05 || t > .95) return;
            const u = 1 - t, at = u ** 3 * a[1] + 3 * u * u * t * a[1] + 3 * u * t * t * b[1] + t ** 3 * b[1];
            if ((at - y) ** 2 < least) { least = (at - y) ** 2; best = { ...line, value: v }; }
        });
        return best;
    };
    view.addEventListener("pointermove", e => {
        near = find(e);
        if (near) told.textContent = `${near.text} = ${near.value.toPrecision(4)}`;
        view.redraw();
    });
    view.addEventListener("click", e => {
        const line = find(e);
        if (!line) return;
        value.hidden = false;
        value.value = line.value.toPrecision(4);
        value.onchange = () => page.session.do("weight", { param: line.param, index: line.index, value: +value.value });
        value.select();
        value.focus();
    });

    const show = s => {
        const words = s.net.split(",");
        activation = words.pop();
        layers = words.map(Number);
        params = s.params;
        neurons = [];
        weights = null;
        kind.set(activation);
        value.hidden = true;
        build_editor();
        note.textContent = `${params.reduce((n, q) => n + q.shape.reduce((a, b) => a * b, 1), 0)} weights`;
        view.redraw();
    };

    return {
        parts: [editor, kind, box, el("div", { className: "bar" }, told, value), note],
        set(s) {
            told_last = s;
            if (wanted && s.net !== wanted) return;
            wanted = null;
            show(s);
        },
        take_neurons(view_of) {
            let at = 5;
            neurons = Array.from({ length: view_of.getUint8(4) }, () => {
                const n = view_of.getUint16(at, true);
                at += 2;
                return Array.from({ length: n }, () => {
                    const one = { scale: view_of.getFloat32(at, true), bytes: new Uint8Array(view_of.buffer, view_of.byteOffset + at + 4, 2500).slice() };
                    at += 2504;
                    return one;
                });
            });
            view.redraw();
        },
        take_weights(w) { weights = w; },
        tell_dead(counts) {
            const all = params.reduce((n, q) => n + q.shape.reduce((a, b) => a * b, 1), 0), sum = counts.filter(n => n >= 0);
            dead = sum;
            note.textContent = `${all} weights` + (sum.length ? `; relus that are 0 for all points: ${dead.join(", ")}` : "");
        },
    };
};

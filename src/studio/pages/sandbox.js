// Sandboxes: functions and derivatives, gradients through a graph, tensors and their views, broadcasting, modules.
import { ask, complain, make, place, take_along, write_place } from "/page/link.js";
import { el, card, button, choose, slide, check, type_in, number } from "/page/form.js";
import { picture, plot, heat, contour, surface, colour, legend } from "/page/draw.js";

const TABS = [["functions", "Functions"], ["gradients", "Gradients"], ["tensors", "Tensors"], ["broadcasting", "Broadcasting"], ["modules", "Modules"]];
const source = name => el("code", {}, name);
const numbers = text => text.trim().split(/[\s,x\[\]()]+/).filter(Boolean).map(Number);
const list_of = text => {
    const all = numbers(text);
    if (all.some(n => !Number.isFinite(n))) throw new Error("numbers, parted by commas, are expected: " + text);
    return all;
};
const question = async (name, what) => {
    try { return await ask(name, what()); }
    catch (e) { complain(e.message); return null; }
};

const along = (name, what, more = []) =>
    take_along({ file: async f => make(name, what(), f) }, ["command.txt", "graph.txt", "model.onnx", ...more, "net.c", "net.py"]);

export const open = async main => {
    const body = el("div"), tabs = el("div", { className: "bar", role: "tablist", "aria-label": "sandboxes" });
    const show = async name => {
        place.set("tab", name);
        write_place();
        for (const b of tabs.children) b.setAttribute("aria-selected", String(b.dataset.tab === name));
        for (const b of tabs.children) b.setAttribute("aria-pressed", String(b.dataset.tab === name));
        body.replaceChildren();
        await sandboxes[name](body);
    };
    for (const [name, title] of TABS) {
        const b = button(title, () => show(name), { role: "tab" });
        b.dataset.tab = name;
        tabs.append(b);
    }
    main.append(el("h1", {}, "Sandboxes"), el("p", { className: "lead" }, "Basic building blocks, each computed by the engine: ",
        "functions and their derivatives, gradients through a graph, the layout of a tensor, broadcasting, modules."), tabs, body);
    await show(TABS.some(t => t[0] === place.get("tab")) ? place.get("tab") : "functions");
    return () => {};
};

// ---- functions ----
const functions = async to => {
    const { functions: all } = await ask("functions", {});
    const says = el("pre", { id: "formula" }), state = { name: "tanh", text: "tanh(x)", low: -6, high: 6, slopes: true, solid: false, turn: 30 };
    let got = null, seen = null;
    const line = picture("the function and its derivative", 340, (ctx, w, h) => {
        if (!got || got.vars > 1) return;
        const x = got.f.map((_, i) => got.low + (got.high - got.low) * i / (got.side - 1));
        plot(ctx, w, h, [...(state.slopes ? [{ x, y: got.dx, colour: colour("b"), dash: [6, 4] }] : []), { x, y: got.f, colour: colour("accent"), width: 2.4 }],
            { x: [got.low, got.high], xlabel: "x" });
    });
    line.id = "curve";
    const maps = ["f", "dx", "dy"].map((k, i) => {
        const c = picture(["f", "df/dx", "df/dy"][i], 260, (ctx, w, h) => draw_map(ctx, w, h, k), { square: true });
        c.id = "map-" + k;
        return el("figure", {}, c, el("figcaption", {}));
    });
    const grid = el("div", { className: "grid thirds", hidden: true }, maps);
    const draw_map = (ctx, w, h, k) => {
        if (!got || got.vars < 2) return;
        const v = got[k].map(x => typeof x === "number" ? x : NaN), n = got.side, up = Array.from({ length: n * n }, (_, i) => v[(n - 1 - Math.floor(i / n)) * n + i % n]);
        const finite = up.filter(Number.isFinite), low = Math.min(...finite), high = Math.max(...finite), span = high - low || 1;
        if (state.solid) surface(ctx, up.map(x => (x - low) / span), n, w, h, state.turn);
        const bytes = Uint8Array.from(up, x => Number.isFinite(x) ? 255 * (x - low) / span : 127);
        if (!state.solid) heat(ctx, bytes, n, n, 0, 0, w, h);
        for (let level = 1; level < 8 && !state.solid; level++) contour(ctx, bytes, n, n, level * 32 - .5, 0, 0, w, h, colour("soft"));
        maps[["f", "dx", "dy"].indexOf(k)].lastChild.textContent = `${{ f: "f", dx: "df/dx", dy: "df/dy" }[k]}: ${number(low)} (blue) to ${number(high)} (orange)`;
    };
    const redraw = () => maps.forEach(m => m.firstChild.redraw());
    const turn = slide("Rotation", { min: 0, max: 359, step: 1 }, 30, v => { state.turn = v; redraw(); }, { id: "turn", live: true });
    for (const m of maps) m.firstChild.addEventListener("pointermove", e => {
        if (!state.solid || !e.buttons) return;
        state.turn = (state.turn + e.movementX + 360) % 360;
        turn.set(state.turn);
        redraw();
    });
    const asked = () => ({ text: state.text, vars: /\by\b/.test(state.text) ? 2 : 1 });
    const run = async () => {
        const mine = seen = {};
        const { vars } = asked();
        const answer = await question("curve", () => ({ ...asked(), low: state.low, high: state.high }));
        if (!answer || mine !== seen) return;
        got = { ...answer, vars };
        line.hidden = vars > 1;
        grid.hidden = vars < 2;
        line.redraw();
        redraw();
    };
    const set = name => {
        const f = all.find(q => q.name === name);
        state.text = f.inputs > 1 ? `${name}(x, y)` : `${name}(x)`;
        says.textContent = `${f.doc}\n${f.text}`;
        text.set(state.text);
        run();
    };
    const text = type_in("Expression", state.text, v => { state.text = v; says.textContent = v; run(); }, { id: "expression" });
    to.append(el("div", { className: "grid side" }, el("div", { className: "stack" }, card("Function",
        choose("Of one input", all.filter(f => f.inputs === 1).map(f => f.name), "tanh", set, { id: "one" }),
        choose("Of two inputs", all.filter(f => f.inputs === 2).map(f => f.name), "add", set, { id: "two" }), text,
        slide("From", { min: -50, max: 49, step: 1 }, -6, v => { state.low = v; if (v < state.high) run(); }, { id: "low" }),
        slide("To", { min: -49, max: 50, step: 1 }, 6, v => { state.high = v; if (v > state.low) run(); }, { id: "high" }),
        check("show derivatives", true, v => { state.slopes = v; line.redraw(); }),
        choose("Draw two inputs as", [["", "map"], ["solid", "surface"]], "", v => { state.solid = !!v; redraw(); }, { id: "as" }), turn)),
    card("Value and derivatives", says, line, grid, legend([["f", "accent"], ["df/dx by fac_grad", "b"]]),
        el("p", { className: "note" }, "An expression of x is a curve, one of x and y a map or a surface. It may use + - * / ** < > == and every elementwise operator, such as ", source("sigmoid(3*x) * exp(-x*x)"),
            ". The kernels are generated from the formula above. Computed by ", source("src/studio/sandbox/sandbox_function.c"), "; derivatives by ", source("src/grad/grad.c"), ".")),
    along("curve", asked)));
    set("tanh");
};

// ---- gradients ----
const gradients = async to => {
    const state = { text: "(x*x)*y + 10*x", x: { shape: "", values: "2" }, y: { shape: "", values: "3" }, z: { shape: "", values: "1" } };
    let got = null, back = 0, order = [];
    const told = el("p", { className: "note", role: "status" }), table = el("tbody");
    const view = picture("the graph of the expression, with values and gradients", 300, (ctx, w) => draw(ctx, w), { height: () => height() });
    view.id = "graph";
    const short = v => v.length === 1 ? number(v[0], 4) : `[${v.slice(0, 4).map(x => number(x, 3)).join(" ")}${v.length > 4 ? " ..." : ""}]`;
    // Columns by depth: a step is to the right of all steps that it reads.
    const places = () => {
        const depth = [], used = new Set();
        const mark = k => { if (used.has(k)) return; used.add(k); got.steps[k].in.forEach(mark); };
        mark(got.result);
        got.steps.forEach((s, k) => { depth[k] = s.in.length ? 1 + Math.max(...s.in.map(i => depth[i])) : 0; });
        const columns = [];
        [...used].sort((a, b) => a - b).forEach(k => (columns[depth[k]] ||= []).push(k));
        return columns;
    };
    const height = () => got ? 30 + 66 * Math.max(...places().map(c => c.length)) : 200;
    const draw = (ctx, w) => {
        if (!got) return;
        const columns = places(), at = [], h = height();
        columns.forEach((c, i) => c.forEach((k, j) => {
            at[k] = [columns.length < 2 ? w / 2 : 70 + i / (columns.length - 1) * (w - 140), h / 2 + (j - (c.length - 1) / 2) * 66];
        }));
        const lit = new Set(order.slice(0, back));
        ctx.font = "12px system-ui, sans-serif";
        ctx.textAlign = "center";
        ctx.textBaseline = "middle";
        for (const k of columns.flat()) for (const i of got.steps[k].in) {
            ctx.beginPath();
            ctx.moveTo(at[i][0] + 52, at[i][1]);
            ctx.lineTo(at[k][0] - 52, at[k][1]);
            ctx.strokeStyle = lit.has(k) ? colour("b") : colour("soft");
            ctx.lineWidth = lit.has(k) ? 2.4 : 1;
            ctx.stroke();
        }
        for (const k of columns.flat()) {
            const s = got.steps[k], [x, y] = at[k];
            ctx.fillStyle = colour("card");
            ctx.strokeStyle = k === got.result ? colour("accent") : colour("line");
            ctx.lineWidth = k === got.result ? 2 : 1;
            ctx.beginPath();
            ctx.roundRect(x - 54, y - 26, 108, 52, 8);
            ctx.fill();
            ctx.stroke();
            ctx.fillStyle = colour("ink");
            ctx.fillText(s.name + (s.shape.length ? ` [${s.shape}]` : ""), x, y - 15);
            ctx.fillStyle = colour("accent");
            ctx.fillText(short(s.value), x, y + 1);
            ctx.fillStyle = colour("b");
            if (lit.has(k) || got.steps.some((t, j) => lit.has(j) && t.in.includes(k))) ctx.fillText("d " + short(s.gradient), x, y + 16);
        }
    };
    const tell = () => {
        told.textContent = back === 0 ? "Forward: each box has its value. Step backwards to see how the result changes with it."
            : back < order.length ? `Backwards through ${got.steps[order[back - 1]].name}: its gradient flows to its inputs.` : "All gradients are computed.";
        view.redraw();
    };
    const asked = () => ({ text: state.text, values: Object.fromEntries(["x", "y", "z"].map(n =>
        [n, { shape: list_of(state[n].shape), values: list_of(state[n].values) }])) });
    const run = async () => {
        const answer = await question("graph", asked);
        if (!answer) return;
        got = answer;
        const used = new Set(places().flat());
        order = [...used].sort((a, b) => b - a).filter(k => got.steps[k].in.length);
        back = order.length;
        table.replaceChildren(...[...used].sort((a, b) => a - b).map(k => el("tr", {}, el("td", {}, got.steps[k].name), el("td", {}, got.steps[k].in.map(i => got.steps[i].name).join(", ")),
            el("td", {}, `[${got.steps[k].shape}]`), el("td", {}, short(got.steps[k].value)), el("td", {}, short(got.steps[k].gradient)))));
        tell();
    };
    const variable = n => el("div", {}, type_in(`${n}: shape, empty for a number`, state[n].shape, v => { state[n].shape = v; run(); }, { id: n + "-shape" }),
        type_in(`${n}: values`, state[n].values, v => { state[n].values = v; run(); }, { id: n + "-values" }));
    const text = type_in("Expression in x, y and z", state.text, v => { state.text = v; run(); }, { id: "expression" });
    const example = (t, x, y) => button(t, () => {
        Object.assign(state, { text: t, x: { ...x }, y: { ...y } });
        to.replaceChildren();
        build();
        run();
    });
    const build = () => {
        text.set(state.text);
        to.append(el("div", { className: "grid side" }, el("div", { className: "stack" }, card("Expression", text, ["x", "y", "z"].map(variable),
            el("p", { className: "note" }, "Numbers, as in the course's second module, or tensors, as in its third: "),
            el("div", { className: "bar" }, example("(x*x)*y + 10*x", { shape: "", values: "2" }, { shape: "", values: "3" }),
                example("((x - y) ** 2).sum()", { shape: "2,3", values: "1,2,3,4,5,6" }, { shape: "3", values: "1,1,2" }),
                ...["sum", "mean", "prod", "max", "min"].map(r => example(r + "(x)", { shape: "4", values: "2,3,5,1" }, { shape: "", values: "1" })),
                example("relu(x*y).mean()", { shape: "4", values: "-1,2,-3,4" }, { shape: "", values: "2" })))),
        el("div", { className: "stack" }, card("Graph", el("div", { className: "bar" }, button("Forward only", () => { back = 0; tell(); }, { id: "forward" }),
            button("One step backwards", () => { back = Math.min(order.length, back + 1); tell(); }, { id: "backward" }),
            button("All gradients", () => { back = order.length; tell(); })), told, el("div", { className: "scroll" }, view)),
        card("Steps", el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["step", "of", "shape", "value", "gradient"].map(t =>
            el("th", { scope: "col" }, t)))), table)), el("p", { className: "note" }, "A result that is not a number is summed first. Computed by ",
            source("src/studio/sandbox/sandbox_graph.c"), "; gradients are operators of the same graph: ", source("src/grad/grad.c"), ".")), along("graph", asked))));
        view.redraw();
    };
    build();
    await run();
};

// ---- tensors ----
const tensors = async to => {
    const state = { shape: "2,3,4", strides: "", order: "", slice: "", random: false, storage: "" };
    let got = null, chosen = 0;
    const facts = el("p", { className: "note", id: "facts", role: "status" }), told = el("p", { id: "told", role: "status" });
    const value = p => state.storage ? (list_of(state.storage)[p] ?? "") : state.random ? (Math.abs(Math.sin(p * 12.9898 + 4) * 43758.5453) % 1).toFixed(2) : p;
    const cells = el("div", { className: "layers", id: "cells" }), strip = el("div", { className: "strip", id: "strip", "aria-label": "the storage" });
    const index_of = i => {
        const at = [];
        for (let k = got.shape.length - 1; k >= 0; k--) { at[k] = i % got.shape[k]; i = Math.floor(i / got.shape[k]); }
        return at;
    };
    const choose_element = i => {
        if (!got || !got.positions.length) return;
        chosen = Math.min(Math.max(0, i), got.positions.length - 1);
        const index = index_of(chosen), p = got.positions[chosen];
        const sum = index.map((n, k) => `${n} * ${got.strides[k]}`).join(" + ") || "0";
        told.textContent = `index [${index.join(", ")}] -> position ${got.offset ? got.offset + " + " : ""}${sum} = ${p}; it is element ${chosen}`;
        for (const c of cells.querySelectorAll("button")) c.toggleAttribute("data-on", +c.dataset.i === chosen);
        for (const c of strip.children) c.toggleAttribute("data-on", +c.dataset.p === p);
        position.set(chosen);
        at.set(index.join(","));
    };
    const draw = () => {
        const s = got.shape, wide = s.at(-1) ?? 1, high = s.at(-2) ?? 1, one = wide * high, n = got.positions.length;
        cells.replaceChildren(...Array.from({ length: one ? n / one : 0 }, (_, l) => {
            const head = index_of(l * one).slice(0, Math.max(0, s.length - 2));
            const g = el("div", { className: "cells", role: "group", "aria-label": `layer ${head}` });
            g.style.gridTemplateColumns = `repeat(${wide}, auto)`;
            for (let i = l * one; i < (l + 1) * one; i++) {
                const b = button(String(value(got.positions[i])), () => choose_element(i), { "aria-label": `index ${index_of(i).join(", ")}` });
                b.dataset.i = i;
                b.style.setProperty("--t", (got.positions[i] / Math.max(1, got.storage - 1)).toFixed(3));
                g.append(b);
            }
            return el("figure", {}, g, el("figcaption", {}, head.length ? `[${head.join(", ")}, :, :]` : ""));
        }));
        strip.replaceChildren(...Array.from({ length: got.storage }, (_, p) => {
            const c = el("span", { title: "position " + p }, String(value(p)));
            c.dataset.p = p;
            c.style.setProperty("--t", (p / Math.max(1, got.storage - 1)).toFixed(3));
            return c;
        }));
        facts.textContent = `shape [${s}], strides [${got.strides}], offset ${got.offset}, ${got.contiguous ? "contiguous" : "not contiguous"}; ${n} elements over ${got.storage} of storage`;
        position.input.max = Math.max(0, n - 1);
        choose_element(chosen);
    };
    const run = async () => {
        const answer = await question("layout", () => ({ shape: list_of(state.shape), strides: list_of(state.strides), order: list_of(state.order), slice: list_of(state.slice) }));
        if (!answer) return;
        got = answer;
        try { draw(); } catch (e) { complain(e.message); }
    };
    const field = (label, key, props) => type_in(label, state[key], v => { state[key] = v; run(); }, { id: key, ...props });
    const position = slide("Element", { min: 0, max: 23, step: 1 }, 0, choose_element, { id: "position", live: true });
    const at = type_in("Index", "0,0,0", v => {
        try {
            const index = list_of(v);
            if (index.length !== got.shape.length || index.some((n, k) => n < 0 || n >= got.shape[k])) throw new Error(`an index has ${got.shape.length} numbers below [${got.shape}]`);
            choose_element(index.reduce((n, x, k) => n * got.shape[k] + x, 0));
        } catch (e) { complain(e.message); }
    }, { id: "index" });
    to.append(el("div", { className: "grid side" }, el("div", { className: "stack" }, card("Tensor", field("Shape, up to four dims", "shape"), field("Strides; empty: row-major", "strides"),
        field("Storage: numbers; empty: positions", "storage"), check("random numbers", false, v => { state.random = v; run(); })),
    card("View", field("Permute: the order of the dims, such as 2,0,1", "order"), field("Slice: dim, start, end, step", "slice")), card("Index and position", position, at, told)),
    el("div", { className: "stack" }, card("Elements", facts, cells), card("Storage", strip, el("p", { className: "note" },
        "A tensor is a view of a storage: the sum of index times stride over all dims is a position. A view changes shape and strides, but moves no data. ",
        "The engine makes these views, ", source("fac_tensor_view"), " of ", source("src/tensor/tensor.c"), ", called by ", source("src/studio/sandbox/sandbox_layout.c"), ".")))));
    await run();
};

// ---- broadcasting ----
const broadcasting = async (to, state = { a: "3,1", b: "4" }) => {
    const out = el("div", { className: "stack", id: "stretched" });
    const table = (name, shape, values) => {
        const wide = shape.at(-1) ?? 1;
        const g = el("div", { className: "cells", role: "group", "aria-label": name });
        g.style.gridTemplateColumns = `repeat(${wide}, auto)`;
        const most = Math.max(1, ...values);
        for (const v of values) {
            const c = el("span", {}, String(v));
            c.style.setProperty("--t", (v / most).toFixed(3));
            g.append(c);
        }
        return el("figure", {}, el("figcaption", {}, name), g);
    };
    const run = async () => {
        const answer = await question("broadcast", () => ({ a: list_of(state.a), b: list_of(state.b) }));
        if (!answer) return out.replaceChildren(el("p", { className: "note" }, "These shapes do not broadcast: from the right, dims must be equal, or one of them 1 or missing."));
        out.replaceChildren(el("p", {}, `[${state.a}] and [${state.b}] become [${answer.shape}]`), table("a, broadcast: which of its elements is used where", answer.shape, answer.a),
            table("b, stretched", answer.shape, answer.b));
    };
    to.append(el("div", { className: "grid side" }, card("Shapes", ["a", "b"].map(k => type_in("Shape of " + k, state[k], v => { state[k] = v; run(); }, { id: "shape-" + k })),
        el("div", { className: "bar" }, [["3,1", "4"], ["2,3,1", "1,4"], ["5", ""], ["2,3", "3,2"]].map(([a, b]) => button(`[${a}] [${b}]`, () => {
            Object.assign(state, { a, b });
            to.replaceChildren();
            broadcasting(to, state);
        })))), card("Side by side", out, el("p", { className: "note" }, "The elements of both tensors are their own positions; equal colours are the same element, read again without a copy. The rule is that of ",
        source("src/ops"), "; computed by ", source("fac_sandbox_broadcast"), "."))));
    await run();
};

// ---- modules ----
const modules = async to => {
    const state = { layers: "16,16,tanh", inputs: 2, outputs: 2, text: "" };
    const table = el("tbody"), tree = el("pre", { id: "tree" }), sum = el("p", { className: "note", role: "status" });
    const show = answer => {
        if (!answer) return;
        text.set(answer.text);
        state.text = answer.text;
        table.replaceChildren(...answer.params.map(p => el("tr", {}, el("td", {}, p.name), el("td", {}, `[${p.shape}]`), el("td", {}, p.dtype),
            el("td", {}, p.count.toLocaleString("en")), el("td", {}, p.trains ? "yes" : "state"))));
        sum.textContent = `${answer.params.reduce((n, p) => n + p.count, 0).toLocaleString("en")} numbers in ${answer.params.length} parameters`;
        const root = new Map();
        for (const p of answer.params) p.name.split(".").reduce((m, part) => { if (!m.has(part)) m.set(part, new Map()); return m.get(part); }, root);
        const write = (m, lead) => [...m].flatMap(([name, more], i) => {
            const last = i === m.size - 1;
            return [lead + (last ? "\u2514 " : "\u251c ") + name, ...write(more, lead + (last ? "  " : "\u2502 "))];
        });
        tree.textContent = ["net", ...write(root, "")].join("\n");
    };
    let asked;
    const layers = () => ({ layers: state.layers, inputs: +state.inputs, outputs: +state.outputs }), whole = () => ({ text: state.text });
    const build = async () => show(await question("modules", asked = layers));
    const read = async () => show(await question("modules", asked = whole));
    const text = type_in("Text of the graph (you can edit it)", "", v => { state.text = v; read(); }, { rows: 14, id: "text" });
    to.append(el("div", { className: "grid side" }, el("div", { className: "stack" }, card("Layers", type_in("Hidden layers", state.layers, v => { state.layers = v; build(); }, { id: "layers" }),
        type_in("Inputs", "2", v => { state.inputs = v; build(); }, { id: "inputs" }), type_in("Outputs", "2", v => { state.outputs = v; build(); }, { id: "outputs" })),
    card("Tree", tree)), el("div", { className: "stack" }, card("Parameters by name", el("div", { className: "scroll" }, el("table", { id: "params" }, el("thead", {}, el("tr", {},
        ["name", "shape", "type", "numbers", "trains"].map(t => el("th", { scope: "col" }, t)))), table)), sum), card("Graph", text,
        el("p", { className: "note" }, "The text of ", source("facula show"), ", read by ", source("src/graph/read.c"), "; it is never run as a program.")),
    along("modules", () => asked(), ["model.safetensors"]))));
    await build();
};

const sandboxes = { functions, gradients, tensors, broadcasting, modules };

// Graph: any model, layer by layer: costs, numbers, and the steps that run.
import { Session, json_of, take_along } from "/page/link.js";
import { el, card, button, choose, check, facts, number, percent, time } from "/page/form.js";
import { picture, bars, colour, legend } from "/page/draw.js";

export const open = async main => {
    const g = new Graph(main);
    await g.start();
    return () => { clearInterval(g.walking); g.session.close(); };
};

const count = x => x >= 1e9 ? number(x / 1e9, 3) + " G" : x >= 1e6 ? number(x / 1e6, 3) + " M" : x >= 1e3 ? number(x / 1e3, 3) + " k" : String(x);
const WIDE = 148, HIGH = 34, GAP = 20, MOST = 600;

class Graph {
    constructor(main) {
        this.main = main;
        this.at = -1;
    }
    async start() {
        this.build();
        this.session = await Session.open("graph", {}, (kind, bytes) => { if (kind === 1) this.set_up(json_of(bytes)); }, () =>
            this.main.prepend(el("p", { className: "card" }, "This page was unused for too long. ", button("Open it again", () => location.reload()))));
        this.along.append(take_along(this.session, ["command.txt", "model.onnx", "model.safetensors", "net.c", "net.py"]));
    }
    set_up(s) {
        this.setup = s;
        this.values = this.steps = null;
        this.at = -1;
        const names = s.models.map(m => m === "given" ? ["given", s.given] : [m, "zoo:" + m]);
        this.models.input.replaceChildren(...names.map(([v, name]) => el("option", { value: v }, name)));
        this.models.input.value = s.model;
        this.slopes.set(s.gradients);
        this.key.hidden = !s.gradients;
        this.facts.set([String(s.layers.length), count(s.params), count(s.macs), count(s.weights), count(s.peak)]);
        this.place();
        const most = Math.max(1, ...s.layers.map(l => l.macs));
        this.rows.replaceChildren(...s.layers.map((l, i) => {
            const b = button(l.name, () => this.choose(i), { className: "plain" });
            const bar = el("progress", { max: most, value: l.macs, "aria-label": "share of the multiply-adds" });
            return el("tr", {}, el("td", {}, b), el("td", {}, l.op), el("td", {}, l.shape.join(" x ")), el("td", {}, count(l.params)), el("td", {}, count(l.macs)), el("td", {}, bar));
        }));
        this.plan_rows.replaceChildren();
        this.plan_said.textContent = "";
        this.choose(0);
    }
    // Rows by depth; a layer is below the layers that it reads, near their middle.  Gradients rise from the bottom, to the right.
    place() {
        const { layers, forward } = this.setup, depth = [], rows = [], back = [];
        layers.forEach((l, i) => {
            depth[i] = Math.max(i < forward ? 0 : rows.length, ...l.reads.map(r => r < 0 ? 0 : depth[r] + 1));
            const row = i < forward ? rows : back, at = depth[i] - (i < forward ? 0 : rows.length);
            (row[at] ||= []).push(i);
        });
        const most = all => Math.max(0, ...Array.from(all, r => r?.length || 0)), left = most(rows), right = most(back);
        this.deep = Math.max(rows.length, back.length);
        this.places = [];
        const put = (row, y, shift) => row?.forEach((i, k) => { this.places[i] = { x: k - (row.length - 1) / 2 + shift, y }; });
        rows.forEach((row, y) => put(row, y, right && -(right + 1) / 2));
        back.forEach((row, y) => put(row, this.deep - 1 - y, (left + 1) / 2));
        this.across = left + right + (right && 1);
        this.view.hidden = layers.length > MOST;
        this.too_many.hidden = layers.length <= MOST;
        this.view.redraw();
    }
    middle(i, w) {
        const p = this.places[i], wide = Math.min(WIDE + GAP, (w - 20) / this.across);
        return [w / 2 + p.x * wide, 14 + HIGH / 2 + p.y * (HIGH + GAP), Math.min(WIDE, wide - 8)];
    }
    draw(ctx, w) {
        if (!this.setup) return;
        const layers = this.setup.layers, most = Math.max(1, ...layers.map(l => l.macs));
        ctx.lineWidth = 1;
        layers.forEach((l, i) => l.reads.filter(r => r >= 0).forEach(r => {
            const [x0, y0] = this.middle(r, w), [x1, y1] = this.middle(i, w), lit = i === this.at || r === this.at;
            ctx.beginPath();
            ctx.moveTo(x0, y0 + HIGH / 2);
            ctx.bezierCurveTo(x0 + (y1 - y0 > 2 * (HIGH + GAP) ? 90 : 0), y0 + HIGH, x1 + (y1 - y0 > 2 * (HIGH + GAP) ? 90 : 0), y1 - HIGH, x1, y1 - HIGH / 2);
            ctx.strokeStyle = lit ? colour("b") : colour("soft");
            ctx.globalAlpha = lit ? 1 : .5;
            ctx.stroke();
        }));
        ctx.globalAlpha = 1;
        ctx.font = "11.5px system-ui, sans-serif";
        ctx.textAlign = "center";
        ctx.textBaseline = "middle";
        layers.forEach((l, i) => {
            const [x, y, wide] = this.middle(i, w);
            ctx.fillStyle = colour("card");
            ctx.beginPath();
            ctx.roundRect(x - wide / 2, y - HIGH / 2, wide, HIGH, 6);
            ctx.fill();
            ctx.fillStyle = colour(i < this.setup.forward ? "accent" : "b");
            ctx.globalAlpha = .1 + .75 * l.macs / most;
            ctx.fill();
            ctx.globalAlpha = 1;
            ctx.strokeStyle = i === this.at ? colour("b") : colour("line");
            ctx.lineWidth = i === this.at ? 3 : 1;
            ctx.stroke();
            ctx.fillStyle = colour("ink");
            const fit = t => { while (t.length > 4 && ctx.measureText(t).width > wide - 8) t = t.slice(1); return t; };
            ctx.fillText(fit(l.op), x, y - 7);
            ctx.fillText(fit(l.shape.join("x")), x, y + 8);
        });
    }
    choose(i) {
        const l = this.setup.layers[i];
        if (!l) return;
        this.at = i;
        const v = this.values?.get(l.name), step = this.steps?.find(s => s.nodes.split(/[ ,+]+/).includes(l.name));
        this.told.replaceChildren(el("p", {}, el("strong", {}, l.name), ` ${l.op} ${l.attrs}`), el("p", { className: "note" }, `gives ${l.shape.join(" x ")}; ${count(l.params)} parameters, ${count(l.macs)} multiply-adds, ${count(l.bytes)} bytes; reads `
            + (l.reads.map(r => r < 0 ? "the input" : this.setup.layers[r].name).join(", ") || "nothing")),
        v ? el("p", {}, `from ${number(v.min)} to ${number(v.max)}, mean ${number(v.mean)}, deviation ${number(v.std)}, zeros ${percent(v.zeros)}` + (v.dead ? `, ${v.dead} channels are dead` : ""))
            : el("p", { className: "note" }, "Press Run with random numbers to see its numbers."),
        step ? el("p", {}, `takes ${time(step.seconds)} with ${step.solver}, in one step with: ${step.nodes}`) : "");
        this.hist.hidden = !v;
        this.hist.redraw();
        [...this.rows.children].forEach((r, k) => r.toggleAttribute("data-on", k === i));
        this.view.redraw();
    }
    async run() {
        const answer = await this.session.do("values", { seed: this.seed = (this.seed || 0) + 1 });
        if (!answer) return;
        this.values = new Map(answer.tensors.map(t => [t.name, t]));
        this.choose(Math.max(0, this.at));
    }
    async plan() {
        const answer = await this.session.do("plan", {});
        if (!answer) return;
        this.steps = answer.steps;
        const all = answer.steps.reduce((n, s) => n + s.seconds, 0), most = Math.max(...answer.steps.map(s => s.seconds));
        this.plan_said.textContent = `${this.setup.layers.length} layers become ${answer.steps.length} steps, ${time(all)} in all on ${answer.device}`;
        this.plan_rows.replaceChildren(...answer.steps.map(s => el("tr", {}, el("td", {}, s.nodes), el("td", {}, s.op), el("td", {}, s.solver), el("td", {}, s.layouts),
            el("td", {}, (1e6 * s.seconds).toFixed(1)), el("td", {}, el("progress", { max: most, value: s.seconds, "aria-label": "share of the time" })))));
        this.choose(Math.max(0, this.at));
    }
    walk(on) {
        clearInterval(this.walking);
        if (on) this.walking = setInterval(() => this.choose((this.at + 1) % this.setup.layers.length), matchMedia("(prefers-reduced-motion: reduce)").matches ? 1200 : 250);
    }
    build() {
        this.facts = facts(["layers", "parameters", "multiply-adds", "bytes of weights", "peak bytes"]);
        const load = () => this.session.do("load", { model: this.models.input.value, gradients: this.slopes.input.checked });
        this.models = choose("Model", [], "", load, { id: "model" });
        this.slopes = check("gradients, too", false, load);
        this.slopes.input.id = "gradients";
        this.key = legend([["forward", "accent"], ["the loss and its gradients", "b"]]);
        this.key.hidden = true;
        this.view = picture("the graph: a box for each layer, darker for more multiply-adds; click one", 300, (ctx, w) => this.draw(ctx, w), { height: () => 28 + (this.deep || 1) * (HIGH + GAP) });
        this.view.id = "graph";
        this.view.addEventListener("click", e => {
            const r = this.view.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
            const i = this.places.findIndex((_, k) => { const [cx, cy, wide] = this.middle(k, r.width); return Math.abs(x - cx) < wide / 2 && Math.abs(y - cy) < HIGH / 2; });
            if (i >= 0) this.choose(i);
        });
        this.too_many = el("p", { className: "note", hidden: true }, `More than ${MOST} layers: see the table.`);
        this.told = el("div", { id: "told", role: "status" });
        this.hist = picture("histogram of the layer's output", 110, (ctx, w, h) => {
            const v = this.values?.get(this.setup?.layers[this.at]?.name);
            if (v) bars(ctx, w, h, v.counts, v.min, v.max, colour("accent"));
        });
        this.hist.id = "hist";
        this.rows = el("tbody");
        this.plan_rows = el("tbody", { id: "steps" });
        this.plan_said = el("p", { id: "planned", role: "status" });
        const head = names => el("thead", {}, el("tr", {}, names.map(n => el("th", { scope: "col" }, n))));
        this.along = el("div");
        this.main.append(el("h1", {}, "Graph"), el("p", { className: "lead" }, "A model as the engine sees it: layers, their costs, the numbers that flow through them, and the steps that remain after the planner ",
            "has fused them. Your own model: ", el("code", {}, "facula studio model.onnx"), ". Computed by ", el("code", {}, "src/report/cost"), ", ", el("code", {}, "src/report/tensors"), " and ", el("code", {}, "src/plan"), "."),
        card(null, el("div", { className: "grid two" }, this.models, el("div", { className: "bar" }, button("Run with random numbers", () => this.run(), { id: "run" }),
            button("Show the steps", () => this.plan(), { id: "plan" }), check("go through the layers", false, v => this.walk(v)), this.slopes)), this.facts),
        el("div", { className: "grid two after" }, card("Layers", this.key, el("div", { className: "scroll tall" }, this.view), this.too_many),
            el("div", { className: "stack" }, card("Selected layer", this.told, this.hist), card("Steps of the plan", this.plan_said, el("div", { className: "scroll" }, el("table", {}, head(["layers", "op", "solver", "layouts", "us", ""]), this.plan_rows))),
                card("All layers", el("div", { className: "scroll" }, el("table", {}, head(["layer", "op", "output", "parameters", "multiply-adds", ""]), this.rows))), this.along)));
    }
}

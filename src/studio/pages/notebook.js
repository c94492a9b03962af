// Notebook: a training in the user's own program, in Python or C: its curves and weights.
import { Session, json_of } from "/page/link.js";
import { el, card, button, check, number } from "/page/form.js";
import { picture, plot, heat, bars, colour, legend } from "/page/draw.js";

export const open = async main => {
    const p = new Notebook(main);
    await p.start();
    return () => p.session.close();
};

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00", "#7f7f7f"];
// Curves of one kind share a chart.
const kind = name => /loss/.test(name) ? "loss" : /acc/.test(name) ? "accuracy" : name;

class Notebook {
    constructor(main) {
        this.main = main;
        this.kinds = new Map();
        this.tensors = new Map();
        this.log = false;
    }
    async start() {
        this.build();
        this.session = await Session.open("notebook", {}, (k, bytes) => this.see(k, bytes), () =>
            this.main.prepend(el("p", { className: "card" }, "This page was unused for too long. ", button("Open it again", () => location.reload()))));
    }
    see(k, bytes) {
        if (k === 2) this.tell(json_of(bytes));
        else if (k === 6) this.weights(json_of(bytes));
        else if (k === 7) this.pictures(bytes);
    }
    tell(s) {
        this.none.hidden = s.curves.length > 0;
        this.halt.disabled = s.stopped || !s.curves.length;
        this.halt.textContent = s.stopped ? "Asked to stop" : "Stop";
        const kinds = new Map();
        for (const c of s.curves) kinds.set(kind(c.name), [...kinds.get(kind(c.name)) || [], c]);
        for (const [name, curves] of kinds) {
            let k = this.kinds.get(name);
            if (!k || k.n !== curves.length) {
                k?.box.remove();
                const view = picture(name, 200, (ctx, w, h) => plot(ctx, w, h, this.kinds.get(name).curves.map((c, i) => ({ x: c.x.map(Number), y: c.y.map(Number), colour: COLOURS[i % 8], dash: i > 7 ? [5, 3] : [] })),
                    { xlabel: "step", log: this.log && name === "loss" }));
                k = { n: curves.length, view, box: card(name, view, legend(curves.map((c, i) => [c.name, COLOURS[i % 8]])), el("p", { className: "note" })) };
                this.kinds.set(name, k);
                this.charts.append(k.box);
            }
            k.curves = curves;
            k.box.lastChild.textContent = curves.map(c => `${c.name} ${number(c.y.at(-1))} at step ${c.x.at(-1)}`).join(", ");
            k.view.redraw();
        }
    }
    weights(s) {
        this.generation = s.generation;
        this.order = s.tensors.map(t => t.name);
        for (const name of this.tensors.keys()) if (!this.order.includes(name)) { this.tensors.get(name).box.remove(); this.tensors.delete(name); }
        for (const t of s.tensors) {
            let has = this.tensors.get(t.name);
            if (!has) {
                has = { name: t.name };
                has.map = picture("values of " + t.name + ", negative ones blue, positive ones orange", 110, (ctx, w, h) => { if (has.image) heat(ctx, has.image.bytes, has.image.w, has.image.h, 0, 0, w, h, false); });
                has.hist = picture("histogram of " + t.name, 70, (ctx, w, h) => bars(ctx, w, h, has.of.counts, has.of.min, has.of.max, colour("accent")));
                has.note = el("p", { className: "note" });
                has.box = el("figure", {}, el("strong", {}, t.name), has.map, has.hist, has.note);
                this.tensors.set(t.name, has);
                this.list.append(has.box);
            }
            has.of = t;
            has.note.textContent = `${t.shape.join(" x ") || "a number"}; mean ${number(t.mean, 3)}, deviation ${number(t.std, 3)}, norm ${number(t.norm, 3)}`;
            has.hist.redraw();
        }
        this.count.textContent = s.tensors.length ? "" : "None yet: facula.studio(net), or studio.weights(net).";
    }
    pictures(bytes) {
        const v = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        if (v.getUint32(0, true) !== this.generation) return;
        for (let at = 6, n = v.getUint16(4, true); n > 0; n--) {
            const w = v.getUint16(at + 2, true), h = v.getUint16(at + 4, true), has = this.tensors.get(this.order[v.getUint8(at + 1)]);
            has.image = { w, h, bytes: bytes.slice(at + 6, at + 6 + w * h) };
            has.map.redraw();
            at += 6 + w * h;
        }
    }
    build() {
        this.halt = button("Stop", () => this.session.do("stop"), { id: "stop", disabled: true });
        this.none = el("p", { className: "note" }, "Nothing is shown yet. In Python: ", el("code", {}, "s = facula.studio(net)"), ", then ", el("code", {}, "facula.Trainer(net, studio=s).fit(...)"),
            " or ", el("code", {}, "s.log(loss=loss)"), " in your own loop.");
        this.charts = el("div", { className: "grid two", id: "charts" });
        this.list = el("div", { className: "hists", id: "tensors" });
        this.count = el("p", { className: "note" }, "None yet: facula.studio(net), or studio.weights(net).");
        this.main.append(el("h1", {}, "Notebook"), el("p", { className: "lead" }, "A training in your own notebook or program, which reports to this page with ", el("code", {}, "facula.studio()"), " in Python, ",
            el("code", {}, "fac_studio_log"), " in C; stored by ", el("code", {}, "src/studio/runs/notebook.c"), "."),
        el("div", { className: "bar card", role: "toolbar", "aria-label": "training" }, this.halt, check("logarithmic losses", false, v => { this.log = v; this.kinds.get("loss")?.view.redraw(); }), this.none),
        this.charts, el("div", { className: "after" }, card("Weights", this.count, this.list)));
    }
}

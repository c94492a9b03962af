// Points: a network of two inputs learns to tell two classes apart.
import { Session, json_of, save, place, write_place } from "/page/link.js";
import { el, card, fold, button, choose, slide, check, facts, number, percent, time } from "/page/form.js";
import { picture, heat, contour, scatter, plot, bars, colour, legend } from "/page/draw.js";
import { network } from "/page/net.js";

const SETS = ["simple", "diag", "split", "xor", "circle", "spiral", "own"];
const RATES = [.00001, .0001, .001, .003, .005, .01, .03, .05, .1, .3, .5, 1, 3, 5, 10];
const SPEEDS = [[1, "1 epoch per second"], [10, "10 epochs per second"], [100, "100 epochs per second"], [0, "as fast as possible"]];
const SHARED = ["set", "count", "noise", "test_part", "seed", "net", "lr", "batch", "optimizer", "decay", "momentum", "epochs"];

export const open = async main => {
    const p = new Points(main);
    await p.start();
    return () => p.session.close();
};

class Points {
    constructor(main) {
        this.main = main;
        this.setup = this.state = null;
        this.history = { step: [], loss: [], test: [], accuracy: [], test_accuracy: [] };
        this.rows = [];
        this.own = [];
        this.kept = [];
    }

    // ---- the link ----
    async start() {
        const how = {};
        for (const k of SHARED) if (place.has(k)) how[k] = ["set", "net", "optimizer"].includes(k) ? place.get(k) : +place.get(k);
        if (how.set === "own") delete how.set;
        this.session = await Session.open("points", how, (kind, bytes) => this.see(kind, bytes), () => this.lost());
        this.build();
    }
    lost() {
        this.main.prepend(el("p", { className: "card" }, "This page was left alone for too long, and its network is gone. ",
            button("Open it again", () => location.reload())));
    }
    see(kind, bytes) {
        if (kind === 1) return this.set_up(json_of(bytes));
        if (kind === 2) return this.tell(json_of(bytes));
        if (kind === 6) return this.show_panels(json_of(bytes));
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        if (!this.setup || view.getUint32(0, true) !== this.setup.generation) return;
        if (kind === 3) this.take_boundary(bytes.slice(8));
        if (kind === 4) this.net.take_neurons(view);
        if (kind === 5) this.take_weights(bytes.slice(4));
    }
    take_boundary(bytes) {
        this.boundary = bytes.subarray(0, 10000);
        this.chances = bytes.subarray(10000);
        this.boundaries = (this.boundaries || 0) + 1;
        this.map.redraw();
        if (this.line_open) this.line.redraw();
    }
    take_weights(bytes) {
        this.weights = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
        this.net.take_weights(this.weights);
        this.show_sliders();
    }
    set_up(s) {
        const fresh = s.generation !== this.setup?.generation;
        this.setup = s;
        for (const k of SHARED) place.set(k, s[k]);
        write_place();
        if (fresh) {
            for (const k in this.history) this.history[k].length = 0;
            this.rows.length = 0;
            this.boundary = this.chances = this.weights = null;
            this.sliders.replaceChildren();
            this.net.set(s);
        }
        for (const k in this.controls) this.controls[k].set(s[k]);
        for (const b of this.sets.children) b.setAttribute("aria-pressed", String(b.dataset.set === s.set));
        this.about.textContent = s.device_about;
        this.map.redraw();
    }
    send(more) { return this.session.do("setup", more); }

    // ---- numbers ----
    tell(s) {
        if (!this.setup || s.generation !== this.setup.generation) return;
        const before = this.state, h = this.history;
        this.state = s;
        if (h.step.at(-1) !== s.step) {
            if (s.step < h.step.at(-1)) for (const k in h) h[k].length = 0;
            h.step.push(s.step / s.in_epoch);
            h.loss.push(s.loss);
            h.test.push(s.test_loss);
            h.accuracy.push(s.accuracy);
            h.test_accuracy.push(s.test_accuracy);
            if (h.step.length > 3000) for (const k in h) this.history[k] = h[k].filter((_, i) => i % 2);
        }
        const epoch = s.step / s.in_epoch, rate = s.step / s.seconds;
        this.facts.set([Math.floor(epoch) + " / " + s.epochs, String(s.step), number(s.loss), percent(s.accuracy),
            number(s.test_loss), percent(s.test_accuracy)]);
        this.pace.textContent = Number.isFinite(rate) && s.seconds > 0
            ? `${time(s.seconds / s.step)} a step, ${Math.round(rate).toLocaleString("en")} steps a second of computing` : "";
        this.left.textContent = s.playing ? this.time_left(before, s) : s.stopped || (epoch >= s.epochs && s.step ? "done" : "");
        this.progress.value = epoch / s.epochs;
        this.play.textContent = s.playing ? "Pause" : "Play";
        this.speed.set(s.speed);
        this.touched.hidden = !s.touched;
        if (performance.now() - (this.said || 0) > 1000 && s.playing) {
            this.said = performance.now();
            this.live.textContent = `epoch ${Math.floor(epoch)}, loss ${number(s.loss, 3)}, accuracy ${percent(s.accuracy)}`;
        }
        this.add_row(s, Math.floor(epoch));
        this.show_confusion(s);
        this.compare();
        this.net.tell_dead(s.dead);
        this.loss.redraw();
        this.accuracy.redraw();
    }
    time_left(before, s) {
        const now = performance.now();
        if (!this.clock || s.step < this.clock.step || !before?.playing) this.clock = { at: now, step: s.step };
        const steps = s.step - this.clock.step, left = s.epochs * s.in_epoch - s.step;
        return steps > 0 ? time(left * (now - this.clock.at) / 1000 / steps) + " left" : "";
    }
    add_row(s, epoch) {
        if (this.rows.at(-1)?.epoch === epoch) return;
        this.rows.push({ epoch, loss: s.loss, accuracy: s.accuracy, correct: s.confusion[0][0] + s.confusion[1][1] });
        if (this.rows.length > 200) this.rows = this.rows.filter((_, i) => i % 2);
        if (!this.table_open) return;
        this.table.replaceChildren(...this.rows.slice(-60).reverse().map(r => el("tr", {}, el("td", {}, String(r.epoch)),
            el("td", {}, number(r.loss)), el("td", {}, String(r.correct)), el("td", {}, percent(r.accuracy)))));
    }
    // Compares kept trainings with the current one and names the settings that differ.
    keep() {
        if (!this.state) return;
        const history = Object.fromEntries(Object.entries(this.history).map(([k, v]) => [k, [...v]]));
        this.kept = [...this.kept, { setup: this.setup, state: this.state, history }].slice(-4);
        this.compared.open = true;
        this.compare();
        this.loss.redraw();
        this.accuracy.redraw();
    }
    compare() {
        if (!this.kept.length) return;
        const all = [...this.kept, { setup: this.setup, state: this.state }], keys = [...SHARED, "device", "threads"].filter(k => new Set(all.map(r => String(r.setup[k]))).size > 1);
        this.others.replaceChildren(...all.map(({ setup: q, state: s }, i) => el("tr", {}, [i < this.kept.length ? "kept " + (i + 1) : "now",
            keys.map(k => k + " " + q[k]).join(", ") || "no difference", String(Math.floor(s.step / s.in_epoch)), number(s.loss), percent(s.accuracy),
            s.step && s.seconds > 0 ? time(s.seconds / s.step) : ""].map(t => el("td", {}, t)))));
    }
    show_confusion(s) {
        const cells = [...this.confusion.querySelectorAll("td.n")];
        [...s.confusion.flat(), ...s.test_confusion.flat()].forEach((n, i) => { cells[i].textContent = n; });
    }

    // ---- layout ----
    build() {
        const s = this.session, c = this.controls = {};
        this.net = network(this);
        this.play = button("Play", () => s.do(this.state?.playing ? "pause" : "play"), { className: "main", id: "play" });
        this.progress = el("progress", { max: 1, value: 0, "aria-label": "epochs done" });
        this.left = el("span", { className: "note" });
        this.live = el("p", { className: "skip", role: "status", "aria-live": "polite" });
        this.pace = el("p", { className: "note", id: "pace" });
        this.about = el("span", { className: "note" });
        this.touched = el("p", { className: "note", hidden: true },
            "Weights or settings were changed by hand since the last reset: the command line below starts from new weights.");
        this.speed = choose("Speed", SPEEDS, 10, v => s.do("speed", { epochs_per_s: +v }), { id: "speed" });
        this.facts = facts(["epoch", "step", "loss", "accuracy", "test loss", "test accuracy"]);
        this.sets = el("div", { className: "choice", role: "group", "aria-label": "data set", id: "sets" }, SETS.map(n => this.set_button(n)));
        this.map = picture("Prediction at each place: blue for class 0, orange for class 1; click to add your own points",
            300, (ctx, w, h) => this.draw_map(ctx, w, h), { square: true, tabIndex: 0 });
        this.map.id = "map";
        this.map.addEventListener("click", e => this.click_map(e));
        this.map.addEventListener("contextmenu", e => this.click_map(e));
        this.loss = picture("loss over epochs", 170, (ctx, w, h) => this.draw_curves(ctx, w, h, "loss", "test"));
        this.accuracy = picture("accuracy over epochs", 150, (ctx, w, h) => this.draw_curves(ctx, w, h, "accuracy", "test_accuracy"));
        this.line = picture("probability over x alone", 200, (ctx, w, h) => this.draw_line(ctx, w, h));
        this.hists = el("div", { className: "hists" });
        this.sliders = el("div", { className: "sliders", id: "sliders" });
        this.table = el("tbody");
        this.confusion = this.confusion_table();
        const reset = (k, more) => v => this.session.do("reset", { [k]: v, ...more });
        c.count = slide("Points", { min: 2, max: 500, step: 2 }, 50, reset("count"), { id: "count" });
        c.noise = slide("Noise", { min: 0, max: .3, step: .01 }, 0, reset("noise"), { id: "noise" });
        c.test_part = slide("Test part (0: all points for both)", { min: 0, max: .8, step: .05 }, 0, reset("test_part"), { id: "test_part" });
        c.seed = slide("Seed", { min: 0, max: 100, step: 1 }, 0, reset("seed"), { id: "seed" });
        c.lr = slide("Learning rate", RATES, .01, v => this.send({ lr: v }), { id: "lr" });
        c.batch = slide("Batch", { min: 1, max: 100, step: 1 }, 10, v => this.send({ batch: v, keep: true }), { id: "batch" });
        c.optimizer = choose("Optimizer", ["sgd", "adam", "adamw", "rmsprop", "adagrad", "lion"], "adam",
            v => this.send({ optimizer: v, keep: true }), { id: "optimizer" });
        c.momentum = slide("Momentum (sgd, rmsprop)", { min: 0, max: .99, step: .01 }, 0, v => this.send({ momentum: v, keep: true }), { id: "momentum" });
        c.decay = slide("Weight decay", [0, .0001, .001, .003, .01, .03, .1, .3], 0, v => this.send({ decay: v, keep: true }), { id: "decay" });
        c.epochs = slide("Epochs", [10, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000], 500, v => this.send({ epochs: v }), { id: "epochs" });
        c.device = choose("Computes on", [["cpu", "cpu"], ["opencl", "OpenCL"]], "cpu", v => this.send({ device: v, keep: true }), { id: "device" });
        c.threads = choose("CPU threads", [[1, "1"], [2, "2"], [4, "4"], [0, "one per core"]], 1,
            v => this.send({ threads: +v, keep: true }), { id: "threads" });
        this.main.append(el("h1", {}, "Points"), this.lead(), this.toolbar(),
            el("div", { className: "grid three" }, this.left_column(c), this.middle(), this.right_column()), this.below());
    }
    lead() {
        return el("p", { className: "lead" }, "Each point is at a place in the square and has one of two classes. The network learns to tell which: ",
            "the colours show its probability at 10,000 places, and the line is the decision boundary. The engine does all ",
            "arithmetic, step by step as ", el("code", {}, "facula train"), " does it; the browser only draws. Computed by ",
            el("code", {}, "src/studio/points/points_step.c"), " and ", el("code", {}, "points_show.c"), " on ", el("code", {}, "src/train/trainer.c"), ".");
    }
    toolbar() {
        const s = this.session, small = this.speed.input;
        return el("div", { className: "bar card", role: "toolbar", "aria-label": "training" }, this.play,
            button("Step", () => s.do("step", { n: 1 }), { id: "step" }), button("Epoch", () => s.do("epoch"), { id: "epoch" }),
            button("Reset", () => s.do("reset"), { id: "reset" }), button("Keep to compare", () => this.keep(), { id: "keep" }), button("New weights", () => s.do("reset", { seed: (this.setup.seed + 1) % 101 }), { id: "reseed" }),
            el("label", { htmlFor: "speed", className: "note" }, "Speed"), small, this.progress, this.left, this.live);
    }
    left_column(c) {
        return el("div", { className: "stack" },
            card("Data", this.sets, c.count, c.noise, c.test_part,
                el("p", { className: "note" }, "Click into the large picture to add your own point; Shift or the right button adds one of class 1."),
                button("Remove my points", () => { this.own = []; this.session.do("reset", { set: "xor" }); })),
            card("Settings", c.lr, c.batch, c.optimizer, c.momentum, c.decay, c.epochs, c.seed),
            card("Engine", c.device, c.threads, this.about, this.pace));
    }
    middle() {
        const panel = fold("Histograms of weights and gradients", el("p", { className: "note" },
            "Left: the weights; right: the gradients of the whole training set; below: the norm of the last step relative to that of the weights. ",
            "About one thousandth is usual."), this.hists);
        panel.id = "panels";
        panel.addEventListener("toggle", () => this.session.do("panels", { on: panel.open }));
        const hand = fold("By hand", el("p", { className: "note" }, "A slider for every weight of a small network (at most 64), from -10 to 10. ",
            "Try to solve a set yourself, then let the gradient do it."), this.sliders,
            el("figure", {}, this.line, el("figcaption", {}, "Over x alone, at y = 0.5: the probability of class 1, and the points at their x.")));
        hand.id = "hand";
        hand.addEventListener("toggle", () => { this.line_open = hand.open; this.show_sliders(); this.line.redraw(); });
        return el("div", { className: "stack" }, card("Network", ...this.net.parts), hand, panel);
    }
    right_column() {
        return el("div", { className: "stack" },
            card("Prediction", el("figure", {}, this.map), legend([["class 0 (circles)", "a"], ["class 1 (squares)", "b"]]),
                check("two colours only", false, v => { this.discrete = v; this.map.redraw(); }),
                check("mark misclassified points", false, v => { this.rings = v; this.map.redraw(); })),
            card("Training", this.facts, this.touched, el("figure", {}, this.loss), el("figure", {}, this.accuracy),
                legend([["training", "accent"], ["test", "b"]])));
    }
    below() {
        const epochs = fold("Table of epochs", el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {},
            ["epoch", "loss", "correct", "accuracy"].map(h => el("th", { scope: "col" }, h)))), this.table)));
        epochs.id = "table";
        epochs.addEventListener("toggle", () => { this.table_open = epochs.open; });
        const text = el("pre", { id: "command" }, "");
        const away = fold("Export", el("p", { className: "note" }, "The same training without the page; the weights are equal, byte for byte: "), text,
            el("div", { className: "bar" }, ["command.txt", "net.py", "torch.py", "net.c", "model.onnx", "model.safetensors", "points.csv"].map(n =>
                button(n, () => save(this.session, n)))));
        away.id = "export";
        away.addEventListener("toggle", async () => { if (away.open) text.textContent = await (await this.session.file("command.txt")).text(); });
        this.others = el("tbody");
        this.compared = fold("Comparison", el("p", { className: "note" }, "Kept curves stay as dotted lines while the next training runs. In PyTorch: ", el("code", {}, "torch.py"), " with ", el("code", {}, "points.csv"), ", below."),
            el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["", "settings that differ", "epoch", "loss", "accuracy", "time per step"].map(h => el("th", { scope: "col" }, h)))), this.others)));
        this.compared.id = "compared";
        return el("div", { className: "grid two after" }, this.compared, fold("Confusion matrix", this.confusion), epochs,
            el("div", { className: "wide" }, away));
    }
    confusion_table() {
        const table = name => el("table", {}, el("caption", { className: "note" }, name), el("tr", {}, el("th", {}, "class \\ prediction"), el("th", { scope: "col" }, "0"), el("th", { scope: "col" }, "1")),
            [0, 1].map(k => el("tr", {}, el("th", { scope: "row" }, "class " + k), [0, 1].map(() => el("td", { className: "n" }, "0")))));
        return el("div", { className: "bar" }, table("training"), table("test"));
    }
    set_button(name) {
        const c = el("canvas", { width: 48, height: 48, "aria-hidden": "true" });
        const b = button("", () => this.choose_set(name), { title: name });
        b.dataset.set = name;
        b.append(c, name);
        queueMicrotask(() => this.draw_set(c, name));
        return b;
    }
    choose_set(name) {
        if (name !== "own") return this.session.do("reset", { set: name });
        if (!this.own.length) this.own = this.setup.points.map(q => q.slice(0, 3));
        return this.session.do("reset", { set: "own", points: this.own });
    }
    draw_set(c, name) {
        const inside = { simple: x => x < .5, diag: (x, y) => x + y < .5, split: x => x < .2 || x > .8, xor: (x, y) => x < .5 !== y < .5,
            circle: (x, y) => (x - .5) ** 2 + (y - .5) ** 2 > .1 }, ctx = c.getContext("2d");
        const dots = [];
        for (let i = 0; i < 49 && inside[name]; i++) {
            const x = (i % 7 + .5) / 7, y = (Math.floor(i / 7) + .5) / 7;
            dots.push([x, y, +inside[name](x, y), 0]);
        }
        for (let i = 0; i < 40 && name === "spiral"; i++) {
            const t = 10 * (i % 20 + 2) / 20 * (i < 20 ? 1 : -1), x = t * Math.cos(t) / 20 + .5, y = t * Math.sin(t) / 20 + .5;
            dots.push(i < 20 ? [x, y, 0, 0] : [y, x, 1, 0]);
        }
        if (name === "own") dots.push([.3, .6, 0, 1], [.7, .6, 1, 1], [.5, .3, 0, 1]);
        scatter(ctx, dots, 2, 2, 44, 44, 2.4);
    }
    click_map(e) {
        e.preventDefault();
        if (!this.setup) return;
        const r = this.map.getBoundingClientRect();
        const x = (e.clientX - r.left) / r.width, y = 1 - (e.clientY - r.top) / r.height;
        if (this.setup.set !== "own") this.own = [];
        this.own.push([+x.toFixed(4), +y.toFixed(4), e.shiftKey || e.button === 2 ? 1 : 0]);
        this.send({ set: "own", points: this.own.slice(-500), test_part: 0, keep: true });
    }

    // ---- pictures ----
    draw_map(ctx, w, h) {
        if (this.boundary) {
            heat(ctx, this.boundary, 100, 100, 0, 0, w, h, this.discrete);
            contour(ctx, this.boundary, 100, 100, 127.5, 0, 0, w, h);
        }
        const wrong = i => this.rings && this.chances && (this.chances[i] > 127) !== (this.setup.points[i][2] === 1);
        if (this.setup) scatter(ctx, this.setup.points, 0, 0, w, h, Math.max(3, w / 90), wrong);
    }
    draw_curves(ctx, w, h, one, two) {
        const s = this.history;
        plot(ctx, w, h, [...this.kept.map(k => ({ x: k.history.step, y: k.history[one], colour: colour("soft"), dash: [2, 3] })), { x: s.step, y: s[two], colour: colour("b"), dash: [5, 3] }, { x: s.step, y: s[one], colour: colour("accent") }],
            { xlabel: "epoch", y: one === "accuracy" ? [0, 1.02] : undefined });
    }
    draw_line(ctx, w, h) {
        if (!this.boundary || !this.setup) return;
        const row = [...this.boundary.subarray(5000, 5100)], of = label => this.setup.points.filter(q => q[2] === label);
        plot(ctx, w, h, [{ x: row.map((_, i) => (i + .5) / 100), y: row.map(b => b / 255), colour: colour("ink") },
            ...[0, 1].map(k => ({ x: of(k).map(q => q[0]), y: of(k).map(q => q[2]), colour: colour(k ? "b" : "a"), dots: true }))],
            { x: [0, 1], y: [-.08, 1.08], xlabel: "x" });
    }
    show_panels(m) {
        if (m.generation !== this.setup?.generation) return;
        this.panels = m;
        if (this.hists.childElementCount !== m.tensors.length || this.hists.dataset.generation !== String(m.generation)) {
            this.hists.dataset.generation = m.generation;
            this.hists.replaceChildren(...m.tensors.map((t, i) => {
                const c = picture("histogram of " + t.name, 84, (ctx, w, h) => {
                    const now = this.panels.tensors[i];
                    bars(ctx, w / 2 - 4, h, now.weights.counts, now.weights.min, now.weights.max, colour("accent"));
                    ctx.translate(w / 2 + 4, 0);
                    if (now.gradients) bars(ctx, w / 2 - 4, h, now.gradients.counts, now.gradients.min, now.gradients.max, colour("b"));
                });
                return el("figure", {}, c, el("figcaption", {}));
            }));
        }
        m.tensors.forEach((t, i) => {
            const [c, caption] = this.hists.children[i].children;
            c.redraw();
            caption.textContent = `${t.name}: gradient ${number(t.gradient_norm, 3)}`
                + (t.weight ? `, step / weight ${number(t.update / t.weight, 3)}` : "");
        });
    }
    show_sliders() {
        if (!this.line_open || !this.weights || !this.setup) return;
        if (this.weights.length > 64 || !this.weights.length) {
            this.sliders.replaceChildren(el("p", { className: "note" }, `This network has ${this.weights.length || "very many"} weights; make it smaller, such as one layer of 4.`));
            return;
        }
        if (this.sliders.childElementCount !== this.weights.length) {
            this.sliders.replaceChildren(...this.setup.params.flatMap(q => Array.from({ length: q.shape.reduce((a, b) => a * b, 1) }, (_, index) => {
                const at = q.shape.length > 1 ? `[${Math.floor(index / q.shape[1])},${index % q.shape[1]}]` : `[${index}]`;
                return slide(q.name + at, { min: -10, max: 10, step: .01 }, 0,
                    v => this.session.do("weight", { param: q.name, index, value: v }), { live: true });
            })));
        }
        [...this.sliders.children].forEach((f, i) => f.set(+this.weights[i].toFixed(2)));
    }
}

// Runs: trainings of `facula train --out`, live.
import { Session, json_of, save } from "/page/link.js";
import { el, card, fold, button, choose, slide, check, number, percent } from "/page/form.js";
import { picture, plot, colour } from "/page/draw.js";

const COLUMNS = ["epoch", "step", "lr", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "images_per_s", "seconds"];
const NAMES = { train_loss: "training loss", test_loss: "test loss", train_accuracy: "training accuracy", test_accuracy: "test accuracy",
    lr: "learning rate", images_per_s: "samples a second" };
// Okabe and Ito's colours, which colour-blind readers can distinguish; dashes repeat the information.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00", "#7f7f7f"];
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const at = name => COLUMNS.indexOf(name);

export const open = async main => {
    const r = new Runs(main);
    await r.start();
    return () => r.session.close();
};

class Runs {
    constructor(main) {
        this.main = main;
        this.runs = new Map();
        this.metrics = ["train_loss", "test_accuracy"];
        this.axis = "epoch";
        this.smooth = 0;
    }
    async start() {
        this.build();
        this.session = await Session.open("runs", {}, (kind, bytes) => { if (kind === 2) this.see(json_of(bytes)); },
            () => this.note.replaceChildren("This page was unused for too long. ", button("Open it again", () => location.reload())));
    }
    see(s) {
        this.note.textContent = !s.folder ? "No folder is watched: start facula studio --watch DIR, where DIR holds folders of facula train --out."
            : s.runs.length ? `Trainings in ${s.folder}` : `${s.folder} holds no training yet: facula train mnist --out ${s.folder}/first`;
        s.runs.forEach((now, index) => {
            let run = this.runs.get(now.name);
            if (!run) {
                run = { name: now.name, shown: this.runs.size < 8, epochs: [], steps: [], turns: {}, k: this.runs.size, about: {} };
                this.runs.set(now.name, run);
                this.add_row(run);
            }
            const ended = now.done && !run.now?.done;
            Object.assign(run, { index, now, seen: performance.now() });
            this.fetch(run, "epochs");
            this.fetch(run, "steps");
            if (ended || !run.asked) this.ask(run);
            this.tell(run);
        });
    }
    // Requests the rows that are missing here; one question at a time for each log.
    async fetch(run, which) {
        const busy = "busy_" + which;
        if (run[busy]) return;
        run[busy] = true;
        try {
            for (;;) {
                const turn = run.now[which + "_turn"];
                if (run.turns[which] !== turn) { run[which].length = 0; run.turns[which] = turn; }
                if (run[which].length >= run.now[which]) break;
                const got = await this.session.do("rows", { run: run.index, steps: which === "steps", from: run[which].length });
                if (!got) break;
                if (got.turn !== turn) { run[which].length = 0; run.turns[which] = got.turn; if (got.turn > run.now[which + "_turn"]) break; continue; }
                if (!got.rows.length) break;
                run[which].push(...got.rows.map(r => r.map(x => typeof x === "number" ? x : NaN)));
                run.latest = performance.now();
            }
        } finally { run[busy] = false; }
        this.tell(run);
        this.redraw();
    }
    async ask(run) {
        run.asked = true;
        run.about = await this.session.do("about", { run: run.index }) || {};
        this.tell(run);
        this.show_about();
    }
    redraw() {
        for (const c of this.charts.children) c.firstChild.redraw();
    }

    // ---- the list ----
    add_row(run) {
        const box = el("input", { type: "checkbox", checked: run.shown, "aria-label": "show " + run.name,
            onchange: () => { run.shown = box.checked; this.redraw(); this.show_about(); } });
        const mark = el("canvas", { width: 34, height: 12, "aria-hidden": "true" }), ctx = mark.getContext("2d");
        ctx.strokeStyle = COLOURS[run.k % 8];
        ctx.lineWidth = 3;
        ctx.setLineDash(DASHES[Math.floor(run.k / 8) % 4]);
        ctx.beginPath();
        ctx.moveTo(0, 6);
        ctx.lineTo(34, 6);
        ctx.stroke();
        run.cells = ["state", "epoch", "loss", "test loss", "test accuracy", "speed", "what"].map(() => el("td"));
        run.halt = button("Stop", async () => { if (await this.session.do("stop", { run: run.index })) run.asked_stop = true; this.tell(run); },
            { "aria-label": "stop " + run.name });
        // Exported files are named after the run; its model exists when the training is done.
        run.along = el("select", { "aria-label": "take along of " + run.name, onchange: () => { if (run.along.value) save(this.session, run.index + "." + run.along.value); run.along.value = ""; } },
            [["", "take along"], ...["command.txt", "net.c", "net.py", "model.onnx", "model.safetensors"].map(n => [n, n])].map(([v, t]) => el("option", { value: v }, t)));
        run.row = el("tr", {}, el("td", {}, box, " ", mark), el("th", { scope: "row" }, run.name), run.cells, el("td", {}, run.halt, " ", run.along));
        run.row.dataset.run = run.name;
        this.list.append(run.row);
    }
    tell(run) {
        const last = run.epochs.at(-1), step = run.steps.at(-1), now = run.now, a = run.about.about;
        const age = now.age + (performance.now() - run.seen) / 1000, running = !now.done && now.age >= 0 && age < 60;
        const v = name => last ? last[at(name)] : NaN;
        [now.done ? "done" : run.asked_stop ? "stopping" : running ? "running" : "not running",
            last ? number(last[0]) : "0", number(v("train_loss") || step?.[at("train_loss")]), number(v("test_loss")), percent(v("test_accuracy")),
            Number.isFinite(v("images_per_s")) ? Math.round(v("images_per_s")).toLocaleString("en") + "/s" : "–",
            a ? [a.set, a.model, a.optimizer, "lr " + a.lr].join(" ") : ""].forEach((t, i) => { run.cells[i].textContent = t; });
        run.halt.disabled = !running;
        for (const o of run.along.options) o.disabled = o.value.startsWith("model") && !now.done;
    }

    // ---- layout ----
    build() {
        this.note = el("p", { className: "note", id: "watched", role: "status" }, "looking");
        this.list = el("tbody");
        this.charts = el("div", { className: "grid two", id: "charts" });
        this.about = el("div", { className: "grid two" });
        const names = Object.entries(NAMES);
        const axis = choose("Along", [["epoch", "epochs"], ["step", "steps"], ["seconds", "time"]], this.axis, v => { this.axis = v; this.redraw(); }, { id: "axis" });
        const smooth = slide("Smoothing", { min: 0, max: .95, step: .05 }, 0, v => { this.smooth = v; this.redraw(); }, { id: "smooth", live: true });
        const log = check("logarithmic losses", false, v => { this.log = v; this.redraw(); });
        this.charts.append(...[0, 1].map(i => {
            const c = picture("curves", 300, (ctx, w, h) => this.draw(ctx, w, h, this.metrics[i]));
            c.id = "chart" + i;
            return el("section", { className: "card" }, c, choose("Shown", names, this.metrics[i], v => { this.metrics[i] = v; c.redraw(); }, { id: "metric" + i }));
        }));
        this.main.append(el("h1", {}, "Runs"), el("p", { className: "lead" }, "Every training of ", el("code", {}, "facula train --out"),
            " below the folder of ", el("code", {}, "--watch"), ", including trainings on other machines that write there. Their logs are read as they grow ",
            "(", el("code", {}, "src/studio/runs/watch.c"), "). The studio writes only a file ", el("code", {}, "stop"), ", which ends a training with a checkpoint."),
            card(null, this.note, el("div", { className: "scroll" }, el("table", { id: "runs" }, el("thead", {}, el("tr", {}, ["shown", "run", "state", "epoch",
                "loss", "test loss", "test accuracy", "speed", "what", ""].map(t => el("th", { scope: "col" }, t)))), this.list))),
            el("div", { className: "card after" }, el("div", { className: "grid three" }, axis, smooth, log)), el("div", { className: "after" }, this.charts),
            el("div", { className: "after" }, this.about));
    }
    series(run, metric) {
        const of = ["test_loss", "test_accuracy", "images_per_s"].includes(metric) || !run.steps.length ? run.epochs : run.steps;
        const per = run.epochs.length ? run.epochs[0][1] / run.epochs[0][0] : NaN;
        const place = r => this.axis === "step" ? r[1] : this.axis === "seconds" ? r[8] : Number.isFinite(r[0]) ? r[0] : r[1] / per;
        const rows = this.axis === "seconds" || (this.axis === "epoch" && of === run.steps && !run.epochs.length) ? run.epochs : of;
        let mean = NaN;
        const y = rows.map(r => {
            const v = r[at(metric)];
            mean = Number.isFinite(mean) && Number.isFinite(v) ? this.smooth * mean + (1 - this.smooth) * v : v;
            return mean;
        });
        return { x: rows.map(place), y, colour: COLOURS[run.k % 8], dash: DASHES[Math.floor(run.k / 8) % 4], dots: rows.length === 1 };
    }
    draw(ctx, w, h, metric) {
        const all = [...this.runs.values()].filter(r => r.shown).map(r => this.series(r, metric)).filter(s => s.x.some(Number.isFinite));
        if (all.length) return plot(ctx, w, h, all, { xlabel: { epoch: "epochs", step: "steps", seconds: "seconds" }[this.axis], log: this.log && metric.includes("loss") });
        ctx.fillStyle = colour("soft");
        ctx.fillText("no lines yet", w / 2 - 30, h / 2);
    }
    show_about() {
        this.about.replaceChildren(...[...this.runs.values()].filter(r => r.shown && (r.about.confusion || r.about.samples)).map(r => this.confusion(r)));
    }
    confusion(run) {
        const m = run.about.confusion, n = m?.counts?.length || 0, labels = m?.classes || [];
        if (!n || n > 30) return el("section", { className: "card" }, el("h2", {}, run.name), el("p", { className: "note" }, n ? n + " classes" : "no confusion matrix yet"));
        const rows = m.counts.map((row, i) => {
            const sum = row.reduce((a, b) => a + b, 0) || 1;
            return el("tr", {}, el("th", { scope: "row" }, labels[i] || String(i)), row.map((c, k) => {
                const d = el("td", {}, String(c));
                d.style.background = `color-mix(in srgb, var(--${i === k ? "good" : "bad"}) ${Math.round(70 * c / sum)}%, transparent)`;
                return d;
            }));
        });
        return fold(`${run.name}: confusion matrix`, el("div", { className: "scroll" }, el("table", {}, el("tr", {}, el("th", {}, "class \\ prediction"),
            labels.map(l => el("th", { scope: "col" }, l))), rows)));
    }
}

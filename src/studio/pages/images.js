// Images: LeNet learns digits, or clothes; draw one, look into the layers, see which pixels matter and which images are wrong.
import { Session, json_of, take_along } from "/page/link.js";
import { el, card, button, choose, slide, check, facts, number, percent, time } from "/page/form.js";
import { picture, plot, colour, legend } from "/page/draw.js";

export const open = async main => {
    const p = new Images(main);
    await p.start();
    return () => p.session.close();
};

const RATES = [.0001, .0003, .001, .003, .01, .03, .1];

// Bytes as grey, larger ones darker; over them, in orange, the pixels that matter.
const stamp = (canvas, bytes, w, h, over) => {
    canvas.width = w;
    canvas.height = h;
    const ctx = canvas.getContext("2d"), image = ctx.createImageData(w, h);
    for (let i = 0; i < w * h; i++) {
        const v = 255 - bytes[i], s = over ? over[i] / 255 : 0;
        image.data.set([v + (224 - v) * s, v + (112 - v) * s, v * (1 - s), 255], 4 * i);
    }
    ctx.putImageData(image, 0, 0);
};

class Images {
    constructor(main) {
        this.main = main;
        this.history = { epoch: [], loss: [], accuracy: [], test: [] };
        this.strokes = [];
        this.groups = new Map();
    }
    async start() {
        const note = el("p", { className: "note" }, "Reading the images ...");
        this.main.append(note);
        this.session = await Session.open("images", {}, (kind, bytes) => this.see(kind, bytes), () =>
            this.main.prepend(el("p", { className: "card" }, "This page was unused for too long. ", button("Open it again", () => location.reload()))));
        note.remove();
        this.build();
    }
    see(kind, bytes) {
        if (kind === 1) return this.set_up(json_of(bytes));
        if (kind === 2) return this.tell(json_of(bytes));
        if (kind !== 7 && kind !== 8) return;
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), all = [];
        if (view.getUint32(0, true) !== this.setup?.generation) return;
        for (let at = 6, n = view.getUint16(4, true); n > 0; n--) {
            const w = view.getUint16(at + 2, true), h = view.getUint16(at + 4, true);
            all.push({ group: view.getUint8(at), label: view.getUint8(at + 1), w, h, bytes: bytes.slice(at + 6, at + 6 + w * h) });
            at += 6 + w * h;
        }
        if (kind === 7) this.show_pictures(all);
        else this.show_wrong(all);
    }
    set_up(s) {
        const fresh = s.generation !== this.setup?.generation;
        this.setup = s;
        if (fresh) for (const k in this.history) this.history[k].length = 0;
        for (const k in this.controls) this.controls[k].set(s[k]);
        this.controls.samples.input.max = s.all || 60000;
        this.index.input.max = Math.max(0, s.test - 1);
        this.network.set(s.known ? "known" : "new");
        this.what.textContent = s.lacks || (s.digits ? `MNIST: ${s.all} digits, and ${s.test} for testing`
            : `Fashion-MNIST: ${s.all} pieces of clothing, and ${s.test} for testing. For digits, start facula studio --data DIR, where DIR holds MNIST's four files.`);
    }
    tell(s) {
        if (s.generation !== this.setup?.generation) return;
        const h = this.history, epoch = s.step / s.in_epoch;
        this.state = s;
        if (s.step && h.epoch.at(-1) !== epoch) {
            h.epoch.push(epoch);
            h.loss.push(s.loss);
            h.accuracy.push(s.accuracy);
            h.test.push(s.test_accuracy);
            if (h.epoch.length > 2000) for (const k in h) this.history[k] = h[k].filter((_, i) => i % 2);
        }
        this.facts.set([`${Math.floor(epoch)} / ${s.epochs}`, String(s.step), number(s.loss), percent(s.accuracy), percent(s.test_accuracy),
            s.step ? time(s.seconds / s.step) : "-"]);
        this.play.textContent = s.playing ? "Pause" : "Play";
        this.progress.value = epoch / s.epochs;
        const left = (s.epochs * s.in_epoch - s.step) * s.seconds / s.step;
        this.left.textContent = s.stopped || (s.playing && s.step ? time(left) + " left" : "");
        const best = s.chances.reduce((b, x, i, a) => typeof x === "number" && x > a[b] ? i : b, 0);
        s.chances.forEach((x, i) => {
            const [bar, text] = this.bars.children[i].querySelectorAll("progress, output");
            bar.value = typeof x === "number" ? x : 0;
            text.textContent = percent(x);
            this.bars.children[i].classList.toggle("best", i === best);
            this.bars.children[i].querySelector("label").textContent = this.setup.classes[i];
        });
        this.said.textContent = `Prediction: ${this.setup.classes[best]}` + (s.truth >= 0 ? `; label: ${this.setup.classes[s.truth]}` : s.drawn ? " (your drawing)" : " (but the network knows only digits)");
        this.said.dataset.best = best;
        this.curve.redraw();
        this.rates.redraw();
    }
    show_pictures(all) {
        const image = all.find(p => p.group === 0), counts = all.find(p => p.group === 1);
        stamp(this.image, image.bytes, 28, 28, this.salient ? counts.bytes : null);
        for (const g of new Set(all.map(p => p.group).filter(g => g > 1))) {
            const of = all.filter(p => p.group === g);
            let row = this.groups.get(g);
            if (!row) {
                row = el("div", { className: "maps" });
                this.groups.set(g, row);
                this.maps.append(el("figure", {}, row, el("figcaption", {}, `layer ${g - 1}: ${of.length} maps of ${of[0].w} x ${of[0].h}`)));
            }
            while (row.children.length < of.length) row.append(el("canvas", { role: "img", "aria-label": `map ${row.children.length} of layer ${g - 1}` }));
            of.forEach((p, i) => stamp(row.children[i], p.bytes, p.w, p.h));
        }
    }
    show_wrong(all) {
        this.wrong.replaceChildren(...all.map(p => {
            const c = el("canvas", { "aria-hidden": "true" }), names = this.setup.classes;
            stamp(c, p.bytes, p.w, p.h);
            return el("figure", {}, c, el("figcaption", {}, `${names[p.label >> 4]}; prediction ${names[p.label & 15]}`));
        }));
        if (!all.length) this.wrong.append(el("p", { className: "note" }, "none of the first 500 test images"));
    }

    // ---- layout ----
    build() {
        const s = this.session, c = this.controls = {};
        this.what = el("p", { className: "note" });
        this.play = button("Play", () => s.do(this.state?.playing ? "pause" : "play"), { className: "main", id: "play" });
        this.progress = el("progress", { max: 1, value: 0, "aria-label": "epochs done" });
        this.left = el("span", { className: "note" });
        this.facts = facts(["epoch", "step", "loss", "accuracy", "test accuracy", "time per step"]);
        this.said = el("p", { id: "said", role: "status" });
        this.image = el("canvas", { id: "image", role: "img", "aria-label": "the selected image, 28 x 28" });
        this.bars = el("div", { id: "bars" }, Array.from({ length: 10 }, (_, i) => {
            const bar = el("progress", { max: 1, value: 0, id: "bar" + i });
            return el("div", { className: "chance" }, el("label", { htmlFor: "bar" + i }, String(i)), bar, el("output", {}, ""));
        }));
        this.maps = el("div", { id: "maps" });
        this.wrong = el("div", { className: "wrongs", id: "wrong" });
        this.pad = picture("drawing: draw with the pointer", 280, (ctx, w, h) => this.draw(ctx, w, h), { square: true });
        this.pad.id = "pad";
        this.pad.addEventListener("pointerdown", e => { this.pad.setPointerCapture(e.pointerId); this.strokes.push([]); this.add(e); });
        this.pad.addEventListener("pointermove", e => { if (e.buttons && this.strokes.length) this.add(e); });
        this.pad.addEventListener("pointerup", () => this.send());
        this.curve = picture("loss over epochs", 170, (ctx, w, h) => plot(ctx, w, h, [{ x: this.history.epoch, y: this.history.loss, colour: colour("accent") }], { xlabel: "epoch" }));
        this.curve.id = "loss";
        this.rates = picture("accuracy over epochs", 150, (ctx, w, h) => plot(ctx, w, h, [{ x: this.history.epoch, y: this.history.test, colour: colour("b"), dash: [5, 3] },
            { x: this.history.epoch, y: this.history.accuracy, colour: colour("accent") }], { xlabel: "epoch", y: [0, 1.02] }));
        const set = k => v => s.do("setup", { [k]: v });
        c.samples = slide("Training images", { min: 100, max: 60000, step: 100 }, 1000, set("samples"), { id: "samples" });
        c.batch = slide("Batch", { min: 1, max: 128, step: 1 }, 16, set("batch"), { id: "batch" });
        c.lr = slide("Learning rate (adam)", RATES, .001, set("lr"), { id: "lr" });
        c.epochs = slide("Epochs", { min: 1, max: 100, step: 1 }, 20, set("epochs"), { id: "epochs" });
        c.seed = slide("Seed", { min: 0, max: 100, step: 1 }, 0, set("seed"), { id: "seed" });
        this.index = slide("Test image", { min: 0, max: 9999, step: 1 }, 0, v => s.do("image", { index: v }), { id: "index", live: true });
        this.network = choose("Network", [["known", "trained on digits"], ["new", "learns from scratch"]], "known",
            v => s.do("reset", { known: v === "known" }), { id: "network" });
        this.main.append(el("h1", {}, "Images"), el("p", { className: "lead" }, "LeNet-5, trained on digits, or learning from scratch: Play starts that. Choose a test image or draw one, and see its feature maps, which pixels ",
            "matter (the gradient of the largest logit with respect to the image), and which of the first 500 test images are classified wrongly. Computed by ", el("code", {}, "src/studio/images/images.c"),
            " on ", el("code", {}, "src/train/trainer.c"), "; a drawing is normalized as MNIST's images were, ", el("code", {}, "src/studio/images/sketch.c"), "."),
        el("div", { className: "bar card", role: "toolbar", "aria-label": "training" }, this.play, button("Step", () => s.do("step", { n: 1 }), { id: "step" }),
            button("Reset", () => s.do("reset"), { id: "reset" }), this.progress, this.left),
        el("div", { className: "grid three" }, el("div", { className: "stack" }, card("Draw", this.pad, el("div", { className: "bar" }, button("Clear", () => { this.strokes = []; this.pad.redraw(); this.send(); }, { id: "clear" }))),
            card("Settings", this.network, this.what, ...Object.values(c))),
        el("div", { className: "stack" }, card("Image and prediction", this.index, el("div", { className: "looked" }, this.image, this.bars), this.said,
            check("show which pixels matter", true, v => { this.salient = v; s.do("setup", {}); })), card("Feature maps", this.maps)),
        el("div", { className: "stack" }, card("Training", this.facts, this.curve, this.rates, legend([["training", "accent"], ["test (first 500)", "b"]])),
            card("Misclassified", this.wrong), take_along(s, ["command.txt", "model.onnx", "model.safetensors", "net.c", "net.py"]))));
        this.salient = true;
    }
    add(e) {
        const r = this.pad.getBoundingClientRect();
        this.strokes.at(-1).push(+((e.clientX - r.left) / r.width).toFixed(4), +((e.clientY - r.top) / r.height).toFixed(4));
        this.pad.redraw();
        if (performance.now() - (this.sent || 0) > 80) this.send();
    }
    send() {
        this.sent = performance.now();
        this.session.do("draw", { strokes: this.strokes });
    }
    draw(ctx, w, h) {
        ctx.fillStyle = colour("field");
        ctx.fillRect(0, 0, w, h);
        ctx.strokeStyle = colour("line");
        ctx.strokeRect(.5, .5, w - 1, h - 1);
        ctx.strokeStyle = colour("ink");
        ctx.lineWidth = w * .079;
        ctx.lineCap = ctx.lineJoin = "round";
        for (const s of this.strokes) {
            ctx.beginPath();
            for (let i = 0; i < s.length; i += 2) ctx.lineTo(s[i] * w, s[i + 1] * h);
            if (s.length === 2) ctx.lineTo(s[0] * w + .1, s[1] * h);
            ctx.stroke();
        }
    }
}

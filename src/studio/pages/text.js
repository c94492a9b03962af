// Text: a network learns which reviews are good; each word of a sentence shows its contribution to the prediction.
import { Session, json_of, take_along } from "/page/link.js";
import { el, card, button, slide, choose, type_in, facts, number, percent, time } from "/page/form.js";
import { picture, plot, colour, legend } from "/page/draw.js";

export const open = async main => {
    const p = new Text(main);
    await p.start();
    return () => p.session.close();
};

const RATES = [.0001, .0002, .0005, .001, .002, .005, .01, .02, .05];

class Text {
    constructor(main) {
        this.main = main;
        this.history = { epoch: [], loss: [], accuracy: [], test: [], test_loss: [] };
    }
    async start() {
        const note = el("p", { className: "note" }, "Reading the sentences ...");
        this.main.append(note);
        this.session = await Session.open("text", {}, (kind, bytes) => this.see(kind, bytes), () =>
            this.main.prepend(el("p", { className: "card" }, "This page was unused for too long. ", button("Open it again", () => location.reload()))));
        note.remove();
        this.build();
    }
    see(kind, bytes) {
        const s = json_of(bytes);
        if (kind === 1) this.set_up(s);
        else if (s.generation !== this.setup?.generation) return;
        else if (kind === 2) this.tell(s);
        else if (kind === 6) this.show_sentence(s);
        else if (kind === 8) this.show_rows(s.rows);
    }
    set_up(s) {
        const fresh = s.generation !== this.setup?.generation;
        this.setup = s;
        this.all.hidden = Boolean(s.lacks);
        this.lacks.hidden = !s.lacks;
        this.lacks.textContent = s.lacks || "";
        if (s.lacks) return;
        if (fresh) for (const k in this.history) this.history[k].length = 0;
        this.controls.samples.input.max = s.all;
        for (const k in this.controls) this.controls[k].set(s[k]);
        this.controls.widths.set(s.net.split(",")[1]);
        this.what.textContent = `${s.folder}: ${s.all} sentences of ${s.vocabulary - 2} words, and ${s.test} for testing`;
    }
    tell(s) {
        const h = this.history, epoch = s.step / s.in_epoch;
        this.state = s;
        if (s.step && h.epoch.at(-1) !== epoch) {
            h.epoch.push(epoch);
            h.loss.push(s.loss);
            h.accuracy.push(s.accuracy);
            h.test.push(s.test_accuracy);
            h.test_loss.push(s.test_loss);
            if (h.epoch.length > 2000) for (const k in h) this.history[k] = h[k].filter((_, i) => i % 2);
        }
        this.facts.set([`${Math.floor(epoch)} / ${s.epochs}`, String(s.step), s.step ? number(s.loss) : "–", percent(s.accuracy), percent(s.test_accuracy),
            s.step ? time(s.seconds / s.step) : "-"]);
        this.play.textContent = s.playing ? "Pause" : "Play";
        this.progress.value = epoch / s.epochs;
        const left = (s.epochs * s.in_epoch - s.step) * s.seconds / s.step;
        this.left.textContent = s.stopped || (s.playing && s.step ? time(left) + " left" : "");
        this.curve.redraw();
        this.rates.redraw();
    }
    show_sentence(s) {
        const most = Math.max(1e-9, ...s.words.map(w => Math.abs(w.share)));
        this.said.textContent = `${s.chance > .5 ? "good" : "bad"}, ${percent(Math.max(s.chance, 1 - s.chance))} sure (logit of good minus that of bad: ${number(s.margin, 3)})`;
        while (this.words.children.length < s.words.length) {
            const i = this.words.children.length;
            this.words.append(el("button", { type: "button", className: "word", onclick: () => this.near(this.shown[i].word) }, el("span"), el("output"), el("i")));
        }
        while (this.words.children.length > s.words.length) this.words.lastChild.remove();
        this.shown = s.words;
        s.words.forEach((w, i) => {
            const b = this.words.children[i], [word, share, bar] = b.children;
            word.textContent = w.word || "(too long)";
            share.textContent = w.known ? (w.share > 0 ? "+" : w.share < 0 ? "−" : "") + number(Math.abs(w.share), 2) : "not known";
            b.dataset.side = w.share > 0 ? "good" : w.share < 0 ? "bad" : "none";
            bar.style.width = 100 * Math.abs(w.share) / most + "%";
        });
    }
    show_rows(rows) {
        this.rows.replaceChildren(...rows.map(r => {
            const right = (r.chance > .5) === (r.label === 1), of = r.label ? r.chance : 1 - r.chance;
            return el("tr", {}, el("td", {}, button(r.text, () => this.put(r.text), { className: "plain" })), el("td", {}, r.label ? "good" : "bad"),
                el("td", {}, (r.chance > .5 ? "good" : "bad") + (right ? "" : ", wrong")), el("td", {}, number(Math.log(r.chance / (1 - r.chance)), 3)),
                el("td", {}, number(-Math.log(of), 3)));
        }));
    }
    put(text) {
        this.sentence.input.value = text;
        this.session.do("text", { text });
        this.sentence.scrollIntoView({ block: "nearest" });
    }
    async near(word) {
        const got = await this.session.do("near", { word });
        if (!got) return;
        this.nearest.replaceChildren(el("p", { className: "note" }, `nearest to "${got.word}", by cosine similarity (near 0 for random vectors)`),
            el("ol", {}, got.near.map(n => el("li", {}, n.word, " ", el("span", { className: "note" }, number(n.cosine, 3))))));
    }
    build() {
        const s = this.session, c = this.controls = {}, set = k => v => s.do("setup", { [k]: v });
        const net = change => {
            const [filters, widths, dropout] = this.setup.net.split(",");
            const n = { filters, widths, dropout, ...change };
            return s.do("setup", { net: `${n.filters},${n.widths.trim()},${n.dropout}` });
        };
        this.lacks = el("p", { className: "card", id: "lacks", role: "status", hidden: true });
        this.what = el("p", { className: "note" });
        this.play = button("Play", () => s.do(this.state?.playing ? "pause" : "play"), { className: "main", id: "play" });
        this.progress = el("progress", { max: 1, value: 0, "aria-label": "epochs done" });
        this.left = el("span", { className: "note" });
        this.facts = facts(["epoch", "step", "loss", "accuracy", "test accuracy", "time per step"]);
        this.said = el("p", { id: "said", role: "status" });
        this.words = el("div", { id: "words", className: "words" });
        this.nearest = el("div", { id: "near", role: "status" }, el("p", { className: "note" }, "Click a word to see those whose vectors are nearest."));
        this.rows = el("tbody");
        this.sentence = type_in("Sentence", "a clever and funny film , but the story is not good", v => s.do("text", { text: v }), { rows: 3, id: "sentence", maxLength: 1000 });
        this.sentence.input.addEventListener("input", () => s.do("text", { text: this.sentence.input.value }));
        const h = this.history;
        this.curve = picture("loss over epochs", 170, (ctx, w, high) => plot(ctx, w, high, [{ x: h.epoch, y: h.test_loss, colour: colour("b"), dash: [5, 3] },
            { x: h.epoch, y: h.loss, colour: colour("accent") }], { xlabel: "epoch" }));
        this.curve.id = "loss";
        this.rates = picture("accuracy over epochs", 150, (ctx, w, high) => plot(ctx, w, high, [{ x: h.epoch, y: h.test, colour: colour("b"), dash: [5, 3] },
            { x: h.epoch, y: h.accuracy, colour: colour("accent") }], { xlabel: "epoch", y: [0, 1.02] }));
        c.samples = slide("Training sentences", { min: 10, max: 10, step: 1 }, 10, set("samples"), { id: "samples" });
        c.filters = slide("Filters of each width", { min: 1, max: 200, step: 1 }, 64, v => net({ filters: v }), { id: "filters" });
        c.widths = type_in("Widths in words", "3-4-5", v => net({ widths: v }), { id: "widths" });
        c.dropout = slide("Dropout", { min: 0, max: .95, step: .05 }, .5, v => net({ dropout: v }), { id: "dropout" });
        c.batch = slide("Batch", { min: 1, max: 256, step: 1 }, 50, set("batch"), { id: "batch" });
        c.lr = slide("Learning rate (adam)", RATES, .002, set("lr"), { id: "lr" });
        c.epochs = slide("Epochs", { min: 1, max: 100, step: 1 }, 5, set("epochs"), { id: "epochs" });
        c.seed = slide("Seed", { min: 0, max: 100, step: 1 }, 0, set("seed"), { id: "seed" });
        const order = choose("Order", [["wrong", "the worst first"], ["sure", "the best first"], ["file", "as in the file"]], "wrong", v => s.do("rows", { order: v }), { id: "order" });
        const word = type_in("Words near", "good", v => this.near(v), { id: "word" });
        this.all = el("div", { hidden: true },
            el("div", { className: "bar card", role: "toolbar", "aria-label": "training" }, this.play, button("Step", () => s.do("step", { n: 1 }), { id: "step" }),
                button("Reset", () => s.do("reset"), { id: "reset" }), this.progress, this.left),
            el("div", { className: "grid three" }, card("Settings", this.what, ...Object.values(c)),
                el("div", { className: "stack" }, card("Sentence", this.sentence, this.said, this.words, legend([["towards good", "b"], ["towards bad", "a"]])),
                    card("Test sentences", order, el("div", { className: "scroll" }, el("table", { id: "rows" }, el("thead", {}, el("tr", {}, ["sentence", "label", "prediction", "logit", "error"].map(n => el("th", { scope: "col" }, n)))), this.rows)))),
                el("div", { className: "stack" }, card("Training", this.facts, this.curve, this.rates, legend([["training", "accent"], ["test", "b"]])),
                    card("Neighbours", word, this.nearest), take_along(s, ["command.txt", "model.onnx", "model.safetensors", "words.txt", "net.c", "net.py"]))));
        this.main.append(el("h1", {}, "Text"), el("p", { className: "lead" }, "Kim's network learns from scratch whether a review is good or bad: vectors of words, filters over a few words each, the maximum of each filter over ",
            "the sentence. The contribution of a word is the gradient of the logits' difference with respect to its vector, times the vector. Computed by ", el("code", {}, "src/studio/sentences/sentences.c"), " on ",
            el("code", {}, "src/nn/sentence.c"), " and ", el("code", {}, "src/train/trainer.c"), "."), this.lacks, this.all);
    }
}

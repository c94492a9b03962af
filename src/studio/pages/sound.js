// Sound: a file or the microphone as a scrolling spectrogram, and the classes that a model finds in it.
import { Session, json_of, take_along, complain } from "/page/link.js";
import { el, card, button, slide, choose, facts, number, percent, time } from "/page/form.js";
import { picture, colour } from "/page/draw.js";

export const open = async main => {
    const p = new Sound(main);
    await p.start();
    return () => { p.silence(); p.session.close(); };
};

const WIDE = 1024, HIGH = 256;      // columns kept, rows of a column
// From dark blue over grey to yellow, also for colour-blind readers (after cividis, Nuñez et al. 2018).
const STOPS = [[0, 32, 77], [87, 93, 109], [165, 156, 116], [255, 234, 70]];

class Sound {
    constructor(main) {
        this.main = main;
        this.ring = new Uint8Array(WIDE * HIGH);
        this.newest = -1;
        this.range = 80;
        this.log = [];
        this.strip = document.createElement("canvas");
    }
    async start() {
        this.build();
        this.session = await Session.open("sound", {}, (kind, bytes) => this.see(kind, bytes), () => {
            this.silence();
            this.main.prepend(el("p", { className: "card" }, "This page was unused for too long. ", button("Open it again", () => location.reload())));
        });
        this.along.append(take_along(this.session, ["command.txt", "model.onnx", "model.safetensors", "net.c", "net.py"]));
    }
    see(kind, bytes) {
        if (kind === 1) this.set_up(json_of(bytes));
        else if (kind === 2) this.tell(json_of(bytes));
        else if (kind === 9) this.add(bytes);
    }
    set_up(s) {
        if (s.generation !== this.setup?.generation) {
            this.ring.fill(0);
            this.newest = -1;
            if (s.source !== this.setup?.source || s.seconds !== this.setup?.seconds) this.log = [];
        }
        this.setup = s;
        for (const k of ["length", "part", "mels", "speed"]) this.controls[k].set(s[k]);
        const p = this.place.input;
        p.max = s.seconds;
        p.disabled = s.source !== "file";
        this.deaf.textContent = s.deaf || `The model gets ${number(s.window / s.model_rate)} s at ${s.model_rate} Hz, four times a second` +
            (s.rate !== s.model_rate ? `; the sound, at ${s.rate} Hz, is resampled for it` : "");
        this.along.hidden = Boolean(s.deaf);
        this.facts_of = s;
        this.view.redraw();
    }
    tell(s) {
        if (s.generation !== this.setup?.generation) return;
        this.state = s;
        this.play.textContent = s.playing ? "Pause" : "Play";
        this.play.disabled = this.setup.source === "nothing";
        this.place.set(s.at);
        this.facts.set([this.setup.source, `${this.setup.rate} Hz`, time(s.at), this.setup.source === "file" ? time(this.setup.seconds) : "–", String(s.columns), time(s.took)]);
        this.stopped.textContent = s.stopped || "";
        const names = s.classes.map(c => c.name);
        while (this.bars.children.length < s.classes.length) {
            const id = "class" + this.bars.children.length;
            this.bars.append(el("div", { className: "chance" }, el("label", { htmlFor: id }), el("progress", { max: 1, value: 0, id }), el("output")));
        }
        while (this.bars.children.length > s.classes.length) this.bars.lastChild.remove();
        s.classes.forEach((c, i) => {
            const [label, bar, out] = this.bars.children[i].children;
            label.textContent = names[i];
            bar.value = typeof c.p === "number" ? c.p : 0;
            out.textContent = percent(c.p);
        });
        if (names.length && s.heard !== this.log.at(-1)?.until) this.note(s);
        this.view.redraw();
    }
    // A class is added to the list when it differs from the one before.
    note(s) {
        const last = this.log.at(-1), best = s.classes[0];
        if (last?.name === best.name && s.heard > last.until) last.until = s.heard;
        else this.log.push({ name: best.name, from: s.heard, until: s.heard });
        if (this.log.length > 50) this.log.shift();
        this.heard.replaceChildren(...this.log.slice(-12).reverse().map(h => el("li", {}, `${h.from.toFixed(2)} s: ${h.name}`)));
    }
    add(bytes) {
        const v = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), first = v.getUint32(4, true), n = v.getUint16(8, true), rows = v.getUint16(10, true);
        if (v.getUint32(0, true) !== this.setup?.generation) return;
        for (let c = this.newest + 1; c < first; c++) this.ring.fill(0, c % WIDE * HIGH, (c % WIDE + 1) * HIGH);
        for (let c = 0; c < n; c++) this.ring.set(bytes.subarray(12 + c * rows, 12 + (c + 1) * rows), (first + c) % WIDE * HIGH);
        this.newest = first + n - 1;
        this.view.redraw();
    }

    // ---- the picture ----
    // Colours of steps of half a decibel, 255 full scale.
    map() {
        return Uint32Array.from({ length: 256 }, (_, i) => {
            const t = Math.max(0, 1 - (255 - i) / 2 / this.range) * (STOPS.length - 1), k = Math.min(STOPS.length - 2, Math.floor(t));
            const [r, g, b] = STOPS[k].map((x, j) => Math.round(x + (STOPS[k + 1][j] - x) * (t - k)));
            return 0xff000000 | b << 16 | g << 8 | r;
        });
    }
    hertz(part) {
        const top = this.setup.rate / 2;
        return this.setup.mels ? 700 * ((1 + top / 700) ** part - 1) : part * top;
    }
    draw(ctx, w, h) {
        const left = 52, bottom = h - 22, s = this.setup;
        if (!s) return;
        const shown = Math.min(WIDE, Math.max(64, Math.floor(w - left))), rows = s.bins, map = this.map();
        this.strip.width = shown;
        this.strip.height = rows;
        const to = this.strip.getContext("2d"), image = to.createImageData(shown, rows), pixels = new Uint32Array(image.data.buffer);
        for (let x = 0; x < shown; x++) {
            const c = this.newest - shown + 1 + x, at = c % WIDE * HIGH;
            for (let y = 0; y < rows; y++) pixels[(rows - 1 - y) * shown + x] = map[c < 0 ? 0 : this.ring[at + y]];
        }
        to.putImageData(image, 0, 0);
        ctx.imageSmoothingEnabled = rows > 100;
        ctx.drawImage(this.strip, left, 4, w - left, bottom - 4);
        ctx.font = "11px system-ui, sans-serif";
        ctx.fillStyle = colour("soft");
        ctx.textAlign = "right";
        ctx.textBaseline = "middle";
        for (let k = 0; k <= 4; k++) ctx.fillText(number(this.hertz(k / 4) / 1000, 2) + " kHz", left - 5, bottom - k / 4 * (bottom - 12) - 2);
        ctx.textAlign = "center";
        ctx.textBaseline = "top";
        const when = c => (s.origin + c * s.hop) / s.rate, a = when(this.newest - shown + 1), b = when(this.newest + 1), step = [.1, .2, .5, 1, 2, 5, 10, 20].find(x => (b - a) / x < 9) || 60;
        for (let t = Math.ceil(a / step) * step; t < b; t += step) if (t >= 0) ctx.fillText(number(t, 4) + " s", left + (t - a) / (b - a) * (w - left), bottom + 5);
    }

    // ---- sources ----
    async take_file(file) {
        if (!file) return;
        this.silence();
        if (file.size > 32 << 20) return complain(`${file.name} has more than 32 MiB`);
        await this.session.put("wav", await file.arrayBuffer());
    }
    async listen() {
        if (this.audio) return this.silence();
        try {
            const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
            const audio = this.audio = new AudioContext();
            this.stream = stream;
            await audio.audioWorklet.addModule("/page/mic.js");
            const tap = new AudioWorkletNode(audio, "tap");
            if (!await this.session.do("microphone", { rate: audio.sampleRate })) return this.silence();
            let waiting = 0;
            tap.port.onmessage = async e => {
                if (this.audio !== audio || waiting > 8) return;       // a slow engine skips some
                waiting++;
                await this.session.put("block", e.data.buffer);
                waiting--;
            };
            audio.createMediaStreamSource(stream).connect(tap).connect(audio.destination);
            this.mic.textContent = "Microphone off";
        } catch (e) {
            this.silence();
            complain("No microphone: " + e.message);
        }
    }
    silence() {
        this.stream?.getTracks().forEach(t => t.stop());
        this.audio?.close();
        this.audio = this.stream = null;
        this.mic.textContent = "Microphone";
    }

    build() {
        const c = this.controls = {}, set = k => v => this.session.do("setup", { [k]: +v });
        this.play = button("Play", () => this.session.do(this.state?.playing ? "pause" : "play"), { className: "main", id: "play", disabled: true });
        this.mic = button("Microphone", () => this.listen(), { id: "mic" });
        const file = el("input", { type: "file", accept: ".wav,audio/wav", id: "file", "aria-label": "a WAV file", onchange: () => this.take_file(file.files[0]) });
        this.place = slide("Place", { min: 0, max: 1, step: .01 }, 0, v => this.session.do("seek", { seconds: v }), { id: "place", disabled: true });
        c.length = choose("Samples of a frame", [64, 128, 256, 512, 1024, 2048, 4096].map(String), "512", set("length"), { id: "length" });
        c.part = choose("Frames begin every", [["1", "frame"], ["2", "half frame"], ["4", "quarter frame"], ["8", "eighth of a frame"]], "4", set("part"), { id: "part" });
        c.mels = choose("Scale", [["0", "plain frequencies"], ["32", "32 mels"], ["40", "40 mels"], ["64", "64 mels"], ["80", "80 mels"]], "0", set("mels"), { id: "mels" });
        c.speed = choose("Speed of a file", [["1", "normal"], ["4", "4 times as fast"], ["0", "as fast as possible"]], "1", set("speed"), { id: "speed" });
        const range = slide("Range in decibels", { min: 20, max: 120, step: 5 }, 80, v => { this.range = v; this.view.redraw(); }, { id: "range", live: true });
        this.facts = facts(["source", "rate", "at", "of", "columns", "time per window"]);
        this.stopped = el("p", { className: "note" });
        this.deaf = el("p", { className: "note", id: "deaf" });
        this.bars = el("div", { id: "classes" });
        this.heard = el("ol", { id: "heard", className: "plain" });
        this.along = el("div", { hidden: true });
        this.view = picture("spectrogram: time to the right, frequency upwards, louder is lighter", 340, (ctx, w, h) => this.draw(ctx, w, h));
        this.view.id = "view";
        this.main.append(el("h1", {}, "Sound"), el("p", { className: "lead" }, "A WAV file or the microphone as short-time spectra that the engine computes, and the classes that a model finds in it. The sound of the microphone ",
            "goes only to the engine on this machine, which keeps it for at most a minute. Computed by ", el("code", {}, "src/studio/hearing/hearing_work.c"), " on ", el("code", {}, "src/nn/spectrogram.c"), "."),
        el("div", { className: "bar card", role: "toolbar", "aria-label": "sound" }, file, this.mic, this.play, this.stopped),
        el("div", { className: "grid side" }, card("Display", this.place, ...Object.values(c), range),
            el("div", { className: "stack" }, card(null, this.view, this.facts), card("Classes", this.deaf, el("div", { className: "grid two" }, this.bars, this.heard)), this.along)));
    }
}

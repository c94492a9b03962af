// The connection to the engine: the key of this tab, questions by POST, one stream of frames for an open page.
import { fold, button } from "/page/form.js";

const at = new URLSearchParams(location.hash.slice(1));
if (at.get("key")) sessionStorage.setItem("key", at.get("key"));
at.delete("key");
const key = sessionStorage.getItem("key") || "";

// The settings of the page in the address, without the key, so that it can be shared.
export const place = at;
export const write_place = () => history.replaceState(null, "", "#" + place);
write_place();

const status = document.querySelector("#link");
export const say_link = text => { if (status.textContent !== text) status.textContent = text; };

let fading;
export const complain = text => {
    const to = document.querySelector("#toast");
    to.textContent = text;
    to.hidden = false;
    clearTimeout(fading);
    fading = setTimeout(() => { to.hidden = true; }, 6000);
};

const call = (path, more) => fetch(path, { ...more, headers: { "X-Facula-Key": key, ...more?.headers } });

export const post = async (path, body) => {
    const answer = await call(path, { method: "POST", body: JSON.stringify(body),
        headers: { "Content-Type": "application/json" }, keepalive: path.startsWith("/api/close/") });
    const j = await answer.json();
    if (answer.ok) return j;
    throw Object.assign(new Error(j.error?.message || "the studio refused the request"), { status: answer.status });
};
export const ask = (name, body) => post("/api/ask/" + name, body);

// Splits the stream into frames: u32 length, u8 kind, bytes.
const read = async (stream, see) => {
    const reader = stream.getReader();
    let rest = new Uint8Array(0);
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const all = new Uint8Array(rest.length + value.length);
        all.set(rest);
        all.set(value, rest.length);
        let from = 0;
        const view = new DataView(all.buffer);
        while (all.length - from >= 5) {
            const bytes = view.getUint32(from, true);
            if (all.length - from - 5 < bytes) break;
            see(all[from + 4], all.subarray(from + 5, from + 5 + bytes));
            from += 5 + bytes;
        }
        rest = all.subarray(from);
    }
};

export const json_of = bytes => JSON.parse(new TextDecoder().decode(bytes));

// An open page.  see(kind, bytes) gets its frames; lost() is called when the session is gone.
export class Session {
    static async open(page, how, see, lost) {
        const s = new Session();
        const { id } = await post("/api/open", { page, ...how });
        Object.assign(s, { id, frames: 0, open: true, lost, asked: new Set(), last: Promise.resolve() });
        s.follow(see);
        addEventListener("pagehide", s.leave = () => s.end());
        return s;
    }
    async follow(see) {
        for (let tries = 0; this.open && tries < 20; tries++) {
            try {
                const answer = await this.ask(call("/api/stream/" + this.id));
                if (answer.status === 404) break;
                if (answer.ok) {
                    say_link("connected");
                    await read(answer.body, (kind, bytes) => {
                        this.frames++;
                        tries = 0;
                        if (this.open) see(kind, bytes);
                    });
                }
            } catch { say_link("the studio does not answer"); }
            if (this.open) await new Promise(r => setTimeout(r, 250));
        }
        if (this.open) {
            this.open = false;
            say_link("closed");
            this.lost?.();
        }
    }
    // A question in progress is answered before the session ends; none is asked after that.
    async ask(question) {
        this.asked.add(question);
        try { return await question; }
        finally { this.asked.delete(question); }
    }
    // Commands are sent one after the other: a browser uses several connections, on which
    // the second of two clicks may arrive first.
    async after(change) {
        const before = this.last, mine = this.ask(before.then(change));
        this.last = mine.catch(() => {});
        return mine;
    }
    async do(what, more) {
        if (!this.open) return null;
        try { return await this.after(() => post("/api/do/" + this.id, { do: what, ...more })); }
        catch (e) { complain(e.message); return null; }
    }
    async file(name) {
        const answer = await this.ask(call(`/api/file/${this.id}/${name}`));
        if (!answer.ok) throw new Error((await answer.json()).error.message);
        return answer.blob();
    }
    // Sends raw bytes to the engine: a user's file, or a piece of a stream.
    async put(name, bytes) {
        if (!this.open) return;
        try {
            const answer = await this.after(() => call(`/api/put/${this.id}/${name}`, { method: "POST", body: bytes }));
            if (!answer.ok) complain((await answer.json()).error?.message || "the studio refused the request");
        } catch (e) { complain(e.message); }
    }
    async close() {
        if (!this.open) return;
        this.open = false;
        removeEventListener("pagehide", this.leave);
        await Promise.allSettled([...this.asked]);
        this.end();
    }
    end() {
        this.open = false;
        post("/api/close/" + this.id, {}).catch(() => {});
    }
}

// A file of a question, by its name.
export const make = async (question, what, file) => {
    const answer = await call("/api/make/" + question, { method: "POST", body: JSON.stringify({ ...what, file }), headers: { "Content-Type": "application/json" } });
    if (!answer.ok) throw new Error((await answer.json()).error.message);
    return answer.blob();
};

// from: an open page, or another source of files.
export const save = async (from, name) => {
    try {
        const a = document.createElement("a");
        a.href = URL.createObjectURL(await from.file(name));
        a.download = name;
        a.click();
        setTimeout(() => URL.revokeObjectURL(a.href), 5000);
    } catch (e) { complain(e.message); }
};

// Files of an open page, with a button for each.
export const take_along = (from, names) => fold("Export", names.map(n => button(n, () => save(from, n), { "data-file": n })));

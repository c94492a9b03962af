/* What a report can do beyond being read: fold, sort and search the modules; open parts of the graph; tell what the pointer is
 * at. */
(() => {
    "use strict";
    const one = (s, from = document) => from.querySelector(s), all = (s, from = document) => [...from.querySelectorAll(s)];
    document.documentElement.classList.add("scripted");

    /* ---- modules: rows with their children ---- */
    const table = one(".tree"), body = table.tBodies[0];
    const rows = all("tr", body).map(tr => ({ tr, depth: +tr.dataset.d, children: [], open: true, shown: true }));
    const top = { depth: -1, children: [], open: true };
    const path = [top];
    for (const r of rows) {
        path.length = r.depth + 1;
        r.parent = path[r.depth];
        r.parent.children.push(r);
        path.push(r);
        r.place = r.parent.children.length;
        r.label = one("th span", r.tr);
        r.text = r.label.textContent;
        r.path = r.parent === top ? r.text : r.parent.path + "." + r.text;
        r.hay = (r.path + " " + r.tr.dataset.key + " " + r.tr.cells[1].textContent).toLowerCase();
        if (rows.length > 40 && r.depth > 0) r.open = false;
    }
    for (const r of rows) {
        if (!r.children.length) continue;
        r.twist = document.createElement("button");
        r.twist.type = "button";
        r.twist.className = "twist";
        r.twist.setAttribute("aria-label", "inside of " + r.path);
        r.twist.addEventListener("click", () => { r.open = !r.open; show(); });
        r.label.before(r.twist);
    }
    let sorted = -1, rising = false, words = "";
    const flat = one("#flat");

    const value = r => {
        const cell = r.tr.cells[sorted];
        return cell.dataset.v !== undefined ? +cell.dataset.v : cell.textContent.trim();
    };
    const before = (a, b) => {
        if (sorted < 0) return a.place - b.place;
        const x = value(a), y = value(b), order = typeof x === "number" ? x - y : x.localeCompare(y);
        return (rising ? order : -order) || a.place - b.place;
    };
    const mark = r => {
        const text = flat.checked ? r.path : r.text, at = words ? text.toLowerCase().indexOf(words) : -1;
        r.label.textContent = text;
        if (at < 0) return;
        const hit = document.createElement("mark");
        hit.textContent = text.slice(at, at + words.length);
        r.label.replaceChildren(text.slice(0, at), hit, text.slice(at + words.length));
    };
    const found = r => {                    /* it, or something inside */
        r.hit = !words || r.hay.includes(words);
        r.inside = false;
        for (const c of r.children) if (found(c)) r.inside = true;
        return r.hit || r.inside;
    };
    function show() {
        const order = [];
        for (const r of top.children) found(r);
        if (flat.checked) {
            order.push(...rows.filter(r => !r.children.length && r.hit));
            if (sorted >= 0) order.sort(before);
        } else {
            const walk = (r, visible) => {
                for (const c of sorted < 0 ? r.children : [...r.children].sort(before)) {
                    if (!visible || !(c.hit || c.inside || r.hit && words)) continue;
                    order.push(c);
                    walk(c, words ? c.inside : c.open);
                }
            };
            walk(top, true);
        }
        const seen = new Set(order);
        for (const r of rows) r.tr.hidden = !seen.has(r);
        for (const r of order) {
            r.tr.classList.toggle("flat", flat.checked);
            if (r.twist) r.twist.setAttribute("aria-expanded", words ? r.inside : r.open);
            if (r.twist) r.twist.hidden = flat.checked;
            mark(r);
        }
        body.append(...order.map(r => r.tr));
    }
    all("thead th", table).forEach((th, k) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...th.childNodes);
        th.append(button);
        button.addEventListener("click", () => {
            const first = k < 3;            /* names rise first, numbers fall first; a third click gives the model's order back */
            if (sorted !== k) sorted = k, rising = first;
            else if (rising === first) rising = !first;
            else sorted = -1;
            all("thead th", table).forEach(h => h.removeAttribute("aria-sort"));
            if (sorted >= 0) th.setAttribute("aria-sort", rising ? "ascending" : "descending");
            show();
        });
    });
    one("#unfold").addEventListener("click", () => { for (const r of rows) r.open = true; show(); });
    one("#fold").addEventListener("click", () => { for (const r of rows) r.open = false; show(); });
    flat.addEventListener("change", show);

    /* ---- search: rows, boxes and dots ---- */
    const search = one("#search"), count = one("#found"), boxes = all(".box[data-key], .dot[data-key]");
    search.addEventListener("input", () => {
        words = search.value.trim().toLowerCase();
        show();
        const keys = new Set();
        for (const r of rows)
            if (words && r.hit) for (let p = r; p !== top; p = p.parent) keys.add(p.path).add(p.tr.dataset.key);
        for (const b of boxes)
            b.classList.toggle("faint", words !== "" && !b.dataset.key.toLowerCase().includes(words) && !keys.has(b.dataset.key));
        const n = rows.filter(r => words && r.hit && !r.children.length).length;
        count.textContent = words ? n + (n === 1 ? " layer" : " layers") : "";
    });
    document.addEventListener("keydown", e => {
        if (e.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) {
            e.preventDefault();
            search.focus();
        } else if (e.key === "Escape" && document.activeElement === search) {
            search.value = "";
            search.dispatchEvent(new Event("input"));
        }
    });
    show();

    /* ---- parts of the graph: a link opens what it leads to ---- */
    const reveal = () => {
        const at = /^#part-\d+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
        for (let d = at; d; d = d.parentElement.closest("details")) d.open = true;
        if (at) at.scrollIntoView({ block: "start" });
    };
    window.addEventListener("hashchange", reveal);
    for (const a of all("a.box")) a.addEventListener("click", () => setTimeout(reveal));
    reveal();

    /* ---- what the pointer is at: titles, shown at once ---- */
    const tip = one("#tip"), texts = new WeakMap();
    const tell = (text, x, y) => {
        tip.textContent = text;
        tip.hidden = false;
        const w = tip.offsetWidth, h = tip.offsetHeight;
        tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 8)) + "px";
        tip.style.top = (y + 18 + h > innerHeight ? Math.max(4, y - h - 12) : y + 18) + "px";
    };
    const titled = e => {
        const at = e.target instanceof Element && e.target.closest("svg .box, svg .dot, svg .pill");
        if (!at) return null;
        const title = one("title", at);
        if (title) {                        /* or the browser would show it a second time */
            texts.set(at, title.textContent);
            at.setAttribute("aria-label", title.textContent);
            title.remove();
        }
        return texts.get(at);
    };
    document.addEventListener("pointermove", e => {
        const text = titled(e);
        if (text) tell(text, e.clientX, e.clientY);
        else if (!(e.target instanceof Element && e.target.closest("#timeline"))) tip.hidden = true;
    });
    document.addEventListener("focusin", e => {
        const text = titled(e);
        if (!text) return;
        const r = e.target.getBoundingClientRect();
        tell(text, r.left, r.bottom - 10);
    });
    document.addEventListener("focusout", () => { tip.hidden = true; });

    /* ---- a click tells all of a layer, and leads to what it reads and to who reads it ---- */
    const store = one("#data"), layers = store ? JSON.parse(store.textContent).layers : [];
    const facts = one("#facts"), index = new Map(layers.map((l, i) => [l[3] ?? l[0], i])), readers = layers.map(() => []);
    layers.forEach((l, i) => { for (const k of l[2]) if (k >= 0) readers[k].push(i); });
    const drawn = new Map(boxes.filter(b => b.matches("g.box")).map(b => [b.dataset.key, b]));
    const put = (tag, text, to) => {
        const e = document.createElement(tag);
        e.textContent = text;
        return to.appendChild(e);
    };
    const links = (title, list) => {
        if (!list.length) return;
        put("p", title, facts);
        const ul = put("ul", "", facts);
        for (const k of list.slice(0, 50)) {
            const li = put("li", k < 0 ? "an input of the model" : "", ul);
            if (k < 0) continue;
            const button = put("button", layers[k][0], li);
            button.type = "button";
            button.addEventListener("click", () => describe(k, true));
        }
        if (list.length > 50) put("li", "and " + (list.length - 50) + " more", ul);
    };
    const describe = (i, go) => {
        const box = drawn.get(layers[i][3] ?? layers[i][0]), title = box && one("title", box);
        const text = title ? title.textContent : texts.get(box) ?? layers[i][0];
        facts.replaceChildren();
        const close = put("button", "\u00d7", facts);
        close.type = "button";
        close.className = "close";
        close.setAttribute("aria-label", "close");
        close.addEventListener("click", hide);
        put("p", text.split("\n")[0], facts);
        put("p", text.split("\n").slice(1).join("\n"), facts);
        links("reads", layers[i][2]);
        links("is read by", readers[i]);
        facts.hidden = false;
        for (const b of drawn.values()) b.classList.toggle("at", b === box);
        if (!go || !box) return;
        for (let d = box.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
        box.scrollIntoView({ block: "center", inline: "center" });
    };
    const hide = () => {
        facts.hidden = true;
        for (const b of drawn.values()) b.classList.remove("at");
    };
    document.addEventListener("click", e => {
        const at = e.target instanceof Element && e.target.closest("g.box, .dot, .tree .leaf th");
        const of = at && at.closest("[data-key]");
        if (of && index.has(of.dataset.key)) describe(index.get(of.dataset.key), !of.matches("g.box"));
    });
    document.addEventListener("keydown", e => { if (e.key === "Escape") hide(); });

    /* ---- memory: what is alive in the layer at the pointer, or by arrow keys ---- */
    const timeline = one("#timeline");
    if (!timeline) return;
    const data = JSON.parse(store.textContent), n = data.layers.length, cursor = one("#cursor");
    const left = +timeline.dataset.left, right = +timeline.dataset.right, width = timeline.viewBox.baseVal.width;
    const units = [[1e9, " GB"], [1e6, " MB"], [1e3, " kB"]];
    const bytes = x => {
        const unit = units.find(u => x >= u[0]);
        return unit ? (x / unit[0]).toPrecision(3) + unit[1] : x + " B";
    };
    all("title", timeline).forEach(t => t.remove());
    let layer = 0;
    const look = (i, x, y) => {
        layer = Math.max(0, Math.min(n - 1, i));
        const at = left + (right - left) * (layer + .5) / n;
        const alive = data.lives.filter(l => l[0] <= layer && l[1] >= layer).sort((a, b) => b[2] - a[2]);
        const list = alive.slice(0, 10).map(l => bytes(l[2]).padStart(8) + "  " + (l[0] < 0 ? l[3] : data.layers[l[0]][0]));
        if (alive.length > 10) list.push("and " + (alive.length - 10) + " more");
        cursor.setAttribute("x1", at);
        cursor.setAttribute("x2", at);
        cursor.setAttribute("visibility", "visible");
        const box = timeline.getBoundingClientRect();
        tell("layer " + layer + ", " + data.layers[layer][0] + ": " + bytes(data.layers[layer][1]) + "\n" + list.join("\n"),
             x ?? box.left + at * box.width / width, y ?? box.top + box.height / 2);
    };
    timeline.addEventListener("pointermove", e => {
        const box = timeline.getBoundingClientRect(), x = (e.clientX - box.left) * width / box.width;
        if (x >= left && x <= right) look(Math.floor((x - left) / (right - left) * n), e.clientX, e.clientY);
    });
    const away = () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); };
    timeline.addEventListener("pointerleave", away);
    timeline.addEventListener("blur", away);
    timeline.setAttribute("tabindex", "0");
    timeline.addEventListener("focus", () => look(layer));
    timeline.addEventListener("keydown", e => {
        const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -n, End: n }[e.key];
        if (!step) return;
        e.preventDefault();
        look(layer + step);
    });
})();

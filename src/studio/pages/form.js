// Parts of pages: elements and labelled controls.
let count = 0;

export const el = (tag, props = {}, ...children) => {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
        if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
        else if (name in e && name !== "list") e[name] = value;
        else e.setAttribute(name, value);
    }
    e.append(...children.flat().filter(c => c !== null && c !== undefined));
    return e;
};
export const card = (title, ...children) => el("section", { className: "card" }, title ? el("h2", {}, title) : null, ...children);
export const fold = (title, ...children) =>
    el("details", { className: "card" }, el("summary", {}, title), ...children);
export const button = (text, run, props = {}) => el("button", { type: "button", onclick: run, ...props }, text);

const field = (label, control, output) => {
    control.id ||= "f" + ++count;
    return el("div", { className: "field" }, el("label", { htmlFor: control.id }, label), output || el("span"), control);
};

export const choose = (label, options, value, change, props = {}) => {
    const s = el("select", { ...props, onchange: () => change(s.value) },
        options.map(o => Array.isArray(o) ? o : [o, o]).map(([v, name]) => el("option", { value: v }, name)));
    s.value = value;
    const f = field(label, s);
    f.set = v => { if (document.activeElement !== s) s.value = v; };
    f.input = s;
    return f;
};

// values: a list of values, or { min, max, step }.
export const slide = (label, values, value, change, props = {}) => {
    const list = Array.isArray(values) ? values : null;
    const at = v => list ? Math.max(0, list.findIndex(x => x >= v - 1e-12)) : v;
    const out = el("output");
    const r = el("input", { type: "range", min: list ? 0 : values.min, max: list ? list.length - 1 : values.max,
        step: list ? 1 : values.step, ...props });
    const now = () => list ? list[+r.value] : +r.value;
    const tell = () => { out.textContent = now(); r.setAttribute("aria-valuetext", String(now())); };
    r.value = at(value);
    r.addEventListener("input", () => { tell(); if (props.live) change(now()); });
    r.addEventListener("change", () => { tell(); if (!props.live) change(now()); });
    tell();
    const f = field(label, r, out);
    f.set = v => {
        if (document.activeElement === r) return;
        r.value = at(v);
        tell();
    };
    f.input = r;
    return f;
};

export const type_in = (label, value, change, props = {}) => {
    const i = el(props.rows ? "textarea" : "input", { ...(props.rows ? {} : { type: "text" }), value, spellcheck: false, ...props,
        onchange: () => change(i.value) });
    const f = field(label, i);
    f.set = v => { if (document.activeElement !== i) i.value = v; };
    f.input = i;
    return f;
};

export const check = (label, value, change) => {
    const c = el("input", { type: "checkbox", checked: value, onchange: () => change(c.checked) });
    const f = el("label", { className: "check" }, c, label);
    f.set = v => { c.checked = v; };
    f.input = c;
    return f;
};

// Large numbers with names.
export const facts = names => {
    const dd = names.map(() => el("dd", {}, "–"));
    const dl = el("dl", { className: "big" }, names.map((n, i) => el("div", {}, el("dt", {}, n), dd[i])));
    dl.set = values => values.forEach((v, i) => { if (dd[i].textContent !== v) dd[i].textContent = v; });
    return dl;
};

export const number = (x, digits = 4) => typeof x === "string" ? x : Number.isFinite(x) ? String(+x.toPrecision(digits)) : "–";
export const percent = x => typeof x === "number" ? (100 * x).toFixed(1) + " %" : "–";
export const time = s => !Number.isFinite(s) ? "–" : s < 1 ? Math.round(1000 * s) + " ms" : s < 100 ? s.toFixed(1) + " s"
    : Math.floor(s / 60) + ":" + String(Math.round(s % 60)).padStart(2, "0") + " min";

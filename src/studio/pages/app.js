// Which page is shown.  Each module has a title and open(main), which gives a function that closes it.
import { place, write_place, complain, say_link } from "/page/link.js";
import { el } from "/page/form.js";

const pages = [["points", "Points"], ["graph", "Graph"], ["images", "Images"], ["text", "Text"], ["sound", "Sound"], ["runs", "Runs"], ["notebook", "Notebook"], ["sandbox", "Sandboxes"]];
const main = document.querySelector("#main"), nav = document.querySelector("#nav");
let close = null, turn = 0;

const show = async name => {
    const mine = ++turn;
    close?.();
    close = null;
    main.replaceChildren();
    say_link("");
    for (const a of nav.children) a.dataset.page === name ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
    document.title = pages.find(p => p[0] === name)[1] + " · facula studio";
    try {
        const page = await import(`/page/${name}.js`);
        const end = await page.open(main);
        if (mine === turn) close = end;
        else end?.();
    } catch (e) {
        complain(e.status === 401 ? "This address has no key: open the one that `facula studio` printed." : e.message);
        say_link("not connected");
    }
};

const go = name => {
    if (place.get("page") === name && close) return;
    const before = place.get("page");
    if (before && before !== name) for (const k of [...place.keys()]) place.delete(k);
    place.set("page", name);
    write_place();
    show(name);
};

for (const [name, title] of pages)
    nav.append(el("a", { href: "#page=" + name, onclick: e => { e.preventDefault(); go(name); main.focus(); } }, title));
[...nav.children].forEach((a, i) => { a.dataset.page = pages[i][0]; });
go(pages.some(p => p[0] === place.get("page")) ? place.get("page") : pages[0][0]);

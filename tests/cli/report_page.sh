#!/bin/sh
# The page of `facula report` in a browser: folding, sorting, search, what the pointer and a click tell, the way from layer to
# layer.
# usage: report_page.sh FACULA.  Skipped (77) where there is no chromium.
. "$(dirname "$0")/expect.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$browser" ] || { echo "no chromium: skipped"; exit 77; }
"$facula" report zoo:resnet18 -o page.html >out 2>err || { cat err; exit 1; }

# The policy of the page lets no other script run, so the copy that is driven here goes without it.
cat >drive.js <<'END'
addEventListener("load", () => {
    const one = s => document.querySelector(s), all = s => [...document.querySelectorAll(s)], said = [];
    const seen = () => all(".tree tbody tr").filter(r => !r.hidden);
    const say = (what, x) => said.push(what + "=" + x);
    const type = text => { one("#search").value = text; one("#search").dispatchEvent(new Event("input")); };
    const at = (e, kind) => e.dispatchEvent(new PointerEvent(kind, { bubbles: true, clientX: 50, clientY: 50 }));
    try {
        say("rows", seen().length);
        one("#unfold").click();
        say("unfolded", seen().length);
        one("#fold").click();
        say("folded", seen().length);
        seen().map(r => r.querySelector(".twist")).find(t => t).click();
        say("opened", seen().length);
        type("downsample");
        say("found", one("#found").textContent);
        say("marks", all(".tree mark").length > 0);
        say("faint", all(".box.faint").length > 0);
        document.activeElement.blur();
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
        say("focus", document.activeElement.id);
        type("");
        one("#flat").click();
        say("flat", seen().length);
        const head = all(".tree thead button")[4];
        head.click();
        const macs = seen().map(r => +r.cells[4].dataset.v);
        say("falling", macs.every((x, i) => !i || macs[i - 1] >= x));
        say("most", seen()[0].dataset.key);
        head.click();
        say("rising", seen().map(r => +r.cells[4].dataset.v).every((x, i, a) => !i || a[i - 1] <= x));
        head.click();
        say("order", seen()[0].dataset.key);
        const box = all("g.box").find(b => b.dataset.key.startsWith("layer1.0.conv1"));
        at(box, "pointermove");
        say("tip", !one("#tip").hidden && one("#tip").textContent.split("\n")[0]);
        at(document.body, "pointermove");
        say("gone", one("#tip").hidden);
        box.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        say("facts", !one("#facts").hidden && one("#facts p").textContent);
        say("input", /input f32 1x64x56x56/.test(one("#facts").textContent));
        const next = all("#facts li button").pop();
        say("next", next.textContent);
        next.click();
        say("there", one("#facts p").textContent);
        say("shown", one(".box.at").closest("details")?.open);
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
        say("closed", one("#facts").hidden);
        one("#timeline").focus();
        say("alive", /layer 0/.test(one("#tip").textContent));
        one("#timeline").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        say("right", /layer 1,/.test(one("#tip").textContent));
        say("wide", document.documentElement.scrollWidth <= innerWidth);
    } catch (e) { said.push("error=" + e); }
    const to = document.createElement("pre");
    to.id = "said";
    to.textContent = said.join("\n") + "\n";
    document.body.append(to);
});
END
sed -e '/Content-Security-Policy/s/<meta http-equiv[^>]*>//' -e '/^<\/body>/,$d' page.html >driven.html
{ echo '<script>'; cat drive.js; echo '</script></body></html>'; } >>driven.html

drive() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$dir/profile" --window-size="$1" \
        --virtual-time-budget=4000 --dump-dom "file://$dir/driven.html" 2>/dev/null |
        sed -n '/<pre id="said">/,/<\/pre>/p' | sed 's/.*<pre id="said">//' >said
}
drive 1300,1000
holds said 'found=6 layers' 'marks=true' 'faint=true' 'focus=search' 'flat=60' 'falling=true' 'rising=true' \
    'gone=true' 'tip=layer1.0.conv1' 'facts=layer1.0.conv1' 'input=true' 'next=layer1.0.bn1' 'there=layer1.0.bn1' 'shown=true' \
    'closed=true' 'alive=true' 'right=true' 'wide=true'
value() { sed -n "s/^$1=//p" said; }
check [ "$(value unfolded)" -gt "$(value folded)" ]
check [ "$(value opened)" -gt "$(value folded)" ]
drive 380,800
holds said 'wide=true' 'next=layer1.0.bn1'
finish

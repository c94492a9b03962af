"""The pages in a browser: each is opened and each control moved; nothing may complain, nobody else is asked, and what is
drawn is looked at as pixels.  usage: pages.py FACULA [PICTURE.png].  Skipped (77) where there is no chromium."""
import json
import os
import subprocess
import sys
import tempfile
import time

import sentences
from browser import Browser
from studio import SLOW, Studio

facula = os.path.abspath(sys.argv[1])
MNIST = os.path.join(os.environ.get("FACULA_DATA", "/nowhere"), "mnist")
IMAGES = os.path.exists(MNIST) or os.path.exists("/usr/share/datasets/fashion-mnist")


def near(a, b, most=40):
    return sum(abs(x - y) for x, y in zip(a[:3], b[:3])) < most


def move_all(b):
    """Each control that is seen changes once; how many there were."""
    return b.js("""(async () => {
        const nap = ms => new Promise(r => setTimeout(r, ms)), main = document.querySelector("#main");
        for (const d of main.querySelectorAll("details")) d.open = true;
        await nap(300);
        const all = [...main.querySelectorAll("select, input, textarea")].filter(e => e.offsetParent && e.isConnected);
        let n = 0;
        for (const e of all.slice(0, 80)) {
            if (!e.isConnected) continue;
            if (!e.labels?.length && !e.getAttribute("aria-label")) throw new Error("no label: " + e.outerHTML);
            if (e.type === "checkbox") e.click();
            else if (e.type === "range") { const now = e.value; e.value = +e.value < +e.max ? +e.value + +e.step : e.min;
                if (now !== e.value) for (const k of ["input", "change"]) e.dispatchEvent(new Event(k, { bubbles: true })); }
            else if (e.tagName === "SELECT") { const o = [...e.options].filter(o => !/opencl/.test(o.value));
                e.value = o[(o.findIndex(x => x.value === e.value) + 1) % o.length].value; e.dispatchEvent(new Event("change")); }
            else e.dispatchEvent(new Event("change"));
            n++;
            await nap(25);
        }
        return n;
    })()""")


def quiet(b, studio):
    assert not b.complaints, b.complaints
    assert not b.js("!document.querySelector('#toast').hidden && document.querySelector('#toast').textContent"), \
        b.js("document.querySelector('#toast').textContent")
    assert b.js("document.documentElement.scrollWidth <= innerWidth + 1"), "wider than the window"
    unnamed = b.js("[...document.querySelectorAll('button, a')].filter(e => !e.textContent.trim() && !e.getAttribute('aria-label')"
                   " && !e.title).length")
    assert unnamed == 0, f"{unnamed} buttons without a name"


def first_paint(b, studio):
    start = time.monotonic()
    b.open(studio.address)
    b.wait("document.querySelector('#play')")
    paint = b.js("performance.getEntriesByName('first-contentful-paint')[0]?.startTime || 0")
    size = b.js("performance.getEntriesByType('resource').filter(r => r.name.includes('/page/')).reduce((n, r) => n + r.encodedBodySize, 0)")
    modules = b.js("performance.getEntriesByType('resource').filter(r => r.name.endsWith('.js')).length")
    print(f"first paint {paint:.0f} ms, all of it {1000 * (time.monotonic() - start):.0f} ms; {size} bytes, {modules} modules")
    assert 0 < paint < 300 * SLOW and size < 150000 and modules < 15
    assert not b.js("location.href.includes('key=')"), "the key stays in the address"


def points(b, studio):
    change = "(s, v) => { const e = document.querySelector(s); e.value = v; e.dispatchEvent(new Event('input')); " \
             "e.dispatchEvent(new Event('change')); }"
    b.js("document.querySelector('[data-set=xor]').click()")
    b.js(f"({change})('#speed', 100)")
    b.js("document.querySelector('#play').click()")
    b.wait("[...document.querySelectorAll('#main dd')].some(d => d.textContent === '100.0 %')", 6)
    b.js("document.querySelector('#play').click()")
    for _ in range(100):        # until the newest boundary is there
        one, two, three, four = b.pixels("#map", [(.97, .03), (.03, .03), (.03, .97), (.97, .97)])
        right = near(one, three) and near(two, four) and not near(one, two)
        if right and one[2] > one[0] and two[0] > two[2]:
            break               # class 0 is blue, class 1 orange
        time.sleep(.1)
    else:
        raise AssertionError(("xor's corners", one, two, three, four))
    b.wait(drawn("#net", 100))
    b.js("document.querySelector('#keep').click()")
    b.js(f"({change})('#optimizer', 'rmsprop')")
    b.wait("document.querySelectorAll('#compared tbody tr').length === 2")
    b.wait("/kept 1.*optimizer adam.*now.*optimizer rmsprop/.test(document.querySelector('#compared').textContent)")
    box = b.js("(() => { const r = document.querySelector('#map').getBoundingClientRect(); return [r.x, r.y, r.width] })()")
    for kind in ("mousePressed", "mouseReleased"):
        b.call("Input.dispatchMouseEvent", type=kind, x=box[0] + box[2] / 2, y=box[1] + box[2] / 2, button="left", clickCount=1)
    b.wait("document.querySelector('[data-set=own]').getAttribute('aria-pressed') === 'true'")
    b.js("document.querySelector('[data-set=spiral]').click()")
    b.wait("document.querySelector('[data-set=spiral]').getAttribute('aria-pressed') === 'true'")
    assert b.js("location.hash").find("set=spiral") > 0, "the address can be shared"
    moved = move_all(b)
    assert moved > 14, moved
    b.js("document.querySelector('[data-set=circle]').click()")
    late(b, "tanh")             # a change that would arrive after the one made after it
    b.js(f"({change})('#activation', 'tanh')")
    b.js("document.querySelector('#more').click()")
    b.wait("window.late")
    time.sleep(.5)
    b.wait("document.querySelectorAll('#editor .layer').length === 3")
    b.js("for (let k = 0; k < 9; k++) document.querySelector('#more').click()")     # more layers than there may be
    b.wait("document.querySelectorAll('#editor .layer').length === 8 && !document.querySelector('#more')")
    assert not b.js("document.querySelector('#toast').textContent.includes('layer')"), "a click asks for what is refused"
    b.js("[...document.querySelectorAll('#editor .layer button')].slice(3).reverse().forEach(x => x.click())")
    b.wait("document.querySelectorAll('#editor .layer').length === 3")
    b.js("document.querySelector('#export').open = false")
    time.sleep(.1)
    b.js("document.querySelector('#export').open = true")
    b.wait("document.querySelector('#command').textContent.includes('mlp:16,16,16,tanh')")
    b.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert b.js("document.activeElement !== document.body"), "the keyboard gets nowhere"


def late(b, word):
    """The next request that has this word leaves the browser half a second later; then window.late is true."""
    b.js(f"""(() => {{ const fetch = window.fetch; window.late = false; window.fetch = async (path, how) => {{
        if (!how?.body?.includes?.({word!r})) return fetch(path, how);
        window.fetch = fetch;
        await new Promise(r => setTimeout(r, 500));
        try {{ return await fetch(path, how); }} finally {{ window.late = true; }} }} }})()""")


def drawn(selector, colours):
    """An expression: a canvas is drawn in more colours than this."""
    return f"""(() => {{ const c = document.querySelector({selector!r}); if (!c?.width || !c.height) return false;
        return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size > {colours} }})()"""


def runs(b, studio):
    b.wait("document.querySelectorAll('#runs tbody tr').length === 2")
    b.wait("[...document.querySelectorAll('#runs tbody tr')].some(r => r.textContent.includes('done'))")
    time.sleep(.5)
    b.wait(drawn("#chart0", 30))
    b.wait(drawn("#chart1", 30))
    assert b.js("document.querySelectorAll('#runs img').length") == 0, "names are text"
    assert "<img" in b.js("document.querySelector('#runs').textContent"), "of a foreign run.json"
    assert move_all(b) >= 6
    b.js("[...document.querySelectorAll('#runs input')].forEach(e => { if (!e.checked) e.click() })")


def take(b, file):
    """A click on a file of "Export" gives one."""
    b.js("window.made ||= URL.createObjectURL; window.taken = 0; URL.createObjectURL = blob => { window.taken = blob.size; return window.made.call(URL, blob); }")
    b.js(f"document.querySelector('[data-file=\"{file}\"]').click()")
    b.wait("window.taken > 100")


def surfaces(b):
    """A function of two numbers as a surface, which turns."""
    set_to = "((s, v) => { const e = document.querySelector(s); e.value = v; e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); })"
    seen = "document.querySelector('#map-f').toDataURL()"
    b.js(f"{set_to}('#two', 'mul')")
    b.js(f"{set_to}('#as', '')")
    time.sleep(.5)
    flat = b.js(seen)
    b.js(f"{set_to}('#as', 'solid'); {set_to}('#turn', 30)")
    b.wait(f"{seen} !== {json.dumps(flat)}")
    time.sleep(.3)
    corners = b.pixels("#map-f", [(.02, .02), (.98, .02)])
    assert near(*corners), ("a map fills its corners, a surface does not", corners)
    b.wait(drawn("#map-f", 40))
    first = b.js(seen)
    b.js(f"{set_to}('#turn', 120)")
    b.wait(f"{seen} !== {json.dumps(first)}")
    b.js(f"{set_to}('#as', '')")


def sandbox(b, studio):
    tab = "(name => document.querySelector(`[data-tab=${name}]`).click())"
    said = "document.querySelector('#main').textContent"
    b.wait("document.querySelector('#curve')")
    time.sleep(.3)
    b.wait(drawn("#curve", 10))
    take(b, "model.onnx")
    assert move_all(b) >= 6
    b.wait(drawn("#map-f", 20))     # of two numbers
    surfaces(b)
    b.js(f"{tab}('gradients')")
    b.wait(f"{said}.includes('All gradients are computed')")
    assert b.js("[...document.querySelectorAll('tbody tr')].some(r => /^x.*22$/.test(r.textContent))"), "d/dx of (x*x)*y + 10*x at 2, 3"
    b.js("document.querySelector('#forward').click(); document.querySelector('#backward').click()")
    b.wait(f"{said}.includes('Backwards through add')")
    b.wait(drawn("#graph", 10))
    assert move_all(b) >= 7
    take(b, "net.c")
    b.js(f"{tab}('tensors')")
    b.wait("document.querySelectorAll('#strip span').length === 24")
    b.js("(() => { const e = document.querySelector('#order'); e.value = '2,0,1'; e.dispatchEvent(new Event('change')) })()")
    b.wait("document.querySelector('#facts').textContent.includes('shape [4,2,3], strides [1,12,4]')")
    b.js("document.querySelector('#cells button[data-i=\"5\"]').click()")
    assert "= 20;" in b.js("document.querySelector('#told').textContent"), b.js("document.querySelector('#told').textContent")
    assert move_all(b) >= 7
    b.js(f"{tab}('broadcasting')")
    b.wait("document.querySelectorAll('#stretched .cells span').length === 24")
    assert move_all(b) >= 2
    b.js(f"{tab}('modules')")
    b.wait("document.querySelectorAll('#params tbody tr').length === 6")
    assert "fc2" in b.js("document.querySelector('#tree').textContent")
    take(b, "model.safetensors")
    assert move_all(b) >= 4


def draw_seven(b):
    b.js("document.querySelector('#pad').scrollIntoView({ block: 'center' })")
    time.sleep(.2)
    x, y, w = b.js("(() => { const r = document.querySelector('#pad').getBoundingClientRect(); return [r.x, r.y, r.width] })()")
    corners = [(.25, .25), (.75, .25), (.45, .8)]
    at = [(x + w * (u + (m - u) * k / 8), y + w * (v + (n - v) * k / 8)) for (u, v), (m, n) in zip(corners, corners[1:]) for k in range(9)]
    b.call("Input.dispatchMouseEvent", type="mousePressed", x=at[0][0], y=at[0][1], button="left", clickCount=1)
    for px, py in at:
        b.call("Input.dispatchMouseEvent", type="mouseMoved", x=px, y=py, button="left", buttons=1)
    b.call("Input.dispatchMouseEvent", type="mouseReleased", x=at[-1][0], y=at[-1][1], button="left", clickCount=1)
    b.wait("document.querySelector('#said').textContent.includes('(your drawing)')")
    b.wait(drawn("#pad", 3))


def images(b, studio):
    b.wait("document.querySelectorAll('#maps canvas').length === 22")
    b.js("document.querySelector('#clear').click()")
    draw_seven(b)                   # without any data
    b.wait("document.querySelector('#said').dataset.best === '7'")
    if not IMAGES:
        print("images: only drawn, no dataset-fashion-mnist and no FACULA_DATA")
        return
    b.js("document.querySelector('#play').click()")
    b.wait("[...document.querySelectorAll('#main dd')].some(d => /^[6-9][0-9]\\.[0-9] %$/.test(d.textContent))", 6)
    b.wait("document.querySelectorAll('#wrong canvas').length > 0")
    b.js("document.querySelector('#play').click()")
    b.wait(drawn("#image", 30))
    b.wait(drawn("#loss", 10))
    b.wait(drawn("#maps canvas", 5))
    draw_seven(b)
    assert move_all(b) >= 8
    b.js("document.querySelector('#clear').click()")


def text(b, studio):
    b.wait("document.querySelector('#words')?.children.length === 12")
    for control, value in (("#lr", 6), ("#epochs", 20)):        # 0.01: few sentences take large steps
        b.js("((s, v) => { const e = document.querySelector(s); e.value = v; e.dispatchEvent(new Event('change')) })" + f"('{control}', {value})")
    b.wait("document.querySelector('#main').textContent.includes('/ 20')")
    b.js("document.querySelector('#play').click()")
    b.wait("[...document.querySelectorAll('#main dd')].slice(3).some(d => /^(9[0-9]|100)\\.[0-9] %$/.test(d.textContent))", 12)
    b.wait("document.querySelector('#play').textContent === 'Play'", 12)
    b.wait("document.querySelectorAll('#rows tbody tr').length === 40")
    b.wait(drawn("#loss", 10))
    b.js("(() => { const e = document.querySelector('#sentence'); e.value = 'the plot is brilliant <b>not</b>'; e.dispatchEvent(new Event('input')) })()")
    b.wait("[...document.querySelectorAll('#words .word')].some(w => /^brilliant\\+/.test(w.textContent) && w.dataset.side === 'good')")
    assert b.js("document.querySelector('#said').textContent").startswith("good"), b.js("document.querySelector('#said').textContent")
    assert b.js("document.querySelectorAll('#main b').length") == 0, "sentences are text"
    b.js("[...document.querySelectorAll('#words .word')].find(w => /^brilliant/.test(w.textContent)).click()")
    b.wait("document.querySelectorAll('#near li').length === 12")
    b.js("document.querySelector('#rows tbody button').click()")
    b.wait("document.querySelector('#sentence').value === document.querySelector('#rows tbody button').textContent")
    assert move_all(b) >= 11


def sound(b, studio):
    """A file as its input would give it, then Chromium's own microphone, which beeps."""
    b.wait("document.querySelector('#deaf')?.textContent.includes('facula studio model.onnx')")
    b.js("""(() => {
        const n = 8000, d = new DataView(new ArrayBuffer(44 + 2 * n)), put = (at, s) => [...s].forEach((c, i) => d.setUint8(at + i, c.charCodeAt(0)));
        put(0, "RIFF"); d.setUint32(4, 36 + 2 * n, true); put(8, "WAVEfmt "); d.setUint32(16, 16, true); d.setUint16(20, 1, true); d.setUint16(22, 1, true);
        d.setUint32(24, 8000, true); d.setUint32(28, 16000, true); d.setUint16(32, 2, true); d.setUint16(34, 16, true); put(36, "data"); d.setUint32(40, 2 * n, true);
        for (let i = 0; i < n; i++) d.setInt16(44 + 2 * i, 16000 * Math.sin(i), true);
        const t = new DataTransfer(), e = document.querySelector("#file");
        t.items.add(new File([d.buffer], "sine.wav", { type: "audio/wav" }));
        e.files = t.files;
        e.dispatchEvent(new Event("change"));
    })()""")
    b.wait("document.querySelector('#main').textContent.includes('8000 Hz')")
    b.wait("document.querySelector('#play').textContent === 'Pause'")
    b.wait("document.querySelector('#play').textContent === 'Play'", 3)
    b.wait(drawn("#view", 20))
    assert move_all(b) >= 7
    b.js("document.querySelector('#mic').click()")
    b.wait("document.querySelector('#main dd').textContent === 'microphone'")
    b.wait("+[...document.querySelectorAll('#main dd')][4].textContent > 100", 6)
    b.wait(drawn("#view", 20))
    b.js("document.querySelector('#mic').click()")
    b.wait("document.querySelector('#mic').textContent === 'Microphone'")


def notebook(b, studio):
    b.wait("document.querySelector('#main').textContent.includes('facula.studio(net)')")
    assert move_all(b) >= 1


def graph(b, studio):
    b.wait("document.querySelector('#graph') && document.querySelector('#told').textContent.includes('conv1')")
    b.js("document.querySelector('#run').click()")
    b.wait("document.querySelector('#told').textContent.includes('deviation')")
    b.js("document.querySelector('#plan').click()")
    b.wait("document.querySelectorAll('#steps tr').length > 3")
    b.wait(drawn("#graph", 20))
    b.wait(drawn("#hist", 3))
    b.js("document.querySelector('#gradients').click()")
    b.wait("[...document.querySelectorAll('#main tbody td')].some(d => /grad/.test(d.textContent))")
    b.js("document.querySelector('#plan').click()")
    b.wait("document.querySelector('#planned').textContent.includes('become')")
    b.wait(drawn("#graph", 20))
    b.js("document.querySelector('#gradients').click()")
    b.wait("![...document.querySelectorAll('#main tbody td')].some(d => /grad/.test(d.textContent))")
    b.js("(() => { const e = document.querySelector('#model'); e.value = 'resnet18'; e.dispatchEvent(new Event('change')) })()")
    b.wait("document.querySelector('#main').textContent.includes('layer4.1.conv2')")
    x, y = b.js("(() => { const c = document.querySelector('#graph'); c.scrollIntoView(); const r = c.getBoundingClientRect();"
                " return [r.x + r.width / 2, r.y + 14 + 17 + 54] })()")
    for kind in ("mousePressed", "mouseReleased"):
        b.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    assert move_all(b) >= 2
    b.js("document.querySelectorAll('#main input[type=checkbox]').forEach(e => { if (e.checked) e.click() })")


PAGES = {"points": points, "graph": graph, "images": images, "text": text, "sound": sound, "runs": runs, "notebook": notebook, "sandbox": sandbox}


def make_runs():
    """A folder of two trainings, one with hostile names."""
    where = tempfile.mkdtemp()
    subprocess.run([facula, "train", "toy:circle", "--epochs", "40", "--quiet", "--out", os.path.join(where, "one")], check=True,
                   stdout=subprocess.DEVNULL)
    two = os.path.join(where, "<b>two")
    os.makedirs(two)
    with open(os.path.join(two, "run.json"), "w") as f:
        f.write('{"set": "<img src=x onerror=alert(1)>", "model": "\\u0007", "optimizer": "adam", "lr": 1}')
    for name in ("log.jsonl", "steps.jsonl"):
        with open(os.path.join(two, name), "w") as f:
            f.writelines(f'{{"epoch":{k},"step":{10 * k},"lr":0.1,"train_loss":{1 / k},"test_accuracy":{1 - 1 / k}}}\n' for k in range(1, 30))
    return where


def show(b, studio, name):
    b.js(f"document.querySelector('nav [data-page={name}]').click()")
    b.wait(f"document.querySelector('nav [data-page={name}]').getAttribute('aria-current') === 'page'")
    time.sleep(.5)


def small(studio):
    """360 pixels wide and dark."""
    with Browser(360, 740, dark=True) as b:
        b.open(studio.address)
        b.wait("document.querySelector('#main h1')")
        for name in PAGES:
            show(b, studio, name)
            quiet(b, studio)
        assert b.js("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 24)", "not dark"


def take_picture(studio, path):
    with Browser(1500, 1010) as b:
        b.open(studio.address.replace("#", "#page=points&set=spiral&net=16,16,tanh&lr=0.01&count=200&batch=20&epochs=1000&"))
        b.wait("document.querySelector('#play')")
        b.js("(() => { const e = document.querySelector('#speed'); e.value = 100; e.dispatchEvent(new Event('change')) })()")
        b.js("document.querySelector('#play').click()")
        time.sleep(7)
        b.picture(path)


if __name__ == "__main__":
    data = tempfile.mkdtemp()
    sentences.write(os.path.join(data, "sst2"))
    if os.path.exists(MNIST):
        os.symlink(MNIST, os.path.join(data, "mnist"))
    with Studio(facula, "--watch", make_runs(), "--data", data) as studio:
        if len(sys.argv) > 2:
            take_picture(studio, sys.argv[2])
            raise SystemExit(0)
        with Browser() as b:
            first_paint(b, studio)
            for name, test in PAGES.items():
                show(b, studio, name)
                test(b, studio)
                quiet(b, studio)
                print("ok", name, flush=True)
        small(studio)
        print("ok small and dark")

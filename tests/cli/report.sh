#!/bin/sh
# The page of `facula report`: one file that says everything, fetches nothing, and takes no name for markup.  usage: report.sh FACULA
. "$(dirname "$0")/expect.sh"

expect 2 'which model?' "$facula" report
expect 2 'where to?' "$facula" report zoo:lenet
expect 1 'the zoo has no "lanet"' "$facula" report zoo:lanet -o page.html
expect 2 'not "fast"' "$facula" report zoo:lenet -o page.html --target fast
expect 2 'not "1T"' "$facula" report zoo:lenet -o page.html --target 1T
expect 2 'need --profile' "$facula" report zoo:lenet -o page.html --seconds 2
expect 2 'need --profile' "$facula" report zoo:lenet -o page.html --precision high
expect 2 'cannot go with --peaks' "$facula" report zoo:lenet -o page.html --target 1T,1G --peaks
expect 1 'no/such/page.html: No such file' "$facula" report zoo:lenet -o no/such/page.html
check [ ! -e page.html ]

# ---- what it says ----
expect 0 'page.html' "$facula" report zoo:lenet -o page.html
holds page.html '<h1>zoo:lenet</h1>' '61,706' '416,520' 'ptflops-modules' 'lower bound' 'id="roofline"' 'id="plan"' 'no order needs less'
"$facula" summary zoo:lenet --json | awk '/"name":/ { name = $0 } /"module":/ { print name }' |
    sed 's/.*"name":[^"]*"\(.*\)",*/\1/' >names
check [ "$(wc -l <names)" -eq 12 ]
while read -r name; do holds page.html "data-key=\"$name\""; done <names
expect 0 'page2.html' "$facula" report zoo:lenet -o page2.html
check cmp page.html page2.html
expect 0 '</html>' "$facula" report zoo:lenet -o -
expect 2 'cannot both go' "$facula" report zoo:lenet -o - --json
holds page.html 'id="arena"' 'class="box value"' 'scratch of' 'from byte 0 on'
expect 0 'html' "$facula" report zoo:lenet -o target.html --target 2T,50G --batch 8
holds target.html 'arithmetic 2000 GFLOP/s' 'ridge 40' '3,332,160'
expect 0 'html' "$facula" report zoo:lenet -o measured.html --profile --seconds 0.01 --date
holds measured.html 'id="measured"' 'The slowest steps' 'GFLOP/s' 'Of the roof' "$(date -u +%Y)-"

# one file: no address of anything, and the only scripts are its own and its data
alone() {
    checks=$((checks + 1))
    if grep -nE 'https?:|@import|url\([^#]|<link|<img|<iframe|<object| src=| on[a-z]+=' "$1" | cut -c1-200; then :; fi >lines
    [ ! -s lines ] || { wrong "$1 reaches out:"; sed 's/^/  | /' lines | head -5; }
    check [ "$(grep -c '<script' "$1")" -eq 2 ]
    check [ "$(grep -c '</script>' "$1")" -eq 2 ]
}
alone page.html
alone measured.html

# ---- levels of few bits ----
check [ "$(grep -c 'id="levels"' page.html)" -eq 0 ]
"$facula" export zoo:lenet -o small.onnx >/dev/null
expect 0 'of 5 layers' "$facula" quantize small.onnx --scheme lq:w2a2 --random -o small.fac
expect 0 'html' "$facula" report small.fac -o levels.html
holds levels.html 'id="levels"' 'weights, 2 bits' 'inputs, 2 bits' 'class="level"'
check [ "$(grep -c '="-\{0,1\}nan' levels.html)" -eq 0 ]
check [ "$(grep -c 'class="level"' levels.html)" -eq 24 ]     # six quantizers of four levels
alone levels.html

# ---- names that try to be more ----
"$facula" export zoo:lenet -o plain.onnx >/dev/null
LC_ALL=C sed -e 's/conv1\.conv2d/<img src=a:>/g' -e "s/conv2\.conv2d/'\"><b>\&amp;</g" plain.onnx >'<b>hostile.onnx'
"$facula" edit '<b>hostile.onnx' --rename 'x=</script><img src=x onerror=document.title=1>' -o '<i>"hostile.onnx' >/dev/null
expect 0 'html' "$facula" report '<i>"hostile.onnx' -o hostile.html
holds hostile.html '&lt;/script&gt;&lt;img src=x onerror=document.title=1&gt;' '&lt;img src=a:&gt;' '&#39;&quot;&gt;&lt;b&gt;&amp;amp;&lt;' \
    '\u003c/script\u003e\u003cimg' '<h1>&lt;i&gt;&quot;hostile.onnx</h1>'
sed -e 's/src=x onerror=document//g' -e 's/src=a://g' hostile.html >unnamed.html      # as text they are harmless
alone unnamed.html
printf 'input x f32[1,4]\n%%1 = relu(x) @\001\377bad\noutput y = %%1\n' >bytes.txt
if "$facula" report bytes.txt -o bytes.html >/dev/null 2>&1; then check iconv -f UTF-8 -t UTF-8 bytes.html >/dev/null; fi

# ---- shapes of graphs ----
# 5,000 nodes: a chain with shortcuts over three, in no module; nodes without modules become stretches
awk 'BEGIN { print "input x f32[1,16]"; print "%1 = relu(x)"; print "%2 = neg(%1)"; print "%3 = abs(%2)"
    for (i = 4; i <= 5000; i++) print i % 7 ? sprintf("%%%d = relu(%%%d)", i, i - 1) : sprintf("%%%d = add(%%%d, %%%d)", i, i - 1, i - 3)
    print "output y = %5000" }' >long.txt
expect 0 'html' "$facula" report long.txt -o long.html
holds long.html 'layers 0-' '>5000<'
alone long.html
printf 'input x f32[1,4]\noutput y = x\n' >nothing.txt
if "$facula" report nothing.txt -o nothing.html >/dev/null 2>err; then alone nothing.html; fi
awk 'BEGIN { print "input x f32[1,4]"; s = ""; for (i = 1; i <= 40; i++) { printf "%%%d = %s(x)\n", i, i % 2 ? "relu" : "neg"; s = s (i > 1 ? ", " : "") "%" i }
    printf "%%41 = concat(%s) axis=1\noutput y = %%41\n", s }' >wide.txt
expect 0 'html' "$facula" report wide.txt -o wide.html

# ---- every tag is closed ----
cat >tags.py <<'END'
import sys
from html.parser import HTMLParser
EMPTY = {"meta", "input", "br"}
SHAPES = {"path", "rect", "line", "circle"}
class Tags(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.wrong = [], set(), []
    def handle_starttag(self, tag, attrs):
        names = [a for a, _ in attrs]
        self.wrong += [f"{a} twice in {tag}" for a in names if names.count(a) > 1]
        at = dict(attrs).get("id")
        if at:
            self.wrong += [f"id {at} twice"] if at in self.ids else []
            self.ids.add(at)
        if tag not in EMPTY: self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag: self.open.pop()
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag: self.wrong.append(f"</{tag}> at {self.getpos()}")
for path in sys.argv[1:]:
    t = Tags()
    text = open(path, encoding="utf-8").read()
    t.feed(text)
    t.close()
    links = [i for i in __import__("re").findall(r'href="#([^"]*)"', text) if i not in t.ids]
    if t.wrong or t.open or links: sys.exit(f"{path}: {t.wrong[:3]} {t.open} {links[:3]}")
END
if command -v python3 >/dev/null && python3 -c 'import html.parser' 2>/dev/null; then
    check python3 tags.py page.html measured.html hostile.html long.html wide.html target.html
else
    echo "tags: skipped, there is no python3"
fi

# ---- in a browser ----
# browse PAGE OPTIONS...: without a word on its console
browse() {
    page=$1
    shift
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir="$dir/profile" \
        --enable-logging=stderr --window-size=1280,2000 "$@" "file://$dir/$page" >dom 2>console
    checks=$((checks + 1))
    grep 'CONSOLE' console >lines && { wrong "$page has something to say:"; sed 's/^/  | /' lines | head -5; }
    return 0
}
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$browser" ]; then
    browse page.html --dump-dom
    holds dom '<html lang="en" class="scripted">' '<button type="button">Multiply-adds</button>' '</html>'
    browse hostile.html --dump-dom
    holds dom '<html lang="en" class="scripted">' '<title>&lt;i&gt;"hostile.onnx - facula report</title>'
    check [ "$(grep -c '<img' dom)" -eq 0 ]
    for scheme in light dark; do
        browse measured.html --hide-scrollbars --screenshot="$dir/$scheme.png" $([ $scheme = light ] || echo --force-dark-mode)
        check [ "$(wc -c <$scheme.png)" -gt 60000 ]             # an empty page is 8 kB
    done
    check [ "$(cksum <light.png)" != "$(cksum <dark.png)" ]
    browse long.html --dump-dom
    holds dom 'class="scripted"'
else
    echo "browser: skipped, there is no chromium"
fi
finish

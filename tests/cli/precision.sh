#!/bin/sh
# --precision from outside: what costs digits is left out, and what does not stays.  usage: precision.sh FACULA
. "$(dirname "$0")/expect.sh"
unset FACULA_WISDOM XDG_DATA_HOME
export HOME=$dir/home

wide='conv2d(f32[1,64,28,28], f32[64,64,3,3], f32[64]) pad=1,1,1,1 {relu}'
expect 2 'highest, high, medium, bf16 or f16, not "best"' "$facula" bench "$wide" --precision best
expect 2 'highest, high, medium, bf16 or f16, not "low"' "$facula" run zoo:lenet --precision low
way='--precision highest'
expect 0 'conv2d/' "$facula" profile "$wide" --threads 1 --seconds 0.01 --wisdom '' $way
check sh -c '! grep -q "winograd_4x4\|winograd_5x5" out'
expect 1 'winograd_4x4 makes no offer' "$facula" bench "$wide" --runs 1 --solver conv2d/winograd_4x4 $way
expect 0 'median' "$facula" bench "$wide" --runs 1 --solver conv2d/winograd_2x2 $way
expect 0 'median' "$facula" bench "$wide" --runs 1 --solver conv2d/winograd_4x4 --precision high
finish

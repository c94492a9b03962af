#!/bin/sh
# facula tune, profile and peaks from outside.  usage: tune.sh FACULA
ship=$(cd "$(dirname "$0")/../../scripts" && pwd)/ship_wisdom.sh
. "$(dirname "$0")/expect.sh"
unset FACULA_WISDOM XDG_DATA_HOME
export HOME=$dir/home
quick="--seconds 0.001 --rounds 1 --threads 1"

# ---- tune ----
expect 2 'which models' "$facula" tune
expect 2 'one of --merge' "$facula" tune --merge --list
expect 2 '-o FILE' "$facula" tune --merge a
expect 2 'needs -o' "$facula" tune --export
expect 1 'nothing.onnx' "$facula" tune nothing.onnx
expect 0 'wisdom: 6 entries in' "$facula" tune zoo:lenet $quick
holds home/.local/share/facula/wisdom 'facula wisdom 1' 'device cpu, ' 'conv2d_max_pool(f32[1,'
expect 0 'a run:' "$facula" tune 'conv2d(f32[1,8,9,9], f32[8,8,3,3]) pad=1,1,1,1' $quick --wisdom here/below/w
holds here/below/w 'conv2d(f32[1,8,9,9], f32[8,8,3,3]) pad=1,1,1,1'
expect 0 '"candidates":' "$facula" tune 'relu(f32[3,3])' $quick --wisdom here/below/w --json
holds out '"tuned":' '"problems":' '"changed":' '"refused":' '"before_ms":' '"after_us":' '"wisdom":'
holds here/below/w 'conv2d(f32[1,8,9,9]' 'relu(f32[3,3])'
expect 0 'us before' "$facula" tune --list --wisdom here/below/w --threads 1
holds out 'relu(f32[3,3])' 'device cpu, '
expect 0 '2 entries of cpu' "$facula" tune --export --wisdom here/below/w -o mine --threads 1
expect 2 'is for --export' "$facula" tune zoo:lenet --faster
expect 2 'from 1 to' "$facula" tune zoo:lenet --most -1
printf 'facula wisdom 1\n%s\nrelu 0 1 2 relu(f32[3])\nrelu 0 2 2 relu(f32[4])\n' "$(grep '^device' mine)" >two
expect 0 '1 entry of cpu' "$facula" tune --export --faster --wisdom two -o better --threads 1
holds better 'relu(f32[3])'
checks=$((checks + 1))
grep -q 'relu(f32\[4\])' better && { bad=$((bad + 1)); echo "FAILED: --faster exports what is not faster"; }
expect 2 'is for --json' "$facula" tune zoo:lenet --all
expect 0 '"estimate_us":' "$facula" tune 'relu(f32[3,3])' $quick --wisdom one --json --all
holds out '"measured":' '"us":' '"winners":' '"confirmed":' '"together_ms":'
expect 0 '"candidates":	1,' "$facula" tune 'relu(f32[3,3])' $quick --wisdom one --json --most 1
expect 0 '8 entries in all' "$facula" tune --merge home/.local/share/facula/wisdom mine -o all
expect 0 'a run:' "$facula" tune zoo:lenet --train --batch 2 $quick --wisdom train
holds train '!run=' 'conv2d_grad_w('

# what ships: faster choices of devices with these parts, the better of two, in place of none; others stay
printf 'facula wisdom 1\n\ndevice cpu, x\nrelu 0 1 2 relu(f32[3])\n' >shipped
printf 'facula wisdom 1\n\ndevice gpu, A, 9 units, sm_90\na:1 2 1 2 relu(f32[8])\nb 2 2 2 relu(f32[7])\nc 1 1 9 relu(f32[6]) !high\n' >card1
printf 'facula wisdom 1\n\ndevice gpu, B, 9 units, sm_90\na:2 2 1 3 relu(f32[8])\nd 2 8 9 relu(f32[6]) !high\n\ndevice gpu, B, sm_90\ne 1 1 2 relu(f32[5])\n' >card2
export SHIPPED=shipped
printf 'facula wisdom 1\n\ndevice cpu, x\nrelu 0 1 2 relu(f32[3])\n\ndevice gpu, 9 units, sm_90\nd 2 8 9 relu(f32[6]) !high\na:2 2 1 3 relu(f32[8])\n' >want
for turn in 1 2; do
    expect 0 '2 entries of gpu' sh "$ship" 'gpu, 9 units, sm_90' card1 card2
    checks=$((checks + 1))
    cmp -s shipped want || { wrong "what ships:"; cat shipped; }
done
printf 'facula wisdom 1\n\ndevice gpu, A, 9 units, sm_90\na:1 2 2 2 relu(f32[8])\n' >card3
cp shipped before
expect 0 '1 entries of gpu' sh "$ship" 'gpu, 9 units, sm_90' card3
checks=$((checks + 1))
grep -q 'relu(f32\[8\])' shipped && wrong "what is no longer faster still ships"
mv before shipped
expect 1 'none of the files knows' sh "$ship" 'gpu, 8 units' card1 card2
expect 1 'not wisdom' sh "$ship" 'gpu, 9 units' want /dev/null "$ship"
expect 2 'usage' sh "$ship" 'gpu, 9 units'
checks=$((checks + 1))
cmp -s shipped want || wrong "what was refused changed what ships"

# what wisdom says is what is done
sed 's/^[^ ]* 0 [^ ]* [^ ]* conv2d(/conv2d\/gemm 0 1 2 conv2d(/' here/below/w >forced
expect 0 'conv2d/gemm' "$facula" profile 'conv2d(f32[1,8,9,9], f32[8,8,3,3]) pad=1,1,1,1' --wisdom forced --threads 1 --seconds 0.01
echo nonsense >broken
expect 1 'not wisdom' "$facula" bench zoo:lenet --wisdom broken --runs 1
expect 1 'not wisdom' "$facula" tune --merge broken mine -o never
expect 1 'No such file' "$facula" bench zoo:lenet --wisdom missing --runs 1
FACULA_WISDOM=broken expect 1 'not wisdom' "$facula" bench zoo:lenet --runs 1
FACULA_WISDOM=missing expect 0 'median' "$facula" bench zoo:lenet --runs 1
expect 0 'median' "$facula" bench zoo:lenet --wisdom '' --runs 1

# ---- profile ----
expect 2 'which model' "$facula" profile
expect 0 'machine  ' "$facula" profile zoo:lenet --seconds 0.01 --chrome-trace trace.json
holds out 'run      ' 'work     ' 'GFLOP/s' '% peak' '% mem' 'op/byte' '% roof' 'conv2d' 'plain -> ' 'max_pool2d'
holds trace.json '"traceEvents":' '"ph":"X"' '"dur":' '"cat":"conv2d_max_pool"' '"solver":'
# the work of the steps is that of the graph: 0.42 M multiply-adds of lenet, not one less
checks=$((checks + 1))
grep -q '^work     \(.*\) multiply-adds in the steps, \1 in the model: equal$' out || { bad=$((bad + 1)); echo "FAILED: counts:"; grep '^work' out; }
holds out 'the model and what the steps do of it' 'equal MACs' '416,520'
# a batch norm is folded, and two equal convolutions are one: said by op
printf 'input x f32[1,8,6,6]\nparam w f32[4,8,1,1]\n%%1 = conv2d(x, w)\n%%2 = conv2d(x, w)\n%%3 = add(%%1, %%2)\noutput y = %%3\n' >twice.txt
expect 0 'equal ones are computed once' "$facula" profile twice.txt --seconds 0.001
expect 0 'they differ, see below' "$facula" profile twice.txt --seconds 0.001
expect 0 'folded into the weights before the run' "$facula" profile zoo:resnet18 --seconds 0.001
expect 0 '"nodes":' "$facula" profile zoo:lenet --seconds 0.01 --json --top 2
holds out '"machine":' '"median_ms":' '"macs":' '"executed_macs":' '"ops":' '"share":' '"intensity":' '"roof_share":' '"bound":' '"layouts":'
checks=$((checks + 1))
[ "$(grep -c '"node":' out)" = 2 ] || { bad=$((bad + 1)); echo "FAILED: --top 2 shows $(grep -c '"node":' out) nodes"; }
expect 0 'conv2d_grad_w' "$facula" profile zoo:lenet --train --batch 2 --seconds 0.01
expect 1 '/nowhere/trace.json: No such file' "$facula" profile zoo:lenet --seconds 0.01 --chrome-trace /nowhere/trace.json

# ---- peaks ----
expect 2 'no arguments' "$facula" peaks now
expect 0 'fork, join' "$facula" peaks --isa portable --threads 1
holds out 'arithmetic' 'L1 read' 'memory' 'copied' '1 thread'
expect 0 '"flops":' "$facula" peaks --json --isa portable
holds out '"l1":' '"memory_read":' '"memory_copy":' '"fork_join_s":' '"flops_one_thread":'

finish

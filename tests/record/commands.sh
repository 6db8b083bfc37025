# What the hbp command answers: sourced by record.sh, in an empty folder. run ARGUMENT...: what it prints and its exit status;
# sum FILE: the file's checksum and size. $data is examples/data, $corpus tests/fuzz/corpus.
"$draw" "$data/wikipedia.csv" w.npy 1200 1 65536
"$draw" "$data/reasoning.csv" r.npy 500 2 32768
"$draw" "$data/conversation_long.csv" c.npy 300 3
"$draw" "$data/vlm.csv" v.csv 600
awk 'BEGIN { for (i = 0; i < 1200; i++) printf "%d%s", i * 7 % 1200, i % 150 == 149 ? "\n" : " " }' >batches.txt
awk 'BEGIN { print "length,loss,link,images,kind"; for (i = 0; i < 90; i++) print 40 + i * 97 % 900 "," 20 + i % 20 "," (i % 5 < 2 ? int(i / 5) : "") "," i % 4 "," i % 3 }' >linked.csv
printf '300\n20\n41000\n7\n' >few.txt
printf 'name,type,forward_ms,backward_ms,state_mib,activation_mib,recomputed_mib,cut_mib\na,vision,3,6,10,40,4,4\nb,vision,1,2,10,40,4,4\nc,language,4,8,10,60,6,6\nd,language,1,2,10,60,6,6\ne,language,5,10,10,60,6,6\n' >layers.csv

run
run --help
run --version
for command in lengths probe groups plan step vlm stages tasks fit show compare trace validate dump methods completion help; do
    run $command --help
done
run plam
run plan
run plan w.npy --colour
run plan w.npy --max-length 12Q --model llama-3.1-8b --machine h100

for file in w.npy r.npy c.npy few.txt linked.csv absent.npy; do
    run lengths $file
    run lengths $file --json
done
run lengths linked.csv --column length --loss-column loss --link-column link --vision-column images --modality-column kind
run lengths w.npy --max-length 4K --over-long split --json
for file in "$corpus"/lengths/*; do
    cp "$file" in
    run lengths in
done

on="--model llama-3.1-8b --machine h100:2"
for asked in "" "--method hbp" "--samples-per-step 100" "--tokens-per-step 256K" "--batches batches.txt" "--composition random" \
    "--composition hierarchy" "--composition stratified --samples-per-step 150" "--window 300" "--curriculum 3" "--drop-last" \
    "--max-samples 20" "--micro-batch-multiple 4" "--micro-batches-per-step 2 --samples-per-step 100" "--equal-samples --samples-per-step 64" \
    "--max-length 8K --over-long split" "--max-length 8K --over-long drop" "--max-length 8K" "--sequence-multiple 64 --pack-multiple 128" \
    "--sequence-multiple-per-sp 16" "--max-pack-length 64K" "--tokens-per-rank 16K" "--max-sp 4" "--zero 1 --lockstep-ranks 1" \
    "--zero 1 --lockstep-ranks 8 --uneven-micro-batches" "--shard-ranks 8" "--lockstep-ranks 5" "--samples-per-step 100 --tokens-per-step 64K" \
    "--set hbm_bytes=4e10" "--effort 3" "--seed 5 --epoch 2" "--max-groups 2" "--mixture-slack 0" "--fused-ce --reserve 8192" \
    "--threads 2 --samples-per-step 100" "--method next-fit" "--method sorted" "--method flexsp --samples-per-step 100" "--method isf"; do
    run plan w.npy $on $asked -o w.plan
    sum w.plan
    run show w.plan
    run validate w.plan
    run plan r.npy $on $asked --json
done
run plan linked.csv --loss-column loss --link-column link $on -o linked.plan
run show linked.plan --step 0
run show linked.plan --step 0 --rank 3 --json
run dump linked.plan
run plan linked.csv --vision-column images --modality-column kind $on --modality-order --max-vision 9 -o seen.plan
run show seen.plan
run plan w.npy $on -o w.plan
run validate w.plan --lengths w.npy $on
run validate w.plan --lengths r.npy $on
run trace w.plan -o w.json
sum w.json
run trace w.plan --steps 1 -o w.json
sum w.json
run show w.plan --json
run show w.plan --step 99
run dump w.plan -o w.json
sum w.json
head -c 900 w.plan >cut.plan
run show cut.plan
run validate few.txt

for file in w.npy r.npy c.npy; do
    run groups $file $on
    run groups $file --model llama-3.1-70b --machine h200:8 --all --json
    run groups $file $on --method hbp
done
run compare r.npy $on
run compare r.npy $on --samples-per-step 64 --json
run compare c.npy --model qwen3-8b --machine a100-80:1 --tokens-per-step 512K

for asked in "" "--method flexsp" "--method static-sp" "--method homogeneous-sp" "--method hybrid-cp" "--method dynamic-cp" "--samples-per-step 40 --skip 7" \
    "--max-sp 2" "--min-sp 2" "--any-degree" "--recompute all" "--recompute none" "--micro-batches 3" "--micro-batches 2:5 --micro-batch-multiple 2" \
    "--effort 2" "--equal-samples --samples-per-step 64" "--max-samples 9" "--tokens-per-rank 30000" "--zero 1 --lockstep-ranks 1" \
    "--zero 1 --lockstep-ranks 1 --uneven-micro-batches" "--compare" "--exact --samples-per-step 6" "--effort 10" "--skip 500" "--samples-per-step 600"; do
    run step r.npy $on $asked
    run step r.npy $on $asked --json
done

for asked in "" "--method spindle" "--method optimus" "--method distmm" "--method uniform" "--method sequential --placement-method sequential" \
    "--placement-method spindle" "--effort 2 --seed 3" "--memory-limit 40000" "--memory-limit 100" "--barriers" "--compare"; do
    run tasks clip-4 --machine a800-80:2 $asked
    run tasks "$data/tasks.json" --machine h100:1 $asked --json
done
run tasks clip-4 --machine a800-80:2 -o t.plan --trace t.json --graph-out g.json
sum t.plan
sum t.json
sum g.json
run tasks clip-4 --machine a800-80:2 --schedule t.plan
run tasks clip-4 --machine a800-80:2 --previous t.plan --json
run tasks clip-7 --machine a800-80:2 --schedule t.plan
run tasks clip-5 --machine a800-80
run show t.plan
run validate t.plan

seen="--vision-column vision --vlm internvl-1.5-26b --machine a100-80:4 --tensor-parallel 4 --stages 4"
for asked in "" "--data-method isf" "--data-method random --partition-method parameters --recompute-method all" "--data-method sorted --recompute-method none" "--partition-method omnibal --recompute-method omnibal" \
    "--max-vision 10 --max-tokens 4K --modality-order" "--samples-per-step 64 --samples 2" "--tensor-parallel 3" "--max-vision 10"; do
    run vlm v.csv $seen $asked -o v.plan
    sum v.plan
    run vlm v.csv $seen $asked --json
done
run show v.plan
run validate v.plan
run vlm v.csv --vision-column vision --layers layers.csv --layers-vision 9 --layers-tokens 4096 --machine a100-80 --stages 2
for asked in "--stages 3 --micro-batches 8" "--stages 3 --all" "--stages 2 --virtual-stages 2 --micro-batches 8 --json" "--stages 3 --partition-method omnibal" \
    "--stages 6" "--stages 3 --memory-limit 60" "--stages 3 --link fast"; do
    run stages layers.csv $asked
done
printf 'name,forward_ms\na,-3\n' >bad.csv
run stages bad.csv --stages 1

printf '# ranks: 16\nstep,micro_batch,first_rank,sp,recompute,samples,tokens,sum_squares,time_ns\n' >t.csv
awk 'BEGIN { for (i = 0; i < 40; i++) { t = 1000 + i * 977 % 9000; q = t * t / (1 + i % 5); sp = i % 3 ? 1 : 2; print int(i / 8) "," i % 4 "," (i % 8) * 2 "," sp ",0," 1 + i % 5 "," t "," int(q) "," int(t * 20000 / sp + q * .4 / sp + 5000000) } }' >>t.csv
run fit t.csv $on -o t.cost
sum t.cost
run fit t.csv $on --json
run fit t.csv --cost t.cost
run plan r.npy --cost t.cost
run fit layers.csv $on
run trace w.plan --measured t.csv -o w.json

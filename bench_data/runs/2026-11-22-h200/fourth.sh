exec 2>&1
source ./show.sh
echo "== gpu tests"; FEATHERLOAD_REQUIRE_GPU=1 timeout 100 ./gpu-test device::cuda::gpu --nocapture --test-threads=1 > t.log; grep -E "^test |panicked|test result|levels off" t.log | awk '/levels off/{n=$(NF-2); if(n>w){w=n; l=$0}; next}{print}END{print "worst:",l}' | cut -c1-200
echo "== sanitizer"; for t in memcheck racecheck; do FEATHERLOAD_REQUIRE_GPU=1 timeout 150 compute-sanitizer --tool $t ./gpu-test --exact device::cuda::gpu_tests::many_batches_through_few_slots_are_each_their_own device::cuda::gpu_crop_tests::shorter_elements_are_the_floats_rounded device::cuda::gpu_crop_tests::the_mean_of_a_row_is_the_same_in_every_launch --test-threads=1 2>&1 | grep -E "test result|ERROR SUMMARY|RACECHECK SUMMARY|========= [A-Z]" | tail -5; done
echo "== replay"
for a in "in-place 64" "in-place 256" "copied 20" "copied 64" "copied 256"; do set -- $a; $F bench list.txt --recipe train224 --dtype f16 --workers 16 --batch $2 --device cuda --upload $1 --replay 300 --json | show; done
echo "== runs"
for a in "train224 64 in-place" "train224 64 copied" "train224 256 in-place" "train224 256 copied" "eval224 256 in-place"; do set -- $a; echo "$a"; $F bench list.txt --recipe $1 --dtype f16 --workers 16 --batch $2 --epochs 13 --device cuda --upload $3 --json | show; done
echo "== ceilings"
for a in "train224 256" "train224 64" "eval224 256" "eval224 64"; do set -- $a; echo "$a"; $F bench list.txt --recipe $1 --dtype f16 --workers 16 --batch $2 --device cuda --ceiling crop --pairs 5 --window 2 --json | show; done
echo "== torch, same files"; python3 torch_peer.py 256 16 train224
echo "== DALI case"; $F demo large --kind large --images 128 > /dev/null
for u in in-place copied; do $F bench large --recipe lab.yaml --dtype f16 --reorder fast --batch 64 --workers 16 --epochs 4 --device cuda --upload $u --json | show; done
echo "== OneDiff case"; python3 sizes.py
for m in "--epochs 1" "--epochs 2 --multi-scale 224x224,160x160,320x320,192x256"; do $F bench sizes.txt --recipe train224 --dtype f16 --batch 16 --workers 16 --device cuda $m --json | show; done
echo "== first batch"; for i in 1 2 3 4 5 6; do $F bench list.txt --recipe train224 --dtype f16 --workers 16 --batch 64 --limit 128 --device cuda --json | python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["first_batch_ms"])'; done
echo "== digests"
for a in "1 in-place" "4 in-place" "16 in-place" "16 copied"; do set -- $a; $F bench list.txt --recipe train224 --dtype f16 --workers $1 --batch 64 --epochs 1 --device cuda --upload $2 --digest --json | python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["digest"], r["workers"], r["device"]["upload"], r["worker_deaths"])'; done
$F bench list.txt --recipe train224 --dtype f16 --workers 8 --batch 64 --epochs 1 --device cuda --upload copied --digest --kill-workers-every 20 --json | python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["digest"], r["workers"], r["worker_deaths"])'
$F bench list.txt --recipe train224 --dtype f16 --workers 16 --batch 64 --epochs 3 --device cuda

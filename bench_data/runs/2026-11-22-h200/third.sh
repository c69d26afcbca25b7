exec 2>&1
source ./show.sh
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; nproc
echo "== replay"
for a in "in-place 64" "in-place 256" "copied 20" "copied 64" "copied 256" "in-place 20"; do set -- $a; $F bench list.txt --recipe train224 --dtype f16 --workers 16 --batch $2 --device cuda --upload $1 --replay 300 --json | show; done
for a in in-place copied; do $F bench list.txt --recipe eval224 --dtype f16 --workers 16 --batch 256 --device cuda --upload $a --replay 100 --json | show; $F bench list.txt --recipe contrast.yaml --workers 16 --batch 256 --device cuda --upload $a --replay 50 --json | show; done
echo "== runs"
for a in "train224 64 in-place" "train224 64 copied" "train224 256 in-place" "train224 256 copied" "eval224 256 in-place"; do set -- $a; echo "$a"; $F bench list.txt --recipe $1 --dtype f16 --workers 16 --batch $2 --epochs 13 --device cuda --upload $3 --json | show; done
echo "== ceilings"
for a in "train224 256" "train224 64" "eval224 256" "eval224 64"; do set -- $a; echo "$a"; $F bench list.txt --recipe $1 --dtype f16 --workers 16 --batch $2 --device cuda --ceiling crop --pairs 5 --window 2 --json | show; done
echo "== torch, same files"
python3 torch_peer.py 256 16 train224; python3 torch_peer.py 64 16 train224; python3 torch_peer.py 256 16 eval224
echo "== DALI case"; $F demo large --kind large --images 128 > /dev/null
for u in in-place copied; do $F bench large --recipe lab.yaml --dtype f16 --reorder fast --batch 64 --workers 16 --epochs 4 --device cuda --upload $u --json | show; done
echo "== OneDiff case"; python3 sizes.py
for m in "--epochs 1" "--epochs 2 --multi-scale 224x224,160x160,320x320,192x256" "--epochs 1 --depth 12"; do for u in in-place copied; do echo "$m $u"; $F bench sizes.txt --recipe train224 --dtype f16 --batch 16 --workers 16 --device cuda --upload $u $m --json | show; done; done
echo "== first batch"; for i in 1 2 3 4 5 6; do $F bench list.txt --recipe train224 --dtype f16 --workers 16 --batch 64 --limit 128 --device cuda --json | python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["first_batch_ms"])'; done
echo "== digests"
for a in "1 in-place" "4 in-place" "16 in-place" "16 copied"; do set -- $a; $F bench list.txt --recipe train224 --dtype f16 --workers $1 --batch 64 --epochs 1 --device cuda --upload $2 --digest --json | python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["digest"], r["workers"], r["device"]["upload"], r["worker_deaths"])'; done
$F bench list.txt --recipe train224 --dtype f16 --workers 8 --batch 64 --epochs 2 --device cuda --upload copied --digest --kill-workers-every 30 --json | python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["digests"], r["workers"], r["worker_deaths"])'
echo "== another takes the memory"; python3 - <<'P'
import torch, subprocess
free, _ = torch.cuda.mem_get_info(); x = torch.empty(free - (200 << 20), dtype=torch.uint8, device="cuda")
print(subprocess.run(["./featherload","bench","list.txt","--recipe","train224","--dtype","f16","--workers","16","--batch","256","--epochs","1","--device","cuda"], capture_output=True, text=True))
P
CUDA_VISIBLE_DEVICES= $F bench list.txt --device cuda --epochs 1; echo $?; $F bench list.txt --device cuda:3 --epochs 1; echo $?

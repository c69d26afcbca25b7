# Ours and DALI in turns: gpu_pairs.sh BINARY PHOTOS LARGE
set -u
f=$1; p=$2; l=$3
b() { n=$1; d=$2; shift 2
  timeout 60 $f bench $d --labels none --device cuda --dtype f16 --json "$@" > out.json 2> err.txt
  python3 - "$n" <<'P'
import json,sys
try: r=json.load(open('out.json'))
except Exception as e: print(sys.argv[1],open('err.txt').read()[-600:]); sys.exit()
j=(r['loader'].get('device') or {}).get('jpegs') or {}; s=r['spread']
if not s: print(f"{sys.argv[1]}: {r['images_per_s']:.0f} images/s",flush=True); sys.exit()
print(f"{sys.argv[1]}: {r['images_per_s']:.0f} images/s (epochs {s['min_images_per_s']:.0f} to {s['max_images_per_s']:.0f}), first batch {r['first_batch_ms']:.0f} ms, device {r['gpu_mib']:.0f} MiB, CPU {r['cpu_s_per_1k_images']:.3f} s/1k, decoded on GPU {j.get('pictures', 0)} of {r['samples']}",flush=True)
P
  head -c 200 err.txt; }
d() { timeout 90 python3 gpu_dali.py "$@" 2>&1 | grep -E "^DALI|rror" | tail -3; }
b warm $p --recipe train224 --workers 12 --batch 256 --epochs 10
for round in 1 2; do
  b "ours train224 batch 256, 12 workers" $p --recipe train224 --workers 12 --batch 256 --epochs 60
  d $p train224 mixed 0.65 256 16
  d $p train224 mixed 0.9 256 16
  b "ours train224 batch 64, 12 workers" $p --recipe train224 --workers 12 --batch 64 --epochs 60
  d $p train224 mixed 0.65 64 16
  d $p train224 mixed 0.9 64 16
  b "ours eval224 batch 256, 12 workers" $p --recipe eval224 --workers 12 --batch 256 --epochs 60
  d $p eval224 mixed 0.65 256 16
  d $p eval224 mixed 0.9 256 16
  b "ours train224 batch 256, 4 workers" $p --recipe train224 --workers 4 --batch 256 --epochs 30
  b "ours train224 batch 256, 2 workers" $p --recipe train224 --workers 2 --batch 256 --epochs 20
  b "ours 12mp train224 batch 64, 12 workers" $l --recipe train224 --workers 12 --batch 64 --epochs 8
  b "ours 12mp train224 batch 64, 12 workers, cpu" $l --recipe train224 --workers 12 --batch 64 --epochs 2 --decode-on cpu
  d $l train12mp mixed 0.65 64 16
  d $l train12mp mixed 0.9 64 16
done
d $p train224 mixed_full 0.65 256 16
d $p train224 mixed 0.65 256 8
d $p train224 cpu 0 256 16
d $p train224 mixed 1.0 256 8
d $l train12mp mixed 0.65 16 16
d $l train12mp cpu 0 64 16

# Ours and DALI in turns, with pictures of 12 megapixels: gpu_large.sh BINARY PHOTOS LARGE
set -u
here=$(dirname "$0"); f=$1; p=$2; l=$3
b() { n=$1; d=$2; shift 2
  timeout 60 $f bench $d --labels none --device cuda --dtype f16 --json "$@" > out.json 2> err.txt
  python3 - "$n" <<'P'
import json, sys
try: r = json.load(open('out.json'))
except Exception: print(sys.argv[1], open('err.txt').read()[-600:]); sys.exit()
j = (r['loader']['device'] or {}).get('jpegs') or {}
s = r['spread'] or {'min_images_per_s': 0, 'max_images_per_s': 0}
print(f"{sys.argv[1]}: {r['images_per_s'] or 0:.0f} images/s (epochs {s['min_images_per_s']:.0f} to "
      f"{s['max_images_per_s']:.0f}), first batch {r['first_batch_ms']:.0f} ms, device {r['gpu_mib']:.0f} MiB, "
      f"host {r['memory_mib']:.0f} MiB, CPU {r['cpu_s_per_1k_images']:.3f} s/1k, on GPU {j.get('pictures')} of {r['samples']}", flush=True)
P
}
d() { timeout 90 python3 $here/gpu_dali.py "$@" 2>&1 | grep -E "^DALI|rror" | tail -3; }
b warm $p --recipe train224 --workers 12 --batch 256 --epochs 10
for round in 1 2; do
  b "ours train224 batch 256, 12 workers" $p --recipe train224 --workers 12 --batch 256 --epochs 60
  d $p train224 mixed 0.65 256 16
  b "ours train224 batch 64, 12 workers" $p --recipe train224 --workers 12 --batch 64 --epochs 60
  d $p train224 mixed 0.65 64 16
  b "ours 12mp train224 batch 64, 12 workers" $l --recipe train224 --workers 12 --batch 64 --epochs 10
  b "ours 12mp train224 batch 64, 12 workers, cpu" $l --recipe train224 --workers 12 --batch 64 --epochs 2 --decode-on cpu
  d $l train12mp mixed 0.65 64 16
  d $l train12mp mixed 0.9 64 16
  b "ours 12mp train224 full batch 64, 12 workers" $l --recipe train224 --decode full --workers 12 --batch 64 --epochs 6
  b "ours 12mp train224 full batch 64, 12 workers, cpu" $l --recipe train224 --decode full --workers 12 --batch 64 --epochs 2 --decode-on cpu
done
d $l train12mp cpu 0 64 16
for on in gpu cpu; do
  timeout 60 $f bench $l --labels none --device cuda --recipe train224 --decode full --workers 12 --batch 64 --epochs 1 --decode-on $on --digest 2> err.txt | grep digest
done

# Rates of one build: rates.sh BINARY PHOTOS. Each line is one run.
set -u
f=$1; p=$2
b() { l=$1; shift
  timeout 90 $f bench $p --labels none --device cuda --dtype f16 --json "$@" > out.json 2> err.txt
  python3 - "$l" <<'P'
import json,sys
try: r=json.load(open('out.json'))
except Exception as e: print(sys.argv[1],open('err.txt').read()[-600:]); sys.exit()
j=r['loader']['device']['jpegs']; s=r['spread']
print(f"{sys.argv[1]}: {r['images_per_s']:.0f} images/s (epochs {s['min_images_per_s']:.0f} to {s['max_images_per_s']:.0f}), first batch {r['first_batch_ms']:.0f} ms, device {r['gpu_mib']:.0f} MiB, CPU {r['cpu_s_per_1k_images']:.3f} s/1k, decoded on GPU {j['pictures']} of {r['samples']} in {j['parts']} parts",flush=True)
P
  head -c 200 err.txt; }
b "warm" --recipe train224 --workers 12 --batch 256 --epochs 20
for round in 1 2; do
for bs in 256 64; do for w in 16 12 8 4 2; do b "train224 gpu batch $bs, $w workers" --recipe train224 --decode-on gpu --workers $w --batch $bs --epochs 80; done
b "train224 cpu batch $bs, 16 workers" --recipe train224 --decode-on cpu --workers 16 --batch $bs --epochs 8
b "eval224 gpu batch $bs, 12 workers" --recipe eval224 --decode-on gpu --workers 12 --batch $bs --epochs 80; done
b "train224 gpu batch 64, 12 workers, depth 8" --recipe train224 --decode-on gpu --workers 12 --batch 64 --epochs 80 --depth 8
done

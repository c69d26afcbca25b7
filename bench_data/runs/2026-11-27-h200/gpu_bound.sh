# Runs with and without the JPEG kernels: gpu_bound.sh BINARY PHOTOS CACHE. BINARY skips all of them
# but `jpeg_rows` when NO_KERNELS is set. PHOTOS: eight names of each photo; CACHE: `cache build` of it.
set -u
bench() {
  name=$1 data=$2; shift 2
  "$BINARY" bench "$data" --device cuda --dtype f16 --workers 12 --epochs 60 --json "$@" |
    python3 -c "import json, sys; r = json.load(sys.stdin); print(sys.argv[1], round(r['images_per_s']))" "$name"
}
BINARY=$1 photos=$2 cache=$3
for round in 1 2 3; do
  for without in "" 1; do
    if [ "$without" ]; then export NO_KERNELS=1; else unset NO_KERNELS; fi
    bench "train224 256 ${without:+without}" "$photos" --labels none --recipe train224 --batch 256
    bench "train224 64 ${without:+without}" "$photos" --labels none --recipe train224 --batch 64
    bench "eval224 256 ${without:+without}" "$photos" --labels none --recipe eval224 --batch 256
    bench "cache ${without:+without}" "$cache" --recipe train224 --batch 256
  done
done

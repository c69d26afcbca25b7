cd .cache/gpu; exec 2>&1
F=./featherload
echo "== GPU tests"; FEATHERLOAD_REQUIRE_GPU=1 ./libtests gpu_ --test-threads=1 --nocapture | tail -30
$F cache build list.txt /tmp/raw --encode raw --resize exact:256x256 | tail -2
$F cache verify /tmp/raw | tail -1
R=/tmp/raw
echo "== rates: order, batch, workers, upload, depth"
for a in "sequential 256 16 in-place 3" "sequential 256 16 copied 3" "shard-shuffle 256 16 in-place 3" "shard-shuffle 256 16 copied 3" "shuffle 256 16 copied 3"; do set -- $a; echo "$a"; for i in 1 2 3; do $F bench $R --recipe raw256.yaml --sampler $1 --workers $3 --batch $2 --depth $5 --epochs 150 --device cuda --upload $4 --json | python3 -c '
import json,sys; r=json.load(sys.stdin); d=r["device"]; print(round(r["images_per_s"]), "images/s; device MiB", d["peak_bytes"]/2**20, "of", d["planned_bytes"]/2**20)'; done; done
echo "== digests"
for a in "1 in-place" "16 in-place" "16 copied"; do set -- $a; $F bench $R --recipe raw256.yaml --workers $1 --batch 64 --epochs 2 --device cuda --upload $2 --digest --json | python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["digest"], r["workers"], r["worker_deaths"])'; done
$F bench $R --recipe raw256.yaml --workers 8 --batch 64 --epochs 2 --device cuda --digest --kill-workers-every 20 --json | python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["digest"], r["workers"], r["worker_deaths"])'
echo "== one worker and more beside memcpy"; for a in "sequential 1" "shuffle 1" "shuffle 1" "shuffle 1" "sequential 4"; do set -- $a; $F bench $R --recipe full --workers $2 --batch 64 --sampler $1 --ceiling copy --window 1 | tail -1; done
echo "== million"; python3 million.py /tmp/m && for i in 1 2 3; do /usr/bin/env time -f %es $F index '/tmp/m/tiny-*.tar' --no-headers | tail -2; done

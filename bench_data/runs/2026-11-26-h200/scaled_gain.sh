#!/usr/bin/env bash
# Images/s of full and scaled decoding, in turns:
#   scaled_gain.sh FEATHERLOAD PHOTOS LISTS
# PHOTOS: the folder of the photos. LISTS: a folder with all.txt (every fourth photo),
# large256.txt (those whose shorter side is 512 or more) and large128.txt (of all.txt those whose
# shorter side is 256 or more), each with lines "NAME 0".
set -euo pipefail
featherload=$1 photos=$2 lists=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for size in 256 128; do
    printf 'featherload: 1\nops:\n  - decode: {color: rgb}\n  - resize: {size: %s}\n  - center_crop: {size: %s}\n' \
        "$size" $((size * 7 / 8)) >"$work/$size.yaml"
done
for set in "256 all 8" "256 large256 10" "128 all 8" "128 large128 8"; do
    read -r size list epochs <<<"$set"
    for turn in 1 2 3 4 5 6 7; do
        for decode in full scaled; do
            rate=$(taskset -c 2,4 "$featherload" bench --list "$lists/$list.txt" --root "$photos" \
                --recipe "$work/$size.yaml" --decode "$decode" --dtype u8 --workers 2 --batch 32 \
                --epochs "$epochs" --json |
                python3 -c 'import json, sys; print(json.load(sys.stdin)["images_per_s"])')
            echo "$size $list $decode $turn $rate"
        done
    done
done

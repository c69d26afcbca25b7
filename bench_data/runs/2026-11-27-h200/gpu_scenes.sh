# Start of a scene whose images are N times those of fox: N=60 gpu_scenes.sh FOX BEFORE AFTER
set -u
fox=$1; before=$2; after=$3; export N=${N:-60} FOX=$fox
python3 - <<'P'
import json, os
src = os.environ['FOX']
t = json.load(open(f'{src}/transforms.json'))
os.makedirs('many/images', exist_ok=True)
frames = []
for k in range(int(os.environ['N'])):
    for f in t['frames']:
        path, to = os.path.join(src, f['file_path']), f"images/{k:03d}_{os.path.basename(f['file_path'])}"
        if not os.path.exists(path): continue
        if not os.path.exists('many/' + to): os.link(path, 'many/' + to)
        frames.append({**f, 'file_path': to})
json.dump({**t, 'frames': frames}, open('many/transforms.json', 'w'))
P
for round in 1 2; do for b in $before $after; do for scene in $fox many; do for w in 16 2; do
  echo "$b $scene, $w workers: $($b rays $scene --device cuda --joining 0 --steps 1 --workers $w 2> err.txt | grep -E 'first|memory' | tr -s ' ' | tr '\n' ' ')"
done; done; done; done
for b in $before $after; do
  $b rays $fox --device cuda --steps 100 --digest 2> err.txt | grep digest
  $b views $fox --device cuda --steps 100 --digest 2> err.txt | grep digest
done

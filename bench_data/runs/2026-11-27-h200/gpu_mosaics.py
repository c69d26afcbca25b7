"""Pictures of 4,000 x 3,000, mosaics of photos at their own size: gpu_mosaics.py PHOTOS TO COUNT NAMES"""
import glob, os, random, sys
from concurrent.futures import ProcessPoolExecutor
import torch, torchvision
from torchvision.io import ImageReadMode, decode_jpeg, encode_jpeg, read_file
root, to, count, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
files = sorted(glob.glob(root + '/**/*.JPEG', recursive=True))
def make(n):
    torch.set_num_threads(1)
    r = random.Random(n); canvas = torch.zeros(3, 3000, 4000, dtype=torch.uint8); y = 0
    while y < 3000:
        x, low = 0, 3000
        while x < 4000:
            try: p = decode_jpeg(read_file(r.choice(files)), ImageReadMode.RGB)
            except RuntimeError: continue
            p = p[:, :3000 - y, :4000 - x]
            canvas[:, y:y + p.shape[1], x:x + p.shape[2]] = p
            x += p.shape[2]; low = min(low, p.shape[1])
        y += max(low, 40)
    data = encode_jpeg(canvas, quality=85)
    path = f'{to}/{n}_0.jpg'
    open(path, 'wb').write(data.numpy().tobytes())
    for k in range(1, names): os.link(path, f'{to}/{n}_{k}.jpg')
    return len(data)
os.makedirs(to, exist_ok=True)
with ProcessPoolExecutor(16) as pool: sizes = list(pool.map(make, range(count)))
print(count, 'mosaics, mean', sum(sizes) // count, 'bytes, most', max(sizes))

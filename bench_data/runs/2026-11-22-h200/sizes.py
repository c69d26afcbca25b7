# JPEG files from 64 x 64 to 4096 x 4096 pixels, sides drawn log-uniformly, made of the photos.
import glob, random, os, sys
from PIL import Image
from concurrent.futures import ProcessPoolExecutor
src = sorted(glob.glob("photos/**/*.*", recursive=True))
def make(i):
    r = random.Random(i)
    w, h = (round(64 * 64 ** r.random()) for _ in range(2))
    if i == 0: w = h = 64
    if i == 1: w = h = 4096
    Image.open(src[i % len(src)]).convert("RGB").resize((w, h), Image.BILINEAR).save(f"sizes/{i:04}.jpg", quality=85)
os.makedirs("sizes", exist_ok=True)
with ProcessPoolExecutor(16) as p: list(p.map(make, range(400)))
with open("sizes.txt", "w") as f:
    for n in range(80):
        for i in range(400): f.write(f"sizes/{i:04}.jpg 0\n")

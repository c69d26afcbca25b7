"""One DALI pipeline: dali.py train224|eval224 BATCH HW: images/s (median of 3), first batch from process start, GPU memory."""
import time; T0 = time.time()
import sys, glob, statistics as st, subprocess, os
def used():
    return int(subprocess.check_output(['nvidia-smi', '--query-gpu=memory.used', '--format=csv,noheader,nounits', '-i', '0']).split()[0])
kind, bs, hw = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
before = used()
import nvidia.dali.fn as fn, nvidia.dali.types as types
from nvidia.dali import pipeline_def
files = sorted(glob.glob(os.environ['PHOTOS'] + '/**/*.JPEG', recursive=True) + glob.glob(os.environ['PHOTOS'] + '/**/*.jpg', recursive=True)) * 8
MEAN, STD = [.485*255, .456*255, .406*255], [.229*255, .224*255, .225*255]
@pipeline_def
def train224():
    j, _ = fn.readers.file(files=files, random_shuffle=True, prefetch_queue_depth=4, read_ahead=True)
    x = fn.decoders.image_random_crop(j, device='mixed', output_type=types.RGB, hw_decoder_load=hw, preallocate_width_hint=1024, preallocate_height_hint=1024)
    x = fn.resize(x, size=224)
    return fn.crop_mirror_normalize(x, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, dtype=types.FLOAT16, output_layout='CHW')
@pipeline_def
def eval224():
    j, _ = fn.readers.file(files=files, prefetch_queue_depth=4, read_ahead=True)
    x = fn.decoders.image(j, device='mixed', output_type=types.RGB, hw_decoder_load=hw, preallocate_width_hint=1024, preallocate_height_hint=1024)
    x = fn.resize(x, resize_shorter=256)
    return fn.crop_mirror_normalize(x, crop=(224, 224), mean=MEAN, std=STD, dtype=types.FLOAT16, output_layout='CHW')
p = {'train224': train224, 'eval224': eval224}[kind](batch_size=bs, num_threads=16, device_id=0, prefetch_queue_depth=3)
p.build(); p.run(); first = time.time() - T0
for _ in range(8): p.run()
n = max(30, 16384 // bs); r = []
for _ in range(3):
    s = time.perf_counter()
    for _ in range(n): p.run()
    r.append(n * bs / (time.perf_counter() - s))
print(f'dali {kind} b{bs} hw{hw}: {st.median(r):.0f} img/s, first {first:.2f} s, gpu +{used()-before} MiB', flush=True)

"""One run of DALI: gpu_dali.py PHOTOS WORKLOAD MODE HW BATCH THREADS. Prints images/s."""
import glob, sys, time, statistics as st
import nvidia.dali.fn as fn, nvidia.dali.types as types
from nvidia.dali import pipeline_def
root, workload, mode, hw, batch, threads = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
files = sorted(glob.glob(root + '/**/*.JPEG', recursive=True) + glob.glob(root + '/**/*.jpg', recursive=True))
MEAN, STD = [.485*255, .456*255, .406*255], [.229*255, .224*255, .225*255]
large = workload.endswith('12mp')
hint = dict(preallocate_width_hint=4000, preallocate_height_hint=3000) if large else dict(preallocate_width_hint=1024, preallocate_height_hint=1024)
@pipeline_def
def train():
    j, _ = fn.readers.file(files=files, random_shuffle=True, name='r', prefetch_queue_depth=4, read_ahead=True)
    if mode == 'mixed':
        x = fn.decoders.image_random_crop(j, device='mixed', output_type=types.RGB, hw_decoder_load=hw, **hint)
    elif mode == 'mixed_full':
        x = fn.random_resized_crop(fn.decoders.image(j, device='mixed', output_type=types.RGB, hw_decoder_load=hw, **hint), size=224)
    else:
        x = fn.decoders.image_random_crop(j, device='cpu', output_type=types.RGB).gpu()
    if mode != 'mixed_full': x = fn.resize(x, size=224)
    return fn.crop_mirror_normalize(x, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, dtype=types.FLOAT16, output_layout='CHW')
@pipeline_def
def evaluate():
    j, _ = fn.readers.file(files=files, name='r', prefetch_queue_depth=4, read_ahead=True)
    if mode == 'cpu': x = fn.decoders.image(j, device='cpu', output_type=types.RGB).gpu()
    else: x = fn.decoders.image(j, device='mixed', output_type=types.RGB, hw_decoder_load=hw, **hint)
    x = fn.resize(x, resize_shorter=256)
    return fn.crop_mirror_normalize(x, crop=(224, 224), mean=MEAN, std=STD, dtype=types.FLOAT16, output_layout='CHW')
t = time.perf_counter()
p = (train if workload.startswith('train') else evaluate)(batch_size=batch, num_threads=threads, device_id=0, prefetch_queue_depth=3)
p.build(); p.run(); first = time.perf_counter() - t
for _ in range(4 if large else 10): p.run()
n = max(6, (1500 if large else 25600) // batch)
rates = []
for _ in range(3):
    s = time.perf_counter()
    for _ in range(n): p.run()
    rates.append(n * batch / (time.perf_counter() - s))
print(f'DALI {workload} {mode} hw={hw} batch {batch}, {threads} threads: {st.median(rates):.0f} images/s ({min(rates):.0f} to {max(rates):.0f}), first batch {first*1e3:.0f} ms', flush=True)

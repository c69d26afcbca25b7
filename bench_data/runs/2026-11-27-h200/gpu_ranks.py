"""Rates of ranks of one data set, each with a card and 16 cores of its own, alone and together:
gpu_ranks.py PHOTOS. `train224`, f16, batch 256, 12 workers a rank; 12 seconds, the first 4 not counted."""
import os, subprocess, sys, time

if len(sys.argv) > 2:
    root, card, world, start = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    import featherload
    rank = card if world == 2 else 0
    loader = featherload.Loader(root, recipe="train224", batch_size=256, num_workers=12, device=f"cuda:{card}",
                                dtype="f16", rank=rank, world_size=world, labels="none")
    count, began = 0, None
    while True:
        for batch in loader:
            now = time.time()
            if now >= start + 12: break
            if now >= start + 4:
                if began is None: began = now
                else: count += 256
        if time.time() >= start + 12: break
    print(count / (time.time() - began), flush=True)
    os._exit(0)


def run(cards, world):
    start = time.time() + 8
    of = lambda card: subprocess.Popen(["taskset", "-c", f"{16 * card}-{16 * card + 15}", sys.executable, __file__, sys.argv[1],
                                        str(card), str(world), str(start)], stdout=subprocess.PIPE, text=True)
    return [float(p.communicate()[0].split()[-1]) for p in [of(card) for card in cards]]


run([0, 1], 1)
for turn in range(3):
    alone = [run([card], 1)[0] for card in (0, 1)]
    both = run([0, 1], 2)
    print(f"alone {alone[0]:.0f} and {alone[1]:.0f}, two ranks {both[0]:.0f} + {both[1]:.0f} = {sum(both):.0f} images/s: "
          f"{2 * sum(both) / sum(alone):.2f} x one", flush=True)

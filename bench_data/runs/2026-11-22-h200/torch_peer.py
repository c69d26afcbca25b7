# torch DataLoader + torchvision decode and transforms, f16 on the device.
import sys, time, torch
from torch.utils.data import Dataset, DataLoader
from torchvision.io import decode_image, read_file, ImageReadMode
from torchvision.transforms import v2 as T
batch, workers, train = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "train224"
torch.set_num_threads(1)
head = [T.RandomResizedCrop(224, antialias=True), T.RandomHorizontalFlip()] if train else [T.Resize(256, antialias=True), T.CenterCrop(224)]
tf = T.Compose(head + [T.ToDtype(torch.float32, scale=True), T.Normalize([0.485,0.456,0.406],[0.229,0.224,0.225]), T.ToDtype(torch.float16)])
class D(Dataset):
    def __init__(self): self.p = [l.rsplit(" ",1)[0] for l in open("list.txt")] * 12
    def __len__(self): return len(self.p)
    def __getitem__(self, i): return tf(decode_image(read_file(self.p[i]), ImageReadMode.RGB)), 0
dl = DataLoader(D(), batch, shuffle=True, num_workers=workers, pin_memory=True, prefetch_factor=2)
seen = 0; t = None; n = 0
for x, y in dl:
    x = x.cuda(non_blocking=True); seen += 1
    if seen == 2 * workers + 4: torch.cuda.synchronize(); t = time.perf_counter()
    elif t is not None: n += len(x)
torch.cuda.synchronize()
print(f"torch {sys.argv[3]} batch {batch} workers {workers}: {n/(time.perf_counter()-t):.0f} images/s over {n}", flush=True)

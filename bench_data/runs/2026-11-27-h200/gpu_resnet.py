"""ResNet-50 training in bf16 at batch 256: gpu_resnet.py PHOTOS CASE..., each case `synthetic`, `held`,
`torch:WORKERS`, or `cpu|gpu|auto:WORKERS`. Prints images/s of 100 steps behind 30."""
import os, sys, time
import torch, torchvision
from torchvision.transforms import v2

root, cases = sys.argv[1], sys.argv[2:]
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
BATCH, WARM, STEPS = 256, 30, 100
model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
model = torch.compile(model) if os.environ.get("COMPILE") else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
loss_of = torch.nn.CrossEntropyLoss()


def synthetic():
    x = torch.randn(BATCH, 3, 224, 224, device="cuda", dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (BATCH,), device="cuda")
    while True:
        yield x, y


def held():
    """Real batches that lie on the device: what training alone takes of them."""
    source = ours("gpu", 4)
    kept = [(x.clone().contiguous(memory_format=torch.channels_last), y.long()) for x, y in (next(source) for _ in range(4))]
    source.close()
    while True:
        yield from kept


def ours(on, workers):
    import featherload
    loader = featherload.Loader(root, recipe="train224", batch_size=BATCH, num_workers=workers, device="cuda",
                                dtype="bf16", decode_on=on, layout="nhwc")
    while True:
        for x, y in loader:
            yield x.permute(0, 3, 1, 2), y


class Photos(torch.utils.data.Dataset):
    def __init__(self):
        self.data = torchvision.datasets.ImageFolder(root)
    def __len__(self):
        return len(self.data)
    def __getitem__(self, i):
        return T(self.data[i][0]), self.data[i][1]


T = v2.Compose([v2.PILToTensor(), v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(),
                v2.ToDtype(torch.float32, scale=True), v2.Normalize([.485, .456, .406], [.229, .224, .225])])


def torchs(workers):
    loader = torch.utils.data.DataLoader(Photos(), BATCH, shuffle=True, num_workers=workers, pin_memory=True,
                                         drop_last=True, persistent_workers=True)
    while True:
        for x, y in loader:
            yield (x.to("cuda", torch.bfloat16, non_blocking=True).contiguous(memory_format=torch.channels_last),
                   y.to("cuda", non_blocking=True))


def step(x, y):
    with torch.autocast("cuda", torch.bfloat16):
        loss = loss_of(model(x), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


for case in cases:
    name, _, workers = case.partition(":")
    source = synthetic() if name == "synthetic" else held() if name == "held" else torchs(int(workers)) if name == "torch" else ours(name, int(workers))
    warm, steps = (40, 40) if name == "torch" else (WARM, STEPS)
    seen = 0
    for x, y in source:
        if x.shape[0] != BATCH:
            continue
        x = x.contiguous(memory_format=torch.channels_last)
        step(x, y.long())
        seen += 1
        if seen == warm:
            torch.cuda.synchronize(); began = time.perf_counter()
        if seen == warm + steps:
            torch.cuda.synchronize(); break
    source.close()
    print(f"{case}: {steps * BATCH / (time.perf_counter() - began):.0f} images/s", flush=True)

"""Cases of PaddleClas' own configs over the shared photos, each with a list in its form."""

import re

from data import FOLDER

# The form of list that each data set reads. All others read lines of `path label`.
FORMS = {
    "MultiLabelDataset": "vector",
    "VeriWild": "second",
    "ICartoonDataset": "tab",
    "CustomLabelDataset": "paths",
}
RUN = "--batch-size 4 --limit 8 --num-workers 0"
PLAN = "--num-workers 2 --batch-size 4 --sample 3"


def cases(data):
    configs = _unlike(name for name in data.configs if name.endswith(".yaml"))
    lines = [_bench(name) for name in configs]
    some = configs[::4]
    lines += [f"{_bench(name)} --mode eval" for name in some]
    lines += [f"plan --recipe paddleclas/{name} {_list(name)} {PLAN}" for name in some]
    # The variables by which PaddleClas' launcher sets the rank.
    ranks = "PADDLE_TRAINER_ID=1 PADDLE_TRAINERS_NUM=3"
    return lines + [f"{ranks} {_bench(name)}" for name in some[:5]]


def _unlike(configs):
    """The first config of each group of configs that read their training data in the same way."""
    seen = {}
    for name in configs:
        train = _loader(name).split("\n  Eval:")[0]
        train = re.sub(r"#.*|.*(root|path|num_workers|batch_size|use_shared).*", "", train)
        seen.setdefault(" ".join(train.split()), name)
    return list(seen.values())


def _bench(name):
    return f"bench --recipe paddleclas/{name} {_list(name)} {RUN}"


def _list(name):
    text, loader = _text(name), _loader(name)
    dataset = re.search(r"\bname: *(\w+)", loader)
    form = FORMS.get(dataset and dataset[1], "tab" if r'delimiter: "\t"' in loader else "blank")
    classes = min([int(n) for n in re.findall(r"class_num: *(?:&\w+ +)?(\d+)", text)] or [64])
    classes = 64 if classes >= 64 else 4 if classes >= 4 else 2
    return f"--list lists/paddle-{form}-{classes}.txt --root photos"


def _text(name):
    return (FOLDER / "paddleclas" / name).read_text(errors="replace")


def _loader(name):
    text = _text(name)
    return text[text.find("DataLoader:") :]

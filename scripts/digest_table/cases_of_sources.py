"""Cases of the sources of samples: lists, kept indexes, tar shards, caches."""

from words import SMALL


def indexes():
    lists = [
        "--list lists/classes.txt --root default",
        "--list lists/tabs.txt --root default --delimiter '\\t'",
        "--list lists/paths.txt --root default --labels none",
        "--list lists/vectors.txt --root default --delimiter '\\t'",
        "--list lists/quoted.txt --root default",
        "default --list lists/paths.txt --labels none",
        "default --classes lists/class-names.txt",
        "default --labels none",
    ]
    cases = [f"bench {source} {SMALL}" for source in lists]
    cases += [f"index {source}" for source in lists]
    for number, source in enumerate(["default", "mixed", "broken", *lists]):
        kept = f"states/kept-{number}.fli"
        cases.append(
            f"index {source} --no-headers --save {kept} && sha256 {kept} && "
            f"bench {kept} {SMALL} --on-error substitute && index {kept}"
        )
    cases += [
        "index default --save-classes states/names.txt && sha256 states/names.txt",
        "index default",
        "index mixed",
        "index broken",
        "index broken --max-pixels 100000",
        "index odd --labels none",
        "index large",
        "index --list lists/unlike.txt --root default",
    ]
    return cases


def shards():
    kept = f"'tars/*.tar' {SMALL} --index-dir states"
    tars = "'tars/set-{000..002}.tar'"
    readings = [
        "",
        "--labels none",
        "--label-field txt",
        "--label-field cls",
        "--label-json /objects/0/label",
        "--label-json json:/vector",
    ]
    cases = [f"bench {tars} {labels} {SMALL} --index-dir none" for labels in readings]
    cases += [f"index {tars} {labels} --index-dir none" for labels in readings]
    cases += [
        f"bench {tars} --recipe {recipe} --num-workers {n} --batch-size 5 {more} --index-dir none"
        for recipe, n, more in (
            ("train224", 0, "--epochs 2"),
            ("train224", 2, "--epochs 2 --sampler shard-shuffle"),
            ("eval224", 8, "--epochs 2 --rank 1 --world-size 2"),
            ("full", 2, "--sampler sequential"),
            ("train224", 3, "--epochs 8 --kill-workers-every 10"),
        )
    ]
    cases += [
        # The first run reads the source. Later runs read the kept index.
        f"bench {kept} && bench {kept}",
        "copy tars tars-idx && index 'tars-idx/*.tar' --write-idx --index-dir none && "
        "sha256 tars-idx && "
        f"bench 'tars-idx/*.tar' {SMALL} --index-dir none",
        # A damaged header, and a shard without its end.
        "copy tars tars-bad && damage tars-bad/set-001.tar 20 && "
        "cut tars-bad/set-002.tar 300000 && "
        "index 'tars-bad/*.tar' --index-dir none && "
        f"bench 'tars-bad/*.tar' {SMALL} --index-dir none --on-error substitute",
    ]
    return cases


def caches():
    ways = [
        "default --encode copy",
        "default --encode copy --shard-size 500K --shuffle 9",
        "default --encode jpeg:90",
        "default --encode jpeg:60 --resize shorter:100 --shard-size 100K",
        "default --encode raw --resize exact:64x80",
        "default --encode raw --resize longer:120 --shuffle 1",
        "mixed --encode raw --resize exact:96x96",
        "mixed --encode jpeg --resize shorter:128",
        "broken --encode copy --on-error skip",
        "broken --encode raw --on-error skip --resize shorter:64",
        "'tars/*.tar' --label-json /vector --index-dir none --encode copy",
        "'tars/*.tar' --label-field txt --index-dir none --encode jpeg:75",
    ]
    cases = []
    for number, way in enumerate(ways):
        source, options = way.split(" ", 1)
        cache = f"cache-{number}"
        # A cache of copies keeps broken files broken.
        policy = "--on-error substitute" if source == "broken" else ""
        cases.append(
            f"cache build {source} {cache} {options} --num-workers {number % 3} && "
            f"sha256 {cache} && "
            f"cache verify {cache} && cache info {cache} && "
            f"bench {cache} {SMALL} {policy} && "
            f"bench {cache} {policy} --recipe full --num-workers 2 --batch-size 5 --epochs 2 "
            f"--sampler shard-shuffle && cache build {source} {cache} {options}"
        )
    cases += [
        "cache build default cache-bad --encode copy --num-workers 1 && "
        "damage cache-bad/shard-000000.tar 70000 && cache verify cache-bad && "
        f"bench cache-bad {SMALL} --on-error substitute",
        "cache build broken cache-stopped --encode raw --num-workers 2",
        "cache build default cache-other --num-workers 1 && "
        "cache build default cache-other --encode raw && "
        "cache build default cache-other --encode raw --force --num-workers 2 && sha256 cache-other",
        "cache build default cache-killed --encode jpeg:80 --num-workers 2 --kill-workers-every 5 && "
        "sha256 cache-killed",
        "cache verify default",
        "cache verify tars",
    ]
    return cases

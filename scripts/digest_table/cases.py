"""All cases, by group. A case is a line of commands (see `runner`). The line is also its name."""

import cases_of_recipes
import cases_of_runs
import cases_of_scenes
import cases_of_sources
import paddle

INPUTS = [
    "demo default --images 24 --classes 5 && tree default",
    "demo mixed --kind mixed --images 37 --classes 3 && tree mixed",
    "demo large --kind large --images 3 --classes 2 && tree large",
    "demo broken --images 16 --classes 4 --broken && tree broken",
    "demo seeded --images 3 --classes 1 --seed 5 && tree seeded",
    "demo scenes --scene && tree scenes",
    "tree recipes",
    "tree odd",
]


def of_cpu(data):
    """The groups in the order in which they run. The cases of a group run in parallel."""
    pictures = ["default", "mixed", "large"]
    pictures += ["photos"] * bool(data.photos) + ["fox"] * bool(data.fox)
    groups = {
        "presets": cases_of_recipes.presets(pictures),
        "operations": cases_of_recipes.operations(),
        "orders of operations": cases_of_recipes.reorders(pictures),
        "mixing": cases_of_recipes.mixing(),
        "orders of samples": cases_of_runs.samplers(),
        "workers": cases_of_runs.workers(pictures),
        "bad samples": cases_of_runs.bad_samples(),
        # Only in this group are the labels of failed rows in the digest, from the data set or
        # from a mixing operation. `bad samples` has the same runs without labels.
        "labels of failed rows": cases_of_runs.failed_labels(),
        "resume": cases_of_runs.resumes(),
        "lists and indexes": cases_of_sources.indexes(),
        "tar shards": cases_of_sources.shards(),
        "caches": cases_of_sources.caches(),
        "scenes": cases_of_scenes.rays_and_views(data.scenes),
        "plan": cases_of_recipes.plans(pictures),
        "refused": cases_of_recipes.refused(),
    }
    if data.configs and data.photos:
        groups["PaddleClas configs"] = paddle.cases(data)
    shared = [f"tree {name}" for name in data.present()]
    return {"shared inputs": ["tree lists", "tree tars", *shared]} | groups

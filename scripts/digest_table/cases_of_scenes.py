"""Cases of rays and of whole images of the demo's scenes."""

# A multiple of the size of pairs and of patches.
RAYS = "--rays 688 --steps 4 --joining 2"


def rays_and_views(scenes):
    """A few short runs of each scene. Samplers and views run over scenes that tell them apart."""
    cases = []
    for name in scenes:
        cases.append(f"rays scenes/{name} {RAYS} --num-workers 0")
        cases.append(f"views scenes/{name} --steps 6 --num-workers 1")
        cases.append(f"views scenes/{name} --steps 6 --num-workers 0 --undistort --no-shuffle")
    cases += [
        f"rays scenes/{name} {RAYS} {options}"
        for name, options in (
            ("masks", "--num-workers 1 --sampler by-image"),
            ("masks", "--num-workers 0 --no-masks"),
            ("crop-radius", "--num-workers 1 --patches 4 --dilation 2"),
            ("rolling-shutter", "--num-workers 1 --pairs 3 --downscale 2"),
            ("rgba", "--num-workers 2 --alpha --seed 5"),
            ("many", "--num-workers 1 --split eval --rank 1 --world-size 2"),
            ("opencv", "--num-workers 1 --no-depths --memory-limit 1G"),
        )
    ]
    # Long enough that some workers are killed.
    cases.append(
        "rays scenes/rolling-shutter --rays 4096 --steps 600 --num-workers 3 "
        "--kill-workers-every 10"
    )
    cases += [
        f"views scenes/{name} --steps 9 {options}"
        for name, options in (
            ("own-intrinsics", "--num-workers 2 --float --undistort --seed 3"),
            ("rgba", "--num-workers 1 --alpha"),
            ("opencv", "--num-workers 1 --downscale 2 --rank 1 --world-size 2"),
        )
    ]
    return cases

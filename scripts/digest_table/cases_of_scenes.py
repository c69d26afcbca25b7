"""Cases of rays and of whole images of the demo's scenes."""

# Whole pairs and patches.
RAYS = "--rays 688 --steps 4 --joining 2"


def rays_and_views(scenes):
    """Each scene by few short runs; ways to draw and to show by the scenes that tell them apart."""
    cases = []
    for name in scenes:
        cases.append(f"rays scenes/{name} {RAYS} --workers 0")
        cases.append(f"views scenes/{name} --steps 6 --workers 1")
        cases.append(f"views scenes/{name} --steps 6 --workers 0 --undistort --no-shuffle")
    cases += [
        f"rays scenes/{name} {RAYS} {options}"
        for name, options in (
            ("masks", "--workers 1 --sampler by-image"),
            ("masks", "--workers 0 --no-masks"),
            ("crop-radius", "--workers 1 --patches 4 --dilation 2"),
            ("rolling-shutter", "--workers 1 --pairs 3 --downscale 2"),
            ("rgba", "--workers 2 --alpha --seed 5"),
            ("many", "--workers 1 --split eval --rank 1"),
            ("opencv", "--workers 1 --no-depths --memory-limit 1G"),
        )
    ]
    # Long enough that some die.
    cases.append(
        "rays scenes/rolling-shutter --rays 4096 --steps 600 --workers 3 --kill-workers-every 10"
    )
    cases += [
        f"views scenes/{name} --steps 9 {options}"
        for name, options in (
            ("own-intrinsics", "--workers 2 --float --undistort --seed 3"),
            ("rgba", "--workers 1 --alpha"),
            ("opencv", "--workers 1 --downscale 2 --rank 1 --world 2"),
        )
    ]
    return cases

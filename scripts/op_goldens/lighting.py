"""Makes tests/goldens/lighting.tar: AlexNet's colour noise in PaddleClas' units, and in the
usual units.

    lighting.py OUT

OUT/manifest.json   the cases: `alpha`, `eigenvalues`, `eigenvectors`, `unit`, the levels of
                    one `pixel`, the noise `added`, and the resulting pixel as floats
                    (`behind`) and as integers (`whole`)

NumPy computes the noise in float64. featherload's is float32. Needs NumPy.
"""

import json
import sys
from pathlib import Path

import numpy as np

VALUES = [0.2175, 0.0188, 0.0045]
VECTORS = [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]


def main():
    rng = np.random.default_rng(40)
    cases = []
    for i in range(60):
        values, vectors = np.array(VALUES), np.array(VECTORS)
        if i % 3 == 2:
            values, vectors = rng.uniform(0, 2, 3), rng.uniform(-1, 1, (3, 3))
        alpha = rng.normal(0, [0.1, 1.0][i % 2], 3)
        unit = [1.0, 255.0][i // 2 % 2]
        pixel = rng.integers(0, 256, 3).astype(np.uint8)
        added = unit * np.dot(vectors * alpha, values)
        behind = pixel + added
        cases.append(
            {
                "alpha": alpha.tolist(),
                "eigenvalues": values.tolist(),
                "eigenvectors": vectors.tolist(),
                "unit": unit,
                "pixel": pixel.tolist(),
                "added": added.tolist(),
                "behind": behind.tolist(),
                "whole": np.clip(np.rint(behind), 0, 255).astype(int).tolist(),
            }
        )
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{{"by": "NumPy {np.__version__}", "cases": [\n{lines}\n]}}\n'
    Path(sys.argv[1], "manifest.json").write_text(text)
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()

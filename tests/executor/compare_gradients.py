"""compare_gradients.py FIRST SECOND TOLERANCE: exit status 1 unless every tensor of the two folders agrees, the largest
difference being at most TOLERANCE of the tensor's largest value."""
import sys
from pathlib import Path

import numpy as np

first, second, tolerance = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
names = sorted(path.name for path in first.glob("*.npy"))
if not names or names != sorted(path.name for path in second.glob("*.npy")):
    sys.exit(f"{first} and {second} do not hold the same tensors")
worst = 0.0
for name in names:
    a, b = np.load(first / name), np.load(second / name)
    largest = np.abs(a).max()
    if a.shape != b.shape or not largest > 0:
        sys.exit(f"{name}: shapes {a.shape} and {b.shape}, largest value {largest}")
    worst = max(worst, float(np.abs(a.astype(float) - b).max() / largest))
print(f"{len(names)} tensors, largest difference {worst:.2e} of the largest value")
sys.exit(worst > tolerance)

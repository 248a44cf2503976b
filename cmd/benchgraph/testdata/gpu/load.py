"""Takes memory of a GPU and multiplies matrices with PyTorch for some seconds: load.py SECONDS MIB"""

import sys
import time

import torch

seconds, mib = float(sys.argv[1]), int(sys.argv[2])
memory = torch.zeros(mib << 20, device="cuda", dtype=torch.uint8)
n = 8192
kind = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
a = torch.randn(n, n, device="cuda", dtype=kind)
b = torch.randn(n, n, device="cuda", dtype=kind)
for _ in range(3):  # the first ones choose kernels and take memory
    c = a @ b
torch.cuda.synchronize()
done, start = 0, time.monotonic()
while time.monotonic() - start < seconds:
    for _ in range(10):
        c = a @ b
    torch.cuda.synchronize()
    done += 10
took = time.monotonic() - start
print(f"device {torch.cuda.get_device_name()} ({torch.cuda.device_count()} seen), torch {torch.__version__}")
print(f"work done: {done * 2 * n**3 / took / 1e9:.1f} GFLOP/s")

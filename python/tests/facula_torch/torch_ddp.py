"""Two processes train on device ocl; what they learn is printed by the first: torch_ddp.py RANK SIZE FILE."""
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F

import facula.torch
import facula.torch.distributed  # noqa: F401


def net():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def train(model, parts, steps=4):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    g = torch.Generator().manual_seed(5)
    for _ in range(steps):
        x, y = torch.randn(8, 4, generator=g), torch.randint(2, (8,), generator=g)
        opt.zero_grad()
        F.cross_entropy(model(x[parts].to("ocl")), y[parts].to("ocl")).backward()
        opt.step()
    return [p.detach().cpu().tolist() for p in model.parameters()]


if __name__ == "__main__":
    rank, size, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("cpu:gloo,ocl:facula", init_method="file://" + file, rank=rank, world_size=size)
    model = torch.nn.parallel.DistributedDataParallel(net().to("ocl"))
    learned = train(model, slice(rank * 4, rank * 4 + 4))
    total = torch.tensor([float(rank + 1)], device="ocl")
    dist.all_reduce(total)
    dist.barrier()
    if rank == 0:
        print(repr((total.item(), learned)))
    dist.destroy_process_group()

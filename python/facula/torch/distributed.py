"""torch.distributed for tensors of device ocl: gloo between processes, by memory of the host.

    import facula.torch.distributed
    torch.distributed.init_process_group("cpu:gloo,ocl:facula", ...)    # then DistributedDataParallel(model.to("ocl"))
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future
from torch.futures import Future


def _done(result: Any) -> Any:
    """What was waited for already."""
    future: Any = Future()
    future.set_result(result)
    return _create_work_from_future(future)


def _host(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.detach().cpu()
    return [_host(v) for v in x]


def _back(to: Any, contents: Any) -> None:
    if isinstance(to, torch.Tensor):
        to.detach().copy_(contents)
        return
    for t, c in zip(to, contents):
        _back(t, c)


class HostGroup(dist.ProcessGroup):
    """Each call copies to the host, asks gloo, waits, and copies back: in the order of the calls."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self.gloo = dist.ProcessGroupGloo(store, rank, size, timeout)

    def _over(self, call: str, tensors: Any, *rest: Any) -> Any:
        staged = _host(tensors)
        getattr(self.gloo, call)(staged, *rest).wait()
        _back(tensors, staged)
        return _done(tensors)

    def _into(self, call: str, to: Any, given: Any, *rest: Any) -> Any:
        staged = _host(to)
        getattr(self.gloo, call)(staged, _host(given), *rest).wait()
        _back(to, staged)
        return _done(to)

    def allreduce(self, tensors: Any, *opts: Any) -> Any:
        return self._over("allreduce", tensors, *opts)

    def allreduce_coalesced(self, tensors: Any, *opts: Any) -> Any:
        return self._over("allreduce_coalesced", tensors, *opts)

    def broadcast(self, tensors: Any, *opts: Any) -> Any:
        return self._over("broadcast", tensors, *opts)

    def reduce(self, tensors: Any, *opts: Any) -> Any:
        return self._over("reduce", tensors, *opts)

    def allgather(self, to: Any, given: Any, *opts: Any) -> Any:
        return self._into("allgather", to, given, *opts)

    def gather(self, to: Any, given: Any, *opts: Any) -> Any:
        return self._into("gather", to, given, *opts)

    def scatter(self, to: Any, given: Any, *opts: Any) -> Any:
        return self._into("scatter", to, given, *opts)

    def send(self, tensors: Sequence[torch.Tensor], to: int, tag: int) -> Any:
        self.gloo.send(_host(tensors), to, tag).wait()
        return _done(tensors)

    def recv(self, tensors: Any, source: int, tag: int) -> Any:
        return self._over("recv", tensors, source, tag)

    def barrier(self, *args: Any, **opts: Any) -> Any:
        torch.ops.ocl.flush()
        self.gloo.barrier().wait()
        return _done(None)

    def getBackendName(self) -> str:
        return "facula"

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _set_sequence_number_for_group(self) -> None:
        pass


def _create(store: Any, rank: int, size: int, timeout: Any) -> HostGroup:
    return HostGroup(store, rank, size, timeout)


if not hasattr(dist.Backend, "FACULA"):
    dist.Backend.register_backend("facula", _create, devices=["ocl"])

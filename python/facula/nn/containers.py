"""Modules that hold modules."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .module import Module, Parameter


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], Mapping) else \
            ((str(i), m) for i, m in enumerate(modules))
        for name, m in named:
            self.add_module(name, m)

    def forward(self, x: Any) -> Any:
        for m in self._modules.values():
            x = m(x)
        return x

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, i: int | slice) -> Any:
        list_of = list(self._modules.values())
        return Sequential(*list_of[i]) if isinstance(i, slice) else list_of[i]

    def append(self, module: Module) -> Sequential:
        """Puts a module at the end."""
        self.add_module(str(len(self)), module)
        return self


class ModuleList(Module):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for m in modules:
            self.append(m)

    def append(self, module: Module) -> ModuleList:
        """Puts a module at the end."""
        self.add_module(str(len(self._modules)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Puts modules at the end."""
        for m in modules:
            self.append(m)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, i: int) -> Any:
        return list(self._modules.values())[i]


class ModuleDict(Module):
    """A dictionary of modules."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        for name, m in (modules or {}).items():
            self.add_module(name, m)

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs of names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()


class ParameterList(Module):
    """A list of parameters."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        for v in values:
            self._parameters[str(len(self._parameters))] = v if isinstance(v, Parameter) else Parameter(v)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __getitem__(self, i: int) -> Any:
        return list(self._parameters.values())[i]

    def append(self, value: Any) -> ParameterList:
        """One more at the end."""
        self._parameters[str(len(self._parameters))] = value if isinstance(value, Parameter) else Parameter(value)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """More at the end."""
        for v in values:
            self.append(v)
        return self


class ParameterDict(Module):
    """A dictionary of parameters."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        for name, v in (values or {}).items():
            self[name] = v

    def __getitem__(self, name: str) -> Any:
        return self._parameters[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.register_parameter(name, value if isinstance(value, Parameter) else Parameter(value))

    def __contains__(self, name: str) -> bool:
        return name in self._parameters

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def keys(self) -> Any:
        """The names."""
        return self._parameters.keys()

    def items(self) -> Any:
        """Pairs of names and parameters."""
        return self._parameters.items()

    def values(self) -> Any:
        """The parameters."""
        return self._parameters.values()

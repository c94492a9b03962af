"""Modules and parameters with MiniTorch's rules: unknown attributes are None."""


class Module:
    def __init__(self):
        self.__dict__.update(_modules={}, _parameters={}, training=True)

    def modules(self):
        return list(self._modules.values())

    def train(self):
        self.training = True
        for m in self.modules():
            m.train()

    def eval(self):
        self.training = False
        for m in self.modules():
            m.eval()

    def named_parameters(self):
        own = list(self._parameters.items())
        return own + [(f"{n}.{k}", p) for n, m in self._modules.items() for k, p in m.named_parameters()]

    def parameters(self):
        return [p for _, p in self.named_parameters()]

    def add_parameter(self, name, value):
        self._parameters[name] = p = Parameter(value, name)
        return p

    def __setattr__(self, name, value):
        if isinstance(value, Parameter):
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._modules[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        for part in ("_parameters", "_modules"):
            found = self.__dict__.get(part, {})
            if name in found:
                return found[name]
        return None

    def forward(self, *args, **kwargs):
        raise NotImplementedError("a module needs forward()")

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def __repr__(self):
        inner = "".join(f"\n  ({n}): " + repr(m).replace("\n", "\n  ") for n, m in self._modules.items())
        return f"{type(self).__name__}({inner}\n)" if inner else f"{type(self).__name__}()"


class Parameter:
    def __init__(self, x, name=None):
        self.name = name
        self.update(x)

    def update(self, x):
        self.value = x
        if hasattr(x, "requires_grad_"):
            x.requires_grad_(True)
            if self.name:
                x.name = self.name

    def __repr__(self):
        return repr(self.value)

    __str__ = __repr__

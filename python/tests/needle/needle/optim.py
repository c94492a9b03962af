"""The course's optimizers: momentum is (1 - m) of the gradient, weight decay is added to it."""
import facula as fac

from .autograd import Tensor


class Optimizer:
    def __init__(self, params):
        self.params = params

    def reset_grad(self):
        for p in self.params:
            p.grad = None

    def step(self):
        with fac.no_grad():
            for p in self.params:
                if p.grad is not None:
                    p.data = Tensor.of(self.next(p, p.grad.held.detach() + p.held.detach() * self.weight_decay).to(p.held.dtype))


class SGD(Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, weight_decay=0.0):
        super().__init__(params)
        self.lr, self.momentum, self.weight_decay, self.u = lr, momentum, weight_decay, {}

    def next(self, p, grad):
        self.u[p] = self.u.get(p, 0) * self.momentum + grad * (1 - self.momentum)
        return p.held.detach() - self.u[p] * self.lr


class Adam(Optimizer):
    def __init__(self, params, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
        super().__init__(params)
        self.lr, self.beta1, self.beta2, self.eps, self.weight_decay = lr, beta1, beta2, eps, weight_decay
        self.t, self.m, self.v = 0, {}, {}

    def step(self):
        self.t += 1
        super().step()

    def next(self, p, grad):
        self.m[p] = self.m.get(p, 0) * self.beta1 + grad * (1 - self.beta1)
        self.v[p] = self.v.get(p, 0) * self.beta2 + grad * grad * (1 - self.beta2)
        m, v = self.m[p] / (1 - self.beta1 ** self.t), self.v[p] / (1 - self.beta2 ** self.t)
        return p.held.detach() - m * self.lr / (v.sqrt() + self.eps)

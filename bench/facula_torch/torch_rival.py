"""The rival of device "ocl" in a process of its own: a process of PyTorch has one accelerator, and once device ocl is there autograd
no longer runs on cuda.

As a program (python torch_rival.py DEVICE) it answers a line of JSON with one: {"warm": [network, train, batch, numbers, tiny]}
with the seconds that took and a file of the first result, {"turn": seconds} with the times of a turn.
"""
import json
import os
import subprocess
import sys
import tempfile


class Rival:
    """The process; use it in a with statement."""

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, __file__, self.device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"torch_rival.py {self.device} ended with {self.process.wait()}")
        return json.loads(line)


def serve(device):
    import torch
    from torch_work import Work, network, numbers, turn, warm_up
    nets, work, answers = {}, None, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                               # what libraries print is no answer
    torch.backends.cudnn.benchmark = True
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            question = json.loads(line)
            try:
                if "warm" in question:
                    name, train, batch, how, tiny = question["warm"]
                    work = None
                    if device == "cuda":
                        torch.cuda.empty_cache()
                    numbers(how)
                    if name not in nets:
                        torch.manual_seed(0)
                        nets[name] = network(name, tiny=tiny)
                    work = Work(name, nets[name], device, batch, train, how, tiny)
                    result, seconds = warm_up(work)
                    path = os.path.join(folder, "result.pt")
                    torch.save(result, path)
                    answer = {"warm_s": seconds, "result": path}
                else:
                    answer = {"took": turn(work, question["turn"])}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])

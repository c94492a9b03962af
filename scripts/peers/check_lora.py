#!/usr/bin/env python3
"""Compares adapters with peft: what facula trains gives the same logits in peft, what peft saves gives the
same text in facula, and merged weights give those of the adapters.

    python3 scripts/peers/check_lora.py FACULA

Needs torch, transformers, peft and tokenizers.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, GPTNeoXConfig, GPTNeoXForCausalLM,
                          LlamaConfig, LlamaForCausalLM)

CHATML = ("{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
TEXT = "the cat sat on the mat and the dog lay on the log. " * 200
FAMILIES = {
    "llama": (lambda v: LlamaForCausalLM(LlamaConfig(
        vocab_size=v, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128)), "q_proj,v_proj,down_proj"),
    "gpt2": (lambda v: GPT2LMHeadModel(GPT2Config(vocab_size=v, n_embd=64, n_layer=2, n_head=4, n_positions=128)),
             "c_attn,mlp.c_proj"),
    "neox": (lambda v: GPTNeoXForCausalLM(GPTNeoXConfig(
        vocab_size=v, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=128)), "query_key_value"),
}


def tokenizer(folder):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    t.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=300, special_tokens=special, show_progress=False,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML, "eos_token": "<|im_end|>"}))
    return t


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def greedy(model, ids, n):
    with torch.no_grad():
        return model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=n, pad_token_id=0,
                              eos_token_id=-1)[0, len(ids):].tolist()


def generated(facula, model, prompt, n, *more):
    return json.loads(run(facula, "generate", model, prompt, "-n", n, "--temp", 0, "--ignore-eos", "--json", *more))["text"]


def check(facula, name, folder):
    build, targets = FAMILIES[name]
    base = folder / "base"
    base.mkdir()
    torch.manual_seed(0)
    t = tokenizer(base)
    model = build(t.get_vocab_size())
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(3)                   # far from ties
    model.save_pretrained(base)
    (folder / "text.txt").write_text(TEXT)
    ids = t.encode("the cat sat").ids

    # ours in peft
    mine = folder / "mine"
    run(facula, "train", "text", "--data", folder / "text.txt", "--model", base, "--lora", f"r=4,alpha=8,{targets}", "--merge",
        "--context", 32, "--batch", 4, "--steps", 30, "--lr", 1e-2, "--test-batches", 2, "--out", mine, "--json")
    peft = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), mine).eval()
    merged = AutoModelForCausalLM.from_pretrained(mine / "merged").eval()
    with torch.no_grad():
        x = torch.tensor([ids])
        a, b, c = peft(x).logits, merged(x).logits, model.eval()(x).logits
    spread = (a - b).abs().max().item() / a.abs().max().item()
    learned = (a - c).abs().max().item()
    want = t.decode(greedy(peft, ids, 20))
    have = generated(facula, base, "the cat sat", 20, "--lora", mine)
    again = generated(facula, mine / "merged", "the cat sat", 20)

    # peft's in ours
    theirs = folder / "theirs"
    torch.manual_seed(1)
    p = get_peft_model(AutoModelForCausalLM.from_pretrained(base), LoraConfig(
        r=3, lora_alpha=6, target_modules=targets.split(","), fan_in_fan_out=name == "gpt2", task_type="CAUSAL_LM"))
    with torch.no_grad():
        for n, w in p.named_parameters():
            if "lora_" in n:
                w.normal_(0, 0.3)
    p.save_pretrained(theirs)
    other = t.decode(greedy(p.eval(), ids, 20))
    ours = generated(facula, base, "the cat sat", 20, "--lora", theirs)
    good = spread < 1e-5 and learned > 1e-2 and want == have == again and other == ours
    print(f"{name}: merged against adapters {spread:.1e}, changed by {learned:.2f}; ours in peft "
          f"{'the same' if want == have == again else 'DIFFERENT'}, peft's in ours {'the same' if other == ours else 'DIFFERENT'}")
    if not good:
        print(repr(want), repr(have), repr(again), repr(other), repr(ours))
    return good


def check_chats(facula, folder):
    """Answers alone are learned: what is asked never appears in what is said."""
    base = folder / "base"
    base.mkdir()
    torch.manual_seed(0)
    t = tokenizer(base)
    FAMILIES["llama"][0](t.get_vocab_size()).save_pretrained(base)
    (folder / "text.txt").write_text(TEXT)
    first = folder / "first"
    run(facula, "train", "text", "--data", folder / "text.txt", "--model", base, "--context", 32, "--batch", 8,
        "--steps", 200, "--lr", 2e-3, "--test-batches", 2, "--out", first, "--json")
    lines = [{"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": a}]}
             for q, a in (("where is the cat", "on the mat"), ("where is the dog", "on the log"))] * 20
    (folder / "chats.jsonl").write_text("\n".join(map(json.dumps, lines)))
    out = run(facula, "train", "text", "--data", folder / "chats.jsonl", "--model", first, "--lora", "r=16,all-linear",
              "--context", 64, "--batch", 4, "--epochs", 40, "--lr", 5e-3, "--out", folder / "chat", "--json")
    last = json.loads(out.strip().split("\n")[-1])
    said = [generated_chat(facula, first, folder / "chat", q) for q in ("where is the cat", "where is the dog")]
    good = said == ["on the mat", "on the log"]
    print(f"conversations: test loss {last['test_loss']:.3f}, said {said}: {'as learned' if good else 'WRONG'}")
    return good


def generated_chat(facula, base, lora, question):
    prompt = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    return json.loads(run(facula, "generate", base, prompt, "-n", 20, "--temp", 0, "--special", "--json", "--lora", lora))["text"]


def main():
    good = True
    for name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            good &= check(sys.argv[1], name, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        good &= check_chats(sys.argv[1], pathlib.Path(folder))
    return 0 if good else 1


sys.exit(main())

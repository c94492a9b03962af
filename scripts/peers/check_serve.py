#!/usr/bin/env python3
"""facula serve by OpenAI's own client: python scripts/peers/check_serve.py build/facula MODEL.gguf [ENCODER]

    pip install openai numpy

Whole answers and streams, several clients at once against one after the other, seeds, stop texts,
log probabilities, errors, clients that leave; embeddings of an encoder (a folder or a .gguf).
"""
import concurrent.futures
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import openai

KEY = "a key of this test"


class Server:
    def __init__(self, facula, model, *options):
        self.process = subprocess.Popen([facula, "serve", model, "--port", "0", "--api-key", KEY, *options],
                                        stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split(" at ")[-1].strip()
        self.client = openai.OpenAI(base_url=self.url, api_key=KEY, max_retries=0)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        check(self.process.wait(20) == 0, "it ends by Ctrl-C")

    def metrics(self):
        ask = urllib.request.Request(self.url[:-3] + "/metrics", headers={"Authorization": "Bearer " + KEY})
        lines = urllib.request.urlopen(ask).read().decode().split("\n")
        return {line.split()[0]: float(line.split()[1]) for line in lines if line and line[0] != "#"}


def check(ok, what):
    print("ok    " if ok else "FAILED", what)
    if not ok:
        sys.exit(1)


def raises(kind, what, call):
    try:
        call()
    except kind as error:
        return check(True, f"{what}: {str(error)[:100]}")
    check(False, what)


def ask(c, text, **how):
    how = dict(dict(temperature=0, max_tokens=24), **how)
    return c.chat.completions.create(model="any", messages=[{"role": "user", "content": text}], **how)


def streamed(c, text):
    parts = [p for p in ask(c, text, stream=True, stream_options={"include_usage": True})]
    check(parts[-1].usage.completion_tokens > 0 and not parts[-1].choices, "usage comes last")
    return "".join(p.choices[0].delta.content or "" for p in parts if p.choices)


def texts(s):
    c = s.client
    name = c.models.list().data[0].id
    check(c.models.retrieve(name).id == name, f"model {name}")
    a = ask(c, "Count from one to five.")
    check(a.choices[0].message.content and a.usage.total_tokens == a.usage.prompt_tokens + a.usage.completion_tokens,
          a.choices[0].message.content[:60])
    check(streamed(c, "Count from one to five.") == a.choices[0].message.content, "a stream says the same")
    counted = c.completions.create(model="any", prompt="1, 2, 3, 4, 5,", temperature=0, max_tokens=16).choices[0]
    check(counted.text == " 6, 7, 8, 9, 10," and counted.finish_reason == "length", "it counts" + counted.text)
    cut = c.completions.create(model="any", prompt="1, 2, 3, 4, 5,", temperature=0, max_tokens=16, stop=["8"]).choices[0]
    check(cut.text == " 6, 7, " and cut.finish_reason == "stop", "a stop text")
    hot = [ask(c, "Tell me a story.", temperature=1, seed=k).choices[0].message.content for k in (1, 1, 2)]
    check(hot[0] == hot[1] != hot[2], "seeds")
    two = ask(c, "Tell me a story.", temperature=1, seed=1, n=2).choices
    check(two[0].message.content == hot[0] and two[1].message.content == hot[2], "n = 2: seeds 1 and 2")
    likely = ask(c, "Say yes.", logprobs=True, top_logprobs=3).choices[0].logprobs.content
    check(all(len(t.top_logprobs) == 3 and abs(t.logprob - t.top_logprobs[0].logprob) < 1e-6 for t in likely),
          "log probabilities of greedy tokens are the largest")
    banned = c.completions.create(model="any", prompt="1, 2, 3, 4, 5,", temperature=0, max_tokens=2,
                                  logit_bias={"216": -100}).choices[0].text
    check(not banned.startswith(" 6"), "logit_bias")


def shapes(s):
    person = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"},
                                               "city": {"enum": ["Paris", "Rome"]}}, "required": ["name", "age", "city"]}
    for seed in range(3):
        text = ask(s.client, "Describe a person as JSON.", temperature=1, seed=seed, max_tokens=200, response_format={
            "type": "json_schema", "json_schema": {"name": "person", "schema": person}}).choices[0].message.content
        got = json.loads(text)
        check(isinstance(got["age"], int) and len(got["name"]) <= 20 and got["city"] in ("Paris", "Rome"), text.replace("\n", " "))
    text = ask(s.client, "Is ice hot?", extra_body={"grammar": 'root ::= "yes" | "no"'}).choices[0].message.content
    check(text in ("yes", "no"), f"a grammar: {text}")
    raises(openai.BadRequestError, "a grammar that is none", lambda: ask(s.client, "a", extra_body={"grammar": "root ::= a"}))


def at_once(s):
    questions = [f"What is {k} times {k + 2}?" for k in range(8)]
    alone = [ask(s.client, q).choices[0].message.content for q in questions]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda q: "".join(p.choices[0].delta.content or "" for p in
                                                   ask(s.client, q, stream=True)), questions))
    check(alone == together, "eight streams at once say what each says alone")


def errors(s):
    c = s.client
    stranger = openai.OpenAI(base_url=s.url, api_key="another", max_retries=0)
    raises(openai.AuthenticationError, "another key", stranger.models.list)
    raises(openai.BadRequestError, "a temperature of 9", lambda: ask(c, "a", temperature=9))
    raises(openai.BadRequestError, "tools", lambda: ask(c, "a", tools=[{"type": "function", "function": {"name": "f"}}]))
    raises(openai.BadRequestError, "too long a prompt", lambda: ask(c, "word " * 5000))
    raises(openai.NotFoundError, "another path", lambda: c.images.generate(prompt="a"))
    raises(openai.NotFoundError, "another model", lambda: c.models.retrieve("gpt-4"))
    strange = urllib.request.Request(s.url + "/models", headers={"Host": "evil.example", "Authorization": "Bearer " + KEY})
    raises(urllib.error.HTTPError, "another Host", lambda: urllib.request.urlopen(strange))


def leaving(s):
    before = s.metrics()["facula_tokens_total"]
    for _ in range(3):
        stream = ask(s.client, "Write a long story.", stream=True, max_tokens=3000)
        next(iter(stream))
        stream.close()
    for _ in range(100):
        m = s.metrics()
        if not m["facula_sequences_active"]:
            break
        time.sleep(0.1)
    check(m["facula_tokens_total"] - before < 1500, "answers whose clients left were dropped")


def embeddings(facula, model):
    s = Server(facula, model)
    words = ["a cat", "a kitten", "a bill of law"]
    got = s.client.embeddings.create(model="any", input=words)      # base64, as the client asks for
    plain = s.client.embeddings.create(model="any", input=words, encoding_format="float")
    check(max(abs(a - b) for x, y in zip(got.data, plain.data) for a, b in zip(x.embedding, y.embedding)) < 1e-7,
          "base64 and numbers are the same")
    alike = [sum(a * b for a, b in zip(got.data[0].embedding, d.embedding)) for d in got.data]
    check(abs(alike[0] - 1) < 1e-5 and alike[1] > alike[2], f"a cat is {alike[1]:.3f} like a kitten, {alike[2]:.3f} like a bill")
    raises(openai.BadRequestError, "an encoder writes nothing", lambda: ask(s.client, "a"))
    s.stop()


def main():
    facula, model = sys.argv[1:3]
    s = Server(facula, model, "--slots", "4")
    texts(s)
    shapes(s)
    at_once(s)
    errors(s)
    leaving(s)
    s.stop()
    if len(sys.argv) > 3:
        embeddings(facula, sys.argv[3])
    refused = subprocess.run([facula, "serve", model, "--host", "0.0.0.0"], capture_output=True, text=True)
    check(refused.returncode == 1 and "key" in refused.stderr, refused.stderr.strip())


main()

"""A user's script. A type checker must find each line that ends with "# wrong", and no other."""

# ruff: noqa: F401, I001

import torch

import minigpt
from minigpt import GPT, GPTConfig, SampleConfig, TrainConfig, Trainer
from minigpt import Gpt  # wrong


class Mine(GPT):
    def forward(self, token_ids: str) -> str:  # wrong
        return token_ids


gpt = GPT(GPTConfig(300, emb_width=16))  # wrong
gpt.loss(torch.zeros(1, 2))  # wrong
gpt.config.emb_dim = 7  # wrong
SampleConfig(temperature="hot")  # wrong
Trainer(gpt, "my.txt", TrainConfig())  # wrong

text: str = minigpt.train("my.txt", minutes=2)  # wrong
minigpt.laod("runs/my")  # wrong
minigpt.load(3)  # wrong

writer = minigpt.load("runs/my")
writer.generate(prompt=7)  # wrong
writer.generat("Once")  # wrong
writer.next_tokens("Once", k="ten")  # wrong
tokens: int = writer.score("Once").bits_per_byte  # wrong
for piece in writer.stream("Once"):
    print(piece.text)  # wrong
minigpt.attention_maps("runs/my", "Once")  # wrong

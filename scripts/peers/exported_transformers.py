"""Small networks of transformers with random weights, for check_exporters.py."""
import torch
import transformers as hf

from exported_case import torch_cases

WORDS = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=48, max_position_embeddings=64, pad_token_id=0)
DECODER = dict(WORDS, num_key_value_heads=2, head_dim=8, bos_token_id=1, eos_token_id=2)
SEQ2SEQ = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, d_ff=48,
               encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
               decoder_ffn_dim=48, max_position_embeddings=64, pad_token_id=0, bos_token_id=1,
               eos_token_id=2, decoder_start_token_id=1, num_layers=2, num_heads=4, d_kv=8)
SPEECH = dict(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
              intermediate_size=48, conv_dim=(16, 16, 16), conv_stride=(5, 2, 2),
              conv_kernel=(10, 3, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2,
              num_feat_extract_layers=3)
VISION = dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2,
              num_attention_heads=4, intermediate_size=48)


def masked(batch=2, length=7):
    def make():
        mask = torch.ones(batch, length, dtype=torch.int64)
        mask[-1, length - 2:] = 0
        return dict(input_ids=torch.randint(3, 99, (batch, length)), attention_mask=mask)
    return make


def pixels(batch=2, size=32, channels=3):
    return lambda: dict(pixel_values=torch.rand(batch, channels, size, size) * 2 - 1)


def sounds(batch=2, length=800):
    return lambda: dict(input_values=torch.rand(batch, length) * 2 - 1)


def both(batch=2, length=7, answer=5):
    return lambda: dict(input_ids=torch.randint(3, 99, (batch, length)),
                        decoder_input_ids=torch.randint(3, 99, (batch, answer)))


TEXT_OPEN = {n: {0: "batch", 1: "length"} for n in ("input_ids", "attention_mask")}
BOTH_OPEN = dict(TEXT_OPEN, decoder_input_ids={0: "batch", 1: "answer"})


def model_of(kind, **options):
    """A function that makes the network, with eager attention where it can choose."""
    def build():
        known = {n: x for n, x in options.items() if x is not None}
        config = getattr(hf, kind[0])(**known)
        config._attn_implementation = "eager"
        config.use_cache = False
        return getattr(hf, kind[1])(config)
    return build


def past_inputs(layers=2, heads=2, width=8, past=3):
    def make():
        given = dict(input_ids=torch.randint(3, 99, (2, 2)),
                     attention_mask=torch.ones(2, past + 2, dtype=torch.int64))
        for k in range(layers):
            given[f"past_{k}_key"] = torch.randn(2, heads, past, width)
            given[f"past_{k}_value"] = torch.randn(2, heads, past, width)
        return given
    return make


def with_cache(given):
    """Keys and values of the past as the cache that transformers takes."""
    cache = hf.DynamicCache()
    for k in range(sum("key" in n for n in given)):
        cache.update(given[f"past_{k}_key"], given[f"past_{k}_value"], k)
    rest = {n: x for n, x in given.items() if not n.startswith("past_")}
    return dict(rest, past_key_values=cache, use_cache=True)


ENCODERS = """Bert Roberta Albert Electra Deberta DebertaV2 MPNet MobileBert SqueezeBert RoFormer
    ConvBert ModernBert Esm FNet Nystromformer RemBert XLMRobertaXL MegatronBert Splinter Ernie
    BigBird Longformer IBert Camembert RobertaPreLayerNorm NomicBert LayoutLM""".split()
DECODERS = """GPT2 GPTNeo GPTNeoX GPTJ OPT Bloom Llama Mistral Mixtral Qwen2 Qwen3 Qwen2Moe Phi Phi3
    Gemma Gemma2 Falcon StableLm Starcoder2 Olmo Olmo2 Cohere Granite Mamba Mamba2 FalconMamba Rwkv
    Glm SmolLM3 GptOss XGLM CodeGen Persimmon BioGpt Nemotron RecurrentGemma Lfm2 Mpt
    GPTBigCode Bamba Jamba Zamba2 DeepseekV3 Exaone4 Helium Arcee DiffLlama CTRL""".split()
SEQ2SEQS = """T5 MT5 UMT5 Bart MBart Pegasus Marian M2M100 Blenderbot LongT5 LED ProphetNet
    SwitchTransformers FSMT PegasusX BlenderbotSmall""".split()
SPEECHES = """Wav2Vec2 Hubert WavLM UniSpeech SEW SEWD Wav2Vec2Conformer Data2VecAudio
    UniSpeechSat""".split()
MORE = {
    "Deberta": dict(relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=8),
    "DebertaV2": dict(relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=4,
                      share_att_key=True, norm_rel_ebd="layer_norm"),
    "Albert": dict(embedding_size=16), "Electra": dict(embedding_size=16),
    "RoFormer": dict(embedding_size=32, rotary_value=True),
    "MobileBert": dict(embedding_size=32, intra_bottleneck_size=16, num_feedforward_networks=2),
    "SqueezeBert": dict(embedding_size=32), "ConvBert": dict(embedding_size=16),
    "ModernBert": dict(local_attention=4, global_attn_every_n_layers=2, cls_token_id=1,
                       sep_token_id=2, bos_token_id=1, eos_token_id=2),
    "RemBert": dict(input_embedding_size=16, output_embedding_size=16),
    "Nystromformer": dict(num_landmarks=4, segment_means_seq_len=16),
    "BigBird": dict(attention_type="original_full"), "Longformer": dict(attention_window=[4, 4]),
    "NomicBert": dict(head_dim=8),
    "GPTNeo": dict(num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
                   window_size=4),
    "GPTJ": dict(rotary_dim=4), "CodeGen": dict(rotary_dim=4, n_ctx=64),
    "OPT": dict(ffn_dim=48, word_embed_proj_dim=32), "Bloom": dict(n_layer=2, n_head=4),
    "Mpt": dict(d_model=32, n_layers=2, n_heads=4, max_seq_len=64, expansion_ratio=2),
    "Mixtral": dict(num_local_experts=4), "GptOss": dict(num_local_experts=4,
                                                         num_experts_per_tok=2, sliding_window=4),
    "Qwen2Moe": dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24,
                     shared_expert_intermediate_size=24),
    "Falcon": dict(head_dim=None), "Mamba": dict(state_size=4), "FalconMamba": dict(state_size=4),
    "Mamba2": dict(state_size=8, num_heads=8, head_dim=8, n_groups=2, chunk_size=4),
    "Rwkv": dict(attention_hidden_size=32, context_length=64),
    "XGLM": dict(d_model=32, num_layers=2, attention_heads=4, ffn_dim=48),
    "Gemma2": dict(sliding_window=4, query_pre_attn_scalar=8),
    "RecurrentGemma": dict(lru_width=32, attention_window_size=4),
    "DeepseekV3": dict(n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1,
                       kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8,
                       v_head_dim=8, moe_intermediate_size=24, first_k_dense_replace=1,
                       num_key_value_heads=4),
    "Lfm2": dict(layer_types=["conv", "full_attention"], block_multiple_of=8),
    "Jamba": dict(attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2,
                  expert_layer_offset=1, num_experts=2, mamba_d_state=4, mamba_dt_rank=4,
                  use_mamba_kernels=False),
    "Bamba": dict(mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=8,
                  attn_layer_indices=[1], mamba_chunk_size=4),
    "Zamba2": dict(mamba_d_state=8, mamba_headdim=8, chunk_size=4, num_mem_blocks=1,
                   use_mem_rope=True, num_hidden_layers=2,
                   layers_block_type=["mamba", "hybrid"]),
    "CTRL": dict(n_embd=32, dff=48, n_layer=2, n_head=4),
    "GPTBigCode": dict(n_embd=32, n_layer=2, n_head=4),
    "GPT2": dict(n_embd=32, n_layer=2, n_head=4), "LongT5": dict(local_radius=3),
    "LED": dict(attention_window=[4, 4], max_encoder_position_embeddings=64,
                max_decoder_position_embeddings=64),
    "SwitchTransformers": dict(num_experts=4, num_sparse_encoder_layers=1,
                               num_sparse_decoder_layers=1, expert_capacity=8),
    "ProphetNet": dict(hidden_size=32, num_encoder_layers=2, num_decoder_layers=2,
                       num_encoder_attention_heads=4, num_decoder_attention_heads=4),
    "FSMT": dict(langs=["en", "de"], src_vocab_size=99, tgt_vocab_size=99),
    "SEW": dict(squeeze_factor=2), "SEWD": dict(squeeze_factor=2, position_buckets=8),
    "Data2VecAudio": dict(conv_pos_kernel_size=5, num_conv_pos_embeddings=2),
}
for name in "GPTJ", "CodeGen":
    MORE[name] = dict(MORE[name], n_embd=32, n_layer=2, n_head=4, n_inner=48, n_positions=64)


def text_cases():
    for name in ENCODERS:
        yield name, (name + "Config", name + "Model"), dict(WORDS, **MORE.get(name, {})), \
            masked(), masked(1, 8), TEXT_OPEN, {}
    for name in DECODERS:
        heads = {"GPT2": "GPT2LMHeadModel", "CTRL": "CTRLLMHeadModel"}
        head = heads.get(name, name + "ForCausalLM")
        yield name, (name + "Config", head), dict(DECODER, **MORE.get(name, {})), \
            masked(), masked(1, 8), TEXT_OPEN, {}
    for name in SEQ2SEQS:
        head = {"Marian": "MarianMTModel"}.get(name, name + "ForConditionalGeneration")
        yield name, (name + "Config", head), dict(SEQ2SEQ, **MORE.get(name, {})), \
            both(), both(1, 8, 6), BOTH_OPEN, {}
    for name in SPEECHES:
        yield name, (name + "Config", name + "ForCTC"), dict(SPEECH, **MORE.get(name, {})), \
            sounds(), sounds(1, 960), {"input_values": {0: "batch", 1: "samples"}}, {}
    for name, base in ("Llama", {}), ("Qwen3", {}), ("Gemma2", MORE["Gemma2"]):
        names = past_inputs()()
        opened = {n: {0: "batch", 2: "past"} for n in names if n.startswith("past")}
        opened.update(input_ids={0: "batch", 1: "length"}, attention_mask={0: "batch", 1: "all"})
        yield name + "-past", (name + "Config", name + "ForCausalLM"), dict(DECODER, **base), \
            past_inputs(), past_inputs(past=5), opened, dict(prepare=with_cache, kept=True)


def cases():
    for name, kind, options, inputs, other, opened, more in text_cases():
        yield from torch_cases("transformers", name, model_of(kind, **options), inputs, other,
                               opened, **more)

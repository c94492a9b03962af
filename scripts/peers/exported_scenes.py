"""Networks of transformers that segment what is pointed at or named, tell depth and poses, watch
films, and hear: small, with random weights."""
import torch
import transformers as hf
from exported_case import torch_cases
from exported_vision import SEES, VISION, model_of, one_tower, pixels, text_and_pixels

SWIN = dict(image_size=64, patch_size=4, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4],
            window_size=4, out_features=["stage1", "stage2", "stage3", "stage4"])
STAGES = ["stage1", "stage2", "stage3", "stage4"]


def pointed():
    return dict(pixel_values=torch.rand(1, 3, 64, 64), input_points=torch.rand(1, 1, 2, 2) * 64)


def film():
    return dict(pixel_values=torch.rand(1, 4, 3, 32, 32))


def picture():
    return dict(inputs=torch.rand(1, 3, 32, 32))


def spoken():
    return dict(input_values=torch.randn(1, 2000), decoder_input_ids=torch.randint(3, 99, (1, 5)))


def sound():
    return dict(input_values=torch.randn(1, 1, 320))


def segmenting():
    yield "sam", ("SamConfig", "SamModel"), dict(
        vision_config=hf.SamVisionConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=64, mlp_dim=48,
            patch_size=8, output_channels=16, window_size=4, global_attn_indexes=[1],
            num_pos_feats=8).to_dict(),
        prompt_encoder_config=hf.SamPromptEncoderConfig(
            hidden_size=16, image_size=64, patch_size=8, mask_input_channels=4).to_dict(),
        mask_decoder_config=hf.SamMaskDecoderConfig(
            hidden_size=16, mlp_dim=32, num_hidden_layers=1, num_attention_heads=2,
            iou_head_hidden_dim=16).to_dict()), pointed
    yield "clipseg", ("CLIPSegConfig", "CLIPSegForImageSegmentation"), dict(
        one_tower("CLIPSeg", {}, SEES), extract_layers=[0, 1], reduce_dim=16,
        decoder_num_attention_heads=2, decoder_intermediate_size=32), text_and_pixels
    yield "mask2former", ("Mask2FormerConfig", "Mask2FormerForUniversalSegmentation"), dict(
        backbone_config=hf.SwinConfig(**SWIN), feature_size=32, mask_feature_size=32, hidden_dim=32,
        encoder_feedforward_dim=48, encoder_layers=1, decoder_layers=2, num_attention_heads=2,
        dim_feedforward=48, num_queries=5, num_labels=4), pixels(1, 64)


def measuring():
    yield "zoedepth", ("ZoeDepthConfig", "ZoeDepthForDepthEstimation"), dict(
        backbone_config=hf.BeitConfig(**dict(VISION, num_hidden_layers=4), out_features=STAGES,
                                      reshape_hidden_states=False,
                                      use_relative_position_bias=True),
        neck_hidden_sizes=[8, 16, 16, 16], fusion_hidden_size=16, bottleneck_features=16,
        num_relative_features=8, num_patch_transformer_layers=1, patch_transformer_hidden_size=16,
        patch_transformer_intermediate_size=32, patch_transformer_num_attention_heads=2,
        bin_embedding_dim=16, num_attractors=[2, 2, 2, 2]), pixels(1, 32)
    yield "vitpose", ("VitPoseConfig", "VitPoseForPoseEstimation"), dict(
        backbone_config=hf.VitPoseBackboneConfig(
            image_size=[32, 32], patch_size=[8, 8], hidden_size=32, num_hidden_layers=2,
            num_attention_heads=2, out_indices=[2]), num_labels=5), pixels(1, 32)
    yield "perceiver", ("PerceiverConfig", "PerceiverForImageClassificationLearned"), dict(
        num_latents=8, d_latents=16, d_model=16, num_blocks=1, num_self_attends_per_block=1,
        num_self_attention_heads=2, num_cross_attention_heads=1, image_size=32,
        num_labels=5), picture


def watching():
    tubes = dict(VISION, num_frames=4)
    yield "videomae", ("VideoMAEConfig", "VideoMAEForVideoClassification"), \
        dict(tubes, tubelet_size=2), film
    yield "vivit", ("VivitConfig", "VivitForVideoClassification"), \
        dict(tubes, tubelet_size=[2, 8, 8]), film
    yield "timesformer", ("TimesformerConfig", "TimesformerForVideoClassification"), tubes, film


def hearing():
    yield "moonshine", ("MoonshineConfig", "MoonshineForConditionalGeneration"), dict(
        vocab_size=99, hidden_size=32, intermediate_size=48, encoder_num_hidden_layers=1,
        decoder_num_hidden_layers=1, encoder_num_attention_heads=2,
        decoder_num_attention_heads=2), spoken
    yield "dac", ("DacConfig", "DacModel"), dict(
        encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=32, n_codebooks=2,
        codebook_size=16, codebook_dim=4, hidden_size=32), sound


def cases():
    for networks in segmenting, measuring, watching, hearing:
        for name, kind, options, inputs in networks():
            yield from torch_cases("transformers", name, model_of(kind, options), inputs)

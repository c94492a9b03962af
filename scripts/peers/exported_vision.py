"""Small networks of transformers that see, hear or forecast, for check_exporters.py."""
import torch
import transformers as hf

from exported_case import torch_cases
from exported_transformers import SPEECH, VISION, WORDS, pixels

TOWER = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
TEXT_TOWER = dict(WORDS, projection_dim=16, eos_token_id=98, bos_token_id=1)
SEES = dict(VISION, projection_dim=16)
STAGES = dict(image_size=64, hidden_sizes=[16, 24, 32, 32], depths=[1, 1, 1, 1],
              num_attention_heads=[1, 2, 2, 4], embed_dim=16, encoder_hidden_size=32)


def backbone(**more):
    return hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1],
                           layer_type="basic", **more)


def finder(**more):
    return dict(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, d_model=32,
                encoder_layers=1, decoder_layers=2, encoder_ffn_dim=48, decoder_ffn_dim=48,
                encoder_attention_heads=4, decoder_attention_heads=4, num_queries=6, num_labels=5,
                backbone_config=backbone(out_features=["stage4"]), **more)


def rt_finder():
    return dict(backbone_config=backbone(out_features=["stage2", "stage3", "stage4"]),
                encoder_hidden_dim=32, encoder_in_channels=[16, 16, 32], encoder_ffn_dim=48,
                feat_strides=[8, 16, 32], encoder_layers=1, encoder_attention_heads=2, d_model=32,
                num_queries=6, decoder_in_channels=[32, 32, 32], decoder_ffn_dim=48,
                decoder_layers=2, decoder_attention_heads=2, num_denoising=0, num_labels=5,
                anchor_image_size=None, hidden_expansion=0.5, use_timm_backbone=False,
                use_pretrained_backbone=False)


def seen(*kind, size=32, channels=3, **options):
    return kind, options, pixels(2, size, channels), pixels(1, size, channels), \
        {"pixel_values": {0: "batch"}}


def text_and_pixels():
    return dict(input_ids=torch.randint(3, 98, (2, 7)), pixel_values=torch.rand(2, 3, 32, 32),
                attention_mask=torch.ones(2, 7, dtype=torch.int64))


def spectra(batch=2, length=40, bins=16, name="input_features"):
    return lambda: {name: torch.randn(batch, bins, length)}


def heard(batch=2):
    return lambda: dict(input_features=torch.randn(batch, 16, 40),
                        decoder_input_ids=torch.randint(3, 99, (batch, 5)))


def series(batch=2):
    return lambda: dict(past_values=torch.randn(batch, 32, 3))


def one_tower(config, tower, vision):
    return {"text_config": getattr(hf, config + "TextConfig")(**TEXT_TOWER).to_dict(),
            "vision_config": getattr(hf, config + "VisionConfig")(**vision).to_dict(),
            "projection_dim": 16, **tower}


def networks():
    plain = dict(VISION, num_labels=5)
    yield "vit", seen("ViTConfig", "ViTForImageClassification", **plain)
    yield "deit", seen("DeiTConfig", "DeiTForImageClassification", **plain)
    yield "beit", seen("BeitConfig", "BeitForImageClassification", **plain,
                       use_relative_position_bias=True)
    yield "data2vec", seen("Data2VecVisionConfig", "Data2VecVisionModel", **plain,
                           use_shared_relative_position_bias=True)
    yield "dinov2", seen("Dinov2Config", "Dinov2ForImageClassification", size=40,
                         **dict(plain, mlp_ratio=2))
    yield "dinov2-registers", seen("Dinov2WithRegistersConfig", "Dinov2WithRegistersModel", **plain)
    yield "dinov3", seen("DINOv3ViTConfig", "DINOv3ViTModel", **plain)
    yield "ijepa", seen("IJepaConfig", "IJepaModel", **plain)
    yield "swin", seen("SwinConfig", "SwinForImageClassification", size=64, image_size=64,
                       patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
    yield "swinv2", seen("Swinv2Config", "Swinv2ForImageClassification", size=64, image_size=64,
                         patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
    yield "swin2sr", seen("Swin2SRConfig", "Swin2SRForImageSuperResolution", size=16, image_size=16,
                          embed_dim=16, depths=[2], num_heads=[2], window_size=4, upscale=2)
    yield "convnext", seen("ConvNextConfig", "ConvNextForImageClassification", **STAGES)
    yield "convnextv2", seen("ConvNextV2Config", "ConvNextV2ForImageClassification", **STAGES)
    yield "segformer", seen("SegformerConfig", "SegformerForSemanticSegmentation", size=64,
                            hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], num_labels=5,
                            num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16)
    yield "detr", seen("DetrConfig", "DetrForObjectDetection", size=64, **finder())
    yield "detr-segments", seen("DetrConfig", "DetrForSegmentation", size=64,
                                **dict(finder(), encoder_attention_heads=8,
                                       decoder_attention_heads=8))
    yield "conditional-detr", seen("ConditionalDetrConfig", "ConditionalDetrForObjectDetection",
                                   size=64, **finder())
    yield "table-transformer", seen("TableTransformerConfig", "TableTransformerForObjectDetection",
                                    size=64, **finder())
    yield "dab-detr", seen("DabDetrConfig", "DabDetrForObjectDetection", size=64,
                           **finder(hidden_size=32))
    deformable = dict(finder(num_feature_levels=3, encoder_n_points=2, decoder_n_points=2),
                      backbone_config=backbone(out_features=["stage2", "stage3", "stage4"]))
    yield "deformable-detr", seen("DeformableDetrConfig", "DeformableDetrForObjectDetection",
                                  size=64, **deformable)
    yield "rt-detr", seen("RTDetrConfig", "RTDetrForObjectDetection", size=64, **rt_finder())
    yield "rt-detr-v2", seen("RTDetrV2Config", "RTDetrV2ForObjectDetection", size=64, **rt_finder())
    yield "d-fine", seen("DFineConfig", "DFineForObjectDetection", size=64, **rt_finder())
    yield "yolos", seen("YolosConfig", "YolosForObjectDetection",
                        **dict(plain, image_size=[32, 32], num_detection_tokens=5))
    yield "mobilevit", seen("MobileViTConfig", "MobileViTForSemanticSegmentation", size=64,
                            image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=2,
                            neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32])
    yield "mobilevitv2", seen("MobileViTV2Config", "MobileViTV2ForImageClassification", size=64,
                              image_size=64, base_attn_unit_dims=[16, 24, 32],
                              n_attn_blocks=[1, 1, 1])
    yield "mobilenet-v1", seen("MobileNetV1Config", "MobileNetV1ForImageClassification",
                               depth_multiplier=0.25)
    yield "mobilenet-v2", seen("MobileNetV2Config", "MobileNetV2ForSemanticSegmentation", size=64,
                               depth_multiplier=0.25)
    yield "poolformer", seen("PoolFormerConfig", "PoolFormerForImageClassification",
                             hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1])
    yield "cvt", seen("CvtConfig", "CvtForImageClassification", embed_dim=[8, 16, 32],
                      num_heads=[1, 2, 4], depth=[1, 1, 2])
    yield "levit", seen("LevitConfig", "LevitForImageClassification", size=64, image_size=64,
                        hidden_sizes=[16, 24, 32], num_attention_heads=[2, 2, 2],
                        depths=[1, 1, 1], key_dim=[8, 8, 8])
    yield "dpt", seen("DPTConfig", "DPTForDepthEstimation", is_hybrid=False, fusion_hidden_size=16,
                      neck_hidden_sizes=[8, 16, 16, 16], backbone_out_indices=[0, 0, 1, 1],
                      reassemble_factors=[2, 1, 1, 0.5], **VISION)
    yield "glpn", seen("GLPNConfig", "GLPNForDepthEstimation", size=64, depths=[1, 1, 1, 1],
                       hidden_sizes=[8, 16, 16, 32], num_attention_heads=[1, 2, 2, 4],
                       decoder_hidden_size=16)
    yield "depth-anything", seen(
        "DepthAnythingConfig", "DepthAnythingForDepthEstimation", size=56, patch_size=14,
        backbone_config=hf.Dinov2Config(image_size=56, patch_size=14, out_indices=[1, 2, 3, 4],
                                        reshape_hidden_states=False, apply_layernorm=True,
                                        **{**TOWER, "num_hidden_layers": 4}),
        reassemble_hidden_size=32, neck_hidden_sizes=[8, 16, 16, 16], fusion_hidden_size=16,
        head_hidden_size=8)
    yield "efficientnet", seen("EfficientNetConfig", "EfficientNetForImageClassification", size=64,
                               image_size=64, width_coefficient=0.25, depth_coefficient=0.25,
                               hidden_dim=80)
    yield "focalnet", seen("FocalNetConfig", "FocalNetForImageClassification", size=64,
                           image_size=64, embed_dim=16, depths=[1, 1], focal_levels=[2, 2],
                           focal_windows=[3, 3], hidden_sizes=[16, 32])
    yield "regnet", seen("RegNetConfig", "RegNetForImageClassification", embedding_size=8,
                         hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], groups_width=8)
    yield "pvt", seen("PvtConfig", "PvtForImageClassification", size=64, image_size=64,
                      hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1])
    yield "pvt-v2", seen("PvtV2Config", "PvtV2ForImageClassification", size=64,
                         hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1],
                         num_attention_heads=[1, 2, 2, 4])
    yield "swiftformer", seen("SwiftFormerConfig", "SwiftFormerForImageClassification", size=64,
                              depths=[1, 1, 1, 1], embed_dims=[8, 16, 16, 32])
    yield "hiera", seen("HieraConfig", "HieraForImageClassification", size=64, image_size=[64, 64],
                        embed_dim=8, num_heads=[1, 1, 2, 2], depths=[1, 1, 1, 1])
    yield "hgnet", seen("HGNetV2Config", "HGNetV2ForImageClassification", size=64)
    yield "bit", seen("BitConfig", "BitForImageClassification", embedding_size=8, num_groups=4,
                      hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1])
    all_stages = backbone(out_features=["stage1", "stage2", "stage3", "stage4"])
    yield "upernet", seen("UperNetConfig", "UperNetForSemanticSegmentation", size=64,
                          hidden_size=16, backbone_config=all_stages, use_auxiliary_head=False)
    yield "superpoint", seen("SuperPointConfig", "SuperPointForKeypointDetection", size=64,
                             encoder_hidden_sizes=[8, 8, 8, 8], decoder_hidden_size=8,
                             keypoint_decoder_dim=65, descriptor_decoder_dim=8)
    yield "vitmatte", seen("VitMatteConfig", "VitMatteForImageMatting", channels=4, size=64,
                           backbone_config=hf.VitDetConfig(
                               image_size=64, patch_size=16, num_channels=4, window_size=2,
                               window_block_indices=[0], residual_block_indices=[],
                               use_relative_position_embeddings=True, out_features=["stage2"],
                               **TOWER),
                           hidden_size=32, fusion_hidden_sizes=[16, 8, 8, 4],
                           convstream_hidden_sizes=[8, 8, 8])
    yield "clip", (("CLIPConfig", "CLIPModel"), one_tower("CLIP", {}, SEES), text_and_pixels, None,
                   None)
    yield "siglip", (("SiglipConfig", "SiglipModel"), one_tower("Siglip", {}, SEES),
                     text_and_pixels, None, None)
    yield "blip", (("BlipConfig", "BlipForImageTextRetrieval"), one_tower("Blip", {}, SEES),
                   text_and_pixels, None, None)
    yield "vilt", (("ViltConfig", "ViltModel"), dict(VISION, vocab_size=99), text_and_pixels, None,
                   None)
    yield "owlvit", (("OwlViTConfig", "OwlViTForObjectDetection"), one_tower("OwlViT", {}, SEES),
                     lambda: dict(text_and_pixels(), attention_mask=torch.ones(2, 7).long()), None,
                     None)
    yield "whisper", (("WhisperConfig", "WhisperForConditionalGeneration"),
                      dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2,
                           encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                           decoder_ffn_dim=48, num_mel_bins=16, max_source_positions=20,
                           max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           decoder_start_token_id=1), heard(), heard(1),
                      {"input_features": {0: "batch"}, "decoder_input_ids": {0: "batch"}})
    yield "ast", (("ASTConfig", "ASTForAudioClassification"),
                  dict(TOWER, num_mel_bins=16, max_length=40, patch_size=8, frequency_stride=4,
                       time_stride=4), lambda: dict(input_values=torch.randn(2, 40, 16)), None,
                  None)
    yield "encodec", (("EncodecConfig", "EncodecModel"),
                      dict(num_filters=4, hidden_size=16, upsampling_ratios=[4, 2],
                           codebook_size=16, codebook_dim=16, num_lstm_layers=1),
                      lambda: dict(input_values=torch.randn(1, 1, 320)), None, None)
    yield "patchtst", (("PatchTSTConfig", "PatchTSTForPrediction"),
                       dict(num_input_channels=3, context_length=32, patch_length=8, patch_stride=8,
                            d_model=16, num_attention_heads=2, ffn_dim=24, prediction_length=4,
                            num_hidden_layers=2), series(), series(1), None)
    yield "patchtsmixer", (("PatchTSMixerConfig", "PatchTSMixerForPrediction"),
                           dict(num_input_channels=3, context_length=32, patch_length=8,
                                patch_stride=8, d_model=16, num_layers=2, prediction_length=4),
                           series(), None, None)


def model_of(kind, options):
    def build():
        config = getattr(hf, kind[0])(**options)
        config._attn_implementation = "eager"
        return getattr(hf, kind[1])(config)
    return build


def cases():
    for name, (kind, options, inputs, other, opened) in networks():
        yield from torch_cases("transformers", name, model_of(kind, options), inputs,
                               other if opened else None, opened)

"""Blocks of image generators from diffusers, small and with random weights: denoisers, autoencoders,
control networks, transformers that denoise."""
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import diffusers  # noqa: E402
import torch  # noqa: E402
from exported_case import torch_cases  # noqa: E402

BLOCKS = dict(block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4)
LATENT = dict(in_channels=4, sample_size=8, **BLOCKS)
CROSS = dict(cross_attention_dim=12, attention_head_dim=4)
DOWN, UP = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")


class First(torch.nn.Module):
    """A network whose answer is a tuple, of which the first is wanted."""
    def __init__(self, network, call=None):
        super().__init__()
        self.network = network
        self.call = call

    def forward(self, **given):
        call = getattr(self.network, self.call) if self.call else self.network
        result = call(**given, return_dict=False)
        return result[0] if isinstance(result, tuple) else result


def denoised(channels=4, text=None, size=8, **more):
    """Inputs of a denoiser: the picture, the step, what it is about."""
    def make():
        given = dict(sample=torch.randn(2, channels, size, size), timestep=torch.tensor([7, 300]))
        if text:
            given["encoder_hidden_states"] = torch.randn(2, 5, text)
        return dict(given, **{n: torch.randn(*d) for n, d in more.items()})
    return make


def latents(channels=4, size=8, name="hidden_states", **more):
    def make():
        given = {name: torch.randn(2, channels, size, size)}
        return dict(given, **{n: v() for n, v in more.items()})
    return make


def steps():
    return torch.tensor([7, 300])


def reals(*shape):
    return lambda: torch.randn(*shape)


def denoisers():
    yield "unet", lambda: diffusers.UNet2DModel(
        in_channels=3, out_channels=3, sample_size=16, attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), **BLOCKS), denoised(3, size=16)
    yield "unet-skips", lambda: diffusers.UNet2DModel(
        in_channels=3, out_channels=3, sample_size=16, attention_head_dim=4,
        time_embedding_type="fourier", down_block_types=("SkipDownBlock2D", "AttnSkipDownBlock2D"),
        up_block_types=("AttnSkipUpBlock2D", "SkipUpBlock2D"), layers_per_block=1,
        block_out_channels=(32, 64)), denoised(3, size=16)
    yield "unet-text", lambda: diffusers.UNet2DConditionModel(
        out_channels=4, down_block_types=DOWN, up_block_types=UP, **LATENT, **CROSS), \
        denoised(text=12)
    yield "unet-linear", lambda: diffusers.UNet2DConditionModel(
        out_channels=4, down_block_types=DOWN, up_block_types=UP, use_linear_projection=True,
        transformer_layers_per_block=2, resnet_time_scale_shift="scale_shift", **LATENT,
        **CROSS), denoised(text=12)
    yield "unet-simple", lambda: diffusers.UNet2DConditionModel(
        out_channels=4, mid_block_type="UNetMidBlock2DSimpleCrossAttn",
        down_block_types=("SimpleCrossAttnDownBlock2D", "ResnetDownsampleBlock2D"),
        up_block_types=("ResnetUpsampleBlock2D", "SimpleCrossAttnUpBlock2D"), **LATENT,
        **CROSS), denoised(text=12)
    yield "unet-3d", lambda: diffusers.UNet3DConditionModel(
        out_channels=4, down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"), **LATENT, **CROSS), \
        lambda: dict(sample=torch.randn(1, 4, 3, 8, 8), timestep=torch.tensor([7]),
                     encoder_hidden_states=torch.randn(1, 5, 12))
    yield "control", lambda: diffusers.ControlNetModel(
        down_block_types=DOWN, conditioning_embedding_out_channels=(4, 8), in_channels=4, **BLOCKS,
        **CROSS), denoised(text=12, controlnet_cond=(2, 3, 16, 16))


def transformers():
    patches = dict(patch_size=2, num_attention_heads=2, attention_head_dim=8, num_layers=1)
    yield "dit", lambda: diffusers.DiTTransformer2DModel(
        in_channels=4, sample_size=8, num_embeds_ada_norm=10, norm_num_groups=4, **patches), \
        latents(timestep=steps, class_labels=lambda: torch.tensor([1, 3]))
    yield "pixart", lambda: diffusers.PixArtTransformer2DModel(
        in_channels=4, out_channels=8, sample_size=8, caption_channels=12, cross_attention_dim=16,
        norm_num_groups=4, **patches), latents(timestep=steps,
                                                encoder_hidden_states=reals(2, 5, 12))
    yield "sd3", lambda: diffusers.SD3Transformer2DModel(
        in_channels=4, out_channels=4, sample_size=8, joint_attention_dim=12,
        caption_projection_dim=16, pooled_projection_dim=10, pos_embed_max_size=8, **patches), \
        latents(timestep=steps, encoder_hidden_states=reals(2, 5, 12),
                pooled_projections=reals(2, 10))
    yield "flux", lambda: diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=8, num_layers=1, num_single_layers=1, attention_head_dim=8,
        num_attention_heads=2, joint_attention_dim=12, pooled_projection_dim=10,
        axes_dims_rope=(2, 2, 4)), \
        lambda: dict(hidden_states=torch.randn(1, 16, 8), timestep=torch.tensor([0.5]),
                     encoder_hidden_states=torch.randn(1, 5, 12),
                     pooled_projections=torch.randn(1, 10), img_ids=torch.rand(16, 3) * 4,
                     txt_ids=torch.zeros(5, 3))
    yield "sana", lambda: diffusers.SanaTransformer2DModel(
        in_channels=4, out_channels=4, sample_size=8, num_cross_attention_heads=2,
        cross_attention_head_dim=8, cross_attention_dim=16, caption_channels=12,
        **dict(patches, patch_size=1)), latents(timestep=steps,
                                                 encoder_hidden_states=reals(2, 5, 12))
    yield "auraflow", lambda: diffusers.AuraFlowTransformer2DModel(
        sample_size=8, in_channels=4, out_channels=4, num_mmdit_layers=1, num_single_dit_layers=1,
        joint_attention_dim=12, caption_projection_dim=16, pos_embed_max_size=32, patch_size=2,
        num_attention_heads=2, attention_head_dim=8), \
        latents(timestep=steps, encoder_hidden_states=reals(2, 5, 12))


def autoencoders():
    kl = dict(in_channels=3, out_channels=3, latent_channels=4, norm_num_groups=4,
              block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2,
              up_block_types=("UpDecoderBlock2D",) * 2)
    picture = latents(3, 16, "x")
    yield "vae-encode", lambda: Means(diffusers.AutoencoderKL(**kl)), picture
    yield "vae-decode", lambda: First(diffusers.AutoencoderKL(**kl), "decode"), \
        latents(4, 8, "z")
    yield "vae-tiny", lambda: First(diffusers.AutoencoderTiny(
        encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8),
        num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1), latent_channels=4,
        upsampling_scaling_factor=2)), latents(3, 16, "sample")
    yield "vq", lambda: First(diffusers.VQModel(
        block_out_channels=(8, 16), norm_num_groups=4, num_vq_embeddings=20, latent_channels=3,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)), \
        latents(3, 16, "sample")
    yield "vae-dc", lambda: First(diffusers.AutoencoderDC(
        latent_channels=4, attention_head_dim=2, encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"), encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8), encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)), encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=(1, 1), downsample_block_type="conv",
        upsample_block_type="interpolate", decoder_norm_types="rms_norm",
        decoder_act_fns="silu")), latents(3, 16, "sample")


class Means(torch.nn.Module):
    """What an encoder says before chance comes in."""
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network.encode(x).latent_dist.mode()


def cases():
    for name, build, inputs in denoisers():
        yield from torch_cases("diffusers", name, lambda b=build: First(b()), inputs)
    for name, build, inputs in transformers():
        yield from torch_cases("diffusers", name, lambda b=build: First(b()), inputs)
    for name, build, inputs in autoencoders():
        yield from torch_cases("diffusers", name, build, inputs)

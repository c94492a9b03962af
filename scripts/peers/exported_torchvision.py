"""Networks of torchvision with random weights and small pictures, for check_exporters.py."""
import torch
import torchvision
from torchvision.models import detection, optical_flow, segmentation, video

from exported_case import torch_cases

CLASSIFIERS = dict(
    alexnet=64, densenet121=32, efficientnet_b0=32, efficientnet_v2_s=32, googlenet=32,
    inception_v3=96, maxvit_t=224, mnasnet0_5=32, mobilenet_v2=32, mobilenet_v3_small=32,
    regnet_x_400mf=32, regnet_y_400mf=32, resnet18=32, resnext50_32x4d=32, shufflenet_v2_x0_5=32,
    squeezenet1_1=32, swin_t=64, swin_v2_t=64, vgg11_bn=32, vit_b_32=32, convnext_tiny=32,
    wide_resnet50_2=32)
WIDE = {"maxvit_t", "wide_resnet50_2"}          # by one exporter: they take long
DETECTORS = ["fasterrcnn_mobilenet_v3_large_320_fpn", "maskrcnn_resnet50_fpn",
             "keypointrcnn_resnet50_fpn", "retinanet_resnet50_fpn", "fcos_resnet50_fpn",
             "ssdlite320_mobilenet_v3_large", "ssd300_vgg16"]
VIDEOS = dict(r3d_18=(4, 32), mc3_18=(4, 32), r2plus1d_18=(4, 32), s3d=(16, 64),
              mvit_v2_s=(16, 64), swin3d_t=(4, 32))


class Named(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)


class Pictures(Named):
    """Detectors take a list of pictures."""
    def forward(self, x):
        return self.network([x])


class Pairs(Named):
    def forward(self, x, y):
        return self.network(x, y)[-1]


def classifier(name, size):
    more = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if name.startswith("vit"):
        more = {"image_size": size}
    return lambda: Named(getattr(torchvision.models, name)(weights=None, **more))


def video_network(name, frames, size):
    more = {"spatial_size": (size, size), "temporal_size": frames} if "mvit" in name else {}
    if "mvit" in name:
        blocks = [video.mvit.MSBlockConfig(1, 96, 96, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 4, 4]),
                  video.mvit.MSBlockConfig(2, 96, 192, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2])]
        return lambda: Named(video.MViT(spatial_size=(size, size), temporal_size=frames,
                                        block_setting=blocks, residual_pool=True,
                                        residual_with_cls_embed=False, rel_pos_embed=True,
                                        proj_after_attn=True))
    return lambda: Named(getattr(video, name)(weights=None, **more))


def images(n, size):
    return lambda: dict(x=torch.rand(n, 3, size, size))


def cases():
    opened = {"x": {0: "batch"}}
    for name, size in CLASSIFIERS.items():
        more = {"exporters": ("dynamo",)} if name in WIDE else {}
        yield from torch_cases("torchvision", name, classifier(name, size), images(2, size),
                               images(1, size), opened, **more)
    for name in "fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large":
        yield from torch_cases("torchvision", name, lambda n=name: Named(getattr(segmentation, n)(
            weights=None, weights_backbone=None)), images(1, 64), images(2, 64), opened)
    for name in DETECTORS:
        more = {} if "ssd" in name else {"min_size": 96, "max_size": 128}
        yield from torch_cases("torchvision", name, lambda n=name, m=more: Pictures(
            getattr(detection, n)(weights=None, weights_backbone=None, num_classes=5, **m)),
            lambda: dict(x=torch.rand(3, 96, 96)))
    for name, (frames, size) in VIDEOS.items():
        yield from torch_cases("torchvision", name, video_network(name, frames, size),
                               lambda f=frames, s=size: dict(x=torch.rand(1, 3, f, s, s)))
    yield from torch_cases("torchvision", "raft_small", lambda: Pairs(optical_flow.raft_small(
        weights=None)), lambda: dict(x=torch.rand(1, 3, 128, 128), y=torch.rand(1, 3, 128, 128)),
        exporters=("script",))

"""Models of skl2onnx, ONNX Runtime's quantizer and optimizer, and converters of TensorFlow."""
import contextlib
import functools
import io
import os
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from exported_case import Case, numbers

room = tempfile.TemporaryDirectory()      # gone with the process


@functools.cache
def base(source, name, exporter="script"):
    """The file of another source's model, and its runs."""
    import importlib
    module = importlib.import_module("exported_" + source)
    case = next(c for c in module.cases() if c.name == name and c.exporter == exporter)
    path = os.path.join(room.name, f"{source}-{name}-{exporter}.onnx")
    return path, case.write(path)


def unit(path):
    """Two units of the largest scale that the last operators have: floats in between may round."""
    model = onnx.load(path)
    inits = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    scales = [inits[n.input[1]] for n in model.graph.node
              if n.op_type == "DequantizeLinear" and inits.get(n.input[1], np.ones(2)).size == 1]
    return 2.01 * float(scales[-1]) if scales else 0


def silently(f, *args, **more):
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        return f(*args, **more)


# ONNX Runtime's quantizer

class Reader:
    def __init__(self, runs):
        self.feeds = iter(runs)

    def get_next(self):
        return next(self.feeds, None)


def fed(path, runs):
    names = {i.name for i in onnx.load(path, load_external_data=False).graph.input}
    return [{n: x for n, x in r.items() if n in names} for r in runs]


def prepared(source, name):
    """As the quantizer wants its models: shapes inferred, constants folded."""
    from onnxruntime.quantization.shape_inference import quant_pre_process
    path, runs = base(source, name)
    ready = path[:-5] + ".ready.onnx"
    if not os.path.exists(ready):
        silently(quant_pre_process, path, ready, skip_symbolic_shape=True)
    return ready, fed(ready, runs)


def static(source, name, form, activations, weights, more, path):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    ready, runs = prepared(source, name)
    silently(quantize_static, ready, path, Reader(runs), quant_format=QuantFormat[form],
             activation_type=QuantType[activations], weight_type=QuantType[weights], **more)
    return runs


def dynamic(source, name, weights, more, path):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    ready, runs = prepared(source, name)
    silently(quantize_dynamic, ready, path, weight_type=QuantType[weights], **more)
    return runs


def blocks(source, name, more, path):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    ready, runs = prepared(source, name)
    q = MatMulNBitsQuantizer(onnx.load(ready), **more)
    silently(q.process)
    q.model.save_model_to_file(path)
    return runs


def quantized():
    bases = [("torch", "unet"), ("torch", "conv1d"), ("torch", "lstm"), ("torch", "transposed"),
             ("torch", "encoder"), ("transformers", "Bert"), ("torchvision", "mobilenet_v2"),
             ("torchvision", "mobilenet_v3_small"), ("torchvision", "shufflenet_v2_x0_5"),
             ("torchvision", "squeezenet1_1"), ("transformers", "GPT2")]
    forms = [("QDQ", "QUInt8", "QInt8", dict(per_channel=True, reduce_range=True)),
             ("QDQ", "QInt8", "QInt8", dict(extra_options={"ActivationSymmetric": True})),
             ("QOperator", "QUInt8", "QInt8", dict(reduce_range=True)),
             ("QDQ", "QUInt16", "QInt8", dict(extra_options={"UseQDQContribOps": True}))]
    for source, name in bases:
        for form in forms:
            yield Case("others", name, "-".join(form[:3]),
                       functools.partial(static, source, name, *form), unit)
        yield Case("others", name, "dynamic", functools.partial(dynamic, source, name, "QInt8", {}),
                   lambda path: 2e-2)
        yield Case("others", name, "dynamic-QUInt8", functools.partial(
            dynamic, source, name, "QUInt8", dict(per_channel=True)), lambda path: 2e-2)
    for source, name in ("torch", "encoder"), ("transformers", "Bert"), ("transformers", "Llama"):
        for more in dict(block_size=16), dict(block_size=32, is_symmetric=True), \
                dict(block_size=16, bits=8):
            label = "blocks-" + "-".join(str(v) for v in more.values())
            yield Case("others", name, label, functools.partial(blocks, source, name, more))


# ONNX Runtime's optimizers

def optimized(source, name, exporter, level, path):
    made, runs = base(source, name, exporter)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = path
    onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    return fed(path, runs)


def fused(source, name, exporter, kind, half, path):
    from onnxruntime.transformers import optimizer
    made, runs = base(source, name, exporter)
    model = silently(optimizer.optimize_model, made, model_type=kind, num_heads=4, hidden_size=32,
                     opt_level=0)
    if half:
        silently(model.convert_float_to_float16, keep_io_types=True)
    model.save_model_to_file(path)
    return fed(path, runs)


def rewritten():
    bases = [("torch", n) for n in ("unet", "conv1d", "lstm", "transposed", "encoder", "sizes",
                                    "activations", "windows")] + \
        [("transformers", n) for n in ("Bert", "GPT2", "Llama", "Qwen3-past", "T5", "Deberta",
                                       "Bart", "Wav2Vec2", "Mixtral")] + \
        [("torchvision", n) for n in ("mobilenet_v3_small", "swin_t", "convnext_tiny",
                                      "shufflenet_v2_x0_5")]
    for source, name in bases:
        for exporter in "script", "dynamo":
            yield Case("others", name, f"optimized-{exporter}", functools.partial(
                optimized, source, name, exporter, "ORT_ENABLE_EXTENDED"))
        yield Case("others", name, "optimized-all", functools.partial(
            optimized, source, name, "script", "ORT_ENABLE_ALL"))
    for name, kind in [("Bert", "bert"), ("Roberta", "bert"), ("GPT2", "gpt2"), ("T5", "t5"),
                       ("Bart", "bart"), ("Llama", "gpt2"), ("Llama", "phi"),
                       ("GPTNeoX", "gpt_neox"),
                       ("Qwen3", "qwen3"), ("Llama-past", "gpt2"), ("Wav2Vec2", "bert"),
                       ("Wav2Vec2Conformer", "conformer"), ("vit", "vit"), ("clip", "clip"),
                       ("swin", "swin")]:
        for exporter in "script", "dynamo":
            yield Case("others", name, f"fused-{kind}-{exporter}", functools.partial(
                fused, "transformers", name, exporter, kind, False))
    for name, kind in ("Bert", "bert"), ("GPT2", "gpt2"), ("T5", "t5"):
        yield Case("others", name, f"half-{kind}", functools.partial(
            fused, "transformers", name, "script", kind, True), lambda path: 2e-2)


# As tf2onnx writes what TensorFlow Lite quantized: pictures in NHWC with transposes around

def tf_network(kind, path):
    """Q/DQ around each operator, weights in bytes, relu6 as a clip."""
    nodes, inits, n = [], [], [0]

    def put(name, x):
        inits.append(numpy_helper.from_array(np.asarray(x), name))
        return name

    def node(op, inputs, **more):
        n[0] += 1
        nodes.append(helper.make_node(op, inputs, [f"v{n[0]}"], **more))
        return f"v{n[0]}"

    kind_of = np.int8 if kind.endswith("s8") else np.uint8

    def through(x, scale, zero):
        k = n[0]
        s, z = put(f"s{k}", np.float32(scale)), put(f"z{k}", kind_of(zero))
        return node("DequantizeLinear", [node("QuantizeLinear", [x, s, z]), s, z])

    def weights(shape, axis):
        k, r = n[0], np.random.RandomState(n[0])
        w = put(f"w{k}", r.randint(-63, 64, shape).astype(np.int8))
        s = put(f"ws{k}", r.uniform(0.002, 0.01, shape[axis]).astype(np.float32))
        z = put(f"wz{k}", np.zeros(shape[axis], np.int8))
        return node("DequantizeLinear", [w, s, z], axis=axis)

    def conv(x, c, k, r, stride, group=1):
        b = put(f"b{n[0]}", numbers(k, n[0]) * 0.1)
        y = node("Conv", [x, weights((k, c // group, r, r), 0), b], strides=[stride] * 2,
                 kernel_shape=[r, r], auto_pad="SAME_UPPER", group=group)
        low, high = put(f"lo{n[0]}", np.float32(0)), put(f"hi{n[0]}", np.float32(6))
        return through(node("Clip", [y, low, high]), 6 / 255, -128 if kind_of is np.int8 else 0)

    middle = 0 if kind_of is np.int8 else 128
    x = through("x", 1 / 127, middle)
    x = node("Transpose", [x], perm=[0, 3, 1, 2])
    x = conv(x, 3, 8, 3, 2)
    y = conv(x, 8, 8, 3, 1, 8)
    y = conv(y, 8, 8, 1, 1)
    x = through(node("Add", [x, y]), 12 / 255, -128 if kind_of is np.int8 else 0)
    if kind.startswith("resize"):
        sizes = put("sizes", np.array([1, 8, 14, 18], np.int64))
        y = node("Resize", [x, "", "", sizes], mode="linear",
                 coordinate_transformation_mode="half_pixel")
        y = through(y, 12 / 255, -128 if kind_of is np.int8 else 0)
        z = through(node("AveragePool", [y], kernel_shape=[2, 2], strides=[2, 2],
                         count_include_pad=0), 12 / 255, -128 if kind_of is np.int8 else 0)
        y = through(node("Concat", [x, z], axis=1), 12 / 255, -128 if kind_of is np.int8 else 0)
        y = node("Transpose", [y], perm=[0, 2, 3, 1])
        y = through(node("Sigmoid", [y]), 1 / 256, -128 if kind_of is np.int8 else 0)
    else:
        y = through(node("GlobalAveragePool", [x]), 12 / 255, -128 if kind_of is np.int8 else 0)
        y = node("Reshape", [y, put("flat", np.array([-1, 8], np.int64))])
        y = node("MatMul", [y, weights((8, 10), 1)])
        y = through(node("Add", [y, put("fb", numbers(10))]), 0.02, middle)
        y = through(node("Softmax", [y]), 1 / 256, -128 if kind_of is np.int8 else 0)
    nodes[-1].output[0] = "y"
    shape = [1, 14, 18, 3]
    graph = helper.make_graph(nodes, kind, [helper.make_tensor_value_info("x", 1, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], inits)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8),
              path)
    return [{"x": numbers(shape, k)} for k in range(2)]


def tensorflow():
    for kind in "classify-u8", "classify-s8", "resize-u8", "resize-s8":
        sigmoid = kind.startswith("resize")     # a byte of 12/255 before, at its steepest
        yield Case("others", kind, "tf", functools.partial(tf_network, kind),
                   (lambda path: 1.01 * 12 / 255 / 4) if sigmoid else unit)


# scikit-learn

def learned(name, build, path):
    from skl2onnx import to_onnx
    from sklearn import datasets
    regress = name.endswith("Regressor") or name in ("Ridge", "SVR", "GaussianProcess")
    make = datasets.make_regression if regress else datasets.make_classification
    more = {} if regress else dict(n_informative=5, n_classes=3)
    x, y = make(200, 8, random_state=1, **more)
    x = x.astype("f")
    if name.endswith("NB"):
        x = np.abs(x)
    model = build().fit(x, y)
    onnx.save(to_onnx(model, x[:1], target_opset={"": 18, "ai.onnx.ml": 3}), path)
    feed = onnx.load(path).graph.input[0].name
    return [{feed: x[:40]}, {feed: x[:1]}]


def scikit():
    from sklearn import (cluster, decomposition, discriminant_analysis, ensemble, feature_selection,
                         linear_model, mixture, naive_bayes, neighbors,
                         neural_network, pipeline, preprocessing, svm, tree)
    pipe, linear = pipeline.make_pipeline, linear_model.LogisticRegression
    models = [
        ensemble.AdaBoostClassifier, ensemble.BaggingClassifier, ensemble.IsolationForest,
        lambda: ensemble.VotingClassifier([("a", linear()), ("b", tree.DecisionTreeClassifier())],
                                          flatten_transform=False),
        lambda: ensemble.StackingClassifier([("a", linear()), ("b", naive_bayes.GaussianNB())]),
        neighbors.KNeighborsClassifier, neighbors.KNeighborsRegressor,
        cluster.KMeans, mixture.GaussianMixture,
        decomposition.PCA, decomposition.TruncatedSVD,
        discriminant_analysis.LinearDiscriminantAnalysis,
        lambda: discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
        naive_bayes.BernoulliNB, naive_bayes.MultinomialNB, naive_bayes.ComplementNB,
        preprocessing.PowerTransformer,
        lambda: preprocessing.KBinsDiscretizer(encode="ordinal"),
        preprocessing.PolynomialFeatures, svm.NuSVC, svm.OneClassSVM,
        linear_model.Perceptron, linear_model.BayesianRidge,
        linear_model.RidgeClassifierCV, neural_network.MLPRegressor, ensemble.AdaBoostRegressor,
        lambda: pipe(preprocessing.QuantileTransformer(n_quantiles=20), linear()),
        lambda: pipe(preprocessing.RobustScaler(), feature_selection.SelectKBest(k=4), svm.SVC()),
        lambda: pipe(preprocessing.Normalizer(), preprocessing.Binarizer(), linear())]
    for k, build in enumerate(models):
        name = getattr(build, "__name__", "")
        name = f"pipeline{k}" if "lambda" in name else name
        yield Case("others", name, "skl2onnx", functools.partial(learned, name, build))


def cases():
    yield from tensorflow()
    try:
        yield from scikit()
    except ImportError as e:
        print(f"skipped: scikit-learn: {e}")
    yield from quantized()
    yield from rewritten()

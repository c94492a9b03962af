#!/usr/bin/env python3
"""Compares random models of ai.onnx.ml with ONNX Runtime: check_ml.py build/facula [--seed N] [--rounds N] [--keep DIR].

Each operator is drawn with random attributes and run on random rows, by facula, by ONNX Runtime, and by facula again from the
file that `facula export` makes of it.  Where scikit-learn and skl2onnx are there, models that these make are compared too."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper as h

from onnx_case import write

POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
TYPES = {"f": T.FLOAT, "d": T.DOUBLE, "q": T.INT64, "i": T.INT32, "U": T.STRING, "O": T.STRING}


def tree(r, depth, features, modes, node, out, tree_id):
    """Appends a random tree to the lists in `out`; returns the number of its root."""
    me = node[0]
    node[0] += 1
    at = len(out["nodes_nodeids"])
    for k in out:
        if k.startswith("nodes_"):
            out[k].append(0)
    out["nodes_nodeids"][at] = me
    out["nodes_treeids"][at] = tree_id
    if depth == 0 or r.random() < 0.1:
        out["nodes_modes"][at] = "LEAF"
        out["nodes_values"][at] = 0.0
        out["leaves"].append((tree_id, me))
        return me
    out["nodes_modes"][at] = modes[r.integers(len(modes))]
    out["nodes_featureids"][at] = int(r.integers(features))
    out["nodes_values"][at] = float(np.float32(r.integers(-3, 4) / 2))
    out["nodes_missing_value_tracks_true"][at] = int(r.integers(2))
    out["nodes_truenodeids"][at] = tree(r, depth - 1, features, modes, node, out, tree_id)
    out["nodes_falsenodeids"][at] = tree(r, depth - 1, features, modes, node, out, tree_id)
    return me


def trees(r, count, depth, features):
    modes = ["BRANCH_LEQ"] if r.random() < 0.4 else ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ",
                                                     "BRANCH_NEQ"]
    out = {k: [] for k in ["nodes_nodeids", "nodes_treeids", "nodes_modes", "nodes_featureids", "nodes_values",
                           "nodes_missing_value_tracks_true", "nodes_truenodeids", "nodes_falsenodeids", "leaves"]}
    for t in range(count):
        tree(r, depth, features, modes, [0], out, t)
    return out


def rows(r, features, kind="f"):
    n = int(r.integers(1, 40))
    x = (r.integers(-4, 5, (n, features)) / 2).astype(kind)
    if kind in "fd" and r.random() < 0.3:
        x[r.random(x.shape) < 0.1] = np.nan
    return x


def votes(r, nodes, classes, prefix, only=None):
    leaves = nodes.pop("leaves")
    ids, t, n, w = [], [], [], []
    for tree_id, node in leaves:
        for c in ([only] if only is not None else range(classes)):
            t.append(tree_id), n.append(node), ids.append(c)
            w.append(float(np.float32(r.normal())))
    return {prefix + "_treeids": t, prefix + "_nodeids": n, prefix + "_ids": ids, prefix + "_weights": w}


def labels(r, classes):
    if r.random() < 0.5:
        return {"ints": [int(v) for v in r.permutation(50)[:classes]]}
    return {"strings": ["class %d" % v for v in r.permutation(50)[:classes]]}


def regressor(r):
    features, targets = int(r.integers(1, 6)), int(r.integers(1, 4))
    a = trees(r, int(r.integers(1, 12)), int(r.integers(0, 5)), features)
    a.update(votes(r, a, targets, "target"))
    a.update(n_targets=targets, aggregate_function=["SUM", "AVERAGE", "MIN", "MAX"][r.integers(4)],
             post_transform=POSTS[r.integers(4)])
    if r.random() < 0.5:
        a["base_values"] = [float(v) for v in r.normal(size=targets).astype("f")]
    return "TreeEnsembleRegressor", a, [rows(r, features)], 1


def classifier(r):
    features, classes = int(r.integers(1, 6)), int(r.integers(2, 5))
    only = int(r.integers(2)) if classes == 2 and r.random() < 0.7 else None
    a = trees(r, int(r.integers(1, 12)), int(r.integers(0, 5)), features)
    a.update(votes(r, a, classes, "class", only))
    if only is not None and r.random() < 0.5:
        a["class_weights"] = [abs(v) / 4 for v in a["class_weights"]]
    l = labels(r, classes)
    a.update({"classlabels_int64s" if "ints" in l else "classlabels_strings": list(l.values())[0]})
    a["post_transform"] = POSTS[r.integers(4)]
    if r.random() < 0.3 and classes > 2:
        a["base_values"] = [float(v) for v in r.normal(size=classes).astype("f")]
    return "TreeEnsembleClassifier", a, [rows(r, features, "fdqi"[r.integers(4)])], 2


def linear_regressor(r):
    features, targets = int(r.integers(1, 6)), int(r.integers(1, 4))
    a = dict(coefficients=list(map(float, r.normal(size=features * targets).astype("f"))), targets=targets,
             post_transform=POSTS[r.integers(4)])
    if r.random() < 0.7:
        a["intercepts"] = list(map(float, r.normal(size=targets).astype("f")))
    return "LinearRegressor", a, [rows(r, features)], 1


def linear_classifier(r):
    features, classes = int(r.integers(1, 6)), int(r.integers(2, 5))
    scores = 1 if classes == 2 and r.random() < 0.5 else classes
    l = labels(r, classes)
    a = dict(coefficients=list(map(float, r.normal(size=features * scores).astype("f"))),
             intercepts=list(map(float, r.normal(size=scores).astype("f"))), post_transform=POSTS[r.integers(4)])
    a["classlabels_" + list(l)[0]] = list(l.values())[0]
    return "LinearClassifier", a, [np.nan_to_num(rows(r, features))], 2


def kernel(r):
    kind = ["LINEAR", "POLY", "RBF", "SIGMOID"][r.integers(4)]
    return dict(kernel_type=kind, kernel_params=[0.25, 0.5, float(r.integers(1, 4))])


def svm_regressor(r):
    features, n = int(r.integers(1, 6)), int(r.integers(1, 20))
    a = dict(coefficients=list(map(float, r.normal(size=n).astype("f"))), rho=[float(np.float32(r.normal()))], n_supports=n,
             support_vectors=list(map(float, r.normal(size=n * features).astype("f"))), **kernel(r))
    if r.random() < 0.3:
        a["one_class"] = 1
    return "SVMRegressor", a, [np.nan_to_num(rows(r, features))], 1


def svm_classifier(r):
    features, classes = int(r.integers(1, 6)), int(r.integers(2, 5))
    per = [int(v) for v in r.integers(1, 6, classes)]
    n, pairs = sum(per), classes * (classes - 1) // 2
    l = labels(r, classes)
    a = dict(coefficients=list(map(float, r.normal(size=n * (classes - 1)).astype("f"))), vectors_per_class=per,
             rho=list(map(float, r.normal(size=pairs).astype("f"))),
             support_vectors=list(map(float, r.normal(size=n * features).astype("f"))), **kernel(r))
    a["classlabels_" + list(l)[0]] = list(l.values())[0]
    if r.random() < 0.5:
        a.update(prob_a=list(map(float, -abs(r.normal(size=pairs)).astype("f"))),
                 prob_b=list(map(float, r.normal(size=pairs).astype("f"))))
    return "SVMClassifier", a, [np.nan_to_num(rows(r, features))], 2


def scaler(r):
    f = int(r.integers(1, 5))
    n = 1 if r.random() < 0.3 else f
    return "Scaler", dict(offset=list(map(float, r.normal(size=n))), scale=list(map(float, r.normal(size=n)))), [
        rows(r, f, "fdqi"[r.integers(4)])], 1


def normalizer(r):
    return "Normalizer", dict(norm=["MAX", "L1", "L2"][r.integers(3)]), [
        np.nan_to_num(rows(r, int(r.integers(1, 5)), "fdqi"[r.integers(4)]))], 1


def imputer(r):
    f = int(r.integers(1, 5))
    n = 1 if r.random() < 0.3 else f
    if r.random() < 0.5:
        return "Imputer", dict(imputed_value_int64s=[int(v) for v in r.integers(5, 9, n)], replaced_value_int64=1), [
            rows(r, f, "q")], 1
    return "Imputer", dict(imputed_value_floats=list(map(float, r.normal(size=n))),
                           replaced_value_float=float("nan") if r.random() < 0.5 else 0.5), [rows(r, f)], 1


def binarizer(r):
    return "Binarizer", dict(threshold=0.5), [np.nan_to_num(rows(r, 3))], 1


def one_hot(r):
    if r.random() < 0.5:
        x = np.array([["a", "b", "c"][v] for v in r.integers(3, size=7)], dtype=object).reshape(7, 1)
        return "OneHotEncoder", dict(cats_strings=["b", "a"]), [x], 1
    return "OneHotEncoder", dict(cats_int64s=[3, -1, 0], zeros=1), [
        np.nan_to_num(rows(r, 2, "fdqi"[r.integers(4)])).clip(-3, 3)], 1


def label_encoder(r):
    texts, ints = ["x", "y", "z"], [4, 5, 6]
    reals = [0.5, float("nan"), -1.0]
    kinds = {"strings": texts, "int64s": ints, "floats": reals}
    key = list(kinds)[r.integers(3)]
    value = list(kinds)[r.integers(3)]
    x = {"strings": np.array([["x", "y", "w"][v] for v in r.integers(3, size=6)], dtype=object),
         "int64s": r.integers(3, 8, 6), "floats": np.array([0.5, np.nan, 3, -1], "f")}[key]
    return "LabelEncoder", {"keys_" + key: kinds[key], "values_" + value: list(kinds[value][::-1])}, [x], 1


def category_mapper(r):
    x = np.array(["x", "y", "w"], dtype=object) if r.random() < 0.5 else np.array([1, 2, 9])
    return "CategoryMapper", dict(cats_strings=["x", "y"], cats_int64s=[1, 2]), [x], 1


def extractor(r):
    f = int(r.integers(1, 6))
    return "ArrayFeatureExtractor", {}, [rows(r, f, "fdqi"[r.integers(4)]), r.integers(f, size=int(r.integers(1, 5)))], 1


def vectorizer(r):
    n = int(r.integers(1, 6))
    sizes = [int(v) for v in r.integers(1, 4, 2)]
    return "FeatureVectorizer", dict(inputdimensions=sizes), [r.normal(size=(n, s)).astype("f") for s in sizes], 1


MAKERS = [regressor, classifier, linear_regressor, linear_classifier, svm_regressor, svm_classifier, scaler, normalizer, imputer,
          binarizer, one_hot, label_encoder, category_mapper, extractor, vectorizer]


def model_of(op, attrs, inputs, nout):
    ins = [h.make_tensor_value_info("x%d" % k, TYPES[x.dtype.kind if x.dtype.kind in "UO" else x.dtype.char.replace("l", "q")],
                                    ["N%d" % k] + list(x.shape[1:])) for k, x in enumerate(inputs)]
    outs = [onnx.ValueInfoProto(name="y%d" % k) for k in range(nout)]
    node = h.make_node(op, [i.name for i in ins], [o.name for o in outs], domain="ai.onnx.ml", **attrs)
    graph = h.make_graph([node], "g", ins, outs)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18), h.make_opsetid("ai.onnx.ml", 4)], ir_version=8)


def facula(binary, path, inputs, names, outs, folder):
    command = [binary, "run", path]
    for name, x in zip(names, inputs):
        file = os.path.join(folder, name + ".npy")
        np.save(file, x.astype("U") if x.dtype.kind == "O" else x)
        command += ["--input", "%s=%s" % (name, file)]
    for k, o in enumerate(outs):
        command += ["--output", "%s=%s" % (o, os.path.join(folder, "out%d.npy" % k))]
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode:
        return None, r.stderr.strip()
    return [np.load(os.path.join(folder, "out%d.npy" % k)) for k in range(len(outs))], ""


def differs(got, want, tolerance):
    want = np.asarray(want)
    if want.dtype.kind in "UO":
        return None if np.array_equal(got.astype(str), want.astype(str)) else "%s, not %s" % (got.ravel()[:4], want.ravel()[:4])
    if got.shape != want.shape or got.dtype != want.dtype:
        return "%s %s, not %s %s" % (got.dtype, got.shape, want.dtype, want.shape)
    if want.dtype.kind != "f":
        return None if np.array_equal(got, want) else "%s, not %s" % (got.ravel()[:4], want.ravel()[:4])
    ok = np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    return None if ok else "off by %g" % np.nanmax(np.abs(got - want))


def check(binary, model, inputs, what, folder, tolerance, keep=None):
    path, again = os.path.join(folder, "m.onnx"), os.path.join(folder, "again.onnx")
    onnx.save(model, path)
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception as e:          # it has not every element type
        if "NOT_IMPLEMENTED" in str(e):
            return True
        raise
    names = [i.name for i in session.get_inputs()]
    outs = [o.name for o in session.get_outputs()]
    want = session.run(None, dict(zip(names, inputs)))
    want = [np.array([list(m.values()) for m in w], "f") if isinstance(w, list) else w for w in want]
    if keep:
        write(os.path.join(keep, what.replace(" ", "").replace(",", "-")), model, dict(zip(names, inputs)), want)
    faults = []
    for way, file in (("read", path), ("exported", again)):
        if way == "exported":
            r = subprocess.run([binary, "export", path, "-o", again], capture_output=True, text=True)
            if r.returncode:
                if "pairwise_coupling" not in r.stderr:
                    faults.append("export: " + r.stderr.strip())
                continue
        got, why = facula(binary, file, inputs, names, outs, folder)
        if got is None:
            faults.append("%s: %s" % (way, why))
            continue
        for o, g, w in zip(outs, got, want):
            d = differs(g, w, tolerance)
            if d:
                faults.append("%s: %s %s" % (way, o, d))
    for f in faults:
        print("%s: %s" % (what, f))
    return not faults


def learned(seed):
    """Models of scikit-learn, as skl2onnx writes them."""
    try:
        import warnings
        import sklearn.datasets as data
        from sklearn import ensemble, linear_model, naive_bayes, neural_network, pipeline, preprocessing, svm, tree as trees_
        from skl2onnx import to_onnx
    except ImportError:
        print("skipped: scikit-learn, skl2onnx")
        return
    warnings.simplefilter("ignore")
    for classes in (2, 3):
        x, y = data.make_classification(300, 8, n_informative=5, n_classes=classes, random_state=seed)
        x = x.astype("f")
        for m in (ensemble.RandomForestClassifier(20, random_state=seed), ensemble.GradientBoostingClassifier(n_estimators=20),
                  ensemble.HistGradientBoostingClassifier(max_iter=20), ensemble.ExtraTreesClassifier(20),
                  trees_.DecisionTreeClassifier(), linear_model.LogisticRegression(), linear_model.SGDClassifier(),
                  svm.SVC(), svm.SVC(probability=True), svm.LinearSVC(), naive_bayes.GaussianNB(),
                  neural_network.MLPClassifier(max_iter=50),
                  pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())):
            m.fit(x, y)
            for zip_map in (True, False):
                name = "%s, %d classes" % (m.__class__.__name__, classes)
                try:
                    yield name, to_onnx(m, x[:1], options={id(m): {"zipmap": zip_map}}), [x[:50]]
                except Exception as e:      # a release of one that the other does not know yet
                    print("%s: skl2onnx does not convert it: %s" % (name, str(e)[:60].replace("\n", " ")))
    x, y = data.make_regression(300, 6, random_state=seed)
    x = x.astype("f")
    for m in (ensemble.RandomForestRegressor(20), ensemble.GradientBoostingRegressor(n_estimators=20), svm.SVR(),
              ensemble.HistGradientBoostingRegressor(max_iter=20), linear_model.Ridge(), linear_model.Lasso(),
              trees_.DecisionTreeRegressor()):
        m.fit(x, y)
        try:
            yield m.__class__.__name__, to_onnx(m, x[:1]), [x[:50]]
        except Exception as e:
            print("%s: skl2onnx does not convert it: %s" % (m.__class__.__name__, str(e)[:60].replace("\n", " ")))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("binary")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--keep", help="folder for the cases, as `facula conformance` reads them")
    a = p.parse_args()
    onnxruntime.set_default_logger_severity(4)
    good = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(a.rounds):
            for maker in MAKERS:
                r = np.random.default_rng([a.seed, k, MAKERS.index(maker)])
                op, attrs, inputs, nout = maker(r)
                total += 1
                good += check(a.binary, model_of(op, attrs, inputs, nout), inputs, "%s, round %d" % (op, k), folder, 1e-5, a.keep)
        for what, model, inputs in learned(a.seed) or ():
            total += 1
            good += check(a.binary, model, inputs, what, folder, 1e-4)
    print("%d of %d models are equal" % (good, total))
    return good != total


sys.exit(main())

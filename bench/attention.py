"""Times attention on the GPU of this machine: PyTorch (cuDNN) and atunner in one run.

Parts: forward, its variants (shared key heads, windows, masks, sequences of different lengths), its
gradients, and decoding from a paged cache. atunner's artifacts are launched by the runtime. Times
are medians of CUDA events; L2 is emptied by a write before each sample.

* Variants are compared with the fastest function that PyTorch has for them: its attention backends,
  and flex_attention for windows.
* Backward: cuDNN is timed forward and backward, because atunner's task starts from q, k, v and dy
  and so contains the forward pass.
* Decoding: cuDNN reads keys and values from contiguous memory, atunner from a page table without
  repeated pages, with sequences of full length. The share is of `--peak` GB/s when keys and values
  are read once. Two further columns give the rate of a copy of as many bytes, and of reading as
  many bytes (atunner's sum over all of them): the writes of a short copy stay in L2.

Usage: python3 bench/attention.py --atunner build/atunner [--budget 6]
           [--only forward,variants,backward,decode] [--lengths 1024,4096,16384]
           [--dims 64,128,256] [--causal yes] [--seconds 600] [--where "order == 1"]
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
import math
import os
import sys
import tempfile
import time
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]
import atunner_runtime  # noqa: E402
from common import (
    DTYPES,
    announce,
    flags,
    launched,
    print_rows,
    run_atunner,
    scratch,
    time_us,
    why_not,
)  # noqa: E402

# sequences, heads, key heads, dim, keys of a page, pages of a sequence
DECODES = [
    (64, 32, 8, 128, 16, 256),
    (64, 32, 8, 64, 16, 256),
    (64, 16, 4, 256, 16, 256),
    (8, 32, 8, 128, 16, 1024),
    (1, 32, 8, 128, 16, 1024),
    (32, 32, 32, 128, 16, 128),
    (64, 64, 4, 128, 64, 64),
]


def attend(q, k, v, **settings):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **settings)


def tuned(options, command, dtype, dims, run):
    """Returns the median time in us that `run(kernel)` measures of the tuned artifact and the
    seconds that tuning took; without an artifact, nan and the reason."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.time()
        answer = run_atunner(
            options.atunner,
            [*command, *options.more, "--no-baselines", "--out", folder],
            dtype,
            options.budget,
        )
        if "best" not in answer:
            return (
                math.nan,
                f"{why_not(answer)}: {answer.get('trials', 0)} trials, "
                f"{answer.get('stop_reason', '')}",
            )
        seconds = time.time() - begin
        kernel = atunner_runtime.ArtifactSet(folder).choose(dims=dims, name=command[0])
        room = scratch(kernel)
        return (
            time_us(lambda: run(kernel, room), (), options.flush),
            f"{answer['trials']} trials, {seconds:.0f} s",
        )


def off(y, wanted):
    return (
        f"off cuDNN by {((y.float() - wanted.float()).norm() / wanted.float().norm()).item():.1e}"
    )


def sequences(options):
    """Rows (batch, heads, length, dim, causal, dtype) of 16 384 tokens with 2048 columns."""
    for length in map(int, options.lengths.split(",")):
        for dim in map(int, options.dims.split(",")):
            for causal in {"both": (False, True), "yes": (True,), "no": (False,)}[options.causal]:
                for name in options.dtypes.split(","):
                    shape = (max(1, 16384 // length), 2048 // dim, length, dim)
                    yield f"{str((*shape, causal)):<34} {name:<9}", (shape, causal, name)


def flags_of(shape, causal):
    return ["--input-shape", ",".join(map(str, shape)), "--attr", f"causal={str(causal).lower()}"]


def flops_of(products, shape, causal):
    batch, heads, length, dim = shape
    return 2 * products * batch * heads * length * length * dim / (2 if causal else 1)


def forward(options):
    print(f"{'forward':<34} {'dtype':<9} {'cuDNN':>9} {'atunner':>9} {'TFLOP/s':>8} {'ratio':>6}")

    def measure(row):
        shape, causal, name = row
        q, k, v = (torch.randn(shape, device="cuda", dtype=DTYPES[name]) for _ in range(3))
        library = time_us(lambda: attend(q, k, v, is_causal=causal), (), options.flush)
        y = torch.empty_like(q)
        dims = {"heads": shape[0] * shape[1], "sequence": shape[2], "dim": shape[3]}
        best, said = tuned(
            options,
            ["flash_attention", *flags_of(shape, causal)],
            name,
            dims,
            lambda kernel, scratch: kernel(q, k, v, y, **scratch),
        )
        if best == best:
            said += ", " + off(y, attend(q, k, v, is_causal=causal))
        return (
            f"{library:>9.1f} {best:>9.1f} {flops_of(2, shape, causal) / best / 1e6:>8.0f} "
            f"{library / best:>6.2f} {said}",
            library / best,
        )

    print_rows(sequences(options), options.seconds, measure)


# operator, sequences, heads, key heads, queries, keys, dim, attributes
VARIANTS = [
    ("attention_gqa", 2, 32, 8, 4096, 4096, 128, {"causal": True}),
    ("attention_masked", 2, 16, 16, 4096, 4096, 128, {}),
    ("attention_varlen", 16, 16, 16, 2048, 2048, 128, {}),
    ("attention_gqa", 1, 32, 8, 16384, 16384, 128, {"causal": True, "window": 1024}),
    ("attention_gqa", 2, 32, 8, 1024, 8192, 128, {"causal": True}),
    ("attention_masked", 2, 32, 32, 2048, 2048, 64, {"per_sequence": True}),
    ("attention_gqa", 2, 32, 8, 4096, 4096, 64, {}),
    ("attention_varlen", 16, 32, 8, 1024, 4096, 64, {}),
]


def library_of(op, q, k, v, extra, attributes):
    """PyTorch's functions for a variant, with their names."""
    from torch.nn.attention.bias import causal_lower_right
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    window, shared = (
        attributes.get("window", 0),
        {"enable_gqa": True} if q.shape[1] != k.shape[1] else {},
    )
    queries, keys = q.shape[2], k.shape[2]
    if window:
        block = create_block_mask(
            lambda b, h, i, j: (j <= i) & (j > i - window), None, None, queries, keys, device="cuda"
        )
        return {
            "flex": (
                lambda: torch.compile(flex_attention, dynamic=False),
                {"block_mask": block, **shared},
            )
        }
    mask = {}
    if op == "attention_masked":
        mask = {"attn_mask": extra[:, None]}
    elif op == "attention_varlen":
        mask = {
            "attn_mask": (torch.arange(keys, device="cuda") <= extra[:, None])[
                :, None, None
            ].expand(-1, 1, queries, -1)
        }
    elif attributes.get("causal"):
        mask = (
            {"is_causal": True}
            if queries == keys
            else {"attn_mask": causal_lower_right(queries, keys)}
        )

    def by(backend):
        def run(*tensors, **settings):
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(*tensors, **settings)

        return run

    backends = {
        "cuDNN": SDPBackend.CUDNN_ATTENTION,
        "flash": SDPBackend.FLASH_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
    }
    return {
        name: (lambda backend=backend: by(backend), {**mask, **shared})
        for name, backend in backends.items()
    }


def fastest(functions, tensors, flush):
    """Time, name and result of the fastest function that runs."""
    best = (math.nan, "none", None)
    warnings.simplefilter("ignore")  # each backend says at length what it does not take
    for name, (make, settings) in functions.items():
        try:
            function = make()
            took = time_us(lambda: function(*tensors, **settings), (), flush)
        except Exception:  # what a backend does not take
            continue
        if not best[0] <= took:
            best = (took, name, function(*tensors, **settings))
    return best


def variants(options):
    print(f"{'variant':<76} {'dtype':<9} {'PyTorch':>9} {'atunner':>9} {'TFLOP/s':>8} {'ratio':>6}")

    def measure(row):
        (op, batch, heads, key_heads, queries, keys, dim, attributes), name = row
        q, y = (
            torch.randn(batch, heads, queries, dim, device="cuda", dtype=DTYPES[name])
            for _ in range(2)
        )
        k, v = (
            torch.randn(batch, key_heads, keys, dim, device="cuda", dtype=DTYPES[name])
            for _ in range(2)
        )
        window, causal = attributes.get("window", 0), attributes.get("causal", False)
        seen = (
            batch * queries * (keys - queries / 2 * causal)
            if not window
            else batch * queries * window
        )
        extra = None
        if op == "attention_masked":
            extra = torch.randn(
                batch if attributes.get("per_sequence") else 1,
                queries,
                keys,
                device="cuda",
                dtype=DTYPES[name],
            )
        elif op == "attention_varlen":
            extra = torch.randint(
                keys // 4,
                keys,
                (batch,),
                device="cuda",
                generator=torch.Generator("cuda").manual_seed(3),
            )
            seen = queries * (extra + 1).sum().item()
        library, by, wanted = fastest(
            library_of(op, q, k, v, extra, attributes), (q, k, v), options.flush
        )
        flags_ = [
            "--input-shape",
            f"{batch},{heads},{queries},{dim}",
            f"{batch},{key_heads},{keys},{dim}",
        ]
        for key, value in attributes.items():
            flags_ += ["--attr", f"{key}={str(value).lower()}"]
        tensors = [q, k, v] + ([] if extra is None else [extra])
        best, said = tuned(
            options,
            [op, *flags_],
            name,
            {"rows": batch},
            lambda kernel, scratch: kernel(*tensors, y, **scratch),
        )
        if best == best and wanted is not None:
            said += ", " + off(y, wanted)
        return (
            f"{library:>9.1f} {best:>9.1f} {4 * heads * seen * dim / best / 1e6:>8.0f} "
            f"{library / best:>6.2f} {by}, {said}",
            library / best,
        )

    rows = (
        (f"{' '.join(map(str, row)):<76} {name:<9}", (row, name))
        for row in VARIANTS
        for name in options.dtypes.split(",")
    )
    print_rows(rows, options.seconds, measure)


def backward(options):
    print(
        f"{'backward':<34} {'dtype':<9} {'cuDNN forward':>13} {'backward':>9} "
        f"{'atunner, both':>13} {'TFLOP/s':>8} {'ratio':>6}"
    )

    def measure(row):
        shape, causal, name = row
        q, k, v, dy = (torch.randn(shape, device="cuda", dtype=DTYPES[name]) for _ in range(4))
        ahead = time_us(lambda: attend(q, k, v, is_causal=causal), (), options.flush)
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        y = attend(*leaves, is_causal=causal)
        back = time_us(
            lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True), (), options.flush
        )
        gradients = [torch.empty_like(q) for _ in range(3)]
        best, said = tuned(
            options,
            ["attention_gqa_backward", *flags_of(shape, causal)],
            name,
            {"rows": shape[0]},
            lambda kernel, scratch: kernel(q, k, v, dy, *gradients, **scratch),
        )
        if best == best:
            said += ", " + off(gradients[1], torch.autograd.grad(y, leaves, dy)[1])
        ratio = (ahead + back) / best
        return (
            f"{ahead:>13.1f} {back:>9.1f} {best:>13.1f} "
            f"{flops_of(7, shape, causal) / best / 1e6:>8.0f} {ratio:>6.2f} {said}",
            ratio,
        )

    print_rows(sequences(options), options.seconds, measure)


def read_us(options, elements, dtype):
    """Time in us of reading all elements, by atunner's sum over them."""
    with tempfile.TemporaryDirectory() as folder:
        run_atunner(
            options.atunner,
            ["sum", "--input-shape", str(elements.numel()), "--attr", "axis=all", "--no-baselines"],
            dtype,
            options.budget,
            folder,
        )
        return time_us(launched(folder, (elements,))[0], (), options.flush)


def decode(options):
    print(
        f"{'decode':<34} {'dtype':<9} {'cuDNN, no pages':>15} {'copy':>9} {'read':>9} "
        f"{'atunner':>9} {'GB/s':>6} {'share':>6} {'ratio':>6}"
    )

    def measure(row):
        (count, heads, key_heads, dim, page, pages), name = row
        q = torch.randn(count, heads, dim, device="cuda", dtype=DTYPES[name])
        k_pool, v_pool = (
            torch.randn(count * pages, page, key_heads, dim, device="cuda", dtype=DTYPES[name])
            for _ in range(2)
        )
        table = torch.randperm(count * pages, device="cuda").reshape(count, pages)
        last = torch.full((count,), page * pages - 1, device="cuda", dtype=torch.int64)
        k, v = (
            pool[table].reshape(count, pages * page, key_heads, dim).transpose(1, 2).contiguous()
            for pool in (k_pool, v_pool)
        )
        library = time_us(lambda: attend(q[:, :, None], k, v, enable_gqa=True), (), options.flush)
        y = torch.empty_like(q)
        shapes = [
            f"{count},{heads},{dim}",
            f"{count * pages},{page},{key_heads},{dim}",
            f"{count},{pages}",
        ]
        best, said = tuned(
            options,
            ["attention_paged", "--input-shape", *shapes],
            name,
            {"rows": count},
            lambda kernel, scratch: kernel(q, k_pool, v_pool, table, last, y, **scratch),
        )
        if best == best:
            said += ", " + off(y, attend(q[:, :, None], k, v, enable_gqa=True)[:, :, 0])
        copied = time_us(
            torch.empty_like(k).copy_, (k,), options.flush
        )  # reads keys, writes as much as values have
        read = read_us(options, torch.cat((k.flatten(), v.flatten())), name)
        rate = 2 * k.numel() * k.element_size() / best / 1e3
        return (
            f"{library:>15.1f} {copied:>9.1f} {read:>9.1f} {best:>9.1f} {rate:>6.0f} "
            f"{rate / options.peak * 100:>5.1f}% {library / best:>6.2f} {said}",
            library / best,
        )

    rows = (
        (f"{str(sizes):<34} {name:<9}", (sizes, name))
        for sizes in DECODES
        for name in options.dtypes.split(",")
    )
    print_rows(rows, options.seconds, measure)


def main():
    parser = flags(__doc__, "6", "bfloat16", "forward,variants,backward,decode")
    parser.add_argument("--lengths", default="1024,4096,16384")
    parser.add_argument("--dims", default="64,128,256")
    parser.add_argument("--causal", choices=("both", "yes", "no"), default="both")
    parser.add_argument(
        "--seconds", type=float, default=600, help="of each table: no row begins later"
    )
    parser.add_argument(
        "--peak", type=float, default=4800, help="GB/s of the memory, by its data sheet"
    )
    parser.add_argument("--where", default="", help="only such configurations")
    options = parser.parse_args()
    options.more = ["--where", options.where] if options.where else []
    torch.backends.cudnn.benchmark = True
    options.flush = announce("times in us; ratio = cuDNN / atunner")
    tables = {"forward": forward, "variants": variants, "backward": backward, "decode": decode}
    for which in options.only.split(","):
        tables[which](options)


if __name__ == "__main__":
    main()
